//! Reads and writes: how many bytes, of which file, and where.

use super::files::{File, Open};
use super::{DiskMix, pick};
use crate::op::{HandleNo, SmbCall, SmbOp, Wanted};
use crate::script::succeeds;
use plimsoll_engine::rng;

/// Transfers that jump begin at a multiple of this, smaller ones of the next.
const PAGE_BYTES: u32 = 4_096;
const SECTOR_BYTES: u32 = 512;
/// A write of one byte extends a file by this, or up to so many times as much.
const EXTENSION_BYTES: u32 = 4_096;
const EXTENSIONS_MAX: u32 = 16;

/// An open file that a transfer could go to.
#[derive(Clone, Copy, Debug)]
struct Candidate {
    handle: HandleNo,
    /// Content that is there from the beginning.
    filled: u32,
    /// Where the last transfer of the same direction ended.
    end: Option<u32>,
}

impl DiskMix {
    pub(super) fn read(&mut self) -> SmbCall {
        let quantile = self.draws.read_size.draw(self.owner).quantile;
        let length = self.plan.read_sizes.at(quantile);
        let shared = self.reads_shared();
        let wants_sequential = self.quotas.sequential_reads.wants();
        let candidates = self
            .files
            .open()
            .filter(|(_, open)| open.is_shared() == shared)
            .map(|(handle, open)| self.candidate(handle, open, open.read_end))
            .filter(|candidate| candidate.filled >= length);
        let goes_on = |c: &Candidate| c.end.is_some_and(|end| end + length <= c.filled);
        let next = match wants_sequential {
            true => pick(candidates.clone().filter(goes_on), self.bits(0)),
            false => None,
        };
        let sequential = next.and_then(|c| Some((c.handle, c.end?)));
        let (handle, offset) = sequential.unwrap_or_else(|| {
            let any = match wants_sequential {
                // From the beginning of the largest, so that the next can go on.
                true => candidates.max_by_key(|c| c.filled).map(|c| (c.handle, 0)),
                false => pick(candidates, self.bits(0))
                    .map(|c| (c.handle, jump(c, length, self.bits(1)))),
            };
            any.expect("a document with room for every read is open")
        });
        if sequential.is_some() {
            self.quotas.sequential_reads.take();
        }
        let open = self.files.at(handle).expect("a candidate is open");
        open.read_end = Some(offset + length);
        let content = open.content;
        let verify = self.reads.is_multiple_of(u64::from(self.plan.workload.verify_one_in));
        self.reads += 1;
        succeeds(SmbOp::Read {
            handle,
            offset: u64::from(offset),
            length,
            wanted: Wanted::Exactly(length),
            check: verify.then_some(content),
        })
    }

    /// Whether the next read is of a shared file; what is not open cannot be read.
    fn reads_shared(&mut self) -> bool {
        let wants = self.quotas.shared_reads.wants();
        let shared = match (self.files.document, self.files.shared_document) {
            (Some(_), Some(_)) => wants,
            (_, shared) => shared.is_some(),
        };
        if shared {
            self.quotas.shared_reads.take();
        }
        shared
    }

    pub(super) fn write(&mut self) -> SmbCall {
        let quantile = self.draws.write_size.draw(self.owner).quantile;
        let length = self.plan.write_sizes.at(quantile);
        let wants_sequential = self.quotas.sequential_writes.wants();
        if length == 1 {
            return self.extend();
        }
        let candidates =
            self.files.own().map(|(handle, open)| self.candidate(handle, open, open.write_end));
        let goes_on = |c: &Candidate| {
            // A made file grows, but leaves no hole that it would have to remember.
            let limit =
                if self.is_made(c.handle) { c.filled } else { c.filled.saturating_sub(length) };
            c.end.is_some_and(|end| end <= limit)
        };
        let next = match wants_sequential {
            true => pick(candidates.clone().filter(goes_on), self.bits(0)),
            false => None,
        };
        let sequential = next.and_then(|c| Some((c.handle, c.end?)));
        let (handle, offset) = sequential.unwrap_or_else(|| {
            let fits = |c: &Candidate| self.is_made(c.handle) || c.filled >= length;
            // What grows can always go on.
            let grows = |c: &Candidate| fits(c) && (self.is_made(c.handle) || !wants_sequential);
            let any = pick(candidates.filter(grows), self.bits(0));
            let any = any.expect("a made file is open while writes are left");
            match self.is_made(any.handle) {
                true if any.end != Some(any.filled) => (any.handle, any.filled),
                true => (any.handle, jump(any, 1, self.bits(1))),
                false => (any.handle, jump(any, length, self.bits(1))),
            }
        });
        if sequential.is_some() {
            self.quotas.sequential_writes.take();
        }
        self.put_bytes(handle, offset, length)
    }

    /// A write of one byte behind a made file's end. Applications announce so how large a file will
    /// be: it lies ahead, and a file that is written in sequence is spared. Where there is no
    /// other, the byte goes on with that sequence.
    fn extend(&mut self) -> SmbCall {
        let made = || self.files.open().filter(|(_, open)| open.is_made());
        let goes_on = |open: &Open| open.write_end.is_some() && open.write_end == self.end(open);
        if let Some((handle, open)) = pick(made().filter(|(_, o)| !goes_on(o)), self.bits(0)) {
            let bytes = self.files.size(open.file).unwrap_or_default();
            let ahead = EXTENSION_BYTES * (1 + self.below(1, EXTENSIONS_MAX));
            return self.put_bytes(handle, bytes + ahead - 1, 1);
        }
        let any = pick(made(), self.bits(0));
        let (handle, open) = any.expect("a made file is open while writes are left");
        let end = self.files.size(open.file).unwrap_or_default();
        self.quotas.sequential_writes.take();
        self.put_bytes(handle, end, 1)
    }

    /// End of a made file without a hole in it.
    fn end(&self, open: &Open) -> Option<u32> {
        let (bytes, filled) = (self.files.size(open.file)?, self.files.filled(open.file)?);
        (bytes == filled).then_some(bytes)
    }

    fn put_bytes(&mut self, handle: HandleNo, offset: u32, length: u32) -> SmbCall {
        let open = self.files.at(handle).expect("a candidate is open");
        let (file, content, end) = (open.file, open.content, offset + length);
        open.write_end = Some(end);
        if let File::Made(number) = file
            && let Some(made) = self.files.made_mut(number)
        {
            made.bytes = made.bytes.max(end);
            if offset <= made.filled {
                made.filled = made.filled.max(end);
            }
        }
        succeeds(SmbOp::Write { handle, offset: u64::from(offset), length, content })
    }

    fn candidate(&self, handle: HandleNo, open: &Open, end: Option<u32>) -> Candidate {
        let filled = match open.file {
            File::Seed(_, file) => self.plan.workspace.bytes_of(file),
            File::Made(_) => self.files.filled(open.file).unwrap_or_default(),
        };
        Candidate { handle, filled, end }
    }

    fn is_made(&self, handle: HandleNo) -> bool {
        self.files.get(handle).is_some_and(Open::is_made)
    }
}

/// Where a transfer of `length` bytes begins that does not go on where the last ended.
fn jump(to: Candidate, length: u32, bits: u64) -> u32 {
    let places = to.filled - length.min(to.filled) + 1;
    let unit = if length >= PAGE_BYTES { PAGE_BYTES } else { SECTOR_BYTES };
    let offset = rng::below(bits, u64::from(places)) as u32 / unit * unit;
    // The last one did not end at the beginning.
    if to.end == Some(offset) { 0 } else { offset }
}
