//! The client's side of the transaction protocol as a state machine: one connection that is kept,
//! one transaction in flight.
//!
//! The first transaction waits for the greeting. After a connection has broken, the next one opens
//! another; if the server refuses clients or breaks the protocol, the client leaves.

mod flight;
mod site;
#[cfg(test)]
mod tests;

use std::fmt;
use std::rc::Rc;

use plimsoll_engine::interface::{
    ClientContext, Io, Link, LinkError, LinkKind, Session, SessionCounters, Ticket,
};
use plimsoll_model::outcome::{ErrorClass, OpKind, OpStatus, Outcome};
use plimsoll_model::units::Nanos;

use super::op::{AppKind, AppOp, content_key};
use super::refusal;
use super::wire::{
    Hello, REPLY_HEADER_BYTES, ReplyHeader, Status, VERSION, WELCOME_BYTES, Welcome,
};
use flight::{Broken, Flight, Pieces, Reply, RequestLabel, check_header, first_difference};
use plimsoll_protocol::TrailingBytes;
use site::Request;
pub use site::{AppSite, WorkerSite, segment_of};

/// A body with at least this much still to come is discarded in the kernel if it is not compared;
/// below, one more system call costs more than the copy.
pub const DISCARD_BYTES_MIN: u32 = 8 * 1_024;
/// A client that the server did not greet waits this long before it reconnects: sixty clients that
/// retry without a pause would be a load of their own.
pub const RECONNECT_AFTER: Nanos = Nanos::from_millis(100);

/// One client.
#[derive(Debug)]
pub struct AppSession {
    worker: Rc<WorkerSite>,
    client: u32,
    key: u64,
    op_timeout: Nanos,
    line: Line,
    /// No connection is tried before this.
    not_before: Nanos,
    pieces: Pieces,
    flight: Option<Flight>,
    /// Transactions issued; the count also numbers them.
    issued: u32,
    sequential_reads: u64,
    sequential_writes: u64,
    /// Blocks this connection has appended; the server counts them too.
    appended: u64,
    lost: Option<String>,
    /// The transaction that ended last, if it ended well.
    answered: Option<Request>,
    counters: SessionCounters,
}

/// The connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Line {
    /// None; the next transaction opens one.
    None,
    /// None; one is opened at [`AppSession::not_before`].
    Resting,
    /// On its way.
    Connecting(Link),
    /// Our greeting is out.
    Greeting(Link),
    /// The server has greeted.
    Ready(Link),
}

impl Line {
    const fn link(self) -> Option<Link> {
        match self {
            Self::None | Self::Resting => None,
            Self::Connecting(link) | Self::Greeting(link) | Self::Ready(link) => Some(link),
        }
    }
}

impl AppSession {
    /// The client of `context`.
    pub fn new(worker: Rc<WorkerSite>, context: &ClientContext) -> Self {
        Self {
            key: content_key(&worker.site.content, context.client),
            worker,
            client: context.client,
            op_timeout: context.op_timeout,
            line: Line::None,
            not_before: Nanos::ZERO,
            pieces: Pieces::new(),
            flight: None,
            issued: 0,
            sequential_reads: 0,
            sequential_writes: 0,
            appended: 0,
            lost: None,
            answered: None,
            counters: SessionCounters::default(),
        }
    }

    /// Gives the transaction its number and its offset.
    fn build_request(&mut self, op: AppOp) -> Request {
        let segment = self.worker.site.segment;
        let next = |count: &mut u64| {
            let at = *count;
            *count += 1;
            at
        };
        let offset = match op.kind {
            AppKind::ClientServer | AppKind::Processor | AppKind::ServerClient => 0,
            AppKind::RandomRead | AppKind::RandomWrite => segment.offset(op.block),
            AppKind::SequentialRead => segment.offset(next(&mut self.sequential_reads)),
            AppKind::SequentialWrite => segment.offset(next(&mut self.sequential_writes)),
            AppKind::Append => segment.append_offset(self.appended),
        };
        self.issued = self.issued.wrapping_add(1);
        Request { op, id: self.issued, offset, key: self.key }
    }

    /// A new connection appends from the beginning of the segment on.
    fn begin_appends_anew(&mut self) {
        self.appended = 0;
        if let Some(flight) = self.flight.as_mut()
            && flight.request.op.kind == AppKind::Append
        {
            flight.request.offset = 0;
        }
    }

    fn connect(&mut self, now: Nanos, io: &mut impl Io) {
        self.pieces.clear();
        self.line = match now < self.not_before {
            true => Line::Resting,
            false => Line::Connecting(io.connect(LinkKind::Stream)),
        };
    }

    /// The server's greeting; true when it is complete and lets us in.
    fn take_greeting(&mut self, bytes: &[u8]) -> Result<bool, Broken> {
        let Some((greeting, rest)) = self.pieces.take::<WELCOME_BYTES>(bytes) else {
            return Ok(false);
        };
        let segment_bytes = self.worker.site.segment_bytes;
        let reason = match Welcome::decode(&greeting) {
            Ok(welcome) => refusal::message(&welcome, segment_bytes),
            Err(error) => Some(format!("the server's greeting cannot be read: {error}")),
        };
        if let Some(reason) = reason {
            self.lost = Some(reason.clone());
            return Err(Broken { class: ErrorClass::Rejected, why: reason });
        }
        match rest.is_empty() {
            true => Ok(true),
            false => Err(Broken::malformed("bytes follow the server's greeting")),
        }
    }

    /// Reads what it can of the reply; the header's status when it is complete.
    fn take_reply(
        &mut self,
        link: Link,
        bytes: &[u8],
        io: &mut impl Io,
    ) -> Result<Option<Status>, Broken> {
        let Some(flight) = self.flight.as_mut() else { return Ok(None) };
        let mut rest = bytes;
        if let Reply::Awaited = flight.reply {
            let Some((header, after)) = self.pieces.take::<REPLY_HEADER_BYTES>(rest) else {
                return Ok(None);
            };
            rest = after;
            let header = ReplyHeader::decode(&header).map_err(Broken::malformed)?;
            check_header(&header, flight, &self.worker.site)?;
            if header.status != Status::Ok {
                return match rest.is_empty() {
                    true => Ok(Some(header.status)),
                    false => Err(Broken::trailing_bytes(rest.len())),
                };
            }
            let (left, checksum) = (header.payload_bytes, header.checksum);
            flight.reply = Reply::Body { left, checksum, wrong_at: None };
        }
        let Reply::Body { left, wrong_at, .. } = &mut flight.reply else { return Ok(None) };
        if rest.len() > *left as usize {
            return Err(Broken::trailing_bytes(rest.len() - *left as usize));
        }
        let op = flight.request.op;
        if op.compare
            && wrong_at.is_none()
            && let Some(body) = self.worker.site.body(op.kind)
        {
            let at = body.len() - *left as usize;
            *wrong_at = first_difference(&body[at..at + rest.len()], rest).map(|n| (at + n) as u32);
        }
        *left -= rest.len() as u32;
        if *left == 0 {
            return Ok(Some(Status::Ok));
        }
        if *left >= DISCARD_BYTES_MIN && !op.compare {
            // The read of the last byte shows whether more follows.
            io.discard(link, u64::from(*left - 1));
        }
        Ok(None)
    }

    /// The reply is complete.
    fn finish(&mut self, status: Status, io: &mut impl Io) {
        let Some(flight) = self.flight.take() else { return };
        self.answered = None;
        if status != Status::Ok {
            io.explain(format_args!("{}: {}", RequestLabel(&flight.request), status.name()));
            let actual = status as u32;
            let unexpected = OpStatus::Unexpected { expected: Status::Ok as u32, actual };
            return io.complete(flight.ticket, self.outcome(&flight, unexpected));
        }
        let kind = flight.request.op.kind;
        // Whatever its checksum: the server has moved on, and the next append goes behind it.
        self.appended += u64::from(kind == AppKind::Append);
        let status = self.check_reply(&flight, io);
        if status == OpStatus::Ok {
            self.answered = Some(flight.request);
            let compared = flight.request.op.compare && self.worker.site.body(kind).is_some();
            // A read's checksum is over content that is known.
            let is_read = matches!(kind, AppKind::RandomRead | AppKind::SequentialRead);
            self.counters.verified += u64::from(compared || is_read);
        }
        io.complete(flight.ticket, self.outcome(&flight, status));
    }

    fn check_reply(&self, flight: &Flight, io: &mut impl Io) -> OpStatus {
        let Reply::Body { checksum, wrong_at, .. } = flight.reply else { return OpStatus::Ok };
        let label = RequestLabel(&flight.request);
        if let Some(at) = wrong_at {
            io.explain(format_args!("{label}: byte {at} of the reply differs from the work block"));
            return OpStatus::Failed(ErrorClass::Corrupt);
        }
        let expected = self.worker.checksum(&flight.request);
        if checksum == expected {
            return OpStatus::Ok;
        }
        io.explain(format_args!("{label}: checksum {checksum:#010x} instead of {expected:#010x}"));
        OpStatus::Failed(ErrorClass::Corrupt)
    }

    fn outcome(&self, flight: &Flight, status: OpStatus) -> Outcome {
        let kind = flight.request.op.kind;
        let (bytes_read, bytes_written) = match flight.reply {
            Reply::Awaited => (0, 0),
            Reply::Body { left, .. } => (
                u64::from(self.worker.site.body_bytes(kind) - left),
                u64::from(self.worker.payload_bytes(kind)),
            ),
        };
        let kind = kind.op_kind();
        Outcome { kind, status, bytes_read, bytes_written, ambiguous: false }
    }

    fn fail(&mut self, class: ErrorClass, why: fmt::Arguments<'_>, io: &mut impl Io) {
        let Some(flight) = self.flight.take() else { return };
        self.answered = None;
        io.explain(format_args!("{}: {why}", RequestLabel(&flight.request)));
        io.complete(flight.ticket, self.outcome(&flight, OpStatus::Failed(class)));
    }

    /// Lets go of the connection, if it is still there.
    fn hang_up(&mut self, io: &mut impl Io) {
        if let Some(link) = self.line.link() {
            io.close(link);
        }
        self.line = Line::None;
        self.pieces.clear();
    }

    fn break_off(&mut self, broken: &Broken, io: &mut impl Io) {
        self.hang_up(io);
        self.fail(broken.class, format_args!("{}", broken.why), io);
    }

    /// Bytes that answer nothing: the connection is out of step.
    fn refuse(&mut self, bytes: &[u8], io: &mut impl Io) {
        self.hang_up(io);
        if let Some(request) = self.answered.take() {
            io.explain(format_args!("{}: {}", RequestLabel(&request), TrailingBytes(bytes.len())));
            io.report_trailing_bytes(request.op.kind.op_kind());
        }
    }

    /// The connection is gone.
    fn cut(&mut self, class: ErrorClass, why: fmt::Arguments<'_>, now: Nanos, io: &mut impl Io) {
        let was = std::mem::replace(&mut self.line, Line::None);
        let is_partial = self.pieces.buffered() > 0;
        self.pieces.clear();
        let (class, phase) = match (was, self.flight.map(|flight| flight.reply)) {
            (Line::Ready(_), Some(Reply::Body { .. })) => (ErrorClass::Truncated, "in the reply"),
            (Line::Ready(_), _) if is_partial => (ErrorClass::Truncated, "in the reply"),
            (Line::Ready(_), _) => (class, "before the reply"),
            _ => {
                self.not_before = now.saturating_add(RECONNECT_AFTER);
                (class, "before the server had greeted")
            }
        };
        self.fail(class, format_args!("{why} {phase}"), io);
    }
}

impl Session for AppSession {
    type Op = AppOp;

    fn kind(&self, op: &AppOp) -> OpKind {
        op.kind.op_kind()
    }

    fn has_room(&self) -> bool {
        self.flight.is_none() && self.lost.is_none()
    }

    fn issue(&mut self, ticket: Ticket, op: AppOp, now: Nanos, io: &mut impl Io) {
        let request = self.build_request(op);
        let deadline = now.saturating_add(self.op_timeout);
        self.flight = Some(Flight { ticket, request, deadline, reply: Reply::Awaited });
        match self.line {
            Line::Ready(link) => self.worker.send(&request, link, io),
            Line::None => self.connect(now, io),
            Line::Resting | Line::Connecting(_) | Line::Greeting(_) => {}
        }
    }

    fn on_connected(&mut self, link: Link, _now: Nanos, io: &mut impl Io) {
        if self.line == Line::Connecting(link) {
            self.line = Line::Greeting(link);
            let segment_bytes = self.worker.site.segment_bytes;
            let hello = Hello { version: VERSION, client: self.client, segment_bytes };
            io.send(link, &hello.encode());
        }
    }

    fn on_bytes(&mut self, link: Link, bytes: &[u8], now: Nanos, io: &mut impl Io) {
        if bytes.is_empty() {
            return;
        }
        if self.line == Line::Ready(link) && self.flight.is_none() {
            self.refuse(bytes, io);
        } else if self.line == Line::Ready(link) {
            match self.take_reply(link, bytes, io) {
                Ok(None) => {}
                Ok(Some(status)) => {
                    if matches!(status, Status::BadRequest | Status::Ending) {
                        self.hang_up(io);
                    }
                    self.finish(status, io);
                }
                Err(broken) => self.break_off(&broken, io),
            }
        } else if self.line == Line::Greeting(link) {
            match self.take_greeting(bytes) {
                Ok(false) => {}
                Ok(true) => {
                    self.line = Line::Ready(link);
                    self.begin_appends_anew();
                    if let Some(flight) = &self.flight {
                        self.worker.send(&flight.request, link, io);
                    }
                }
                Err(broken) => {
                    self.not_before = now.saturating_add(RECONNECT_AFTER);
                    self.break_off(&broken, io);
                }
            }
        }
    }

    fn on_discarded(&mut self, link: Link, n: u64, _now: Nanos, io: &mut impl Io) {
        let Some(flight) = self.flight.as_mut().filter(|_| self.line == Line::Ready(link)) else {
            return;
        };
        if let Reply::Body { left, .. } = &mut flight.reply {
            *left -= u64::from(*left).min(n) as u32;
            if *left == 0 {
                self.finish(Status::Ok, io);
            }
        }
    }

    fn on_eof(&mut self, link: Link, now: Nanos, io: &mut impl Io) {
        if self.line.link() == Some(link) {
            io.close(link);
            let class = ErrorClass::Transport;
            self.cut(class, format_args!("the server closed the connection"), now, io);
        }
    }

    fn on_failed(&mut self, link: Link, error: LinkError, now: Nanos, io: &mut impl Io) {
        if self.line.link() != Some(link) {
            return;
        }
        match error.errno {
            0 => self.cut(error.class, format_args!("the connection broke"), now, io),
            _ => self.cut(error.class, format_args!("{error}"), now, io),
        }
    }

    fn next_deadline(&self) -> Option<Nanos> {
        let deadline = self.flight.as_ref().map(|flight| flight.deadline)?;
        Some(match self.line {
            Line::Resting => deadline.min(self.not_before),
            _ => deadline,
        })
    }

    fn on_timer(&mut self, now: Nanos, io: &mut impl Io) {
        let Some(flight) = &self.flight else { return };
        if now < flight.deadline {
            if self.line == Line::Resting {
                self.connect(now, io);
            }
            return;
        }
        let missing = match (self.line, flight.reply) {
            (Line::None | Line::Resting | Line::Connecting(_), _) => "no connection",
            (Line::Greeting(_), _) => "no greeting",
            (Line::Ready(_), Reply::Awaited) => "no reply",
            (Line::Ready(_), Reply::Body { .. }) => "no complete reply",
        };
        self.hang_up(io);
        let within = self.op_timeout;
        self.fail(ErrorClass::Timeout, format_args!("{missing} within {within}"), io);
    }

    fn read_limit(&self, link: Link) -> usize {
        let awaits_long_body = self.line == Line::Ready(link)
            && self.flight.as_ref().is_some_and(|flight| {
                matches!(flight.reply, Reply::Awaited)
                    && !flight.request.op.compare
                    && self.worker.site.body_bytes(flight.request.op.kind) >= DISCARD_BYTES_MIN
            });
        if awaits_long_body { REPLY_HEADER_BYTES - self.pieces.buffered() } else { usize::MAX }
    }

    fn lost(&self) -> Option<String> {
        self.lost.clone()
    }

    fn take_counters(&mut self) -> SessionCounters {
        std::mem::take(&mut self.counters)
    }
}
