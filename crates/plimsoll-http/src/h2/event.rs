//! What happens on a connection, as its session is told.

use super::fields::HeaderError;
use super::frame::Code;

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
    /// The server has ended the stream.
    Reset(Tag, Code),
    /// The reply is none; the stream was ended.
    Wrong(Tag, Wrong),
    /// The server takes no more streams: see [`take_unprocessed`](super::connection::Connection::take_unprocessed).
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

/// What the server's GOAWAY says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GoingAway {
    /// Streams above it were not processed.
    pub last_stream: u32,
    /// Why.
    pub code: Code,
}
