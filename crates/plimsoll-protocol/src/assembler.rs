//! Messages on a stream of bytes: each in one or more parts, every part behind four bytes that say
//! how long it is.

use std::marker::PhantomData;
use std::mem;

/// Bytes before a part.
pub const MARK_BYTES: usize = 4;

/// Reserves the mark of a part; answers with where it begins.
#[inline]
pub fn begin(out: &mut Vec<u8>) -> usize {
    let at = out.len();
    out.extend_from_slice(&[0; MARK_BYTES]);
    at
}

/// What a protocol writes into the four bytes.
pub trait Marks: Default {
    /// The stream cannot be read on.
    type Error;

    /// The part that a mark announces, of a message of which `before` bytes have arrived.
    fn read(mark: [u8; MARK_BYTES], before: usize) -> Result<Part, Self::Error>;
}

/// Part of a message.
#[derive(Clone, Copy, Debug)]
pub struct Part {
    /// How long it is.
    pub bytes: usize,
    /// It ends its message.
    pub is_last: bool,
}

/// Finds the messages in a stream of bytes. One that arrives whole and in one part is handed on
/// where it lies; others are put together here, in memory that grows with what has arrived, not
/// with what was announced.
#[derive(Debug, Default)]
pub struct Assembler<M> {
    /// Parts of a message so far.
    message: Vec<u8>,
    /// The message was handed on with the last call.
    handed_on: bool,
    /// The next mark so far.
    mark: [u8; MARK_BYTES],
    mark_bytes: usize,
    /// To come of the present part; `None` while its mark is read.
    left: Option<Part>,
    marks: PhantomData<M>,
}

impl<M: Marks> Assembler<M> {
    /// Between messages.
    pub fn new() -> Self {
        Self::default()
    }

    /// Every message that was begun has been handed on.
    pub const fn is_between_messages(&self) -> bool {
        self.left.is_none() && self.mark_bytes == 0 && (self.handed_on || self.message.is_empty())
    }

    /// Bytes of incomplete messages in the buffer.
    pub fn buffered_bytes(&self) -> usize {
        if self.handed_on { 0 } else { self.message.len() + self.mark_bytes }
    }

    /// Forgets what has arrived, for a new connection. Keeps the memory.
    pub fn reset(&mut self) {
        *self = Self { message: mem::take(&mut self.message), ..Self::default() };
        self.message.clear();
    }

    /// Hands every message that `bytes` completes to `each`, without its marks. After an error the
    /// stream is unusable.
    pub fn push<E: From<M::Error>>(
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
    ) -> Result<Option<&'r [u8]>, M::Error> {
        if mem::take(&mut self.handed_on) {
            self.message.clear();
        }
        if self.is_between_messages()
            && let Some((mark, rest)) = bytes.split_first_chunk()
        {
            let part = M::read(*mark, 0)?;
            if part.is_last
                && let Some((message, rest)) = rest.split_at_checked(part.bytes)
            {
                *bytes = rest;
                return Ok(Some(message));
            }
        }
        self.assemble(bytes)
    }

    fn assemble(&mut self, bytes: &mut &[u8]) -> Result<Option<&[u8]>, M::Error> {
        loop {
            let part = match self.left {
                Some(part) => part,
                None => match self.read_mark(bytes)? {
                    Some(part) => part,
                    None => return Ok(None),
                },
            };
            let (taken, rest) = bytes.split_at(part.bytes.min(bytes.len()));
            self.message.extend_from_slice(taken);
            *bytes = rest;
            if taken.len() < part.bytes {
                self.left = Some(Part { bytes: part.bytes - taken.len(), ..part });
                return Ok(None);
            }
            self.left = None;
            if part.is_last {
                self.handed_on = true;
                return Ok(Some(&self.message));
            }
        }
    }

    /// The part that begins; `None` when its mark is incomplete.
    fn read_mark(&mut self, bytes: &mut &[u8]) -> Result<Option<Part>, M::Error> {
        let missing = MARK_BYTES - self.mark_bytes;
        let (taken, rest) = bytes.split_at(missing.min(bytes.len()));
        self.mark[self.mark_bytes..][..taken.len()].copy_from_slice(taken);
        self.mark_bytes += taken.len();
        *bytes = rest;
        if self.mark_bytes < MARK_BYTES {
            return Ok(None);
        }
        self.mark_bytes = 0;
        M::read(self.mark, self.message.len()).map(Some)
    }
}
