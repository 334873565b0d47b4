//! Messages of the transaction protocol, version 1, as bytes; both directions. Everything is in
//! network byte order. `docs/app-protocol.md` is the specification.
//!
//! A connection begins with [`Hello`] and [`Welcome`]; then every request has one reply, in order.
//! A frame is a header of fixed size and the payload whose length the header names. A length above
//! [`PAYLOAD_BYTES_MAX`] is refused before anything is kept for it.

mod bytes;
mod checksum;
mod hello;
mod reply;
mod request;

pub use checksum::{WORK_BLOCK_BYTES, checksum, work_block, work_checksum};
pub use hello::{HELLO_BYTES, Hello, Refusal, WELCOME_BYTES, Welcome};
pub use reply::{REPLY_HEADER_BYTES, ReplyHeader, Status};
pub use request::{REQUEST_HEADER_BYTES, RequestHeader, RequestType};

/// First four bytes of both greetings.
pub const MAGIC: [u8; 4] = *b"PLMS";
/// The version of the protocol that is spoken here.
pub const VERSION: u16 = 1;
/// Longest payload of a frame, either way: what one connection can make a peer keep.
pub const PAYLOAD_BYTES_MAX: u32 = 64 * 1_024;
/// Most work a processor request may ask for: about four seconds on a processor of today, which
/// takes 4 µs for a unit.
pub const WORK_MAX: u32 = 1_000_000;

/// Why bytes are no message. None of them is worth going on for: the connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// Another protocol.
    #[error("no greeting of the transaction protocol: it begins with {0:02x?} instead of \"PLMS\"")]
    Magic([u8; 4]),
    /// A payload that is too long.
    #[error("a payload of {0} bytes; at most {PAYLOAD_BYTES_MAX} are allowed")]
    Payload(u32),
    /// A type nobody knows.
    #[error("request type {0} is not known")]
    Type(u8),
    /// A status nobody knows.
    #[error("status {0} is not known")]
    Status(u16),
    /// A reserved field that is not zero.
    #[error("a reserved field is not zero")]
    Reserved,
    /// A processor request that asks for too much.
    #[error("{0} units of work; at most {WORK_MAX} are allowed")]
    Work(u32),
    /// A request for more bytes than fit in a reply.
    #[error("a size of {0} bytes; at most {PAYLOAD_BYTES_MAX} are allowed")]
    Size(u32),
}

#[cfg(test)]
mod tests;
