//! `plimsoll calibrate` from the command line to the certificate, in seconds: whether judgements
//! hold on a busy machine is not the question here.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use plimsoll_model::certificate::Certificate;
use plimsoll_model::disclosure::Disclosure;
use plimsoll_testkit::program::{command, short, signal, wait_for};
use plimsoll_testkit::skips::skip_always;
use rustix::process::Signal;

/// Cases of open loads over other protocols than that of the calibrated server.
const OPEN: [&str; 8] =
    ["http", "https", "http2", "https2", "http2-one-connection", "nfs", "nfs-v4.1", "llm"];

/// The program with state and temporary files below `temp_dir`.
fn calibrate(temp_dir: &Path, arguments: &[&str]) -> Command {
    let scratch = temp_dir.join("tmp");
    std::fs::create_dir_all(&scratch).unwrap();
    let mut command = command(&[&["calibrate", "--quick"], arguments].concat());
    command.env("XDG_STATE_HOME", temp_dir.join("state")).env("TMPDIR", scratch);
    command
}

fn kept(temp_dir: &Path) -> Vec<PathBuf> {
    let dir = temp_dir.join("state/plimsoll/certificates");
    let entries = std::fs::read_dir(dir).into_iter().flatten();
    entries.map(|entry| entry.unwrap().path()).collect()
}

fn temp_file_count(temp_dir: &Path) -> usize {
    std::fs::read_dir(temp_dir.join("tmp")).unwrap().count()
}

#[test]
fn a_certificate_is_printed_kept_and_named_by_the_next_run() {
    let temp_dir = tempfile::tempdir().unwrap();
    let out = temp_dir.path().join("bundles");
    let arguments = ["--scale", "0.05", "--json", "--out", out.to_str().unwrap()];
    let ended = calibrate(temp_dir.path(), &arguments).output().unwrap();
    let stderr = String::from_utf8_lossy(&ended.stderr);
    let certificate: Certificate = serde_json::from_slice(&ended.stdout).expect(&stderr);
    let expected = if certificate.all_held { 0 } else { 1 };
    assert_eq!(ended.status.code(), Some(expected), "{stderr}");
    let cases: Vec<String> = certificate.queues.iter().map(|case| case.label()).collect();
    assert_eq!(cases.len(), 25, "{cases:?}");
    assert!(cases[0] == "M/M/4 at 0.3" && cases[5] == "M/D/1 at 0.9", "{cases:?}");
    for protocol in OPEN {
        let expected = [
            format!("constant 1.00 ms over {protocol} at 0.01"),
            format!("M/D/1 over {protocol} at 0.6"),
        ];
        assert!(expected.iter().all(|case| cases.contains(case)), "{cases:?}");
    }
    assert!(cases[6].contains("read on a grid"), "{cases:?}");
    assert!(cases[21].contains("over smb") && cases[22].contains("M/M/4//6 over smb"), "{cases:?}");
    check_counts(&certificate);
    assert!(!certificate.punctual.probes.is_empty(), "{stderr}");
    check_done(&certificate, &stderr);
    for part in [
        "Processors: governor",
        "There and back",
        "M/M/4 at 90 %",
        "Closed loop",
        "Stall",
        "Kept as",
    ] {
        assert!(stderr.contains(part), "{part:?} is not in:\n{stderr}");
    }
    let kept = kept(temp_dir.path());
    let text = std::fs::read(kept.first().unwrap()).unwrap();
    assert_eq!(serde_json::from_slice::<Certificate>(&text).unwrap(), certificate);
    assert_eq!(temp_file_count(temp_dir.path()), 0, "temporary files");
    assert!(out.join("queue-1/journal.jsonl").exists() && out.join("stall.server.csv").exists());
    check_named_by_a_run(temp_dir.path(), &certificate);
}

#[test]
fn an_agents_host_calibrates_itself_and_its_certificate_is_kept_here() {
    let temp_dir = tempfile::tempdir().unwrap();
    // Two agents of one host make one certificate.
    let arguments =
        ["--scale", "0.01", "--protocol", "app", "--json", "--agents", "local,exec:env"];
    let ended = calibrate(temp_dir.path(), &arguments).output().unwrap();
    let stderr = String::from_utf8_lossy(&ended.stderr);
    let certificates: Vec<Certificate> = serde_json::from_slice(&ended.stdout).expect(&stderr);
    assert_eq!(certificates.len(), 1, "{stderr}");
    let expected = if certificates[0].all_held { 0 } else { 1 };
    assert_eq!(ended.status.code(), Some(expected), "{stderr}");
    assert!(stderr.contains("agent local: ") && stderr.contains("Kept as"), "{stderr}");
    let kept = kept(temp_dir.path());
    let text = std::fs::read(kept.first().unwrap()).unwrap();
    assert_eq!(serde_json::from_slice::<Certificate>(&text).unwrap(), certificates[0]);
    assert_eq!(temp_file_count(temp_dir.path()), 0, "temporary files");
}

/// Ops came due and replies were compared over each protocol, except where other programs had the
/// cores: a window of a twentieth of its length may be over before the first handshake.
fn check_done(certificate: &Certificate, stderr: &str) {
    let queues = &certificate.queues;
    let mut lacking: Vec<&str> = [&["app", "smb"], &OPEN[..]].concat();
    lacking.retain(|protocol| {
        let mut of = queues.iter().filter(|case| case.protocol == *protocol);
        !of.any(|case| case.ops_served > 0 && !case.readings.is_empty())
    });
    let due = queues.iter().all(|case| case.ops_due > 0);
    if due && lacking.is_empty() && certificate.closed.ops_per_s > 0.0 {
        return;
    }
    assert!(queues.iter().any(|case| !case.open_because.is_empty()), "{lacking:?}: {stderr}");
    skip_always("other programs had the cores for the whole of a window");
}

/// The client counts as due what the schedule has in the window, over any protocol.
fn check_counts(certificate: &Certificate) {
    for case in &certificate.queues {
        let scheduled = (case.protocol != "smb").then_some(case.ops_due);
        assert_eq!(case.ops_scheduled, scheduled, "{}", case.label());
    }
    let protocols = ["app", "http", "http over HTTP/2", "nfs", "smb", "llm"];
    assert_eq!(certificate.instrument.protocols, protocols);
}

fn check_named_by_a_run(temp_dir: &Path, certificate: &Certificate) {
    let bundle = temp_dir.join("run");
    let mut arguments = short("web-static", "builtin:", &bundle, &["--points", "100"]);
    arguments.extend(["--pacing", "coalesce"]);
    let mut run = command(&arguments);
    let ended = run.env("XDG_STATE_HOME", temp_dir.join("state")).output().unwrap();
    assert!(matches!(ended.status.code(), Some(0 | 1)), "{ended:?}");
    let text = std::fs::read(bundle.join("disclosure.json")).unwrap();
    let disclosure: Disclosure = serde_json::from_slice(&text).unwrap();
    let note = disclosure.certificate.unwrap();
    assert_eq!((note.all_held, note.workers), (certificate.all_held, 1));
    let report = std::fs::read_to_string(bundle.join("report.html")).unwrap();
    assert!(report.contains("latest certificate of the host"));
    assert_eq!(note.not_covered, ["pacing coalesce, certified auto"]);
    assert!(report.contains("pacing coalesce, certified auto"));
}

#[test]
fn ctrl_c_ends_with_4_and_leaves_neither_server_nor_file() {
    let temp_dir = tempfile::tempdir().unwrap();
    let mut child = calibrate(temp_dir.path(), &["--progress", "plain"])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let first = lines.next().unwrap().unwrap();
    assert!(first.contains("nobody waits"), "{first}");
    signal(&child, Signal::INT);
    let rest: Vec<String> = lines.map_while(Result::ok).collect();
    let ended = wait_for(child);
    assert_eq!(ended.code, Some(4), "{rest:?}");
    assert!(rest.iter().any(|line| line.contains("no certificate was made")), "{rest:?}");
    assert_eq!((temp_file_count(temp_dir.path()), kept(temp_dir.path()).len()), (0, 0));
}

#[test]
fn certificates_that_cannot_be_kept_are_printed_all_the_same() {
    let temp_dir = tempfile::tempdir().unwrap();
    let mut calibrate =
        calibrate(temp_dir.path(), &["--scale", "0.01", "--protocol", "app", "--progress", "none"]);
    let ended = calibrate.env("XDG_STATE_HOME", "/dev/null").output().unwrap();
    let stdout = String::from_utf8_lossy(&ended.stdout);
    assert!(matches!(ended.status.code(), Some(0 | 1)), "{ended:?}");
    assert!(stdout.contains("Calibration of plimsoll"), "{stdout}");
    assert!(stdout.contains("the certificate is not kept: /dev/null/plimsoll"), "{stdout}");
}

#[test]
fn an_occupied_place_for_the_bundles_is_refused_before_anything_runs() {
    let temp_dir = tempfile::tempdir().unwrap();
    let out = temp_dir.path().join("out");
    std::fs::create_dir(&out).unwrap();
    std::fs::write(out.join("mine"), "").unwrap();
    let ended = calibrate(temp_dir.path(), &["--out", out.to_str().unwrap()]).output().unwrap();
    assert_eq!(ended.status.code(), Some(2), "{ended:?}");
    assert!(String::from_utf8_lossy(&ended.stderr).contains("exists and is not empty"));
}
