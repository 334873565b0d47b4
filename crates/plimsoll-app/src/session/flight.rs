//! The transaction in flight: how far its reply has come, and whether that answers it; and the
//! beginning of a message that comes in pieces.

use std::fmt;

use plimsoll_engine::interface::Ticket;
use plimsoll_model::outcome::ErrorClass;
use plimsoll_model::units::Nanos;
use plimsoll_protocol::TrailingBytes;

use super::site::{AppSite, Request};
use crate::wire::{ReplyHeader, Status, WELCOME_BYTES};

/// The transaction in flight.
#[derive(Clone, Copy, Debug)]
pub(super) struct Flight {
    /// The engine's name for it.
    pub ticket: Ticket,
    /// The request.
    pub request: Request,
    /// It has failed when this passes.
    pub deadline: Nanos,
    /// What has come.
    pub reply: Reply,
}

/// The progress of its reply.
#[derive(Clone, Copy, Debug)]
pub(super) enum Reply {
    /// No whole header yet.
    Awaited,
    /// `left` bytes of the body are still to come.
    Body { left: u32, checksum: u32, wrong_at: Option<u32> },
}

/// Why a connection cannot go on.
pub(super) struct Broken {
    /// How the transaction in flight fails.
    pub class: ErrorClass,
    /// As text.
    pub why: String,
}

impl Broken {
    /// More came than the reply has.
    pub(super) fn trailing_bytes(bytes: usize) -> Self {
        Self { class: ErrorClass::TrailingBytes, why: TrailingBytes(bytes).to_string() }
    }

    /// What came is not of the protocol.
    pub(super) fn malformed(why: impl fmt::Display) -> Self {
        Self { class: ErrorClass::Malformed, why: why.to_string() }
    }
}

/// Refuses what does not answer the transaction in flight.
pub(super) fn check_header(
    header: &ReplyHeader,
    flight: &Flight,
    site: &AppSite,
) -> Result<(), Broken> {
    let request = &flight.request;
    if header.id != request.id {
        let why = format!("a reply to request {} instead of {}", header.id, request.id);
        return Err(Broken::malformed(why));
    }
    let kind = request.op.kind.request_type() as u8;
    if header.kind != kind {
        let why = format!("a reply of type {} instead of {kind}", header.kind);
        return Err(Broken::malformed(why));
    }
    let expected = match header.status {
        Status::Ok => site.body_bytes(request.op.kind),
        _ => 0,
    };
    if header.payload_bytes != expected {
        let why = format!("a body of {} bytes instead of {expected}", header.payload_bytes);
        return Err(Broken { class: ErrorClass::Length, why });
    }
    Ok(())
}

/// Where two texts differ first.
pub(super) fn first_difference(expected: &[u8], got: &[u8]) -> Option<usize> {
    if expected == got { None } else { expected.iter().zip(got).position(|(a, b)| a != b) }
}

/// A transaction for a message: what, and where.
pub(super) struct RequestLabel<'a>(pub &'a Request);

impl fmt::Display for RequestLabel<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Request { op, id, offset, .. } = self.0;
        write!(f, "{} (request {id}", op.kind.name())?;
        if op.kind.needs_segment() { write!(f, ", offset {offset})") } else { f.write_str(")") }
    }
}

/// What has arrived of a greeting or a header.
#[derive(Debug)]
pub(super) struct Pieces {
    bytes: [u8; WELCOME_BYTES],
    buffered: usize,
}

impl Pieces {
    /// Nothing.
    pub(super) const fn new() -> Self {
        Self { bytes: [0; WELCOME_BYTES], buffered: 0 }
    }

    /// Number of bytes kept.
    pub(super) const fn buffered(&self) -> usize {
        self.buffered
    }

    /// Drops the kept bytes.
    pub(super) const fn clear(&mut self) {
        self.buffered = 0;
    }

    /// The first `N` bytes of the message, at most [`WELCOME_BYTES`], and what follows them;
    /// `None` while they are not all there: then `bytes` are kept.
    pub(super) fn take<'b, const N: usize>(
        &mut self,
        bytes: &'b [u8],
    ) -> Option<([u8; N], &'b [u8])> {
        if self.buffered == 0
            && let Some((message, rest)) = bytes.split_first_chunk()
        {
            return Some((*message, rest));
        }
        let missing = N.saturating_sub(self.buffered).min(bytes.len());
        let (piece, rest) = bytes.split_at(missing);
        self.bytes[self.buffered..self.buffered + missing].copy_from_slice(piece);
        self.buffered += missing;
        if self.buffered < N {
            return None;
        }
        self.buffered = 0;
        Some((*self.bytes.first_chunk()?, rest))
    }
}
