//! Bytes and commands, counted independently of the program: by the kernel and tshark.

use std::process::{Command, Stdio};

use plimsoll_testkit::capture::{Capture, CapturedCommands};
use plimsoll_testkit::peers::{require_peer, require_root};
use plimsoll_testkit::smb_peers::samba;
use serde_json::Value;

use plimsoll_testkit::program::{Served, plimsoll, result, wait_for, wait_until};
use plimsoll_testkit::shared_files::{disk_mix, has_begun, run};

/// Three small workspaces, the same for `prepare`, which has no profile, and for a run.
const WORKSPACES: [&str; 2] = ["--set", "workload.workspace_mib=1"];
const CLIENTS: &str = "3";

/// Commands (MS-SMB2 2.2.1.2) and the ops that contain one of it each, after
/// docs/smb-operations.md.
const MAPPING: [(u16, &[&str]); 10] = [
    (5, &["create", "query_path", "query_fs", "find", "rename", "unlink"]),
    (6, &["close", "query_path", "query_fs", "find", "rename", "unlink"]),
    (7, &["flush"]),
    (8, &["read"]),
    (9, &["write"]),
    (10, &["lock", "unlock"]),
    (ECHO, &["echo"]),
    (14, &["find"]),
    (16, &["query_file", "query_path", "query_fs"]),
    (17, &["set_file", "rename"]),
];

const ECHO: u16 = 13;

/// A point whose every command is counted by tshark too. The set-up of a run is that of a
/// second `prepare`: they are captured alone and taken off.
#[track_caller]
fn check_commands(url: &str, port: u16) {
    let prepare = [&["prepare", "disk-mix", url, "--peak", CLIENTS], &WORKSPACES[..]].concat();
    plimsoll(&prepare).check(0, &["complete"]);
    let Some(capture) = Capture::start(port) else { return };
    plimsoll(&prepare).check(0, &["complete"]);
    let setup = capture.finish_smb();

    let Some(capture) = Capture::start(port) else { return };
    let points = ["--points", CLIENTS, "--set", "profiles.quick.workload_scale=1"];
    let window = ["--set", "profiles.quick.measure=4s"];
    let finished = run(url, &[&points[..], &window, &WORKSPACES].concat(), || ());
    let captured = capture.finish_smb();
    let point = finished.point();
    assert!(matches!(finished.ended.code, Some(0 | 1)), "{:?}", finished.ended);
    assert_eq!((finished.stayed(), finished.unexpected()), (3, 0), "{point}");
    assert_eq!(point["errors"], serde_json::json!({}), "{point}");
    assert_eq!((captured.dropped, setup.dropped), (0, 0), "the capture lost packets");
    check_mapping(point, &captured, &setup);
}

#[track_caller]
fn check_mapping(point: &Value, captured: &CapturedCommands, setup: &CapturedCommands) {
    let count = |op: &&str| point["ops"][*op]["count"].as_u64().unwrap();
    for (command, ops) in MAPPING {
        // A run checks the share before it sets it up, over a connection of its own; every set-up
        // begins with an ECHO on it.
        let before_setup = u64::from(command == ECHO);
        let on_the_wire = captured.count(command) - setup.count(command) - before_setup;
        let predicted: u64 = ops.iter().map(count).sum();
        assert_eq!(on_the_wire, predicted, "command {command}, of {ops:?}: wire, predicted");
    }
    // The mapping leaves no op out.
    let mapped = |op: &str| MAPPING.iter().any(|(_, ops)| ops.contains(&op));
    for (op, counts) in point["ops"].as_object().unwrap() {
        assert!(mapped(op) || counts["count"] == 0, "{op}: {counts}");
    }
    assert!(captured.count(8) > setup.count(8) + 50, "a point worth counting: {captured:?}");
}

#[test]
fn tshark_counts_the_commands_that_the_mapping_predicts_on_the_reference_server() {
    let server = Served::with("smb", &[]);
    check_commands(&server.url, server.address().port());
}

#[test]
fn tshark_counts_the_commands_that_the_mapping_predicts_on_a_real_samba() {
    let Some(server) = samba() else { return };
    check_commands(&server.url_with_password(), server.address.port());
}

/// Headers of a segment on the loopback interface: IPv4 without options, TCP with timestamps. A SYN
/// has eight bytes more, an answer to an out-of-order segment too; there is next to none of both.
const HEADER_BYTES: u64 = 20 + 32;

/// Clients that think for long enough that even on a busy machine the test reads the counters
/// before they begin.
const THINKING: [&str; 6] = [
    "--points",
    "3",
    "--set",
    "profiles.quick.think_scale=0.4",
    "--set",
    "profiles.quick.measure=3s",
];

/// Largest difference between our count of bytes and the kernel's.
const APART_MAX: f64 = 0.01;

/// Bytes that TCP carried in a network namespace so far, both ways: every packet of its loopback
/// interface is received once, whoever sent it. Both counters count a packet as the interface has
/// it, so that one of 64 KiB has its headers once.
fn carried(net: &str) -> u64 {
    let octets = counter(net, "IpExt:", "InOctets");
    octets - HEADER_BYTES * counter(net, "Ip:", "InReceives")
}

/// From the pairs of lines of /proc/net/netstat and /proc/net/snmp: names, then numbers.
fn counter(net: &str, table: &str, name: &str) -> u64 {
    let mut lines = net.lines().filter(|line| line.starts_with(table));
    let (names, numbers) = (lines.next().unwrap(), lines.next().unwrap());
    let column = names.split_whitespace().position(|column_name| column_name == name).unwrap();
    numbers.split_whitespace().nth(column).unwrap().parse().unwrap()
}

/// Client and server have a network of their own, so that its counters are theirs alone. Those are
/// read when the point begins, before its clients have connected (they think first), and at the end
/// of the run. In between are the window of the result, which begins with the point, the ops under
/// way at its end and the logons, which the client counts as well.
#[test]
fn wire_bytes_agree_with_the_kernels_counters_within_a_percent() {
    if require_peer("smbd").is_none()
        || require_peer("unshare").is_none()
        || require_peer("ip").is_none()
        || require_root("a network namespace").is_none()
    {
        return;
    }
    // Where the machine stands still, a client may be done with thinking before the counters are
    // read. A wrong count is wrong every time.
    let mut apart = Vec::new();
    while apart.iter().all(|apart| *apart > APART_MAX) {
        assert!(apart.len() < 3, "{apart:?} apart");
        apart.push(apart_from_the_kernel());
    }
}

/// Difference between our count and the kernel's in a run of its own, as a part of the latter.
#[track_caller]
fn apart_from_the_kernel() -> f64 {
    let temp_dir = tempfile::tempdir().unwrap();
    let bundle = temp_dir.path().join("b");
    let inner = disk_mix("managed:samba", &bundle, &THINKING);
    let script = "ip link set lo up || exit 90; \"$@\" >&2; cat /proc/net/netstat /proc/net/snmp";
    // `unshare` becomes the shell: its process id is also the namespace's.
    let child = Command::new("unshare")
        .args(["--net", "sh", "-c", script, "sh"])
        .arg(inner.get_program())
        .args(inner.get_args())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    wait_until("the point begins", || has_begun(&bundle));
    let table = |name: &str| std::fs::read_to_string(format!("/proc/{}/net/{name}", child.id()));
    let before = carried(&(table("netstat").unwrap() + &table("snmp").unwrap()));
    let ended = wait_for(child);
    let by_the_kernel = (carried(&ended.out) - before) as f64;
    let result = result(&bundle);
    let point = &result["points"][0];
    assert_eq!(point["errors"], serde_json::json!({}), "{}", ended.err);
    let of = |key: &str| point[key].as_f64().unwrap();
    let ours = of("wire_bytes_in") + of("wire_bytes_out");
    assert!(ours > 2e6, "a point worth counting: {ours} bytes");
    // What the ops moved is most of it, so that the counts agree about something.
    assert!(of("bytes_read") + of("bytes_written") > 0.5 * ours, "{point}");
    let apart = (ours / by_the_kernel - 1.0).abs();
    eprintln!("wire bytes: {ours} by our count, {by_the_kernel} by the kernel's, {apart:.5} apart");
    apart
}
