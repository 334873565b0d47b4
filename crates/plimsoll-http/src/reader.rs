//! What a session does with the bodies of replies besides counting them.

use std::fmt;

use plimsoll_engine::seam::{First, Io, Mark, SessionCounters, Ticket, TimeKind};
use plimsoll_model::outcome::ErrorClass;
use plimsoll_model::units::Nanos;

use super::site::HttpOp;

/// Largest body that is kept for a caller who asked for it.
pub const CAPTURE_BYTES_MAX: usize = 1024 * 1024;

/// Reads the bodies of one client's replies.
pub trait Reader {
    /// What it knows of a reply that is under way.
    type Reply: Default + fmt::Debug;

    /// Bodies are handed over; else they may be dropped unread.
    fn reads(&self) -> bool;

    /// Bytes of a body arrived. One read of the connection may bring several of these.
    fn take(&mut self, reply: &mut Self::Reply, payload: &[u8]);

    /// All that one read of the connection brought of this body was handed over.
    fn read_ended(&mut self, reply: &mut Self::Reply, at: &At<'_>, io: &mut impl Io);

    /// A reply with a good status is complete. An error fails the op; [`Io::explain`] says why.
    fn end(
        &mut self,
        reply: &mut Self::Reply,
        at: &At<'_>,
        io: &mut impl Io,
    ) -> Result<(), ErrorClass> {
        let _ = (reply, at, io);
        Ok(())
    }

    /// What the body of a reply with a bad status says, for people.
    fn words<'r>(&'r self, reply: &'r Self::Reply) -> Option<&'r str> {
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
    /// What was asked for.
    pub op: &'a HttpOp,
    /// Status of the reply.
    pub status: u16,
    /// When its last bytes were read.
    pub now: Nanos,
}

/// Reads as a web client does.
#[derive(Clone, Debug, Default)]
pub enum Plain {
    /// Nobody looks at the bodies.
    #[default]
    Unread,
    /// Their chunks are timed. A chunk is what one read brings.
    Chunks,
    /// The first [`CAPTURE_BYTES_MAX`] of the last body are kept.
    Kept(Vec<u8>),
}

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

    fn reads(&self) -> bool {
        !matches!(self, Self::Unread)
    }

    #[inline]
    fn take(&mut self, reply: &mut PlainReply, payload: &[u8]) {
        reply.grown |= !payload.is_empty();
        if let Self::Kept(body) = self {
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
}
