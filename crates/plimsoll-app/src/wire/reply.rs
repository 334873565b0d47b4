//! Replies: a header of fixed size, then the payload.

use super::bytes::{u16_at, u32_at, u64_at};
use super::{PAYLOAD_BYTES_MAX, WireError};

/// Length of a [`ReplyHeader`].
pub const REPLY_HEADER_BYTES: usize = 24;

/// How a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Status {
    /// Done.
    Ok = 0,
    /// The request makes no sense; the connection ends.
    BadRequest = 1,
    /// Offset and size are not within the segment.
    OutOfRange = 2,
    /// Storage failed.
    Storage = 3,
    /// No room.
    NoRoom = 4,
    /// The server is about to end; nothing was done.
    Ending = 5,
}

impl Status {
    /// By its number on the wire.
    pub const fn from_code(code: u8) -> Option<Self> {
        Some(match code {
            0 => Self::Ok,
            1 => Self::BadRequest,
            2 => Self::OutOfRange,
            3 => Self::Storage,
            4 => Self::NoRoom,
            5 => Self::Ending,
            _ => return None,
        })
    }

    /// The word for it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::BadRequest => "bad request",
            Self::OutOfRange => "out of range",
            Self::Storage => "storage failed",
            Self::NoRoom => "no room",
            Self::Ending => "server is ending",
        }
    }
}

/// Before the payload of a reply.
///
/// | at | bytes | field |
/// | --- | --- | --- |
/// | 0 | 4 | length of the payload |
/// | 4 | 1 | type of the request |
/// | 5 | 1 | status ([`Status`]) |
/// | 6 | 2 | zero |
/// | 8 | 4 | id of the request |
/// | 12 | 4 | checksum |
/// | 16 | 8 | nanoseconds from the request's last byte to this reply; zero: not measured |
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplyHeader {
    /// Bytes of payload that follow.
    pub payload_bytes: u32,
    /// Type of the request, as a number: a reply to a type nobody knows has one too.
    pub kind: u8,
    /// How it ended.
    pub status: Status,
    /// Of the request.
    pub id: u32,
    /// Of what the request touched; `docs/app-protocol.md` says of what for each type.
    pub checksum: u32,
    /// Time in the server; zero: not measured.
    pub server_ns: u64,
}

impl ReplyHeader {
    /// As bytes.
    pub fn encode(&self) -> [u8; REPLY_HEADER_BYTES] {
        let mut bytes = [0; REPLY_HEADER_BYTES];
        bytes[..4].copy_from_slice(&self.payload_bytes.to_be_bytes());
        bytes[4] = self.kind;
        bytes[5] = self.status as u8;
        bytes[8..12].copy_from_slice(&self.id.to_be_bytes());
        bytes[12..16].copy_from_slice(&self.checksum.to_be_bytes());
        bytes[16..24].copy_from_slice(&self.server_ns.to_be_bytes());
        bytes
    }

    /// From bytes; the length is within its limit afterwards.
    pub fn decode(bytes: &[u8; REPLY_HEADER_BYTES]) -> Result<Self, WireError> {
        let payload_bytes = u32_at(bytes, 0);
        if payload_bytes > PAYLOAD_BYTES_MAX {
            return Err(WireError::Payload(payload_bytes));
        }
        let status = Status::from_code(bytes[5]).ok_or(WireError::Status(u16::from(bytes[5])))?;
        if u16_at(bytes, 6) != 0 {
            return Err(WireError::Reserved);
        }
        Ok(Self {
            payload_bytes,
            kind: bytes[4],
            status,
            id: u32_at(bytes, 8),
            checksum: u32_at(bytes, 12),
            server_ns: u64_at(bytes, 16),
        })
    }
}
