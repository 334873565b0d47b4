//! Journeys of users: their counts, and the intervals of their times and of those of their pages.

use plimsoll_model::event::{JourneyCounts, OpTimes, PointRecord, RunStarted, TimeKind};
use plimsoll_model::result::{JourneySummary, PointResult};
use plimsoll_model::units::Nanos;

use crate::point::per_second;
use crate::raw::PointTimes;
use crate::standard_error::StandardError;
use crate::times::summarise;
use crate::uncertainty::{interval_of_share, page_intervals, stream_intervals};

/// `None` where there were none.
fn journeys(record: &PointRecord, total: &OpTimes) -> Option<JourneySummary> {
    let JourneyCounts { begun, completed, failed, abandoned, pages, redirects, ignored_cookies } =
        record.totals.journeys;
    let times = |kind: TimeKind| kind.times_in(total).map(|times| summarise(times, &[]));
    let ended = completed + failed + abandoned;
    let completed_ratio = (ended > 0).then(|| completed as f64 / ended as f64);
    (!record.totals.journeys.is_empty()).then(|| JourneySummary {
        begun,
        completed,
        failed,
        abandoned,
        completed_ratio,
        completed_interval_ratio: completed_ratio.map(|ratio| interval_of_part(ratio, ended)),
        completed_per_s: per_second(record, completed),
        pages,
        redirects,
        ignored_cookies,
        time_ns: times(TimeKind::Journey),
        time_interval_ns: None,
        busy_ns: times(TimeKind::JourneyBusy),
    })
}

/// Of independent journeys.
fn interval_of_part(ratio: f64, journeys: u64) -> [f64; 2] {
    let independent = StandardError { error: 0.0, degrees: journeys as usize, drifts: false };
    interval_of_share([ratio, ratio], journeys as f64, independent)
}

/// Adds the journeys of a point, and the intervals of their times and of those of their pages. `total`
/// is merged over window and ops.
pub(crate) fn add_journeys(
    result: &mut PointResult,
    started: &RunStarted,
    record: &PointRecord,
    (total, times): (&OpTimes, &PointTimes),
) {
    let Some(journeys) = journeys(record, total) else { return };
    let time_interval_ns = stream_intervals(record, total, times, TimeKind::Journey);
    result.journeys = Some(JourneySummary { time_interval_ns, ..journeys });
    for (number, name) in started.op_names.0.iter().enumerate() {
        let Some(op) = result.ops.get_mut(name) else { continue };
        op.page_interval_ns = page_intervals(record, total, times, number);
        let pages = times.window().get(number).and_then(|op| TimeKind::Page.times_in(op));
        let (Some(pages), Some(limits)) = (pages, started.page_limits.get(number)) else {
            continue;
        };
        let ended = (pages.len() + op.errors).max(1) as f64;
        let within = |limit: Nanos| pages.count_between(0, limit.0) as f64 / ended;
        (op.good_ratio, op.tolerable_ratio) =
            (limits.good.map(within), limits.tolerable.map(within));
    }
}
