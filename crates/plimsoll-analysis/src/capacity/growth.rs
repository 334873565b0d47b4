//! Do ops in flight grow through the window? Then more comes than is done, and the load would not
//! be held for long, however its figures look so far.
//!
//! Ops in flight are the rate times the response time (Little). The window is cut into blocks of
//! equal length, and a straight line is laid through their means.

use plimsoll_model::assignment::Load;
use plimsoll_model::capacity::TryReason;
use plimsoll_model::event::PointRecord;
use plimsoll_model::units::Nanos;

use crate::blocks::Coarse;
use crate::raw::PointTimes;

/// Blocks of the window.
const BLOCKS: usize = 8;
/// A slope this many times its standard error is no scatter. More than the textbook's 2, because a
/// queue remembers beyond the borders of a block.
const SLOPE_T_MIN: f64 = 4.0;
/// Growth below this factor moves no result.
const GROWTH_MIN_RATIO: f64 = 2.0;
/// Nor does growth by less than this share of the ops that come due meanwhile: so little more than
/// is done is within what a busy moment makes of a queue.
const GROWTH_MIN_SHARE: f64 = 0.005;

/// The growth of an open load's ops in flight, by the line through the blocks; `None` without, or
/// where the window is too short to tell. A closed load cannot have more in flight than its clients.
pub(super) fn growth(record: &PointRecord, times: &PointTimes) -> Option<TryReason> {
    let Load::Open { rate_ops_per_s, .. } = record.load else { return None };
    let rate = rate_ops_per_s.get();
    let in_flight: Vec<f64> =
        block_means_ns(times)?.into_iter().map(|mean_ns| rate * mean_ns / 1e9).collect();
    grown(&in_flight, rate * record.measured_ns.as_secs_f64())
}

/// Mean response time of each block. Slow ops that were due in the window are done late in it: the
/// first slices, which hold fast ones only, are left out.
fn block_means_ns(times: &PointTimes) -> Option<Vec<f64>> {
    let slices: Vec<(Nanos, &Coarse)> =
        times.slices().map(|(start, slice)| (start, &slice.response)).collect();
    let (begin, _) = slices.first()?;
    let longest = slices.iter().filter(|(_, s)| s.n > 0).map(|(_, s)| s.sum_ns / s.n as f64);
    let skipped = begin.0.saturating_add(longest.fold(0.0, f64::max) as u64);
    let slices: Vec<&Coarse> =
        slices.into_iter().filter(|(start, _)| start.0 >= skipped).map(|(_, s)| s).collect();
    let length = slices.len() / BLOCKS;
    if length == 0 {
        return None;
    }
    let blocks = slices[slices.len() - BLOCKS * length..].chunks(length);
    blocks
        .map(|block| {
            let n: u64 = block.iter().map(|slice| slice.n).sum();
            let sum_ns: f64 = block.iter().map(|slice| slice.sum_ns).sum();
            (n > 0).then(|| sum_ns / n as f64)
        })
        .collect()
}

fn grown(values: &[f64], due_ops: f64) -> Option<TryReason> {
    let n = values.len() as f64;
    let middle = (n - 1.0) / 2.0;
    let mean = values.iter().sum::<f64>() / n;
    let off = |index: usize| index as f64 - middle;
    let spread: f64 = (0..values.len()).map(|index| off(index).powi(2)).sum();
    let slope = values.iter().enumerate().map(|(i, v)| off(i) * (v - mean)).sum::<f64>() / spread;
    let rest: f64 =
        values.iter().enumerate().map(|(i, v)| (v - mean - slope * off(i)).powi(2)).sum();
    let error = (rest / (n - 2.0) / spread).sqrt();
    let (from_ops, to_ops) = ((mean - slope * middle).max(0.0), mean + slope * middle);
    let matters =
        to_ops > GROWTH_MIN_RATIO * from_ops && to_ops - from_ops > GROWTH_MIN_SHARE * due_ops;
    let grown = slope > 0.0 && slope > SLOPE_T_MIN * error && matters;
    grown.then_some(TryReason::Growth { from_ops, to_ops })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_that_grows_is_seen_and_one_that_scatters_is_not() {
        let rising = [4.0, 11.0, 14.0, 22.0, 24.0, 33.0, 35.0, 44.0];
        let growth = grown(&rising, 5_000.0);
        let Some(TryReason::Growth { from_ops, to_ops }) = growth else { panic!("{growth:?}") };
        assert!(from_ops < 6.0 && to_ops > 40.0, "{from_ops} {to_ops}");
        assert_eq!(grown(&rising, 10_000.0), None, "less than one in two hundred");
        assert_eq!(grown(&[9.0, 3.0, 14.0, 5.0, 11.0, 4.0, 16.0, 6.0], 100.0), None);
        let high = [80.0, 82.0, 84.0, 86.0, 88.0, 90.0, 92.0, 94.0];
        assert_eq!(grown(&high, 100.0), None, "by a sixth");
    }
}
