//! The op in flight: how far its reply has come, and what becomes of it.

use plimsoll_engine::seam::{Io, Piece, Ticket};
use plimsoll_model::outcome::{ErrorClass, OpStatus, Outcome};
use plimsoll_model::units::Nanos;

use super::site::{HttpOp, Site};
use super::wire::Malformed;
use super::wire::body::Framing;
use super::wire::head::{self, HEAD_BYTES_MAX, Head};
use super::wire::request::Method;

/// The op in flight.
#[derive(Debug)]
pub(super) struct InFlight {
    pub(super) ticket: Ticket,
    pub(super) op: HttpOp,
    pub(super) deadline: Nanos,
    pub(super) resent: bool,
    /// A byte of the reply has arrived.
    pub(super) begun: bool,
    pub(super) stage: Stage,
    pub(super) discarding: bool,
    pub(super) payload_bytes: u64,
    /// When the last piece of the body arrived, where pieces are timed.
    pub(super) piece_at: Option<Nanos>,
    /// Of the request's body.
    pub(super) sent_bytes: u64,
    pub(super) wrong_at: Option<u64>,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Stage {
    /// Before the end of the header.
    Head,
    /// After it.
    Body { head: Head, framing: Framing },
}

impl InFlight {
    /// An op that has just been issued.
    pub(super) fn new(ticket: Ticket, op: HttpOp, deadline: Nanos) -> Self {
        Self {
            ticket,
            op,
            deadline,
            resent: false,
            begun: false,
            stage: Stage::Head,
            discarding: false,
            payload_bytes: 0,
            piece_at: None,
            sent_bytes: 0,
            wrong_at: None,
        }
    }

    /// A piece of the body arrived at `now`.
    pub(super) fn piece(&mut self, now: Nanos, io: &mut impl Io) {
        let piece = match self.piece_at.replace(now) {
            None => Piece::First,
            Some(before) => Piece::After(now.saturating_sub(before)),
        };
        io.piece(self.ticket, piece);
    }

    /// The status, once it is known, if it is not one that was wanted: a server that refuses a
    /// request may close without having read all of it, and so cut off its own reply.
    pub(super) fn refused(&self, site: &Site) -> Option<u16> {
        match self.stage {
            Stage::Body { head, .. } if !site.expected.holds(head.status) => Some(head.status),
            Stage::Head | Stage::Body { .. } => None,
        }
    }

    /// Success, or why not; says so in words.
    pub(super) fn judge(&self, site: &Site, head: &Head, io: &mut impl Io) -> OpStatus {
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
            io.explain(format_args!("{method} {url}: status {}{hint}", head.status));
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

    /// How it ended, as the engine wants to know it.
    pub(super) fn outcome(&self, status: OpStatus) -> Outcome {
        Outcome {
            kind: self.op.kind,
            status,
            bytes_read: self.payload_bytes,
            bytes_written: self.sent_bytes,
            ambiguous: self.resent && !self.op.method.is_idempotent(),
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
pub(super) fn first_difference(content: &[u8], offset: u64, payload: &[u8]) -> Option<u64> {
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
