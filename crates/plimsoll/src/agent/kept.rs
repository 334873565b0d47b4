//! Slices of the load point that runs, kept in memory until its workers have ended: encoding and
//! compressing them is no work for the window.

use std::collections::VecDeque;
use std::io;

use plimsoll_model::bundle::{IntervalSlice, PackedSlice, SlicePacker};
use plimsoll_model::event::Phase;
use plimsoll_model::units::Nanos;

/// Above this the oldest are to be written while the load runs. Twenty ops and seven kinds of times
/// take 19, 58, 114 MiB in ten minutes at 2,000, 10,000 and 38,000 ops/s (measured, a slice a
/// second, times that scatter over two decades).
const KEPT_BYTES_MAX: usize = 96 * 1024 * 1024;

/// The slices, the oldest first.
#[derive(Default)]
pub(crate) struct KeptSlices {
    packer: SlicePacker,
    slices: VecDeque<PackedSlice>,
    bytes: usize,
}

impl KeptSlices {
    pub(crate) fn keep(&mut self, slice: &IntervalSlice) -> io::Result<()> {
        let packed = self.packer.pack(slice)?;
        self.bytes += packed.memory_bytes();
        self.slices.push_back(packed);
        Ok(())
    }

    /// There are more than memory should hold.
    pub(crate) fn are_too_many(&self) -> bool {
        self.bytes > KEPT_BYTES_MAX
    }

    /// Where the oldest belongs.
    pub(crate) fn next_key(&self) -> Option<(Nanos, Phase)> {
        self.slices.front().map(PackedSlice::key)
    }

    /// Takes in slices that were packed elsewhere.
    pub(crate) fn extend(&mut self, packed: Vec<PackedSlice>) {
        self.bytes += packed.iter().map(PackedSlice::memory_bytes).sum::<usize>();
        self.slices.extend(packed);
    }

    /// All of them, in order.
    pub(crate) fn into_packed(self) -> Vec<PackedSlice> {
        self.slices.into()
    }

    /// Gives the oldest back.
    pub(crate) fn take_oldest(&mut self) -> Option<PackedSlice> {
        let packed = self.slices.pop_front()?;
        self.bytes = self.bytes.saturating_sub(packed.memory_bytes());
        Some(packed)
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_model::event::OpTimes;

    use super::*;

    fn slice(second: u32, times: u64) -> IntervalSlice {
        let mut ops = vec![OpTimes::new(); 2];
        for n in 0..times {
            ops[1].response.record(1_000 + n * 977).unwrap();
        }
        let (start, length) = (Nanos::from_secs(u64::from(second)), Nanos::from_secs(1));
        IntervalSlice { second, start, length, phase: Phase::Measure, ops }
    }

    #[test]
    fn slices_come_back_in_order_with_their_times() {
        let mut kept = KeptSlices::default();
        for second in 0..3 {
            kept.keep(&slice(second, u64::from(second) + 1)).unwrap();
        }
        for second in 0..3 {
            let slice = kept.take_oldest().unwrap().unpack().unwrap();
            assert_eq!(slice.second, second);
            assert_eq!(slice.ops[1].response.len(), u64::from(second) + 1);
            assert!(slice.ops[0].response.is_empty());
        }
        assert!(kept.take_oldest().is_none());
        assert_eq!(kept.bytes, 0);
    }

    #[test]
    fn more_than_memory_should_hold_is_seen_until_the_oldest_are_gone() {
        let mut kept = KeptSlices::default();
        kept.keep(&slice(0, 20_000)).unwrap();
        let each = kept.bytes;
        kept.bytes = KEPT_BYTES_MAX;
        assert!(!kept.are_too_many());
        kept.keep(&slice(1, 20_000)).unwrap();
        assert!(kept.are_too_many() && each < 64 * 1_024, "{each}");
        kept.take_oldest().unwrap();
        assert!(!kept.are_too_many());
    }
}
