//! The client's side of SMB as a state machine: logon, then many ops in flight over one TCP
//! connection.
//!
//! | module | what it holds |
//! | --- | --- |
//! | `credits` | message ids, and what pays for them |
//! | `flights` | the ops under way, and the commands each is made of |
//! | `handles`, `ranges` | open files, and what is known of their content |
//! | `encode` | from an op to the bytes of its commands |
//! | `check` | from the bytes of a reply to what it means for its op |
//! | `verdict` | from a status to how the op ended |
//! | `deltree` | removing a directory with all below it |
//! | `chores` | what is sent without an op: acknowledged breaks, stray closes |
//! | `lone` | logons with a connection of their own |
//! | `words` | what an error sample says |
//!
//! The first op opens the connection and logs on. An op ends once: by its replies, or because the
//! client is lost: its connection or session is gone, its peer answers nonsense, or not in time,
//! or too often with another status than expected. A lost client does not come back, as in the
//! method: it leaves the mix.

mod check;
mod chores;
mod credits;
mod deltree;
mod encode;
mod flights;
mod handles;
mod lone;
mod ranges;
mod verdict;
mod words;

#[cfg(test)]
mod tests;

use std::cell::RefCell;
use std::collections::VecDeque;
use std::mem;
use std::rc::Rc;

use plimsoll_engine::seam::{
    ClientSeat, Io, Link, LinkError, LinkKind, Session, SessionCounters, Ticket,
};
use plimsoll_model::outcome::OpKind;
use plimsoll_model::units::Nanos;

use self::chores::{Chore, Chores};
use self::credits::Credits;
use self::encode::Sending;
use self::flights::{Flight, Flights, Stage};
use self::handles::{Handles, Held};
use self::lone::{LinkState, LoneLogons};
use self::verdict::{Verdict, verdict};
use self::words::{Complaint, Described};
use super::logon::{Credentials, Established, Logon, LogonProgress, LogonRequest, Offer};
use super::op::{HandleNo, SmbCall, SmbOp};
use super::wire::frame::{Assembler, FrameError};
use super::wire::header::{Part, Parts, UNSOLICITED};
use super::wire::status;
use super::workspace::ContentTable;
use crate::keyed;

pub use super::parameters::Caching;

/// Credits kept at least for each op that may be in flight.
const CREDITS_PER_OP: u32 = 8;
/// Credits kept at least.
const CREDITS_MIN: u32 = 64;

/// One share as its clients need it.
#[derive(Debug)]
pub struct SmbSite {
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
    /// Statuses other than the expected ones after which a client leaves the mix; so many are
    /// still allowed.
    pub unexpected_max: u32,
    /// Memory that the clients of a worker share.
    pub buffers: RefCell<Buffers>,
}

/// Memory for one message out and one in, used again for the next.
#[derive(Debug, Default)]
pub struct Buffers {
    out: Vec<u8>,
    plain: Vec<u8>,
    path: String,
}

/// One client.
pub struct SmbSession {
    site: Rc<SmbSite>,
    seat: ClientSeat,
    line: Line,
    assembler: Assembler,
    flights: Flights,
    /// Slots of flights that have something to send, in the order of their issue.
    waiting: VecDeque<usize>,
    handles: Handles,
    chores: Chores,
    logons: LoneLogons,
    /// Nothing has to be done before this instant. Never too late; may be too early.
    wake: Nanos,
    unexpected: u32,
    counters: SessionCounters,
    lost: Option<String>,
}

/// The connection of a client.
enum Line {
    /// Not needed yet.
    Idle,
    Connecting(Link),
    LoggingOn(Link, Box<Logon>),
    Up(Box<Connected>),
    /// The client is lost.
    Gone,
}

/// A client that has logged on.
struct Connected {
    link: Link,
    credits: Credits,
    established: Established,
}

/// Why no further messages of a turn are looked at.
#[derive(Debug)]
enum Stop {
    /// The client is lost.
    Lost,
    /// The stream cannot be read on.
    Stream(FrameError),
}

impl From<FrameError> for Stop {
    fn from(error: FrameError) -> Self {
        Self::Stream(error)
    }
}

impl Line {
    fn link(&self) -> Option<Link> {
        match self {
            Self::Idle | Self::Gone => None,
            Self::Connecting(link) | Self::LoggingOn(link, _) => Some(*link),
            Self::Up(up) => Some(up.link),
        }
    }

    /// What an op waits for that has not been sent.
    fn waited_for(&self) -> &'static str {
        match self {
            Self::Idle | Self::Gone | Self::Connecting(_) => "connection",
            Self::LoggingOn(..) => "end of the logon",
            Self::Up(_) => "credits from the server to send it with",
        }
    }
}

impl SmbSession {
    /// A client of `site`.
    pub fn new(site: Rc<SmbSite>, seat: ClientSeat) -> Self {
        Self {
            site,
            seat,
            line: Line::Idle,
            assembler: Assembler::default(),
            flights: Flights::default(),
            waiting: VecDeque::new(),
            handles: Handles::default(),
            chores: Chores::default(),
            logons: LoneLogons::default(),
            wake: Nanos::MAX,
            unexpected: 0,
            counters: SessionCounters::default(),
            lost: None,
        }
    }

    /// The connection is open: the first message of the logon goes out.
    fn log_on(&mut self, link: Link, io: &mut impl Io) {
        let mut logon = Box::new(self.site.logon(self.seat, 0));
        let site = self.site.clone();
        let out = &mut site.buffers.borrow_mut().out;
        out.clear();
        logon.start(out);
        io.send(link, out);
        self.line = Line::LoggingOn(link, logon);
    }

    /// One whole message arrived.
    fn on_message(&mut self, message: &[u8], io: &mut impl Io) -> Result<(), Stop> {
        match &mut self.line {
            Line::LoggingOn(link, logon) => {
                let link = *link;
                let site = self.site.clone();
                let out = &mut site.buffers.borrow_mut().out;
                out.clear();
                match logon.on_message(message, out) {
                    Ok(LogonProgress::More) => io.send(link, out),
                    Ok(LogonProgress::Done(established)) => self.logged_on(link, *established),
                    Err(error) => return self.lose(Complaint::Logon(&error), None, io),
                }
                Ok(())
            }
            Line::Up(_) => {
                let mut plain = mem::take(&mut self.site.buffers.borrow_mut().plain);
                let read = self.on_sealed(message, &mut plain, io);
                self.site.buffers.borrow_mut().plain = plain;
                read
            }
            Line::Idle | Line::Connecting(_) | Line::Gone => Err(Stop::Lost),
        }
    }

    fn logged_on(&mut self, link: Link, established: Established) {
        let wanted = self.site.outstanding_max.saturating_mul(CREDITS_PER_OP).max(CREDITS_MIN);
        let (next, held) = (established.next_message_id, established.credits);
        let credits = Credits::new(next, held, wanted);
        self.line = Line::Up(Box::new(Connected { link, credits, established }));
    }

    /// A message of the session: a reply, several, or what the server says unasked.
    fn on_sealed(
        &mut self,
        message: &[u8],
        plain: &mut Vec<u8>,
        io: &mut impl Io,
    ) -> Result<(), Stop> {
        let Line::Up(up) = &mut self.line else { return Err(Stop::Lost) };
        let opened = match up.established.seal.open(message, plain) {
            Ok(opened) => opened,
            Err(error) => {
                let complaint = words::unsealed(&error);
                return self.lose(complaint, None, io);
            }
        };
        for part in Parts::new(opened) {
            match part {
                Ok(part) => self.on_part(&part, io)?,
                Err(error) => return self.lose(Complaint::Message(error), None, io),
            }
        }
        Ok(())
    }

    fn on_part(&mut self, part: &Part<'_>, io: &mut impl Io) -> Result<(), Stop> {
        let header = &part.header;
        let command = header.command;
        if !header.is_response() {
            let what = "it is a request";
            return self.lose(Complaint::Nonsense { command, what }, None, io);
        }
        if header.message_id == UNSOLICITED {
            return self.on_break(part, io);
        }
        let Line::Up(up) = &mut self.line else { return Err(Stop::Lost) };
        let is_interim = header.status == status::PENDING && header.async_id.is_some();
        let Some((at, place)) = self.flights.find(header.message_id) else {
            // One of no op, or one that answers nothing: then there is nothing to do.
            if self.chores.answered(header.message_id, is_interim) {
                up.credits.grant(header.credits);
            }
            return Ok(());
        };
        up.credits.grant(header.credits);
        let Some(flight) = self.flights.get(at) else { return Ok(()) };
        if is_interim {
            flight.stage = Stage::Pending;
            return Ok(());
        }
        if words::is_gone(header.status) {
            let complaint = Complaint::Gone { command, status: header.status };
            return self.lose(complaint, Some(at), io);
        }
        if let Err(complaint) = flight.take(place, part, &self.site) {
            return self.lose(complaint, Some(at), io);
        }
        if flight.is_answered() { self.conclude(at, io) } else { Ok(()) }
    }

    /// All commands of a flight are answered: it goes on, or ends.
    fn conclude(&mut self, at: usize, io: &mut impl Io) -> Result<(), Stop> {
        let Some(flight) = self.flights.get(at) else { return Ok(()) };
        let status = flight.status();
        if let Some(tree) = &mut flight.tree {
            return match tree.ended(status) {
                deltree::Next::Go => {
                    flight.again();
                    self.flights.rest(at);
                    self.waiting.push_back(at);
                    Ok(())
                }
                deltree::Next::Done(status) => self.finish(at, status, io),
            };
        }
        if flight.has_more_parts() {
            flight.again();
            self.flights.rest(at);
            self.waiting.push_front(at);
            return Ok(());
        }
        match flight.call.op {
            SmbOp::Create { handle, .. } => {
                if let Some((file, held)) = flight.opened
                    && let Some(before) = self.handles.insert(handle, file, held)
                {
                    self.chores.push(Chore::Close(before));
                }
            }
            SmbOp::Read { handle, offset, .. } | SmbOp::Write { handle, offset, .. } => {
                let moved = flight.moved;
                self.remember(handle, offset, moved);
            }
            SmbOp::SetFile { handle, .. } => self.forget(handle),
            _ => {}
        }
        self.finish(at, status, io)
    }

    /// The range need not be asked for again, if the server lets the client keep it.
    fn remember(&mut self, handle: HandleNo, offset: u64, bytes: u32) {
        let open = self.handles.get_mut(handle).filter(|open| open.held != Held::Nothing);
        if let Some(open) = open {
            open.ranges.add(offset, bytes);
        }
    }

    fn forget(&mut self, handle: HandleNo) {
        if let Some(open) = self.handles.get_mut(handle) {
            open.ranges.clear();
        }
    }

    /// The op ends with this status from the server.
    fn finish(&mut self, at: usize, status: u32, io: &mut impl Io) -> Result<(), Stop> {
        let Some(flight) = self.flights.end(at) else { return Ok(()) };
        self.counters.verified += u64::from(flight.verified && flight.complaint.is_none());
        self.settle(&flight, verdict(&flight, status), io)
    }

    fn settle(
        &mut self,
        flight: &Flight,
        verdict: Verdict<'_>,
        io: &mut impl Io,
    ) -> Result<(), Stop> {
        let complaint = match verdict {
            Ok(status) => {
                io.complete(flight.ticket, flight.outcome(status));
                return Ok(());
            }
            Err(complaint) => complaint,
        };
        let op = &flight.call.op;
        io.explain(format_args!("{}: {complaint}", Described(op)));
        io.complete(flight.ticket, flight.outcome(complaint.status()));
        if let Complaint::Unexpected { .. } = complaint {
            self.unexpected += 1;
            if self.unexpected > self.site.unexpected_max {
                let reason = format!(
                    "{} ops ended with another status than expected (allowed: {}); the last: {}: \
                     {complaint}",
                    self.unexpected,
                    self.site.unexpected_max,
                    Described(op)
                );
                self.leave(reason, Complaint::Left, None, io);
                return Err(Stop::Lost);
            }
        }
        Ok(())
    }

    /// The client cannot go on. The op in slot `guilty` ends with the complaint; when there is
    /// none, all do.
    fn lose(
        &mut self,
        complaint: Complaint<'_>,
        guilty: Option<usize>,
        io: &mut impl Io,
    ) -> Result<(), Stop> {
        let flight = guilty.and_then(|at| self.flights.get(at));
        let reason = match flight {
            Some(flight) => format!("{}: {complaint}", Described(&flight.call.op)),
            None => complaint.to_string(),
        };
        self.leave(reason, complaint, guilty, io);
        Err(Stop::Lost)
    }

    fn leave(
        &mut self,
        reason: String,
        complaint: Complaint<'_>,
        guilty: Option<usize>,
        io: &mut impl Io,
    ) {
        if let Some(link) = self.line.link() {
            io.close(link);
        }
        self.line = Line::Gone;
        self.assembler.reset();
        self.waiting.clear();
        self.lost.get_or_insert(reason);
        for at in 0..self.flights.slots() {
            let Some(flight) = self.flights.end(at) else { continue };
            let complaint = match guilty {
                Some(guilty) if guilty != at => Complaint::Left,
                _ => complaint,
            };
            io.explain(format_args!("{}: {complaint}", Described(&flight.call.op)));
            io.complete(flight.ticket, flight.outcome(complaint.status()));
        }
        self.logons.leave(io);
    }

    /// Sends what there are credits for, in order.
    fn pump(&mut self, io: &mut impl Io) {
        while let Line::Up(_) = self.line {
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
                Sending::NoCredits => {
                    // Nothing under way will bring any.
                    let is_idle = self.waiting.len() == self.flights.len();
                    if !is_idle || !self.chores.beg() {
                        return;
                    }
                }
            }
        }
    }

    /// A read of what is known already; the client may answer it itself.
    fn is_known(&self, op: &SmbOp) -> bool {
        let SmbOp::Read { handle, offset, length, .. } = *op else { return false };
        let open = self.handles.get(handle).filter(|open| open.held != Held::Nothing);
        open.is_some_and(|open| open.ranges.holds(offset, length))
    }
}

impl SmbSite {
    /// Logon number `nth` of a client.
    fn logon(&self, seat: ClientSeat, nth: u64) -> Logon {
        let nonce = keyed::key(&[seat.nonce, u64::from(seat.client), nth]);
        // Every client is a machine of its own: a server may serve all connections of one machine
        // in one process, and would measure something else then.
        let mut offer = self.offer.clone();
        offer.client_guid[..8].copy_from_slice(&nonce.to_le_bytes());
        offer.client_guid[8..].copy_from_slice(&keyed::key(&[nonce]).to_le_bytes());
        let (credentials, unc) = (&self.credentials, &self.unc);
        Logon::new(&LogonRequest { credentials, offer: &offer, unc, nonce })
    }
}

/// The handle an op is about, which must be open.
fn handle_of(op: &SmbOp) -> Option<HandleNo> {
    match op {
        SmbOp::Close { handle }
        | SmbOp::Flush { handle }
        | SmbOp::Read { handle, .. }
        | SmbOp::Write { handle, .. }
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
        self.flights.len() + self.logons.len() < self.site.outstanding_max.max(1) as usize
    }

    fn issue(&mut self, ticket: Ticket, call: SmbCall, now: Nanos, io: &mut impl Io) {
        let deadline = now.saturating_add(self.seat.op_timeout);
        let mut flight = Flight::new(ticket, call, deadline);
        if let Some(reason) = &self.lost {
            io.explain(format_args!("{reason}"));
            io.complete(ticket, flight.outcome(Complaint::Left.status()));
            return;
        }
        self.wake = self.wake.min(deadline);
        if let SmbOp::Logon = flight.call.op {
            return self.logons.start(flight, io);
        }
        if self.is_known(&flight.call.op)
            && let SmbOp::Read { length, .. } = flight.call.op
        {
            flight.moved = length;
            let _ = self.settle(&flight, verdict(&flight, status::SUCCESS), io);
            return;
        }
        if let Line::Idle = self.line {
            self.line = Line::Connecting(io.connect(LinkKind::Stream));
        }
        let at = self.flights.start(flight);
        self.waiting.push_back(at);
        self.pump(io);
    }

    fn on_connected(&mut self, link: Link, _now: Nanos, io: &mut impl Io) {
        match self.line {
            Line::Connecting(own) if own == link => self.log_on(link, io),
            _ => {
                let (site, seat) = (self.site.clone(), self.seat);
                let buffers = &mut site.buffers.borrow_mut();
                self.logons.connected(link, |nth| site.logon(seat, nth), buffers, io);
            }
        }
    }

    fn on_bytes(&mut self, link: Link, bytes: &[u8], _now: Nanos, io: &mut impl Io) {
        if self.line.link() != Some(link) {
            if let Some((flight, verdict)) = self.logons.bytes(link, bytes, &self.site, io) {
                let _ = self.settle(&flight, verdict, io);
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
                let _ = self.lose(Complaint::Stream(error), None, io);
            }
        }
    }

    fn on_discarded(&mut self, _link: Link, _n: u64, _now: Nanos, _io: &mut impl Io) {
        // Nothing is ever discarded: every reply is decoded.
    }

    fn on_eof(&mut self, link: Link, _now: Nanos, io: &mut impl Io) {
        if self.line.link() == Some(link) {
            let _ = self.lose(Complaint::Closed, None, io);
        } else {
            self.logons.broke(link, LinkState::Open, Complaint::Closed, io);
        }
    }

    fn on_failed(&mut self, link: Link, error: LinkError, _now: Nanos, io: &mut impl Io) {
        if self.line.link() == Some(link) {
            // It is closed already.
            self.line = Line::Gone;
            let _ = self.lose(Complaint::Broken(error), None, io);
        } else {
            self.logons.broke(link, LinkState::Closed, Complaint::Broken(error), io);
        }
    }

    fn next_deadline(&self) -> Option<Nanos> {
        (self.flights.len() + self.logons.len() > 0).then_some(self.wake)
    }

    fn on_timer(&mut self, now: Nanos, io: &mut impl Io) {
        self.wake = Nanos::MAX;
        let after = self.seat.op_timeout;
        self.logons.time_out(now, after, io);
        self.wake = self.wake.min(self.logons.deadline());
        for at in 0..self.flights.slots() {
            let Some(flight) = self.flights.get(at) else { continue };
            if flight.deadline <= now {
                let waited_for = match flight.stage {
                    Stage::Waiting => self.line.waited_for(),
                    Stage::Sent => "reply",
                    Stage::Pending => "final reply (STATUS_PENDING came)",
                };
                let _ = self.lose(Complaint::Timeout { after, waited_for }, Some(at), io);
                return;
            }
            self.wake = self.wake.min(flight.deadline);
        }
    }

    fn lost(&self) -> Option<String> {
        self.lost.clone()
    }

    fn take_counters(&mut self) -> SessionCounters {
        mem::take(&mut self.counters)
    }
}
