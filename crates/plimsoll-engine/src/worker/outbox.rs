//! Bytes of a link that its socket has not been given, or has not taken, yet.

use crate::driver::{Driver, Slot};
use crate::seam::{LinkError, LinkKind};

/// A buffer this large is not kept for the next time.
const KEPT_BYTES_MAX: usize = 1 << 20;

/// Bytes in order; of datagrams, with their borders.
#[derive(Default)]
pub(super) struct Outbox {
    bytes: Vec<u8>,
    /// Of each datagram; empty for a stream.
    lengths: Vec<usize>,
}

impl Outbox {
    pub(super) fn is_empty(&self) -> bool {
        self.bytes.is_empty() && self.lengths.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }

    pub(super) fn push(&mut self, kind: LinkKind, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        if kind == LinkKind::Datagram {
            self.lengths.push(bytes.len());
        }
    }

    /// Sends what the socket takes; how many bytes that was.
    pub(super) fn send<D: Driver>(
        &mut self,
        kind: LinkKind,
        slot: Slot,
        driver: &mut D,
    ) -> Result<usize, LinkError> {
        let sent = match kind {
            LinkKind::Stream => driver.send(slot, &self.bytes)?,
            LinkKind::Datagram => {
                let taken = driver.send_datagrams(slot, &self.bytes, &self.lengths)?;
                self.lengths.drain(..taken).sum()
            }
        };
        self.bytes.drain(..sent);
        Ok(sent)
    }

    /// Forgets everything. `Keep` keeps the memory for the next time, unless it has grown large.
    pub(super) fn clear(&mut self, memory: Memory) {
        if memory == Memory::Free || self.bytes.capacity() > KEPT_BYTES_MAX {
            *self = Self::default();
        } else {
            self.bytes.clear();
            self.lengths.clear();
        }
    }
}

/// What becomes of a buffer that is empty.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Memory {
    /// Needed again soon.
    Keep,
    /// Seldom needed.
    Free,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_is_kept_unless_it_has_grown_large_or_is_seldom_needed() {
        let mut outbox = Outbox::default();
        outbox.push(LinkKind::Datagram, &[1; 100]);
        outbox.push(LinkKind::Datagram, &[]);
        outbox.clear(Memory::Keep);
        assert!(outbox.is_empty() && outbox.bytes.capacity() >= 100);
        outbox.clear(Memory::Free);
        assert_eq!(outbox.bytes.capacity(), 0);
        outbox.push(LinkKind::Stream, &vec![1; KEPT_BYTES_MAX + 1]);
        outbox.clear(Memory::Keep);
        assert_eq!((outbox.len(), outbox.bytes.capacity()), (0, 0));
    }
}
