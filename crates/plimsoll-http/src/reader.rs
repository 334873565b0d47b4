//! The op in flight: how far its reply has come, what a reader does with the body in addition to
//! counting it, and what becomes of the op. Then connections that have ended, or are about to: those
//! that the server will close after its reply, and why one that was to be kept is gone.

use std::fmt;

use plimsoll_engine::interface::{First, Io, Link, Mark, SessionCounters, Ticket, TimeKind};
use plimsoll_model::outcome::{ErrorClass, OpStatus, Outcome};
use plimsoll_model::units::Nanos;

use super::site::{HttpOp, Site, WorkerSite};
use super::spare_links::LINGERING_LINKS_MAX;
use super::wire::Malformed;
use super::wire::head::{self, Framing, HEAD_BYTES_MAX, Head};
use super::wire::request::Method;

pub use super::site::REST_WAIT;

/// Largest body that is kept for a caller that requests it.
pub const CAPTURE_BYTES_MAX: usize = 1024 * 1024;

/// Reads the bodies of one client's replies.
pub trait Reader {
    /// Its state of a reply in progress.
    type Reply: Default + fmt::Debug;

    /// The header fields of replies are handed over.
    const READS_FIELDS: bool = false;

    /// The body of the reply to this op is handed over; else it may be dropped unread.
    fn reads(&self, op: &HttpOp) -> bool;

    /// A field of the header of a reply.
    fn take_field(&mut self, reply: &mut Self::Reply, op: &HttpOp, name: &[u8], value: &[u8]) {
        let _ = (reply, op, name, value);
    }

    /// This op is the first of another user, who has no connection yet.
    fn is_first_of_user(&self, op: &HttpOp) -> bool {
        let _ = op;
        false
    }

    /// When the user gives this op up, if that may be before its time-out.
    fn gives_up_at(&self, op: &HttpOp) -> Option<Nanos> {
        let _ = op;
        None
    }

    /// Why its client cannot continue, as text.
    fn lost(&self) -> Option<String> {
        None
    }

    /// Bytes of the body of the reply to `op` arrived. One read of the connection may bring several
    /// of these.
    fn take(&mut self, reply: &mut Self::Reply, op: &HttpOp, payload: &[u8]);

    /// All that one read of the connection brought of this body was handed over.
    fn read_ended(&mut self, reply: &mut Self::Reply, at: &At<'_>, io: &mut impl Io);

    /// The reply is whole, whatever its body still brings. Called after [`Reader::read_ended`].
    fn is_complete(&self, reply: &Self::Reply) -> bool {
        let _ = reply;
        false
    }

    /// The body of a reply that was over did not end: it stayed open for longer than [`REST_WAIT`],
    /// or broke off.
    fn body_did_not_end(&mut self) {}

    /// A reply with a good status is complete. An error fails the op; [`Io::explain`] gives the
    /// reason.
    fn end(
        &mut self,
        reply: &mut Self::Reply,
        at: &At<'_>,
        io: &mut impl Io,
    ) -> Result<(), ErrorClass> {
        let _ = (reply, at, io);
        Ok(())
    }

    /// The text in the body of a reply with a bad status, for people.
    fn error_text<'r>(&'r self, reply: &'r Self::Reply) -> Option<&'r str> {
        let _ = reply;
        None
    }

    /// Adds what was counted since the last call.
    fn count_into(&mut self, counters: &mut SessionCounters) {
        let _ = counters;
    }
}

/// Which reply is read, and when.
#[derive(Clone, Copy, Debug)]
pub struct At<'a> {
    /// The op in flight.
    pub ticket: Ticket,
    /// The request.
    pub op: &'a HttpOp,
    /// Status of the reply.
    pub status: u16,
    /// When its last bytes were read.
    pub now: Nanos,
}

/// Reads as a web client does.
#[derive(Clone, Debug, Default)]
pub enum Plain {
    /// The bodies are not read.
    #[default]
    Unread,
    /// Their chunks are timed. A chunk is what one read brings.
    Chunks,
    /// The first [`CAPTURE_BYTES_MAX`] of the last body are kept. It is over when it is so by this.
    Kept(Vec<u8>, IsComplete),
}

/// Whether a body, as far as it has arrived, is complete. Called after each read.
pub type IsComplete = fn(&[u8]) -> bool;

/// A reply as [`Plain`] reads it.
#[derive(Clone, Copy, Debug, Default)]
pub struct PlainReply {
    /// Bytes came since the last read ended.
    grown: bool,
    /// A byte was kept.
    begun: bool,
    /// When the last chunk arrived.
    chunk_at: Option<Nanos>,
}

impl Reader for Plain {
    type Reply = PlainReply;

    fn reads(&self, _op: &HttpOp) -> bool {
        !matches!(self, Self::Unread)
    }

    #[inline]
    fn take(&mut self, reply: &mut PlainReply, _op: &HttpOp, payload: &[u8]) {
        reply.grown |= !payload.is_empty();
        if let Self::Kept(body, _) = self {
            if !std::mem::replace(&mut reply.begun, true) {
                body.clear();
            }
            let room = CAPTURE_BYTES_MAX.saturating_sub(body.len());
            body.extend_from_slice(&payload[..payload.len().min(room)]);
        }
    }

    #[inline]
    fn read_ended(&mut self, reply: &mut PlainReply, at: &At<'_>, io: &mut impl Io) {
        if !std::mem::take(&mut reply.grown) || !matches!(self, Self::Chunks) {
            return;
        }
        let arrived = io.arrived().unwrap_or(at.now);
        let mark = match reply.chunk_at.replace(arrived) {
            None => Mark::First(First::Byte),
            Some(before) => Mark::Value(TimeKind::ChunkGap, arrived.saturating_sub(before).0),
        };
        io.mark(at.ticket, mark);
    }

    #[inline]
    fn is_complete(&self, _reply: &PlainReply) -> bool {
        matches!(self, Self::Kept(body, is_complete) if is_complete(body))
    }
}

/// The op in flight, and what a reader knows of its reply.
#[derive(Debug)]
pub(super) struct InFlight<R> {
    pub(super) ticket: Ticket,
    pub(super) op: HttpOp,
    pub(super) deadline: Nanos,
    pub(super) resent: bool,
    /// Whether its first try may have worked, when it is sent again.
    pub(super) first_try: FirstTry,
    /// A byte of the reply has arrived.
    pub(super) begun: bool,
    pub(super) phase: ReplyPhase,
    pub(super) discarding: bool,
    pub(super) payload_bytes: u64,
    /// What the reader knows of the body.
    pub(super) reply: R,
    /// Of the request's body.
    pub(super) sent_bytes: u64,
    pub(super) wrong_at: Option<u64>,
    /// When the reader had all of its reply, which may be before the end of the body.
    pub(super) completed_at: Option<Nanos>,
}

/// How long to wait after the server's FIN for a reset, which shows whether it has read the
/// request. On a local link it comes at once; a longer wait would only delay the op.
const RESET_WAIT: Nanos = Nanos::from_millis(1);

/// What became of the first try of an op whose connection ended before its reply began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FirstTry {
    /// The server may have read it.
    Unknown,
    /// The server has closed its side; until then a reset may show that it has not read it.
    Closed { until: Nanos },
    /// The server closed before it came.
    NotRead,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum ReplyPhase {
    /// Before the end of the header.
    Head,
    /// After it.
    Body { head: Head, framing: Framing },
}

impl<R: Default> InFlight<R> {
    /// An op that has just been issued.
    pub(super) fn new(ticket: Ticket, op: HttpOp, deadline: Nanos) -> Self {
        Self {
            ticket,
            op,
            deadline,
            resent: false,
            first_try: FirstTry::Unknown,
            begun: false,
            phase: ReplyPhase::Head,
            discarding: false,
            payload_bytes: 0,
            reply: R::default(),
            sent_bytes: 0,
            wrong_at: None,
            completed_at: None,
        }
    }

    /// An op that its client cannot send: fails it at once.
    pub(super) fn refuse(self, why: &str, io: &mut impl Io) {
        io.explain(format_args!("{why}"));
        io.complete(self.ticket, self.outcome(OpStatus::Failed(ErrorClass::NotTaken)));
    }

    /// The status, once known, if it is not an expected one: a server that refuses a request may
    /// close before it has read all of it, and so cut off its own reply.
    pub(super) fn refused(&self, site: &Site) -> Option<u16> {
        match self.phase {
            ReplyPhase::Body { head, .. } if !site.expected.holds(head.status) => Some(head.status),
            ReplyPhase::Head | ReplyPhase::Body { .. } => None,
        }
    }

    /// Success, or why not, which it also explains. `error_text`: the text in the body of a bad
    /// status.
    fn check_reply(
        &self,
        site: &Site,
        head: &Head,
        error_text: Option<&str>,
        io: &mut impl Io,
    ) -> OpStatus {
        let op = self.op;
        let url = site.url(op.request);
        let method = op.method.as_str();
        if !site.expected.holds(head.status) {
            let hint = match head.status {
                300..400 => {
                    ", a redirect, which is not followed; ask for its Location, or accept it with \
                     --set 'workload.expect=[\"2xx\",\"3xx\"]'"
                }
                _ => "",
            };
            let prefix = if error_text.is_some() { ", saying " } else { "" };
            let error_text = error_text.unwrap_or_default();
            io.explain(format_args!(
                "{method} {url}: status {}{hint}{prefix}{error_text}",
                head.status
            ));
            return OpStatus::Failed(ErrorClass::Status(u32::from(head.status)));
        }
        let actual = match op.method {
            Method::HEAD => head.content_length,
            _ => Some(self.payload_bytes),
        };
        if let (Some(expected), Some(actual)) = (site.expected_bytes(op.request), actual)
            && expected != actual
        {
            io.explain(format_args!(
                "{method} {url}: the reply has {actual} bytes, the file has {expected}"
            ));
            return OpStatus::Failed(ErrorClass::Length);
        }
        if let Some(at) = self.wrong_at {
            io.explain(format_args!("{method} {url}: first wrong byte at offset {at}"));
            return OpStatus::Failed(ErrorClass::Corrupt);
        }
        OpStatus::Ok
    }

    /// Bytes of the body arrived.
    #[inline]
    pub(super) fn take_payload(
        &mut self,
        payload: &[u8],
        site: &Site,
        reader: &mut impl Reader<Reply = R>,
    ) {
        let offset = self.payload_bytes;
        self.payload_bytes += payload.len() as u64;
        if self.op.verify
            && self.wrong_at.is_none()
            && let Some(content) = site.content(self.op.request)
        {
            self.wrong_at = first_difference(content, offset, payload);
        }
        reader.take(&mut self.reply, &self.op, payload);
    }

    /// What one read brought of the reply was handed to the reader.
    pub(super) fn end_read(
        &mut self,
        reader: &mut impl Reader<Reply = R>,
        now: Nanos,
        io: &mut impl Io,
    ) {
        let ReplyPhase::Body { head, .. } = self.phase else { return };
        let at = At { ticket: self.ticket, op: &self.op, status: head.status, now };
        reader.read_ended(&mut self.reply, &at, io);
        if self.completed_at.is_none() && reader.is_complete(&self.reply) {
            self.completed_at = Some(now);
            io.mark(self.ticket, Mark::Complete);
        }
    }

    /// The reply with this header is complete: success, or why not, in the reader's judgement, too.
    pub(super) fn conclude(
        &mut self,
        (head, site): (&Head, &Site),
        reader: &mut impl Reader<Reply = R>,
        now: Nanos,
        io: &mut impl Io,
    ) -> OpStatus {
        let status = self.check_reply(site, head, reader.error_text(&self.reply), io);
        if status != OpStatus::Ok {
            return status;
        }
        let at = At { ticket: self.ticket, op: &self.op, status: head.status, now };
        reader.end(&mut self.reply, &at, io).map_or_else(OpStatus::Failed, |()| OpStatus::Ok)
    }

    /// The server may have read the request, and must not be sent it twice.
    pub(super) fn is_doubtful(&self) -> bool {
        !self.begun && !self.resent && !self.op.method.is_idempotent()
    }

    /// The server has closed its side at `now` at the latest; a reset after that would show that it
    /// has not read the request. Whether one may still come.
    pub(super) const fn waits_for_reset(&mut self, now: Nanos) -> bool {
        if let FirstTry::Closed { until } = self.first_try {
            return now.0 < until.0;
        }
        self.first_try = FirstTry::Closed { until: now.saturating_add(RESET_WAIT) };
        true
    }

    /// How it ended, for the engine.
    pub(super) fn outcome(&self, status: OpStatus) -> Outcome {
        Outcome {
            kind: self.op.kind,
            status,
            bytes_read: self.payload_bytes,
            bytes_written: self.sent_bytes,
            ambiguous: self.resent
                && self.first_try != FirstTry::NotRead
                && !self.op.method.is_idempotent(),
        }
    }
}

/// Takes a header from `partial` and `bytes` together: the header, and how many of `bytes` it
/// took. Keeps the bytes when the header is not complete. `on_head` gets a whole header.
pub(super) fn take_head(
    partial: &mut Vec<u8>,
    bytes: &[u8],
    on_head: impl FnOnce(&Head, &[u8]),
) -> Result<Option<(Head, usize)>, Malformed> {
    if partial.is_empty() {
        let head = head::parse(bytes)?;
        match &head {
            None => partial.extend_from_slice(bytes),
            Some(head) => on_head(head, &bytes[..head.bytes]),
        }
        return Ok(head.map(|head| (head, head.bytes)));
    }
    let before = partial.len();
    // One byte over the limit is enough to see that the header is over it.
    let room = (HEAD_BYTES_MAX + 1).saturating_sub(before);
    partial.extend_from_slice(&bytes[..bytes.len().min(room)]);
    let Some(end) = head::find_end(partial, before)? else { return Ok(None) };
    let head = head::parse(&partial[..end])?;
    let head = head.ok_or(Malformed::Head(httparse::Error::NewLine))?;
    on_head(&head, &partial[..end]);
    *partial = Vec::new();
    Ok(Some((head, end - before)))
}

/// Offset of the first byte of `payload`, which begins at `offset`, that `content` has not.
fn first_difference(content: &[u8], offset: u64, payload: &[u8]) -> Option<u64> {
    let start = usize::try_from(offset).map_or(content.len(), |at| at.min(content.len()));
    let content = &content[start..];
    let n = content.len().min(payload.len());
    // Trailing bytes show as a wrong length.
    if content[..n] == payload[..n] {
        return None;
    }
    let differs = content.iter().zip(payload).position(|(a, b)| a != b)?;
    Some(offset + differs as u64)
}

/// Why a connection that was to be kept is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Gone {
    /// The server closed it, or it broke, while no request was in flight.
    #[error("the server closed the idle connection")]
    Idle,
    /// A request failed on it.
    #[error("a request on the connection failed")]
    WithRequest,
    /// The server closed it after a reply, as the reply announced.
    #[error("the server closed the connection after a reply")]
    AfterReply,
    /// The body of a reply that was over did not end as it should.
    #[error("a reply was over, and its body did not end on the connection")]
    InBody,
}

/// A link that waits for its end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lingering {
    pub(super) link: Link,
    /// The op that the last reply on it answered, if that ended well.
    pub(super) answered: Option<HttpOp>,
    /// The reply announced that the server would keep it.
    pub(super) to_be_kept: bool,
}

/// The links of one client that wait for their end.
#[derive(Debug, Default)]
pub(super) struct LingeringLinks(Vec<Lingering>);

impl LingeringLinks {
    /// Leaves the closing to the server, so that the waiting for late segments is its own. Closes
    /// where the server leaves it to the client (wrk #47), and where there is no room to wait.
    pub(super) fn add(&mut self, lingering: Lingering, site: &WorkerSite, io: &mut impl Io) {
        if self.0.len() == LINGERING_LINKS_MAX {
            site.left_open();
            self.close_oldest(site, io);
        }
        if site.leaves_open() {
            while !self.0.is_empty() {
                self.close_oldest(site, io);
            }
            return io.close(lingering.link);
        }
        if site.spare_links.take() { self.0.push(lingering) } else { io.close(lingering.link) }
    }

    fn close_oldest(&mut self, site: &WorkerSite, io: &mut impl Io) {
        io.close(self.0.remove(0).link);
        site.spare_links.give_back();
    }

    /// Whether the link waits for its end.
    pub(super) fn has(&self, link: Link) -> bool {
        self.0.iter().any(|lingering| lingering.link == link)
    }

    /// Forgets a link that waited for its end, if it is one.
    pub(super) fn stop(&mut self, link: Link, site: &WorkerSite) -> Option<Lingering> {
        let at = self.0.iter().position(|lingering| lingering.link == link)?;
        site.spare_links.give_back();
        Some(self.0.remove(at))
    }

    /// Heap bytes.
    pub(super) const fn heap_bytes(&self) -> usize {
        self.0.capacity() * size_of::<Lingering>()
    }
}

#[cfg(test)]
mod tests;
