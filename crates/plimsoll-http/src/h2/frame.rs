//! Frames as bytes. RFC 9113 §4.1, §6, §7.

use std::fmt;

/// The first bytes that a client sends. RFC 9113 §3.4
pub const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// Bytes of a frame's header.
pub const HEADER_BYTES: usize = 9;
/// Longest payload that either side accepts by default; we keep the default.
pub const PAYLOAD_BYTES_MAX: u32 = 16_384;
/// The first bit of stream numbers, increments and other 31-bit fields is reserved.
pub const NUMBER_MAX: u32 = 0x7fff_ffff;
/// Window of a connection at its start, and of a stream unless the settings change it.
pub const WINDOW_BYTES: u32 = 65_535;

/// Types of frames.
pub mod kind {
    /// RFC 9113 §6.1
    pub const DATA: u8 = 0;
    /// RFC 9113 §6.2
    pub const HEADERS: u8 = 1;
    /// RFC 9113 §6.3
    pub const PRIORITY: u8 = 2;
    /// RFC 9113 §6.4
    pub const RST_STREAM: u8 = 3;
    /// RFC 9113 §6.5
    pub const SETTINGS: u8 = 4;
    /// RFC 9113 §6.6
    pub const PUSH_PROMISE: u8 = 5;
    /// RFC 9113 §6.7
    pub const PING: u8 = 6;
    /// RFC 9113 §6.8
    pub const GOAWAY: u8 = 7;
    /// RFC 9113 §6.9
    pub const WINDOW_UPDATE: u8 = 8;
    /// RFC 9113 §6.10
    pub const CONTINUATION: u8 = 9;
}

/// Flags of frames.
pub mod flag {
    /// Of SETTINGS and PING.
    pub const ACK: u8 = 1;
    /// Of DATA and HEADERS.
    pub const END_STREAM: u8 = 1;
    /// Of HEADERS and CONTINUATION.
    pub const END_HEADERS: u8 = 4;
    /// Of DATA and HEADERS.
    pub const PADDED: u8 = 8;
    /// Of HEADERS.
    pub const PRIORITY: u8 = 0x20;
}

/// Identifiers of settings. RFC 9113 §6.5.2
pub mod setting {
    /// Largest table of the peer's decoder.
    pub const HEADER_TABLE_SIZE: u16 = 1;
    /// Whether a server may push.
    pub const ENABLE_PUSH: u16 = 2;
    /// Streams that may be open at a time.
    pub const MAX_CONCURRENT_STREAMS: u16 = 3;
    /// Window of a new stream.
    pub const INITIAL_WINDOW_SIZE: u16 = 4;
    /// Longest payload.
    pub const MAX_FRAME_SIZE: u16 = 5;
    /// Longest list of header fields.
    pub const MAX_HEADER_LIST_SIZE: u16 = 6;
}

/// Why a stream or a connection ends. RFC 9113 §7
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Code(pub u32);

impl Code {
    /// Nothing is wrong.
    pub const NO_ERROR: Self = Self(0);
    /// The peer broke a rule that has no code of its own.
    pub const PROTOCOL_ERROR: Self = Self(1);
    /// More bytes than the window has.
    pub const FLOW_CONTROL_ERROR: Self = Self(3);
    /// A frame of a wrong length.
    pub const FRAME_SIZE_ERROR: Self = Self(6);
    /// The request was not processed.
    pub const REFUSED_STREAM: Self = Self(7);
    /// The reply is no longer needed.
    pub const CANCEL: Self = Self(8);
    /// The header block cannot be decoded.
    pub const COMPRESSION_ERROR: Self = Self(9);
    /// Too much of something.
    pub const ENHANCE_YOUR_CALM: Self = Self(11);

    const NAMES: [&str; 14] = [
        "NO_ERROR",
        "PROTOCOL_ERROR",
        "INTERNAL_ERROR",
        "FLOW_CONTROL_ERROR",
        "SETTINGS_TIMEOUT",
        "STREAM_CLOSED",
        "FRAME_SIZE_ERROR",
        "REFUSED_STREAM",
        "CANCEL",
        "COMPRESSION_ERROR",
        "CONNECT_ERROR",
        "ENHANCE_YOUR_CALM",
        "INADEQUATE_SECURITY",
        "HTTP_1_1_REQUIRED",
    ];
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match Self::NAMES.get(self.0 as usize) {
            Some(name) => f.write_str(name),
            None => write!(f, "error code {}", self.0),
        }
    }
}

/// Header of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameHeader {
    /// Bytes of its payload.
    pub length: u32,
    /// One of [`kind`], or unknown.
    pub kind: u8,
    /// Some of [`flag`].
    pub flags: u8,
    /// Number of its stream; 0 is the connection.
    pub stream: u32,
}

impl FrameHeader {
    /// From the wire.
    pub const fn read(bytes: [u8; HEADER_BYTES]) -> Self {
        let [a, b, c, kind, flags, stream @ ..] = bytes;
        let length = u32::from_be_bytes([0, a, b, c]);
        Self { length, kind, flags, stream: u32::from_be_bytes(stream) & NUMBER_MAX }
    }

    /// To the wire.
    pub const fn to_bytes(self) -> [u8; HEADER_BYTES] {
        let [_, a, b, c] = self.length.to_be_bytes();
        let [s, t, u, v] = self.stream.to_be_bytes();
        [a, b, c, self.kind, self.flags, s, t, u, v]
    }

    /// One of the flags is set.
    pub const fn has(self, flag: u8) -> bool {
        self.flags & flag != 0
    }
}

/// Appends a frame. Its payload is at most [`PAYLOAD_BYTES_MAX`] long, or as the peer allows.
pub fn write(kind: u8, flags: u8, stream: u32, payload: &[u8], out: &mut Vec<u8>) {
    let header = FrameHeader { length: payload.len() as u32, kind, flags, stream };
    out.extend_from_slice(&header.to_bytes());
    out.extend_from_slice(payload);
}

/// Appends WINDOW_UPDATE.
pub fn write_window_update(stream: u32, increment: u32, out: &mut Vec<u8>) {
    write(kind::WINDOW_UPDATE, 0, stream, &increment.to_be_bytes(), out);
}

/// Appends RST_STREAM.
pub fn write_reset(stream: u32, code: Code, out: &mut Vec<u8>) {
    write(kind::RST_STREAM, 0, stream, &code.0.to_be_bytes(), out);
}

/// Appends GOAWAY of a client, whose server opened no stream.
pub fn write_goaway(code: Code, out: &mut Vec<u8>) {
    let [a, b, c, d] = code.0.to_be_bytes();
    write(kind::GOAWAY, 0, 0, &[0, 0, 0, 0, a, b, c, d], out);
}

/// Appends SETTINGS.
pub fn write_settings(settings: &[(u16, u32)], out: &mut Vec<u8>) {
    let header = FrameHeader {
        length: settings.len() as u32 * 6,
        kind: kind::SETTINGS,
        flags: 0,
        stream: 0,
    };
    out.extend_from_slice(&header.to_bytes());
    for (name, value) in settings {
        out.extend_from_slice(&name.to_be_bytes());
        out.extend_from_slice(&value.to_be_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_these_bytes() {
        let mut out = Vec::new();
        write_settings(&[(setting::ENABLE_PUSH, 0)], &mut out);
        assert_eq!(out, [0, 0, 6, 4, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0]);
        out.clear();
        write_reset(3, Code::CANCEL, &mut out);
        assert_eq!(out, [0, 0, 4, 3, 0, 0, 0, 0, 3, 0, 0, 0, 8]);
        let header = FrameHeader { length: 0x01_02_03, kind: 9, flags: 4, stream: NUMBER_MAX };
        assert_eq!(FrameHeader::read(header.to_bytes()), header);
        let mut reserved = header.to_bytes();
        reserved[5] |= 0x80;
        assert_eq!(FrameHeader::read(reserved), header, "the reserved bit is ignored");
    }

    #[test]
    fn codes_are_named_as_the_standard_names_them() {
        assert_eq!(Code::ENHANCE_YOUR_CALM.to_string(), "ENHANCE_YOUR_CALM");
        assert_eq!(Code::REFUSED_STREAM.to_string(), "REFUSED_STREAM");
        assert_eq!(Code(99).to_string(), "error code 99");
    }
}
