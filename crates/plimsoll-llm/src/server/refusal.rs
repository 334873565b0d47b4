//! Requests that are not served, as OpenAI's servers say it.

use std::fmt;

/// Why not.
#[derive(Clone, Debug, PartialEq, Eq)]
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

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}
