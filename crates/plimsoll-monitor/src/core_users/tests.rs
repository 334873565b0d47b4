use plimsoll_model::event::CoreUserKind;
use std::fs;
use std::process::{Child, Command};
use std::time::Duration;

use super::*;
use crate::clock;

/// A machine with one process after the other: id, name, core, ticks. Those named like the
/// kernel's workers are its own.
fn lay_out(root: &Root, processes: &[(u32, &str, u32, u64)]) {
    for &(pid, name, core, ticks) in processes {
        let dir = root.path(format!("proc/{pid}"));
        fs::create_dir_all(&dir).unwrap();
        let zeros = "0 ".repeat(18);
        // The flags of a kworker of Linux 6.1.
        let flags = if name.starts_with("kworker") { 69_238_880 } else { 4_194_560 };
        let line = format!(
            "{pid} ({name}) S 0 0 0 0 0 {flags} 0 0 0 0 {ticks} 0 0 0 0 0 1 {zeros}{core} 0\n"
        );
        fs::write(dir.join("stat"), line).unwrap();
    }
}

fn watched() -> WatchedCores {
    WatchedCores { cores: vec![3], own_threads: vec![] }
}

#[test]
fn users_of_the_watched_cores_are_named_the_largest_first_and_five_at_most() {
    let directory = tempfile::TempDir::new().unwrap();
    let root = Root::in_directory(directory.path());
    let first = [(1, "init", 3, 10), (8, "elsewhere", 2, 0), (9, "kworker/3:1", 3, 100)];
    lay_out(&root, &first);
    let before = Census::take(&root);
    let scan = CoreScan::take(&root, &watched(), &before).unwrap();
    lay_out(&root, &[(8, "elsewhere", 2, 90), (9, "kworker/3:1", 3, 150)]);
    let later: Vec<_> = (20..30).map(|pid| (pid, "late", 3, u64::from(pid))).collect();
    lay_out(&root, &later);
    let users = scan.users(&root, &watched(), &Grown::between(&before, &Census::take(&root)));
    let actual: Vec<_> = users.iter().map(|user| (user.name.as_str(), user.pid)).collect();
    let expected = [("kworker/3:1", 9), ("late", 29), ("late", 28), ("late", 27), ("late", 26)];
    assert_eq!(actual, expected);
    let tick_ns = ticks_to_ns(1);
    assert_eq!((users[0].cpu_ns, users[0].own), (50 * tick_ns, false), "what it used since");
    let kinds: Vec<_> = users[..2].iter().map(CoreUser::kind).collect();
    assert_eq!(kinds, [CoreUserKind::Kernel, CoreUserKind::Other]);
}

#[test]
fn beside_the_server_are_those_that_may_run_on_its_cores_wherever_they_were_last() {
    let directory = tempfile::TempDir::new().unwrap();
    let root = Root::in_directory(directory.path());
    lay_out(&root, &[(1, "init", 0, 10)]);
    let before = Census::take(&root);
    let scan = CoreScan::take(&root, &watched(), &before).unwrap();
    lay_out(&root, &[(8, "pinned", 0, 90), (9, "floats", 0, 50), (10, "there", 3, 40)]);
    fs::write(root.path("proc/8/status"), "Cpus_allowed_list:\t0-2\n").unwrap();
    fs::write(root.path("proc/9/status"), "Cpus_allowed_list:\t0-3\n").unwrap();
    let users =
        scan.alongside_server(&root, &watched(), &Grown::between(&before, &Census::take(&root)));
    let actual: Vec<_> = users.iter().map(|user| (user.name.as_str(), user.cpu_ns)).collect();
    assert_eq!(actual, [("floats", 50 * ticks_to_ns(1)), ("there", 40 * ticks_to_ns(1))]);
}

#[test]
fn where_the_first_process_is_hidden_nothing_is_said() {
    let directory = tempfile::TempDir::new().unwrap();
    let root = Root::in_directory(directory.path());
    lay_out(&root, &[(70, "ours", 3, 5)]);
    assert!(CoreScan::take(&root, &watched(), &Census::take(&root)).is_none());
    lay_out(&root, &[(1, "init", 3, 5)]);
    assert!(CoreScan::take(&root, &watched(), &Census::take(&root)).is_some());
    let none = CoreScan::take(&root, &WatchedCores::default(), &Census::take(&root));
    assert!(none.is_none(), "no core is watched");
}

struct Loop(Child);

impl Drop for Loop {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_busy_loop_on_a_core_is_named_and_our_own_threads_are_ours() {
    let root = Root::default();
    let core = rustix::thread::sched_getcpu() as u32;
    let own_threads = vec![rustix::thread::gettid().as_raw_nonzero().get() as u32];
    let every_core = WatchedCores { cores: (0..1_024).collect(), own_threads };
    let busy = Command::new("taskset")
        .args(["-c", &core.to_string(), "sh", "-c", "while :; do :; done"])
        .spawn()
        .unwrap();
    let busy = Loop(busy);
    let before = Census::take(&root);
    let scan = CoreScan::take(&root, &every_core, &before).unwrap();
    let begin_ns = clock::thread_cpu_ns();
    std::thread::sleep(Duration::from_millis(300));
    while clock::thread_cpu_ns() < begin_ns + 30_000_000 {}
    // Not the five largest: this machine may have other work.
    let users = scan.all_users(&root, &every_core, &Grown::between(&before, &Census::take(&root)));
    let user = users.iter().find(|user| user.pid == busy.0.id()).unwrap();
    assert!(user.cpu_ns >= 20_000_000 && !user.own, "{users:?}");
    let other = WatchedCores { cores: vec![1_023], own_threads: vec![] };
    assert!(
        scan.all_users(&root, &other, &Grown::between(&before, &Census::take(&root))).is_empty()
    );
    let own: Vec<_> = scan.own(&root, &every_core, std::process::id());
    assert!(own.len() == 1 && own[0].own && own[0].cpu_ns >= 30_000_000, "{own:?}");
}
