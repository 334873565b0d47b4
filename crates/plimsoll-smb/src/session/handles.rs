//! What the server calls the files that a client has open, and what of them has been read or
//! written under an oplock or lease, so that it need not be asked for again.
//!
//! Only the ranges are kept and no data, because the content of a file follows from its key.

use std::mem;

use super::super::op::HandleNo;
use super::super::wire::FileId;
use super::super::wire::create::{LeaseKey, OplockLevel};

/// An open file.
#[derive(Debug)]
pub(super) struct Open {
    handle: HandleNo,
    pub(super) file: FileId,
    pub(super) held: Held,
    /// What need not be asked for while reads may be answered from memory.
    pub(super) ranges: Ranges,
}

/// What the server lets a client do without asking.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Held {
    /// Nothing.
    Nothing,
    /// What the level says, by an oplock of this open.
    Oplock(OplockLevel),
    /// Reading, by a lease that all opens with its key share.
    Lease(LeaseKey),
}

/// The open files of a client: few, so that a search in line is the fastest.
#[derive(Debug, Default)]
pub(super) struct Handles {
    open: Vec<Open>,
    /// Memory of files that were closed.
    spare: Vec<Ranges>,
}

impl Handles {
    pub(super) fn get(&self, handle: HandleNo) -> Option<&Open> {
        self.open.iter().find(|open| open.handle == handle)
    }

    pub(super) fn get_mut(&mut self, handle: HandleNo) -> Option<&mut Open> {
        self.open.iter_mut().find(|open| open.handle == handle)
    }

    /// The handle is open from now on. Answers with what it stood for before, which has to be
    /// closed.
    pub(super) fn insert(&mut self, handle: HandleNo, file: FileId, held: Held) -> Option<FileId> {
        let before = self.remove(handle);
        let ranges = self.spare.pop().unwrap_or_default();
        self.open.push(Open { handle, file, held, ranges });
        before
    }

    /// The handle is closed.
    pub(super) fn remove(&mut self, handle: HandleNo) -> Option<FileId> {
        let at = self.open.iter().position(|open| open.handle == handle)?;
        let Open { file, mut ranges, .. } = self.open.swap_remove(at);
        ranges.clear();
        self.spare.push(ranges);
        Some(file)
    }

    /// The oplock of a file has this level from now on; nothing is known of the file any more.
    /// Answers with what it was.
    pub(super) fn oplock_broken(&mut self, file: FileId, level: OplockLevel) -> Option<Held> {
        let open = self.open.iter_mut().find(|open| open.file == file)?;
        open.ranges.clear();
        let held = match level {
            OplockLevel::None => Held::Nothing,
            level => Held::Oplock(level),
        };
        Some(mem::replace(&mut open.held, held))
    }

    /// The same of all opens of a lease.
    pub(super) fn lease_broken(&mut self, key: LeaseKey, held: Held) {
        for open in self.open.iter_mut().filter(|open| open.held == Held::Lease(key)) {
            open.held = held;
            open.ranges.clear();
        }
    }
}

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
