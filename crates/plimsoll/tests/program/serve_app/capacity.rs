//! `plimsoll capacity` against a queue of known law: the path from the limits to the answer. The
//! service is long, so that a busy machine does not matter. How near the answer comes to theory is
//! tested with simulated servers, and documented in `docs/capacity.md`.

use std::path::Path;
use std::process::Stdio;

use rustix::process::Signal;
use serde_json::Value;

use plimsoll_testkit::program::{
    Ended, Served, alone, command, plimsoll, points_finished, result, signal, wait_for, wait_until,
};

/// One server, 10 ms each: 100 ops/s at most.
const SERVER: [&str; 2] = ["--calibrated", "service=const:10ms,servers=1"];
const SERVICES_MOST: f64 = 100.0;
const SUITE: &str = include_str!("../../../../plimsoll-app/src/host/calibration.toml");
/// Short windows, and rules that a busy machine keeps.
const SETTINGS: [&str; 8] = [
    "load.clients=32",
    "profiles.quick.warm_up=100ms",
    "profiles.quick.measure=400ms",
    "profiles.quick.drain=5s",
    "rules.send_lag_p99_max=10s",
    "rules.generator_cpu_max_ratio=1",
    "rules.rate_tolerance_ratio=0.5",
    "disclosure.memory=16 GB",
];

fn arguments(dir: &Path, server: &Served, within: &str) -> Vec<String> {
    let suite = dir.join("open.toml");
    std::fs::write(&suite, SUITE).unwrap();
    let bundle = dir.join("run");
    let mut arguments: Vec<String> = [
        "capacity",
        suite.to_str().unwrap(),
        &server.url,
        "--within",
        within,
        "--profile",
        "quick",
    ]
    .map(str::to_owned)
    .into();
    let more = ["--progress", "plain", "--workers", "1", "--out", bundle.to_str().unwrap()];
    arguments.extend(more.map(str::to_owned));
    arguments.extend(SETTINGS.iter().flat_map(|s| ["--set".to_owned(), (*s).to_owned()]));
    arguments
}

/// A search with an answer in users. Each try waits for one think time first.
fn arguments_of_users(dir: &Path, server: &Served) -> Vec<String> {
    let mut arguments = arguments(dir, server, "p90<200ms,errors<1%");
    arguments.extend(["--think".to_owned(), "200ms".to_owned()]);
    arguments
}

/// A machine that stands still may keep no limit; a wrong program never finds a load.
const TRIES: usize = 3;

/// Whether that attempt found nothing, or another program disturbed it, and another one is left.
fn should_retry(bundle: &Path, attempt: usize) -> bool {
    let result = result(bundle);
    let is_disturbed = reasons(&result).iter().any(|rule| rule == "core_taken");
    (result["summary"]["capacity"].is_null() || is_disturbed) && attempt < TRIES
}

fn run(arguments: &[String]) -> Ended {
    plimsoll(&arguments.iter().map(String::as_str).collect::<Vec<_>>())
}

/// Exit code of a search that found its answer, by the kind of build.
const SUCCESS_CODE: i32 = if cfg!(debug_assertions) { 1 } else { 0 };

fn reasons(result: &Value) -> Vec<String> {
    let reasons = result["verdict"]["reasons"].as_array().unwrap().iter();
    let rules = reasons.map(|reason| reason["rule"].as_str().unwrap().to_owned());
    rules.filter(|rule| rule != "debug_build").collect()
}

fn check_capacity(bundle: &Path) {
    let result = result(bundle);
    assert_eq!(reasons(&result), [""; 0], "{}", result["verdict"]);
    let capacity = &result["summary"]["capacity"];
    let value = capacity["value"].as_f64().unwrap();
    assert!(value > 0.1 * SERVICES_MOST && value < 1.1 * SERVICES_MOST, "{capacity}");
    let re_runs = ["passed", "tries"].map(|name| capacity[name].as_u64().unwrap());
    assert!(re_runs == [5, 5] || re_runs == [5, 6], "{capacity}");
    assert_eq!(capacity["within"], "p90<200ms,errors<1%");
    assert_eq!(capacity["unit"], "ops/s");
    let users = capacity["users"].as_f64().unwrap();
    assert!(users > 0.2 * value && users < 0.5 * value, "200 ms of think time: {capacity}");
    let points = result["points"].as_array().unwrap();
    let loads: Vec<f64> = points.iter().map(|p| p["requested"].as_f64().unwrap()).collect();
    assert!(loads.is_sorted() && loads.len() >= 6, "{loads:?}");
    let tries = result["summary"]["capacity_search"]["tries"].as_array().unwrap();
    assert_eq!(tries.len(), points.len());
    let report = std::fs::read_to_string(bundle.join("report.html")).unwrap();
    let sentence = format!("5 of {} re-runs stayed within the limits", re_runs[1]);
    assert!(report.contains(&sentence), "{sentence}");
}

#[test]
fn limits_that_no_load_keeps_end_with_1_and_say_why() {
    let temp_dir = tempfile::tempdir().unwrap();
    let server = Served::with("app", &SERVER);
    let ended = run(&arguments(temp_dir.path(), &server, "mean<5ms"));
    ended.check(1, &["no load is within the limits: the lowest that was tried"]);
    let result = result(&temp_dir.path().join("run"));
    assert_eq!(result["summary"]["capacity"], Value::Null);
    assert_eq!(reasons(&result), ["no_capacity"]);
}

#[test]
fn a_search_that_was_interrupted_finds_the_highest_load_and_its_bundle_gives_it_again() {
    let _alone = alone();
    let server = Served::with("app", &SERVER);
    for attempt in 1..=TRIES {
        let temp_dir = tempfile::tempdir().unwrap();
        let bundle = temp_dir.path().join("run");
        let arguments = arguments_of_users(temp_dir.path(), &server);
        let mut begun = command(&arguments.iter().map(String::as_str).collect::<Vec<_>>());
        let child = begun.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        wait_until("points have finished", || points_finished(&bundle) >= 3);
        signal(&child, Signal::INT);
        wait_for(child).check(4, &["plimsoll resume"]);
        let before = points_finished(&bundle);
        let resumed = plimsoll(&["resume", bundle.to_str().unwrap(), "--progress", "plain"]);
        assert!(points_finished(&bundle) > before, "{resumed:?}");
        if should_retry(&bundle, attempt) {
            eprintln!("attempt {attempt}: {}", resumed.err);
            continue;
        }
        resumed.check(SUCCESS_CODE, &["capacity within p90<200ms", "; next: ", "re-run 5 of"]);
        check_capacity(&bundle);
        let before = std::fs::read(bundle.join("result.json")).unwrap();
        std::fs::remove_file(bundle.join("result.json")).unwrap();
        plimsoll(&["analyse", bundle.to_str().unwrap()])
            .check(SUCCESS_CODE, &["re-runs passed: 5 of"]);
        assert_eq!(std::fs::read(bundle.join("result.json")).unwrap(), before);
        return;
    }
}

#[test]
fn what_cannot_be_searched_is_refused_before_a_packet_is_sent() {
    let refused = |arguments: &[&str], parts: &[&str]| {
        let target = "http://127.0.0.1:9/";
        let all = [&["capacity"], arguments, &[target]].concat();
        plimsoll(&all).check(2, parts);
    };
    let within = ["--within", "p99<50ms"];
    refused(
        &["web-static", "--within", "p99<50"],
        &["\"50\" is no span of time", "for example 50ms"],
    );
    refused(&["web-static"], &["--within"]);
    for (within, message) in [
        ("p99<", "write one with its unit"),
        ("foo<1ms", "\"foo\" is no figure of a load that can be limited; "),
        ("errors<200%", "above 0 %, at most 100 %"),
    ] {
        refused(&["web-static", "--within", within], &[message]);
    }
    let points = [&["web-static", "--points", "5"], &within[..]].concat();
    refused(&points, &["--points: plimsoll capacity finds the load itself"]);
    let users = [&["web-static", "--users-per-client", "5"], &within[..]].concat();
    refused(&users, &["suite web-static has an open load", "write --think"]);
    refused(&[&["nic"], &within[..]].concat(), &["has a ladder of think times", "--think 25s"]);
}
