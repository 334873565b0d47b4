//! The client's side of HTTP/1.1 as a state machine: one op in flight, on a connection that is
//! kept or made anew. RFC 9112 §9.

mod lost;

use std::fmt;
use std::rc::Rc;

use plimsoll_engine::interface::{Io, Link, LinkError, LinkKind, Session, SessionCounters, Ticket};
use plimsoll_model::nonconformity::{Nonconformities, Nonconformity, NonconformityKind};
use plimsoll_model::outcome::{ErrorClass, OpKind, OpStatus};
use plimsoll_model::units::Nanos;

use super::reader::{
    FirstTry, Gone, InFlight, Lingering, LingeringLinks, Plain, Reader, ReplyPhase, take_head,
};
use super::site::{HttpOp, WorkerSite};
use super::wire::Malformed;
use super::wire::head::{self, Framing, Head};
use super::wire::request::Method;

/// A body with at least this much still to come is discarded in the kernel if it is not read;
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
    nonconformities: Nonconformities,
    /// What was wrong with the last reply that could not be read.
    malformed: Option<Malformed>,
    /// Why its long-lived connection is gone.
    gone: Option<Gone>,
}

/// Its counts since the last call.
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
            nonconformities: Nonconformities::default(),
            malformed: None,
            gone: None,
        }
    }

    /// What was wrong with the last reply that could not be read.
    pub const fn malformed(&self) -> Option<Malformed> {
        self.malformed
    }

    /// Heap bytes in use: none between ops, except for links that wait for their end.
    pub fn heap_bytes(&self) -> usize {
        self.partial.capacity() + self.lingering.heap_bytes()
    }

    fn is_current(&self, link: Link) -> bool {
        self.open.is_some_and(|open| open.link == link)
    }

    /// The link is one of its own.
    pub(super) fn has_link(&self, link: Link) -> bool {
        self.is_current(link) || self.lingering.has(link)
    }

    /// Whether the link waited for its end, which has come.
    fn has_ended(&mut self, link: Link) -> bool {
        let ended = self.lingering.stop(link, &self.site);
        if ended.is_some() {
            self.site.has_closed();
        }
        self.counts.unkept += u64::from(ended.is_some_and(|ended| ended.to_be_kept));
        ended.is_some()
    }

    fn connect(&mut self, io: &mut impl Io) {
        let link = io.connect(LinkKind::Stream);
        self.open = Some(OpenLink { link, connected: false, reused: false, answered: None });
    }

    /// The op is the first of the next user, who must not use the connection of the one before.
    pub(super) fn begins_user(&self, op: &HttpOp) -> bool {
        self.reader.is_first_of_user(op)
    }

    /// It has a connection, or is about to.
    pub(super) const fn has_connection(&self) -> bool {
        self.open.is_some()
    }

    /// Closes its connection, if it has one.
    pub(super) fn leave_connection(&mut self, io: &mut impl Io) {
        if let Some(open) = self.open.take() {
            io.close(open.link);
        }
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
            match &mut flight.phase {
                ReplyPhase::Head => {
                    let reader = &mut self.reader;
                    let on_head = |head: &Head, bytes: &[u8]| {
                        if R::READS_FIELDS && head.status >= 200 {
                            head::each_field(bytes, |name, value| {
                                reader.take_field(&mut flight.reply, &flight.op, name, value);
                            });
                        }
                    };
                    let Some((head, taken)) = take_head(&mut self.partial, rest, on_head)? else {
                        break false;
                    };
                    rest = &rest[taken..];
                    match head.status {
                        101 => return Err(Malformed::Upgrade),
                        100..200 if rest.is_empty() => break false,
                        100..200 => {}
                        _ => {
                            if head.folded {
                                self.nonconformities.note(&folded(flight.op.method));
                            }
                            self.site.learn_bytes(flight.op.request, head.content_length);
                            let framing = Framing::from_head(&head, flight.op.method);
                            flight.phase = ReplyPhase::Body { head, framing };
                        }
                    }
                }
                ReplyPhase::Body { framing, .. } if framing.is_complete() => break true,
                ReplyPhase::Body { .. } if rest.is_empty() => break false,
                ReplyPhase::Body { framing, .. } => {
                    let (taken, payload) = framing.take(rest)?;
                    rest = &rest[taken..];
                    flight.take_payload(payload, &self.site.site, &mut self.reader);
                }
            }
        };
        if complete && !rest.is_empty() {
            return Err(Malformed::TrailingBytes { bytes: rest.len() });
        }
        if !complete {
            self.discard_the_rest(link, io);
        }
        Ok(complete)
    }

    /// Makes the driver discard a long body that is not read, all but its last byte: the read of
    /// that byte shows whether more follows, which would otherwise count as the next reply.
    fn discard_the_rest(&mut self, link: Link, io: &mut impl Io) {
        let Some(flight) = self.in_flight.as_mut() else { return };
        if self.reader.reads(&flight.op) || flight.op.verify || flight.discarding {
            return;
        }
        if let ReplyPhase::Body { framing: Framing::Length(left), .. } = flight.phase
            && left >= DISCARD_BYTES_MIN
        {
            flight.discarding = true;
            io.discard(link, left - 1);
        }
    }

    /// The reply is complete.
    fn finish(&mut self, now: Nanos, io: &mut impl Io) {
        let Some(mut flight) = self.in_flight.take() else { return };
        let ReplyPhase::Body { head, .. } = flight.phase else { return };
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
                self.note_lost_connection(Gone::AfterReply);
                let ended = Lingering { link, answered, to_be_kept };
                self.lingering.add(ended, &self.site, io);
            }
        }
        let outcome = flight.outcome(status);
        if status == OpStatus::Ok && flight.op.verify {
            self.counts.verified += 1;
        }
        io.complete(flight.ticket, outcome);
    }

    /// The op failed; its link is closed already.
    fn fail(&mut self, class: ErrorClass, why: fmt::Arguments<'_>, io: &mut impl Io) {
        self.partial = Vec::new();
        let Some(flight) = self.in_flight.take() else { return };
        self.note_lost_connection(Gone::WithRequest);
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

    /// The reply is over, and its body is not: its connection is given up, so that its client need
    /// not wait, if it does not end soon.
    fn await_rest(&mut self, now: Nanos, io: &mut impl Io) {
        let Some(flight) = &self.in_flight else { return };
        if let Some(completed_at) = flight.completed_at
            && now >= self.rest_until(completed_at).min(flight.deadline)
        {
            self.site.stayed_open();
            self.let_go(io);
        }
    }

    fn rest_until(&self, completed_at: Nanos) -> Nanos {
        completed_at.saturating_add(self.site.rest_wait())
    }

    fn completed_at(&self) -> Option<Nanos> {
        self.in_flight.as_ref()?.completed_at
    }
}

/// RFC 9112 §5.2
fn folded(method: Method) -> Nonconformity {
    Nonconformity::once("RFC 9112", "5.2", method.as_str(), None, NonconformityKind::FoldedField)
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
        if let Some(why) = self.reader.lost() {
            return InFlight::<R::Reply>::new(ticket, op, now).refuse(&why, io);
        }
        if self.begins_user(&op) {
            self.leave_connection(io);
        }
        let deadline = now.saturating_add(self.op_timeout);
        let gives_up_at = self.reader.gives_up_at(&op).unwrap_or(Nanos::MAX);
        self.in_flight = Some(InFlight::new(ticket, op, deadline.min(gives_up_at)));
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
            if let Some(Lingering { answered, .. }) = self.lingering.stop(link, &self.site) {
                self.refuse(link, answered, bytes, io);
            }
            return;
        };
        let Some(flight) = self.in_flight.as_mut() else {
            self.open = None;
            self.note_lost_connection(Gone::Idle);
            return self.refuse(link, open.answered, bytes, io);
        };
        flight.begun = true;
        let read = self.read(link, bytes, io);
        if let Some(flight) = self.in_flight.as_mut()
            && self.reader.reads(&flight.op)
        {
            flight.end_read(&mut self.reader, now, io);
        }
        match read {
            Ok(true) => {
                self.site.ended();
                self.finish(now, io);
            }
            Ok(false) => self.await_rest(now, io),
            Err(why)
                if self.completed_at().is_some()
                    && !matches!(why, Malformed::TrailingBytes { .. }) =>
            {
                self.let_go(io);
            }
            Err(why) => {
                self.malformed = Some(why);
                let class = match why {
                    Malformed::TrailingBytes { .. } => ErrorClass::TrailingBytes,
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
        if let ReplyPhase::Body { framing, .. } = &mut flight.phase
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
        let ends_here = self.in_flight.as_ref().is_some_and(|flight| {
            matches!(flight.phase, ReplyPhase::Body { framing: Framing::UntilClose, .. })
        });
        if self.completed_at().is_some() && !ends_here {
            return self.let_go(io);
        }
        io.close(link);
        if ends_here {
            self.open = None;
            self.site.ended();
            self.finish(now, io);
        } else {
            self.lose(ErrorClass::Transport, format_args!("the server closed the connection"), io);
        }
    }

    fn on_failed(&mut self, link: Link, error: LinkError, _now: Nanos, io: &mut impl Io) {
        if self.has_ended(link) || !self.is_current(link) {
            return;
        }
        if self.completed_at().is_some() {
            self.open = None;
            return self.let_go(io);
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
        let flight = self.in_flight.as_ref()?;
        Some(match (flight.first_try, flight.completed_at) {
            (FirstTry::Closed { until }, _) => until.min(flight.deadline),
            (_, Some(completed_at)) => self.rest_until(completed_at).min(flight.deadline),
            (FirstTry::Unknown | FirstTry::NotRead, None) => flight.deadline,
        })
    }

    fn on_timer(&mut self, now: Nanos, io: &mut impl Io) {
        if self.completed_at().is_some() {
            return self.await_rest(now, io);
        }
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
        let missing = match (self.open, flight.phase, flight.begun) {
            (Some(OpenLink { connected: false, .. }) | None, _, _) => "no connection",
            (_, _, false) => "no reply",
            (_, ReplyPhase::Head, true) => "no complete header",
            (_, ReplyPhase::Body { .. }, true) => "no complete body",
        };
        if self.reader.gives_up_at(&flight.op).is_some_and(|at| at <= now) {
            let why = format_args!("{missing}, and the user gave up");
            return self.close_and_fail(ErrorClass::Abandoned, why, io);
        }
        let after = self.op_timeout;
        self.close_and_fail(ErrorClass::Timeout, format_args!("{missing} within {after}"), io);
    }

    fn read_limit(&self, link: Link) -> usize {
        let awaits_long_body = self.is_current(link)
            && self.in_flight.as_ref().is_some_and(|flight| {
                matches!(flight.phase, ReplyPhase::Head)
                    && !self.reader.reads(&flight.op)
                    && !flight.op.verify
                    && self.site.likely_bytes(flight.op.request)
                        >= HEAD_READ_BYTES as u64 + DISCARD_BYTES_MIN
            });
        if awaits_long_body { HEAD_READ_BYTES } else { usize::MAX }
    }

    fn lost(&self) -> Option<String> {
        self.gone.map(|why| why.to_string()).or_else(|| self.reader.lost())
    }

    fn take_counters(&mut self) -> SessionCounters {
        let Counts { verified, reconnected, unkept } = std::mem::take(&mut self.counts);
        let nonconformities = std::mem::take(&mut self.nonconformities);
        let mut counters = SessionCounters {
            verified,
            reconnected,
            unkept,
            nonconformities,
            ..SessionCounters::default()
        };
        self.reader.count_into(&mut counters);
        counters
    }
}
