//! Which points and seconds drawings and tables show.

use plimsoll_model::result::{PointResult, RunResult, TimelineSecond};

/// The points whose distribution is worth a line: the first, a middle and the last that count. A
/// run in which none does shows any.
pub(crate) fn selected_points(run: &RunResult) -> Vec<&PointResult> {
    let drawn = |p: &&PointResult| p.response_percentiles.len() > 1;
    let mut points: Vec<_> = run.points.iter().filter(|p| p.counts()).filter(drawn).collect();
    if points.is_empty() {
        points = run.points.iter().filter(drawn).collect();
    }
    let last = points.len().saturating_sub(1);
    let mut chosen = vec![0, last / 2, last];
    chosen.dedup();
    chosen.into_iter().filter_map(|i| points.get(i).copied()).collect()
}

/// The response time a timeline shows: p99, or what there is instead.
pub(crate) fn timeline_time(
    point: &PointResult,
) -> (&'static str, fn(&TimelineSecond) -> Option<u64>) {
    let has =
        |pick: fn(&TimelineSecond) -> Option<u64>| point.timeline.iter().any(|s| pick(s).is_some());
    if has(|s| s.response_p99_ns) {
        ("p99", |s| s.response_p99_ns)
    } else if has(|s| s.response_max_ns) {
        ("longest", |s| s.response_max_ns)
    } else {
        ("p50", |s| s.response_p50_ns)
    }
}

/// Seconds grouped so that at most `spans_max` remain: what a drawing or a table has room for.
pub(crate) fn timeline_spans(
    seconds: &[TimelineSecond],
    spans_max: usize,
) -> Vec<&[TimelineSecond]> {
    seconds
        .chunk_by(|a, b| a.phase == b.phase)
        .flat_map(|phase| phase.chunks(seconds.len().div_ceil(spans_max.max(1)).max(1)))
        .collect()
}
