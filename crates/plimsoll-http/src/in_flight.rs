//! The op in flight: how far its reply has come, and what becomes of it.

use plimsoll_engine::seam::{Io, Ticket};
use plimsoll_model::outcome::{ErrorClass, OpStatus, Outcome};
use plimsoll_model::units::Nanos;

use super::reader::{At, Reader};
use super::site::{HttpOp, Site};
use super::wire::Malformed;
use super::wire::body::Framing;
use super::wire::head::{self, HEAD_BYTES_MAX, Head};
use super::wire::request::Method;

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
    pub(super) stage: Stage,
    pub(super) discarding: bool,
    pub(super) payload_bytes: u64,
    /// What the reader knows of the body.
    pub(super) reply: R,
    /// Of the request's body.
    pub(super) sent_bytes: u64,
    pub(super) wrong_at: Option<u64>,
}

/// How long after the server's FIN its reset is waited for that shows whether it has read the
/// request. On a local link it is there at once; longer would only hold the op up.
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
pub(super) enum Stage {
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
            stage: Stage::Head,
            discarding: false,
            payload_bytes: 0,
            reply: R::default(),
            sent_bytes: 0,
            wrong_at: None,
        }
    }

    /// The status, once it is known, if it is not one that was wanted: a server that refuses a
    /// request may close without having read all of it, and so cut off its own reply.
    pub(super) fn refused(&self, site: &Site) -> Option<u16> {
        match self.stage {
            Stage::Body { head, .. } if !site.expected.holds(head.status) => Some(head.status),
            Stage::Head | Stage::Body { .. } => None,
        }
    }

    /// Success, or why not; says so in words. `words`: what the body of a bad status says.
    fn judge(&self, site: &Site, head: &Head, words: Option<&str>, io: &mut impl Io) -> OpStatus {
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
            let says = if words.is_some() { ", saying " } else { "" };
            let words = words.unwrap_or_default();
            io.explain(format_args!("{method} {url}: status {}{hint}{says}{words}", head.status));
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
        reader.take(&mut self.reply, payload);
    }

    /// What one read brought of the reply was handed to the reader.
    pub(super) fn end_read(
        &mut self,
        reader: &mut impl Reader<Reply = R>,
        now: Nanos,
        io: &mut impl Io,
    ) {
        let Stage::Body { head, .. } = self.stage else { return };
        let at = At { ticket: self.ticket, op: &self.op, status: head.status, now };
        reader.read_ended(&mut self.reply, &at, io);
    }

    /// The reply with this header is complete: success, or why not, in the reader's judgement, too.
    pub(super) fn conclude(
        &mut self,
        (head, site): (&Head, &Site),
        reader: &mut impl Reader<Reply = R>,
        now: Nanos,
        io: &mut impl Io,
    ) -> OpStatus {
        let status = self.judge(site, head, reader.words(&self.reply), io);
        if status != OpStatus::Ok {
            return status;
        }
        let at = At { ticket: self.ticket, op: &self.op, status: head.status, now };
        let ended = reader.end(&mut self.reply, &at, io);
        ended.map_or_else(OpStatus::Failed, |()| OpStatus::Ok)
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

    /// How it ended, as the engine wants to know it.
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
/// took. Keeps the bytes when the header is not complete.
pub(super) fn take_head(
    partial: &mut Vec<u8>,
    bytes: &[u8],
) -> Result<Option<(Head, usize)>, Malformed> {
    if partial.is_empty() {
        let head = head::parse(bytes)?;
        if head.is_none() {
            partial.extend_from_slice(bytes);
        }
        return Ok(head.map(|head| (head, head.bytes)));
    }
    let before = partial.len();
    // One byte over the limit is enough to see that the header is over it.
    let room = (HEAD_BYTES_MAX + 1).saturating_sub(before);
    partial.extend_from_slice(&bytes[..bytes.len().min(room)]);
    let Some(end) = head::find_end(partial, before)? else { return Ok(None) };
    let head = head::parse(&partial[..end])?;
    *partial = Vec::new();
    let head = head.ok_or(Malformed::Head(httparse::Error::NewLine))?;
    Ok(Some((head, end - before)))
}

/// Offset of the first byte of `payload`, which begins at `offset`, that `content` has not.
fn first_difference(content: &[u8], offset: u64, payload: &[u8]) -> Option<u64> {
    let start = usize::try_from(offset).map_or(content.len(), |at| at.min(content.len()));
    let content = &content[start..];
    let n = content.len().min(payload.len());
    // Surplus bytes show as a wrong length.
    if content[..n] == payload[..n] {
        return None;
    }
    let differs = content.iter().zip(payload).position(|(a, b)| a != b)?;
    Some(offset + differs as u64)
}
