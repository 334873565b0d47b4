//! The transaction in flight: how far its reply has come, and whether that answers it; and the
//! beginning of a message that comes in pieces.

use std::fmt;

use plimsoll_engine::seam::Ticket;
use plimsoll_model::outcome::ErrorClass;
use plimsoll_model::units::Nanos;
use plimsoll_protocol::SurplusBytes;

use super::site::{AppSite, Asked};
use crate::wire::{ReplyHeader, Status, WELCOME_BYTES};

/// The transaction in flight.
#[derive(Clone, Copy, Debug)]
pub(super) struct Flight {
    /// The engine's name for it.
    pub ticket: Ticket,
    /// What was asked for.
    pub asked: Asked,
    /// It has failed when this passes.
    pub deadline: Nanos,
    /// What has come.
    pub reply: Reply,
}

/// How far its reply has come.
#[derive(Clone, Copy, Debug)]
pub(super) enum Reply {
    /// No whole header yet.
    Awaited,
    /// So many bytes of the body are still to come.
    Body { left: u32, checksum: u32, wrong_at: Option<u32> },
}

/// Why a connection cannot go on.
pub(super) struct Broken {
    /// How the transaction in flight fails.
    pub class: ErrorClass,
    /// In words.
    pub why: String,
}

impl Broken {
    /// More came than the reply has.
    pub(super) fn surplus(bytes: usize) -> Self {
        Self { class: ErrorClass::Surplus, why: SurplusBytes(bytes).to_string() }
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
    let asked = &flight.asked;
    if header.id != asked.id {
        let why = format!("a reply to request {} instead of {}", header.id, asked.id);
        return Err(Broken::malformed(why));
    }
    let kind = asked.op.kind.request_type() as u8;
    if header.kind != kind {
        let why = format!("a reply of type {} instead of {kind}", header.kind);
        return Err(Broken::malformed(why));
    }
    let wanted = match header.status {
        Status::Ok => site.body_bytes(asked.op.kind),
        _ => 0,
    };
    if header.payload_bytes != wanted {
        let why = format!("a body of {} bytes instead of {wanted}", header.payload_bytes);
        return Err(Broken { class: ErrorClass::Length, why });
    }
    Ok(())
}

/// Where two texts differ first.
pub(super) fn first_difference(expected: &[u8], got: &[u8]) -> Option<usize> {
    if expected == got {
        return None;
    }
    expected.iter().zip(got).position(|(a, b)| a != b)
}

/// A transaction for a message: what, and where.
pub(super) struct Words<'a>(pub &'a Asked);

impl fmt::Display for Words<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Asked { op, id, offset, .. } = self.0;
        write!(f, "{} (request {id}", op.kind.name())?;
        match op.kind.needs_segment() {
            true => write!(f, ", offset {offset})"),
            false => f.write_str(")"),
        }
    }
}

/// What has arrived of a greeting or a header.
#[derive(Debug)]
pub(super) struct Pieces {
    bytes: [u8; WELCOME_BYTES],
    held: usize,
}

impl Pieces {
    /// Nothing.
    pub(super) const fn new() -> Self {
        Self { bytes: [0; WELCOME_BYTES], held: 0 }
    }

    /// Bytes held.
    pub(super) const fn held(&self) -> usize {
        self.held
    }

    /// Forgets what is held.
    pub(super) const fn clear(&mut self) {
        self.held = 0;
    }

    /// The first `N` bytes of the message, at most [`WELCOME_BYTES`], and what follows them;
    /// `None` while they are not all there: then `bytes` are kept.
    pub(super) fn take<'b, const N: usize>(
        &mut self,
        bytes: &'b [u8],
    ) -> Option<([u8; N], &'b [u8])> {
        if self.held == 0
            && let Some((message, rest)) = bytes.split_first_chunk()
        {
            return Some((*message, rest));
        }
        let missing = N.saturating_sub(self.held).min(bytes.len());
        let (piece, rest) = bytes.split_at(missing);
        self.bytes[self.held..self.held + missing].copy_from_slice(piece);
        self.held += missing;
        if self.held < N {
            return None;
        }
        self.held = 0;
        Some((*self.bytes.first_chunk()?, rest))
    }
}
