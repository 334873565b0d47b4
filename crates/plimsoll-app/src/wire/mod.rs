//! Messages of the transaction protocol, version 1, as bytes; both directions. Everything is in
//! network byte order. `docs/app-protocol.md` is the specification.
//!
//! A connection begins with [`Hello`] and [`Welcome`]; then every request has one reply, in order.
//! A frame is a header of fixed size and the payload whose length the header names. A length above
//! [`PAYLOAD_BYTES_MAX`] is refused before memory is reserved for it.

mod frames;
mod hello;
pub mod inbox;

use std::sync::LazyLock;

use crc32fast::Hasher;

pub use self::frames::{
    REPLY_HEADER_BYTES, REQUEST_HEADER_BYTES, ReplyHeader, RequestHeader, RequestType, Status,
};
pub use self::hello::{HELLO_BYTES, Hello, Refusal, WELCOME_BYTES, Welcome};

/// First four bytes of both greetings.
pub const MAGIC: [u8; 4] = *b"PLMS";
/// The version of the protocol that is spoken here.
pub const VERSION: u16 = 1;
/// Longest payload of a frame in either direction: the memory that one connection can make a peer
/// use.
pub const PAYLOAD_BYTES_MAX: u32 = 64 * 1_024;
/// Most work a processor request may ask for: about four seconds on a processor of today, which
/// takes 4 µs for a unit.
pub const WORK_MAX: u32 = 1_000_000;

/// Why bytes are no message. Each ends the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// Another protocol.
    #[error("no greeting of the transaction protocol: it begins with {0:02x?} instead of \"PLMS\"")]
    Magic([u8; 4]),
    /// A payload that is too long.
    #[error("a payload of {0} bytes; at most {PAYLOAD_BYTES_MAX} are allowed")]
    Payload(u32),
    /// An unknown type.
    #[error("request type {0} is not known")]
    Type(u8),
    /// An unknown status.
    #[error("status {0} is not known")]
    Status(u16),
    /// A reserved field that is not zero.
    #[error("a reserved field is not zero")]
    Reserved,
    /// A processor request for too much work.
    #[error("{0} units of work; at most {WORK_MAX} are allowed")]
    Work(u32),
    /// A request for more bytes than fit in a reply.
    #[error("a size of {0} bytes; at most {PAYLOAD_BYTES_MAX} are allowed")]
    Size(u32),
}

/// Length of the block a unit of work goes over: more than a first-level cache holds.
pub const WORK_BLOCK_BYTES: usize = 64 * 1_024;

/// CRC-32 (IEEE 802.3, as in zlib) of `bytes`, going on from `seed`: zlib's `crc32(seed, bytes)`.
pub fn checksum(seed: u32, bytes: &[u8]) -> u32 {
    let mut hasher = Hasher::new_with_initial(seed);
    hasher.update(bytes);
    hasher.finalize()
}

/// The block a unit of work goes over: byte `i` is `(131 · i + ⌊i / 256⌋) mod 256`.
pub fn work_block() -> &'static [u8; WORK_BLOCK_BYTES] {
    static BLOCK: LazyLock<Box<[u8; WORK_BLOCK_BYTES]>> =
        LazyLock::new(|| Box::new(std::array::from_fn(|i| (131 * i + i / 256) as u8)));
    &BLOCK
}

/// The answer to `work` units: as many checksums of [`work_block`], each going on from the last,
/// the first from `seed`.
pub fn work_checksum(seed: u32, work: u32) -> u32 {
    (0..work).fold(seed, |sum, _| checksum(sum, work_block()))
}

/// Sixteen bits at `new`.
fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes(array(bytes, at))
}

/// Thirty-two bits at `new`.
fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(array(bytes, at))
}

/// Sixty-four bits at `new`.
fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_be_bytes(array(bytes, at))
}

/// `N` bytes at `new`.
fn array<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    bytes[at..at + N].try_into().expect("the slice has N bytes")
}

#[cfg(test)]
mod tests;
