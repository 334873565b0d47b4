//! The server's ids of the files that a client has open, and the ranges read or written under an
//! oplock or lease, which need not be read again.
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
    pub(super) grant: CacheGrant,
    /// What need not be read while reads may be answered from memory.
    pub(super) ranges: Ranges,
}

/// What the server lets a client do without asking.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CacheGrant {
    /// Nothing.
    Nothing,
    /// What the level allows, by an oplock of this open.
    Oplock(OplockLevel),
    /// Reading, by a lease that all opens with its key share.
    Lease(LeaseKey),
}

/// The open files of a client: few, so that a linear search is the fastest.
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

    /// The handle is open from now on. Returns its previous file, which has to be closed.
    pub(super) fn insert(
        &mut self,
        handle: HandleNo,
        file: FileId,
        grant: CacheGrant,
    ) -> Option<FileId> {
        let before = self.remove(handle);
        let ranges = self.spare.pop().unwrap_or_default();
        self.open.push(Open { handle, file, grant, ranges });
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

    /// The oplock of a file has this level from now on; nothing of the file is cached any more.
    /// Returns the previous grant.
    pub(super) fn oplock_broken(&mut self, file: FileId, level: OplockLevel) -> Option<CacheGrant> {
        let open = self.open.iter_mut().find(|open| open.file == file)?;
        open.ranges.clear();
        let grant = match level {
            OplockLevel::None => CacheGrant::Nothing,
            level => CacheGrant::Oplock(level),
        };
        Some(mem::replace(&mut open.grant, grant))
    }

    /// The same of all opens of a lease.
    pub(super) fn lease_broken(&mut self, key: LeaseKey, grant: CacheGrant) {
        for open in self.open.iter_mut().filter(|open| open.grant == CacheGrant::Lease(key)) {
            open.grant = grant;
            open.ranges.clear();
        }
    }
}

/// Ranges remembered per open; a file with more is read again.
const RANGES_MAX: usize = 64;

/// Ranges of a file, ascending, apart from each other.
#[derive(Debug, Default)]
pub(super) struct Ranges(Vec<(u64, u64)>);

impl Ranges {
    /// All of the range is cached.
    pub(super) fn holds(&self, offset: u64, bytes: u32) -> bool {
        let end = offset.saturating_add(u64::from(bytes));
        let after = self.0.partition_point(|(start, _)| *start <= offset);
        after.checked_sub(1).is_some_and(|at| end <= self.0[at].1)
    }

    /// The range is cached from now on.
    pub(super) fn add(&mut self, offset: u64, bytes: u32) {
        let (mut start, mut end) = (offset, offset.saturating_add(u64::from(bytes)));
        let first = self.0.partition_point(|(_, range_end)| *range_end < start);
        let beyond = self.0.partition_point(|(range_start, _)| *range_start <= end);
        if first < beyond {
            start = start.min(self.0[first].0);
            end = end.max(self.0[beyond - 1].1);
        } else if self.0.len() >= RANGES_MAX || bytes == 0 {
            return;
        }
        self.0.splice(first..beyond, [(start, end)]);
    }

    /// Nothing is cached.
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
            queried in prop::collection::vec((0u64..120, 1u32..30), 0..40),
        ) {
            let mut ranges = Ranges::default();
            let mut cached = [false; 200];
            for (offset, bytes) in added {
                ranges.add(offset, bytes);
                cached[offset as usize..][..bytes as usize].fill(true);
            }
            for (offset, bytes) in queried {
                let all = cached[offset as usize..][..bytes as usize].iter().all(|is_cached| *is_cached);
                prop_assert_eq!(ranges.holds(offset, bytes), all);
            }
        }
    }
}
