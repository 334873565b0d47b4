//! The beginning of a message that comes in pieces.

use crate::wire::WELCOME_BYTES;

/// What has arrived of a greeting or a header.
#[derive(Debug)]
pub(super) struct Pieces {
    bytes: [u8; WELCOME_BYTES],
    held: usize,
}

impl Pieces {
    /// Nothing.
    pub(super) const fn new() -> Self {
        Self { bytes: [0; WELCOME_BYTES], held: 0 }
    }

    /// Bytes held.
    pub(super) const fn held(&self) -> usize {
        self.held
    }

    /// Forgets what is held.
    pub(super) const fn clear(&mut self) {
        self.held = 0;
    }

    /// The first `N` bytes of the message, at most [`WELCOME_BYTES`], and what follows them;
    /// `None` while they are not all there: then `bytes` are kept.
    pub(super) fn take<'b, const N: usize>(
        &mut self,
        bytes: &'b [u8],
    ) -> Option<([u8; N], &'b [u8])> {
        if self.held == 0
            && let Some((message, rest)) = bytes.split_first_chunk()
        {
            return Some((*message, rest));
        }
        let missing = N.saturating_sub(self.held).min(bytes.len());
        let (piece, rest) = bytes.split_at(missing);
        self.bytes[self.held..self.held + missing].copy_from_slice(piece);
        self.held += missing;
        if self.held < N {
            return None;
        }
        self.held = 0;
        Some((*self.bytes.first_chunk()?, rest))
    }
}
