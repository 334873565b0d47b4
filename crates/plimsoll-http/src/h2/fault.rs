//! What a server can do wrong so that its connection is of no more use. RFC 9113 §5.4.1

use std::fmt;

use super::fields::LIST_BYTES_MAX;
use super::frame::{Code, PAYLOAD_BYTES_MAX};
use super::hpack::HpackError;

/// Why a connection is given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The first bytes are those of HTTP/1.
    Http1,
    /// The first frame is not SETTINGS.
    NotHttp2,
    /// A frame that is longer than the client allows.
    FrameTooLong {
        /// Of its payload.
        bytes: u32,
    },
    /// A frame of this type has a length that none of its type has.
    FrameLength(u8),
    /// A frame of this type is on a stream, or on none, where the standard says otherwise.
    FrameStream(u8),
    /// More padding than payload.
    Padding,
    /// Another frame within a header block, or CONTINUATION without one.
    Continuation,
    /// A header block that does not end.
    BlockTooLong,
    /// A header block that cannot be decoded.
    Block(HpackError),
    /// A push, although none was allowed.
    Push,
    /// A value that a setting may not have.
    Setting(u16),
    /// A window that grows by nothing, or beyond all limits.
    WindowUpdate,
    /// More bytes than the window has.
    Window,
    /// Frames without end that bring no reply further.
    Flood,
}

impl Fault {
    /// What the server is told.
    pub const fn code(self) -> Code {
        match self {
            Self::FrameTooLong { .. } | Self::FrameLength(_) => Code::FRAME_SIZE_ERROR,
            Self::Block(_) => Code::COMPRESSION_ERROR,
            Self::Window | Self::WindowUpdate => Code::FLOW_CONTROL_ERROR,
            Self::Flood | Self::BlockTooLong => Code::ENHANCE_YOUR_CALM,
            _ => Code::PROTOCOL_ERROR,
        }
    }
}

/// Names of frames, by their type.
const FRAMES: [&str; 10] = [
    "DATA",
    "HEADERS",
    "PRIORITY",
    "RST_STREAM",
    "SETTINGS",
    "PUSH_PROMISE",
    "PING",
    "GOAWAY",
    "WINDOW_UPDATE",
    "CONTINUATION",
];

fn name(kind: u8) -> &'static str {
    FRAMES.get(usize::from(kind)).copied().unwrap_or("unknown")
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Http1 => f.write_str("the server answers in HTTP/1"),
            Self::NotHttp2 => f.write_str("the server's first bytes are not HTTP/2 settings"),
            Self::FrameTooLong { bytes } => {
                write!(f, "a frame of {bytes} bytes; the client allows {PAYLOAD_BYTES_MAX}")
            }
            Self::FrameLength(kind) => write!(f, "a {} frame of a wrong length", name(kind)),
            Self::FrameStream(kind) => write!(f, "a {} frame on a wrong stream", name(kind)),
            Self::Padding => f.write_str("a frame with more padding than payload"),
            Self::Continuation => {
                f.write_str("a header block that another frame interrupts, or one without a start")
            }
            Self::BlockTooLong => {
                write!(f, "a header block that does not end within {LIST_BYTES_MAX} bytes")
            }
            Self::Block(why) => write!(f, "a header block cannot be decoded: {why}"),
            Self::Push => f.write_str("a push, which the client does not allow"),
            Self::Setting(which) => write!(f, "a value that setting {which} may not have"),
            Self::WindowUpdate => f.write_str("a WINDOW_UPDATE of a wrong size"),
            Self::Window => f.write_str("more data than the client's window allows"),
            Self::Flood => f.write_str("frames without end that bring no reply"),
        }
    }
}
