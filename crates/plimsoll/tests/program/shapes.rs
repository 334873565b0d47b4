//! Loads that change during a run, and servers that recover from a pulse or do not.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use plimsoll_testkit::delay_server::{
    CompletionLaw, DelayConfig, DelayServer, Waiting, after, one_at_a_time, retrying,
};
use plimsoll_testkit::program::{command, plimsoll, points_finished, result, wait_for};
use serde_json::Value;

fn server(completion: Box<CompletionLaw>) -> DelayServer {
    DelayServer::start(DelayConfig { completion, body_bytes: 100, waiting: Waiting::Sleeping })
}

/// Arguments of a run of `web-url` with a shape.
fn arguments<'a>(url: &'a str, bundle: &'a Path, shape: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let out = bundle.to_str().unwrap();
    let all = ["run", "web-url", url, "--out", out, "--progress", "none", "--profile", "quick"];
    [&all, &["--warm-up", "500ms", "--no-check", "--shape", shape][..], more].concat()
}

fn run(url: &str, bundle: &Path, shape: &str, more: &[&str]) -> Value {
    let ended = plimsoll(&arguments(url, bundle, shape, more));
    assert!(matches!(ended.code, Some(0 | 1)), "{ended:?}");
    result(bundle)
}

fn texts<'v>(points: &'v [Value], key: &str) -> Vec<&'v str> {
    points.iter().map(|point| point["phase"][key].as_str().unwrap()).collect()
}

/// Requests that were due in a load point and ended.
fn due(point: &Value) -> u64 {
    let ops = point["ops"].as_object().unwrap().values();
    ops.map(|op| op["count"].as_u64().unwrap()).sum()
}

#[test]
fn each_phase_is_a_load_point_with_the_ops_that_were_due_in_it() {
    let server = server(after(|_| Duration::from_millis(2)));
    let temp_dir = tempfile::tempdir().unwrap();
    let bundle = temp_dir.path().join("b");
    let shape = "hold 40 for 2s, ramp to 120 in 2s, pulse 2x for 1s, hold 1500ms";
    let flags = ["--arrivals", "uniform", "--workers", "3"];
    let result = run(&server.url(), &bundle, shape, &flags);
    let points = result["points"].as_array().unwrap();
    assert_eq!(texts(points, "kind"), ["hold", "ramp", "pulse", "hold"]);
    assert_eq!(texts(points, "name")[1], "ramp 40..120");
    let steady: Vec<bool> =
        points.iter().map(|point| point["phase"]["is_steady"].as_bool().unwrap()).collect();
    assert_eq!(steady, [true, false, false, false], "the last follows a pulse");
    // Evenly spaced arrivals: the summed rate, to one op at each border.
    for (point, expected) in points.iter().zip([80, 160, 240, 180]) {
        assert!(due(point).abs_diff(expected) <= 1, "{} {expected}", due(point));
    }
    let all: u64 = points.iter().map(due).sum();
    let exchanges = server.exchanges().len() as u64;
    assert_eq!((exchanges, all), (20 + 660, 660), "and those of the warm-up");
    let requested: Vec<f64> = points
        .iter()
        .flat_map(|point| point["timeline"].as_array().unwrap())
        .filter_map(|second| second["requested"].as_f64())
        .collect();
    assert!(requested.contains(&240.0) && requested.contains(&120.0), "{requested:?}");
    assert_eq!(points_finished(&bundle), 4);
    assert_eq!(result["load_shape"], shape);
    let report = std::fs::read_to_string(bundle.join("report.html")).unwrap();
    assert!(report.contains("The load over time") && report.contains("steadiness not judged"));
    // A shape that is not whole is made again, as a whole.
    let journal = std::fs::read_to_string(bundle.join("journal.jsonl")).unwrap();
    let third = journal.match_indices("\"event\":\"point_finished\"").nth(2).unwrap().0;
    let cut = journal[..third].rfind('\n').unwrap() + 1;
    std::fs::write(bundle.join("journal.jsonl"), &journal[..cut]).unwrap();
    let resumed = plimsoll(&["resume", bundle.to_str().unwrap(), "--progress", "none"]);
    assert!(matches!(resumed.code, Some(0 | 1)), "{resumed:?}");
    assert_eq!(server.exchanges().len() as u64, 2 * exchanges);
    let again = plimsoll_testkit::program::result(&bundle);
    let again = again["points"].as_array().unwrap();
    assert_eq!(
        again.iter().map(due).collect::<Vec<_>>(),
        points.iter().map(due).collect::<Vec<_>>()
    );
}

#[test]
fn the_schedule_of_a_shape_does_not_depend_on_agents_and_clients_come_and_go() {
    let temp_dir = tempfile::tempdir().unwrap();
    let counts = |name: &str, more: &[&str]| {
        let server = server(after(|_| Duration::from_millis(2)));
        let shape = "ramp 0..100 in 2s, hold 1s";
        let result = run(&server.url(), &temp_dir.path().join(name), shape, more);
        result["points"].as_array().unwrap().iter().map(due).collect::<Vec<_>>()
    };
    let alone = counts("alone", &["--workers", "1"]);
    assert!(alone[0].abs_diff(100) < 50 && alone[1].abs_diff(100) < 50, "{alone:?}");
    let agents = ["--agents", "local", "--agents", "local", "--workers", "1"];
    assert_eq!(counts("agents", &agents), alone);
    let server = server(after(|_| Duration::from_millis(20)));
    let shape = "hold 2 for 2s, hold 8 for 2s, ramp to 0 in 2s";
    let bundle = temp_dir.path().join("clients");
    let result = run(&server.url(), &bundle, shape, &["--clients", "1"]);
    let rates: Vec<f64> = result["points"]
        .as_array()
        .unwrap()
        .iter()
        .map(|point| point["achieved_ops_per_s"].as_f64().unwrap())
        .collect();
    // A client sends 50 requests a second at most, and less where the host is busy.
    assert!(rates[0] <= 105.0 && rates[1] > 1.5 * rates[0] && rates[2] < rates[1], "{rates:?}");
    assert!(rates[1] <= 410.0, "{rates:?}");
}

/// What became of a server after a pulse of three times its load.
fn recovery(name: &'static str, dir: &Path) -> (DelayServer, std::process::Child) {
    let service = Duration::from_millis(10);
    let server = server(match name {
        "at once" => after(move |_| service),
        "slowly" => one_at_a_time(move |_| service),
        _ => retrying(service, Duration::from_millis(200), 3),
    });
    let shape = "hold 50 for 11s, pulse 3x for 2s, hold 14s";
    let (url, bundle) = (server.url(), dir.join(name));
    let flags = ["--timeout", "500ms", "--connections", "400", "--arrivals", "uniform"];
    let mut run = command(&arguments(&url, &bundle, shape, &flags));
    let run = run.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    (server, run)
}

/// What each of the servers became, by their names; the seconds until it had recovered.
fn recoveries() -> [(String, Option<u64>); 3] {
    let temp_dir = tempfile::tempdir().unwrap();
    let names = ["at once", "slowly", "never"];
    let running = names.map(|name| recovery(name, temp_dir.path()));
    let ended = running.map(|(server, run)| (server, wait_for(run)));
    assert!(ended.iter().all(|(_, run)| matches!(run.code, Some(0 | 1))));
    names.map(|name| {
        let recovery = &result(&temp_dir.path().join(name))["recovery"][0];
        eprintln!("{name}: {}", recovery["text"].as_str().unwrap());
        let after_s = recovery["recovered_after_ns"].as_u64().map(|ns| ns / 1_000_000_000);
        (recovery["outcome"].as_str().unwrap().to_owned(), after_s)
    })
}

#[test]
fn a_server_recovers_from_a_pulse_at_once_or_slowly_or_never() {
    // A healthy queue needs two seconds for the 100 requests that came too much. A machine that is
    // busy with other things disturbs a run, but not each time.
    let is_right = |all: &[(String, Option<u64>); 3]| {
        let outcomes = all.each_ref().map(|(outcome, _)| &outcome[..]);
        outcomes == ["recovered", "recovered", "not_recovered"]
            && all[0].1 <= Some(1)
            && all[1].1 >= Some(1)
    };
    assert!((0..3).any(|_| is_right(&recoveries())), "see above");
}

#[test]
fn flags_that_do_not_go_with_a_shape_are_refused_with_the_reason() {
    let temp_dir = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = temp_dir.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let falls = file("falls.csv", "seconds,load\n0,10\n5,-3\n");
    let hold = "hold 5 for 5s";
    let run = |suite: &str, flags: &[&str]| {
        let target = if suite.starts_with("nfs") { "builtin:" } else { "http://127.0.0.1:9/" };
        plimsoll(&[&["run", suite, target][..], flags].concat())
    };
    for (suite, flags, expected) in [
        ("web-url", &["--shape", hold, "-n", "9"][..], "--requests: it is as long as its phases"),
        ("web-url", &["--shape", hold, "--until", "p99+-5%"], "--until"),
        ("web-url", &["--shape", hold, "--hold", "9"], "kept open"),
        ("web-url", &["--shape", hold, "--points", "9"], "--points: its loads are"),
        ("nfs-v3", &["--shape", hold, "--peak", "9"], "--peak: its loads are"),
        ("web-url", &["--shape", hold, "--for", "9s"], "--shape log"),
        ("web-url", &["--shape", "ramp 5..-1 in 5s"], "falls below zero"),
        ("web-url", &["--shape", "hold 5 for 5s, hold"], "never ends"),
        ("web-url", &["--shape", &falls], "falls.csv:3: the load falls below zero"),
        ("web-url", &["--shape", "none.csv"], "cannot read the file"),
        ("web-url", &["--shape", "log"], "names no log"),
        ("web-url", &["--shape", "hold 5s", "--rate", "1,2"], "begins at one load"),
        ("nic", &["--shape", hold], "think times"),
    ] {
        let ended = run(suite, flags);
        assert_eq!(ended.code, Some(2), "{flags:?} {ended:?}");
        assert!(ended.err.contains(expected), "{flags:?} {}", ended.err);
    }
    for (verb, flags, expected) in [
        (
            "capacity",
            &["web-url", "builtin:", "--within", "p99<1s", "--shape", hold][..],
            "--shape",
        ),
        ("scale", &["web-url", "builtin:", "--over", "cores=1", "--shape", hold], "--shape"),
        ("recover", &["disk-mix", "builtin:"], "closed load"),
        ("recover", &["web-url", "builtin:", "--rate", "9"], "--rate"),
        ("recover", &["web-url", "builtin:", "--at", "1.5x"], "below 1"),
        ("recover", &["web-url", "builtin:", "--pulse", "0.5x"], "above 1"),
    ] {
        let ended = plimsoll(&[&[verb][..], flags].concat());
        assert_eq!(ended.code, Some(2), "{verb} {flags:?} {ended:?}");
        assert!(ended.err.contains(expected), "{verb} {flags:?} {}", ended.err);
    }
}
