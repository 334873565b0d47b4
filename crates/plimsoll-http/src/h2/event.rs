//! Events of a connection, for its session, and errors of a server that make it unusable. RFC 9113
//! §5.4.1

use super::fields::{GrpcCode, HeaderError, LIST_BYTES_MAX};
use super::frame::{Code, PAYLOAD_BYTES_MAX};
use super::hpack::HpackError;

/// What the session calls a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tag(pub u32);

/// What has happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event<'i> {
    /// The server's settings have come, for the first time or again.
    Settings,
    /// A window has opened.
    Window,
    /// The header of a reply, but for those of status 1xx.
    Head {
        /// Its stream.
        tag: Tag,
        /// 200 or above.
        status: u16,
        /// `content-length`.
        length: Option<u64>,
        /// There is no body, and the stream is closed.
        ends: bool,
    },
    /// Some of its body.
    Data {
        /// Its stream.
        tag: Tag,
        /// May be empty at the end.
        payload: &'i [u8],
        /// The reply is whole, and the stream is closed.
        ends: bool,
    },
    /// The reply is whole, and its trailers report that the call failed.
    CallFailed(Tag, GrpcCode),
    /// The server has ended the stream.
    Reset(Tag, Code),
    /// The reply is malformed; the stream was ended.
    Wrong(Tag, Wrong),
    /// The server takes no more streams: see
    /// [`take_unprocessed`](super::connection::Connection::take_unprocessed).
    GoAway,
}

/// What is wrong with a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Wrong {
    /// Its header, or its trailer.
    #[error(transparent)]
    Header(HeaderError),
    /// `101 Switching Protocols`, which HTTP/2 does not have.
    #[error("the server switched protocols without being asked")]
    Upgrade,
    /// The stream ended behind a header of status 1xx.
    #[error("the reply ended behind an interim header")]
    Interim,
    /// A second header that does not end the stream.
    #[error("a second header within the reply")]
    Trailer,
    /// A body before the header.
    #[error("a body without a header")]
    NoHead,
}

/// The content of the server's GOAWAY.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GoingAway {
    /// Streams above it were not processed.
    pub last_stream: u32,
    /// Why.
    pub code: Code,
}

/// Why a connection is given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// The first bytes are those of HTTP/1.
    #[error("the server answers in HTTP/1")]
    Http1,
    /// The first frame is not SETTINGS.
    #[error("the server's first bytes are not HTTP/2 settings")]
    NotHttp2,
    /// A frame that is longer than the client allows.
    #[error("a frame of {bytes} bytes; the client allows {PAYLOAD_BYTES_MAX}")]
    FrameTooLong {
        /// Of its payload.
        bytes: u32,
    },
    /// A frame of this type has an invalid length.
    #[error("a {} frame of a wrong length", name(*.0))]
    FrameLength(u8),
    /// A frame of this type is on a stream, or on none, against the standard.
    #[error("a {} frame on a wrong stream", name(*.0))]
    FrameStream(u8),
    /// More padding than payload.
    #[error("a frame with more padding than payload")]
    Padding,
    /// Another frame within a header block, or CONTINUATION without one.
    #[error("a header block that another frame interrupts, or one without a start")]
    Continuation,
    /// A header block that does not end.
    #[error("a header block that does not end within {LIST_BYTES_MAX} bytes")]
    BlockTooLong,
    /// A header block that cannot be decoded.
    #[error("a header block cannot be decoded: {0}")]
    Block(HpackError),
    /// A push, although none was allowed.
    #[error("a push, which the client does not allow")]
    Push,
    /// A value that a setting may not have.
    #[error("a value that setting {0} may not have")]
    Setting(u16),
    /// A window that grows by nothing, or beyond all limits.
    #[error("a WINDOW_UPDATE of a wrong size")]
    WindowUpdate,
    /// More bytes than the window has.
    #[error("more data than the client's window allows")]
    Window,
    /// Frames without end that bring no reply further.
    #[error("frames without end that bring no reply")]
    Flood,
}

impl Fault {
    /// The error code sent to the server.
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
