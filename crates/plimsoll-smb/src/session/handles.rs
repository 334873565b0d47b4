//! What the server calls the files that a client has open.

use std::mem;

use super::super::op::HandleNo;
use super::super::wire::FileId;
use super::super::wire::create::{LeaseKey, OplockLevel};
use super::ranges::Ranges;

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
