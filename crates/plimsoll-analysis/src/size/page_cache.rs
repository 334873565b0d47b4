//! How much memory saves how many disks: by the predicted misses of the last usable load point.

use plimsoll_model::cost::CostFigure;
use plimsoll_model::page_cache::PredictedMisses;
use plimsoll_model::result::PointResult;
use plimsoll_model::size::{DisksWithMemory, Need, PageCacheSize, Sizing, Unknown};

use super::measured::host;
use crate::compare::RunInput;
use crate::limit::generator_limited;

/// Adds the answer, or why there is none although it was requested.
pub(super) fn add_page_cache(sizing: &mut Sizing, runs: &[RunInput]) {
    if sizing.refused.is_some() {
        return;
    }
    let points = runs.iter().flat_map(|run| &run.result.points);
    let usable = points.filter(|point| point.valid && !generator_limited(point));
    match usable.filter_map(FileReads::from_point).next_back() {
        Some(reads) => sizing.page_cache = Some(reads.size(sizing)),
        None if sizing.asked.memory_bytes.is_some() => sizing.unknown.push(Unknown::AccessPattern),
        None => {}
    }
}

/// What the ops of a load point read.
struct FileReads<'a> {
    predicted: &'a PredictedMisses,
    sent_bytes_per_op: f64,
    written_bytes_per_op: f64,
    disks: f64,
    bytes_per_transfer: Option<f64>,
}

impl<'a> FileReads<'a> {
    fn from_point(point: &'a PointResult) -> Option<Self> {
        let (cache, host) = (point.page_cache.as_ref()?, host(point)?);
        let sent = point.bytes_read? as f64 / (point.achieved_ops_per_s? * point.seconds?);
        let of_disks = |figure| host.figures.get(&figure).map_or(0.0, |cost| cost.value);
        let bytes = of_disks(CostFigure::DiskBytesPerOp);
        let per_transfer = bytes / of_disks(CostFigure::DiskTransfersPerOp);
        Some(Self {
            predicted: cache.predicted.as_ref()?,
            sent_bytes_per_op: sent,
            written_bytes_per_op: (bytes - sent * cache.miss_ratio).max(0.0),
            disks: host.disks.len().max(1) as f64,
            bytes_per_transfer: Some(per_transfer).filter(|bytes| bytes.is_finite()),
        })
    }

    fn size(&self, sizing: &Sizing) -> PageCacheSize {
        let load = sizing.asked.load_ops_per_s;
        let own_bytes = sizing.memory.as_ref().map_or(0.0, |need| need.total.value);
        let of_one = self.bytes_per_s_of_disk(sizing);
        let with = |memory: f64| {
            let bytes = (memory - own_bytes).max(0.0);
            let miss_ratio = interpolated(&self.predicted.curve, bytes);
            let per_op = self.sent_bytes_per_op * miss_ratio + self.written_bytes_per_op;
            DisksWithMemory { bytes, miss_ratio, disks: of_one.map(|one| load * per_op / one) }
        };
        let enough = |of_one: f64| {
            let read = self.disks * of_one / load - self.written_bytes_per_op;
            // Memory over misses, the fewest first.
            let pairs = self.predicted.curve.iter().rev().map(|(bytes, misses)| (*misses, *bytes));
            let pairs: Vec<_> = pairs.collect();
            (read >= 0.0).then(|| interpolated(&pairs, read / self.sent_bytes_per_op))
        };
        PageCacheSize {
            disks: self.disks,
            disk_bytes_per_s: of_one,
            enough_bytes: of_one.and_then(enough),
            full_bytes: self.predicted.full_bytes,
            with: sizing.asked.memory_bytes.map(with),
        }
    }

    /// What one disk may transfer, headroom included: by its bytes, or by its transfers of the
    /// measured size if that is less.
    fn bytes_per_s_of_disk(&self, sizing: &Sizing) -> Option<f64> {
        let each = |need: &Option<Need>| Some(need.as_ref()?.each?.value);
        let declared = &sizing.asked.stated;
        let by_bytes = declared.disk_bytes_per_s.or(each(&sizing.disks_by_bytes));
        let transfers = declared.disk_transfers_per_s.or(each(&sizing.disks_by_iops));
        let by_transfers = transfers.zip(self.bytes_per_transfer).map(|(each, bytes)| each * bytes);
        let least = by_bytes.into_iter().chain(by_transfers).reduce(f64::min);
        least.filter(|bytes| *bytes > 0.0).map(|bytes| bytes * sizing.asked.headroom_ratio)
    }
}

/// The second of rising pairs at `x` of the first; at the ends those of the ends.
fn interpolated(pairs: &[(f64, f64)], x: f64) -> f64 {
    let after = pairs.partition_point(|pair| pair.0 <= x);
    match (after.checked_sub(1).and_then(|before| pairs.get(before)), pairs.get(after)) {
        (Some(from), Some(to)) => from.1 + (to.1 - from.1) * (x - from.0) / (to.0 - from.0),
        (Some(end), None) | (None, Some(end)) => end.1,
        (None, None) => 0.0,
    }
}
