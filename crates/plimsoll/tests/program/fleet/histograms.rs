//! The controller's histograms are the sum of the agents' own, as another program adds them.

use std::path::Path;
use std::process::Command;

use plimsoll_model::bundle::IntervalLog;
use plimsoll_model::outcome::OpNames;
use plimsoll_testkit::peers::require_peer;
use plimsoll_testkit::program::{Served, plimsoll, short};

use super::agents::{RecordedPoint, RunDir, done, finished, flags};

const MERGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/program/fleet/merge.py");
const NAMES: [&str; 3] = ["one", "two", "three"];

/// The kinds of ops of web-static.
fn kinds() -> OpNames {
    OpNames((0..4).map(|class| format!("class{class}")).collect())
}

/// Writes an agent's report of a load point as an interval log; its path.
fn log_of(run_dir: &RunDir, name: &str, point: &RecordedPoint) -> String {
    let mut log = IntervalLog::begin(Vec::new(), &kinds()).unwrap();
    for slice in &point.slices {
        log.write(&slice.unpack().unwrap()).unwrap();
    }
    run_dir.write(name, log.finish().unwrap())
}

#[test]
fn histograms_of_a_run_are_bit_for_bit_the_sum_of_its_agents_own() {
    let Some(python) = require_peer("python3") else { return };
    let server = Served::with("web", &[]);
    let run_dir = RunDir::new();
    let bundle = run_dir.bundle();
    let agents = NAMES.map(|name| run_dir.recorded(name, ""));
    let more = ["--points", "300,600", "--set", "profiles.quick.drain=20s"];
    let run = plimsoll(&short(
        "web-static",
        &server.url,
        &bundle,
        &[&more[..], &flags(&agents)].concat(),
    ));
    assert!(matches!(run.code, Some(0 | 1)), "{run:?}");
    let all_points = NAMES.map(|name| run_dir.recorded_points(name));
    for (index, record) in finished(&bundle).iter().enumerate() {
        let logs: Vec<String> = NAMES
            .iter()
            .zip(&all_points)
            .map(|(name, own_points)| {
                log_of(&run_dir, &format!("{name}-{index}.hlog"), &own_points[index])
            })
            .collect();
        check_sum(&python, &bundle.join(format!("intervals/point-{:02}.hlog", index + 1)), &logs);
        let own =
            all_points.each_ref().map(|own_points| own_points[index].report.totals.done_in_window);
        assert_eq!(done(record), own);
    }
}

#[track_caller]
fn check_sum(python: &Path, whole: &Path, parts: &[String]) {
    let comparison = Command::new(python).arg(MERGE).arg(whole).args(parts).output().unwrap();
    let output = String::from_utf8_lossy(&comparison.stdout);
    let errors = String::from_utf8_lossy(&comparison.stderr);
    assert!(comparison.status.success() && output.contains("are equal"), "{output}{errors}");
}
