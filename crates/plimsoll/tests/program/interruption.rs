//! Ctrl-C, and kill −9: no finished load point is lost.

use std::path::Path;
use std::process::{Child, Stdio};

use plimsoll_testkit::fault_server::{Fault, FaultServer};
use rustix::process::Signal;

use crate::support::{
    command, plimsoll, points_finished, result, short, signal, wait_for, wait_until,
};

const POINTS: [&str; 8] = [
    "--points",
    "100,110,120,130",
    "--set",
    "load.mode=open",
    "--set",
    "disclosure.tester=Ada",
    "--pacing",
    "coalesce",
];

fn start(url: &str, bundle: &Path) -> Child {
    command(&short("web-url", url, bundle, &POINTS))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

fn check_resumed(bundle: &Path) {
    let before = std::fs::read_to_string(bundle.join("journal.jsonl")).unwrap();
    let kept: Vec<&str> = before.lines().filter(|l| l.contains("point_finished")).collect();
    let resumed = plimsoll(&["resume", bundle.to_str().unwrap(), "--progress", "none"]);
    assert!(matches!(resumed.code, Some(0 | 1)), "{resumed:?}");
    let after = std::fs::read_to_string(bundle.join("journal.jsonl")).unwrap();
    for line in kept {
        assert!(after.contains(line), "a finished point was lost: {line}");
    }
    assert_eq!(points_finished(bundle), 4);
    let result = result(bundle);
    let requested: Vec<f64> = result["points"]
        .as_array()
        .unwrap()
        .iter()
        .map(|point| point["requested"].as_f64().unwrap())
        .collect();
    assert_eq!(requested, [100.0, 110.0, 120.0, 130.0]);
    plimsoll(&["resume", bundle.to_str().unwrap()]).check(2, &["has finished"]);
    // A kill between the last record and the manifest.
    for derived in ["manifest.json", "result.json", "report.html"] {
        std::fs::remove_file(bundle.join(derived)).unwrap();
    }
    let derived = plimsoll(&["resume", bundle.to_str().unwrap(), "--progress", "none"]);
    assert_eq!(derived.code, resumed.code, "{derived:?}");
    plimsoll(&["verify", bundle.to_str().unwrap()])
        .check(resumed.code.unwrap(), &["Every file is as the run left it."]);
}

/// Settings and statements of `disclosure.json` that a resumed run must keep.
fn disclosed(bundle: &Path) -> (String, String) {
    let text = std::fs::read_to_string(bundle.join("disclosure.json")).unwrap();
    let disclosure: serde_json::Value = serde_json::from_str(&text).unwrap();
    let setup = disclosure["setup"].as_array().unwrap();
    let pacing = setup.iter().find(|setting| setting["name"] == "pacing").unwrap();
    (pacing["value"].to_string(), disclosure["statements"].to_string())
}

#[test]
fn two_processes_do_not_write_one_bundle() {
    let place = tempfile::tempdir().unwrap();
    let bundle = place.path().join("b");
    let server = FaultServer::with_fixed_body(100, |_| Fault::None);
    let child = start(&server.url(), &bundle);
    wait_until("a point has finished", || points_finished(&bundle) >= 1);
    plimsoll(&["resume", bundle.to_str().unwrap()]).check(2, &["another plimsoll"]);
    signal(&child, Signal::INT);
    wait_for(child);
}

#[test]
fn ctrl_c_ends_with_4_and_a_bundle_that_can_be_resumed() {
    let place = tempfile::tempdir().unwrap();
    let bundle = place.path().join("b");
    let server = FaultServer::with_fixed_body(100, |_| Fault::None);
    let child = start(&server.url(), &bundle);
    wait_until("a point has finished", || points_finished(&bundle) >= 1);
    signal(&child, Signal::INT);
    let ended = wait_for(child);
    let advice = format!("plimsoll resume {}", bundle.display());
    ended.check(4, &["invalid", "report.html", &advice]);
    assert!(points_finished(&bundle) < 4, "{}", ended.err);
    assert!(bundle.join("report.html").exists() && bundle.join("manifest.json").exists());
    let before = disclosed(&bundle);
    assert!(before.0.contains("coalesce") && before.1.contains("Ada"), "{before:?}");
    check_resumed(&bundle);
    assert_eq!(disclosed(&bundle), before);
}

#[test]
fn kill_9_loses_no_finished_point() {
    let place = tempfile::tempdir().unwrap();
    let bundle = place.path().join("b");
    let server = FaultServer::with_fixed_body(100, |_| Fault::None);
    let mut child = start(&server.url(), &bundle);
    wait_until("two points have finished", || points_finished(&bundle) >= 2);
    signal(&child, Signal::KILL);
    child.wait().unwrap();
    assert!(points_finished(&bundle) < 4);
    check_resumed(&bundle);
}

#[test]
fn a_run_killed_before_it_began_says_to_start_again() {
    let place = tempfile::tempdir().unwrap();
    let bundle = place.path().join("b");
    let server = FaultServer::with_fixed_body(100, |_| Fault::None);
    let child = start(&server.url(), &bundle);
    wait_until("a point has finished", || points_finished(&bundle) >= 1);
    signal(&child, Signal::INT);
    wait_for(child);
    std::fs::write(bundle.join("journal.jsonl"), "{\"event\":\"run_st").unwrap();
    plimsoll(&["resume", bundle.to_str().unwrap()]).check(2, &["run again"]);
}
