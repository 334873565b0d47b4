//! Load points that are measured until a figure is precise.

use std::path::Path;

use serde_json::Value;

use plimsoll_testkit::program::{plimsoll, result, short};

use crate::listening::Listening;

const LOADS: [&str; 4] = ["--rate", "200,400", "--until", "p50+-30%"];

fn journal(bundle: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(bundle.join("journal.jsonl")).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Purpose and window in milliseconds of each finished load point.
fn windows(bundle: &Path) -> Vec<(String, u64)> {
    let records = journal(bundle).into_iter();
    let finished = records.filter(|record| record["event"] == "point_finished");
    let window = |record: Value| {
        let purpose = record["point"]["purpose"].as_str().unwrap().to_owned();
        (purpose, record["measured_ns"].as_u64().unwrap() / 1_000_000)
    };
    finished.map(window).collect()
}

/// Pilots come before each load point, and all its windows fit into ten usual ones of 300 ms.
fn check_windows(windows: &[(String, u64)]) {
    let points = windows.split_inclusive(|(purpose, _)| purpose == "ladder");
    assert_eq!(points.clone().count(), 2, "{windows:?}");
    for point in points {
        let (last, pilots) = point.split_last().unwrap();
        assert!(last.0 == "ladder" && !pilots.is_empty(), "{windows:?}");
        assert!(pilots.iter().all(|(purpose, _)| purpose == "pilot"), "{windows:?}");
        let whole: u64 = point.iter().map(|(_, length)| length).sum();
        assert!(last.1 >= 300 && whole <= 3_010, "{windows:?}");
    }
}

#[test]
fn pilots_find_the_window_of_each_load_point_and_a_resumed_run_uses_them_again() {
    let (server, temp_dir) = (Listening::start(), tempfile::tempdir().unwrap());
    let bundle = temp_dir.path().join("b");
    let run = plimsoll(&short("web-url", &server.url, &bundle, &LOADS));
    assert!(matches!(run.code, Some(0 | 1)), "{run:?}");
    let whole = windows(&bundle);
    check_windows(&whole);
    let points = result(&bundle)["points"].as_array().unwrap().clone();
    assert_eq!(points.len(), 2);
    for point in points {
        assert!(point["precision"].is_object(), "{}", point["precision"]);
    }
    assert!(result(&bundle)["probes"].as_array().unwrap().is_empty());
    let report = std::fs::read_to_string(bundle.join("report.html")).unwrap();
    assert!(report.contains("as long as p50±30% takes"), "the method's window is not ours");

    // As it is when the run is killed behind the last pilot.
    let records = journal(&bundle);
    let is_pilot = |record: &Value| record["point"]["purpose"] == "pilot";
    let last = records.iter().rposition(is_pilot).unwrap();
    let kept = records[..=last].iter().map(|record| format!("{record}\n"));
    std::fs::write(bundle.join("journal.jsonl"), kept.collect::<String>()).unwrap();
    for derived in ["manifest.json", "result.json", "report.html"] {
        std::fs::remove_file(bundle.join(derived)).unwrap();
    }
    let resumed = plimsoll(&["resume", bundle.to_str().unwrap(), "--progress", "none"]);
    assert!(matches!(resumed.code, Some(0 | 1)), "{resumed:?}");
    let again = windows(&bundle);
    check_windows(&again);
    let pilots = |windows: &[(String, u64)]| -> Vec<(String, u64)> {
        windows.iter().filter(|(purpose, _)| purpose == "pilot").cloned().collect()
    };
    assert_eq!(pilots(&again), pilots(&whole), "no pilot was made again");
    plimsoll(&["verify", bundle.to_str().unwrap()]).check(resumed.code.unwrap(), &[]);

    let like = temp_dir.path().join("like");
    let paths = ["--like", bundle.to_str().unwrap(), "--out", like.to_str().unwrap()];
    let flags = [&["run", "web-url", &server.url, "--progress", "none"][..], &paths].concat();
    let run = plimsoll(&flags);
    assert!(matches!(run.code, Some(0 | 1)), "{run:?}");
    check_windows(&windows(&like));
}

#[test]
fn what_cannot_be_measured_to_a_precision_is_refused() {
    let (server, temp_dir) = (Listening::start(), tempfile::tempdir().unwrap());
    let bundle = temp_dir.path().join("b");
    let refused = |flags: &[&str], part: &str| {
        let flags = [&["--rate", "100"], flags].concat();
        plimsoll(&short("web-url", &server.url, &bundle, &flags)).check(2, &[part]);
        assert!(!bundle.exists());
    };
    refused(&["--until", "p99±0%"], "no share above 0 % and below 100 %");
    refused(&["--until", "p98±5%"], "did you mean p99?");
    refused(&["--until", "p99±5%", "-n", "1000"], "cannot be used with");
    refused(&["--until", "tpot.p99±5%"], "no streams of output");
    refused(&["--until", "goodput±5%"], "nothing says what a good op is");
    let counted = ["--until", "p99±5%", "--set", "profiles.quick.ops=1000"];
    refused(&counted, "the window of this run is a number of ops");
}
