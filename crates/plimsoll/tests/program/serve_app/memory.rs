//! The server's memory: how much many slow clients can make it use, and a limit on all of it.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use plimsoll_app::wire::{
    PAYLOAD_BYTES_MAX, Refusal, RequestHeader, RequestType, Status, work_block,
};
use plimsoll_testkit::peers::require_root;

use super::client::{Client, request};
use plimsoll_testkit::program::{Served, plimsoll, serve, wait_until};

const MIB: u64 = 1 << 20;

/// Memory that the process has in use, in bytes.
fn resident_bytes(server: &Served) -> u64 {
    let status = server.proc("status");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1_024
}

#[test]
fn a_thousand_slow_clients_take_no_more_memory_than_they_have_sent_bytes() {
    let server = Served::with("app", &[]);
    let (mut victim, _) = Client::greeted(&server, 0, 0);
    let claimed =
        RequestHeader { payload_bytes: PAYLOAD_BYTES_MAX, ..request(RequestType::ClientServer) };
    let mut slow: Vec<_> =
        (1..=1_000).map(|number| Client::greeted(&server, number, 0).0).collect();
    let before = resident_bytes(&server);
    for client in &mut slow {
        client.stream.write_all(&claimed.encode()).unwrap();
    }
    for _ in 0..3 {
        for client in &mut slow {
            client.stream.write_all(b"x").unwrap();
        }
        let header = RequestHeader { size: 100, ..request(RequestType::ClientServer) };
        assert_eq!(victim.ask(header, b"well").status, Status::Ok);
    }
    let after = resident_bytes(&server);
    assert!(after < before + 8 * MIB, "{before} and then {after} bytes");
    // At the very most a frame each.
    for client in &mut slow {
        client.stream.write_all(&work_block()[..60_000]).unwrap();
    }
    let read = || {
        let (mut client, _) = Client::greeted(&server, 0, 0);
        let text = client.status();
        let line = text.lines().find_map(|l| l.strip_prefix("plimsoll_app_received_bytes_total "));
        line.unwrap().parse::<u64>().unwrap()
    };
    wait_until("the server has read it all", || read() > 60_000 * 1_000);
    let after = resident_bytes(&server);
    assert!(after < before + 1_000 * 2 * 66_000 + 8 * MIB, "{before} and then {after} bytes");
    assert_eq!(server.end().code, Some(0));
}

/// Path of a server's control group in the memory controller's hierarchy.
fn group(server: &Served) -> PathBuf {
    let memberships = server.proc("cgroup");
    let path = |line: &str| line.rsplit(':').next().unwrap().trim_start_matches('/').to_owned();
    let v1 = memberships.lines().find(|line| line.contains(":memory:"));
    match v1 {
        Some(line) => Path::new("/sys/fs/cgroup/memory").join(path(line)),
        None => Path::new("/sys/fs/cgroup").join(path(memberships.lines().last().unwrap())),
    }
}

#[test]
fn a_limit_of_memory_holds_the_page_cache_too_and_goes_with_the_server() {
    if require_root("a control group of its own").is_none() {
        return;
    }
    let temp_dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let root = temp_dir.path().join("segments");
    let limit = 64 * MIB;
    let server = Served::with("app", &["--memory", "64MiB", "--root", root.to_str().unwrap()]);
    let group = group(&server);
    let name = format!("plimsoll-app-{}", server.child().id());
    assert!(group.ends_with(&name), "{group:?} is not {name}");
    for number in 0..10 {
        let (mut client, welcome) = Client::greeted(&server, number, 16 * MIB);
        assert_eq!((welcome.refusal, welcome.memory_bytes), (None, limit));
        for offset in (0..16 * MIB).step_by(65_536) {
            let header = RequestHeader { offset, ..request(RequestType::Write) };
            assert_eq!(client.ask(header, work_block()).status, Status::Ok);
        }
    }
    let used = ["memory.usage_in_bytes", "memory.current"].into_iter().find_map(|file| {
        std::fs::read_to_string(group.join(file)).ok()?.trim().parse::<u64>().ok()
    });
    let used = used.unwrap();
    assert!((32 * MIB..=limit).contains(&used), "{used} bytes of {limit} are in use");
    assert_eq!(server.end().code, Some(0));
    assert!(!group.exists(), "{group:?} is left over");
}

#[test]
fn a_limit_that_cannot_be_kept_is_refused() {
    let tight = ["serve", "app", "--listen", "127.0.0.1:0", "--memory", "1MiB"];
    plimsoll(&tight).check(3, &["1048576 bytes of memory are too few", "33554432"]);
    if Path::new("/dev/shm").is_dir() {
        let in_memory = tempfile::tempdir_in("/dev/shm").unwrap();
        let root = ["--root", in_memory.path().to_str().unwrap(), "--memory", "64MiB"];
        plimsoll(&[&tight[..4], &root].concat()).check(3, &["file system in memory", "--root"]);
    }
}

#[test]
fn a_segment_without_room_is_refused_and_the_others_go_on() {
    if require_root("a small file system").is_none() {
        return;
    }
    let temp_dir = tempfile::tempdir().unwrap();
    let root = temp_dir.path().to_str().unwrap();
    let server = serve("app", &["--root", root, "--segment-max", "1GiB"]);
    let command = on_a_file_system(temp_dir.path(), "size=8m", &server);
    let server = Served::start(command);
    let (mut client, welcome) = Client::greeted(&server, 1, 4 * MIB);
    assert_eq!(welcome.refusal, None);
    assert_eq!(Client::greeted(&server, 2, 100 * MIB).1.refusal, Some(Refusal::NoRoom));
    assert_eq!(Client::greeted(&server, 3, 6 * MIB).1.refusal, Some(Refusal::NoRoom));
    let header = RequestHeader { offset: 4 * MIB - 65_536, ..request(RequestType::Write) };
    assert_eq!(client.ask(header, work_block()).status, Status::Ok);
    assert_eq!(Client::greeted(&server, 4, 2 * MIB).1.refusal, None);
    let ended = server.end();
    ended.check(0, &["client-000002.segment", "cannot make it", "No space left on device"]);
}

#[test]
fn a_directory_that_only_reads_is_refused() {
    if require_root("a file system that only reads").is_none() {
        return;
    }
    let temp_dir = tempfile::tempdir().unwrap();
    let server = serve("app", &["--root", temp_dir.path().to_str().unwrap()]);
    let mut command = on_a_file_system(temp_dir.path(), "ro", &server);
    let output = command.stdin(Stdio::null()).output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{stderr}");
    assert!(stderr.contains("Read-only file system") && stderr.contains("--root"), "{stderr}");
}

#[test]
fn the_group_of_a_killed_server_is_removed_by_the_next() {
    if require_root("a control group of its own").is_none() {
        return;
    }
    let temp_dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let root = temp_dir.path().join("segments");
    let flags = ["--memory", "64MiB", "--root", root.to_str().unwrap()];
    let killed = Served::with("app", &flags);
    let leftover = group(&killed);
    assert!(leftover.exists());
    // Killed without a chance to clean up.
    drop(killed);
    let next = Served::with("app", &flags);
    assert!(!leftover.exists() && group(&next).exists());
    assert_eq!(next.end().code, Some(0));
}

/// `server` with a private file system in memory on `mount_point`.
fn on_a_file_system(mount_point: &Path, options: &str, server: &Command) -> Command {
    const SCRIPT: &str = r#"mount -t tmpfs -o "$1" plimsoll "$2" && shift 2 && exec "$@""#;
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", SCRIPT, "sh", options]).arg(mount_point);
    command.arg(server.get_program()).args(server.get_args());
    command
}
