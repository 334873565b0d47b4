//! The headline figures of a run, and deviations of its measurements from its method.

use plimsoll_model::event::Bound;
use plimsoll_model::method::{self, MissedLoads, RATE_TOLERANCE};
use plimsoll_model::result::{PointResult, RunResult, Summary};
use plimsoll_model::sentences::Sentences;
use plimsoll_model::suite::{Ladder, LoadSpec, Suite};

use crate::curve::{CurvePoint, overall_response};
use crate::limit::{bound_of, limit_spans, limit_text, position_text};
use crate::point::{bytes_per_s, throughput};
use crate::raw::RunView;
use crate::score::score_of_run;
use crate::shape::shape_of_run;
use crate::validity::planned_points;

/// The headline from the ladder's points; the search only shows their limits.
pub(crate) fn summarise_run(
    suite: &Suite,
    sentences: &Sentences,
    view: &RunView,
    points: &[PointResult],
    probes: &[PointResult],
) -> Summary {
    let best = best_counted(suite, points);
    let (score, score_note) = score_of_run(suite, planned_points(suite, view), points);
    let capped = suite.rules.response_cap_ms.is_some();
    let peak = view.peak.as_ref();
    let bound = bound_of(suite, points, probes, peak.map(|peak| peak.bound));
    // Where throughput still followed the load there was no peak.
    let most = match bound {
        Bound::Exact => "peak throughput",
        Bound::AtLeast => "highest throughput",
    };
    let metric = match (&suite.load, best) {
        (load, Some(best)) if load.is_sessions() => {
            format!("{most}, at {}", position_text(suite, best))
        }
        (LoadSpec::Open { .. }, _) if !capped => "highest sustained load".to_owned(),
        (LoadSpec::Closed { .. }, Some(best)) => {
            format!("{most}, at {}{}", position_text(suite, best), took_part(best))
        }
        _ => most.to_owned(),
    };
    let ended_by = peak.and_then(|peak| peak.ended_by.as_deref());
    Summary {
        metric,
        value: best.and_then(|point| throughput(suite.metric, point)),
        bound,
        unit: suite.metric.unit().to_owned(),
        peak_ops_per_s: points.iter().filter_map(|p| p.achieved_ops_per_s).reduce(f64::max),
        peak_bytes_per_s: points.iter().filter_map(bytes_per_s).reduce(f64::max),
        overall_response_ms: overall_response(&curve(points)),
        score,
        score_note,
        limit: limit_text(suite, sentences, points, probes, ended_by),
        limits: limit_spans(suite, points, probes),
        peak_search: peak.map(|peak| peak.how.clone()),
        curve: shape_of_run(suite, points),
        ..Summary::default()
    }
}

/// The counted point that achieved most. Of equals the first, or the shortest think time.
fn best_counted<'p>(suite: &Suite, points: &'p [PointResult]) -> Option<&'p PointResult> {
    let thinks = matches!(suite.ladder, Ladder::Think { .. });
    let better = |best: &PointResult, point: &PointResult| {
        let [best_rate, rate] = [best, point].map(|point| throughput(suite.metric, point));
        rate > best_rate || (rate == best_rate && thinks && point.requested < best.requested)
    };
    // Of a load that changes, what was sustained.
    let is_steady = |point: &&PointResult| point.phase.as_ref().is_none_or(|phase| phase.is_steady);
    let counted = points.iter().filter(|point| point.counts()).filter(is_steady);
    counted.fold(None, |best: Option<&PointResult>, point| match best {
        Some(best) if !better(best, point) => Some(best),
        _ => Some(point),
    })
}

/// Nothing when all did.
fn took_part(point: &PointResult) -> String {
    match (point.clients_requested, point.clients_participating) {
        (Some(requested), Some(stayed)) if stayed < requested => {
            format!(" ({stayed} of {requested} clients took part)")
        }
        _ => String::new(),
    }
}

/// Mean service time over achieved throughput of the counted points, in the ladder's order.
fn curve(points: &[PointResult]) -> Vec<CurvePoint> {
    points
        .iter()
        .filter(|point| point.counts())
        .filter_map(|point| {
            Some(CurvePoint {
                achieved_ops_per_s: point.achieved_ops_per_s?,
                response_ms: point.service_ns?.mean? / 1e6,
            })
        })
        .collect()
}

/// Names the points of an open ladder that were not sustained, where the method requires all of
/// them.
///
/// The method compares with the *requested* load and forgives nothing. Rule `rate` compares with
/// the ops that the schedule had in the window, because exponential inter-arrival times scatter,
/// forgives two, and leaves a point out.
pub(crate) fn report_missed_loads(result: &mut RunResult, suite: &Suite) {
    if matches!(suite.load, LoadSpec::Closed { .. }) || suite.load.is_sessions() {
        return;
    }
    let tolerance = suite.rules.rate_tolerance_ratio;
    let is_missed = |point: &&PointResult| {
        let off = |achieved: f64| (achieved - point.requested).abs();
        point.achieved_ops_per_s.is_none_or(|rate| off(rate) > tolerance * point.requested)
    };
    let missed = result.points.iter().filter(is_missed).map(|point| point.position);
    let missed_loads = MissedLoads { missed: missed.collect(), of: result.points.len() };
    let row = result.method.iter_mut().find(|row| row.key == RATE_TOLERANCE);
    let Some(row) = row.filter(|row| row.origin.is_the_methods()) else { return };
    if !missed_loads.missed.is_empty() {
        row.deviates_by(&missed_loads);
        result.departures = method::deviations(&result.method);
    }
}

#[cfg(test)]
mod tests;
