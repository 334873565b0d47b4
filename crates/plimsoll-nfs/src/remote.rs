//! An export, one question at a time.

use std::mem;

use super::answer::{self, Attributes, Entry, Found, Limits, Page, ReadBack, Space, Written};
use super::ask::{Ask, Bookmark, Query};
use super::client::{Feed, RpcClient, Service};
use super::handles::OwnedHandle;
use super::op::Stability;
use super::parameters::NfsVersion;
use super::refusal::{CallError, NfsStatus};

/// Some half a minute of pauses, then a busy server's answer is final.
const BUSY_PAUSES_MAX: u32 = 300;
/// Bytes of a listing per call.
const LISTING_BYTES: u32 = 32 * 1024;
/// Entries of one listing at most; a server that never ends one is broken.
const LISTING_ENTRIES_MAX: usize = 10_000_000;

/// A channel to an NFS server.
pub struct Remote {
    rpc: RpcClient,
    version: NfsVersion,
    service: Service,
}

/// Servers that are busy with something slow say JUKEBOX: ask again later. RFC 1813 §2.6
#[derive(Debug, Default)]
pub struct Retries {
    pauses: u32,
    wants_pause: bool,
}

impl Retries {
    /// Whether these results mean that the call is to be made again.
    pub fn asks_again(&mut self, results: &[u8]) -> bool {
        let is_busy = match answer::done(results) {
            Err(error) => error.status() == Some(NfsStatus::JUKEBOX),
            Ok(()) => false,
        };
        let again = is_busy && self.pauses < BUSY_PAUSES_MAX;
        self.pauses += u32::from(again);
        self.wants_pause |= again;
        again
    }

    /// Whether there should be a pause first; asked once for each.
    pub fn wants_pause(&mut self) -> bool {
        mem::take(&mut self.wants_pause)
    }
}

/// One question, until it has an answer.
struct Asked<'a> {
    query: Query<'a>,
    is_due: bool,
    retries: Retries,
    results: Vec<u8>,
}

impl Feed for Asked<'_> {
    type Question<'q>
        = Query<'q>
    where
        Self: 'q;

    fn next(&mut self) -> Option<(u32, Query<'_>)> {
        mem::take(&mut self.is_due).then_some((0, self.query))
    }

    fn on_results(&mut self, _: u32, results: &[u8]) -> Result<(), CallError> {
        self.is_due = self.retries.asks_again(results);
        if !self.is_due {
            self.results.extend_from_slice(results);
        }
        Ok(())
    }

    fn wants_pause(&mut self) -> bool {
        self.retries.wants_pause()
    }
}

/// With attributes and handles, or names only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listing {
    /// READDIR.
    Names,
    /// READDIRPLUS; READDIR in NFSv2.
    Full,
}

impl Remote {
    /// Speaks NFS through `rpc`.
    pub fn new(rpc: RpcClient, version: NfsVersion) -> Self {
        let service = answer::service(version);
        Self { rpc, version, service }
    }

    /// Version of NFS.
    pub fn version(&self) -> NfsVersion {
        self.version
    }

    /// Makes all calls of `feed`, up to `window` in flight.
    pub fn run<F: Feed>(&mut self, window: usize, feed: &mut F) -> Result<(), CallError> {
        self.rpc.pipelined(self.service, window, feed)
    }

    /// The procedure that does nothing.
    pub fn null(&mut self) -> Result<(), CallError> {
        self.rpc.call(self.service, &super::client::Bare(0)).map(drop)
    }

    fn ask(&mut self, ask: Ask<'_>) -> Result<Vec<u8>, CallError> {
        let query = Query { version: self.version, ask };
        let mut asked =
            Asked { query, is_due: true, retries: Retries::default(), results: Vec::new() };
        self.rpc.pipelined(self.service, 1, &mut asked)?;
        Ok(asked.results)
    }

    /// Attributes of anything.
    pub fn attributes(&mut self, of: &OwnedHandle) -> Result<Attributes, CallError> {
        answer::attributes(self.version, &self.ask(Ask::GetAttr(of))?)
    }

    /// Sets mode or size.
    pub fn set(&mut self, ask: Ask<'_>) -> Result<(), CallError> {
        answer::done(&self.ask(ask)?)
    }

    /// What `dir` has under `name`.
    pub fn look_up(&mut self, dir: &OwnedHandle, name: &[u8]) -> Result<Found, CallError> {
        answer::looked_up(self.version, &self.ask(Ask::LookUp(dir, name))?)
    }

    /// The same, with absence as an answer.
    pub fn find(&mut self, dir: &OwnedHandle, name: &[u8]) -> Result<Option<Found>, CallError> {
        match self.look_up(dir, name) {
            Ok(found) => Ok(Some(found)),
            Err(error) if error.status() == Some(NfsStatus::NOENT) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Makes a file, directory or link; asks for its handle when the server does not tell.
    pub fn make(
        &mut self,
        ask: Ask<'_>,
        dir: &OwnedHandle,
        name: &[u8],
    ) -> Result<OwnedHandle, CallError> {
        let results = self.ask(ask)?;
        let made = match ask {
            Ask::MakeLink(..) => answer::linked(self.version, &results)?,
            _ => answer::made(self.version, &results)?,
        };
        match made.handle {
            Some(handle) => Ok(handle),
            None => self.look_up(dir, name).map(|found| found.handle),
        }
    }

    /// Makes a file.
    pub fn create(&mut self, dir: &OwnedHandle, name: &[u8]) -> Result<OwnedHandle, CallError> {
        self.make(Ask::Create(dir, name), dir, name)
    }

    /// Makes a directory.
    pub fn make_dir(&mut self, dir: &OwnedHandle, name: &[u8]) -> Result<OwnedHandle, CallError> {
        self.make(Ask::MakeDir(dir, name), dir, name)
    }

    /// Makes a symbolic link.
    pub fn make_link(
        &mut self,
        dir: &OwnedHandle,
        name: &[u8],
        text: &[u8],
    ) -> Result<OwnedHandle, CallError> {
        self.make(Ask::MakeLink(dir, name, text), dir, name)
    }

    /// Removes a file, a link or (`RemoveDir`) a directory, or renames.
    pub fn change(&mut self, ask: Ask<'_>) -> Result<(), CallError> {
        answer::done(&self.ask(ask)?)
    }

    /// Which of the accesses in `mask` are granted (NFSv3).
    pub fn access(&mut self, file: &OwnedHandle, mask: u32) -> Result<u32, CallError> {
        answer::access(&self.ask(Ask::Access(file, mask))?)
    }

    /// Text of a link.
    pub fn link_text(&mut self, link: &OwnedHandle) -> Result<Vec<u8>, CallError> {
        answer::link_text(self.version, &self.ask(Ask::ReadLink(link))?)
    }

    /// Bytes of a file from `offset`, at most `bytes`.
    pub fn read(
        &mut self,
        file: &OwnedHandle,
        offset: u64,
        bytes: u32,
    ) -> Result<ReadBack, CallError> {
        answer::read(self.version, &self.ask(Ask::Read(file, offset, bytes))?)
    }

    /// One WRITE; the server may take less than all.
    pub fn write(
        &mut self,
        file: &OwnedHandle,
        offset: u64,
        data: &[u8],
        stability: Stability,
    ) -> Result<Written, CallError> {
        let results = self.ask(Ask::Write(file, offset, data, stability))?;
        answer::written(self.version, &results, data.len())
    }

    /// COMMIT of a whole file; answers with the server's verifier (NFSv3).
    pub fn commit(&mut self, file: &OwnedHandle) -> Result<[u8; 8], CallError> {
        answer::committed(&self.ask(Ask::Commit(file))?)
    }

    /// Space of the file system.
    pub fn space(&mut self, of: &OwnedHandle) -> Result<Space, CallError> {
        answer::space(self.version, &self.ask(Ask::FsStat(of))?)
    }

    /// The server's limits.
    pub fn limits(&mut self, of: &OwnedHandle) -> Result<Limits, CallError> {
        match self.version {
            NfsVersion::V2 => answer::limits(self.version, &self.ask(Ask::FsStat(of))?),
            NfsVersion::V3 => answer::limits(self.version, &self.ask(Ask::FsInfo(of))?),
        }
    }

    /// One part of a listing.
    pub fn page(
        &mut self,
        dir: &OwnedHandle,
        from: Bookmark,
        bytes: u32,
        listing: Listing,
    ) -> Result<Page, CallError> {
        match (listing, self.version) {
            (Listing::Full, NfsVersion::V3) => {
                answer::full_page(&self.ask(Ask::ReadDirPlus(dir, from, bytes))?)
            }
            _ => answer::page(self.version, &self.ask(Ask::ReadDir(dir, from, bytes))?),
        }
    }

    /// All entries of a directory but `.` and `..`, in pages of `bytes`.
    pub fn list_in(
        &mut self,
        dir: &OwnedHandle,
        bytes: u32,
        listing: Listing,
    ) -> Result<Vec<Entry>, CallError> {
        let mut entries = Vec::new();
        let mut from = Bookmark::default();
        loop {
            let page = self.page(dir, from, bytes, listing)?;
            let next = page.next;
            entries.extend(page.entries.into_iter().filter(|e| !matches!(&*e.name, b"." | b"..")));
            match next {
                Some(next) if next != from && entries.len() <= LISTING_ENTRIES_MAX => from = next,
                _ => return Ok(entries),
            }
        }
    }

    /// All entries of a directory but `.` and `..`.
    pub fn list(&mut self, dir: &OwnedHandle, listing: Listing) -> Result<Vec<Entry>, CallError> {
        let bytes = if self.version == NfsVersion::V2 { 8192 } else { LISTING_BYTES };
        self.list_in(dir, bytes, listing)
    }
}
