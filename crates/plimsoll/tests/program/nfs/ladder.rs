//! Whole runs: every version and transport, on the reference server and on a real one.

use plimsoll_testkit::nfs_peers::{export_of, ganesha};
use serde_json::Value;

use super::udp_url;
use plimsoll_testkit::program::{CheckOutcome, Served, one_is_right, plimsoll, result, short};

/// Percentage points by which an op's share may differ from the method's in 1,800 ops or more. The
/// suites' own rule is one point, of the far more ops of a real load point.
const MIX_POINTS_MAX: f64 = 1.5;
/// The same in standard deviations, where a busy machine does not sustain the load.
const MIX_DEVIATIONS_MAX: f64 = 4.0;

/// Runs two short points and checks everything that does not depend on a quiet machine.
#[track_caller]
pub fn check_run(suite: &str, target: &str, more: &[&str]) -> Value {
    let temp_dir = tempfile::tempdir().unwrap();
    let bundle = temp_dir.path().join("b");
    // A datagram lost at the end is sent again after a second; a client with all replies waits for
    // none.
    let phases = ["--set", "profiles.quick.measure=1500ms", "--set", "profiles.quick.drain=3s"];
    let flags = [&["--points", "500,1000,2000"], &phases[..], more].concat();
    let run = plimsoll(&short(suite, target, &bundle, &flags));
    assert!(matches!(run.code, Some(0 | 1)), "{run:?}");
    let result = result(&bundle);
    let points = result["points"].as_array().unwrap();
    assert_eq!(points.len(), 3);
    for point in points {
        assert_eq!(point["errors"], serde_json::json!({}), "{point}");
    }
    check_mix(suite, points);
    // On a machine too busy for three points that count there is none, and the verdict says so.
    if points.iter().all(|point| point["valid"] == true && point["not_counted"].is_null()) {
        let overall = &result["summary"]["overall_response_ms"];
        assert!(overall["origin"].as_f64().unwrap() > 0.0, "{overall}");
    }
    result
}

#[track_caller]
fn check_mix(suite: &str, points: &[Value]) {
    let shipped = plimsoll(&["suites", "show", suite]).out;
    let table: toml::Table = shipped.parse().unwrap();
    let mix = table["workload"]["mix"].as_table().unwrap();
    let weight = |value: &toml::Value| value.as_float().or(value.as_integer().map(|n| n as f64));
    let total: f64 = mix.values().filter_map(weight).sum();
    let ops = |point: &Value| point["ops"].as_object().unwrap().clone();
    // By the work done in the window: on a busy machine ops wait so long to be sent that those due
    // in it are others.
    let done = |point: &Value| point["achieved_ops_per_s"].as_f64().unwrap();
    let all: f64 = points.iter().map(done).sum();
    let seconds = |point: &Value| point["seconds"].as_f64().unwrap();
    let sum = |rate: &dyn Fn(&Value) -> f64| -> f64 {
        points.iter().map(|point| rate(point) * seconds(point)).sum()
    };
    let ops_done = sum(&done);
    let sustained = ops_done > 0.9 * sum(&|point| point["requested"].as_f64().unwrap());
    // With an OPEN before them, READs and WRITEs wait longer than other ops.
    let are_opened = points.iter().any(|point| point["compound_calls"].is_object());
    if are_opened && !sustained {
        return;
    }
    for (name, value) in mix {
        let expected = weight(value).unwrap() / total * 100.0;
        let share = |op: &Value| op["share_ratio"].as_f64().unwrap();
        let of_name = |point| ops(point).get(name).map_or(0.0, share) * done(point);
        let got = points.iter().map(of_name).sum::<f64>() / all * 100.0;
        let deviation = (expected * (100.0 - expected) / ops_done).sqrt();
        let chance = if sustained && !are_opened { 0.0 } else { MIX_DEVIATIONS_MAX * deviation };
        let most = MIX_POINTS_MAX.max(chance);
        assert!((got - expected).abs() <= most, "{name}: {got:.2} % instead of {expected:.2} %");
    }
}

#[test]
fn the_reference_server_is_measured_over_tcp_with_version_3() {
    let result = check_run("nfs-v3", "builtin:", &[]);
    let software = &result["disclosure"]["targets"][0]["software"];
    assert!(software.as_str().unwrap().contains("plimsoll serve nfs"), "{software}");
    // Two points and a search that was left out are named, and so is the smaller file set.
    let deviations = result["departures"].to_string();
    assert!(deviations.contains("MiB of files per op/s"), "{deviations}");
    assert!(deviations.contains("transport: tcp; the method has udp"), "{deviations}");
}

#[test]
fn the_reference_server_is_measured_over_udp_with_version_3() {
    let server = Served::with("nfs", &[]);
    check_run("nfs-v3", &udp_url(&server), &[]);
}

#[test]
fn the_reference_server_is_measured_over_tcp_with_version_2() {
    check_run("nfs-v2", "builtin:", &[]);
}

#[test]
fn the_reference_server_is_measured_over_udp_with_version_2() {
    check_run("nfs-v2", "builtin:", &["--set", "workload.transport=udp"]);
}

#[test]
fn the_mix_of_2008_runs_on_a_real_ganesha_and_clean_leaves_nothing() {
    let Some(server) = ganesha(&[]) else { return };
    let export = export_of(&server);
    check_run("nfs-v3-2008", &server.url(), &[]);
    let marker = export.join("plimsoll-files/.plimsoll");
    assert!(marker.exists(), "the set lies below our marker");
    plimsoll(&["clean", &server.url()]).check(0, &["removed"]);
    assert_eq!(std::fs::read_dir(export).unwrap().count(), 0, "clean leaves nothing");
}

#[test]
fn a_real_ganesha_is_measured_over_tcp_and_udp() {
    if plimsoll_testkit::peers::require_peer("ganesha.nfsd").is_none() {
        return;
    }
    let result = check_run("nfs-v3", "managed:ganesha", &[]);
    let software = result["disclosure"]["targets"][0]["software"].as_str().unwrap().to_owned();
    assert!(software.to_lowercase().contains("ganesha"), "{software}");
    check_run("nfs-v3", "managed:ganesha", &["--set", "workload.transport=udp"]);
}

#[test]
fn several_exports_share_the_load() {
    let (one, two) = (Served::with("nfs", &[]), Served::with("nfs", &[]));
    let temp_dir = tempfile::tempdir().unwrap();
    let bundle = temp_dir.path().join("b");
    let more = [two.url.as_str(), "--points", "500"];
    let run = plimsoll(&short("nfs-v3", &one.url, &bundle, &more));
    assert!(matches!(run.code, Some(0 | 1)), "{run:?}");
    let result = result(&bundle);
    assert_eq!(result["targets"].as_array().unwrap().len(), 2);
    assert_eq!(result["points"][0]["errors"], serde_json::json!({}));
}

/// Share of the files in percent by size in KiB (the method's table).
const SIZE_SHARES: [(u64, f64); 10] = [
    (1, 33.0),
    (2, 21.0),
    (4, 13.0),
    (8, 10.0),
    (16, 8.0),
    (32, 5.0),
    (64, 4.0),
    (128, 3.0),
    (256, 2.0),
    (1024, 1.0),
];

#[test]
fn the_file_set_on_disk_has_the_methods_sizes() {
    let Some(server) = ganesha(&[]) else { return };
    let peak = 20.0;
    plimsoll(&["prepare", "nfs-v3", &server.url(), "--peak", "20"]).check(0, &["complete"]);
    let mut sizes = Vec::new();
    for dir in std::fs::read_dir(export_of(&server).join("plimsoll-files")).unwrap() {
        let dir = dir.unwrap().path();
        for entry in std::fs::read_dir(&dir).into_iter().flatten() {
            let entry = entry.unwrap();
            if entry.file_name().to_string_lossy().starts_with("file") {
                sizes.push(entry.metadata().unwrap().len());
            }
        }
    }
    let total: u64 = sizes.iter().sum();
    let expected = peak * 10.0 * 1024.0 * 1024.0;
    assert!((total as f64 / expected - 1.0).abs() < 0.005, "{total} bytes instead of {expected}");
    for (kib, share) in SIZE_SHARES {
        let count = sizes.iter().filter(|size| **size == kib * 1024).count();
        let got = count as f64 * 100.0 / sizes.len() as f64;
        assert!((got - share).abs() < 0.1, "{kib} KiB: {got} % instead of {share} %");
    }
}

#[test]
fn a_ladder_is_fitted_to_what_the_server_has_room_for() {
    one_is_right(3, || {
        let peak = peak_of_fitted_ladder();
        // On a busy machine a pause may end the search before the room does.
        let ended_by = peak["held_back"].as_str().unwrap_or_default();
        let is_room = ended_by.starts_with("limited by room for files: ")
            && peak["bound"] == "at_least"
            && peak["peak"].as_f64() > Some(50.0);
        if is_room { CheckOutcome::Right } else { CheckOutcome::Wrong(peak.to_string()) }
    });
}

/// Runs a ladder on a server with little room: the journal's record of its peak.
#[track_caller]
fn peak_of_fitted_ladder() -> Value {
    // A MiB of files for each op/s: with what is left free, room for little more than a hundred.
    let server = Served::with("nfs", &["--memory-max", "200MiB"]);
    let temp_dir = tempfile::tempdir().unwrap();
    let bundle = temp_dir.path().join("b");
    let settings = [
        "profiles.quick.workload_scale=0.1",
        "profiles.quick.drain=3s",
        "rules.send_lag_p99_max=10s",
        "rules.rate_tolerance_ratio=0.9",
    ];
    let flags: Vec<&str> = settings.iter().flat_map(|setting| ["--set", setting]).collect();
    let flags = [&["--peak", "auto", "--steps", "3"], &flags[..]].concat();
    let run = plimsoll(&short("nfs-v2", &server.url, &bundle, &flags));
    assert!(matches!(run.code, Some(0 | 1)), "{run:?}");
    let result = result(&bundle);
    let points = result["points"].as_array().unwrap();
    let highest = points.last().unwrap()["requested"].as_f64().unwrap();
    assert!(highest < 200.0, "{highest}");
    assert_eq!(points.len(), 3);
    for point in points {
        assert_eq!(point["errors"], serde_json::json!({}), "{point}");
    }
    // The text of the search; on a busy machine a point of the ladder may have another limit.
    let journal = std::fs::read_to_string(bundle.join("journal.jsonl")).unwrap();
    let line = journal.lines().find(|line| line.contains("\"peak_found\"")).unwrap();
    serde_json::from_str(line).unwrap()
}
