//! What the charts of a point are drawn from: one entry a second, and response times over the window
//! in coarse buckets.

use plimsoll_model::event::{Phase, PointRecord};
use plimsoll_model::result::{ResponseOverTime, TimelineSecond};
use plimsoll_model::units::NANOS_PER_SECOND;

use crate::blocks::{Coarse, STEPS, lower_edge_ns};
use crate::health::busy_ratio_between;
use crate::raw::{PointTimes, Slice};

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

/// Spans of a point: ten points with that many fill the width of a page.
const SPANS_MAX: usize = 40;
/// Buckets of the slices that make one here: two a doubling, near seven a power of ten.
const MERGED: u16 = STEPS as u16 / 2;

/// Response times across the window; `None` where it has none.
pub(crate) fn response_over_time(
    record: &PointRecord,
    times: &PointTimes,
) -> Option<ResponseOverTime> {
    over_time(record, times, |slice| Some(&slice.response))
}

/// How times of one kind lay within the window; `None` where it has none.
pub(crate) fn over_time<'t>(
    record: &PointRecord,
    times: &'t PointTimes,
    of: impl Fn(&'t Slice) -> Option<&'t Coarse>,
) -> Option<ResponseOverTime> {
    let counts = |slice| of(slice).map(Coarse::counts).unwrap_or_default();
    let slices: Vec<_> = times.slices().map(|(start, slice)| (start, counts(slice))).collect();
    let begin = slices.first()?.0;
    let merged = || {
        let all = slices.iter().flat_map(|(_, counts)| counts.iter());
        all.map(|(bucket, _)| bucket / MERGED)
    };
    let (low, high) = (merged().min()?, merged().max()?);
    let spans = slices.chunks(slices.len().div_ceil(SPANS_MAX));
    let mut starts_ns = Vec::with_capacity(SPANS_MAX + 1);
    let mut counts = Vec::with_capacity(SPANS_MAX);
    for span in spans {
        let mut row = vec![0; usize::from(high - low) + 1];
        for (bucket, count) in span.iter().flat_map(|(_, counts)| counts.iter()) {
            row[usize::from(bucket / MERGED - low)] += u64::from(*count);
        }
        starts_ns.extend(span.first().map(|(start, _)| start.saturating_sub(begin).0));
        counts.push(row);
    }
    let last = starts_ns.last().copied().unwrap_or_default();
    starts_ns.push(record.measured_ns.0.max(last + 1));
    let edges = (low..=high + 1).map(|bucket| lower_edge_ns(bucket * MERGED));
    Some(ResponseOverTime { starts_ns, edges_ns: edges.collect(), counts })
}

#[cfg(test)]
mod tests {
    use plimsoll_model::bundle::IntervalSlice;
    use plimsoll_model::event::{OpTimes, Phase};
    use plimsoll_model::units::Nanos;

    use super::*;
    use crate::testing::RunBuilder;

    fn times(seconds: u32, at: impl Fn(u32) -> u64) -> PointTimes {
        PointTimes::from_seconds((0..seconds).map(|second| {
            let mut times = OpTimes::new();
            times.response.record_n(at(second), 3).unwrap();
            let start = Nanos::from_secs(u64::from(second) + 10);
            IntervalSlice {
                length: Nanos::from_secs(1),
                second: second + 10,
                start,
                phase: Phase::Measure,
                ops: vec![times],
            }
        }))
    }

    fn of(seconds: u32, at: impl Fn(u32) -> u64) -> ResponseOverTime {
        let mut record = RunBuilder::open(&[500.0]).finished_mut(0).clone();
        record.measured_ns = Nanos::from_secs(u64::from(seconds));
        response_over_time(&record, &times(seconds, at)).unwrap()
    }

    #[test]
    fn each_second_has_its_ops_in_their_bucket() {
        let heat = of(3, |second| if second == 1 { 9_000_000 } else { 1_000_000 });
        assert_eq!(heat.starts_ns, [0, 1, 2, 3].map(|s| s * 1_000_000_000));
        // The upper half of a doubling begins at 1.5 × 2^19.
        assert_eq!(heat.edges_ns.first(), Some(&786_432));
        assert_eq!(heat.edges_ns.last(), Some(&12_582_912));
        assert_eq!((heat.counts[0][0], heat.counts[1][0]), (3, 0));
        assert_eq!(heat.counts[1].last(), Some(&3));
    }

    #[test]
    fn no_op_is_lost_and_the_size_is_bounded_however_long_the_window() {
        let heat = of(601, |second| 1 << (second % 40));
        assert!(heat.counts.len() <= SPANS_MAX, "{}", heat.counts.len());
        assert_eq!(heat.starts_ns.len(), heat.counts.len() + 1);
        assert!(heat.counts.iter().all(|row| row.len() + 1 == heat.edges_ns.len()));
        assert_eq!(heat.counts.iter().flatten().sum::<u64>(), 601 * 3);
        assert!(heat.edges_ns.windows(2).all(|pair| pair[0] < pair[1]), "{:?}", heat.edges_ns);
    }
}
