//! The client's side of HTTP/1.1 as a state machine: one op in flight, on a connection that is
//! kept or made anew. RFC 9112 §9.

use std::fmt;
use std::rc::Rc;

use plimsoll_engine::seam::{Io, Link, LinkError, LinkKind, Session, SessionCounters, Ticket};
use plimsoll_model::outcome::{ErrorClass, OpKind, OpStatus};
use plimsoll_model::units::Nanos;

use super::ended::{Gone, Lingering, LingeringLinks};
use super::in_flight::{FirstTry, InFlight, Stage, take_head};
use super::parameters::Connections;
use super::reader::{Plain, Reader};
use super::site::{HttpOp, WorkerSite};
use super::wire::Malformed;
use super::wire::body::Framing;
use super::wire::head;
use plimsoll_protocol::SurplusBytes;

/// A body with at least this much still to come is left in the kernel when nobody reads it;
/// below, one more system call costs more than the copy.
pub const DISCARD_BYTES_MIN: u64 = 8 * 1024;
/// Read this much where a long body will be discarded: room for a usual header (nginx 240 bytes,
/// others up to 600) and little of the body.
pub const HEAD_READ_BYTES: usize = 1024;

/// The socket has been closed by the server before it was written to.
const BROKEN_PIPE: i32 = 32;

/// One client, whose replies are read by an `R`.
#[derive(Debug)]
pub struct HttpSession<R: Reader = Plain> {
    site: Rc<WorkerSite>,
    op_timeout: Nanos,
    open: Option<OpenLink>,
    in_flight: Option<InFlight<R::Reply>>,
    reader: R,
    /// Start of a header that came in pieces; without heap otherwise.
    partial: Vec<u8>,
    /// Links whose reply is complete and which the server will close.
    lingering: LingeringLinks,
    counts: Counts,
    /// What was wrong with the last reply that could not be read.
    malformed: Option<Malformed>,
    /// Its connection was to be held, and is gone; why.
    gone: Option<Gone>,
}

/// What it counted since it was asked last.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    verified: u64,
    reconnected: u64,
    unkept: u64,
}

/// The link the next bytes are expected on.
#[derive(Clone, Copy, Debug)]
struct OpenLink {
    link: Link,
    connected: bool,
    /// It has carried a whole reply.
    reused: bool,
    /// The op that the last reply on it answered, if that ended well.
    answered: Option<HttpOp>,
}

/// Servers say so on a connection that was idle for too long, and close it. RFC 9110 §15.5.9.
const REQUEST_TIMEOUT: u16 = 408;

impl HttpSession {
    /// A client that keeps the first [`super::reader::CAPTURE_BYTES_MAX`] of each body.
    pub fn capturing(site: Rc<WorkerSite>, op_timeout: Nanos) -> Self {
        Self::new(site, Plain::Kept(Vec::new()), op_timeout)
    }

    /// The body of the last reply.
    pub fn take_body(&mut self) -> Vec<u8> {
        match &mut self.reader {
            Plain::Kept(body) => std::mem::take(body),
            Plain::Unread | Plain::Chunks => Vec::new(),
        }
    }
}

impl<R: Reader> HttpSession<R> {
    /// A client of `site`.
    pub fn new(site: Rc<WorkerSite>, reader: R, op_timeout: Nanos) -> Self {
        Self {
            site,
            op_timeout,
            open: None,
            in_flight: None,
            reader,
            partial: Vec::new(),
            lingering: LingeringLinks::default(),
            counts: Counts::default(),
            malformed: None,
            gone: None,
        }
    }

    /// What was wrong with the last reply that could not be read.
    pub const fn malformed(&self) -> Option<Malformed> {
        self.malformed
    }

    /// Heap bytes held now: none between ops, except for links that wait for their end.
    pub fn held_bytes(&self) -> usize {
        self.partial.capacity() + self.lingering.held_bytes()
    }

    fn is_current(&self, link: Link) -> bool {
        self.open.is_some_and(|open| open.link == link)
    }

    /// Bytes on a link on which nothing is asked for: it is out of step, and given up.
    fn refuse(&mut self, link: Link, answered: Option<HttpOp>, bytes: &[u8], io: &mut impl Io) {
        io.close(link);
        let said_goodbye = || {
            let head = head::parse(bytes).ok().flatten();
            head.is_some_and(|head| head.status == REQUEST_TIMEOUT)
        };
        // An op that has failed already does not fail twice.
        let Some(op) = answered.filter(|_| !said_goodbye()) else { return };
        let (method, url) = (op.method.as_str(), self.site.site.url(op.request));
        io.explain(format_args!("{method} {url}: {}", SurplusBytes(bytes.len())));
        io.surplus(op.kind);
    }

    /// Whether the link waited for its end, which has come.
    fn has_ended(&mut self, link: Link) -> bool {
        let ended = self.lingering.stop(link);
        self.counts.unkept += u64::from(ended.is_some_and(|ended| ended.to_be_kept));
        ended.is_some()
    }

    fn connect(&mut self, io: &mut impl Io) {
        let link = io.connect(LinkKind::Stream);
        self.open = Some(OpenLink { link, connected: false, reused: false, answered: None });
    }

    fn send(&mut self, link: Link, io: &mut impl Io) {
        if let Some(flight) = &mut self.in_flight {
            flight.sent_bytes = self.site.send(&flight.op, link, io);
        }
    }

    /// Reads what it can; true when the reply is complete.
    fn read(&mut self, link: Link, bytes: &[u8], io: &mut impl Io) -> Result<bool, Malformed> {
        let mut rest = bytes;
        let complete = loop {
            let Some(flight) = self.in_flight.as_mut() else { break true };
            match &mut flight.stage {
                Stage::Head => {
                    let Some((head, taken)) = take_head(&mut self.partial, rest)? else {
                        break false;
                    };
                    rest = &rest[taken..];
                    match head.status {
                        101 => return Err(Malformed::Upgrade),
                        100..200 if rest.is_empty() => break false,
                        100..200 => {}
                        _ => {
                            self.site.learn_bytes(flight.op.request, head.content_length);
                            let framing = Framing::of(&head, flight.op.method);
                            flight.stage = Stage::Body { head, framing };
                        }
                    }
                }
                Stage::Body { framing, .. } if framing.is_complete() => break true,
                Stage::Body { .. } if rest.is_empty() => break false,
                Stage::Body { framing, .. } => {
                    let (taken, payload) = framing.take(rest)?;
                    rest = &rest[taken..];
                    flight.take_payload(payload, &self.site.site, &mut self.reader);
                }
            }
        };
        if complete && !rest.is_empty() {
            return Err(Malformed::Surplus { bytes: rest.len() });
        }
        if !complete {
            self.discard_the_rest(link, io);
        }
        Ok(complete)
    }

    /// Asks the driver to drop a long body that nobody looks at, all but its last byte: the read
    /// that takes it shows whether more follows, which would else be taken for the next reply.
    fn discard_the_rest(&mut self, link: Link, io: &mut impl Io) {
        let wanted = self.reader.reads();
        let Some(flight) = self.in_flight.as_mut() else { return };
        if wanted || flight.op.verify || flight.discarding {
            return;
        }
        if let Stage::Body { framing: Framing::Length(left), .. } = flight.stage
            && left >= DISCARD_BYTES_MIN
        {
            flight.discarding = true;
            io.discard(link, left - 1);
        }
    }

    /// The reply is complete.
    fn finish(&mut self, now: Nanos, io: &mut impl Io) {
        let Some(mut flight) = self.in_flight.take() else { return };
        let Stage::Body { head, .. } = flight.stage else { return };
        let status = flight.conclude((&head, &self.site.site), &mut self.reader, now, io);
        let answered = (status == OpStatus::Ok).then_some(flight.op);
        if let Some(open) = self.open.as_mut() {
            if open.reused {
                self.site.kept();
            }
            if head.persistent && self.site.keeps_connections() {
                (open.reused, open.answered) = (true, answered);
            } else {
                let link = open.link;
                let to_be_kept = head.persistent && self.site.asks_to_keep();
                self.open = None;
                self.end_held(Gone::AfterReply);
                self.lingering.add(Lingering { link, answered, to_be_kept }, io);
            }
        }
        let outcome = flight.outcome(status);
        if status == OpStatus::Ok && flight.op.verify {
            self.counts.verified += 1;
        }
        io.complete(flight.ticket, outcome);
    }

    /// A client that was to hold its connection has none any more.
    fn end_held(&mut self, why: Gone) {
        if self.site.site.connections == Connections::Held {
            self.gone.get_or_insert(why);
        }
    }

    /// The op failed; its link is closed already.
    fn fail(&mut self, class: ErrorClass, why: fmt::Arguments<'_>, io: &mut impl Io) {
        self.partial = Vec::new();
        let Some(flight) = self.in_flight.take() else { return };
        self.end_held(Gone::WithRequest);
        let url = self.site.site.url(flight.op.request);
        io.explain(format_args!("{} {url}: {why}", flight.op.method.as_str()));
        io.complete(flight.ticket, flight.outcome(OpStatus::Failed(class)));
    }

    fn close_and_fail(&mut self, class: ErrorClass, why: fmt::Arguments<'_>, io: &mut impl Io) {
        if let Some(open) = self.open.take() {
            io.close(open.link);
        }
        self.fail(class, why, io);
    }

    /// The server has closed its side before the reply to an op that must not be done twice began.
    /// A reset shows that it has not read the request; until one may have come, the op waits.
    fn waits_for_reset(&mut self, link: Link, now: Nanos, io: &mut impl Io) -> bool {
        let is_reused = self.open.is_some_and(|open| open.reused);
        let flight = self.in_flight.as_mut().filter(|flight| is_reused && flight.is_doubtful());
        let Some(flight) = flight else { return false };
        if io.is_refused(link) {
            flight.first_try = FirstTry::NotRead;
            return false;
        }
        flight.waits_for_reset(now)
    }

    /// The link is gone. A server may close a kept connection at any moment, so an op on one
    /// that got no byte of its reply is sent once more; whether its first try worked is unknown.
    fn lose(&mut self, class: ErrorClass, why: fmt::Arguments<'_>, io: &mut impl Io) {
        let Some(open) = self.open.take() else { return };
        if self.in_flight.is_none() {
            self.end_held(Gone::Idle);
        }
        let is_unkept = open.reused && self.in_flight.as_ref().is_none_or(|flight| !flight.begun);
        self.counts.unkept += u64::from(is_unkept);
        let is_held = self.site.site.connections == Connections::Held;
        let Some(flight) = self.in_flight.as_mut() else { return };
        if is_unkept {
            self.site.unkept();
        }
        let transport = class == ErrorClass::Transport;
        if let Some(status) = flight.refused(&self.site.site)
            && transport
        {
            let class = ErrorClass::Status(u32::from(status));
            self.fail(class, format_args!("status {status}, and then: {why}"), io);
        } else if flight.begun && transport {
            let got = flight.payload_bytes;
            self.fail(
                ErrorClass::Truncated,
                format_args!("{why} after {got} bytes of the body"),
                io,
            );
        } else if open.reused && transport && !flight.resent && !is_held {
            flight.resent = true;
            if flight.first_try == FirstTry::NotRead {
                self.counts.reconnected += 1;
            }
            self.connect(io);
        } else {
            let stage = if flight.begun { "within the reply" } else { "before the reply began" };
            self.fail(class, format_args!("{why} {stage}"), io);
        }
    }
}

impl<R: Reader> Session for HttpSession<R> {
    type Op = HttpOp;

    fn kind(&self, op: &HttpOp) -> OpKind {
        op.kind
    }

    fn has_room(&self) -> bool {
        self.in_flight.is_none() && self.gone.is_none()
    }

    fn issue(&mut self, ticket: Ticket, op: HttpOp, now: Nanos, io: &mut impl Io) {
        self.in_flight = Some(InFlight::new(ticket, op, now.saturating_add(self.op_timeout)));
        match self.open {
            Some(open) if open.connected => self.send(open.link, io),
            Some(_) => {}
            None => self.connect(io),
        }
    }

    fn on_connected(&mut self, link: Link, _now: Nanos, io: &mut impl Io) {
        let Some(open) = self.open.as_mut().filter(|open| open.link == link) else { return };
        open.connected = true;
        self.send(link, io);
    }

    fn on_bytes(&mut self, link: Link, bytes: &[u8], now: Nanos, io: &mut impl Io) {
        if bytes.is_empty() {
            return;
        }
        let Some(open) = self.open.filter(|open| open.link == link) else {
            if let Some(Lingering { answered, .. }) = self.lingering.stop(link) {
                self.refuse(link, answered, bytes, io);
            }
            return;
        };
        let Some(flight) = self.in_flight.as_mut() else {
            self.open = None;
            self.end_held(Gone::Idle);
            return self.refuse(link, open.answered, bytes, io);
        };
        flight.begun = true;
        let read = self.read(link, bytes, io);
        if self.reader.reads()
            && let Some(flight) = self.in_flight.as_mut()
        {
            flight.end_read(&mut self.reader, now, io);
        }
        match read {
            Ok(true) => self.finish(now, io),
            Ok(false) => {}
            Err(why) => {
                self.malformed = Some(why);
                let class = match why {
                    Malformed::Surplus { .. } => ErrorClass::Surplus,
                    _ => ErrorClass::Malformed,
                };
                self.close_and_fail(class, format_args!("{why}"), io);
            }
        }
    }

    fn on_discarded(&mut self, link: Link, n: u64, now: Nanos, io: &mut impl Io) {
        if !self.is_current(link) {
            return;
        }
        let Some(flight) = self.in_flight.as_mut() else { return };
        if let Stage::Body { framing, .. } = &mut flight.stage
            && let Framing::Length(left) = framing
        {
            let n = n.min(*left);
            *left -= n;
            flight.payload_bytes += n;
            if *left == 0 {
                self.finish(now, io);
            }
        }
    }

    fn on_eof(&mut self, link: Link, now: Nanos, io: &mut impl Io) {
        if self.has_ended(link) {
            io.close(link);
            return;
        }
        if !self.is_current(link) {
            return;
        }
        if self.waits_for_reset(link, now, io) {
            return;
        }
        io.close(link);
        let ends_here = self.in_flight.as_ref().is_some_and(|flight| {
            matches!(flight.stage, Stage::Body { framing: Framing::UntilClose, .. })
        });
        if ends_here {
            self.open = None;
            self.finish(now, io);
        } else {
            self.lose(ErrorClass::Transport, format_args!("the server closed the connection"), io);
        }
    }

    fn on_failed(&mut self, link: Link, error: LinkError, _now: Nanos, io: &mut impl Io) {
        if self.has_ended(link) || !self.is_current(link) {
            return;
        }
        match (error.class, error.errno) {
            (class @ ErrorClass::Tls, _) => self.lose(class, format_args!("TLS failed"), io),
            (class, 0) => self.lose(class, format_args!("the server closed the connection"), io),
            (class, BROKEN_PIPE) => {
                if let Some(flight) = self.in_flight.as_mut() {
                    flight.first_try = FirstTry::NotRead;
                }
                self.lose(class, format_args!("the server closed the connection"), io);
            }
            (class, _) => self.lose(class, format_args!("{error}"), io),
        }
    }

    fn next_deadline(&self) -> Option<Nanos> {
        self.in_flight.as_ref().map(|flight| match flight.first_try {
            FirstTry::Closed { until } => until.min(flight.deadline),
            FirstTry::Unknown | FirstTry::NotRead => flight.deadline,
        })
    }

    fn on_timer(&mut self, now: Nanos, io: &mut impl Io) {
        let Some(flight) = &mut self.in_flight else { return };
        if let FirstTry::Closed { until } = flight.first_try
            && now >= until
        {
            flight.first_try = FirstTry::Unknown;
            if let Some(open) = self.open {
                io.close(open.link);
            }
            let why = format_args!("the server closed the connection");
            return self.lose(ErrorClass::Transport, why, io);
        }
        if now < flight.deadline {
            return;
        }
        let stage = match (self.open, flight.stage, flight.begun) {
            (Some(OpenLink { connected: false, .. }) | None, _, _) => "no connection",
            (_, _, false) => "no reply",
            (_, Stage::Head, true) => "no complete header",
            (_, Stage::Body { .. }, true) => "no complete body",
        };
        let after = self.op_timeout;
        self.close_and_fail(ErrorClass::Timeout, format_args!("{stage} within {after}"), io);
    }

    fn read_limit(&self, link: Link) -> usize {
        let awaits_long_body = self.is_current(link)
            && !self.reader.reads()
            && self.in_flight.as_ref().is_some_and(|flight| {
                matches!(flight.stage, Stage::Head)
                    && !flight.op.verify
                    && self.site.likely_bytes(flight.op.request)
                        >= HEAD_READ_BYTES as u64 + DISCARD_BYTES_MIN
            });
        if awaits_long_body { HEAD_READ_BYTES } else { usize::MAX }
    }

    fn lost(&self) -> Option<String> {
        self.gone.map(|why| why.to_string())
    }

    fn take_counters(&mut self) -> SessionCounters {
        let Counts { verified, reconnected, unkept } = std::mem::take(&mut self.counts);
        let mut counters =
            SessionCounters { verified, reconnected, unkept, ..SessionCounters::default() };
        self.reader.count_into(&mut counters);
        counters
    }
}
