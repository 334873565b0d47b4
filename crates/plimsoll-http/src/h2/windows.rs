//! Flow control: what the server may send, and what it lets us send; and the streams of a
//! connection, by their numbers. RFC 9113 §5.1, §5.2, §6.9.

use super::event::{Fault, Tag};
use super::frame::{NUMBER_MAX, WINDOW_BYTES, setting};
use super::request::EncoderTable;

/// Windows that a client gives its server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceiveWindows {
    /// Of each stream.
    pub stream_bytes: u32,
    /// Of the connection.
    pub connection_bytes: u32,
}

/// How a client uses its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct H2Settings {
    /// Ops in flight at a time.
    pub streams: u32,
    /// What it lets the server send.
    pub windows: ReceiveWindows,
}

/// One window that we give: opened again when half of it is used, so that updates are few and the
/// server never waits for one while we take what it sends.
#[derive(Clone, Copy, Debug)]
pub struct ReceiveWindow {
    size: u32,
    /// Taken since the last update.
    used: u32,
}

impl ReceiveWindow {
    /// A whole window.
    pub fn new(size: u32) -> Self {
        Self { size, used: 0 }
    }

    /// The server has used this much of it. Answers with the increment to be sent, if any.
    #[inline]
    pub fn take(&mut self, bytes: u32) -> Result<Option<u32>, Fault> {
        let used = self.used.checked_add(bytes).filter(|used| *used <= self.size);
        self.used = used.ok_or(Fault::Window)?;
        let is_due = self.used >= self.size.div_ceil(2);
        Ok(is_due.then(|| std::mem::take(&mut self.used)))
    }
}

/// One window that the server gives. Its settings may make it negative.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SendWindow(i64);

impl SendWindow {
    /// A window of that size.
    pub fn new(bytes: u32) -> Self {
        Self(i64::from(bytes))
    }

    /// Bytes that may be sent now.
    pub fn room(self) -> usize {
        usize::try_from(self.0).unwrap_or(0)
    }

    /// Bytes were sent; at most [`Self::room`].
    pub fn use_up(&mut self, bytes: usize) {
        self.0 -= bytes as i64;
    }

    /// The server opens it, or its settings change it.
    pub fn grow(&mut self, bytes: i64) -> Result<(), Fault> {
        let grown = self.0.saturating_add(bytes);
        if grown > i64::from(NUMBER_MAX) {
            return Err(Fault::WindowUpdate);
        }
        self.0 = grown;
        Ok(())
    }
}

/// The server's settings. RFC 9113 §6.5.2
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeerSettings {
    /// Streams that may be open at a time.
    pub streams_max: u32,
    /// Window of a new stream.
    pub window_bytes: u32,
    /// Longest payload of a frame.
    pub payload_bytes_max: u32,
}

impl Default for PeerSettings {
    fn default() -> Self {
        Self {
            streams_max: u32::MAX,
            window_bytes: WINDOW_BYTES,
            payload_bytes_max: super::frame::PAYLOAD_BYTES_MAX,
        }
    }
}

impl PeerSettings {
    /// Takes the payload of a SETTINGS frame in.
    pub fn read(&mut self, payload: &[u8], table: &mut EncoderTable) -> Result<(), Fault> {
        let (settings, rest) = payload.as_chunks::<6>();
        if !rest.is_empty() {
            return Err(Fault::FrameLength(super::frame::kind::SETTINGS));
        }
        for [a, b, value @ ..] in settings {
            self.set(u16::from_be_bytes([*a, *b]), u32::from_be_bytes(*value), table)?;
        }
        Ok(())
    }

    fn set(&mut self, name: u16, value: u32, table: &mut EncoderTable) -> Result<(), Fault> {
        match name {
            setting::HEADER_TABLE_SIZE => table.allow(value),
            // A server has no pushes to allow.
            setting::ENABLE_PUSH if value != 0 => return Err(Fault::Setting(name)),
            setting::MAX_CONCURRENT_STREAMS => self.streams_max = value,
            setting::INITIAL_WINDOW_SIZE if value > NUMBER_MAX => {
                return Err(Fault::Setting(name));
            }
            setting::INITIAL_WINDOW_SIZE => self.window_bytes = value,
            setting::MAX_FRAME_SIZE if !(16_384..1 << 24).contains(&value) => {
                return Err(Fault::Setting(name));
            }
            setting::MAX_FRAME_SIZE => self.payload_bytes_max = value,
            // Unknown ones are ignored.
            _ => {}
        }
        Ok(())
    }
}

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

    /// Heap bytes in use.
    pub(super) fn heap_bytes(&self) -> usize {
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
        let at = self.index_of(number)?;
        self.open.get_mut(at)
    }

    /// Closes it.
    pub(super) fn remove(&mut self, number: u32) -> Option<Stream> {
        self.index_of(number).map(|at| self.open.remove(at))
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

    fn index_of(&self, number: u32) -> Option<usize> {
        self.open.binary_search_by_key(&number, |stream| stream.number).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_is_opened_again_when_half_of_it_is_used() {
        let mut window = ReceiveWindow::new(100);
        assert_eq!(window.take(49), Ok(None));
        assert_eq!(window.take(2), Ok(Some(51)));
        assert_eq!(window.take(101), Err(Fault::Window));
        assert_eq!(ReceiveWindow::new(1).take(1), Ok(Some(1)));
    }

    #[test]
    fn a_window_that_the_settings_make_negative_opens_when_it_is_positive_again() {
        let mut window = SendWindow::new(10);
        window.use_up(10);
        window.grow(-5).unwrap();
        assert_eq!(window.room(), 0);
        window.grow(6).unwrap();
        assert_eq!(window.room(), 1);
        assert_eq!(window.grow(i64::from(NUMBER_MAX)), Err(Fault::WindowUpdate));
    }

    #[test]
    fn settings_out_of_bounds_are_faults_and_unknown_ones_are_not() {
        let read = |name: u16, value: u32| {
            let mut settings = PeerSettings::default();
            let payload = [&name.to_be_bytes()[..], &value.to_be_bytes()].concat();
            settings.read(&payload, &mut EncoderTable::default()).map(|()| settings)
        };
        assert_eq!(read(3, 7).unwrap().streams_max, 7);
        assert_eq!(read(99, 7), Ok(PeerSettings::default()));
        for (name, value) in [(2, 1), (4, 1 << 31), (5, 16_383), (5, 1 << 24)] {
            assert_eq!(read(name, value), Err(Fault::Setting(name)));
        }
        let mut settings = PeerSettings::default();
        assert!(settings.read(&[0; 7], &mut EncoderTable::default()).is_err());
    }
}
