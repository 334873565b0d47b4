//! Are the instrument's figures true? Targets with known behaviour on real sockets, measured
//! through the command a user types.

#![allow(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

use std::ops::Range;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use plimsoll_model::result::{PointResult, RunResult, TimeSummary};
use plimsoll_testkit::clock::monotonic_ns;
use plimsoll_testkit::delay_server::{DelayConfig, DelayServer, Exchange, Waiting, after};
use plimsoll_testkit::peers;
use rustix::process::{Pid, Signal, kill_process};

use plimsoll_testkit::program::{CheckOutcome, one_is_right, wait_until};

/// Runs `plimsoll run web-url` and reads its result. Whether the run is valid is not checked here:
/// on a busy machine a run may rightly be refused, and its figures must be true all the same.
fn measure(url: &str, arguments: &[&str]) -> PointResult {
    let temp_dir = tempfile::tempdir().unwrap();
    measure_into(&temp_dir.path().join("run"), url, arguments)
}

fn measure_into(bundle: &Path, url: &str, arguments: &[&str]) -> PointResult {
    let output = Command::new(env!("CARGO_BIN_EXE_plimsoll"))
        .args([
            "run",
            "web-url",
            "--no-check",
            url,
            "--json",
            "--progress",
            "none",
            "--profile",
            "quick",
            "--out",
        ])
        .arg(bundle)
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
        completion: after(delay),
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

/// A point's figures, and how they differ from the truth.
fn evaluate(point: &PointResult, differs: impl IntoIterator<Item = String>) -> CheckOutcome {
    CheckOutcome::from_point(&serde_json::to_value(point).unwrap(), differs)
}

const OPEN_LOAD: [&str; 8] =
    ["--rate", "1000", "--for", "10s", "--set", "load.clients=100", "--set", "load.gaps=uniform"];
/// A pause of the machine can be a miss; an error of the instrument is a miss every time.
const TRIES: usize = 3;

#[test]
fn an_open_load_holds_its_rate_and_reports_the_delays_the_server_imposed() {
    // Beyond the p99 lie 100 ops: a pause of 100 ms is a miss.
    one_is_right(TRIES, || {
        let (point, misses) = compare_with_imposed_delays();
        evaluate(&point, misses)
    });
}

/// Least delay imposed.
const DELAY_MIN_US: u64 = 10_000;
/// A floor as high as the delays would pass anything.
const FLOOR_NS_MAX: u64 = DELAY_MIN_US * 1_000;

/// A point, and its wrong figures.
fn compare_with_imposed_delays() -> (PointResult, Vec<String>) {
    // The machine's own floor: a reply without delay, under the same load.
    let prompt = delay_server(|_| Duration::ZERO);
    let floor = response(&measure(&prompt.url(), &OPEN_LOAD));
    drop(prompt);

    // 10 to 40 ms, every percentile known.
    let server = delay_server(|index| Duration::from_micros(DELAY_MIN_US + index * 7_919 % 30_000));
    let point = measure(&server.url(), &OPEN_LOAD);
    let mut misses = Vec::new();
    let offered = point.offered_ops_per_s.unwrap();
    let achieved = point.achieved_ops_per_s.unwrap();
    if (achieved / offered - 1.0).abs() >= 0.005 {
        misses.push(format!("rate: achieved {achieved} of {offered}"));
    }
    let exchanges = server.exchanges();
    let sorted = |delay_ns: fn(&Exchange) -> u64| {
        let mut delays: Vec<u64> = exchanges.iter().map(delay_ns).collect();
        delays.sort_unstable();
        delays
    };
    let planned = sorted(|e| e.planned_ns - e.arrival_ns);
    let imposed = sorted(|e| e.sent_ns - e.arrival_ns);
    let observed = response(&point);
    for (name, measured, floor_ns, quantile) in [
        ("p50", observed.p50, floor.p50, 0.50),
        ("p95", observed.p95, floor.p95, 0.95),
        ("p99", observed.p99, floor.p99, 0.99),
    ] {
        let (measured_ns, floor_ns) = (measured.unwrap(), floor_ns.unwrap());
        // No reply left before its planned time. The server's own lateness and the round trip come
        // on top, as far as the machine has such a floor.
        let least_ns = at_quantile(&planned, quantile);
        let most_ns = at_quantile(&imposed, quantile);
        let allowed_ns =
            least_ns - tolerance_ns(least_ns)..=most_ns + tolerance_ns(most_ns) + floor_ns;
        if floor_ns > FLOOR_NS_MAX || !allowed_ns.contains(&measured_ns) {
            misses.push(format!(
                "{name}: measured {measured_ns}, allowed {allowed_ns:?}, floor {floor_ns}"
            ));
        }
    }
    (point, misses)
}

fn tolerance_ns(delay_ns: u64) -> u64 {
    (delay_ns / 50).max(50_000)
}

/// p99 of a run of `seconds` at 100 evenly spaced ops/s through a stop of `stop`: the ops due in
/// the stop wait from all of it down to nothing, and one in a hundred of all waits longer.
fn stopped_p99(seconds: f64, stop: Duration) -> f64 {
    let worst = 0.01 * seconds * 100.0;
    stop.as_secs_f64() - worst / 100.0
}

const STOPPED_LOAD: [&str; 6] = ["--rate", "100", "--for", "11s", "--set", "load.gaps=uniform"];
const STOP: Duration = Duration::from_millis(1_400);

#[test]
fn a_server_that_stands_still_shows_in_the_response_time_of_every_op_that_was_due() {
    one_is_right(TRIES, || {
        let server = delay_server(|_| Duration::from_millis(1));
        let url = server.url();
        let (point, stood_still) = thread::scope(|scope| {
            let run = scope.spawn(|| measure(&url, &STOPPED_LOAD));
            while server.exchanges().len() < 250 && !run.is_finished() {
                thread::sleep(Duration::from_millis(5));
            }
            let stood_still = server.freeze(STOP).recv().unwrap();
            (run.join().unwrap(), stood_still)
        });
        evaluate(&point, stop_that_is_not_visible(&point, &stood_still))
    });
}

#[test]
fn a_real_nginx_under_sigstop_shows_the_same() {
    let root = tempfile::tempdir().unwrap();
    std::fs::write(root.path().join("index.html"), "hello").unwrap();
    let Some(nginx) = peers::nginx(root.path(), &[]) else { return };
    let url = format!("{}index.html", nginx.url());
    one_is_right(TRIES, || {
        let temp_dir = tempfile::tempdir().unwrap();
        let bundle = temp_dir.path().join("run");
        let (point, stood_still) = thread::scope(|scope| {
            let run = scope.spawn(|| measure_into(&bundle, &url, &STOPPED_LOAD));
            let begun = bundle.join("intervals/point-01.hlog.partial");
            wait_until("the point has begun", || begun.exists() || run.is_finished());
            thread::sleep(Duration::from_millis(2_500));
            let stood_still = stop_for(&nginx.pids().unwrap(), STOP);
            (run.join().unwrap(), stood_still)
        });
        evaluate(&point, stop_that_is_not_visible(&point, &stood_still))
    });
}

/// Stops the processes and lets them go on; the real begin and end of the stop.
fn stop_for(pids: &[u32], stop: Duration) -> Range<u64> {
    let signal = |signal| {
        for pid in pids {
            kill_process(Pid::from_raw(pid.cast_signed()).unwrap(), signal).unwrap();
        }
        monotonic_ns()
    };
    let from_ns = signal(Signal::STOP);
    thread::sleep(stop);
    from_ns..signal(Signal::CONT)
}

/// How the figures differ from the stop. `stood_still` is on `CLOCK_MONOTONIC`: the real stop, not
/// the requested one.
fn stop_that_is_not_visible(point: &PointResult, stood_still: &Range<u64>) -> Option<String> {
    let stop = Duration::from_nanos(stood_still.end - stood_still.start);
    let expected_s = stopped_p99(point.seconds.unwrap(), stop);
    let p99_s = response(point).p99.unwrap() as f64 / 1e9;
    if (p99_s / expected_s - 1.0).abs() >= 0.05 {
        return Some(format!("p99 {p99_s} s, expected {expected_s} s of a stop of {stop:?}"));
    }
    // Nothing was left out: every op that came due is in the histogram.
    let n = response(point).n;
    let due = (point.offered_ops_per_s.unwrap() * point.seconds.unwrap()).round() as u64;
    (n != due).then(|| format!("{n} response times of {due} ops due"))
}
