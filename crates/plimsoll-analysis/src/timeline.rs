//! One entry a second, for the chart under each point.

use plimsoll_model::event::{Phase, PointRecord};
use plimsoll_model::result::TimelineSecond;
use plimsoll_model::units::NANOS_PER_SECOND;

use crate::health::busy_ratio_between;
use crate::raw::PointTimes;

/// A few late replies in a shorter piece of the drain are no rate: it is left out.
const RATE_MIN_NS: u64 = NANOS_PER_SECOND / 10;

/// The seconds of a point in order; one that holds a border between phases has two entries.
pub(crate) fn timeline(record: &PointRecord, times: Option<&PointTimes>) -> Vec<TimelineSecond> {
    let mut start_ns = 0u64;
    let entries = record.seconds.iter().filter_map(|second| {
        let end_ns = start_ns.saturating_add(second.length_ns);
        let summary = times.and_then(|t| t.second(second.second, second.phase));
        let succeeded = second.done.saturating_sub(second.errors);
        let entry = TimelineSecond {
            second: second.second,
            phase: second.phase.as_str().to_owned(),
            ops_per_s: match second.length_ns {
                0 => 0.0,
                length => succeeded as f64 * NANOS_PER_SECOND as f64 / length as f64,
            },
            errors: second.errors,
            response_p50_ns: summary.and_then(|s| s.response_p50_ns),
            response_p99_ns: summary.and_then(|s| s.response_p99_ns),
            response_max_ns: summary.and_then(|s| s.response_max_ns),
            generator_busy_ratio: busy_ratio_between(record, start_ns, end_ns),
        };
        start_ns = end_ns;
        let is_end = second.phase == Phase::Drain && second.length_ns < RATE_MIN_NS;
        (!is_end || second.errors > 0).then_some(entry)
    });
    entries.collect()
}
