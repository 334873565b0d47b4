//! Capacities of whole bundles.

use plimsoll_model::capacity::{TryOutcome, Within};
use plimsoll_model::event::JournalRecord;
use plimsoll_report::sentences::{capacity::why, finding};

use super::*;
use crate::analyse;
use crate::testing::{PointBuilder, RunBuilder};

fn request(within: &str) -> CapacityRequest {
    CapacityRequest { within: within.parse().unwrap(), think: None, users_per_client: Some(5.0) }
}

/// A run of 8 and 16 clients, the last too slow, and five re-runs.
fn searched(within: &str) -> RunBuilder {
    let slow = PointBuilder::closed(16).response_ns(90_000_000);
    let mut run = RunBuilder::from_points([]);
    run.suite = PointBuilder::closed(1).build().suite;
    run = run.with_probe(PointBuilder::closed(8)).with_probe(slow);
    for _ in 0..5 {
        run = run.with_rerun(PointBuilder::closed(8));
    }
    run.started_mut().capacity = Some(request(within));
    run.started_mut().ladder = None;
    let how = JournalRecord::CapacitySearched {
        how: "so".to_owned(),
        departures: Vec::new(),
        method: Vec::new(),
    };
    run.journal.insert(run.journal.len() - 1, how);
    run
}

#[test]
fn a_bundle_gives_its_capacity_again_to_the_byte() {
    let run = searched("p99<50ms,errors<1%");
    let result = analyse(&run.raw());
    let json = |run: &RunBuilder| serde_json::to_string(&analyse(&run.raw())).unwrap();
    assert_eq!(json(&run), json(&run));
    assert!(result.verdict.valid, "{:?}", result.verdict);
    let capacity = result.summary.capacity.unwrap();
    assert_eq!((capacity.value, capacity.unit.as_str()), (8.0, "clients"));
    assert_eq!((capacity.low, capacity.high), (8.0, Some(16.0)));
    assert_eq!((capacity.passed, capacity.tries, capacity.users), (5, 5, Some(40.0)));
    assert_eq!(result.summary.value, Some(8.0));
    assert_eq!(result.summary.metric, "capacity within p99<50ms,errors<1%");
    let loads: Vec<f64> = result.points.iter().map(|point| point.requested).collect();
    assert_eq!(loads, [8.0, 8.0, 8.0, 8.0, 8.0, 8.0, 16.0], "in order of load");
    let tries = result.summary.capacity_search.unwrap().tries;
    assert_eq!((tries[1].point, tries[1].passed), (7, false), "in order of time");
    assert!(why(&tries[1]).starts_with("p99 90.0 ms ≥ 50.0 ms"), "{}", why(&tries[1]));
}

#[test]
fn clients_of_a_method_are_users_by_a_number_that_the_user_names() {
    let capacity = |users_per_client: Option<f64>, of_method: bool| {
        let mut run = searched("p99<50ms,errors<1%");
        run.started_mut().capacity.as_mut().unwrap().users_per_client = users_per_client;
        let key = || "generator.users_per_client".to_owned();
        if of_method {
            run.suite.origins.source.insert(key(), "page 1".to_owned());
            run.suite.origins.method.insert(key(), "5 to 10 users".to_owned());
        }
        let capacity = analyse(&run.raw()).summary.capacity.unwrap();
        (capacity.users, capacity.client)
    };
    let client = Some("one stands for 5 to 10 users (page 1)".to_owned());
    assert_eq!(capacity(None, true), (None, client));
    assert_eq!(capacity(Some(5.0), true), (Some(40.0), None));
    assert_eq!(capacity(None, false), (Some(8.0), None));
}

#[test]
fn a_capacity_whose_deciding_rows_are_invalid_is_not_valid() {
    let verdict = |late_reruns: usize, beyond: PointBuilder| {
        let mut run = RunBuilder::from_points([]);
        run.suite = PointBuilder::closed(1).build().suite;
        for _ in 0..4 {
            run = run.with_probe(beyond.clone());
        }
        for at in 0..7 {
            let rerun = PointBuilder::closed(8);
            run = run.with_rerun(if at < late_reruns { rerun.worker_busy(0.99) } else { rerun });
        }
        run.started_mut().capacity = Some(request("p99<50ms"));
        run.started_mut().ladder = None;
        let result = analyse(&run.raw());
        let names = result.verdict.reasons.iter().map(|it| it.rule.name()).collect::<Vec<_>>();
        (result.summary.value, result.summary.bound, names)
    };
    let slow = || PointBuilder::closed(16).response_ns(90_000_000);
    assert_eq!(verdict(0, slow()), (Some(8.0), Bound::Exact, vec![]));
    assert_eq!(verdict(2, slow()).2, Vec::<&str>::new(), "five are valid");
    assert_eq!(verdict(4, slow()), (Some(8.0), Bound::AtLeast, vec!["generator_cpu"]));
    // What ended the search was another program, not the server.
    let taken = slow().core_taken(0.4);
    assert_eq!(verdict(0, taken).1, Bound::AtLeast);
}

#[test]
fn a_run_without_a_load_within_the_limits_is_invalid_and_says_why() {
    let result = analyse(&searched("p99<1us").raw());
    assert_eq!(result.summary.capacity, None);
    assert!(!result.verdict.valid);
    let reason = &result.verdict.reasons[0];
    assert_eq!((reason.rule.name(), finding::text(&reason.rule).as_str()), ("no_capacity", "so"));
    assert_eq!(result.summary.value, None);
}

#[test]
fn a_disturbed_measurement_says_nothing_of_the_server_and_a_missed_load_does() {
    let within: Within = "p99<50ms".parse().unwrap();
    let tried = |point: PointBuilder| {
        let mut run = RunBuilder::from_points([]).with_probe(point);
        run.started_mut().capacity = Some(request("p99<50ms"));
        analyse(&run.raw()).summary.capacity_search.unwrap().tries.remove(0)
    };
    let outcome_of = |point: PointBuilder| {
        let attempt = tried(point);
        (attempt.standing, why(&attempt))
    };
    let busy = |ms: u64| PointBuilder::open(1_000.0).response_ns(ms * 1_000_000).worker_busy(0.99);
    assert_eq!(outcome_of(busy(60)).0, TryOutcome::NotJudged);
    // Of 40 ms the generator's own delay is 30: with it the figure is below the limit, so the
    // server is within.
    let late = |ms: u64| PointBuilder::open(1_000.0).response_ns(ms * 1_000_000);
    for point in [busy(40), late(40).receive_lag_ns(30_000_000)] {
        let attempt = tried(point);
        assert_eq!((attempt.standing, attempt.late), (TryOutcome::Within, true));
    }
    for own_ms in [40, 31] {
        let (late_beyond, _) = outcome_of(late(60).receive_lag_ns(own_ms * 1_000_000));
        assert_eq!(late_beyond, TryOutcome::NotJudged);
    }
    assert!(!tried(PointBuilder::open(1_000.0)).late);
    let (missed, why) = outcome_of(PointBuilder::open(1_000.0).achieved(800));
    assert_eq!(missed, TryOutcome::NotWithin);
    assert!(why.starts_with("load not held: achieved 800 of 1,000"), "{why}");
    let (sustained, why) = outcome_of(PointBuilder::open(1_000.0));
    assert_eq!((sustained, why.as_str()), (TryOutcome::Within, "p99 1.00 ms < 50.0 ms"));
    assert!(!within.limits_errors());
}
