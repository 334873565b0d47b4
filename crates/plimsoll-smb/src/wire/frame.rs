//! Messages on a stream: direct TCP. MS-SMB2 2.1
//!
//! A zero byte and three with the length, big-endian, before each message.

use std::mem;

/// Bytes before a message.
pub const FRAME_HEADER: usize = 4;

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

/// Reserves the four bytes before a message; answers with where it begins, for [`finish`].
#[inline]
pub fn begin(out: &mut Vec<u8>) -> usize {
    let at = out.len();
    out.extend_from_slice(&[0; FRAME_HEADER]);
    at
}

/// Ends the message that [`begin`] began at `at`. May be called again after it has grown.
#[inline]
pub fn finish(out: &mut [u8], at: usize) {
    let bytes = out.len() - at - FRAME_HEADER;
    assert!(bytes < 1 << 24, "a message is shorter than 16 MiB");
    out[at..at + FRAME_HEADER].copy_from_slice(&(bytes as u32).to_be_bytes());
}

/// Finds the messages in a stream of bytes. One that arrives whole is handed on where it lies;
/// others are put together here, in memory that grows with what has arrived, not with what was
/// announced.
#[derive(Debug, Default)]
pub struct Assembler {
    /// Bytes of the message so far, without its length.
    message: Vec<u8>,
    /// The message was handed on with the last call.
    handed_on: bool,
    /// Length bytes of the next message so far.
    header: [u8; FRAME_HEADER],
    header_bytes: usize,
    /// To come of the present message; `None` while its length is read.
    left: Option<usize>,
}

impl Assembler {
    /// Every message that was begun has been handed on.
    pub const fn is_between_messages(&self) -> bool {
        self.left.is_none() && self.header_bytes == 0 && (self.handed_on || self.message.is_empty())
    }

    /// Between messages.
    pub fn new() -> Self {
        Self::default()
    }

    /// Bytes of incomplete messages held.
    pub fn held_bytes(&self) -> usize {
        if self.handed_on { 0 } else { self.message.len() + self.header_bytes }
    }

    /// Forgets what has arrived, for a new connection. Keeps the memory.
    pub fn reset(&mut self) {
        *self = Self { message: mem::take(&mut self.message), ..Self::default() };
        self.message.clear();
    }

    /// Hands every message that `bytes` completes to `each`, without its four bytes. After an
    /// error the stream is of no use any more.
    pub fn push<E: From<FrameError>>(
        &mut self,
        mut bytes: &[u8],
        mut each: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        while let Some(message) = self.take(&mut bytes)? {
            each(message)?;
        }
        Ok(())
    }

    /// The next message that is complete, taking its bytes from the front of `bytes`; when there
    /// is none, all of `bytes` has been taken.
    #[inline]
    pub fn take<'r, 'b: 'r>(
        &'r mut self,
        bytes: &mut &'b [u8],
    ) -> Result<Option<&'r [u8]>, FrameError> {
        if mem::take(&mut self.handed_on) {
            self.message.clear();
        }
        if self.left.is_none()
            && self.header_bytes == 0
            && let Some((header, rest)) = bytes.split_first_chunk()
        {
            let length = length(*header)?;
            if let Some((message, rest)) = rest.split_at_checked(length) {
                *bytes = rest;
                return Ok(Some(message));
            }
        }
        self.assemble(bytes)
    }

    fn assemble(&mut self, bytes: &mut &[u8]) -> Result<Option<&[u8]>, FrameError> {
        let left = match self.left {
            Some(left) => left,
            None => match self.read_header(bytes)? {
                Some(left) => left,
                None => return Ok(None),
            },
        };
        let (taken, rest) = bytes.split_at(left.min(bytes.len()));
        self.message.extend_from_slice(taken);
        *bytes = rest;
        if taken.len() < left {
            self.left = Some(left - taken.len());
            return Ok(None);
        }
        self.left = None;
        self.handed_on = true;
        Ok(Some(&self.message))
    }

    /// Length of the message that begins; `None` when it is incomplete.
    fn read_header(&mut self, bytes: &mut &[u8]) -> Result<Option<usize>, FrameError> {
        let missing = FRAME_HEADER - self.header_bytes;
        let (taken, rest) = bytes.split_at(missing.min(bytes.len()));
        self.header[self.header_bytes..][..taken.len()].copy_from_slice(taken);
        self.header_bytes += taken.len();
        *bytes = rest;
        if self.header_bytes < FRAME_HEADER {
            return Ok(None);
        }
        self.header_bytes = 0;
        length(self.header).map(Some)
    }
}

fn length(header: [u8; FRAME_HEADER]) -> Result<usize, FrameError> {
    if header[0] != 0 {
        return Err(FrameError::Kind(header[0]));
    }
    let bytes = u32::from_be_bytes(header) as usize;
    if bytes > FRAME_BYTES_MAX { Err(FrameError::TooLong { bytes }) } else { Ok(bytes) }
}
