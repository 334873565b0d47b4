//! NFS servers that refuse, die, come back, or lose their state: message, exit code, counts.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use plimsoll_testkit::lossy_proxy::{CutProxy, FaultRates, LossyConfig, LossyProxy};
use plimsoll_testkit::nfs_peers::{export_of, ganesha};
use plimsoll_testkit::skips::skip_always;
use serde_json::Value;

use super::through;
use plimsoll_testkit::program::{
    Ended, Served, command, plimsoll, points_finished, result, short, signal, wait_for, wait_until,
};

fn refused(url: &str, parts: &[&str], code: i32) {
    refused_by("nfs-v3", url, parts, code);
}

/// The run of a suite ends before it begins.
#[track_caller]
pub fn refused_by(suite: &str, url: &str, parts: &[&str], code: i32) {
    let temp_dir = tempfile::tempdir().unwrap();
    let bundle = temp_dir.path().join("b");
    plimsoll(&short(suite, url, &bundle, &["--points", "50"])).check(code, parts);
    assert!(!bundle.exists(), "nothing is left of a run that never began");
}

#[test]
fn an_export_that_is_not_there_is_named_with_those_that_are() {
    let server = Served::with("nfs", &[]);
    let url = server.url.replace("/export", "/no-such-export");
    refused(&url, &["refuses to mount /no-such-export", "it exports /export"], 3);
}

#[test]
fn an_export_that_is_named_twice_is_refused() {
    let server = Served::with("nfs", &[]);
    let again = server.url.replace("127.0.0.1", "localhost");
    let temp_dir = tempfile::tempdir().unwrap();
    let bundle = temp_dir.path().join("b");
    for other in [&server.url, &again] {
        let more = [other.as_str(), "--points", "50"];
        plimsoll(&short("nfs-v3", &server.url, &bundle, &more)).check(2, &["are the same export"]);
    }
}

#[test]
fn a_version_in_the_url_that_is_not_the_suites_is_refused() {
    let server = Served::with("nfs", &[]);
    let url = format!("{}&version=2", server.url);
    refused(&url, &["version=2 is not possible", "nfs-v2"], 2);
    refused(&format!("{}&transport=sctp", server.url), &["transport=sctp", "tcp or udp"], 2);
    refused(&format!("{}&speed=11", server.url), &["speed=11", "mountport"], 2);
}

#[test]
fn a_server_without_the_suites_version_says_which_it_has() {
    let Some(server) = ganesha(&[]) else { return };
    let temp_dir = tempfile::tempdir().unwrap();
    let bundle = temp_dir.path().join("b");
    let run = plimsoll(&short("nfs-v2", &server.url(), &bundle, &["--points", "50"]));
    run.check(3, &["version 2"]);
}

#[test]
fn a_missing_portmapper_is_named_with_the_way_around() {
    if std::net::TcpStream::connect("127.1.2.3:111").is_ok() {
        return skip_always("this host has a portmapper on every address");
    }
    refused("nfs://127.1.2.3/export", &["no portmapper answers at 127.1.2.3:111", "mountport"], 3);
}

#[test]
fn a_dead_port_and_a_host_without_address_are_named() {
    let free = std::net::UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let port = free.port();
    let tcp = format!("nfs://127.0.0.1:{port}/export?mountport={port}");
    refused(&tcp, &["refused"], 3);
    refused("nfs://no-such-host.invalid/export", &["cannot be resolved"], 3);
}

#[test]
fn a_file_set_larger_than_the_server_is_refused_before_the_first_byte() {
    let server = Served::with("nfs", &["--memory-max", "64MiB"]);
    let temp_dir = tempfile::tempdir().unwrap();
    let bundle = temp_dir.path().join("b");
    let more = ["--points", "2000", "--set", "profiles.quick.workload_scale=1"];
    let run = plimsoll(&short("nfs-v3", &server.url, &bundle, &more));
    run.check(3, &["are free there", "--profile quick"]);
    let cleaned = plimsoll(&["clean", &server.url]);
    assert_eq!(cleaned.code, Some(0), "{cleaned:?}");
}

#[test]
fn a_directory_of_somebody_else_is_not_written_to() {
    let Some(server) = ganesha(&[]) else { return };
    let letter = export_of(&server).join("plimsoll-files/letter.txt");
    std::fs::create_dir(letter.parent().unwrap()).unwrap();
    std::fs::write(&letter, "dear").unwrap();
    let temp_dir = tempfile::tempdir().unwrap();
    let bundle = temp_dir.path().join("b");
    let run = plimsoll(&short("nfs-v3", &server.url(), &bundle, &["--points", "50"]));
    run.check(2, &["plimsoll-files exists there and carries no .plimsoll"]);
    assert_eq!(std::fs::read(letter).unwrap(), b"dear");
}

/// Starts a command that writes a file set to the server on `export`, and presses Ctrl-C meanwhile.
fn interrupt_writing(export: &Path, arguments: &[&str]) -> Ended {
    let mut begun = command(arguments);
    let child = begun.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    wait_until("files are written", || export.join("plimsoll-files/dir00002").exists());
    signal(&child, rustix::process::Signal::INT);
    wait_for(child)
}

#[test]
fn ctrl_c_while_the_file_set_is_written_ends_with_4_and_resume_goes_on() {
    let Some(server) = ganesha(&[]) else { return };
    let (url, export) = (server.url(), export_of(&server));
    let prepare = ["prepare", "nfs-v3", url.as_str(), "--peak", "200"];
    interrupt_writing(&export, &prepare).check(4, &["is used again", "plimsoll clean"]);
    plimsoll(&["clean", &url]).check(0, &["removed"]);
    assert!(!export.join("plimsoll-files").exists());
    let temp_dir = tempfile::tempdir().unwrap();
    let bundle = temp_dir.path().join("b");
    let more = ["--points", "20", "--set", "profiles.quick.workload_scale=1"];
    let ended = interrupt_writing(&export, &short("nfs-v3", &url, &bundle, &more));
    ended.check(4, &["no load point was finished"]);
    assert_eq!(points_finished(&bundle), 0);
    let resumed = plimsoll(&["resume", bundle.to_str().unwrap()]);
    assert!(matches!(resumed.code, Some(0 | 1)), "{resumed:?}");
    assert_eq!(points_finished(&bundle), 1);
    assert_eq!(result(&bundle)["points"][0]["errors"], serde_json::json!({}));
}

/// Starts a run of one long point, injects `fault` in the middle of it, and waits.
#[track_caller]
pub fn in_mid_point(suite: &str, url: &str, fault: impl FnOnce()) -> Value {
    let temp_dir = tempfile::tempdir().unwrap();
    let bundle = temp_dir.path().join("b");
    let more = ["--points", "300", "--set", "profiles.quick.measure=4s"];
    let flags = [&more[..], &["--set", "profiles.quick.drain=6s"]].concat();
    let child = command(&short(suite, url, &bundle, &flags)).stdout(Stdio::null()).spawn().unwrap();
    let started = || {
        let journal = std::fs::read_to_string(bundle.join("journal.jsonl")).unwrap_or_default();
        journal.contains("point_started")
    };
    wait_until("the point runs", started);
    std::thread::sleep(Duration::from_millis(1_000));
    fault();
    let ended = wait_for(child);
    assert!(matches!(ended.code, Some(0 | 1)), "{ended:?}");
    assert_eq!(points_finished(&bundle), 1);
    result(&bundle)["points"][0].clone()
}

#[test]
fn connections_that_are_cut_in_mid_point_come_back_and_no_op_is_lost() {
    let server = Served::with("nfs", &[]);
    let mut proxy = CutProxy::start(server.address());
    let url = through(&server, proxy.address(), "tcp");
    let point = in_mid_point("nfs-v3", &url, || {
        proxy.go_down();
        std::thread::sleep(Duration::from_millis(300));
        proxy.come_back();
    });
    assert_eq!(point["errors"], serde_json::json!({}), "{point}");
    let slowest = point["response_ns"]["max"].as_f64().unwrap();
    assert!(slowest > 200e6, "the gap shows: {slowest} ns");
}

#[test]
fn a_server_that_is_silent_over_udp_is_asked_again_until_it_answers() {
    let server = Served::with("nfs", &[]);
    let calm = LossyConfig { seed: 1, to_server: FaultRates::NONE, to_client: FaultRates::NONE };
    let proxy = LossyProxy::start(server.address(), calm);
    let url = through(&server, proxy.address(), "udp");
    let point = in_mid_point("nfs-v3", &url, || {
        proxy.go_down();
        std::thread::sleep(Duration::from_millis(300));
        proxy.come_back();
    });
    assert_eq!(point["errors"], serde_json::json!({}), "{point}");
    assert!(point["retransmissions"].as_u64().unwrap() > 0, "{point}");
}

#[test]
fn a_server_that_restarts_with_other_files_answers_stale_and_it_is_counted() {
    let first = Served::with("nfs", &[]);
    let mut proxy = CutProxy::start(first.address());
    let url = through(&first, proxy.address(), "tcp");
    let mut second = None;
    let point = in_mid_point("nfs-v3", &url, || {
        proxy.go_down();
        drop(first);
        let fresh = Served::with("nfs", &[]);
        proxy.come_back_at(fresh.address());
        second = Some(fresh);
    });
    let errors = point["errors"].as_object().unwrap();
    // NFS3ERR_STALE (RFC 1813 §2.6).
    assert!(errors.get("status:70").and_then(Value::as_u64).unwrap_or(0) > 10, "{errors:?}");
}
