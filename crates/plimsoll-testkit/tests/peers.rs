//! Real peers do what tests ask of them.
#![allow(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

use std::time::Duration;

use plimsoll_testkit::clock::monotonic_ns;
use plimsoll_testkit::peers::{curl, nginx, suspend};

#[test]
fn a_suspended_nginx_answers_when_it_goes_on() {
    let root = std::env::temp_dir();
    let Some(server) = nginx(&root, &[]) else { return };
    let pids = server.pids().unwrap();
    let suspended = std::thread::spawn(move || suspend(&pids, Duration::from_millis(200)));
    std::thread::sleep(Duration::from_millis(50));
    let start_ns = monotonic_ns();
    let Some(reply) = curl(&[&format!("{}no-such-file", server.url())]) else { return };
    let waited_ns = monotonic_ns() - start_ns;
    suspended.join().unwrap();
    assert_eq!(reply.exit, 0);
    assert!(waited_ns > 100_000_000, "answered after {waited_ns} ns although suspended");
}
