//! What limited the run along its loads, in a sentence or two.

use plimsoll_model::limit::{Limit, LimitKind};
use plimsoll_model::result::PointResult;
use plimsoll_model::suite::Suite;

use super::place_text;

/// CPU time of an op that has grown by this much along the ladder is worth a word.
const DEMAND_GROWTH_MIN_RATIO: f64 = 1.25;

/// Tells which limit held from which load on; `climb` are the points by rising load. Nothing where
/// no resource is named.
pub(super) fn story(suite: &Suite, climb: &[&PointResult]) -> Option<String> {
    let mut chapters: Vec<(&PointResult, &Limit)> = Vec::new();
    for point in climb {
        let limit = &point.limit;
        let same = |(_, last): &(&PointResult, &Limit)| same_limit(last, limit);
        if limit.kind.is_resource() && !chapters.last().is_some_and(same) {
            chapters.push((point, limit));
        }
    }
    if chapters.is_empty() {
        return None;
    }
    let told = chapters.iter().enumerate().map(|(index, (point, limit))| {
        let also: Vec<&str> = limit.also.iter().map(|also| also.text.as_str()).collect();
        let also = match also.as_slice() {
            [] => String::new(),
            texts => format!("; and {}", texts.join("; and ")),
        };
        let then = if index == 0 { "" } else { "then " };
        format!("{then}{}{also}, from {} on", limit.text, place_text(suite, point))
    });
    let told = told.collect::<Vec<_>>().join("; ");
    Some(match demand_growth(suite, climb) {
        Some(growth) => format!("{told}. {growth}"),
        None => told,
    })
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
