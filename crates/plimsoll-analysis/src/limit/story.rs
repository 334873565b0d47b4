//! What limited the run along its loads, in a sentence or two.

use plimsoll_model::limit::{Limit, LimitKind, LimitSpan};
use plimsoll_model::result::PointResult;
use plimsoll_model::suite::Suite;

use super::{by_load, generator_limited, lowest_missed, place_text};

/// CPU time of an op that has grown by this much along the ladder is worth a word.
const DEMAND_GROWTH_MIN_RATIO: f64 = 1.25;

/// Tells which limit held from which load on; `climb` are the points by rising load. Nothing where
/// no resource is named. Points above the named ones that name nothing do not undo it.
pub(super) fn story(suite: &Suite, climb: &[&PointResult]) -> Option<String> {
    let chapters = chapters(climb, LimitKind::is_resource);
    if chapters.is_empty() {
        return None;
    }
    let told = chapters.iter().enumerate().map(|(index, point)| {
        let then = if index == 0 { "" } else { "then " };
        format!("{then}{}, from {} on", point.limit.sentence(), place_text(suite, point))
    });
    let mut told = told.collect::<Vec<_>>().join("; ");
    if let Some(first) = unknown_at_the_end(climb) {
        told = format!("{told}; from {} on the limit is not known", place_text(suite, first));
    }
    Some(match demand_growth(suite, climb) {
        Some(growth) => format!("{told}. {growth}"),
        None => told,
    })
}

/// The same as facts, with what no resource is, up to the load that the generator limited. Of a
/// ladder that was held, the search for its peak tells.
pub(crate) fn limit_spans(
    suite: &Suite,
    points: &[PointResult],
    probes: &[PointResult],
) -> Vec<LimitSpan> {
    const LEFT_OUT: [LimitKind; 3] = [LimitKind::None, LimitKind::Unknown, LimitKind::Generator];
    let mut climb = by_load(suite, points);
    if climb.iter().all(|point| point.limit.kind == LimitKind::None) {
        climb.extend(lowest_missed(probes));
    }
    let end = match generator_from(&climb) {
        Some(reached) => climb.drain(reached..).next(),
        None => unknown_at_the_end(&climb),
    };
    let lowest = chapters(&climb, |kind| !LEFT_OUT.contains(&kind)).into_iter().chain(end);
    let span = |point: &PointResult| LimitSpan { from: point.requested, limit: bare(&point.limit) };
    lowest.map(span).collect()
}

/// The lowest load from which on the generator was the limit. Where a resource held back a load
/// above it, something had disturbed the generator: the server's limit was seen.
pub(super) fn generator_from(climb: &[&PointResult]) -> Option<usize> {
    let seen = climb.iter().rposition(|point| point.limit.kind.is_resource());
    let above = seen.map_or(0, |last| last + 1);
    let reached = climb[above..].iter().position(|point| generator_limited(point))?;
    Some(above + reached)
}

/// What it is, without what shows it.
fn bare(limit: &Limit) -> Limit {
    let also = limit.also.iter().map(bare).collect();
    Limit { evidence: Vec::new(), also, ..limit.clone() }
}

/// The first point of each stretch with the same limit, of limits that `tells` is for.
fn chapters<'p>(
    climb: &[&'p PointResult],
    tells: impl Fn(LimitKind) -> bool,
) -> Vec<&'p PointResult> {
    let mut lowest: Vec<&PointResult> = Vec::new();
    for point in climb.iter().copied().filter(|point| tells(point.limit.kind)) {
        if !lowest.last().is_some_and(|last| same_limit(&last.limit, &point.limit)) {
            lowest.push(point);
        }
    }
    lowest
}

/// The lowest of the highest points that name nothing.
fn unknown_at_the_end<'p>(climb: &[&'p PointResult]) -> Option<&'p PointResult> {
    climb.iter().rev().take_while(|point| point.limit.kind == LimitKind::Unknown).last().copied()
}

fn same_limit(a: &Limit, b: &Limit) -> bool {
    let also = |limit: &Limit| -> Vec<LimitKind> { limit.also.iter().map(|l| l.kind).collect() };
    a.kind == b.kind && a.place == b.place && also(a) == also(b)
}

/// The server's CPU time per op at the highest load over that at the lowest.
fn demand_growth(suite: &Suite, climb: &[&PointResult]) -> Option<String> {
    let demand = |point: &PointResult| {
        let used = point.resources.iter().find(|found| found.name == "process.server.cpu")?;
        Some(used.mean / point.achieved_ops_per_s.filter(|rate| *rate > 0.0)?)
    };
    let (first, last) = (*climb.first()?, *climb.last()?);
    let (low, high) = (demand(first)?, demand(last)?);
    (low > 0.0 && high >= DEMAND_GROWTH_MIN_RATIO * low).then(|| {
        format!(
            "CPU time per op grows {:.1} x from {} to {}: contention",
            high / low,
            place_text(suite, first),
            place_text(suite, last)
        )
    })
}
