//! What a client sends, cut into messages: bytes in, a greeting or requests out. No socket, no
//! clock.
//!
//! An [`Inbox`] holds at most one frame of the longest kind, and never more than twice what has
//! arrived: a length that a client claims reserves nothing.

use super::{
    HELLO_BYTES, Hello, PAYLOAD_BYTES_MAX, REQUEST_HEADER_BYTES, RequestHeader, RequestType,
    WireError,
};

/// The longest frame of a client.
pub const FRAME_BYTES_MAX: usize = REQUEST_HEADER_BYTES + PAYLOAD_BYTES_MAX as usize;

/// A message that is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrived {
    /// The first one.
    Hello(Hello),
    /// Any other; its payload is [`Inbox::payload`].
    Request(RequestHeader),
}

/// Bytes that are no message. Nothing after them can be parsed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Malformed {
    /// No greeting of the protocol.
    Hello(WireError),
    /// No request; a reply can still name its id and type.
    Request {
        /// Id, as far as that is one.
        id: u32,
        /// Type, perhaps an unknown one.
        kind: u8,
        /// What is wrong; `None`: a payload where the type has none.
        why: Option<WireError>,
    },
}

/// What one connection has received and not yet handed on.
#[derive(Debug, Default)]
pub struct Inbox {
    /// Zeroes where nothing has arrived.
    bytes: Vec<u8>,
    start: usize,
    end: usize,
    greeted: bool,
    /// The request that was handed out and is not finished with.
    taken_bytes: usize,
}

impl Inbox {
    /// Nothing has arrived.
    pub const fn new() -> Self {
        Self { bytes: Vec::new(), start: 0, end: 0, greeted: false, taken_bytes: 0 }
    }

    /// How many more bytes may arrive.
    pub const fn room(&self) -> usize {
        FRAME_BYTES_MAX - (self.end - self.start)
    }

    /// Allocated room to read into, perhaps empty; at most [`Inbox::room`] long. Call
    /// [`Inbox::arrived`] afterwards.
    pub fn space(&mut self) -> &mut [u8] {
        if self.start > 0 {
            self.bytes.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        &mut self.bytes[self.end..]
    }

    /// `count` bytes have arrived: first in [`Inbox::space`], what did not fit there in `overflow`.
    /// More than [`Inbox::room`] is a mistake of the caller.
    pub fn arrived(&mut self, count: usize, overflow: &[u8]) {
        let fitted = count.min(self.bytes.len() - self.end);
        self.end += fitted;
        let rest = &overflow[..count - fitted];
        if rest.is_empty() {
            return;
        }
        let needed = self.end + rest.len();
        let capacity = needed.next_power_of_two().min(FRAME_BYTES_MAX);
        self.bytes.reserve_exact(capacity - self.bytes.len());
        self.bytes.resize(capacity, 0);
        self.bytes[self.end..needed].copy_from_slice(rest);
        self.end = needed;
    }

    /// `bytes`, which lie elsewhere, have arrived; at most [`Inbox::room`].
    pub fn push(&mut self, bytes: &[u8]) {
        let space = self.space();
        let fitted = space.len().min(bytes.len());
        space[..fitted].copy_from_slice(&bytes[..fitted]);
        self.arrived(bytes.len(), &bytes[fitted..]);
    }

    /// The next message, once it is complete. A request stays until [`Inbox::finish`].
    pub fn next_message(&mut self) -> Result<Option<Arrived>, Malformed> {
        let received = &self.bytes[self.start..self.end];
        if !self.greeted {
            let Some((hello, _)) = received.split_first_chunk::<HELLO_BYTES>() else {
                return foreign(received).map_or(Ok(None), |why| Err(Malformed::Hello(why)));
            };
            let hello = Hello::decode(hello).map_err(Malformed::Hello)?;
            self.greeted = true;
            self.start += HELLO_BYTES;
            return Ok(Some(Arrived::Hello(hello)));
        }
        let Some((header, rest)) = received.split_first_chunk::<REQUEST_HEADER_BYTES>() else {
            return Ok(None);
        };
        let request = decode_request(header)?;
        let payload_bytes = request.payload_bytes as usize;
        if rest.len() < payload_bytes {
            return Ok(None);
        }
        self.taken_bytes = REQUEST_HEADER_BYTES + payload_bytes;
        Ok(Some(Arrived::Request(request)))
    }

    /// Payload of the request that [`Inbox::next_message`] gave.
    pub fn payload(&self) -> &[u8] {
        let frame = &self.bytes[self.start..self.start + self.taken_bytes];
        frame.get(REQUEST_HEADER_BYTES..).unwrap_or_default()
    }

    /// Forgets the request that [`Inbox::next_message`] gave.
    pub fn finish(&mut self) {
        self.start += std::mem::take(&mut self.taken_bytes);
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        }
    }

    /// Whether everything that arrived was taken.
    pub const fn is_empty(&self) -> bool {
        self.start == self.end
    }

    /// Gives back memory that holds nothing.
    pub fn release(&mut self) {
        if self.is_empty() {
            (self.start, self.end, self.bytes) = (0, 0, Vec::new());
        }
    }

    /// Memory it takes, in bytes.
    pub fn memory_bytes(&self) -> usize {
        self.bytes.capacity()
    }
}

/// Another protocol shows in its first bytes; its client may never send as many as a greeting has.
fn foreign(received: &[u8]) -> Option<WireError> {
    let mut hello = Hello { version: 0, client: 0, segment_bytes: 0 }.encode();
    let magic_bytes = received.len().min(4);
    hello[..magic_bytes].copy_from_slice(&received[..magic_bytes]);
    Hello::decode(&hello).err()
}

fn decode_request(header: &[u8; REQUEST_HEADER_BYTES]) -> Result<RequestHeader, Malformed> {
    let id = u32::from_be_bytes([header[8], header[9], header[10], header[11]]);
    let malformed = |why| Malformed::Request { id, kind: header[4], why };
    let request = RequestHeader::decode(header).map_err(|why| malformed(Some(why)))?;
    let has_payload = matches!(
        request.kind,
        RequestType::ClientServer | RequestType::Write | RequestType::Append
    );
    if request.payload_bytes > 0 && !has_payload { Err(malformed(None)) } else { Ok(request) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(kind: RequestType, payload_bytes: u32) -> RequestHeader {
        RequestHeader { payload_bytes, kind, id: 7, size: 0, offset: 0, seed: 0, work: 0 }
    }

    fn frame(kind: RequestType, payload: &[u8]) -> Vec<u8> {
        let header = request(kind, payload.len() as u32).encode();
        [&header[..], payload].concat()
    }

    fn greeted() -> Inbox {
        let mut inbox = Inbox::new();
        let hello = Hello { version: 1, client: 3, segment_bytes: 0 };
        inbox.push(&hello.encode());
        assert_eq!(inbox.next_message(), Ok(Some(Arrived::Hello(hello))));
        inbox
    }

    #[test]
    fn messages_come_out_whole_however_they_are_cut() {
        let payload: Vec<u8> = (0..=255).cycle().take(70_000 - 6_000).collect();
        let stream = [
            Hello { version: 1, client: 3, segment_bytes: 5 }.encode().to_vec(),
            frame(RequestType::Write, &payload),
            frame(RequestType::Processor, &[]),
            frame(RequestType::ClientServer, b"abc"),
        ]
        .concat();
        for piece in [1, 7, 40, 4_096, 60_000] {
            let (mut inbox, mut rest, mut payloads) = (Inbox::new(), &stream[..], Vec::new());
            while !rest.is_empty() {
                let (now, later) = rest.split_at(piece.min(rest.len()).min(inbox.room()));
                inbox.push(now);
                rest = later;
                assert!(inbox.memory_bytes() <= FRAME_BYTES_MAX);
                while let Some(arrived) = inbox.next_message().unwrap() {
                    if let Arrived::Request(request) = arrived {
                        assert_eq!(inbox.payload().len(), request.payload_bytes as usize);
                        payloads.push(inbox.payload().to_vec());
                        inbox.finish();
                    }
                }
            }
            assert_eq!(payloads, [payload.clone(), Vec::new(), b"abc".to_vec()], "by {piece}");
            assert!(inbox.is_empty());
            inbox.release();
            assert_eq!(inbox.memory_bytes(), 0);
        }
    }

    #[test]
    fn a_claimed_length_reserves_nothing() {
        let mut inbox = greeted();
        inbox.push(&request(RequestType::Write, PAYLOAD_BYTES_MAX).encode());
        assert_eq!(inbox.next_message(), Ok(None));
        assert!(inbox.memory_bytes() <= 2 * REQUEST_HEADER_BYTES, "{}", inbox.memory_bytes());
    }

    #[test]
    fn another_protocol_is_known_by_its_first_byte() {
        let mut inbox = Inbox::new();
        inbox.push(b"G");
        assert!(matches!(inbox.next_message(), Err(Malformed::Hello(WireError::Magic(_)))));
        let mut inbox = Inbox::new();
        inbox.push(b"PLM");
        assert_eq!(inbox.next_message(), Ok(None));
    }

    #[test]
    fn what_is_wrong_with_a_request_keeps_its_id_and_type() {
        let mut inbox = greeted();
        inbox.push(&request(RequestType::Write, PAYLOAD_BYTES_MAX + 1).encode());
        let why = Some(WireError::Payload(PAYLOAD_BYTES_MAX + 1));
        assert_eq!(inbox.next_message(), Err(Malformed::Request { id: 7, kind: 5, why }));
        let mut inbox = greeted();
        inbox.push(&request(RequestType::Read, 1).encode());
        assert_eq!(inbox.next_message(), Err(Malformed::Request { id: 7, kind: 4, why: None }));
    }

    #[test]
    fn it_never_takes_more_than_the_longest_frame() {
        let mut inbox = greeted();
        let full = frame(RequestType::Write, &vec![1; PAYLOAD_BYTES_MAX as usize]);
        assert_eq!((full.len(), inbox.room()), (FRAME_BYTES_MAX, FRAME_BYTES_MAX));
        inbox.push(&full);
        assert_eq!(inbox.room(), 0);
        assert!(matches!(inbox.next_message(), Ok(Some(Arrived::Request(_)))));
        assert!(inbox.memory_bytes() <= FRAME_BYTES_MAX);
    }
}
