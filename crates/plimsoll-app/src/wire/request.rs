//! Requests: a header of fixed size, then the payload.

use super::bytes::{u16_at, u32_at, u64_at};
use super::{PAYLOAD_BYTES_MAX, WORK_MAX, WireError};

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
/// | 12 | 4 | size: bytes wanted back (types 1 and 3) or bytes to read (type 4) |
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
    /// Bytes wanted back, or to read.
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
