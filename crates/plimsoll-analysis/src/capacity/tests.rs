use plimsoll_model::capacity::{CapacityRequest, CapacityTry, LimitFigure, TryOutcome, TryReason};
use plimsoll_model::finding::Rule;
use plimsoll_report::sentences::capacity::why;

use super::*;
use crate::testing::PointBuilder;

mod bundles;

/// Enough for any search.
pub(super) const NO_HURRY: u32 = u32::MAX;
/// A search with more steps than this never ends.
const STEPS_MAX: usize = 120;

pub(super) fn config(clients: bool, quick: bool) -> Config {
    let point = if clients { PointBuilder::closed(1) } else { PointBuilder::open(1.0) };
    let profile = if quick { ProfileName::Quick } else { ProfileName::Standard };
    Config::from_suite(&point.build().suite, profile)
}

/// A try whose p99 is `ratio` of its limit, with this relative error.
fn attempt(step: &Step, ratio: f64, error_ratio: f64) -> CapacityTry {
    let (load, purpose) = match step {
        Step::Probe { load } => (*load, Purpose::Probe),
        Step::Verify { load, .. } => (*load, Purpose::Verify),
        other => panic!("{other:?} is no try"),
    };
    let interval = [ratio * (1.0 - error_ratio), ratio * (1.0 + error_ratio)];
    let outcome = match interval {
        [low, _] if low >= 1.0 => TryOutcome::NotWithin,
        [_, high] if high < 1.0 => TryOutcome::Within,
        _ => TryOutcome::Undecided,
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
    let figures = vec![figure];
    let why = String::new();
    CapacityTry {
        point: 1,
        load,
        purpose,
        standing: outcome,
        passed,
        late: false,
        why,
        reason,
        figures,
    }
}

fn faulty(step: &Step) -> CapacityTry {
    let rule = Rule::EndedEarly { cause: "the busiest worker was late".to_owned() };
    CapacityTry {
        standing: TryOutcome::NotJudged,
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
            Step::Answer(_) | Step::Nothing => return (search, step, steps),
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
pub(super) fn expect_answer(step: &Step) -> Answer {
    match step {
        Step::Answer(answer) => *answer,
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
            let answer = expect_answer(&end);
            let high = answer.high.unwrap();
            assert!(answer.value < capacity && high >= capacity, "{answer:?} of {capacity}");
            assert!(high - answer.value <= resolution * high * 1.01, "{answer:?}");
            assert_eq!((answer.passed, answer.tries, answer.bound), (5, 5, Bound::Exact));
            assert!(steps.len() <= 28, "{} steps", steps.len());
            assert!(
                search.how(&answer, why).contains("5 of 5 re-runs"),
                "{}",
                search.how(&answer, why)
            );
        }
    }
}

#[test]
fn clients_are_whole_and_begin_with_a_few() {
    let (search, end, steps) = run(config(true, false), NO_HURRY, 0.0, exact(61.5));
    assert_eq!(load_of(&steps[0]), 8.0, "no closed probe before it");
    let answer = expect_answer(&end);
    assert_eq!((answer.value, answer.high), (61.0, Some(62.0)));
    assert!(
        search.how(&answer, why).starts_with("61 clients stayed"),
        "{}",
        search.how(&answer, why)
    );
}

#[test]
fn no_load_within_the_limits_is_said_with_the_lowest_that_was_tried() {
    let (search, end, steps) =
        run(config(true, true), NO_HURRY, 0.0, |step| attempt(step, 3.0, 0.1));
    assert_eq!(end, Step::Nothing);
    let reason = search.why_none(why);
    assert!(
        reason.contains("the lowest that was tried, 1 client, was not: p99 3 ns ≥ 1 ns"),
        "{reason}"
    );
    assert_eq!(steps.iter().map(load_of).collect::<Vec<_>>(), [8.0, 4.0, 2.0, 1.0]);
}

#[test]
fn an_undecided_load_is_tried_again_and_the_figures_are_taken_together() {
    let mut config = config(true, false);
    config.climb.max = 8.0;
    let mut figures = [1.05, 0.9, 0.9].into_iter();
    let (_, end, steps) = run(config, NO_HURRY, 0.0, |step| match step {
        Step::Probe { .. } => attempt(step, figures.next().unwrap(), 0.3),
        _ => attempt(step, 0.9, 0.05),
    });
    assert_eq!(steps.len(), 3 + 5, "{steps:?}");
    assert_eq!(expect_answer(&end).value, 8.0);
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
    let answer = expect_answer(&end);
    assert!((40.0..=90.0).contains(&answer.value), "{answer:?}");
}

/// A search for a load near 100 whose re-runs of 100 with these numbers are beyond the limit.
fn re_run_failing(numbers: &[u32]) -> (Answer, Vec<f64>) {
    let (_, end, steps) = run(config(true, false), NO_HURRY, 0.0, |step| match step {
        Step::Verify { load: 100.0, number } if numbers.contains(number) => attempt(step, 1.2, 0.1),
        step => attempt(step, load_of(step) / 100.5, 0.001),
    });
    let claims = steps.iter().filter(|s| matches!(s, Step::Verify { .. })).map(load_of).collect();
    (expect_answer(&end), claims)
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

/// A server with a capacity of 100 clients. The figures of re-runs have an error of a tenth, those
/// of re-runs of twice the length a twentieth.
fn uncertain(search: &Search, step: &Step) -> CapacityTry {
    let error_ratio = match step {
        Step::Verify { .. } => 0.1 / f64::from(search.windows(step, NO_HURRY)),
        _ => 0.001,
    };
    attempt(step, load_of(step) / 100.5, error_ratio)
}

#[test]
fn undecided_re_runs_count_neither_way_are_longer_and_end_with_the_highest_decided_load() {
    for (quick, longest) in [(true, 2), (false, 4)] {
        let mut search = Search::new(config(true, quick));
        let mut windows = Vec::new();
        let answer = loop {
            match search.next(NO_HURRY) {
                Step::Answer(answer) => break answer,
                step => {
                    windows.push(search.windows(&step, NO_HURRY));
                    search.report(uncertain(&search, &step));
                }
            }
        };
        assert_eq!(windows.iter().max(), Some(&longest), "{windows:?}");
        assert!((85.0..=98.0).contains(&answer.value), "{answer:?}");
        assert_eq!((answer.passed, answer.tries), (5, 5), "{answer:?}");
        assert_eq!(answer.undecided_to, Some(100.0), "{answer:?}");
        assert!(answer.high.is_some_and(|high| (101.0..=102.0).contains(&high)), "{answer:?}");
        let how = search.how(&answer, why);
        assert!(how.contains("up to 100 clients it stayed undecided"), "{how}");
    }
}

#[test]
fn clients_of_a_fast_server_grow_faster_while_every_figure_is_far_from_its_limit() {
    let (_, end, steps) = run(config(true, true), NO_HURRY, 0.0, exact(3_476.0));
    assert!(expect_answer(&end).value > 3_300.0, "{end:?}");
    let loads: Vec<f64> = steps.iter().map(load_of).take(5).collect();
    assert_eq!(loads, [8.0, 32.0, 128.0, 512.0, 2_048.0]);
    assert!(steps.len() < 5 + 9 + 6 + 3, "{} steps", steps.len());
}

#[test]
fn a_claim_does_not_give_way_far_below_a_load_that_was_decided() {
    let (_, end, steps) = run(config(true, true), NO_HURRY, 0.0, |step| {
        let error_ratio = if matches!(step, Step::Verify { .. }) { 0.5 } else { 0.001 };
        attempt(step, load_of(step) / 1_005.0, error_ratio)
    });
    // Re-runs are decided up to 670; of the probes below a claim of 704 that of 512 was.
    let claims = steps.iter().filter(|step| matches!(step, Step::Verify { number: 1, .. }));
    let claims: Vec<f64> = claims.map(load_of).collect();
    assert_eq!(claims[4..], [704.0, 512.0]);
    assert_eq!(expect_answer(&end).value, 512.0);
}

#[test]
fn a_load_of_few_ops_that_is_far_within_its_limit_is_tried_once() {
    let (_, end, steps) = run(config(true, true), NO_HURRY, 0.0, |step| {
        let mut attempt = attempt(step, load_of(step) / 1_005.0, 0.001);
        if load_of(step) < 100.0 {
            attempt.figures[0].interval = None;
            attempt.standing = TryOutcome::Undecided;
        }
        attempt
    });
    assert!(expect_answer(&end).value > 950.0, "{end:?}");
    let loads: Vec<f64> = steps.iter().map(load_of).take(6).collect();
    assert_eq!(loads, [8.0, 16.0, 32.0, 64.0, 128.0, 512.0]);
}

#[test]
fn a_fault_far_above_what_was_within_the_limits_is_not_tried_again() {
    let (_, end, steps) = run(config(true, true), NO_HURRY, 0.0, |step| match load_of(step) {
        load if load > 5_000.0 => faulty(step),
        load => attempt(step, load / 50_000.0, 0.001),
    });
    assert!(expect_answer(&end).value > 4_800.0, "{end:?}");
    assert_eq!(expect_answer(&end).bound, Bound::AtLeast);
    assert_eq!(steps.iter().filter(|step| load_of(step) == 8_192.0).count(), 1);
}

#[test]
fn late_re_runs_make_the_answer_a_lower_bound() {
    let (_, end, _) = run(config(true, true), NO_HURRY, 0.0, |step| {
        let late = matches!(step, Step::Verify { .. });
        CapacityTry { late, ..attempt(step, load_of(step) / 90.5, 0.001) }
    });
    assert_eq!((expect_answer(&end).value, expect_answer(&end).bound), (90.0, Bound::AtLeast));
}

#[test]
fn a_bound_that_came_out_both_ways_is_tried_until_it_is_clear() {
    let mut tries = 0;
    let (_, end, steps) = run(config(true, false), NO_HURRY, 0.0, |step| {
        let hit = load_of(step) == 32.0 && std::mem::replace(&mut tries, 1) == 0;
        attempt(step, if hit { 30.0 } else { load_of(step) / 40.5 }, 0.001)
    });
    assert_eq!(expect_answer(&end).value, 40.0, "{steps:?}");
}

#[test]
fn a_load_that_was_too_much_twice_by_chance_is_tried_again_before_it_bounds_the_answer() {
    let mut bad = 0;
    let (_, end, _) = run(config(true, false), NO_HURRY, 0.0, |step| {
        let hit = load_of(step) == 32.0 && bad < 2;
        bad += u32::from(hit);
        attempt(step, if hit { 30.0 } else { load_of(step) / 90.5 }, 0.001)
    });
    let answer = expect_answer(&end);
    assert_eq!((answer.value, answer.high), (90.0, Some(91.0)), "32 was too much twice");
}

#[test]
fn loads_at_which_the_measurement_was_at_fault_are_tried_four_times_and_bound_from_below() {
    let (search, end, steps) = run(config(true, false), NO_HURRY, 0.0, |step| {
        if load_of(step) > 20.0 { faulty(step) } else { attempt(step, 0.5, 0.1) }
    });
    let answer = expect_answer(&end);
    assert_eq!((answer.value, answer.high, answer.bound), (20.0, Some(21.0), Bound::AtLeast));
    assert_eq!(steps.iter().filter(|step| load_of(step) == 32.0).count(), 4);
    let how = search.how(&answer, why);
    assert!(
        how.contains("21 clients was more than could be measured (the point was ended"),
        "{how}"
    );
}

#[test]
fn faults_beside_an_undecided_try_end_too() {
    let mut tried = 0;
    let (_, end, steps) = run(config(true, false), NO_HURRY, 0.0, |step| match step {
        Step::Probe { load: 32.0 } => {
            tried += 1;
            if tried == 1 { attempt(step, 1.1, 0.3) } else { faulty(step) }
        }
        step => attempt(step, load_of(step) / 100.0, 0.001),
    });
    assert_eq!(steps.iter().filter(|step| load_of(step) == 32.0).count(), 5);
    assert_eq!(expect_answer(&end).high, None, "one undecided try bounds nothing");
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
    assert_eq!(expect_answer(&search.next(NO_HURRY)).value, 116.0);
}

#[test]
fn claims_that_never_pass_end_in_words() {
    let (search, end, _) = run(config(false, true), NO_HURRY, 1_000.0, |step| match step {
        Step::Verify { .. } => attempt(step, 1.5, 0.1),
        step => attempt(step, load_of(step) / 800.0, 0.001),
    });
    assert_eq!(end, Step::Nothing);
    let reason = search.why_none(why);
    assert!(reason.starts_with("no load passed 5 re-runs; the lowest of 8 claims"), "{reason}");
}

#[test]
fn a_search_in_a_hurry_claims_what_it_knows() {
    let (_, end, steps) = run(config(false, true), 14, 1_000.0, exact(900.0));
    assert!(steps.len() <= 14, "{steps:?}");
    let answer = expect_answer(&end);
    assert!(answer.value >= 500.0 && answer.value < 900.0, "{answer:?}");
}

/// No closed probe comes first: what all clients at once reach is no number of sessions.
#[test]
fn a_search_for_sessions_begins_with_enough_of_them_and_names_its_unit() {
    let mut suite = PointBuilder::open(1.0).build().suite;
    if let LoadSpec::Open { arrivals, .. } = &mut suite.load {
        *arrivals = plimsoll_model::suite::Arrivals::Sessions;
    }
    let config = Config::from_suite(&suite, ProfileName::Standard);
    let Step::Probe { load } = Search::new(config).next(NO_HURRY) else { panic!("no probe") };
    let window = suite.profiles.get(ProfileName::Standard).measure.as_secs_f64();
    assert!((600.0..700.0).contains(&(load * window)), "{load} for {window} s");
    let (search, end, _) = run(config, NO_HURRY, 0.0, exact(61.5));
    let Step::Answer(answer) = end else { panic!("{end:?}") };
    assert!((60.0..=61.5).contains(&answer.value), "{answer:?}");
    let how = search.how(&answer, why);
    assert!(how.contains(" sessions/s stayed within the limits"), "{how}");
}
