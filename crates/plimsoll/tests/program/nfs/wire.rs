//! NFS on the wire, checked by another program and over a bad network.

use std::path::Path;

use plimsoll_testkit::capture::{Capture, CapturedCompounds};
use plimsoll_testkit::flip_proxy::FlipProxy;
use plimsoll_testkit::lossy_proxy::{FaultRates, LossyConfig, LossyProxy};
use plimsoll_testkit::nfs_peers::{OwnNfs, export_of, ganesha};
use serde_json::Value;

use super::{through, udp_url};
use plimsoll_testkit::program::{Ended, Served, plimsoll, result, short};

/// A small set, the same for every command of a test.
const SMALL_SET: [&str; 2] = ["--set", "workload.mib_per_op_per_s=0.01"];

fn ops(point: &Value, name: &str) -> u64 {
    point["ops"][name]["count"].as_u64().unwrap_or(0)
}

/// More than the READs of the validation phase, which would stop the run at a flipped byte.
const FLIP_EVERY: u64 = 41;

/// Number of each procedure of NFSv3 by the name of the op (RFC 1813 §3.3).
const V3: [(&str, u32); 12] = [
    ("getattr", 1),
    ("setattr", 2),
    ("lookup", 3),
    ("access", 4),
    ("readlink", 5),
    ("read", 6),
    ("write", 7),
    ("create", 8),
    ("remove", 12),
    ("readdir", 16),
    ("readdirplus", 17),
    ("fsstat", 18),
];
/// The same for NFSv2 (RFC 1094 §2.2).
const V2: [(&str, u32); 10] = [
    ("getattr", 1),
    ("setattr", 2),
    ("lookup", 4),
    ("readlink", 5),
    ("read", 6),
    ("write", 8),
    ("create", 9),
    ("remove", 10),
    ("readdir", 16),
    ("fsstat", 17),
];

/// A point whose every op is sent and answered, however late.
const COUNTED: [&str; 12] = [
    "--points",
    "800",
    "--set",
    "profiles.quick.workload_scale=1",
    "--set",
    "profiles.quick.warm_up=1ms",
    "--set",
    "profiles.quick.measure=1s",
    SMALL_SET[0],
    SMALL_SET[1],
    "--set",
    "profiles.quick.drain=10s",
];

/// The point of a run without errors.
#[track_caller]
fn only_point(run: &Ended, bundle: &Path) -> Value {
    assert!(matches!(run.code, Some(0 | 1)), "{run:?}");
    let point = result(bundle)["points"][0].clone();
    assert_eq!(point["errors"], serde_json::json!({}), "{point}");
    point
}

/// A point whose every op is counted by tshark too. The set-up of a run is that of a second
/// `prepare`: they are captured alone and taken off.
#[track_caller]
fn check_counts(suite: &str, version: u32, procedures: &[(&str, u32)], udp: bool) {
    let server = Served::with("nfs", &[]);
    let url = if udp { udp_url(&server) } else { server.url.clone() };
    let prepare = [&["prepare", suite, url.as_str(), "--peak", "800"], &SMALL_SET[..]].concat();
    plimsoll(&prepare).check(0, &["complete"]);
    let Some(capture) = Capture::start(server.address().port()) else { return };
    plimsoll(&prepare).check(0, &["complete"]);
    let setup = capture.finish();

    let temp_dir = tempfile::tempdir().unwrap();
    let bundle = temp_dir.path().join("b");
    let Some(capture) = Capture::start(server.address().port()) else { return };
    let run = plimsoll(&short(suite, &url, &bundle, &COUNTED));
    let captured = capture.finish();
    let point = &only_point(&run, &bundle);
    assert_eq!((captured.dropped, setup.dropped), (0, 0), "the capture lost packets");
    for (name, number) in procedures {
        let on_the_wire = captured.nfs(version, *number) - setup.nfs(version, *number);
        // Ops due in the millisecond of warm-up are on the wire and not in the window.
        let counted = ops(point, name);
        let apart = on_the_wire.abs_diff(counted);
        assert!(apart <= 4, "{name}: {counted} counted, {on_the_wire} on the wire");
    }
}

#[test]
fn tshark_counts_the_same_calls_of_version_3_over_tcp() {
    check_counts("nfs-v3", 3, &V3, false);
}

#[test]
fn tshark_counts_the_same_calls_of_version_3_over_udp() {
    check_counts("nfs-v3", 3, &V3, true);
}

#[test]
fn tshark_counts_the_same_calls_of_version_2_over_udp() {
    check_counts("nfs-v2", 2, &V2, true);
}

/// Numbers of operations (RFC 8881 §16.2).
mod operation {
    pub const SEQUENCE: u32 = 53;
    pub const RECLAIM_COMPLETE: u32 = 58;
    /// BIND_CONN_TO_SESSION, EXCHANGE_ID, CREATE_SESSION, DESTROY_SESSION and DESTROY_CLIENTID,
    /// which need no SEQUENCE before them.
    pub const ALONE: [u32; 5] = [41, 42, 43, 44, 57];
}
/// Clients of the suite.
const CLIENTS: u64 = 16;
/// Calls of a draw: OPEN, sixteen blocks, CLOSE.
const DRAW_CALLS_MAX: u64 = 18;
/// Calls that make a client's session: EXCHANGE_ID, CREATE_SESSION, RECLAIM_COMPLETE.
const SESSION_CALLS: u64 = 3;

/// A point whose every compound is counted by tshark too, and by the server `own` if it is that.
/// False: nothing can be captured here.
#[track_caller]
fn check_compounds(port: u16, url: &str, own: Option<&OwnNfs>) -> bool {
    let prepare = [&["prepare", "nfs-v4.1", url, "--peak", "800"], &SMALL_SET[..]].concat();
    plimsoll(&prepare).check(0, &["complete"]);
    let Some(capture) = Capture::start(port) else { return false };
    plimsoll(&prepare).check(0, &["complete"]);
    let setup = capture.finish_compounds();

    let temp_dir = tempfile::tempdir().unwrap();
    let bundle = temp_dir.path().join("b");
    let Some(capture) = Capture::start(port) else { return false };
    let executed = || own.map(|server| server.v4.counts().compounds);
    let before = executed();
    let run = plimsoll(&short("nfs-v4.1", url, &bundle, &COUNTED));
    let captured = capture.finish_compounds();
    let point = only_point(&run, &bundle);
    for one in [&setup, &captured] {
        assert_eq!(one.dropped, 0, "the capture lost packets");
        assert_eq!((&one.faulty, one.out_of_sequence()), (&Vec::new(), Vec::new()));
    }
    // The sessions of set-up vary in number with its channels.
    let of_ops = |captured: &CapturedCompounds| {
        captured.count(operation::SEQUENCE) - captured.count(operation::RECLAIM_COMPLETE)
    };
    let on_the_wire = of_ops(&captured) - of_ops(&setup);
    let done: u64 = point["ops"].as_object().unwrap().keys().map(|name| ops(&point, name)).sum();
    let times = |name: &str| point["compound_calls"][name]["n"].as_u64().unwrap();
    let timed = done + times("open_ns") + times("close_ns");
    // Further blocks of an op that ends after the window are due after it.
    let in_window = ["achieved_ops_per_s", "seconds"].map(|name| point[name].as_f64().unwrap());
    let late = done.saturating_sub((in_window[0] * in_window[1]).round() as u64) * DRAW_CALLS_MAX;
    // Ops due in the millisecond of warm-up are on the wire and not in the window.
    let expected = on_the_wire.saturating_sub(late + 8)..=on_the_wire + 8;
    assert!(expected.contains(&timed), "{timed} calls timed, {on_the_wire} on the wire");
    // The counter is of the window, in which sessions begin.
    let counted = point["compounds"].as_u64().unwrap();
    let expected = *expected.start()..=on_the_wire + SESSION_CALLS * CLIENTS;
    assert!(expected.contains(&counted), "{counted} counted, {on_the_wire} on the wire");
    if let (Some(before), Some(after)) = (before, executed()) {
        let alone = operation::ALONE.map(|operation| captured.count(operation));
        let all = captured.count(operation::SEQUENCE) + alone.iter().sum::<u64>();
        assert_eq!(all, after - before, "on the wire, and executed by the server");
    }
    true
}

#[test]
fn tshark_the_server_and_the_run_count_the_same_compounds() {
    let server = OwnNfs::start();
    check_compounds(server.address.port(), &server.url, Some(&server));
}

#[test]
fn every_slot_of_a_real_ganesha_is_numbered_without_a_gap_and_clean_leaves_nothing() {
    let Some(server) = ganesha(&[]) else { return };
    if check_compounds(server.address.port(), &server.url(), None) {
        plimsoll(&["clean", &format!("{}&version=4.1", server.url())]).check(0, &["removed"]);
        assert_eq!(std::fs::read_dir(export_of(&server)).unwrap().count(), 0);
    }
}

/// Runs one point through a proxy, after the set has been written without it.
#[track_caller]
fn one_point(server: &Served, url: &str, more: &[&str]) -> Value {
    let prepare = [&["prepare", "nfs-v3", server.url.as_str(), "--peak", "400"], &SMALL_SET[..]];
    plimsoll(&prepare.concat()).check(0, &["complete"]);
    let temp_dir = tempfile::tempdir().unwrap();
    let bundle = temp_dir.path().join("b");
    let flags = [
        &["--points", "400", "--set", "profiles.quick.workload_scale=1"],
        &["--set", "profiles.quick.measure=2s", "--set", "profiles.quick.drain=8s"],
        &SMALL_SET[..],
        more,
    ]
    .concat();
    let run = plimsoll(&short("nfs-v3", url, &bundle, &flags));
    assert!(matches!(run.code, Some(0 | 1)), "{run:?}");
    result(&bundle)["points"][0].clone()
}

#[test]
fn a_network_that_loses_doubles_and_reorders_counts_no_op_twice_and_loses_none() {
    let server = Served::with("nfs", &[]);
    // One datagram in twenty, in each direction.
    let bad = FaultRates { lose: 0.02, duplicate: 0.02, reorder: 0.01 };
    let config = LossyConfig { seed: 5, to_server: bad, to_client: bad };
    let proxy = LossyProxy::start(server.address(), config);
    let url = through(&server, proxy.address(), "udp");
    // Time for five tries: after 0, 1, 3, 7 and 15 s.
    let long = ["--set", "op_timeout=25s", "--set", "profiles.quick.drain=25s"];
    let point = one_point(&server, &url, &long);
    let counts = proxy.counts();
    assert!(counts.to_server.lost > 2 && counts.to_client.duplicated > 2, "{counts:?}");
    // Every op that came due was answered once, however often it was sent.
    assert_eq!(point["errors"], serde_json::json!({}), "{point}");
    assert_eq!(point["not_sent"], 0, "{point}");
    let done: u64 =
        point["ops"].as_object().unwrap().values().map(|o| o["count"].as_u64().unwrap()).sum();
    let due = point["offered_ops_per_s"].as_f64().unwrap() * point["seconds"].as_f64().unwrap();
    assert!((due - done as f64).abs() < 0.5, "{due} due, {done} done");
    assert!(point["retransmissions"].as_u64().unwrap() > 5, "{point}");
}

#[test]
fn every_flipped_byte_in_a_read_over_tcp_is_caught() {
    let server = Served::with("nfs", &[]);
    let proxy = FlipProxy::tcp(server.address(), FLIP_EVERY);
    let url = through(&server, proxy.address(), "tcp");
    check_flips(&server, &proxy, &url);
}

#[test]
fn every_flipped_byte_in_a_read_over_udp_is_caught() {
    let server = Served::with("nfs", &[]);
    let proxy = FlipProxy::udp(server.address(), FLIP_EVERY);
    let url = through(&server, proxy.address(), "udp");
    check_flips(&server, &proxy, &url);
}

#[track_caller]
fn check_flips(server: &Served, proxy: &FlipProxy, url: &str) {
    let more = ["--set", "workload.verify_one_in=1", "--set", "profiles.quick.warm_up=1ms"];
    let point = one_point(server, url, &more);
    let caught = point["errors"]["corrupt"].as_u64().unwrap_or(0);
    assert!(proxy.injected() > 2, "{} injected", proxy.injected());
    assert_eq!(caught, proxy.injected(), "{point}");
}
