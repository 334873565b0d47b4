//! Messages on a stream: direct TCP. MS-SMB2 2.1
//!
//! A zero byte and three with the length, big-endian, before each message.

use plimsoll_protocol::assembler::{self, Marks, Part};

pub use plimsoll_protocol::assembler::begin;

/// Bytes before a message.
pub const FRAME_HEADER: usize = assembler::MARK_BYTES;

/// Longest message that is taken: the largest READ that servers offer, with room for the rest.
pub const FRAME_BYTES_MAX: usize = 8 * 1024 * 1024 + 64 * 1024;

/// The stream cannot be read on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// A message is too long.
    #[error("a message of {bytes} bytes; at most {FRAME_BYTES_MAX} are read")]
    TooLong {
        /// As announced.
        bytes: usize,
    },
    /// What follows is not direct TCP.
    #[error("a message begins with byte {0:#04x} instead of 0; the peer does not speak SMB here")]
    Kind(u8),
}

/// Ends the message that [`begin`] began at `at`. May be called again after it has grown.
#[inline]
pub fn finish(out: &mut [u8], at: usize) {
    let bytes = out.len() - at - FRAME_HEADER;
    assert!(bytes < 1 << 24, "a message is shorter than 16 MiB");
    out[at..at + FRAME_HEADER].copy_from_slice(&(bytes as u32).to_be_bytes());
}

/// Finds the messages in a stream of bytes.
pub type Assembler = assembler::Assembler<DirectTcp>;

/// One part to a message, with three bytes of length.
#[derive(Debug, Default)]
pub struct DirectTcp;

impl Marks for DirectTcp {
    type Error = FrameError;

    #[inline]
    fn read(mark: [u8; FRAME_HEADER], _before: usize) -> Result<Part, FrameError> {
        if mark[0] != 0 {
            return Err(FrameError::Kind(mark[0]));
        }
        let bytes = u32::from_be_bytes(mark) as usize;
        let part = Part { bytes, is_last: true };
        if bytes > FRAME_BYTES_MAX { Err(FrameError::TooLong { bytes }) } else { Ok(part) }
    }
}
