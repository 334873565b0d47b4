//! What an open file has read or written under an oplock or lease: it need not be asked for again.
//!
//! Only the ranges are kept and no data, because the content of a file follows from its key.

/// Ranges remembered per open; a file read in more places is asked for again.
const RANGES_MAX: usize = 64;

/// Ranges of a file, ascending, apart from each other.
#[derive(Debug, Default)]
pub(super) struct Ranges(Vec<(u64, u64)>);

impl Ranges {
    /// All of the range is known.
    pub(super) fn holds(&self, offset: u64, bytes: u32) -> bool {
        let end = offset.saturating_add(u64::from(bytes));
        let after = self.0.partition_point(|(start, _)| *start <= offset);
        after.checked_sub(1).is_some_and(|at| end <= self.0[at].1)
    }

    /// The range is known from now on.
    pub(super) fn add(&mut self, offset: u64, bytes: u32) {
        let (mut start, mut end) = (offset, offset.saturating_add(u64::from(bytes)));
        let first = self.0.partition_point(|(_, known)| *known < start);
        let beyond = self.0.partition_point(|(known, _)| *known <= end);
        if first < beyond {
            start = start.min(self.0[first].0);
            end = end.max(self.0[beyond - 1].1);
        } else if self.0.len() >= RANGES_MAX || bytes == 0 {
            return;
        }
        self.0.splice(first..beyond, [(start, end)]);
    }

    /// Nothing is known.
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ranges_that_touch_become_one() {
        let mut ranges = Ranges::default();
        ranges.add(0, 10);
        ranges.add(20, 10);
        assert!(!ranges.holds(0, 30) && ranges.holds(0, 10) && ranges.holds(25, 5));
        ranges.add(10, 10);
        assert!(ranges.holds(0, 30) && !ranges.holds(0, 31));
        assert_eq!(ranges.0, [(0, 30)]);
        ranges.clear();
        assert!(!ranges.holds(0, 1));
    }

    proptest! {
        #[test]
        fn a_range_is_known_when_each_of_its_bytes_is(
            added in prop::collection::vec((0u64..100, 1u32..30), 0..40),
            asked in prop::collection::vec((0u64..120, 1u32..30), 0..40),
        ) {
            let mut ranges = Ranges::default();
            let mut known = [false; 200];
            for (offset, bytes) in added {
                ranges.add(offset, bytes);
                known[offset as usize..][..bytes as usize].fill(true);
            }
            for (offset, bytes) in asked {
                let all = known[offset as usize..][..bytes as usize].iter().all(|known| *known);
                prop_assert_eq!(ranges.holds(offset, bytes), all);
            }
        }
    }
}
