//! The client's side of SMB as a state machine: logon, then many ops in flight over one TCP
//! connection.
//!
//! | module | what it holds |
//! | --- | --- |
//! | `connection` | the connection; message ids and credits |
//! | `replies` | what arrives; how ops end, by their status, and clients |
//! | `in_flight` | the ops under way, the commands each is made of, and what replies mean for it |
//! | `handles` | open files, and what is cached of their content |
//! | `encode` | from an op to the bytes of its commands |
//! | `deltree` | removing a directory with all below it |
//! | `chores` | what is sent without an op: acknowledged breaks, stray closes |
//! | `single_logons` | logons with a connection of their own |
//! | `failure` | the text of error samples |
//!
//! The first op opens the connection and logs on. An op ends once: by its replies, or because the
//! client is lost: its connection or session is gone, its peer answers nonsense, or not in time,
//! or too often with another status than expected. A lost client does not come back, as in the
//! method: it leaves the mix.

mod chores;
mod connection;
mod deltree;
mod encode;
mod failure;
mod handles;
mod in_flight;
mod replies;
mod single_logons;

use std::cell::RefCell;
use std::collections::VecDeque;
use std::mem;
use std::rc::Rc;

use plimsoll_engine::interface::{
    ClientContext, Io, Link, LinkError, LinkKind, Session, SessionCounters, Ticket,
};
use plimsoll_engine::rng;
use plimsoll_model::outcome::OpKind;
use plimsoll_model::units::Nanos;

use self::chores::Chores;
use self::connection::Connection;
use self::encode::Sending;
use self::failure::{Failure, Stop};
use self::handles::{CacheGrant, Handles};
use self::in_flight::{OpInFlight, OpsInFlight, Phase};
use self::replies::verdict;
use self::single_logons::{LinkState, SingleLogons};
use super::logon::{Credentials, Established, Logon, LogonRequest, Offer};
use super::op::{HandleNo, SmbCall, SmbOp};
use super::wire::frame::Assembler;
use super::wire::status;
use super::workspace::ContentTable;

pub use self::deltree::EntryKind;
pub(crate) use self::deltree::{BadName, name_of_entry};
pub(crate) use self::replies::Answer;
pub(crate) use super::parameters::Caching;

/// One client.
pub(crate) struct SmbSession {
    site: Rc<SmbSite>,
    client: ClientContext,
    connection: Connection,
    assembler: Assembler,
    ops: OpsInFlight,
    /// Slots of ops in flight that have something to send, in the order of their issue.
    waiting: VecDeque<usize>,
    handles: Handles,
    chores: Chores,
    logons: SingleLogons,
    /// Nothing has to be done before this instant. Never too late; may be too early.
    wake: Nanos,
    unexpected: u32,
    counters: SessionCounters,
    lost: Option<String>,
    /// The replies' answers, kept for set-up only.
    answers: Option<Vec<Answer>>,
}

impl SmbSession {
    /// A client of `site`.
    pub(crate) fn new(site: Rc<SmbSite>, client: ClientContext) -> Self {
        Self {
            site,
            client,
            connection: Connection::Idle,
            assembler: Assembler::default(),
            ops: OpsInFlight::default(),
            waiting: VecDeque::new(),
            handles: Handles::default(),
            chores: Chores::default(),
            logons: SingleLogons::default(),
            wake: Nanos::MAX,
            unexpected: 0,
            counters: SessionCounters::default(),
            lost: None,
            answers: None,
        }
    }

    /// A client that keeps the replies' answers until they are taken.
    pub(crate) fn answering(self) -> Self {
        Self { answers: Some(Vec::new()), ..self }
    }

    /// The replies' answers since the last call.
    pub(crate) fn take_answers(&mut self) -> Vec<Answer> {
        self.answers.as_mut().map(mem::take).unwrap_or_default()
    }

    /// The op's handle is open, if it has one.
    pub(crate) fn has_open(&self, op: &SmbOp) -> bool {
        handle_of(op).is_none_or(|handle| self.handles.get(handle).is_some())
    }

    /// The result of the logon, once done.
    pub(crate) fn established(&self) -> Option<&Established> {
        match &self.connection {
            Connection::Up(up) => Some(&up.established),
            _ => None,
        }
    }

    /// The connection is open: the first message of the logon goes out.
    fn log_on(&mut self, link: Link, io: &mut impl Io) {
        let mut logon = Box::new(self.site.logon(self.client, 0));
        let site = self.site.clone();
        let out = &mut site.buffers.borrow_mut().out;
        out.clear();
        logon.start(out);
        io.send(link, out);
        self.connection = Connection::LoggingOn(link, logon);
    }

    /// Sends what there are credits for, in order.
    fn pump(&mut self, io: &mut impl Io) {
        while let Connection::Up(_) = self.connection {
            if self.chores.first().is_some() {
                if !self.send_chore(io) {
                    return;
                }
                continue;
            }
            let Some(at) = self.waiting.front().copied() else { return };
            match self.send(at, io) {
                Sending::Sent => {
                    self.waiting.pop_front();
                }
                Sending::NotOpen => {
                    self.waiting.pop_front();
                    if self.finish(at, status::FILE_CLOSED, io).is_err() {
                        return;
                    }
                }
                Sending::LoggedOn => {
                    self.waiting.pop_front();
                    if self.finish(at, status::SUCCESS, io).is_err() {
                        return;
                    }
                }
                Sending::NoCredits => {
                    // Nothing under way will bring any.
                    let is_idle = self.waiting.len() == self.ops.len();
                    if !is_idle || !self.chores.beg() {
                        return;
                    }
                }
            }
        }
    }

    /// A read of cached data; the client may answer it itself.
    fn is_cached(&self, op: &SmbOp) -> bool {
        let SmbOp::Read { handle, offset, length, .. } = *op else { return false };
        let open = self.handles.get(handle).filter(|open| open.grant != CacheGrant::Nothing);
        open.is_some_and(|open| open.ranges.holds(offset, length))
    }
}

/// The handle an op is about, which must be open.
fn handle_of(op: &SmbOp) -> Option<HandleNo> {
    match op {
        SmbOp::Close { handle }
        | SmbOp::Flush { handle }
        | SmbOp::Read { handle, .. }
        | SmbOp::Write { handle, .. }
        | SmbOp::WriteText { handle, .. }
        | SmbOp::FindNext { handle }
        | SmbOp::Lock { handle, .. }
        | SmbOp::Unlock { handle, .. }
        | SmbOp::QueryFile { handle, .. }
        | SmbOp::SetFile { handle, .. } => Some(*handle),
        _ => None,
    }
}

impl Session for SmbSession {
    type Op = SmbCall;

    const BATCH_SENDS: bool = true;

    fn kind(&self, call: &SmbCall) -> OpKind {
        call.op.kind().into()
    }

    fn has_room(&self) -> bool {
        // A client that is lost has none: so the engine asks why, also where no op ended with it.
        let outstanding = self.ops.len() + self.logons.len();
        self.lost.is_none() && outstanding < self.site.outstanding_max.max(1) as usize
    }

    fn issue(&mut self, ticket: Ticket, call: SmbCall, now: Nanos, io: &mut impl Io) {
        let deadline = now.saturating_add(self.client.op_timeout);
        let mut in_flight = OpInFlight::new(ticket, call, deadline);
        if let Some(reason) = &self.lost {
            io.explain(format_args!("{reason}"));
            io.complete(ticket, in_flight.outcome(Failure::Left.status()));
            return;
        }
        self.wake = self.wake.min(deadline);
        if let SmbOp::Logon = in_flight.call.op {
            return self.logons.start(in_flight, io);
        }
        if self.is_cached(&in_flight.call.op)
            && let SmbOp::Read { length, .. } = in_flight.call.op
        {
            in_flight.moved = length;
            let _ = self.settle(&in_flight, verdict(&in_flight, status::SUCCESS), io);
            return;
        }
        if let Connection::Idle = self.connection {
            self.connection = Connection::Connecting(io.connect(LinkKind::Stream));
        }
        let at = self.ops.start(in_flight);
        self.waiting.push_back(at);
        self.pump(io);
    }

    fn on_connected(&mut self, link: Link, _now: Nanos, io: &mut impl Io) {
        match self.connection {
            Connection::Connecting(own) if own == link => self.log_on(link, io),
            _ => {
                let (site, client) = (self.site.clone(), self.client);
                let buffers = &mut site.buffers.borrow_mut();
                self.logons.connected(link, |nth| site.logon(client, nth), buffers, io);
            }
        }
    }

    fn on_bytes(&mut self, link: Link, bytes: &[u8], _now: Nanos, io: &mut impl Io) {
        if self.connection.link() != Some(link) {
            if let Some((in_flight, verdict)) = self.logons.bytes(link, bytes, &self.site, io) {
                let _ = self.settle(&in_flight, verdict, io);
            }
            return;
        }
        let mut assembler = mem::take(&mut self.assembler);
        let read = assembler.push(bytes, |message| self.on_message(message, io));
        self.assembler = assembler;
        match read {
            Ok(()) => self.pump(io),
            Err(Stop::Lost) => self.assembler.reset(),
            Err(Stop::Stream(error)) => {
                let _ = self.lose(Failure::Stream(error), None, io);
            }
        }
    }

    fn at_boundary(&self, link: Link) -> bool {
        self.connection.link() == Some(link) && self.assembler.is_between_messages()
    }

    fn on_discarded(&mut self, _link: Link, _n: u64, _now: Nanos, _io: &mut impl Io) {
        // Nothing is ever discarded: every reply is decoded.
    }

    fn on_eof(&mut self, link: Link, _now: Nanos, io: &mut impl Io) {
        if self.connection.link() == Some(link) {
            let _ = self.lose(Failure::Closed, None, io);
        } else {
            self.logons.broke(link, LinkState::Open, Failure::Closed, io);
        }
    }

    fn on_failed(&mut self, link: Link, error: LinkError, _now: Nanos, io: &mut impl Io) {
        if self.connection.link() == Some(link) {
            // It is closed already.
            self.connection = Connection::Gone;
            let _ = self.lose(Failure::Broken(error), None, io);
        } else {
            self.logons.broke(link, LinkState::Closed, Failure::Broken(error), io);
        }
    }

    fn next_deadline(&self) -> Option<Nanos> {
        (self.ops.len() + self.logons.len() > 0).then_some(self.wake)
    }

    fn on_timer(&mut self, now: Nanos, io: &mut impl Io) {
        self.wake = Nanos::MAX;
        let after = self.client.op_timeout;
        self.logons.time_out(now, after, io);
        self.wake = self.wake.min(self.logons.deadline());
        for at in 0..self.ops.slots() {
            let Some(in_flight) = self.ops.get(at) else { continue };
            if in_flight.deadline <= now {
                let waited_for = match in_flight.phase {
                    Phase::Waiting => self.connection.waited_for(),
                    Phase::Sent => "reply",
                    Phase::Pending => "final reply (STATUS_PENDING came)",
                };
                let _ = self.lose(Failure::Timeout { after, waited_for }, Some(at), io);
                return;
            }
            self.wake = self.wake.min(in_flight.deadline);
        }
    }

    fn lost(&self) -> Option<String> {
        self.lost.clone()
    }

    fn take_counters(&mut self) -> SessionCounters {
        let of_logons = mem::take(&mut self.logons.nonconformities);
        self.counters.nonconformities.add(&of_logons);
        mem::take(&mut self.counters)
    }
}

/// One share as its clients need it.
#[derive(Debug)]
pub(crate) struct SmbSite {
    /// Who logs on.
    pub credentials: Credentials,
    /// What is offered to the server.
    pub offer: Offer,
    /// The share, as `\\host\share`.
    pub unc: String,
    /// Where in the share all paths begin: with backslashes, none at the ends; mostly empty.
    pub prefix: String,
    /// What clients keep.
    pub caching: Caching,
    /// What is in the files.
    pub content: ContentTable,
    /// Ops of one client in flight at most.
    pub outstanding_max: u32,
    /// Unexpected statuses that a client may receive; with one more it leaves the mix.
    pub unexpected_max: u32,
    /// Memory that the clients of a worker share.
    pub buffers: RefCell<Buffers>,
}

/// Memory for one message out and one in, used again for the next.
#[derive(Debug, Default)]
pub(crate) struct Buffers {
    out: Vec<u8>,
    plain: Vec<u8>,
    path: String,
}

impl SmbSite {
    /// Logon number `nth` of a client.
    fn logon(&self, client: ClientContext, nth: u64) -> Logon {
        let nonce = rng::key(&[client.nonce, u64::from(client.client), nth]);
        // Every client is a separate machine: a server may serve all connections of one machine in
        // one process, which would be another measurement.
        let mut offer = self.offer.clone();
        offer.client_guid[..8].copy_from_slice(&nonce.to_le_bytes());
        offer.client_guid[8..].copy_from_slice(&rng::key(&[nonce]).to_le_bytes());
        let (credentials, unc) = (&self.credentials, &self.unc);
        Logon::new(&LogonRequest { credentials, offer: &offer, unc, nonce })
    }
}

#[cfg(test)]
mod tests;
