//! The search for the peak, from the first probe to a bundle that verifies; and in three parts.

use std::path::Path;
use std::process::{Child, Stdio};

use rustix::process::Signal;
use serde_json::Value;

use plimsoll_testkit::program::{
    alone, command, plimsoll, points_finished, result, signal, wait_for, wait_until,
};

/// A search on a tenth of a second a step. Few clients, and rules that a busy machine keeps: the
/// test covers the path from the probes to the ladder, not this machine.
const SETTINGS: [&str; 8] = [
    "profiles.quick.warm_up=50ms",
    "profiles.quick.measure=100ms",
    "profiles.quick.drain=5s",
    "profiles.quick.workload_scale=0.02",
    "load.clients=4",
    "rules.send_lag_p99_max=10s",
    "rules.generator_cpu_max_ratio=1",
    "rules.rate_tolerance_ratio=0.9",
];
/// Points of the ladder: the suite's.
const STEPS: usize = 10;
/// Tries of a step of the search where it may have been disturbed, at most.
const TRIES_OF_A_STEP: usize = 4;
/// A machine that stands still may sustain no load; a wrong program never finds a peak.
const TRIES: usize = 3;

fn arguments(bundle: &Path) -> Vec<&str> {
    let mut arguments = vec!["run", "web-static", "builtin:", "--peak", "auto"];
    arguments.extend(["--profile", "quick", "--progress", "none", "--workers", "1"]);
    arguments.extend(["--out", bundle.to_str().unwrap()]);
    arguments.extend(SETTINGS.iter().flat_map(|setting| ["--set", setting]));
    arguments
}

/// The records of a bundle's journal; a line that is still being written is none.
fn journal(bundle: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(bundle.join("journal.jsonl")).unwrap_or_default();
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

fn of_event<'j>(journal: &'j [Value], event: &str) -> Vec<&'j Value> {
    journal.iter().filter(|record| record["event"] == event).collect()
}

fn has(bundle: &Path, event: &str) -> bool {
    !of_event(&journal(bundle), event).is_empty()
}

fn points(result: &Value, of: &str) -> Vec<Value> {
    result[of].as_array().unwrap().clone()
}

fn requested(points: &[Value]) -> Vec<f64> {
    points.iter().map(|point| point["requested"].as_f64().unwrap()).collect()
}

/// Ops that came due within the measurement, whenever they were answered: where the machine stands
/// still for a tenth of a second, none is answered within it.
fn ops_done(point: &Value) -> u64 {
    let ops = point["ops"].as_object().unwrap().values();
    ops.map(|op| op["count"].as_u64().unwrap()).sum()
}

/// Each point was begun and finished with one load, under a number of its own; no load of the
/// ladder was run twice, and none of the search more often than a doubtful one is repeated.
fn check_nothing_twice(journal: &[Value]) {
    let finished = of_event(journal, "point_finished");
    let numbers: Vec<u64> =
        finished.iter().map(|record| record["point"]["ordinal"].as_u64().unwrap()).collect();
    assert_eq!(numbers, (1..=finished.len() as u64).collect::<Vec<_>>());
    for started in of_event(journal, "point_started") {
        let begun = &started["assignment"];
        let number = begun["point"]["ordinal"].as_u64().unwrap() as usize;
        let ended = finished[number - 1];
        assert_eq!((&begun["point"], &begun["load"]), (&ended["point"], &ended["load"]));
    }
    for (at, record) in finished.iter().enumerate() {
        let same = |other: &&&Value| {
            other["point"]["purpose"] == record["point"]["purpose"]
                && other["load"] == record["load"]
        };
        let ladder = record["point"]["purpose"] == "ladder";
        let most = if ladder { 1 } else { TRIES_OF_A_STEP };
        let times = finished.iter().filter(same).count();
        assert!(times <= most, "point {} was run {times} times", at + 1);
    }
    let closed = finished.iter().filter(|record| record["load"]["mode"] == "closed");
    assert_eq!(closed.count(), 1, "all clients at once, at the search's beginning only");
    assert_eq!(of_event(journal, "peak_found").len(), 1);
    assert_eq!(of_event(journal, "ladder_planned").len(), 1);
}

/// The bundle of a search that found a peak: its probes, ten points up to that peak, a summary
/// that names it.
fn check_peak(bundle: &Path) {
    let journal = journal(bundle);
    check_nothing_twice(&journal);
    let result = result(bundle);
    let peak = of_event(&journal, "peak_found")[0]["peak"].as_f64().unwrap();

    let probes = points(&result, "probes");
    assert!(probes.len() >= 3, "all clients, a probe and its verification: {}", probes.len());
    assert_eq!(requested(&probes).first(), Some(&4.0), "the clients of the first probe");
    assert_eq!(requested(&probes).last(), Some(&peak), "the claim is verified last");

    let ladder = points(&result, "points");
    let highest = if peak >= 100.0 { peak.floor() } else { peak };
    let evenly: Vec<f64> = (1..=STEPS).map(|k| highest * k as f64 / STEPS as f64).collect();
    assert_eq!(ladder.len(), STEPS);
    for (actual, expected) in requested(&ladder).into_iter().zip(evenly) {
        assert!((actual - expected).abs() < 1e-6 * expected, "{actual} instead of {expected}");
    }
    for point in probes.iter().chain(&ladder) {
        assert!(ops_done(point) > 0, "{point}");
        assert_eq!(point["errors"], serde_json::json!({}), "{point}");
    }
    assert_eq!(points_finished(bundle), probes.len() + STEPS);

    let summary = &result["summary"];
    let peak_search = summary["peak_search"].as_str().unwrap();
    assert!(
        peak_search.contains("all clients at once reached") && peak_search.contains("was held"),
        "{peak_search}"
    );
    assert!(summary["peak_ops_per_s"].as_f64().unwrap() > 0.0, "{summary}");
}

fn check_verifies(bundle: &Path, code: Option<i32>) {
    plimsoll(&["verify", bundle.to_str().unwrap()]).check(
        code.unwrap(),
        &["Every file is as the run left it.", "all clients at once reached"],
    );
}

#[test]
fn a_peak_is_searched_and_ten_points_lead_up_to_it() {
    let _alone = alone();
    let temp_dir = tempfile::tempdir().unwrap();
    for attempt in 1..=TRIES {
        let bundle = temp_dir.path().join(attempt.to_string());
        let run = plimsoll(&arguments(&bundle));
        assert!(matches!(run.code, Some(0 | 1)), "{run:?}");
        if !has(&bundle, "peak_found") && attempt < TRIES {
            eprintln!("attempt {attempt}: no load was held: {}", run.out);
            continue;
        }
        check_peak(&bundle);
        assert!(run.out.contains("all clients at once reached"), "{run:?}");
        check_verifies(&bundle, run.code);
        return;
    }
}

fn start(arguments: &[&str]) -> Child {
    command(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Ctrl-C once that many points have finished; the lines of those that had.
fn interrupt(child: Child, bundle: &Path, after: usize) -> Vec<String> {
    wait_until("points have finished", || points_finished(bundle) >= after);
    signal(&child, Signal::INT);
    wait_for(child).check(4, &["invalid", "plimsoll resume"]);
    let text = std::fs::read_to_string(bundle.join("journal.jsonl")).unwrap();
    text.lines().filter(|line| line.contains("\"point_finished\"")).map(str::to_owned).collect()
}

/// Interrupts within the search, then within the ladder, and lets it end; `None` when this machine
/// was too slow to stop the search where it should, or sustained no load.
fn in_three_parts(bundle: &Path) -> Option<()> {
    let mut kept = interrupt(start(&arguments(bundle)), bundle, 2);
    if has(bundle, "peak_found") || has(bundle, "aborted") {
        return None;
    }
    assert_eq!(points(&result(bundle), "probes").len(), kept.len());
    assert_eq!(points(&result(bundle), "points").len(), 0);

    let resume = ["resume", bundle.to_str().unwrap(), "--progress", "none"];
    let resumed = start(&resume);
    let stopped = || has(bundle, "ladder_planned") || has(bundle, "aborted");
    wait_until("the search has ended", stopped);
    if has(bundle, "aborted") {
        wait_for(resumed);
        return None;
    }
    let so_far = points_finished(bundle);
    kept.extend(interrupt(resumed, bundle, so_far + 1));
    if has(bundle, "run_finished") {
        return None;
    }

    let resumed = plimsoll(&resume);
    assert!(matches!(resumed.code, Some(0 | 1)), "{resumed:?}");
    let text = std::fs::read_to_string(bundle.join("journal.jsonl")).unwrap();
    for line in kept {
        assert!(text.contains(&line), "a finished point was lost: {line}");
    }
    check_peak(bundle);
    check_verifies(bundle, resumed.code);
    Some(())
}

#[test]
fn a_search_that_is_interrupted_goes_on_where_it_was() {
    let _alone = alone();
    let temp_dir = tempfile::tempdir().unwrap();
    let bundle = |attempt: usize| temp_dir.path().join(attempt.to_string());
    let done = (1..=TRIES).any(|attempt| in_three_parts(&bundle(attempt)).is_some());
    assert!(done, "in {TRIES} attempts none could be interrupted where it should");
}
