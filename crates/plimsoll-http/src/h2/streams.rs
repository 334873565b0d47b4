//! The streams of a connection, by their numbers. RFC 9113 §5.1.

use super::event::Tag;
use super::fault::Fault;
use super::frame::NUMBER_MAX;
use super::windows::{ReceiveWindow, SendWindow};

/// Those that are open, the newest last: as numbers only grow, a stream is found by bisection, and
/// one among a hundred is removed by moving a few hundred bytes.
#[derive(Debug, Default)]
pub(super) struct Streams {
    open: Vec<Stream>,
    /// Opened so far.
    count: u32,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Stream {
    pub number: u32,
    pub tag: Tag,
    pub sending: SendWindow,
    pub receiving: ReceiveWindow,
    /// The request has been sent in full.
    pub is_sent: bool,
    pub has_head: bool,
}

impl Streams {
    /// How many are open.
    pub(super) fn len(&self) -> usize {
        self.open.len()
    }

    /// Heap bytes held now.
    pub(super) fn held_bytes(&self) -> usize {
        self.open.capacity() * size_of::<Stream>()
    }

    /// Number of the next one: a client's are odd.
    pub(super) fn next_number(&self) -> u32 {
        2 * self.count + 1
    }

    /// There is no number for another.
    pub(super) fn is_used_up(&self) -> bool {
        self.next_number() > NUMBER_MAX - 2
    }

    /// Opens a stream with the next number.
    pub(super) fn open(&mut self, stream: Stream) {
        self.open.push(stream);
        self.count += 1;
    }

    /// The open stream of this number.
    pub(super) fn find(&mut self, number: u32) -> Option<&mut Stream> {
        let at = self.at(number)?;
        self.open.get_mut(at)
    }

    /// Closes it.
    pub(super) fn remove(&mut self, number: u32) -> Option<Stream> {
        self.at(number).map(|at| self.open.remove(at))
    }

    /// Closes the newest, if its number is above this.
    pub(super) fn pop_above(&mut self, number: u32) -> Option<Stream> {
        self.open.pop_if(|stream| stream.number > number)
    }

    /// The windows of all change. RFC 9113 §6.9.2
    pub(super) fn grow(&mut self, bytes: i64) -> Result<(), Fault> {
        self.open.iter_mut().try_for_each(|stream| stream.sending.grow(bytes))
    }

    /// Frames of a stream that has been closed are ignored; one that was never opened has none.
    pub(super) fn check_closed(&self, number: u32, kind: u8) -> Result<(), Fault> {
        let was_open = number % 2 == 1 && number < self.next_number();
        if was_open { Ok(()) } else { Err(Fault::FrameStream(kind)) }
    }

    fn at(&self, number: u32) -> Option<usize> {
        self.open.binary_search_by_key(&number, |stream| stream.number).ok()
    }
}
