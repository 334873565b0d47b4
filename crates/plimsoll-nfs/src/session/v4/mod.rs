//! The client's side of NFSv4.1 as a state machine: a session with slots over one or more
//! connections, and the ops on it. RFC 8881 §2.10
//!
//! | module | what it holds |
//! | --- | --- |
//! | `establish` | from a connection to a session, and back |
//! | `slots` | which calls wait for their replies, with numbers that tell repetitions |
//! | `links` | the connections |
//! | `ops`, `endings` | the steps of an op: open, work, close; how it ends |
//! | `calls` | the messages of all calls |
//! | `opens` | what is open and what is delegated |
//! | `replies` | what the status of SEQUENCE and of a compound demand |
//! | `callbacks` | what the server calls |
//!
//! A call is sent again only after its connection was lost, and then with the same slot, number and
//! bytes, so that a server never executes it twice. If the session itself is lost, ops without a
//! reply are sent again in a new one, and count as ambiguous if a second execution may differ.

mod callbacks;
mod calls;
mod endings;
mod establish;
mod links;
mod opens;
mod ops;
mod replies;
mod slots;

use std::collections::VecDeque;
use std::rc::Rc;

use plimsoll_engine::interface::{
    ClientContext, Io, Link, LinkError, Mark, Session, SessionCounters, Ticket, TimeKind,
};
use plimsoll_model::outcome::OpKind;
use plimsoll_model::units::Nanos;

use self::callbacks::BackChannel;
use self::establish::{Control, Identity, State};
use self::links::Links;
use self::opens::{Delegated, OpenFiles};
use self::ops::{OpNo, Ops};
use self::slots::Slots;
use super::NfsSite;
use super::check::ServerRun;
use super::connection::LossReason;
use super::failure::Failure;
use super::follow_ons::FollowOns;
use crate::op::{NfsOp, OpenNo};
use crate::procedure::v4::SEQUENCE_AFTER;
use crate::wire::v4::SessionId;

pub use self::establish::Granted;

/// Most ops that one session may have under way.
const OPS_MAX: u32 = 1_024;
/// An RPC call begins with six words, and its credential follows. RFC 5531 §9
const CALL_HEAD_BYTES: usize = 24;
/// In front of a message on a stream.
const MARK_BYTES: usize = 4;
/// First pause after a server asked for time; each further one is twice as long, as the Linux
/// client's are.
const DELAY_PAUSE: Nanos = Nanos::from_millis(100);
/// The longest.
const DELAY_PAUSE_MAX: Nanos = Nanos::from_secs(15);

/// What a call in a slot is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Task {
    /// A step of an op.
    Op(OpNo),
    /// RECLAIM_COMPLETE, with which a new client begins.
    ReclaimComplete,
    /// SEQUENCE alone: the lease is to be kept.
    Renew,
    /// Closes what no op needs any more.
    Close(OpenNo),
    /// Returns a delegation, one of those that are being returned.
    Return(usize),
}

/// A call that has no slot yet.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    task: Task,
    /// All slots were taken, or the session was not there.
    for_slot: bool,
}

/// One client.
#[derive(Debug)]
pub struct Session4 {
    site: Rc<NfsSite>,
    identity: Identity,
    op_timeout: Nanos,
    outstanding_max: usize,
    state: State,
    control: Option<Control>,
    /// RECLAIM_COMPLETE has been sent for the client as the server knows it.
    has_reclaimed: bool,
    client_id: u64,
    create_sequence: u32,
    session: SessionId,
    granted: Granted,
    slots: Slots,
    links: Links,
    ops: Ops,
    waiting: VecDeque<Waiting>,
    files: OpenFiles,
    returning: Vec<Option<Delegated>>,
    back: BackChannel,
    /// The server does not open files by their handles.
    opens_by_name: bool,
    run: ServerRun,
    /// Kind of the op that ended last, if it ended well.
    succeeded: Option<OpKind>,
    follow_ons: FollowOns,
    /// Nothing has to be done before this instant. Never too late; may be too early.
    wake: Nanos,
    /// Last call with a SEQUENCE, which renewed the lease.
    renewed: Nanos,
    counters: SessionCounters,
    /// Of set-up: the message of the next call, without xid.
    composed: Vec<u8>,
    /// Of set-up: the replies to calls that have ended well, in their order.
    answers: VecDeque<Vec<u8>>,
}

impl Session4 {
    /// A client of `site` with at most `outstanding_max` ops under way.
    pub fn new(site: Rc<NfsSite>, client: ClientContext, outstanding_max: u32) -> Self {
        Self {
            identity: Identity::new(&client),
            op_timeout: client.op_timeout,
            outstanding_max: outstanding_max.clamp(1, OPS_MAX) as usize,
            state: State::Begin,
            control: None,
            has_reclaimed: false,
            client_id: 0,
            create_sequence: 0,
            session: SessionId::default(),
            granted: Granted::default(),
            slots: Slots::new(client.nonce, client.client),
            links: Links::new(site.session.connections),
            ops: Ops::default(),
            waiting: VecDeque::new(),
            files: OpenFiles::default(),
            returning: Vec::new(),
            back: BackChannel::default(),
            opens_by_name: false,
            run: ServerRun::default(),
            succeeded: None,
            follow_ons: FollowOns::default(),
            wake: Nanos::MAX,
            renewed: Nanos::ZERO,
            counters: SessionCounters::default(),
            composed: Vec::new(),
            answers: VecDeque::new(),
            site,
        }
    }

    /// What the server granted, once there is a session.
    pub fn granted(&self) -> Granted {
        self.granted
    }

    /// Takes the message, without record mark and with any xid, of the next
    /// [`NfsCall::Composed`](crate::op::NfsCall::Composed).
    pub(crate) fn composed(&mut self) -> &mut Vec<u8> {
        self.composed.clear();
        &mut self.composed
    }

    /// The reply to the composed call that ended next, if it ended well.
    pub(crate) fn take_answer(&mut self) -> Option<Vec<u8>> {
        self.answers.pop_front()
    }

    /// Waits for no reply any more.
    pub(crate) fn forget_calls(&mut self) {
        for op in self.ops.all() {
            if self.mark_abandoned(op) {
                self.ops.remove(op);
            }
        }
    }

    /// Where the arguments of SEQUENCE begin in a call, behind its record mark.
    fn sequence_at(&self) -> usize {
        MARK_BYTES + CALL_HEAD_BYTES + self.site.credential.len() + SEQUENCE_AFTER
    }

    /// Sends a call as soon as there is a slot.
    fn start(&mut self, task: Task, now: Nanos, io: &mut impl Io) {
        let is_ready = self.state.takes(task);
        if is_ready && self.slots.has_room() && self.waiting.is_empty() {
            return self.send_first(task, now, io);
        }
        if let Task::Op(op) = task
            && is_ready
            && let Some((ticket, _)) = self.ops.requested_at(op)
        {
            io.mark(ticket, Mark::ServiceWaits);
        }
        self.waiting.push_back(Waiting { task, for_slot: is_ready });
    }

    /// Gives free slots to what waits for them.
    fn pump(&mut self, now: Nanos, io: &mut impl Io) {
        while let Some(Waiting { task, for_slot }) = self.waiting.front().copied() {
            if !self.state.takes(task) || !self.slots.has_room() {
                break;
            }
            self.waiting.pop_front();
            if let Task::Op(op) = task
                && for_slot
                && let Some((ticket, requested_at)) = self.ops.requested_at(op)
            {
                self.counters.slot_waits += 1;
                let waited = now.saturating_sub(requested_at).0;
                io.mark(ticket, Mark::ServiceBegins);
                io.mark(ticket, Mark::Value(TimeKind::SlotWait, waited));
            }
            self.send_first(task, now, io);
        }
        self.leave_if_idle(io);
    }

    /// Takes a slot, writes the call, and sends it if there is a connection.
    fn send_first(&mut self, task: Task, now: Nanos, io: &mut impl Io) {
        let at = self.sequence_at();
        let session = self.session;
        let mut slots = std::mem::take(&mut self.slots);
        let started = slots.start(task, |out, numbers| {
            self.encode(task, numbers.xid, out);
            numbers.write(&session, out, at);
        });
        self.slots = slots;
        if let Some(slot) = started {
            self.send(slot, now, io);
        }
    }

    /// Sends the call of a slot, again or for the first time, when there is a connection.
    fn send(&mut self, slot: usize, now: Nanos, io: &mut impl Io) {
        let Some((index, link)) = self.links.next_up() else { return };
        let Some((flying, bytes)) = self.slots.get(slot) else { return };
        io.send(link, bytes);
        self.counters.retransmissions += u64::from(flying.sends > 0);
        flying.sends += 1;
        flying.connection = Some(index);
        flying.again_at = None;
        self.renewed = now;
    }

    /// The link is gone, and closed already.
    fn lost_link(&mut self, at: usize, lost_by: LossReason, now: Nanos, io: &mut impl Io) {
        let wire = self.links.get(at);
        wire.connection.lost(lost_by, now);
        wire.assembler.reset();
        wire.wants_bind = self.granted.back_channel;
        if let Some(class) = lost_by.generators_limit() {
            self.fail_all(Failure::NoLink(lost_by, class), now, io);
        }
        for slot in 0..self.slots.count() {
            if let Some((flying, _)) = self.slots.get(slot)
                && flying.connection == Some(at)
            {
                flying.connection = None;
            }
        }
        self.control_lost(at, io);
        self.send_unsent(now, io);
        self.reach_out(now, io);
        if matches!(self.state, State::Leaving) && self.links.first_up().is_none() {
            // Nobody waits for another connection.
            self.state = State::Gone(None);
        }
    }

    /// Sends every call that no connection carries.
    fn send_unsent(&mut self, now: Nanos, io: &mut impl Io) {
        if !self.state.has_session() {
            return;
        }
        for slot in 0..self.slots.count() {
            if self.slots.get(slot).is_some_and(|(flying, _)| flying.is_unsent()) {
                self.send(slot, now, io);
            }
        }
    }

    /// Opens connections that are down; else requests to be woken when it is time.
    fn reach_out(&mut self, now: Nanos, io: &mut impl Io) {
        // The others join when there is a session to join.
        let count = if self.state.has_session() { self.links.count() } else { 1 };
        if self.state.wants_links() {
            self.wake = self.wake.min(self.links.reach_out(count, now, io));
        }
    }

    /// One whole message arrived on a link.
    fn on_message(&mut self, at: usize, message: &[u8], now: Nanos, io: &mut impl Io) {
        let Some((xid, rest)) = message.split_first_chunk() else { return };
        let xid = u32::from_be_bytes(*xid);
        let is_call = rest.first_chunk() == Some(&[0; 4]);
        if is_call {
            return self.on_callback(at, message, now, io);
        }
        if self.control.as_ref().is_some_and(|control| control.xid == xid) {
            self.links.get(at).connection.proved();
            self.on_control_reply(message, now, io);
            return self.pump(now, io);
        }
        // A second reply, or a stranger's.
        let Some(slot) = self.slots.find(xid) else { return };
        self.links.get(at).connection.proved();
        self.on_slot_reply(slot, message, now, io);
        self.pump(now, io);
    }
}

impl Session for Session4 {
    type Op = NfsOp;

    const BATCH_SENDS: bool = true;

    fn kind(&self, op: &NfsOp) -> OpKind {
        op.kind
    }

    fn has_room(&self) -> bool {
        self.ops.in_progress() < self.outstanding_max && !matches!(self.state, State::Gone(_))
    }

    fn issue(&mut self, ticket: Ticket, op: NfsOp, now: Nanos, io: &mut impl Io) {
        self.begin(ticket, op, now, io);
        self.reach_out(now, io);
    }

    fn on_connected(&mut self, link: Link, now: Nanos, io: &mut impl Io) {
        let Some(at) = self.links.find(link) else { return };
        self.links.get(at).connection.connected(link);
        self.on_link_up(io);
        self.send_unsent(now, io);
        self.pump(now, io);
    }

    fn on_bytes(&mut self, link: Link, bytes: &[u8], now: Nanos, io: &mut impl Io) {
        let Some(at) = self.links.find(link) else { return };
        let mut assembler = std::mem::take(&mut self.links.get(at).assembler);
        let read = assembler.push(bytes, |message| {
            self.on_message(at, message, now, io);
            Ok(())
        });
        self.links.get(at).assembler = assembler;
        if let Err(too_long) = read {
            io.close(link);
            if let Some(kind) = self.succeeded.take().filter(|_| self.ops.in_progress() == 0) {
                io.explain(format_args!("bytes behind the reply: {too_long}"));
                io.report_trailing_bytes(kind);
            }
            self.fail_all(Failure::Stream(too_long), now, io);
            self.lost_link(at, LossReason::Garbled, now, io);
        }
    }

    fn at_boundary(&self, link: Link) -> bool {
        self.links.is_between_messages(link)
    }

    fn on_discarded(&mut self, _link: Link, _n: u64, _now: Nanos, _io: &mut impl Io) {
        // Nothing is ever discarded: every reply is decoded.
    }

    fn on_eof(&mut self, link: Link, now: Nanos, io: &mut impl Io) {
        if let Some(at) = self.links.find(link) {
            io.close(link);
            self.lost_link(at, LossReason::Closed, now, io);
        }
    }

    fn on_failed(&mut self, link: Link, error: LinkError, now: Nanos, io: &mut impl Io) {
        if let Some(at) = self.links.find(link) {
            self.lost_link(at, LossReason::Failed(error), now, io);
        }
    }

    fn next_deadline(&self) -> Option<Nanos> {
        (self.wake < Nanos::MAX).then_some(self.wake)
    }

    fn on_timer(&mut self, now: Nanos, io: &mut impl Io) {
        self.wake = Nanos::MAX;
        self.time_out_ops(now, io);
        for slot in 0..self.slots.count() {
            match self.slots.get(slot).and_then(|(flying, _)| flying.again_at) {
                Some(at) if at <= now => self.send(slot, now, io),
                Some(at) => self.wake = self.wake.min(at),
                None => {}
            }
        }
        self.repeat_control(now, io);
        self.renew_lease(now, io);
        self.reach_out(now, io);
        self.pump(now, io);
    }

    fn take_follow_on(&mut self, ended: Ticket) -> Option<NfsOp> {
        self.follow_ons.take(ended)
    }

    fn lost(&self) -> Option<String> {
        match &self.state {
            State::Gone(reason) => reason.clone(),
            _ => None,
        }
    }

    fn log_off(&mut self, now: Nanos, io: &mut impl Io) {
        self.leave(now, io);
    }

    fn has_logged_off(&self) -> bool {
        matches!(self.state, State::Begin | State::Gone(_))
    }

    fn take_counters(&mut self) -> SessionCounters {
        std::mem::take(&mut self.counters)
    }
}
