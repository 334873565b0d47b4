//! HTTP/1.1 on the wire, pure: requests as bytes, replies from bytes. RFC 9112.

pub mod head;
pub mod reply;
pub mod request;
pub mod template;

use plimsoll_protocol::TrailingBytes;

/// Why bytes from a server are not an HTTP reply this client accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// The first bytes are not `HTTP/1.0` or `HTTP/1.1`.
    #[error("the reply does not begin with HTTP/1.0 or HTTP/1.1")]
    NotHttp,
    /// They are a frame of HTTP/2.
    #[error("an answer in HTTP/2: the server speaks no HTTP/1.1")]
    Http2,
    /// No end of the header within [`head::HEAD_BYTES_MAX`].
    #[error("the reply's header is longer than {} bytes", head::HEAD_BYTES_MAX)]
    HeadTooLong,
    /// A header line that RFC 9112 does not allow.
    #[error("the reply's header is wrong: {0}")]
    Head(httparse::Error),
    /// A status code below 100.
    #[error("the status code is below 100")]
    StatusCode,
    /// `Content-Length` is not a number that fits 64 bits.
    #[error("Content-Length is not a number of bytes")]
    ContentLength,
    /// `Content-Length` or `Transfer-Encoding` occurs twice, or both occur.
    #[error("the reply says its length twice (Content-Length, Transfer-Encoding)")]
    Framing,
    /// A transfer coding this client cannot read.
    #[error("the Transfer-Encoding is not \"chunked\"")]
    TransferEncoding,
    /// A chunk without a proper size line.
    #[error("a chunk has no proper size line")]
    ChunkSize,
    /// A chunk without CR LF at its end.
    #[error("a chunk does not end with CR LF")]
    ChunkEnd,
    /// Trailer fields without end.
    #[error("the trailer fields have no end")]
    TrailerTooLong,
    /// `101 Switching Protocols` although no upgrade was requested.
    #[error("the server switched protocols without being asked")]
    Upgrade,
    /// Bytes after the end of the reply.
    #[error("{}", TrailingBytes(*bytes))]
    TrailingBytes {
        /// How many of them came with its end.
        bytes: usize,
    },
}
