//! Requests and replies: a header of fixed size, then the payload.

use super::{PAYLOAD_BYTES_MAX, WORK_MAX, WireError, u16_at, u32_at, u64_at};

/// Length of a [`RequestHeader`].
pub const REQUEST_HEADER_BYTES: usize = 40;

/// What a server is asked to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum RequestType {
    /// Take the payload, answer with `size` bytes.
    ClientServer = 1,
    /// Do `work` units of work in memory.
    Processor = 2,
    /// Answer with `size` bytes; the request has no payload.
    ServerClient = 3,
    /// Read `size` bytes at `offset` of the client's segment; only the checksum comes back.
    Read = 4,
    /// Write the payload at `offset` of the client's segment.
    Write = 5,
    /// Write the payload into the segment where this connection's last append ended: at 0 first,
    /// and at 0 again when it would not fit.
    Append = 6,
    /// The server's own figures, as text; never waits for a service thread.
    Status = 7,
}

impl RequestType {
    /// By its number on the wire.
    pub const fn from_code(code: u8) -> Option<Self> {
        Some(match code {
            1 => Self::ClientServer,
            2 => Self::Processor,
            3 => Self::ServerClient,
            4 => Self::Read,
            5 => Self::Write,
            6 => Self::Append,
            7 => Self::Status,
            _ => return None,
        })
    }
}

/// Before the payload of a request.
///
/// | at | bytes | field |
/// | --- | --- | --- |
/// | 0 | 4 | length of the payload |
/// | 4 | 1 | type ([`RequestType`]) |
/// | 5 | 3 | zero |
/// | 8 | 4 | id, which the reply repeats |
/// | 12 | 4 | size: bytes requested (types 1 and 3) or bytes to read (type 4) |
/// | 16 | 8 | offset in the segment (types 4 and 5) |
/// | 24 | 4 | seed of the checksum |
/// | 28 | 4 | units of work (type 2) |
/// | 32 | 8 | zero |
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestHeader {
    /// Bytes of payload that follow.
    pub payload_bytes: u32,
    /// What to do.
    pub kind: RequestType,
    /// The reply repeats it.
    pub id: u32,
    /// Bytes requested, or to read.
    pub size: u32,
    /// Where in the segment.
    pub offset: u64,
    /// Seed of the checksum: an answer from memory would not have the right one.
    pub seed: u32,
    /// Units of work.
    pub work: u32,
}

impl RequestHeader {
    /// As bytes.
    pub fn encode(&self) -> [u8; REQUEST_HEADER_BYTES] {
        let mut bytes = [0; REQUEST_HEADER_BYTES];
        bytes[..4].copy_from_slice(&self.payload_bytes.to_be_bytes());
        bytes[4] = self.kind as u8;
        bytes[8..12].copy_from_slice(&self.id.to_be_bytes());
        bytes[12..16].copy_from_slice(&self.size.to_be_bytes());
        bytes[16..24].copy_from_slice(&self.offset.to_be_bytes());
        bytes[24..28].copy_from_slice(&self.seed.to_be_bytes());
        bytes[28..32].copy_from_slice(&self.work.to_be_bytes());
        bytes
    }

    /// From bytes; every length is within its limit afterwards.
    pub fn decode(bytes: &[u8; REQUEST_HEADER_BYTES]) -> Result<Self, WireError> {
        let payload_bytes = u32_at(bytes, 0);
        if payload_bytes > PAYLOAD_BYTES_MAX {
            return Err(WireError::Payload(payload_bytes));
        }
        let kind = RequestType::from_code(bytes[4]).ok_or(WireError::Type(bytes[4]))?;
        if (bytes[5], u16_at(bytes, 6), u64_at(bytes, 32)) != (0, 0, 0) {
            return Err(WireError::Reserved);
        }
        let (size, work) = (u32_at(bytes, 12), u32_at(bytes, 28));
        if size > PAYLOAD_BYTES_MAX {
            return Err(WireError::Size(size));
        }
        if work > WORK_MAX {
            return Err(WireError::Work(work));
        }
        Ok(Self {
            payload_bytes,
            kind,
            id: u32_at(bytes, 8),
            size,
            offset: u64_at(bytes, 16),
            seed: u32_at(bytes, 24),
            work,
        })
    }
}

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
    /// Type of the request, as a number: a reply to an unknown type has one too.
    pub kind: u8,
    /// How it ended.
    pub status: Status,
    /// Of the request.
    pub id: u32,
    /// Of what the request touched; `docs/app-protocol.md` specifies it for each type.
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
