//! Ctrl-C, and kill −9: no finished load point is lost.

use std::path::Path;
use std::process::{Child, Stdio};

use plimsoll_testkit::fault_server::{Fault, FaultServer};
use rustix::process::Signal;
use serde_json::{Value, json};

use plimsoll_testkit::program::{
    command, plimsoll, points_finished, result, short, signal, wait_for, wait_until,
};

const POINTS: [&str; 10] = [
    "--points",
    "100,110,120,130",
    "--set",
    "load.mode=open",
    "--set",
    "disclosure.tester=Ada",
    "--pacing",
    "coalesce",
    "--priority",
    "normal",
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
    let disclosure: Value = serde_json::from_str(&text).unwrap();
    let setup = disclosure["setup"].as_array().unwrap();
    let pacing = setup.iter().find(|setting| setting["name"] == "pacing").unwrap();
    (pacing["value"].to_string(), disclosure["statements"].to_string())
}

fn journal(bundle: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(bundle.join("journal.jsonl")).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn write_journal(bundle: &Path, records: &[Value]) {
    let lines: String = records.iter().map(|record| format!("{record}\n")).collect();
    std::fs::write(bundle.join("journal.jsonl"), lines).unwrap();
}

/// Workers, pacing and priority of the last load point.
fn last_assigned(bundle: &Path) -> Value {
    let records = journal(bundle);
    let last = records.iter().rfind(|record| record["event"] == "point_started").unwrap();
    let of = &last["assignment"];
    json!([of["workers"], of["pacing"], of["priority"]])
}

/// A run that has at least one load point and was interrupted.
fn interrupted(url: &str, bundle: &Path) {
    let child = start(url, bundle);
    wait_until("a point has finished", || points_finished(bundle) >= 1);
    signal(&child, Signal::INT);
    wait_for(child);
}

#[test]
fn two_processes_do_not_write_one_bundle() {
    let temp_dir = tempfile::tempdir().unwrap();
    let bundle = temp_dir.path().join("b");
    let server = FaultServer::with_fixed_body(100, |_| Fault::None);
    let child = start(&server.url(), &bundle);
    wait_until("a point has finished", || points_finished(&bundle) >= 1);
    plimsoll(&["resume", bundle.to_str().unwrap()]).check(2, &["another plimsoll"]);
    signal(&child, Signal::INT);
    wait_for(child);
}

#[test]
fn ctrl_c_ends_with_4_and_a_bundle_that_can_be_resumed() {
    let temp_dir = tempfile::tempdir().unwrap();
    let bundle = temp_dir.path().join("b");
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
    assert_eq!(last_assigned(&bundle), json!([1, "coalesce", "normal"]));
}

#[test]
fn a_journal_that_does_not_say_all_that_was_asked_is_repeated_and_not_resumed() {
    let temp_dir = tempfile::tempdir().unwrap();
    let (bundle, again) = (temp_dir.path().join("b"), temp_dir.path().join("again"));
    let server = FaultServer::with_fixed_body(100, |_| Fault::None);
    interrupted(&server.url(), &bundle);
    let mut records = journal(&bundle);
    let mut options = records[0].as_object_mut().unwrap().remove("asked").unwrap();
    records[0]["version"] = "0.1.0".into();
    write_journal(&bundle, &records);
    let dir = bundle.to_str().unwrap();
    plimsoll(&["resume", dir]).check(2, &["begun by plimsoll 0.1.0", "--like"]);
    let url = server.url();
    let like = ["run", "web-url", &url, "--like", dir, "--out", again.to_str().unwrap()];
    let repeated = plimsoll(&[&like[..], &["--pacing", "coalesce"]].concat());
    assert!(matches!(repeated.code, Some(0 | 1)), "{repeated:?}");
    assert!(repeated.err.contains("the journal of plimsoll 0.1.0"), "{repeated:?}");
    assert_eq!(points_finished(&again), 4);
    options["workers"] = 2.into();
    records[0]["asked"] = options;
    write_journal(&bundle, &records);
    check_resumed(&bundle);
    assert_eq!(last_assigned(&bundle), json!([2, "coalesce", "normal"]));
}

#[test]
fn kill_9_loses_no_finished_point() {
    let temp_dir = tempfile::tempdir().unwrap();
    let bundle = temp_dir.path().join("b");
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
    let temp_dir = tempfile::tempdir().unwrap();
    let bundle = temp_dir.path().join("b");
    let server = FaultServer::with_fixed_body(100, |_| Fault::None);
    interrupted(&server.url(), &bundle);
    std::fs::write(bundle.join("journal.jsonl"), "{\"event\":\"run_st").unwrap();
    plimsoll(&["resume", bundle.to_str().unwrap()]).check(2, &["run again"]);
}
