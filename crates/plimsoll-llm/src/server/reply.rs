//! Replies that are no stream: of a known length, and refusals as OpenAI's servers say them.

use std::io::Write as _;

/// Why a request is not served.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub(super) struct Refusal {
    /// HTTP's.
    pub(super) status: Status,
    kind: &'static str,
    message: String,
}

/// Status lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Status {
    Ok,
    BadRequest,
    Unauthorized,
    NotFound,
    MethodNotAllowed,
    LengthRequired,
    TooLarge,
    HeadTooLarge,
}

impl Status {
    pub(super) fn line(self) -> &'static str {
        match self {
            Self::Ok => "200 OK",
            Self::BadRequest => "400 Bad Request",
            Self::Unauthorized => "401 Unauthorized",
            Self::NotFound => "404 Not Found",
            Self::MethodNotAllowed => "405 Method Not Allowed",
            Self::LengthRequired => "411 Length Required",
            Self::TooLarge => "413 Content Too Large",
            Self::HeadTooLarge => "431 Request Header Fields Too Large",
        }
    }
}

impl Refusal {
    pub(super) fn new(status: Status, message: impl Into<String>) -> Self {
        Self { status, kind: "invalid_request_error", message: message.into() }
    }

    pub(super) fn bad(message: &str) -> Self {
        Self::new(Status::BadRequest, message)
    }

    pub(super) fn no_model(name: &str) -> Self {
        let message = format!("The model `{name}` does not exist.");
        Self { kind: "NotFoundError", ..Self::new(Status::NotFound, message) }
    }

    pub(super) fn no_key() -> Self {
        let message = "Incorrect API key provided: send Authorization: Bearer KEY";
        Self { kind: "authentication_error", ..Self::new(Status::Unauthorized, message) }
    }

    pub(super) fn too_long(context_tokens: u32, prompt_tokens: u32, asked: u64) -> Self {
        Self::new(
            Status::BadRequest,
            format!(
                "This model's maximum context length is {context_tokens} tokens. However, you \
                 requested {asked} output tokens and your prompt contains {prompt_tokens} tokens."
            ),
        )
    }

    /// OpenAI's JSON.
    pub(super) fn to_json(&self) -> String {
        let Self { kind, message, status } = self;
        let code: u16 = status.line()[..3].parse().unwrap_or_default();
        serde_json::json!({
            "error": { "message": message, "type": kind, "param": null, "code": code }
        })
        .to_string()
    }
}

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
