//! An export: its procedures, one call at a time or many in flight.

use std::cell::Cell;
use std::mem;

use super::client::RpcClient;
use super::handles::OwnedHandle;
use super::op::Stability;
use super::parameters::NfsVersion;
use super::procedure::results::{
    self, Attributes, Found, Limits, Made, ReplyError, Space, Written,
};
use super::procedure::{Call, Cookie, Reply};
use super::refusal::{CallError, NfsStatus};
use super::wire::flaws::{Flaw, Flaws};
use super::wire::rpc::ReplyOutcome;

/// Some half a minute of pauses, then a busy server's answer is final.
const BUSY_PAUSES_MAX: u32 = 300;
/// Bytes of a listing per call.
const LISTING_BYTES: u32 = 32 * 1024;
/// Entries of one listing at most; a server that never ends one is broken.
const LISTING_ENTRIES_MAX: usize = 10_000_000;

/// Where calls to be pipelined come from, and where their replies go.
pub(crate) trait Feed {
    /// The next call with a number of the feed's own choice. `None`: nothing can be called before
    /// another reply is there, or ever.
    fn next(&mut self) -> Option<(u32, Call<'_>)>;
    /// The reply to call `number`.
    fn on_reply(&mut self, number: u32, reply: Reply<'_>) -> Result<(), CallError>;
    /// Whether the replies since the last call said that the server wants a pause.
    fn wants_pause(&mut self) -> bool {
        false
    }
}

/// Servers that are busy with something slow say JUKEBOX: call again later. RFC 1813 §2.6
#[derive(Debug, Default)]
pub(crate) struct Retries {
    pauses: u32,
    wants_pause: bool,
}

impl Retries {
    /// Whether this reply means that the call is to be made again.
    pub(crate) fn calls_again(&mut self, reply: Reply<'_>) -> bool {
        let busy = NfsStatus::JUKEBOX.0;
        let is_busy =
            matches!(reply.status(), Err(ReplyError::Status { code, .. }) if code == busy);
        let again = is_busy && self.pauses < BUSY_PAUSES_MAX;
        self.pauses += u32::from(again);
        self.wants_pause |= again;
        again
    }

    /// Whether there should be a pause first; asked once for each.
    pub(crate) fn wants_pause(&mut self) -> bool {
        mem::take(&mut self.wants_pause)
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

/// A name in a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The name.
    pub name: Vec<u8>,
    /// Its attributes, when the server gave them.
    pub attributes: Option<Attributes>,
    /// Its handle, when the server gave it.
    pub handle: Option<OwnedHandle>,
}

impl From<results::Entry<'_>> for Entry {
    fn from(entry: results::Entry<'_>) -> Self {
        let results::Entry { name, attributes, handle, .. } = entry;
        Self { name: name.to_vec(), attributes, handle: handle.map(OwnedHandle::from) }
    }
}

/// What READ brought.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadBack {
    /// The bytes.
    pub data: Vec<u8>,
    /// How many the server says there are.
    pub count: u32,
    /// The file ends here (NFSv3).
    pub is_end: Option<bool>,
}

/// A channel to an NFS server.
pub struct Remote {
    rpc: RpcClient,
    version: NfsVersion,
}

impl Remote {
    /// Speaks NFS through `rpc`.
    pub fn new(rpc: RpcClient, version: NfsVersion) -> Self {
        Self { rpc, version }
    }

    /// Version of NFS.
    pub fn version(&self) -> NfsVersion {
        self.version
    }

    /// Makes all calls of `feed`, up to `window` in flight.
    pub(crate) fn run(&mut self, window: usize, feed: &mut impl Feed) -> Result<(), CallError> {
        let version = self.version;
        self.rpc.begin();
        loop {
            while self.rpc.in_flight() < window {
                let Some((number, call)) = feed.next() else { break };
                self.rpc.post(number, |to| call.encode(version, to))?;
            }
            if self.rpc.in_flight() == 0 {
                return Ok(());
            }
            let mut on_results = |number, results: &[u8]| {
                let flaws = Cell::default();
                feed.on_reply(number, Reply::new(version, results, &flaws))?;
                Ok(flaws.get())
            };
            self.rpc.await_replies(&mut on_results)?;
            if feed.wants_pause() {
                let mut on_results = |number, results: &[u8]| {
                    let flaws = Cell::default();
                    feed.on_reply(number, Reply::new(version, results, &flaws))?;
                    Ok(flaws.get())
                };
                self.rpc.pause(&mut on_results)?;
            }
        }
    }

    /// Makes one call, until the server is not busy; `read` reads the reply.
    fn call<T>(
        &mut self,
        call: Call<'_>,
        read: impl FnOnce(Reply<'_>) -> Result<T, ReplyError>,
    ) -> Result<T, CallError> {
        let version = self.version;
        let mut retries = Retries::default();
        loop {
            let results = self.rpc.call_as(|to| call.encode(version, to))?;
            let flaws = Cell::default();
            let reply = Reply::new(version, &results, &flaws);
            if !retries.calls_again(reply) {
                let read = read(reply);
                self.rpc.note(flaws.get());
                return Ok(read?);
            }
            self.rpc.pause(&mut |_, _| Ok(Flaws::NONE))?;
        }
    }

    /// Notes what is wrong with the reply that came last, and decides nothing.
    pub(crate) fn note(&self, flaw: Flaw) {
        self.rpc.note(flaw.into());
    }

    /// Notes what has shown since to be wrong with a reply to `procedure`.
    pub(crate) fn note_of(&self, procedure: u32, flaw: Flaw) {
        self.rpc.note_of(procedure, flaw.into());
    }

    /// Procedure of the reply that came last.
    pub(crate) fn answered(&self) -> u32 {
        self.rpc.answered()
    }

    /// The server does not have the operation of this call.
    pub(crate) fn lacks(&mut self, call: Call<'_>) -> Result<bool, CallError> {
        match self.call(call, |reply| reply.status()) {
            Err(CallError::Refused(refusal)) => {
                Ok(refusal.outcome == ReplyOutcome::ProcedureUnavailable)
            }
            Err(CallError::Status(status)) => Ok(status == NfsStatus::NOTSUPP),
            Err(error @ (CallError::Stopped | CallError::Channel(_))) => Err(error),
            // What is wrong with its reply shows when the operation is checked.
            Ok(()) | Err(_) => Ok(false),
        }
    }

    /// The procedure that does nothing.
    pub fn null(&mut self) -> Result<(), CallError> {
        let results = self.rpc.call_as(|to| Call::Null.encode(self.version, to))?;
        if !results.is_empty() {
            self.rpc.note(Flaw::TrailingBytes.into());
        }
        Ok(())
    }

    /// Attributes of anything.
    pub fn attributes(&mut self, of: &OwnedHandle) -> Result<Attributes, CallError> {
        self.call(Call::GetAttr(of), |reply| reply.attributes())
    }

    /// Sets the mode.
    pub fn set_mode(&mut self, of: &OwnedHandle, mode: u32) -> Result<(), CallError> {
        self.call(Call::SetMode(of, mode), |reply| reply.set_attributes().map(drop))
    }

    /// Sets the size of a file.
    pub fn set_size(&mut self, of: &OwnedHandle, size: u64) -> Result<(), CallError> {
        self.call(Call::SetSize(of, size), |reply| reply.set_attributes().map(drop))
    }

    /// What `dir` has under `name`.
    pub fn look_up(&mut self, dir: &OwnedHandle, name: &[u8]) -> Result<Found, CallError> {
        self.call(Call::LookUp(dir, name), |reply| Ok(reply.looked_up()?.owned()))
    }

    /// The same, with absence as an answer.
    pub fn find(&mut self, dir: &OwnedHandle, name: &[u8]) -> Result<Option<Found>, CallError> {
        match self.look_up(dir, name) {
            Ok(found) => Ok(Some(found)),
            Err(error) if error.status() == Some(NfsStatus::NOENT) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Makes a file.
    pub fn create(&mut self, dir: &OwnedHandle, name: &[u8]) -> Result<OwnedHandle, CallError> {
        let made = self.call(Call::Create(dir, name), |reply| Ok(handle_of(reply.made()?)))?;
        self.or_found(made, dir, name)
    }

    /// Makes a directory.
    pub fn make_dir(&mut self, dir: &OwnedHandle, name: &[u8]) -> Result<OwnedHandle, CallError> {
        let made = self.call(Call::MakeDir(dir, name), |reply| Ok(handle_of(reply.made()?)))?;
        self.or_found(made, dir, name)
    }

    /// Makes a symbolic link.
    pub fn make_link(
        &mut self,
        dir: &OwnedHandle,
        name: &[u8],
        text: &[u8],
    ) -> Result<OwnedHandle, CallError> {
        let made =
            self.call(Call::MakeLink(dir, name, text), |reply| Ok(handle_of(reply.made_link()?)))?;
        self.or_found(made, dir, name)
    }

    /// Looks it up where the server did not tell.
    fn or_found(
        &mut self,
        made: Option<OwnedHandle>,
        dir: &OwnedHandle,
        name: &[u8],
    ) -> Result<OwnedHandle, CallError> {
        match made {
            Some(handle) => Ok(handle),
            None => self.look_up(dir, name).map(|found| found.handle),
        }
    }

    /// Removes a file or a link.
    pub fn remove(&mut self, dir: &OwnedHandle, name: &[u8]) -> Result<(), CallError> {
        self.call(Call::Remove(dir, name), |reply| reply.removed().map(drop))
    }

    /// Removes an empty directory.
    pub fn remove_dir(&mut self, dir: &OwnedHandle, name: &[u8]) -> Result<(), CallError> {
        self.call(Call::RemoveDir(dir, name), |reply| reply.removed().map(drop))
    }

    /// Gives another name within `dir`.
    pub fn rename(&mut self, dir: &OwnedHandle, from: &[u8], to: &[u8]) -> Result<(), CallError> {
        self.call(Call::Rename(dir, from, to), |reply| reply.renamed())
    }

    /// Which of the accesses in `mask` are granted (NFSv3).
    pub fn access(&mut self, file: &OwnedHandle, mask: u32) -> Result<u32, CallError> {
        self.call(Call::Access(file, mask), |reply| Ok(reply.access()?.access))
    }

    /// Text of a link.
    pub fn link_text(&mut self, link: &OwnedHandle) -> Result<Vec<u8>, CallError> {
        self.call(Call::ReadLink(link), |reply| Ok(reply.link_text()?.text.0.to_vec()))
    }

    /// Bytes of a file from `offset`, at most `bytes`.
    pub fn read(
        &mut self,
        file: &OwnedHandle,
        offset: u64,
        bytes: u32,
    ) -> Result<ReadBack, CallError> {
        self.call(Call::Read(file, offset, bytes), |reply| {
            let results::ReadData { data, count, is_end, .. } = reply.read()?;
            Ok(ReadBack { data: data.to_vec(), count, is_end })
        })
    }

    /// One WRITE; the server may take less than all.
    pub fn write(
        &mut self,
        file: &OwnedHandle,
        offset: u64,
        data: &[u8],
        stability: Stability,
    ) -> Result<Written, CallError> {
        self.call(Call::Write(file, offset, data, stability), |reply| reply.written())
    }

    /// COMMIT of a whole file; answers with the server's verifier (NFSv3).
    pub fn commit(&mut self, file: &OwnedHandle) -> Result<[u8; 8], CallError> {
        self.call(Call::Commit(file), |reply| Ok(reply.committed()?.verifier))
    }

    /// Space of the file system.
    pub fn space(&mut self, of: &OwnedHandle) -> Result<Space, CallError> {
        self.call(Call::FsStat(of), |reply| reply.space())
    }

    /// The server's limits.
    pub fn limits(&mut self, of: &OwnedHandle) -> Result<Limits, CallError> {
        self.call(Call::FsInfo(of), |reply| reply.limits())
    }

    /// All entries of a directory but `.` and `..`, in pages of `bytes`.
    pub fn list_in(
        &mut self,
        dir: &OwnedHandle,
        bytes: u32,
        listing: Listing,
    ) -> Result<Vec<Entry>, CallError> {
        let mut entries = Vec::new();
        let mut from = Cookie::default();
        loop {
            let call = match listing {
                Listing::Names => Call::ReadDir(dir, from, bytes),
                Listing::Full => Call::ReadDirPlus(dir, from, bytes),
            };
            let next = self.call(call, |reply| {
                let page = match listing {
                    Listing::Names => reply.page()?,
                    Listing::Full => reply.full_page()?,
                };
                let named = page.entries.filter(|entry| !matches!(entry.name, b"." | b".."));
                entries.extend(named.map(Entry::from));
                Ok(page.next())
            })?;
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

fn handle_of(made: Made<'_>) -> Option<OwnedHandle> {
    made.handle.map(OwnedHandle::from)
}
