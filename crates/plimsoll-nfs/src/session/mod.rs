//! The client's side of NFS as a state machine: of versions 2 and 3 many calls in flight over one
//! TCP connection or one UDP socket, of version 4.1 a session.
//!
//! | module | what it holds |
//! | --- | --- |
//! | `calls` | the calls in flight, by slot and xid, and their bytes |
//! | `connection` | the link, and when a lost one is opened again |
//! | `check` | from the bytes of a reply to a verdict |
//! | `follow_ons` | the further blocks of a READ or WRITE |
//! | `v4` | the session of NFSv4.1 |
//! | `failure` | why a call failed, and the text of error samples |
//!
//! A lost connection is opened again and every pending call sent again with its xid; a datagram
//! without reply is sent again after [`RETRY_AFTER`], then after twice as long, and so on. Either
//! way a call ends once: by its reply, by its timeout, or by a failure nothing can mend.
//!
//! Set-up composes its messages itself and reads their replies ([`NfsCall::Composed`]); they travel
//! in the same session.

mod calls;
mod check;
mod connection;
mod failure;
mod follow_ons;
mod notes;
mod v4;

#[cfg(test)]
mod replies;
#[cfg(test)]
mod test_io;
#[cfg(test)]
mod tests;

use std::cell::Cell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;

use plimsoll_engine::interface::{
    ClientContext, Io, Link, LinkError, LinkKind, Session, SessionCounters, Ticket,
};
use plimsoll_model::outcome::{ErrorClass, OpKind, OpStatus, Outcome};
use plimsoll_model::units::Nanos;
use plimsoll_protocol::assembler::MARK_BYTES;

use self::calls::{Calls, InFlight};
use self::check::{Check, Checked, ServerRun};
use self::connection::{Connection, LossReason};
use self::failure::Failure;
use self::follow_ons::{FollowOns, next_block};
use self::notes::note_flaws;
use super::fileset::Content;
use super::handles::Handles;
use super::op::{NfsCall, NfsOp};
use super::parameters::Opens;
use super::procedure;
use super::wire::flaws::Flaws;
use super::wire::record::Assembler;
use super::wire::rpc::{Credential, procedure_of};
use super::wire::v4::Bitmap;

pub use self::calls::CALLS_MAX;
pub use self::connection::{RECONNECT_PAUSE, RECONNECT_PAUSE_MAX};
pub use self::v4::{Granted, Session4};
pub use super::parameters::NfsVersion;

/// First retransmission of a datagram; each further one waits twice as long.
pub const RETRY_AFTER: Nanos = Nanos::from_secs(1);

/// One server as its sessions need it.
#[derive(Clone, Debug)]
pub struct NfsSite {
    /// What is spoken with it.
    pub version: NfsVersion,
    /// What carries the calls.
    pub link: LinkKind,
    /// Who calls.
    pub credential: Credential,
    /// What it calls the things of the set.
    pub handles: Arc<Handles>,
    /// What is in the files.
    pub content: Content,
    /// Attributes of files that it has, of those that are asked for (NFSv4.1).
    pub attributes: Bitmap,
    /// What each client asks for (NFSv4.1).
    pub session: SessionRequest,
}

/// What a client of NFSv4.1 asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionRequest {
    /// Calls that the server executes at once.
    pub slots: u32,
    /// Connections.
    pub connections: u32,
    /// How files are opened.
    pub opens: Opens,
    /// Whether OPEN asks for delegations.
    pub delegations: bool,
    /// How long the server knows an idle client.
    pub lease: Nanos,
}

impl SessionRequest {
    /// Of set-up, whose files are not opened; its sessions are never idle for long.
    pub const SET_UP: Self = Self {
        slots: 16,
        connections: 1,
        opens: Opens::Anonymous,
        delegations: false,
        lease: Nanos::MAX,
    };
}

/// One client.
#[derive(Debug)]
pub struct NfsSession {
    site: Rc<NfsSite>,
    op_timeout: Nanos,
    outstanding_max: usize,
    calls: Calls,
    connection: Connection,
    assembler: Assembler,
    /// Nothing has to be done before this instant. Never too late; may be too early.
    wake: Nanos,
    run: ServerRun,
    /// Kind of the op that ended last, if it ended well.
    succeeded: Option<OpKind>,
    follow_ons: FollowOns,
    counters: SessionCounters,
    /// Of set-up: the message of the next call, without xid.
    composed: Vec<u8>,
    /// Of set-up: the replies to calls that have ended well, in their order.
    answers: VecDeque<Vec<u8>>,
}

impl NfsSession {
    /// A client of `site` with at most `outstanding_max` calls in flight.
    pub fn new(site: Rc<NfsSite>, client: ClientContext, outstanding_max: u32) -> Self {
        Self {
            op_timeout: client.op_timeout,
            outstanding_max: outstanding_max.clamp(1, CALLS_MAX) as usize,
            calls: Calls::new(outstanding_max, client.nonce, client.client),
            connection: Connection::new(site.link),
            assembler: Assembler::default(),
            wake: Nanos::MAX,
            run: ServerRun::default(),
            succeeded: None,
            follow_ons: FollowOns::default(),
            counters: SessionCounters::default(),
            composed: Vec::new(),
            answers: VecDeque::new(),
            site,
        }
    }

    /// The same; its first xid is this one.
    pub(crate) fn numbered_from(mut self, first_xid: u32) -> Self {
        self.calls.base = first_xid;
        self
    }

    /// Takes the message, without record mark and with any xid, of the next [`NfsCall::Composed`].
    pub(crate) fn composed(&mut self) -> &mut Vec<u8> {
        self.composed.clear();
        &mut self.composed
    }

    /// The reply to the [`NfsCall::Composed`] that ended next, if it ended well.
    pub(crate) fn take_answer(&mut self) -> Option<Vec<u8>> {
        self.answers.pop_front()
    }

    /// Every datagram in flight is due again.
    pub(crate) fn retry_all(&mut self) {
        for at in 0..self.calls.slots() {
            if let Some((call, _)) = self.calls.get(at) {
                call.retry_at = Nanos::ZERO;
            }
        }
    }

    /// Waits for no reply any more.
    pub(crate) fn forget_calls(&mut self) {
        for at in 0..self.calls.slots() {
            let _ = self.calls.end(at);
        }
    }

    /// Sends a call, again or for the first time, when there is a link.
    fn send(&mut self, at: usize, now: Nanos, io: &mut impl Io) {
        let Some(link) = self.connection.up() else { return };
        let Some((call, bytes)) = self.calls.get(at) else { return };
        io.send(link, bytes);
        if self.connection.kind == LinkKind::Datagram {
            self.counters.retransmissions += u64::from(call.sends > 0);
            // Far more doublings than fit into any timeout.
            let wait = Nanos(RETRY_AFTER.0 << call.sends.min(16));
            call.retry_at = now.saturating_add(wait);
            self.wake = self.wake.min(call.retry_at);
        }
        call.sends += 1;
    }

    /// Opens a link if there is none and it is time; else requests to be woken when it is.
    fn reach_out(&mut self, now: Nanos, io: &mut impl Io) {
        match self.connection.down_until() {
            Some(from) if from <= now => self.connection.connect(io),
            Some(from) => self.wake = self.wake.min(from),
            None => {}
        }
    }

    /// One whole message arrived.
    fn on_message(&mut self, message: &[u8], io: &mut impl Io) {
        let Some(xid) = message.first_chunk().map(|bytes| u32::from_be_bytes(*bytes)) else {
            return;
        };
        // A second reply, one to a call that has timed out, or a stranger's.
        let Some((at, call)) = self.calls.find(xid) else { return };
        self.connection.proved();
        if call.op.call == NfsCall::Composed {
            self.answers.push_back(message.to_vec());
            return self.succeed(at, Checked::OK, io);
        }
        let check = Check { site: &self.site, call: call.op.call, resent: call.sends > 1 };
        let flaws = Cell::default();
        let result = check.evaluate(message, &flaws, &mut self.run);
        if !flaws.get().is_empty() {
            self.note(at, flaws.get());
        }
        match result {
            Ok(checked) => self.succeed(at, checked, io),
            Err(failure) => self.fail(at, failure, io),
        }
    }

    /// Counts where the reply to a call differs from its specification.
    #[cold]
    fn note(&mut self, at: usize, flaws: Flaws) {
        let before = match self.connection.kind {
            LinkKind::Stream => MARK_BYTES,
            LinkKind::Datagram => 0,
        };
        let Some((_, call)) = self.calls.get(at) else { return };
        let procedure = procedure_of(&call[before..]).unwrap_or_default();
        let service = procedure::service(self.site.version);
        note_flaws(&mut self.counters, service, procedure, flaws);
    }

    fn succeed(&mut self, at: usize, checked: Checked, io: &mut impl Io) {
        let Some(call) = self.calls.end(at) else { return };
        self.counters.verified += u64::from(checked.verified);
        self.succeeded = Some(call.op.kind);
        self.follow_ons.keep(call.ticket, next_block(call.op));
        let outcome = Outcome {
            bytes_read: checked.bytes_read,
            bytes_written: checked.bytes_written,
            ..call.outcome(checked.status)
        };
        io.complete(call.ticket, outcome);
    }

    fn fail(&mut self, at: usize, failure: Failure<'_>, io: &mut impl Io) {
        let Some(call) = self.calls.end(at) else { return };
        self.succeeded = None;
        self.follow_ons.keep(call.ticket, None);
        match call.op.call {
            NfsCall::Composed => io.explain(format_args!("{failure}")),
            call => io.explain(format_args!("{call}: {failure}")),
        }
        let outcome =
            Outcome { bytes_read: failure.bytes_read(), ..call.outcome(failure.status()) };
        io.complete(call.ticket, outcome);
    }

    fn fail_all(&mut self, failure: Failure<'_>, io: &mut impl Io) {
        for at in 0..self.calls.slots() {
            self.fail(at, failure, io);
        }
    }

    /// The link is gone, and closed already.
    fn lost(&mut self, lost_by: LossReason, now: Nanos, io: &mut impl Io) {
        self.connection.lost(lost_by, now);
        self.assembler.reset();
        if let Some(class) = lost_by.generators_limit() {
            self.fail_all(Failure::NoLink(lost_by, class), io);
        }
        if self.calls.in_flight() > 0 {
            self.reach_out(now, io);
        }
    }
}

impl Session for NfsSession {
    type Op = NfsOp;

    const BATCH_SENDS: bool = true;

    fn kind(&self, op: &NfsOp) -> OpKind {
        op.kind
    }

    fn has_room(&self) -> bool {
        self.calls.in_flight() < self.outstanding_max
    }

    fn issue(&mut self, ticket: Ticket, op: NfsOp, now: Nanos, io: &mut impl Io) {
        let deadline = now.saturating_add(self.op_timeout);
        let call = InFlight { ticket, op, deadline, retry_at: Nanos::MAX, sends: 0 };
        let (site, composed) = (&self.site, &self.composed);
        let started = self.calls.start(call, |out, xid| site.encode(op.call, xid, composed, out));
        let Some(at) = started else {
            debug_assert!(false, "the engine issues an op only where there is room");
            io.complete(ticket, call.outcome(OpStatus::Failed(ErrorClass::Transport)));
            return;
        };
        self.wake = self.wake.min(deadline);
        self.reach_out(now, io);
        self.send(at, now, io);
    }

    fn on_connected(&mut self, link: Link, now: Nanos, io: &mut impl Io) {
        if !self.connection.is(link) {
            return;
        }
        self.connection.connected(link);
        for at in 0..self.calls.slots() {
            let Some((call, _)) = self.calls.get(at) else { continue };
            // A new connection has carried no call; lost datagrams are found by the timer.
            let is_due = call.sends == 0 || call.retry_at <= now;
            if is_due || self.connection.kind == LinkKind::Stream {
                self.send(at, now, io);
            }
        }
    }

    fn on_bytes(&mut self, link: Link, bytes: &[u8], now: Nanos, io: &mut impl Io) {
        if !self.connection.is(link) {
            return;
        }
        if self.connection.kind == LinkKind::Datagram {
            return self.on_message(bytes, io);
        }
        let mut assembler = std::mem::take(&mut self.assembler);
        let read = assembler.push(bytes, |message| {
            self.on_message(message, io);
            Ok(())
        });
        self.assembler = assembler;
        if let Err(too_long) = read {
            io.close(link);
            if let Some(kind) = self.succeeded.take().filter(|_| self.calls.in_flight() == 0) {
                io.explain(format_args!("bytes behind the reply: {too_long}"));
                io.report_trailing_bytes(kind);
            }
            self.fail_all(Failure::Stream(too_long), io);
            self.lost(LossReason::Garbled, now, io);
        }
    }

    fn at_boundary(&self, link: Link) -> bool {
        self.connection.is(link) && self.assembler.is_between_messages()
    }

    fn on_discarded(&mut self, _link: Link, _n: u64, _now: Nanos, _io: &mut impl Io) {
        // Nothing is ever discarded: every reply is decoded.
    }

    fn on_eof(&mut self, link: Link, now: Nanos, io: &mut impl Io) {
        if self.connection.is(link) {
            io.close(link);
            self.lost(LossReason::Closed, now, io);
        }
    }

    fn on_failed(&mut self, link: Link, error: LinkError, now: Nanos, io: &mut impl Io) {
        if self.connection.is(link) {
            self.lost(LossReason::Failed(error), now, io);
        }
    }

    fn next_deadline(&self) -> Option<Nanos> {
        (self.calls.in_flight() > 0).then_some(self.wake)
    }

    fn on_timer(&mut self, now: Nanos, io: &mut impl Io) {
        self.wake = Nanos::MAX;
        for at in 0..self.calls.slots() {
            let Some((call, _)) = self.calls.get(at) else { continue };
            let (deadline, retry_at, sends) = (call.deadline, call.retry_at, call.sends);
            if deadline <= now {
                let (after, lost_by) = (self.op_timeout, self.connection.lost_by);
                self.fail(at, Failure::Timeout { after, sends, lost_by }, io);
                continue;
            }
            self.wake = self.wake.min(deadline);
            if retry_at <= now {
                self.send(at, now, io);
            } else {
                self.wake = self.wake.min(retry_at);
            }
        }
        if self.calls.in_flight() > 0 {
            self.reach_out(now, io);
        }
    }

    fn take_follow_on(&mut self, ended: Ticket) -> Option<NfsOp> {
        self.follow_ons.take(ended)
    }

    fn take_counters(&mut self) -> SessionCounters {
        std::mem::take(&mut self.counters)
    }
}
