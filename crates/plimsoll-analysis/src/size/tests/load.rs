//! Loads in users and bytes per second.

use plimsoll_model::result::{RunResult, SuiteSummary};
use plimsoll_model::suite::Metric;

use super::*;
use crate::size::load::size_of_load;

const THINKS: &str = "[load]\nmode = \"closed\"\nthink.mean = \"2s\"\n";
const IDLE: &str = "[load]\nmode = \"closed\"\nthink.mean = \"0s\"\n";
const NO_USERS: &str = "[origins.ours]\n\"generator.users_per_client\" = \"nobody knows\"\n";

fn run_of(metric: Metric, suite: &str) -> RunInput {
    let mut result = RunResult::default();
    let name = "mine".to_owned();
    result.suite = Some(SuiteSummary { name, metric, ..SuiteSummary::default() });
    RunInput { bundle: "run".to_owned(), result, suite: suite.parse().unwrap() }
}

/// 50 µs of one core for an op of 4 KiB, 500 ops in an iteration.
fn sessions() -> Vec<Measured> {
    let mut points = Law::plain(1.0, 50.0).low_points();
    for point in &mut points {
        point.iterations_per_s = Some(point.ops_per_s / 500.0);
        point.bytes_per_s = Some(point.ops_per_s * 4_096.0);
    }
    points
}

fn request(think_s: Option<u64>, users_per_client: Option<f64>) -> SizeRequest {
    let think = think_s.map(Nanos::from_secs);
    SizeRequest { think, users_per_client, ..request_for(0.0, None) }
}

fn users_on(points: &[Measured], suite: &str, request: SizeRequest) -> Result<Sizing, LoadError> {
    size_of_load(&run_of(Metric::Ops, suite), points, RequestedLoad::Users(20_000.0), request)
}

fn mean_s(sizing: &Sizing) -> f64 {
    sizing.response[0].ns.value / 1e9
}

#[test]
fn users_with_a_think_time_are_a_load_by_the_interactive_law() {
    let points = Law::plain(1.0, 50.0).low_points();
    for (think_s, suite) in [(Some(10), ""), (Some(10), IDLE), (None, THINKS)] {
        let sizing = users_on(&points, suite, request(think_s, None)).unwrap();
        let pause_s = think_s.map_or(2.0, |think_s| think_s as f64);
        let load = sizing.asked.load_ops_per_s;
        assert!(near(load, 20_000.0 / (pause_s + mean_s(&sizing)), 1e-5), "{load}");
        assert!(near(sizing.users.unwrap(), 20_000.0, 1e-5), "{sizing:?}");
        assert_eq!(sizing.asked.users, Some(20_000.0));
    }
    // 5 users to a client that thinks 2 s.
    let sizing = users_on(&points, THINKS, request(None, Some(5.0))).unwrap();
    assert!(near(sizing.asked.load_ops_per_s, 4_000.0 / (2.0 + mean_s(&sizing)), 1e-5));
    assert!(near(sizing.users.unwrap(), 20_000.0, 1e-5));
}

/// The response time is a part of the cycle that counts, and depends on the load.
#[test]
fn clients_that_hardly_pause_are_fewer_ops_than_their_pause_alone_allows() {
    let points = Law::plain(1.0, 50.0).low_points();
    let suite = "[load]\nmode = \"closed\"\nthink.mean = \"200us\"\n";
    let load = RequestedLoad::Users(3.0);
    let sizing =
        size_of_load(&run_of(Metric::Ops, suite), &points, load, request(None, None)).unwrap();
    let cycle_s = 200e-6 + mean_s(&sizing);
    assert!(mean_s(&sizing) > 150e-6, "{sizing:?}");
    assert!(near(sizing.asked.load_ops_per_s, 3.0 / cycle_s, 1e-5), "{sizing:?}");
}

#[test]
fn a_think_time_before_a_session_is_divided_among_its_ops() {
    let sizing = users_on(&sessions(), THINKS, request(None, Some(400.0))).unwrap();
    // 50 clients, 2 s before 500 ops.
    let load = sizing.asked.load_ops_per_s;
    assert!(near(load, 50.0 / (0.004 + mean_s(&sizing)), 1e-5), "{sizing:?}");
    assert!(near(sizing.users.unwrap(), 20_000.0, 1e-5));
}

#[test]
fn a_number_of_users_that_would_be_false_is_refused_with_what_to_do() {
    let check = |points: &[Measured], suite: &str, request: SizeRequest, parts: &[&str]| {
        let text = users_on(points, suite, request).unwrap_err().to_string();
        assert!(parts.iter().all(|part| text.contains(part)), "{text}");
    };
    let plain = Law::plain(1.0, 50.0).low_points();
    let own = || request(None, None);
    let method = format!("{THINKS}{NO_USERS}");
    check(&plain, IDLE, own(), &["suite mine do not pause", "--think 25s"]);
    check(&plain, "[load]\nmode = \"open\"", own(), &["--think 25s"]);
    check(&plain, &method, own(), &["are no users: nobody knows", "--users-per-client 5"]);
    let per_session = ["think once before 500 ops", "leave --think out"];
    check(&sessions(), &method, request(Some(25), None), &per_session);
    check(&sessions(), IDLE, own(), &["did not think in these runs"]);
    let mut short = sessions();
    short.iter_mut().for_each(|point| point.iterations_per_s = Some(0.0));
    check(&sessions(), THINKS, own(), &["are no users", "does not say how many"]);
    check(
        &short,
        THINKS,
        request(None, Some(5.0)),
        &["no session of suite mine ended", "--profile standard"],
    );
}

#[test]
fn bytes_per_second_are_ops_of_the_measured_bytes() {
    let size = |metric, points: &[Measured]| {
        let rate = RequestedLoad::Bytes(20.0 * 1_048_576.0);
        size_of_load(&run_of(metric, THINKS), points, rate, request(None, None))
    };
    let sizing = size(Metric::Bytes, &sessions()).unwrap();
    assert!(near(sizing.asked.load_ops_per_s, 5_120.0, 1e-9), "{sizing:?}");
    assert_eq!(sizing.asked.load_bytes_per_s, Some(20.0 * 1_048_576.0));
    assert!(sizing.processors.is_some() && sizing.refused.is_none());
    let text = size(Metric::Ops, &sessions()).unwrap_err().to_string();
    assert!(text.contains("mine does not count bytes; write the load in ops/s"), "{text}");
}
