//! How precise the figure of `--until` is, and how long its window must be.

use plimsoll_model::figure::Figure;
use plimsoll_model::finding::Rule;
use plimsoll_model::gate::GateFigure;
use plimsoll_model::precision::{Never, ReachedPrecision};
use plimsoll_model::result::{NotCounted, PointResult};
use plimsoll_model::units::Nanos;
use plimsoll_model::until::Precision;

use crate::gate::of_point;
use crate::uncertainty::PointIntervals;

/// A window whose sample shows no upper end is prolonged by this factor at least: what would show
/// one does not make it precise.
const OPEN_WINDOWS_MIN: f64 = 4.0;
/// p99.9 over p99 of an exponential tail is 1.5. Beyond this, a few very slow ops decide the mean,
/// and a window without one of them does not show that they exist: 55 % of the windows of a Pareto
/// tail of exponent 2.5 exceed it, and 12 % of those of a lognormal one.
const HEAVY_TAIL_MIN_RATIO: f64 = 2.15;

/// How precise the figure of a load point is, all of whose findings are there.
pub(crate) fn reached_precision(
    requested: &Precision,
    point: &PointResult,
    intervals: &PointIntervals,
) -> ReachedPrecision {
    let never = |never| ReachedPrecision { never: Some(never), ..NOTHING_REACHED };
    let Some(seconds) = point.seconds else { return never(Never::NoFigure) };
    let needed = |windows: f64| Some(Nanos::from_secs_f64(seconds * windows));
    let reported = of_point(&requested.figure, point).filter(|reported| reported.value > 0.0);
    let Some((reported, [low, high])) = reported.and_then(|it| Some((it, it.interval?))) else {
        // A percentile that so few ops do not have.
        let is_response =
            matches!(requested.figure, GateFigure::Response(_) | GateFigure::Service(_));
        return match point.response_ns.is_some_and(|times| times.n > 0) && is_response {
            true => {
                ReachedPrecision { window_needed_ns: needed(OPEN_WINDOWS_MIN), ..NOTHING_REACHED }
            }
            false => never(Never::NoFigure),
        };
    };
    let half_width = (high - low) / 2.0 / reported.value;
    let ratio = Some(half_width).filter(|ratio| ratio.is_finite());
    let of_figure = intervals.find(&requested.figure);
    let drift = |rule: &Rule| matches!(rule, Rule::NotSteady { .. } | Rule::ResponseDrift { .. });
    let mut findings = point.reasons.iter().chain(&point.warnings);
    if point.not_counted == Some(NotCounted::NotHeld) {
        return ReachedPrecision { ratio, ..never(Never::NotHeld) };
    }
    if of_figure.is_some_and(|it| it.drifts) || findings.any(|it| drift(&it.rule)) {
        return ReachedPrecision { ratio, ..never(Never::Drifts) };
    }
    let windows_needed = |width_ratio| of_figure.and_then(|it| it.windows_needed(width_ratio));
    let windows = match ratio {
        Some(_) if of_figure.is_some() => windows_needed(2.0 * requested.ratio),
        Some(ratio) => Some((ratio / requested.ratio).powi(2).max(1.0)),
        None => {
            let shown = windows_needed(0.0).filter(|windows| windows.is_finite());
            Some(shown.unwrap_or_default().max(OPEN_WINDOWS_MIN))
        }
    };
    match windows {
        None => ReachedPrecision { ratio, ..never(Never::Generator) },
        Some(windows) => ReachedPrecision { ratio, window_needed_ns: needed(windows), never: None },
    }
}

const NOTHING_REACHED: ReachedPrecision =
    ReachedPrecision { ratio: None, window_needed_ns: None, never: None };

/// What a reader must know of the precision that a load point was measured to.
pub(crate) fn findings(requested: &Precision, point: &PointResult) -> Vec<Rule> {
    let missed =
        point.precision.filter(|reached| !reached.is_within(requested.ratio)).map(|reached| {
            Rule::PrecisionNotReached {
                requested: requested.to_string(),
                reached,
                window_ns: Nanos::from_secs_f64(point.seconds.unwrap_or_default()),
            }
        });
    missed.into_iter().chain(heavy_tail(requested, point)).collect()
}

fn heavy_tail(requested: &Precision, point: &PointResult) -> Option<Rule> {
    let times = match requested.figure {
        GateFigure::Response(Figure::Mean | Figure::P999) => point.response_ns,
        GateFigure::Service(Figure::Mean | Figure::P999) => point.service_ns,
        _ => None,
    }?;
    let (p99, p999) = (times.p99?, times.p999?);
    (p999 as f64 > HEAVY_TAIL_MIN_RATIO * p99 as f64).then_some(Rule::HeavyTail {
        p99_ns: Nanos(p99),
        p999_ns: Nanos(p999),
        limit_ratio: HEAVY_TAIL_MIN_RATIO,
    })
}

/// How the next window of a load point is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextWindow {
    /// It shows how long the window must be.
    Pilot(Nanos),
    /// It counts.
    Counted(Nanos),
}

/// The window that counts is this many times as long as the pilots ask for: it has a sample of its
/// own, since one that stopped when it was precise would be precise by luck, and with half as much
/// again two in three become as precise as they were to be.
const FRESH_WINDOWS: f64 = 1.5;
/// A pilot knows the length that is needed up to this many times its own.
const FORESIGHT_WINDOWS: u64 = 2;
/// Part of the time that the first pilot may take.
const PILOT_MAX_RATIO: f64 = 0.4;

/// The longest first pilot, and the shortest window that counts, of so much time.
pub fn pilot_max(at_most: Nanos) -> Nanos {
    Nanos::from_secs_f64(at_most.as_secs_f64() * PILOT_MAX_RATIO)
}

/// The next window of a load point after these pilots, given by their lengths and what they
/// reached; pilots and window together last no longer than `at_most`.
pub fn next_window(
    pilots: &[(Nanos, ReachedPrecision)],
    usual: Nanos,
    at_most: Nanos,
) -> NextWindow {
    let usual = usual.min(pilot_max(at_most));
    let Some((length, reached)) = pilots.last() else { return NextWindow::Pilot(usual) };
    let Some(needed) = reached.window_needed_ns else { return NextWindow::Counted(usual) };
    let spent: u64 = pilots.iter().map(|(length, _)| length.0).sum();
    let left = Nanos(at_most.0.saturating_sub(spent));
    if needed.0 > FORESIGHT_WINDOWS * length.0 && needed.0.saturating_mul(2) <= left.0 {
        return NextWindow::Pilot(Nanos(needed.0 / FORESIGHT_WINDOWS));
    }
    let fresh = Nanos::from_secs_f64(needed.as_secs_f64() * FRESH_WINDOWS);
    NextWindow::Counted(fresh.min(left).max(usual))
}

#[cfg(test)]
mod tests;
