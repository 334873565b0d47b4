//! The controller's histograms are the sum of the agents' own, by another program's arithmetic.

use std::path::Path;
use std::process::Command;

use plimsoll_model::bundle::IntervalLog;
use plimsoll_model::outcome::OpNames;
use plimsoll_testkit::peers::require_peer;
use plimsoll_testkit::program::{Served, plimsoll, short};

use crate::agents::{Place, Said, done, finished, flags};

const MERGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fleet/merge.py");
const NAMES: [&str; 3] = ["one", "two", "three"];

/// The kinds of ops of web-static.
fn kinds() -> OpNames {
    OpNames((0..4).map(|class| format!("class{class}")).collect())
}

/// Writes what an agent said of a load point as an interval log; its path.
fn log_of(place: &Place, name: &str, said: &Said) -> String {
    let mut log = IntervalLog::begin(Vec::new(), &kinds()).unwrap();
    for slice in &said.slices {
        log.write(&slice.unpack().unwrap()).unwrap();
    }
    place.write(name, log.finish().unwrap())
}

#[test]
fn histograms_of_a_run_are_bit_for_bit_the_sum_of_its_agents_own() {
    let Some(python) = require_peer("python3") else { return };
    let server = Served::with("web", &[]);
    let place = Place::new();
    let bundle = place.bundle();
    let agents = NAMES.map(|name| place.recorded(name, ""));
    let more = ["--points", "300,600", "--set", "profiles.quick.drain=20s"];
    let run = plimsoll(&short(
        "web-static",
        &server.url,
        &bundle,
        &[&more[..], &flags(&agents)].concat(),
    ));
    assert!(matches!(run.code, Some(0 | 1)), "{run:?}");
    let said = NAMES.map(|name| place.said(name));
    for (index, record) in finished(&bundle).iter().enumerate() {
        let logs: Vec<String> = NAMES
            .iter()
            .zip(&said)
            .map(|(name, said)| log_of(&place, &format!("{name}-{index}.hlog"), &said[index]))
            .collect();
        check_sum(&python, &bundle.join(format!("intervals/point-{:02}.hlog", index + 1)), &logs);
        let own = said.each_ref().map(|said| said[index].report.totals.done_in_window);
        assert_eq!(done(record), own);
    }
}

#[track_caller]
fn check_sum(python: &Path, whole: &Path, parts: &[String]) {
    let judged = Command::new(python).arg(MERGE).arg(whole).args(parts).output().unwrap();
    let said = String::from_utf8_lossy(&judged.stdout);
    let errors = String::from_utf8_lossy(&judged.stderr);
    assert!(judged.status.success() && said.contains("are equal"), "{said}{errors}");
}
