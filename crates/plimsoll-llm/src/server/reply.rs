//! Replies that are no stream.

use std::io::Write as _;

use super::refusal::{Refusal, Status};

/// A reply whose length is known.
pub(super) struct Whole<'a> {
    pub(super) status: Status,
    pub(super) content_type: &'static str,
    pub(super) body: &'a [u8],
}

impl<'a> Whole<'a> {
    pub(super) fn json(body: &'a [u8]) -> Self {
        Self { status: Status::Ok, content_type: "application/json", body }
    }

    pub(super) fn text(body: &'a str) -> Self {
        let content_type = "text/plain; version=0.0.4; charset=utf-8";
        Self { status: Status::Ok, content_type, body: body.as_bytes() }
    }
}

/// Writes head and body.
pub(super) fn write_whole(out: &mut Vec<u8>, whole: Whole<'_>) {
    let Whole { status, content_type, body } = whole;
    let (line, length, version) = (status.line(), body.len(), env!("CARGO_PKG_VERSION"));
    let _ = write!(
        out,
        "HTTP/1.1 {line}\r\nserver: plimsoll/{version}\r\ncontent-type: {content_type}\r\n\
         content-length: {length}\r\n\r\n"
    );
    out.extend_from_slice(body);
}

/// Writes why a request is not served.
pub(super) fn write_refusal(out: &mut Vec<u8>, refusal: &Refusal) {
    let body = refusal.to_json();
    write_whole(out, Whole { status: refusal.status, ..Whole::json(body.as_bytes()) });
}
