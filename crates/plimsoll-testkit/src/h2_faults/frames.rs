//! Frames of HTTP/2 as bytes, right ones and wrong ones. RFC 9113 §4, §6; RFC 7541.

/// The first bytes that a client sends. §3.4
pub const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// What our pings carry.
pub const PING: &[u8] = b"plimsoll";

/// Types of frames. §6
pub mod kind {
    #![allow(missing_docs, reason = "they are called as in the standard")]
    pub const DATA: u8 = 0;
    pub const HEADERS: u8 = 1;
    pub const RST_STREAM: u8 = 3;
    pub const SETTINGS: u8 = 4;
    pub const PUSH_PROMISE: u8 = 5;
    pub const PING: u8 = 6;
    pub const GOAWAY: u8 = 7;
    pub const WINDOW_UPDATE: u8 = 8;
    pub const CONTINUATION: u8 = 9;
}

/// Flags of frames. §6
pub mod flag {
    #![allow(missing_docs, reason = "they are called as in the standard")]
    pub const NONE: u8 = 0;
    pub const ACK: u8 = 1;
    pub const END_STREAM: u8 = 1;
    pub const END_HEADERS: u8 = 4;
}

/// Settings. §6.5.2
pub mod setting {
    #![allow(missing_docs, reason = "they are called as in the standard")]
    pub const MAX_CONCURRENT_STREAMS: u16 = 3;
    pub const INITIAL_WINDOW_SIZE: u16 = 4;
}

/// Codes of RST_STREAM and GOAWAY. §7
pub mod code {
    #![allow(missing_docs, reason = "they are called as in the standard")]
    pub const NO_ERROR: u32 = 0;
    pub const PROTOCOL_ERROR: u32 = 1;
    pub const INTERNAL_ERROR: u32 = 2;
    pub const REFUSED_STREAM: u32 = 7;
    pub const CANCEL: u32 = 8;
    pub const ENHANCE_YOUR_CALM: u32 = 11;
    pub const HTTP_1_1_REQUIRED: u32 = 13;
}

/// Header of a frame. §4.1
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Of the payload.
    pub length: u32,
    /// One of [`kind`].
    pub kind: u8,
    /// Some of [`flag`].
    pub flags: u8,
    /// 0 is the connection.
    pub stream: u32,
}

impl Header {
    /// From the wire.
    pub fn read(bytes: [u8; 9]) -> Self {
        let [a, b, c, kind, flags, stream @ ..] = bytes;
        let stream = u32::from_be_bytes(stream) & 0x7fff_ffff;
        Self { length: u32::from_be_bytes([0, a, b, c]), kind, flags, stream }
    }

    /// It has this flag.
    pub fn has(self, flag: u8) -> bool {
        self.flags & flag != 0
    }
}

/// The first four bytes of a payload as a number; 0 where there are fewer.
pub fn number(payload: &[u8]) -> u32 {
    payload.first_chunk().map_or(0, |four| u32::from_be_bytes(*four))
}

/// A frame.
pub fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    let mut bytes = length[1..].to_vec();
    bytes.extend([kind, flags]);
    bytes.extend(stream.to_be_bytes());
    bytes.extend(payload);
    bytes
}

/// SETTINGS.
pub fn settings(list: &[(u16, u32)]) -> Vec<u8> {
    let values = list
        .iter()
        .flat_map(|(name, value)| name.to_be_bytes().into_iter().chain(value.to_be_bytes()));
    frame(kind::SETTINGS, flag::NONE, 0, &values.collect::<Vec<u8>>())
}

/// The answer to SETTINGS or PING.
pub fn ack(kind: u8, payload: &[u8]) -> Vec<u8> {
    frame(kind, flag::ACK, 0, payload)
}

/// PING.
pub fn ping() -> Vec<u8> {
    frame(kind::PING, flag::NONE, 0, PING)
}

/// WINDOW_UPDATE.
pub fn window_update(stream: u32, bytes: u32) -> Vec<u8> {
    frame(kind::WINDOW_UPDATE, flag::NONE, stream, &bytes.to_be_bytes())
}

/// RST_STREAM.
pub fn reset(stream: u32, code: u32) -> Vec<u8> {
    frame(kind::RST_STREAM, flag::NONE, stream, &code.to_be_bytes())
}

/// GOAWAY.
pub fn go_away(last_stream: u32, code: u32) -> Vec<u8> {
    let numbers = [last_stream.to_be_bytes(), code.to_be_bytes()];
    frame(kind::GOAWAY, flag::NONE, 0, &numbers.concat())
}

/// The header of a reply of this status, one of those with an index in the static table.
pub fn head(stream: u32, status: u16) -> Vec<u8> {
    frame(kind::HEADERS, flag::END_HEADERS, stream, &status_field(status))
}

/// A field of the static table: `:status`. RFC 7541, appendix A
fn status_field(status: u16) -> [u8; 1] {
    let statuses = [200, 204, 206, 304, 400, 404, 500];
    let at = statuses.iter().position(|entry| *entry == status).unwrap();
    [0x80 + 8 + at as u8]
}

/// A field without index, name and value shorter than 127 bytes each.
pub fn field(name: &str, value: &str) -> Vec<u8> {
    let mut bytes = vec![0];
    for string in [name, value] {
        assert!(string.len() < 127, "its length is one byte");
        bytes.push(string.len() as u8);
        bytes.extend(string.bytes());
    }
    bytes
}

/// The header of a reply of status 200 with these fields.
pub fn head_with(stream: u32, fields: &[u8]) -> Vec<u8> {
    let block = [&status_field(200), fields].concat();
    frame(kind::HEADERS, flag::END_HEADERS, stream, &block)
}

/// A part of a body, or all of it.
pub fn data(stream: u32, flags: u8, body: &[u8]) -> Vec<u8> {
    frame(kind::DATA, flags, stream, body)
}

/// A good reply.
pub fn reply(stream: u32, body: &[u8]) -> Vec<u8> {
    [head(stream, 200), data(stream, flag::END_STREAM, body)].concat()
}

/// A header block of `frames` CONTINUATION frames of `bytes` each, which does not end.
pub fn endless_header(stream: u32, frames: usize, bytes: usize) -> Vec<u8> {
    let mut all = frame(kind::HEADERS, flag::NONE, stream, &status_field(200));
    let part = frame(kind::CONTINUATION, flag::NONE, stream, &vec![0; bytes]);
    (0..frames).for_each(|_| all.extend(&part));
    all
}

/// A reply whose header has these many fields of 4,000 bytes, in a block of little more than one:
/// the first is put into the table, the others refer to it. RFC 7541 §6.1, §6.2.1
pub fn long_header(stream: u32, fields: usize) -> Vec<u8> {
    // `x`, and 3,900 bytes: 127 + (0x3d + 0x1d x 128).
    let mut block = [&status_field(200), &b"\x40\x01x\x7f\xbd\x1d"[..]].concat();
    block.extend([b'v'; 127 + 0x3d + 0x1d * 128]);
    block.extend(std::iter::repeat_n(0x80 + 62, fields));
    let head = frame(kind::HEADERS, flag::END_HEADERS | flag::END_STREAM, stream, &block);
    assert!(block.len() < 16_384, "it is one frame");
    head
}
