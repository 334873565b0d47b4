//! HTTP/1.1 on the wire, pure: requests as bytes, replies from bytes. RFC 9112.

pub mod body;
pub mod head;
mod http2;
pub mod reply;
pub mod request;
pub mod template;

use std::fmt;

use plimsoll_protocol::SurplusBytes;

/// Why bytes from a server are not an HTTP reply this client accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Malformed {
    /// The first bytes are not `HTTP/1.0` or `HTTP/1.1`.
    NotHttp,
    /// They are a frame of HTTP/2.
    Http2,
    /// No end of the header within [`head::HEAD_BYTES_MAX`].
    HeadTooLong,
    /// A header line that RFC 9112 does not allow, obsolete line folding among them.
    Head(httparse::Error),
    /// A status code below 100.
    StatusCode,
    /// `Content-Length` is not a number that fits 64 bits.
    ContentLength,
    /// `Content-Length` or `Transfer-Encoding` occurs twice, or both occur.
    Framing,
    /// A transfer coding this client cannot read.
    TransferEncoding,
    /// A chunk without a proper size line.
    ChunkSize,
    /// A chunk without CR LF at its end.
    ChunkEnd,
    /// Trailer fields without end.
    TrailerTooLong,
    /// `101 Switching Protocols` although no upgrade was asked for.
    Upgrade,
    /// Bytes after the end of the reply.
    Surplus {
        /// How many of them came with its end.
        bytes: usize,
    },
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotHttp => f.write_str("the reply does not begin with HTTP/1.0 or HTTP/1.1"),
            Self::Http2 => f.write_str("an answer in HTTP/2: the server speaks no HTTP/1.1"),
            Self::HeadTooLong => {
                write!(f, "the reply's header is longer than {} bytes", head::HEAD_BYTES_MAX)
            }
            Self::Head(error) => write!(f, "the reply's header is wrong: {error}"),
            Self::StatusCode => f.write_str("the status code is below 100"),
            Self::ContentLength => f.write_str("Content-Length is not a number of bytes"),
            Self::Framing => {
                f.write_str("the reply says its length twice (Content-Length, Transfer-Encoding)")
            }
            Self::TransferEncoding => f.write_str("the Transfer-Encoding is not \"chunked\""),
            Self::ChunkSize => f.write_str("a chunk has no proper size line"),
            Self::ChunkEnd => f.write_str("a chunk does not end with CR LF"),
            Self::TrailerTooLong => f.write_str("the trailer fields have no end"),
            Self::Upgrade => f.write_str("the server switched protocols without being asked"),
            Self::Surplus { bytes } => SurplusBytes(*bytes).fmt(f),
        }
    }
}
