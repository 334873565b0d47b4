use plimsoll_model::until::Until;

use super::*;
use crate::testing::{PointBuilder, RunBuilder, analyse};

const SECOND: Nanos = Nanos::from_secs(1);
const THREE: Nanos = Nanos::from_secs(3);
const THIRTY: Nanos = Nanos::from_secs(30);

fn needs(seconds: u64) -> ReachedPrecision {
    let window_needed_ns = Some(Nanos::from_secs(seconds));
    ReachedPrecision { ratio: Some(0.2), window_needed_ns, never: None }
}

fn never() -> ReachedPrecision {
    ReachedPrecision { never: Some(Never::NotHeld), ..NOTHING_REACHED }
}

#[test]
fn a_pilot_comes_first_and_the_window_is_half_as_long_again_as_it_asks_for() {
    assert_eq!(next_window(&[], THREE, THIRTY), NextWindow::Pilot(THREE));
    let counted = |needed, at_most| next_window(&[(THREE, needs(needed))], THREE, at_most);
    assert_eq!(counted(6, THIRTY), NextWindow::Counted(Nanos::from_secs(9)));
    assert_eq!(counted(3, THIRTY), NextWindow::Counted(Nanos::from_millis(4_500)));
    assert_eq!(next_window(&[(THREE, never())], THREE, THIRTY), NextWindow::Counted(THREE));
}

#[test]
fn a_length_far_beyond_the_pilot_is_found_by_a_longer_one() {
    let pilots = [(THREE, needs(12))];
    assert_eq!(next_window(&pilots, THREE, THIRTY), NextWindow::Pilot(Nanos::from_secs(6)));
    let pilots = [(THREE, needs(12)), (Nanos::from_secs(6), needs(10))];
    assert_eq!(next_window(&pilots, THREE, THIRTY), NextWindow::Counted(Nanos::from_secs(15)));
}

#[test]
fn pilots_and_window_last_no_longer_than_they_may() {
    let pilots = [(THREE, needs(600))];
    assert_eq!(next_window(&pilots, THREE, THIRTY), NextWindow::Counted(Nanos::from_secs(27)));
    assert_eq!(next_window(&[], THREE, SECOND), NextWindow::Pilot(Nanos::from_millis(400)));
    let pilots = [(Nanos::from_millis(400), needs(60))];
    assert_eq!(next_window(&pilots, THREE, SECOND), NextWindow::Counted(Nanos::from_millis(600)));
}

fn until(text: &str) -> Until {
    Until { precision: text.parse().unwrap(), at_most_ns: None }
}

/// What the load point reached, and the names of its warnings.
fn reached(point: PointBuilder, text: &str) -> (ReachedPrecision, Vec<&'static str>) {
    let mut run = RunBuilder::from_points([point]);
    run.started_mut().asked.get_or_insert_default().until = Some(until(text));
    let result = analyse(&run.raw());
    let point = &result.points[0];
    let warnings = point.warnings.iter().map(|it| it.rule.name()).collect();
    (point.precision.unwrap(), warnings)
}

#[test]
fn a_point_says_how_precise_it_is_and_what_it_would_need() {
    let (good, warnings) = reached(PointBuilder::open(1_000.0), "p50±20%");
    assert!(good.ratio.unwrap() < 0.2 && good.never.is_none(), "{good:?}");
    assert!(!warnings.contains(&"precision_not_reached"), "{warnings:?}");
    let (bad, warnings) = reached(PointBuilder::open(1_000.0), "mean±0.0001%");
    assert_eq!(bad.never, Some(Never::Generator), "the histogram alone leaves more open");
    assert!(warnings.contains(&"precision_not_reached"), "{warnings:?}");
    let (none, _) = reached(PointBuilder::open(1_000.0), "tokens_per_s±5%");
    assert_eq!((none.never, none.ratio), (Some(Never::NoFigure), None));
    let (few, _) = reached(PointBuilder::open(20.0), "p999±20%");
    assert!(few.never.is_none() && few.window_needed_ns > Some(SECOND), "{few:?}");
}

#[test]
fn a_pilot_is_in_no_figure_of_the_run() {
    let mut run = RunBuilder::open(&[1_000.0]);
    run.started_mut().asked.get_or_insert_default().until = Some(until("p99±5%"));
    let alone = analyse(&run.raw());
    let with_pilot = analyse(&run.with_pilot(PointBuilder::open(900.0)).raw());
    assert_eq!((with_pilot.points.len(), with_pilot.probes.len()), (1, 0));
    assert_eq!(alone.points[0].response_ns, with_pilot.points[0].response_ns);
    assert_eq!(alone.verdict, with_pilot.verdict);
}
