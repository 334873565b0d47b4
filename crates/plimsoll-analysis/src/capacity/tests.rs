use plimsoll_model::capacity::{
    CapacityAsked, CapacityTry, LimitFigure, TryReason, TryStanding, Within,
};
use plimsoll_model::event::JournalRecord;
use plimsoll_model::finding::Rule;

use super::*;
use crate::analyse;
use crate::testing::{PointBuilder, RunBuilder};

/// Enough for any search.
pub(super) const NO_HURRY: u32 = u32::MAX;
/// Steps of a search that never ends would be more than this.
const STEPS_MAX: usize = 120;

pub(super) fn config(clients: bool, quick: bool) -> Config {
    let point = if clients { PointBuilder::closed(1) } else { PointBuilder::open(1.0) };
    let profile = if quick { ProfileName::Quick } else { ProfileName::Standard };
    Config::of(&point.build().suite, profile)
}

/// A try whose p99 is so much of its limit, known to a share of itself.
fn attempt(step: &Step, ratio: f64, known: f64) -> CapacityTry {
    let (load, purpose) = match step {
        Step::Probe { load } => (*load, Purpose::Probe),
        Step::Verify { load, .. } => (*load, Purpose::Verify),
        other => panic!("{other:?} is no try"),
    };
    let interval = [ratio * (1.0 - known), ratio * (1.0 + known)];
    let standing = match interval {
        [low, _] if low >= 1.0 => TryStanding::NotWithin,
        [_, high] if high < 1.0 => TryStanding::Within,
        _ => TryStanding::Undecided,
    };
    let figure = LimitFigure {
        name: "p99".to_owned(),
        unit: "ns".to_owned(),
        value: Some(ratio),
        interval: Some(interval),
        lower_bound: false,
        below: 1.0,
        at_least: false,
    };
    let (passed, reason) = (ratio < 1.0, TryReason::Figures);
    CapacityTry { point: 1, load, purpose, standing, passed, reason, figures: vec![figure] }
}

fn faulty(step: &Step) -> CapacityTry {
    let rule = Rule::EndedEarly { cause: "the busiest worker was late".to_owned() };
    CapacityTry {
        standing: TryStanding::NotJudged,
        passed: false,
        reason: TryReason::Rule { rule },
        figures: Vec::new(),
        ..attempt(step, 0.5, 0.0)
    }
}

/// Runs a search to its end: the search, its last step, the steps it took.
pub(super) fn run(
    config: Config,
    steps_left: u32,
    closed: f64,
    mut run: impl FnMut(&Step) -> CapacityTry,
) -> (Search, Step, Vec<Step>) {
    let mut search = Search::new(config);
    let mut steps = Vec::new();
    for taken in 0..STEPS_MAX as u32 {
        let step = search.next(steps_left.saturating_sub(taken));
        assert_eq!(search.next(steps_left.saturating_sub(taken)), step, "asking changes nothing");
        match &step {
            Step::Found(_) | Step::Nothing => return (search, step, steps),
            Step::Saturate => search.saturated(closed),
            _ => search.report(run(&step)),
        }
        steps.push(step);
    }
    panic!("no end after {STEPS_MAX} steps: {search:?}");
}

pub(super) fn load_of(step: &Step) -> f64 {
    match step {
        Step::Probe { load } | Step::Verify { load, .. } => *load,
        _ => 0.0,
    }
}

#[track_caller]
pub(super) fn found(step: &Step) -> Answer {
    match step {
        Step::Found(answer) => *answer,
        other => panic!("{other:?}"),
    }
}

/// p99 rises straight to its limit at `capacity`.
fn exact(capacity: f64) -> impl FnMut(&Step) -> CapacityTry {
    move |step| attempt(step, load_of(step) / capacity, 0.001)
}

#[test]
fn an_exact_server_is_found_within_the_resolution_and_run_again_five_times() {
    for (quick, resolution) in [(false, 0.01), (true, 0.04)] {
        for capacity in [33.3, 700.0, 9_000.0] {
            let config = config(false, quick);
            let (search, end, steps) = run(config, NO_HURRY, 10_000.0, exact(capacity));
            let answer = found(&end);
            let high = answer.high.unwrap();
            assert!(answer.value < capacity && high >= capacity, "{answer:?} of {capacity}");
            assert!(high - answer.value <= resolution * high * 1.01, "{answer:?}");
            assert_eq!((answer.passed, answer.tries, answer.bound), (5, 5, Bound::Exact));
            assert!(steps.len() <= 28, "{} steps", steps.len());
            assert!(search.how(&answer).contains("5 of 5 re-runs"), "{}", search.how(&answer));
        }
    }
}

#[test]
fn clients_are_whole_and_begin_with_a_few() {
    let (search, end, steps) = run(config(true, false), NO_HURRY, 0.0, exact(61.5));
    assert_eq!(load_of(&steps[0]), 8.0, "no closed probe before it");
    let answer = found(&end);
    assert_eq!((answer.value, answer.high), (61.0, Some(62.0)));
    assert!(search.how(&answer).starts_with("61 clients stayed"), "{}", search.how(&answer));
}

#[test]
fn no_load_within_the_limits_is_said_with_the_lowest_that_was_tried() {
    let (search, end, steps) =
        run(config(true, true), NO_HURRY, 0.0, |step| attempt(step, 3.0, 0.1));
    assert_eq!(end, Step::Nothing);
    let reason = search.why_none();
    assert!(
        reason.contains("the lowest that was tried, 1 client, was not: p99 3 ns ≥ 1 ns"),
        "{reason}"
    );
    assert_eq!(steps.iter().map(load_of).collect::<Vec<_>>(), [8.0, 4.0, 2.0, 1.0]);
}

#[test]
fn an_undecided_load_is_tried_again_and_the_figures_are_taken_together() {
    let mut config = config(true, false);
    config.course.max = 8.0;
    let mut figures = [1.05, 0.9, 0.9].into_iter();
    let (_, end, steps) = run(config, NO_HURRY, 0.0, |step| match step {
        Step::Probe { .. } => attempt(step, figures.next().unwrap(), 0.3),
        _ => attempt(step, 0.9, 0.3),
    });
    assert_eq!(steps.len(), 3 + 5, "{steps:?}");
    assert_eq!(found(&end).value, 8.0);
}

#[test]
fn one_bad_moment_does_not_hide_what_the_server_can_do() {
    let mut disturbed = false;
    let (_, end, _) = run(config(true, false), NO_HURRY, 0.0, |step| {
        let load = load_of(step);
        let hit = load > 40.0 && !disturbed;
        disturbed |= hit;
        attempt(step, if hit { 30.0 } else { load / 90.0 }, 0.001)
    });
    // Once 30 times its limit, then below it: the average of the logarithms is still above.
    let answer = found(&end);
    assert!((40.0..=90.0).contains(&answer.value), "{answer:?}");
}

/// A search for a load near 100 whose re-runs of 100 with these numbers are beyond the limit.
fn re_run_failing(numbers: &[u32]) -> (Answer, Vec<f64>) {
    let (_, end, steps) = run(config(true, false), NO_HURRY, 0.0, |step| match step {
        Step::Verify { load: 100.0, number } if numbers.contains(number) => attempt(step, 1.2, 0.1),
        step => attempt(step, load_of(step) / 100.5, 0.001),
    });
    let claims = steps.iter().filter(|s| matches!(s, Step::Verify { .. })).map(load_of).collect();
    (found(&end), claims)
}

#[test]
fn one_re_run_beyond_a_limit_is_made_up_for_by_another() {
    let (answer, claims) = re_run_failing(&[4]);
    assert_eq!(claims, [100.0; 6]);
    assert_eq!((answer.value, answer.passed, answer.tries), (100.0, 5, 6));
}

#[test]
fn a_second_re_run_beyond_a_limit_lowers_the_claim_and_the_five_begin_again() {
    let (answer, claims) = re_run_failing(&[2, 4]);
    assert_eq!(claims, [[100.0; 4].as_slice(), &[99.0; 5]].concat());
    assert_eq!((answer.value, answer.high), (99.0, Some(100.0)));
    assert_eq!((answer.passed, answer.tries), (5, 5));
    assert_eq!(answer.bound, Bound::Exact);
}

#[test]
fn a_bound_that_came_out_both_ways_is_tried_until_it_is_clear() {
    let mut tries = 0;
    let (_, end, steps) = run(config(true, false), NO_HURRY, 0.0, |step| {
        let hit = load_of(step) == 32.0 && std::mem::replace(&mut tries, 1) == 0;
        attempt(step, if hit { 30.0 } else { load_of(step) / 40.5 }, 0.001)
    });
    assert_eq!(found(&end).value, 40.0, "{steps:?}");
}

#[test]
fn a_load_that_was_too_much_twice_by_chance_is_tried_again_before_it_bounds_the_answer() {
    let mut bad = 0;
    let (_, end, _) = run(config(true, false), NO_HURRY, 0.0, |step| {
        let hit = load_of(step) == 32.0 && bad < 2;
        bad += u32::from(hit);
        attempt(step, if hit { 30.0 } else { load_of(step) / 90.5 }, 0.001)
    });
    let answer = found(&end);
    assert_eq!((answer.value, answer.high), (90.0, Some(91.0)), "32 was too much twice");
}

#[test]
fn loads_at_which_the_measurement_was_at_fault_are_tried_three_times_and_bound_from_below() {
    let (search, end, steps) = run(config(true, false), NO_HURRY, 0.0, |step| {
        if load_of(step) > 20.0 { faulty(step) } else { attempt(step, 0.5, 0.1) }
    });
    let answer = found(&end);
    assert_eq!((answer.value, answer.high, answer.bound), (20.0, Some(21.0), Bound::AtLeast));
    assert_eq!(steps.iter().filter(|step| load_of(step) == 32.0).count(), 3);
    let how = search.how(&answer);
    assert!(
        how.contains("21 clients was more than could be measured (the point was ended"),
        "{how}"
    );
}

#[test]
fn faults_beside_an_undecided_try_end_too() {
    let mut tried = 0;
    let (_, end, steps) = run(config(true, false), NO_HURRY, 0.0, |step| match step {
        Step::Probe { load: 16.0 } => {
            tried += 1;
            if tried == 1 { attempt(step, 1.1, 0.3) } else { faulty(step) }
        }
        step => attempt(step, load_of(step) / 100.0, 0.001),
    });
    assert_eq!(steps.iter().filter(|step| load_of(step) == 16.0).count(), 4);
    assert_eq!(found(&end).high, Some(16.0));
}

#[test]
fn a_claim_does_not_give_way_to_one_that_fell_before() {
    let mut search = Search::new(config(true, false));
    for (load, ratio) in [(117.0, 0.9), (119.0, 1.5)] {
        search.report(attempt(&Step::Probe { load }, ratio, 0.001));
    }
    let reruns = [(117.0, 1.5, 2), (116.0, 0.9, 5), (118.0, 0.9, 1), (118.0, 1.5, 2)];
    for (load, ratio, times) in reruns {
        for number in 1..=times {
            search.report(attempt(&Step::Verify { load, number }, ratio, 0.001));
        }
    }
    assert_eq!(found(&search.next(NO_HURRY)).value, 116.0);
}

#[test]
fn claims_that_never_pass_end_in_words() {
    let (search, end, _) = run(config(false, true), NO_HURRY, 1_000.0, |step| match step {
        Step::Verify { .. } => attempt(step, 1.5, 0.1),
        step => attempt(step, load_of(step) / 800.0, 0.001),
    });
    assert_eq!(end, Step::Nothing);
    let reason = search.why_none();
    assert!(reason.starts_with("no load passed 5 re-runs; the lowest of 6 claims"), "{reason}");
}

#[test]
fn a_search_in_a_hurry_claims_what_it_knows() {
    let (_, end, steps) = run(config(false, true), 14, 1_000.0, exact(900.0));
    assert!(steps.len() <= 14, "{steps:?}");
    let answer = found(&end);
    assert!(answer.value >= 500.0 && answer.value < 900.0, "{answer:?}");
}

fn asked(within: &str) -> CapacityAsked {
    CapacityAsked { within: within.parse().unwrap(), think: None, users_per_client: 5.0 }
}

/// A run of 8 and 16 clients, the last too slow, and five re-runs.
fn searched(within: &str) -> RunBuilder {
    let slow = PointBuilder::closed(16).response_ns(90_000_000);
    let mut run = RunBuilder::of([]);
    run.suite = PointBuilder::closed(1).build().suite;
    run = run.with_probe(PointBuilder::closed(8)).with_probe(slow);
    for _ in 0..5 {
        run = run.with_rerun(PointBuilder::closed(8));
    }
    run.started_mut().capacity = Some(asked(within));
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
    assert!(tries[1].why().starts_with("p99 90.0 ms ≥ 50.0 ms"), "{}", tries[1].why());
}

#[test]
fn a_run_without_a_load_within_the_limits_is_invalid_and_says_why() {
    let result = analyse(&searched("p99<1us").raw());
    assert_eq!(result.summary.capacity, None);
    assert!(!result.verdict.valid);
    let reason = &result.verdict.reasons[0];
    assert_eq!((reason.rule.name(), reason.rule.to_string().as_str()), ("no_capacity", "so"));
    assert_eq!(result.summary.value, None);
}

#[test]
fn a_disturbed_measurement_says_nothing_of_the_server_and_a_missed_load_does() {
    let within: Within = "p99<50ms".parse().unwrap();
    let standing = |point: PointBuilder| {
        let mut run = RunBuilder::of([]).with_probe(point);
        run.started_mut().capacity = Some(asked("p99<50ms"));
        let search = analyse(&run.raw()).summary.capacity_search.unwrap();
        (search.tries[0].standing, search.tries[0].why())
    };
    let (busy, _) = standing(PointBuilder::open(1_000.0).worker_busy(0.99));
    assert_eq!(busy, TryStanding::NotJudged);
    // Of 40 ms the generator's own delay is 30: below the limit with it, the server is within.
    let late = |ms: u64| PointBuilder::open(1_000.0).response_ns(ms * 1_000_000);
    let (late_within, _) = standing(late(40).receive_lag_ns(30_000_000));
    assert_eq!(late_within, TryStanding::Within);
    let (late_beyond, _) = standing(late(60).receive_lag_ns(40_000_000));
    assert_eq!(late_beyond, TryStanding::NotJudged);
    let (missed, why) = standing(PointBuilder::open(1_000.0).achieved(800));
    assert_eq!(missed, TryStanding::NotWithin);
    assert!(why.starts_with("load not held: achieved 800 of 1,000"), "{why}");
    let (held, why) = standing(PointBuilder::open(1_000.0));
    assert_eq!((held, why.as_str()), (TryStanding::Within, "p99 1.00 ms < 50.0 ms"));
    assert!(!within.limits_errors());
}
