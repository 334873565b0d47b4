//! The limits of the run along its loads, in a sentence or two.

use plimsoll_model::limit::{Limit, LimitKind, LimitSpan};
use plimsoll_model::result::PointResult;
use plimsoll_model::sentences::Sentences;
use plimsoll_model::suite::Suite;

use super::client_links::limited_by_clients;
use super::{by_load, generator_limited, lowest_missed, position_text};

/// If the CPU time of an op grew by this much along the ladder, it is reported.
const DEMAND_GROWTH_MIN_RATIO: f64 = 1.25;

/// Names each limit and its first load; `climb` are the points by rising load. `None` where no
/// resource is named. Points above the named ones that name nothing do not undo it.
pub(super) fn story(
    suite: &Suite,
    sentences: &Sentences,
    climb: &[&PointResult],
) -> Option<String> {
    let chapters = chapters(not_contradicted(climb), LimitKind::is_resource);
    if chapters.is_empty() {
        return None;
    }
    let parts = chapters.iter().enumerate().map(|(index, point)| {
        let then = if index == 0 { "" } else { "then " };
        let limit = (sentences.limit_with_others)(&point.limit);
        format!("{then}{limit}, from {} on", position_text(suite, point))
    });
    let mut text = parts.collect::<Vec<_>>().join("; ");
    if let Some(first) = unknown_at_the_end(climb) {
        text = format!("{text}; from {} on the limit is not known", position_text(suite, first));
    }
    Some(match demand_growth(suite, climb) {
        Some(growth) => format!("{text}. {growth}"),
        None => text,
    })
}

/// The same as facts, including limits that are no resource, up to the load that the generator
/// limited. For a ladder that was sustained, the search for its peak has the limit.
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
    let is_shown = |kind| !LEFT_OUT.contains(&kind);
    let lowest = chapters(not_contradicted(&climb), is_shown).into_iter().chain(end);
    let span = |point: &PointResult| LimitSpan { from: point.requested, limit: bare(&point.limit) };
    lowest.map(span).collect()
}

/// The lowest load from which on the generator was the limit, or was disturbed. Where a load above
/// it was measured, the generator was not.
pub(super) fn generator_from(climb: &[&PointResult]) -> Option<usize> {
    let measured = |point: &&PointResult| {
        !limited_by_clients(point) && (point.valid || point.limit.kind.is_resource())
    };
    let above = climb.iter().rposition(measured).map_or(0, |last| last + 1);
    let beyond = || climb[above..].iter();
    let limited = beyond().position(|point| point.limit.kind == LimitKind::Generator);
    Some(above + limited.or_else(|| beyond().position(|point| generator_limited(point)))?)
}

/// The loads above the highest that counts without a limit: a limit below that one was none.
pub(super) fn not_contradicted<'c, 'p>(climb: &'c [&'p PointResult]) -> &'c [&'p PointResult] {
    let followed = |point: &&PointResult| point.counts() && point.limit.kind == LimitKind::None;
    let above = climb.iter().rposition(followed).map_or(0, |last| last + 1);
    &climb[above..]
}

/// The limit without its evidence.
fn bare(limit: &Limit) -> Limit {
    let also = limit.also.iter().map(bare).collect();
    Limit { evidence: Vec::new(), also, ..limit.clone() }
}

/// The first point of each stretch with the same limit, for the limits that `tells` accepts.
fn chapters<'p>(
    climb: &[&'p PointResult],
    is_shown: impl Fn(LimitKind) -> bool,
) -> Vec<&'p PointResult> {
    let mut lowest: Vec<&PointResult> = Vec::new();
    for point in climb.iter().copied().filter(|point| is_shown(point.limit.kind)) {
        if !lowest.last().is_some_and(|last| same_limit(&last.limit, &point.limit)) {
            lowest.push(point);
        }
    }
    lowest
}

/// The lowest of the highest points that name no limit.
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
        let used = point.resources.iter().find(|resource| resource.name == "process.server.cpu")?;
        Some(used.mean / point.achieved_ops_per_s.filter(|rate| *rate > 0.0)?)
    };
    let (first, last) = (*climb.first()?, *climb.last()?);
    let (low, high) = (demand(first)?, demand(last)?);
    (low > 0.0 && high >= DEMAND_GROWTH_MIN_RATIO * low).then(|| {
        format!(
            "CPU time per op grows {:.1} x from {} to {}: contention",
            high / low,
            position_text(suite, first),
            position_text(suite, last)
        )
    })
}
