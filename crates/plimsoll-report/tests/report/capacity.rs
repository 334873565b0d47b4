//! A search for a capacity, in a report.

use plimsoll_model::assignment::Purpose;
use plimsoll_model::capacity::{
    Capacity, CapacityRequest, CapacitySearch, CapacityTry, LimitFigure, TryOutcome, TryReason,
};
use plimsoll_model::finding::Rule;
use plimsoll_model::result::RunResult;
use plimsoll_model::units::Nanos;

use crate::fixture;

fn attempt(point: u32, load: f64, p99_ms: f64) -> CapacityTry {
    let passed = p99_ms < 50.0;
    let figure = LimitFigure {
        name: "p99".to_owned(),
        unit: "ns".to_owned(),
        value: Some(p99_ms * 1e6),
        interval: Some([p99_ms * 0.9e6, p99_ms * 1.1e6]),
        lower_bound: false,
        below: 50e6,
        at_least: false,
    };
    CapacityTry {
        point,
        load,
        purpose: if passed { Purpose::Verify } else { Purpose::Probe },
        standing: if passed { TryOutcome::Within } else { TryOutcome::NotWithin },
        passed,
        late: false,
        why: String::new(),
        reason: TryReason::Rule { rule: Rule::EndedEarly { cause: "<script>".to_owned() } },
        figures: vec![figure],
    }
}

fn searched(has_capacity: bool) -> RunResult {
    let mut run = fixture::valid(3);
    let request = CapacityRequest {
        within: "p99<50ms".parse().unwrap(),
        think: Some(Nanos::from_secs(25)),
        users_per_client: Some(1.0),
    };
    run.summary.unit = "ops/s".to_owned();
    run.summary.capacity = has_capacity.then(|| Capacity {
        value: 1_200.0,
        unit: "ops/s".to_owned(),
        low: 1_200.0,
        high: Some(1_260.0),
        undecided_to: None,
        within: request.within.clone(),
        passed: 5,
        tries: 5,
        users: Some(30_012.4),
        client: None,
        limit: fixture::watched::core(),
    });
    let tries = vec![attempt(2, 1_260.0, 61.3), attempt(1, 1_200.0, 41.0)];
    run.summary.capacity_search =
        Some(CapacitySearch { asked: request, how: Some("so it was found".to_owned()), tries });
    run
}

const CLAIM: &str = "1,200 ops/s, which is 30,012 users at a think time of 25.0 s within p99&lt;50ms: \
    5 of 5 re-runs stayed within the limits; 1,260 ops/s was too much.";

#[test]
fn the_claim_stands_above_the_tries_with_their_figures() {
    let page = plimsoll_report::html(&searched(true)).unwrap();
    let text = plimsoll_report::markdown(&searched(true));
    assert!(text.contains(CLAIM), "{text}");
    for part in [
        "5 of 5 re-runs stayed within the limits",
        "one core of the server (core 1",
        "so it was found",
        "61.3 ms (55.2 ms–67.4 ms)",
    ] {
        assert!(page.contains(part), "{part:?} is not in the page");
        assert!(text.contains(part), "{part:?} is not in\n{text}");
    }
    assert!(!page.contains("<script>61") && !page.contains("ms <script>"));
}

#[test]
fn clients_of_a_method_that_are_no_users_are_called_clients() {
    let mut run = searched(true);
    let capacity = run.summary.capacity.as_mut().unwrap();
    (capacity.users, capacity.unit) = (None, "clients".to_owned());
    capacity.client = Some("one stands for 5 to 10 users (a report)".to_owned());
    let text = plimsoll_report::markdown(&run);
    let claim = "1,200 clients at a think time of 25.0 s within p99&lt;50ms: 5 of 5 re-runs stayed \
        within the limits; 1,260 clients was too much. The method's clients are no users: one stands \
        for 5 to 10 users (a report). --users-per-client N gives users.";
    assert!(text.contains(claim), "{text}");
}

#[test]
fn no_load_within_the_limits_is_said_in_the_same_place() {
    let text = plimsoll_report::markdown(&searched(false));
    assert!(text.contains("No load within p99&lt;50ms was found."), "{text}");
    assert!(!plimsoll_report::markdown(&fixture::valid(3)).contains("Capacity"));
}
