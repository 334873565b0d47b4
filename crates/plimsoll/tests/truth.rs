//! Does the instrument tell the truth? Targets with known behaviour on real sockets, measured
//! through the command a user types.

#![allow(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use plimsoll_model::result::{PointResult, RunResult, TimeSummary};
use plimsoll_testkit::delay_server::{DelayConfig, DelayServer, Waiting, after};
use plimsoll_testkit::peers;

/// Runs `plimsoll run web-url` and reads its result. Whether the run is valid is not asked here:
/// on a busy machine a run may rightly be refused, and its figures must be true all the same.
fn measure(url: &str, arguments: &[&str]) -> PointResult {
    let bundle = tempfile::tempdir().unwrap();
    let out = bundle.path().join("run");
    let output = Command::new(env!("CARGO_BIN_EXE_plimsoll"))
        .args([
            "run",
            "web-url",
            url,
            "--json",
            "--progress",
            "none",
            "--profile",
            "quick",
            "--out",
        ])
        .arg(&out)
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(matches!(output.status.code(), Some(0 | 1)), "{:?}\n{stderr}", output.status);
    let result: RunResult = serde_json::from_slice(&output.stdout).expect(&stderr);
    result.points.into_iter().next().unwrap()
}

fn response(point: &PointResult) -> TimeSummary {
    point.response_ns.unwrap()
}

fn delay_server(delay: impl FnMut(u64) -> Duration + Send + 'static) -> DelayServer {
    DelayServer::start(DelayConfig {
        departure: after(delay),
        body_bytes: 100,
        waiting: Waiting::Sleeping,
    })
}

/// Value of the sorted list at a quantile, by the rule histograms use: the least value that at
/// least this share of the values does not exceed.
fn at_quantile(sorted: &[u64], quantile: f64) -> u64 {
    let rank = (quantile * sorted.len() as f64).ceil() as usize;
    sorted[rank.clamp(1, sorted.len()) - 1]
}

/// One measurement at a time: two on one small machine would measure each other.
fn alone() -> MutexGuard<'static, ()> {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner)
}

const OPEN_LOAD: [&str; 8] =
    ["--rate", "1000", "--for", "4s", "--set", "load.clients=100", "--set", "load.gaps=uniform"];

#[test]
fn an_open_load_holds_its_rate_and_reports_the_delays_the_server_imposed() {
    let _alone = alone();
    // A wrong instrument is wrong every time; a busy machine is not busy three times in a row.
    let mut misses = Vec::new();
    while let Err(miss) = compare_with_imposed_delays() {
        misses.push(miss);
        assert!(misses.len() < 3, "{misses:#?}");
    }
}

fn compare_with_imposed_delays() -> Result<(), String> {
    // The machine's own floor: a reply without delay, under the same load.
    let prompt = delay_server(|_| Duration::ZERO);
    let floor = response(&measure(&prompt.url(), &OPEN_LOAD));
    drop(prompt);

    // 10 to 40 ms, every percentile known.
    let server = delay_server(|index| Duration::from_micros(10_000 + index * 7_919 % 30_000));
    let point = measure(&server.url(), &OPEN_LOAD);
    let offered = point.offered_ops_per_s.unwrap();
    let achieved = point.achieved_ops_per_s.unwrap();
    if (achieved / offered - 1.0).abs() >= 0.005 {
        return Err(format!("rate: achieved {achieved} of {offered}"));
    }
    let mut imposed: Vec<u64> =
        server.exchanges().iter().map(|e| e.imposed().as_nanos() as u64).collect();
    imposed.sort_unstable();
    let seen = response(&point);
    for (name, measured, floor_ns, quantile) in [
        ("p50", seen.p50, floor.p50, 0.50),
        ("p95", seen.p95, floor.p95, 0.95),
        ("p99", seen.p99, floor.p99, 0.99),
    ] {
        let expected_ns = at_quantile(&imposed, quantile);
        let tolerance_ns = (expected_ns / 50).max(50_000) + floor_ns.unwrap();
        let measured_ns = measured.unwrap();
        if measured_ns.abs_diff(expected_ns) > tolerance_ns {
            return Err(format!(
                "{name}: measured {measured_ns}, imposed {expected_ns}, within {tolerance_ns}"
            ));
        }
    }
    Ok(())
}

/// p99 of a run of `seconds` at 100 evenly spaced ops/s through a stop of `stop`: the ops due in
/// the stop wait from all of it down to nothing, and one in a hundred of all waits longer.
fn stopped_p99(seconds: f64, stop: Duration) -> f64 {
    let worst = 0.01 * seconds * 100.0;
    stop.as_secs_f64() - worst / 100.0
}

const STOPPED_LOAD: [&str; 6] = ["--rate", "100", "--for", "11s", "--set", "load.gaps=uniform"];

#[test]
fn a_server_that_stands_still_shows_in_the_response_time_of_every_op_that_was_due() {
    let _alone = alone();
    let server = delay_server(|_| Duration::from_millis(1));
    let url = server.url();
    let stop = Duration::from_millis(1_400);
    let point = thread::scope(|scope| {
        let run = scope.spawn(|| measure(&url, &STOPPED_LOAD));
        while server.exchanges().len() < 250 && !run.is_finished() {
            thread::sleep(Duration::from_millis(5));
        }
        server.freeze(stop);
        run.join().unwrap()
    });
    assert_stop_is_visible(&point, stop);
}

#[test]
fn a_real_nginx_under_sigstop_shows_the_same() {
    let _alone = alone();
    let root = tempfile::tempdir().unwrap();
    std::fs::write(root.path().join("index.html"), "hello").unwrap();
    let Some(nginx) = peers::nginx(root.path(), &[]) else { return };
    let url = format!("{}index.html", nginx.url());
    let (point, stop) = thread::scope(|scope| {
        let run = scope.spawn(|| measure(&url, &STOPPED_LOAD));
        thread::sleep(Duration::from_millis(2_500));
        let stop = stop_for(&nginx.pids().unwrap(), Duration::from_millis(1_400));
        (run.join().unwrap(), stop)
    });
    assert_stop_is_visible(&point, stop);
}

/// Stops the processes and lets them go on; how long they really stood still.
fn stop_for(pids: &[u32], stop: Duration) -> Duration {
    let signal = |name: &str| {
        let ids = pids.iter().map(u32::to_string);
        assert!(Command::new("kill").arg(name).args(ids).status().unwrap().success());
    };
    signal("-STOP");
    let began = plimsoll_testkit::clock::monotonic_ns();
    thread::sleep(stop);
    signal("-CONT");
    Duration::from_nanos(plimsoll_testkit::clock::monotonic_ns() - began)
}

fn assert_stop_is_visible(point: &PointResult, stop: Duration) {
    let expected_s = stopped_p99(point.seconds.unwrap(), stop);
    let p99_s = response(point).p99.unwrap() as f64 / 1e9;
    assert!((p99_s / expected_s - 1.0).abs() < 0.05, "p99 {p99_s} s, expected {expected_s} s");
    // Nothing was left out: every op that came due is in the histogram.
    let n = response(point).n;
    let due = (point.offered_ops_per_s.unwrap() * point.seconds.unwrap()).round() as u64;
    assert_eq!(n, due);
}
