//! Claims of a peak, and what lowers them.

use super::*;

#[test]
fn a_claim_at_which_the_server_failed_is_lowered_by_a_fifth() {
    let mut verified = Vec::new();
    let (_, _) = plain(|step| match step {
        SearchStep::Verify { load, .. } => {
            verified.push(*load);
            let holding = if *load == verified[0] { Holding::Failed } else { Holding::Sustained };
            outcome(*load, *load, holding)
        }
        step => exact(10_000.0)(step),
    });
    let lower = verified.iter().find(|load| **load != verified[0]);
    assert_eq!(lower, Some(&(verified[0] * 0.8).floor()), "{verified:?}");
}

#[test]
fn a_peak_is_exact_only_where_a_load_close_above_it_was_missed() {
    let mut far = 0;
    for steps_left in 3..20 {
        let mut missed = f64::INFINITY;
        let (end, _) = search(PeakSearchConfig::default(), steps_left, |step| {
            let Some(load) = load_of(step) else { return closed(1_000.0) };
            let outcome = server(430.0, load);
            if outcome.holding != Holding::Sustained {
                missed = missed.min(load);
            }
            outcome
        });
        let answer = expect_answer(end);
        let close = missed - answer.peak <= 0.15 * missed;
        assert!(
            close || answer.bound == Bound::AtLeast,
            "{steps_left}: {answer:?}, missed {missed}"
        );
        far += u32::from(!close);
    }
    assert!(far > 0, "no search ended early");
}

#[test]
fn a_load_held_with_just_the_spare_that_a_peak_needs_was_held() {
    let config = PeakSearchConfig::default();
    let mut search = PeakSearch::new(config);
    search.report(&search.next(NO_HURRY), closed(1_000.0));
    let step = search.next(NO_HURRY);
    let short_ratio = config.spare_ratio;
    search.report(&step, ProbeOutcome { short_ratio, ..outcome(950.0, 950.0, Holding::Sustained) });
    let next = load_of(&search.next(NO_HURRY)).unwrap();
    assert!(next > 950.0, "it goes on upwards: {next}");
}

#[test]
fn without_time_for_more_a_server_that_was_asked_for_too_much_is_asked_for_what_it_did() {
    let mut search = PeakSearch::new(PeakSearchConfig::default());
    search.report(&SearchStep::Saturate, closed(1_000.0));
    for achieved in [420.0, 400.0] {
        let step = search.next(NO_HURRY);
        assert_eq!(step, SearchStep::Probe { load: 950.0 });
        search.report(&step, outcome(950.0, achieved, Holding::NotSustained));
    }
    assert_eq!(search.next(1), SearchStep::Verify { load: 380.0, number: 1 });
}

#[test]
fn after_a_claim_that_was_missed_by_far_what_the_server_did_then_is_claimed() {
    let (_, steps) = plain(|step| match step {
        SearchStep::Probe { load } => server(10_000.0, *load),
        // Another program takes the machine from here on.
        SearchStep::Verify { load, .. } => server(7_000.0, *load),
        _ => closed(10_000.0),
    });
    let claims: Vec<f64> = steps
        .iter()
        .filter_map(|step| match step {
            SearchStep::Verify { load, .. } => Some(*load),
            _ => None,
        })
        .collect();
    let next = claims.iter().find(|load| **load < claims[0]).unwrap();
    assert!((next - 7_000.0 * ACHIEVED_RATIO).abs() < 1e-6, "{claims:?}");
}
