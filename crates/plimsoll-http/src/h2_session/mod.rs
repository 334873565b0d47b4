//! The client's side of HTTP/2 as a state machine: several ops in flight on one connection.
//! RFC 9113 §5, §8.
//!
//! Ops wait here until the connection is there, and while the server has as many streams open as it
//! allows. A connection that the server ends with GOAWAY finishes its replies while the new one is
//! in use.

mod lost;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::rc::Rc;

use plimsoll_engine::interface::{Io, Link, LinkError, LinkKind, Session, SessionCounters, Ticket};
use plimsoll_model::outcome::{ErrorClass, OpKind};
use plimsoll_model::units::Nanos;

use super::h2::connection::Connection;
use super::h2::event::{Event, Fault, Tag};
use super::h2::windows::{H2Settings, PeerSettings};
use super::reader::{InFlight, ReplyPhase};
use super::reader::{Plain, Reader};
use super::site::{HttpOp, WorkerSite};
use super::spare_links::LINGERING_LINKS_MAX;
use super::wire::head::Framing;
use super::wire::head::Head;
use super::wire::request::Method;

/// A buffer this large is not kept for the next requests.
const KEPT_BYTES_MAX: usize = 256 * 1024;

/// One client, or several that share its connection, whose replies are read by an `R`.
#[derive(Debug)]
pub struct H2Session<R: Reader = Plain> {
    site: Rc<WorkerSite>,
    settings: H2Settings,
    op_timeout: Nanos,
    reader: R,
    /// By ticket.
    ops: Vec<Option<Op<R::Reply>>>,
    in_flight: u32,
    /// Ops that no stream carries yet, in the order in which they go out.
    waiting: VecDeque<Ticket>,
    /// In the order of issue, which is that of the deadlines; of ops that have ended, too.
    deadlines: VecDeque<(Nanos, Ticket)>,
    /// Until when to wait for the ends of bodies of complete replies.
    rests: VecDeque<(Nanos, Ticket)>,
    links: Vec<OpenLink>,
    /// Ops whose bodies received bytes in the current call.
    touched: Vec<Ticket>,
    counts: Counts,
    /// What was wrong with the last connection that was given up.
    fault: Option<Fault>,
}

/// Its counts since the last call.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    verified: u64,
    refused: u64,
    stream_waits: u64,
    stream_resets: u64,
    unkept: u64,
}

/// A link and the connection that it carries.
#[derive(Debug)]
struct OpenLink {
    link: Link,
    connection: Box<Connection>,
    is_connected: bool,
    /// It has carried a whole reply.
    is_reused: bool,
    /// The server has refused what waited for it.
    is_refused: bool,
    /// When bytes came last.
    heard_at: Nanos,
    /// The bytes that came last ended a reply, and nothing followed.
    at_boundary: bool,
}

/// An op, and how far its request has come.
#[derive(Debug)]
struct Op<R> {
    flight: InFlight<R>,
    /// What carries it; `None` while it waits.
    stream: Option<(Link, u32)>,
    /// Bytes of the request's body that the windows have not let out.
    body_left: u64,
    /// The call that the session is in has brought bytes of its reply.
    is_touched: bool,
}

/// A body that is not as long as its header says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the reply ended after {got} bytes; its header says {announced}")]
struct WrongLength {
    announced: u64,
    got: u64,
}

impl<R: Default> Op<R> {
    /// An op that no stream carries yet.
    fn new(flight: InFlight<R>) -> Self {
        Self { flight, stream: None, body_left: 0, is_touched: false }
    }

    /// `bytes` of the body were sent.
    fn sent(&mut self, bytes: usize) {
        self.flight.sent_bytes += bytes as u64;
        self.body_left = self.body_left.saturating_sub(bytes as u64);
    }

    /// The reply has ended: whether its body has another length than announced. RFC 9113 §8.1.1
    fn wrong_length(&self) -> Option<WrongLength> {
        let ReplyPhase::Body { head, .. } = self.flight.phase else { return None };
        let has_body = self.flight.op.method != Method::HEAD && !matches!(head.status, 204 | 304);
        let announced = head.content_length.filter(|_| has_body)?;
        let got = self.flight.payload_bytes;
        (got != announced).then_some(WrongLength { announced, got })
    }
}

impl WrongLength {
    fn class(self) -> ErrorClass {
        if self.got < self.announced { ErrorClass::Truncated } else { ErrorClass::Malformed }
    }
}

impl<R: Reader> H2Session<R> {
    /// A client of `site`.
    pub fn new(site: Rc<WorkerSite>, settings: H2Settings, reader: R, op_timeout: Nanos) -> Self {
        Self {
            site,
            settings,
            op_timeout,
            reader,
            ops: Vec::new(),
            in_flight: 0,
            waiting: VecDeque::new(),
            deadlines: VecDeque::new(),
            rests: VecDeque::new(),
            links: Vec::new(),
            touched: Vec::new(),
            counts: Counts::default(),
            fault: None,
        }
    }

    /// What was wrong with the last connection that was given up.
    pub fn fault(&self) -> Option<Fault> {
        self.fault
    }

    /// The server's settings, once they have arrived.
    pub fn peer(&self) -> Option<PeerSettings> {
        self.links.iter().find_map(|open| open.connection.peer())
    }

    /// Heap bytes in use.
    pub fn heap_bytes(&self) -> usize {
        let connections = self.links.iter().map(|open| open.connection.heap_bytes());
        connections.sum::<usize>() + self.ops.capacity() * size_of::<Option<Op<R::Reply>>>()
    }

    fn connect(&mut self, io: &mut impl Io) {
        let link = io.connect(LinkKind::Stream);
        let connection = Connection::new(self.settings.windows);
        let connection = if R::READS_FIELDS { connection.keeping_fields() } else { connection };
        let connection = Box::new(connection);
        self.links.push(OpenLink {
            link,
            connection,
            is_connected: false,
            is_reused: false,
            is_refused: false,
            heard_at: Nanos::ZERO,
            at_boundary: false,
        });
    }

    /// Takes a link out, so that its events can be handled.
    fn take_link(&mut self, link: Link) -> Option<OpenLink> {
        let at = self.links.iter().position(|open| open.link == link)?;
        Some(self.links.swap_remove(at))
    }

    /// Sends the waiting ops, on a new connection if there is none for them.
    fn send_waiting(&mut self, io: &mut impl Io) {
        if self.waiting.is_empty() {
            return;
        }
        let Some(at) = self.links.iter().position(|open| open.connection.takes_more()) else {
            return self.connect(io);
        };
        let mut open = self.links.swap_remove(at);
        self.start_waiting(&mut open);
        self.put_back(open, io);
    }

    /// Ops that wait go out on this connection, as far as it takes them.
    fn start_waiting(&mut self, open: &mut OpenLink) {
        while open.is_connected
            && open.connection.has_room()
            && let Some(ticket) = self.waiting.pop_front()
        {
            self.start(open, ticket);
        }
    }

    /// Sends the request of an op, or what the windows allow of it.
    fn start(&mut self, open: &mut OpenLink, ticket: Ticket) {
        let Some(op) = self.ops.get_mut(ticket.0 as usize).and_then(Option::as_mut) else { return };
        let (site, connection, http) = (&self.site, &mut open.connection, op.flight.op);
        op.flight.sent_bytes = 0;
        site.with_body(&http, |body| {
            let stream = connection.open(Tag(ticket.0), !body.is_empty(), |table, out| {
                site.write_block(&http, body.len(), table, out);
            });
            op.stream = Some((open.link, stream));
            op.body_left = body.len() as u64;
            if !body.is_empty() {
                op.sent(connection.send_body(stream, body));
            }
        });
    }

    /// Windows have opened: sends what they allow of bodies that wait for them.
    fn send_bodies(&mut self, open: &mut OpenLink) {
        let (site, link) = (&self.site, open.link);
        let unsent = self.ops.iter_mut().flatten().filter(|op| op.body_left > 0);
        for op in unsent {
            let Some((of, stream)) = op.stream else { continue };
            if of == link {
                let at = op.flight.sent_bytes as usize;
                let http = op.flight.op;
                site.with_body(&http, |body| {
                    op.sent(open.connection.send_body(stream, &body[at.min(body.len())..]));
                });
            }
        }
    }

    /// Sends what the connection has written, and keeps it while it is of use.
    fn put_back(&mut self, mut open: OpenLink, io: &mut impl Io) {
        let out = &mut open.connection.out;
        if open.is_connected && !out.is_empty() {
            io.send(open.link, out);
            out.clear();
            if out.capacity() > KEPT_BYTES_MAX {
                *out = Vec::new();
            }
        }
        if open.connection.is_done() { io.close(open.link) } else { self.links.push(open) }
    }

    /// A connection that takes no more requests and has no more replies is left to the server to
    /// close, so that the waiting for late segments is its own.
    fn drop_ended(&mut self, io: &mut impl Io) {
        let has_ended =
            |open: &OpenLink| !open.connection.takes_more() && open.connection.streams() == 0;
        // The newest is in use.
        while self.links.len() > 1 + LINGERING_LINKS_MAX.min(self.site.spare_links.left())
            && let Some(at) = self.links.iter().position(has_ended)
        {
            io.close(self.links.swap_remove(at).link);
        }
    }

    fn on_event(&mut self, open: &mut OpenLink, event: Event<'_>, now: Nanos, io: &mut impl Io) {
        match event {
            Event::Settings | Event::Window => self.send_bodies(open),
            Event::Head { tag, status, length, ends } => {
                let Some(op) = self.op_mut(tag) else { return };
                op.flight.begun = true;
                let head = Head {
                    bytes: 0,
                    status,
                    persistent: true,
                    content_length: length,
                    chunked: false,
                    folded: false,
                };
                op.flight.phase = ReplyPhase::Body { head, framing: Framing::UntilClose };
                self.take_fields(open, tag);
                if ends {
                    self.finish(open, tag, now, io);
                }
            }
            Event::Data { tag, payload, ends } => {
                let site = Rc::clone(&self.site);
                let Some(op) = self.ops.get_mut(tag.0 as usize).and_then(Option::as_mut) else {
                    return;
                };
                op.flight.take_payload(payload, &site.site, &mut self.reader);
                if self.reader.reads(&op.flight.op) && !std::mem::replace(&mut op.is_touched, true)
                {
                    self.touched.push(Ticket(tag.0));
                }
                if ends {
                    self.finish(open, tag, now, io);
                }
            }
            Event::CallFailed(tag, code) => {
                open.is_reused = true;
                self.break_off(tag, ErrorClass::InBand, format_args!("{code}"), io);
            }
            Event::Reset(tag, code) => self.on_reset(open, tag, code, io),
            Event::Wrong(tag, why) => {
                self.fail(tag, ErrorClass::Malformed, format_args!("{why}"), io);
            }
            Event::GoAway => self.on_goaway(open, io),
        }
    }

    /// A reply is complete.
    fn finish(&mut self, open: &mut OpenLink, tag: Tag, now: Nanos, io: &mut impl Io) {
        open.is_reused = true;
        if let Some(why) = self.op_mut(tag).and_then(|op| op.wrong_length()) {
            return self.fail(tag, why.class(), format_args!("{why}"), io);
        }
        let Some(mut op) = self.end(tag) else { return };
        if op.is_touched {
            op.flight.end_read(&mut self.reader, now, io);
        }
        self.site.ended();
        self.conclude(op, now, io);
    }

    fn op_mut(&mut self, tag: Tag) -> Option<&mut Op<R::Reply>> {
        self.ops.get_mut(tag.0 as usize)?.as_mut()
    }

    /// Takes an op out that has ended.
    fn end(&mut self, tag: Tag) -> Option<Op<R::Reply>> {
        let op = self.ops.get_mut(tag.0 as usize)?.take()?;
        self.in_flight -= 1;
        Some(op)
    }

    /// Forgets deadlines of ops that have ended: those in front, and all where they are many.
    fn forget_deadlines(&mut self) {
        let is_live = |(deadline, ticket): &(Nanos, Ticket)| {
            let op = self.ops.get(ticket.0 as usize).and_then(Option::as_ref);
            op.is_some_and(|op| op.flight.deadline == *deadline)
        };
        while self.deadlines.front().is_some_and(|first| !is_live(first)) {
            self.deadlines.pop_front();
        }
        if self.deadlines.len() > 4 * self.ops.len() + 64 {
            self.deadlines.retain(is_live);
        }
    }
}

impl<R: Reader> Session for H2Session<R> {
    type Op = HttpOp;

    const BATCH_SENDS: bool = true;

    fn kind(&self, op: &HttpOp) -> OpKind {
        op.kind
    }

    fn has_room(&self) -> bool {
        self.in_flight < self.settings.streams
    }

    fn issue(&mut self, ticket: Ticket, op: HttpOp, now: Nanos, io: &mut impl Io) {
        if let Some(why) = self.reader.lost() {
            return InFlight::<R::Reply>::new(ticket, op, now).refuse(&why, io);
        }
        if self.reader.is_first_of_user(&op) {
            self.leave_connections(io);
        }
        let gives_up_at = self.reader.gives_up_at(&op).unwrap_or(Nanos::MAX);
        let deadline = now.saturating_add(self.op_timeout).min(gives_up_at);
        let index = ticket.0 as usize;
        if self.ops.len() <= index {
            self.ops.resize_with(index + 1, || None);
        }
        self.ops[index] = Some(Op::new(InFlight::new(ticket, op, deadline)));
        self.in_flight += 1;
        self.deadlines.push_back((deadline, ticket));
        self.waiting.push_back(ticket);
        self.send_waiting(io);
        if !self.waiting.is_empty() && self.peer().is_some() {
            self.counts.stream_waits += 1;
        }
    }

    fn on_connected(&mut self, link: Link, _now: Nanos, io: &mut impl Io) {
        let Some(mut open) = self.take_link(link) else { return };
        open.is_connected = true;
        self.start_waiting(&mut open);
        self.put_back(open, io);
    }

    fn on_bytes(&mut self, link: Link, bytes: &[u8], now: Nanos, io: &mut impl Io) {
        let Some(mut open) = self.take_link(link) else { return };
        (open.at_boundary, open.heard_at) = (false, now);
        let mut rest = bytes;
        let fault = loop {
            match open.connection.next(&mut rest) {
                Ok(None) => break None,
                Ok(Some(event)) => {
                    let ends = matches!(
                        event,
                        Event::Head { ends: true, .. }
                            | Event::Data { ends: true, .. }
                            | Event::CallFailed(..)
                    );
                    open.at_boundary = ends && rest.is_empty();
                    self.on_event(&mut open, event, now, io);
                }
                Err(fault) => break Some(fault),
            }
        };
        self.end_reads(&mut open, now, io);
        match fault {
            None => self.put_back(open, io),
            Some(fault) => self.give_up(open, fault, io),
        }
        self.send_waiting(io);
        self.drop_ended(io);
        self.forget_deadlines();
    }

    fn on_discarded(&mut self, _link: Link, _n: u64, _now: Nanos, _io: &mut impl Io) {
        // Nothing is ever discarded: frames are too short to be worth it.
    }

    fn on_eof(&mut self, link: Link, _now: Nanos, io: &mut impl Io) {
        let Some(open) = self.take_link(link) else { return };
        io.close(link);
        let why = format_args!("the server closed the connection");
        self.lose(open, ErrorClass::Transport, why, io);
    }

    fn on_failed(&mut self, link: Link, error: LinkError, _now: Nanos, io: &mut impl Io) {
        let Some(open) = self.take_link(link) else { return };
        match (error.class, error.errno) {
            (class @ ErrorClass::Tls, _) => self.lose(open, class, format_args!("TLS failed"), io),
            (class, 0) => {
                self.lose(open, class, format_args!("the server closed the connection"), io);
            }
            (class, _) => self.lose(open, class, format_args!("{error}"), io),
        }
    }

    fn next_deadline(&self) -> Option<Nanos> {
        let fronts = [self.deadlines.front(), self.rests.front()];
        fronts.into_iter().flatten().map(|(deadline, _)| *deadline).min()
    }

    fn on_timer(&mut self, now: Nanos, io: &mut impl Io) {
        while let Some((until, ticket)) = self.rests.front().copied()
            && until <= now
        {
            self.rests.pop_front();
            self.end_rest(until, ticket, io);
        }
        while let Some((deadline, ticket)) = self.deadlines.front().copied()
            && deadline <= now
        {
            self.deadlines.pop_front();
            self.time_out(deadline, ticket, io);
        }
        self.send_waiting(io);
        self.forget_deadlines();
    }

    fn at_boundary(&self, link: Link) -> bool {
        self.links.iter().any(|open| open.link == link && open.at_boundary)
    }

    fn lost(&self) -> Option<String> {
        self.reader.lost()
    }

    fn take_counters(&mut self) -> SessionCounters {
        let Counts { verified, refused, stream_waits, stream_resets, unkept } =
            std::mem::take(&mut self.counts);
        let mut counters = SessionCounters {
            verified,
            refused,
            stream_waits,
            stream_resets,
            unkept,
            ..SessionCounters::default()
        };
        self.reader.count_into(&mut counters);
        counters
    }
}
