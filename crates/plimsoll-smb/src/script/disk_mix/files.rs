//! What a client has open, the files it made, and what it reads and writes: how many bytes, of
//! which file, and where.

use plimsoll_engine::rng;

use super::{DiskMix, pick};
use crate::op::{Content, ExpectedLength, HandleNo, SmbCall, SmbOp};
use crate::script::succeeds;
use crate::workspace::{Home, MadeFile, SeedFile};

/// An open file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Open {
    pub file: File,
    pub content: Content,
    /// Where the last read ended.
    pub read_end: Option<u32>,
    /// Where the last write ended.
    pub write_end: Option<u32>,
}

/// Which file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum File {
    /// One that is always there.
    Seed(Home, SeedFile),
    /// One of the client's own making, by its number.
    Made(u32),
}

/// A file of the client's own making.
#[derive(Clone, Copy, Debug)]
pub(super) struct Made {
    pub file: MadeFile,
    /// Content has been written from the beginning to here.
    pub filled: u32,
    /// Its size; what lies between has never been written.
    pub bytes: u32,
    pub open: bool,
}

/// A locked range.
#[derive(Clone, Copy, Debug)]
pub(super) struct Locked {
    pub handle: HandleNo,
    pub offset: u64,
    pub length: u64,
}

/// What a client has open, and the files it made.
#[derive(Debug)]
pub(super) struct Files {
    handles: Vec<Option<Open>>,
    made: Vec<Made>,
    made_so_far: u32,
    /// Opened first and closed last; it has room for every read.
    pub document: Option<HandleNo>,
    /// The same for files of the shared directory.
    pub shared_document: Option<HandleNo>,
    pub locked: Option<Locked>,
}

impl Files {
    /// Nothing open, nothing made.
    pub(super) fn new(handles_open_max: u32) -> Self {
        Self {
            handles: vec![None; handles_open_max as usize],
            made: Vec::new(),
            made_so_far: 0,
            document: None,
            shared_document: None,
            locked: None,
        }
    }

    /// A free handle.
    pub(super) fn free(&self) -> Option<HandleNo> {
        let index = self.handles.iter().position(Option::is_none)?;
        Some(HandleNo(index as u32))
    }

    /// Open files with their handles.
    pub(super) fn open(&self) -> impl Iterator<Item = (HandleNo, &Open)> + Clone {
        let numbered = self.handles.iter().enumerate();
        numbered.filter_map(|(n, open)| Some((HandleNo(n as u32), open.as_ref()?)))
    }

    /// Open files of the client's own, of which it may change data and metadata.
    pub(super) fn own(&self) -> impl Iterator<Item = (HandleNo, &Open)> + Clone {
        self.open().filter(|(_, open)| !open.is_shared())
    }

    /// The file behind a handle.
    pub(super) fn get(&self, handle: HandleNo) -> Option<&Open> {
        self.handles.get(handle.0 as usize)?.as_ref()
    }

    /// The file behind a handle, to update it.
    pub(super) fn get_mut(&mut self, handle: HandleNo) -> Option<&mut Open> {
        self.handles.get_mut(handle.0 as usize)?.as_mut()
    }

    pub(super) fn is_open(&self, file: File) -> bool {
        self.open().any(|(_, open)| open.file == file)
    }

    /// Files of the client's own making.
    pub(super) fn made(&self) -> &[Made] {
        &self.made
    }

    /// Made files that are not open.
    pub(super) fn made_closed(&self) -> impl Iterator<Item = &Made> + Clone {
        self.made.iter().filter(|made| !made.open)
    }

    pub(super) fn made_open(&self) -> usize {
        self.made.iter().filter(|made| made.open).count()
    }

    pub(super) fn made_mut(&mut self, number: u32) -> Option<&mut Made> {
        self.made.iter_mut().find(|made| made.file.number == number)
    }

    /// A name that was never used.
    pub(super) fn make(&mut self) -> MadeFile {
        let file = MadeFile { number: self.made_so_far, renames: 0 };
        self.made_so_far = self.made_so_far.wrapping_add(1);
        self.made.push(Made { file, filled: 0, bytes: 0, open: false });
        file
    }

    pub(super) fn remove(&mut self, number: u32) {
        self.made.retain(|made| made.file.number != number);
    }

    /// Records a file that was opened under a free handle.
    pub(super) fn insert(&mut self, handle: HandleNo, file: File, content: Content) {
        let open = Open { file, content, read_end: None, write_end: None };
        self.handles[handle.0 as usize] = Some(open);
        if let File::Made(number) = file
            && let Some(made) = self.made_mut(number)
        {
            made.open = true;
        }
    }

    /// Takes a file away that was closed.
    pub(super) fn take(&mut self, handle: HandleNo) {
        let Some(open) = self.handles[handle.0 as usize].take() else { return };
        if let File::Made(number) = open.file
            && let Some(made) = self.made_mut(number)
        {
            made.open = false;
        }
        for anchor in [&mut self.document, &mut self.shared_document] {
            if *anchor == Some(handle) {
                *anchor = None;
            }
        }
    }

    /// Size of a made file.
    pub(super) fn size(&self, file: File) -> Option<u32> {
        self.find_made(file).map(|made| made.bytes)
    }

    /// Content that a made file has from its beginning on.
    pub(super) fn filled(&self, file: File) -> Option<u32> {
        self.find_made(file).map(|made| made.filled)
    }

    fn find_made(&self, file: File) -> Option<&Made> {
        let File::Made(number) = file else { return None };
        self.made.iter().find(|made| made.file.number == number)
    }
}

impl Open {
    pub(super) fn is_shared(&self) -> bool {
        matches!(self.file, File::Seed(Home::Shared, _))
    }

    pub(super) fn is_made(&self) -> bool {
        matches!(self.file, File::Made(_))
    }
}

/// Transfers that jump begin at a multiple of this, smaller ones of the next.
const PAGE_BYTES: u32 = 4_096;
const SECTOR_BYTES: u32 = 512;
/// A write of one byte extends a file by this, or by up to [`EXTENSIONS_MAX`] times as much.
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
        let length = self.application().read_sizes.size_at(quantile);
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
                // From the beginning of the largest, so that the next can continue.
                true => candidates.max_by_key(|c| c.filled).map(|c| (c.handle, 0)),
                false => pick(candidates, self.bits(0))
                    .map(|c| (c.handle, jump(c, length, self.bits(1)))),
            };
            any.expect("a document with room for every read is open")
        });
        if sequential.is_some() {
            self.quotas.sequential_reads.take();
        }
        let open = self.files.get_mut(handle).expect("a candidate is open");
        open.read_end = Some(offset + length);
        let content = open.content;
        let verify = self.reads.is_multiple_of(u64::from(self.plan.workload.verify_one_in));
        self.reads += 1;
        succeeds(SmbOp::Read {
            handle,
            offset: u64::from(offset),
            length,
            expected_length: ExpectedLength::Exactly(length),
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
        let length = self.application().write_sizes.size_at(quantile);
        let wants_sequential = self.quotas.sequential_writes.wants();
        let wants_shared = self.quotas.shared_writes.wants();
        if length == 1 {
            return self.extend();
        }
        if let Some(shared) = self.files.shared_document.filter(|_| wants_shared) {
            return self.write_shared(shared, length);
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

    /// A write that changes nothing, to a file that other clients write to too.
    fn write_shared(&mut self, handle: HandleNo, length: u32) -> SmbCall {
        self.quotas.shared_writes.take();
        let open = self.files.get(handle).expect("the shared document is open");
        let document = self.candidate(handle, open, open.write_end);
        let goes_on = document.end.filter(|end| end + length <= document.filled);
        let offset = match goes_on.filter(|_| self.quotas.sequential_writes.is_owed()) {
            Some(end) => {
                self.quotas.sequential_writes.take();
                end
            }
            None => jump(document, length, self.bits(1)),
        };
        self.put_bytes(handle, offset, length)
    }

    /// A write of one byte behind a made file's end. Applications announce the size of a file in
    /// this way: the byte lies ahead, and not in a file that is written in sequence. If there is no
    /// other file, the byte continues that sequence.
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
        let open = self.files.get_mut(handle).expect("a candidate is open");
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

/// Where a transfer of `length` bytes begins that does not continue the last one.
fn jump(to: Candidate, length: u32, bits: u64) -> u32 {
    let positions = to.filled - length.min(to.filled) + 1;
    let unit = if length >= PAGE_BYTES { PAGE_BYTES } else { SECTOR_BYTES };
    let offset = rng::below(bits, u64::from(positions)) as u32 / unit * unit;
    // The last one did not end at the beginning.
    if to.end == Some(offset) { 0 } else { offset }
}
