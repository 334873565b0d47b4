//! Greetings: what a client is and requests, what a server offers or why it refuses.

use super::{MAGIC, VERSION, WireError, array, u16_at, u32_at, u64_at};

/// Length of a [`Hello`].
pub const HELLO_BYTES: usize = 24;
/// Length of a [`Welcome`].
pub const WELCOME_BYTES: usize = 32;

/// First bytes of a client.
///
/// | at | bytes | field |
/// | --- | --- | --- |
/// | 0 | 4 | `PLMS` |
/// | 4 | 2 | version the client speaks |
/// | 6 | 2 | zero |
/// | 8 | 4 | number of the client; it names the data segment |
/// | 12 | 4 | zero |
/// | 16 | 8 | size of the segment in bytes |
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hello {
    /// Version the client speaks.
    pub version: u16,
    /// Its number. Two connections that give the same share a segment.
    pub client: u32,
    /// Requested size of its segment; zero: none is needed.
    pub segment_bytes: u64,
}

impl Hello {
    /// As bytes.
    pub fn encode(&self) -> [u8; HELLO_BYTES] {
        let mut bytes = [0; HELLO_BYTES];
        bytes[..4].copy_from_slice(&MAGIC);
        bytes[4..6].copy_from_slice(&self.version.to_be_bytes());
        bytes[8..12].copy_from_slice(&self.client.to_be_bytes());
        bytes[16..24].copy_from_slice(&self.segment_bytes.to_be_bytes());
        bytes
    }

    /// From bytes. The version is not checked here: a server replies with its own to a client that
    /// it cannot serve.
    pub fn decode(bytes: &[u8; HELLO_BYTES]) -> Result<Self, WireError> {
        magic(bytes)?;
        let version = u16_at(bytes, 4);
        if version == VERSION && (u16_at(bytes, 6), u32_at(bytes, 12)) != (0, 0) {
            return Err(WireError::Reserved);
        }
        Ok(Self { version, client: u32_at(bytes, 8), segment_bytes: u64_at(bytes, 16) })
    }
}

/// First bytes of a server.
///
/// | at | bytes | field |
/// | --- | --- | --- |
/// | 0 | 4 | `PLMS` |
/// | 4 | 2 | version the server speaks |
/// | 6 | 2 | zero, or why it refuses ([`Refusal`]) |
/// | 8 | 4 | service threads; zero: not a fixed number |
/// | 12 | 1 | flags: 1 each write is durable before its reply, 2 calibrated |
/// | 13 | 3 | zero |
/// | 16 | 8 | size of the segment in bytes |
/// | 24 | 8 | bytes of memory the server may use for data; zero: not limited or not known |
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Welcome {
    /// Version the server speaks.
    pub version: u16,
    /// Why it refuses; the connection ends after it.
    pub refusal: Option<Refusal>,
    /// Service threads; zero: not a fixed number.
    pub service_threads: u32,
    /// A write is on stable storage before its reply leaves.
    pub durable: bool,
    /// Replies leave after a time drawn from a known distribution; no work is done.
    pub calibrated: bool,
    /// Size of the client's segment.
    pub segment_bytes: u64,
    /// Memory the server may use for data; zero: not limited, or not known.
    pub memory_bytes: u64,
}

const DURABLE: u8 = 1;
const CALIBRATED: u8 = 2;

impl Welcome {
    /// A refusal.
    pub const fn refused(refusal: Refusal) -> Self {
        Self {
            version: VERSION,
            refusal: Some(refusal),
            service_threads: 0,
            durable: false,
            calibrated: false,
            segment_bytes: 0,
            memory_bytes: 0,
        }
    }

    /// As bytes.
    pub fn encode(&self) -> [u8; WELCOME_BYTES] {
        let mut bytes = [0; WELCOME_BYTES];
        bytes[..4].copy_from_slice(&MAGIC);
        bytes[4..6].copy_from_slice(&self.version.to_be_bytes());
        bytes[6..8].copy_from_slice(&self.refusal.map_or(0, |why| why as u16).to_be_bytes());
        bytes[8..12].copy_from_slice(&self.service_threads.to_be_bytes());
        let flag = |set: bool, bit: u8| if set { bit } else { 0 };
        bytes[12] = flag(self.durable, DURABLE) | flag(self.calibrated, CALIBRATED);
        bytes[16..24].copy_from_slice(&self.segment_bytes.to_be_bytes());
        bytes[24..32].copy_from_slice(&self.memory_bytes.to_be_bytes());
        bytes
    }

    /// From bytes. From a server of another version only the version is reliable.
    pub fn decode(bytes: &[u8; WELCOME_BYTES]) -> Result<Self, WireError> {
        magic(bytes)?;
        let version = u16_at(bytes, 4);
        if version != VERSION {
            return Ok(Self { version, ..Self::refused(Refusal::Version) });
        }
        let refusal = match u16_at(bytes, 6) {
            0 => None,
            code => Some(Refusal::from_code(code).ok_or(WireError::Status(code))?),
        };
        if bytes[12] & !(DURABLE | CALIBRATED) != 0 || bytes[13..16] != [0; 3] {
            return Err(WireError::Reserved);
        }
        Ok(Self {
            version,
            refusal,
            service_threads: u32_at(bytes, 8),
            durable: bytes[12] & DURABLE != 0,
            calibrated: bytes[12] & CALIBRATED != 0,
            segment_bytes: u64_at(bytes, 16),
            memory_bytes: u64_at(bytes, 24),
        })
    }
}

/// Why a server does not let a client in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub enum Refusal {
    /// It speaks another version.
    Version = 1,
    /// The segment is larger than it allows.
    SegmentSize = 2,
    /// No room for the segment.
    NoRoom = 3,
    /// It has reached its limit of connections.
    Full = 4,
    /// It cannot use the segment's file; its own log has the reason.
    Storage = 5,
    /// It is about to end.
    Ending = 6,
}

impl Refusal {
    /// By its number on the wire.
    pub const fn from_code(code: u16) -> Option<Self> {
        Some(match code {
            1 => Self::Version,
            2 => Self::SegmentSize,
            3 => Self::NoRoom,
            4 => Self::Full,
            5 => Self::Storage,
            6 => Self::Ending,
            _ => return None,
        })
    }
}

fn magic(bytes: &[u8]) -> Result<(), WireError> {
    match array(bytes, 0) {
        MAGIC => Ok(()),
        other => Err(WireError::Magic(other)),
    }
}
