//! A server's services in set-up: the measured session with blocking calls, one at a time or many
//! in flight.

use std::cell::Cell;
use std::collections::HashMap;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use plimsoll_engine::interface::{ClientContext, LinkKind, Session as _, Ticket};
use plimsoll_model::outcome::{OpKind, OpStatus};
use plimsoll_model::units::Nanos;
use plimsoll_protocol::blocking::{Blocking, BlockingError, SILENCE_MAX};
use plimsoll_protocol::net::{ChannelError, Dial, NonconformityLog, SourcePort};

use super::client::NfsClient;
use super::handles::OwnedHandle;
use super::nonconformity::nonconformity;
use super::op::{NfsCall, NfsOp, Stability};
use super::parameters::NfsVersion;
use super::procedure::results::{
    self, Attributes, Limits, LookupResult, Made, ReplyError, Space, Written,
};
use super::procedure::{Call, Cookie, Dialect, Reply};
use super::refusal::{CallError, RpcRefusal};
use super::session::{Granted, NfsSite};
use super::wire::flaws::{Flaw, Flaws};
use super::wire::rpc::{CallWriter, ReplyHead, ReplyOutcome, Service, procedure_of};
use super::wire::v3::{self, Status3};
use super::wire::v4::Status4;
use super::wire::xdr::{Decode, Encode, XdrIn};

/// Calls in flight on a stream.
const WINDOW: u32 = 16;
/// Datagrams in flight on one channel: what all channels have there fits into the receive buffer
/// that a socket has by default, 208 KiB, so that none is lost.
const DATAGRAM_WINDOW: u32 = 2;
/// Silence on a stream after which the server counts as hung. A COMMIT of much data takes long.
const STREAM_WAITS: [Duration; 1] = [SILENCE_MAX];
/// Waits for a reply to datagrams, which are sent again after each but the last.
const DATAGRAM_WAITS: [Duration; 4] = [
    Duration::from_secs(1),
    Duration::from_secs(2),
    Duration::from_secs(4),
    Duration::from_secs(8),
];
/// How long a busy server is left alone.
const PAUSE: Duration = Duration::from_millis(100);
/// After two minutes a busy server's answer is final; grace periods of NFSv4.1 mostly take 90 s.
const BUSY_PAUSES_MAX: u32 = 1_200;
/// How long a server may take to destroy a session.
const LOG_OFF_WAIT: Duration = Duration::from_millis(500);
/// Bytes of a listing per call.
const LISTING_BYTES: u32 = 32 * 1024;
/// Most entries of one listing; a server that never ends one is broken.
const LISTING_ENTRIES_MAX: usize = 10_000_000;

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
    /// The number of bytes that the server reports.
    pub count: u32,
    /// The file ends here (NFSv3).
    pub is_end: Option<bool>,
}

/// A channel to a service of a server, mostly NFS.
pub struct Remote {
    blocking: Blocking<NfsClient>,
    site: Rc<NfsSite>,
    service: Service,
    log: NonconformityLog,
    /// Calls so far; their numbers are tickets.
    calls: u32,
    /// Procedure of the reply that came last.
    answered: u32,
}

/// A server forgets a client that does not log off when its lease ends.
impl Drop for Remote {
    fn drop(&mut self) {
        self.blocking.log_off(LOG_OFF_WAIT);
    }
}

/// Why calls ended early, and the step that failed, if it was one of them.
pub(crate) type Failed<S> = (CallError, Option<S>);

impl Remote {
    /// Opens a channel. Two clients of one run must differ in `first_xid` by far: a server keeps
    /// replies by xid. What is done over the channel ends soon after `stop` is raised.
    pub(crate) fn open(
        site: NfsSite,
        (service, address, source): (Service, SocketAddr, SourcePort),
        first_xid: u32,
        dial: &dyn Dial,
        stop: Arc<AtomicBool>,
    ) -> Result<Self, ChannelError> {
        let window = match site.link {
            LinkKind::Stream => WINDOW,
            LinkKind::Datagram => DATAGRAM_WINDOW,
        };
        let (op_timeout, site) = (Nanos::MAX, Rc::new(site));
        // Unique, as its xids are.
        let nonce = u64::from(first_xid) << 32 | u64::from(std::process::id());
        let client = ClientContext { client: 0, endpoint: 0, seed: 0, op_timeout, nonce };
        let session = NfsClient::new(Rc::clone(&site), client, window).numbered_from(first_xid);
        let blocking = Blocking::new(session, dial.dial(address, site.link, source)?, stop);
        let log = dial.nonconformities();
        Ok(Self { blocking, site, service, log, calls: 0, answered: 0 })
    }

    /// Version of NFS.
    pub fn version(&self) -> NfsVersion {
        self.site.version
    }

    /// What the server granted to the session of NFSv4.1.
    pub(crate) fn granted(&self) -> Granted {
        self.blocking.session().granted()
    }

    /// The form of its calls.
    pub(crate) fn dialect(&self) -> Dialect {
        self.site.dialect().of_client(self.granted().client_id)
    }

    /// Makes the calls of all `steps`, the last first, and of those that `on_reply` adds because of
    /// a reply; many are in flight. Servers that are busy with something slow answer JUKEBOX: their
    /// calls are made again later (RFC 1813 §2.6).
    pub(crate) fn run<S: Copy>(
        &mut self,
        mut steps: Vec<S>,
        call: impl Fn(S, CallWriter<'_>),
        mut on_reply: impl FnMut(S, Reply<'_>, &mut Vec<S>) -> Result<(), CallError>,
    ) -> Result<(), Failed<S>> {
        let (mut in_flight, mut busy, mut pauses) = (HashMap::new(), Vec::new(), 0);
        // Those of a run that failed.
        self.blocking.session_mut().forget_calls();
        loop {
            // A busy server is left alone.
            while busy.is_empty()
                && self.blocking.session().has_room()
                && let Some(step) = steps.pop()
            {
                let posted = self.post(|to| call(step, to));
                in_flight.insert(posted.0, (posted.1, step));
            }
            if in_flight.is_empty() {
                if busy.is_empty() {
                    return Ok(());
                }
                self.blocking.pause(PAUSE).map_err(|error| (error.into(), None))?;
                pauses += 1;
                steps.append(&mut busy);
                continue;
            }
            let (ticket, message) = self.next_answer().map_err(|error| (error, None))?;
            let Some((procedure, step)) = in_flight.remove(&ticket) else { continue };
            self.answered = procedure;
            let flaws = Cell::default();
            let results = self.results(&message).map_err(|error| (error, None))?;
            let reply = Reply::new(self.site.version, results, &flaws);
            if self.is_busy(reply) && pauses < BUSY_PAUSES_MAX {
                busy.push(step);
                continue;
            }
            let result = on_reply(step, reply, &mut steps);
            self.note_of(procedure, flaws.get());
            result.map_err(|error| (error, Some(step)))?;
        }
    }

    /// Sends a call; answers with its number and its procedure.
    fn post(&mut self, write: impl FnOnce(CallWriter<'_>)) -> (Ticket, u32) {
        let ticket = Ticket(self.calls);
        self.calls = self.calls.wrapping_add(1);
        let out = self.blocking.session_mut().composed();
        write(CallWriter { xid: 0, credential: &self.site.credential, out });
        let procedure = procedure_of(out).unwrap_or_default();
        self.blocking.issue(ticket, NfsOp::first(OpKind(0), NfsCall::Composed));
        (ticket, procedure)
    }

    /// Waits for the next reply.
    fn next_answer(&mut self) -> Result<(Ticket, Vec<u8>), CallError> {
        let waits: &[Duration] = match self.site.link {
            LinkKind::Stream => &STREAM_WAITS,
            LinkKind::Datagram => &DATAGRAM_WAITS,
        };
        for (number, wait) in waits.iter().enumerate() {
            if number > 0 {
                // Sends the datagrams again; no call ends by that.
                self.blocking.session_mut().retry_all();
                let _ = self.blocking.time_out();
            }
            let ended = match self.blocking.next_end_within(*wait) {
                Err(BlockingError::Channel(ChannelError::Timeout)) => continue,
                ended => ended?,
            };
            return match (ended.outcome.status, self.blocking.session_mut()) {
                (OpStatus::Ok, session) => {
                    Ok((ended.ticket, session.take_answer().unwrap_or_default()))
                }
                (_, session) => Err(match session.lost() {
                    Some(reason) => CallError::Session(reason),
                    None => CallError::Stream(ended.detail),
                }),
            };
        }
        Err(ChannelError::Timeout.into())
    }

    /// What a message has behind its head.
    fn results<'m>(&self, message: &'m [u8]) -> Result<&'m [u8], CallError> {
        let mut input = XdrIn::tolerant(message);
        let ReplyHead { outcome, .. } = ReplyHead::decode(&mut input)?;
        self.note_of(self.answered, input.flaws());
        match outcome {
            ReplyOutcome::Success => Ok(input.rest()),
            outcome => Err(RpcRefusal { service: self.service, outcome }.into()),
        }
    }

    fn is_busy(&self, reply: Reply<'_>) -> bool {
        // DELAY of NFSv4.1 has the number of JUKEBOX, and no other version has GRACE.
        let busy = [Status3::JUKEBOX.0, Status4::GRACE.0];
        self.service.program == v3::PROGRAM
            && reply.failure().is_some_and(|code| busy.contains(&code))
    }

    /// Makes one call, until the server is not busy; `read` reads the reply.
    pub(crate) fn ask<T>(
        &mut self,
        write: impl Fn(CallWriter<'_>),
        mut read: impl FnMut(Reply<'_>) -> Result<T, ReplyError>,
    ) -> Result<T, CallError> {
        let mut result = None;
        let on_reply = |(), reply: Reply<'_>, _: &mut Vec<()>| {
            result = Some(read(reply)?);
            Ok(())
        };
        self.run(vec![()], |(), to| write(to), on_reply).map_err(|(error, _)| error)?;
        Ok(result.expect("a run ends well only when all its calls have"))
    }

    fn call<T>(
        &mut self,
        call: Call<'_>,
        read: impl FnMut(Reply<'_>) -> Result<T, ReplyError>,
    ) -> Result<T, CallError> {
        let dialect = self.dialect();
        self.ask(|to| call.encode(dialect, to), read)
    }

    /// Calls a procedure of the service, whatever it is.
    pub(crate) fn call_procedure<T>(
        &mut self,
        procedure: u32,
        arguments: &impl Encode,
        read: impl FnMut(Reply<'_>) -> Result<T, ReplyError>,
    ) -> Result<T, CallError> {
        let service = self.service;
        self.ask(|to| to.write(service, procedure, arguments), read)
    }

    /// Notes a flaw of the last reply that does not change its meaning.
    pub(crate) fn note(&self, flaw: Flaw) {
        self.note_of(self.answered, flaw.into());
    }

    /// Notes flaws of a reply to `procedure`, which may show later.
    pub(crate) fn note_of(&self, procedure: u32, flaws: Flaws) {
        for flaw in flaws.iter() {
            self.log.note(&nonconformity(self.service, procedure, flaw));
        }
    }

    /// Procedure of the reply that came last.
    pub(crate) fn answered(&self) -> u32 {
        self.answered
    }

    /// The server does not have the operation of this call.
    pub(crate) fn lacks(&mut self, call: Call<'_>) -> Result<bool, CallError> {
        match self.call(call, |reply| reply.status()) {
            Err(CallError::Refused(refusal)) => {
                Ok(refusal.outcome == ReplyOutcome::ProcedureUnavailable)
            }
            Err(CallError::Status(status)) => {
                Ok([Status3::NOTSUPP.0, Status4::OP_ILLEGAL.0].contains(&status.0))
            }
            Err(error @ (CallError::Stopped | CallError::Channel(_))) => Err(error),
            // Flaws of its reply show when the operation is checked.
            Ok(()) | Err(_) => Ok(false),
        }
    }

    /// The procedure that does nothing.
    pub fn null(&mut self) -> Result<(), CallError> {
        self.call(Call::Null, |reply| reply.nothing())
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
    pub fn look_up(&mut self, dir: &OwnedHandle, name: &[u8]) -> Result<LookupResult, CallError> {
        self.call(Call::LookUp(dir, name), |reply| Ok(reply.looked_up()?.owned()))
    }

    /// The same, with absence as an answer.
    pub fn find(
        &mut self,
        dir: &OwnedHandle,
        name: &[u8],
    ) -> Result<Option<LookupResult>, CallError> {
        match self.look_up(dir, name) {
            Ok(resolved) => Ok(Some(resolved)),
            Err(error) if error.status() == Some(Status3::NOENT) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Makes a file.
    pub fn create(&mut self, dir: &OwnedHandle, name: &[u8]) -> Result<OwnedHandle, CallError> {
        self.make(Call::Create(dir, name), (dir, name), |reply| reply.made())
    }

    /// Makes a directory.
    pub fn make_dir(&mut self, dir: &OwnedHandle, name: &[u8]) -> Result<OwnedHandle, CallError> {
        self.make(Call::MakeDir(dir, name), (dir, name), |reply| reply.made())
    }

    /// Makes a symbolic link.
    pub fn make_link(
        &mut self,
        dir: &OwnedHandle,
        name: &[u8],
        text: &[u8],
    ) -> Result<OwnedHandle, CallError> {
        self.make(Call::MakeLink(dir, name, text), (dir, name), |reply| reply.made_link())
    }

    /// Makes something, and looks it up if the reply has no handle.
    fn make(
        &mut self,
        call: Call<'_>,
        (dir, name): (&OwnedHandle, &[u8]),
        made: fn(Reply<'_>) -> Result<Made<'_>, ReplyError>,
    ) -> Result<OwnedHandle, CallError> {
        match self.call(call, |reply| Ok(made(reply)?.handle.map(OwnedHandle::from)))? {
            Some(handle) => Ok(handle),
            None => self.look_up(dir, name).map(|resolved| resolved.handle),
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
        let bytes = if self.version() == NfsVersion::V2 { 8192 } else { LISTING_BYTES };
        self.list_in(dir, bytes, listing)
    }
}
