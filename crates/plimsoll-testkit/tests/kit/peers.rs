//! Real peers do what tests ask of them.

use std::time::Duration;

use plimsoll_testkit::clock::monotonic_ns;
use plimsoll_testkit::peers::{curl, nginx, suspend};

const SUSPENDED: Duration = Duration::from_millis(1_500);

/// Whether a signal has stopped the process: proc_pid_stat(5), the field after the name.
fn is_stopped(pid: u32) -> bool {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    text.rsplit_once(") ").unwrap().1.starts_with('T')
}

#[test]
fn a_suspended_nginx_answers_when_it_goes_on() {
    let root = std::env::temp_dir();
    let Some(server) = nginx(&root, &[]) else { return };
    let pids = server.pids().unwrap();
    let begun_ns = monotonic_ns();
    let suspended = std::thread::spawn({
        let pids = pids.clone();
        move || suspend(&pids, SUSPENDED)
    });
    while !pids.iter().all(|&pid| is_stopped(pid)) {
        assert!(!suspended.is_finished(), "{pids:?} were never seen to stand still together");
        std::thread::sleep(Duration::from_millis(5));
    }
    let Some(reply) = curl(&[&format!("{}no-such-file", server.url())]) else { return };
    let answered_ns = monotonic_ns() - begun_ns;
    suspended.join().unwrap();
    assert_eq!(reply.exit, 0);
    let still_ns = SUSPENDED.as_nanos() as u64;
    assert!(answered_ns >= still_ns, "answered after {answered_ns} ns although suspended");
}
