//! Why a request is refused, in the format of OpenAI's servers.

use plimsoll_servers::web::{BadRequest, Reply, Status};

/// Content type of replies.
pub(super) const JSON: &str = "application/json";

/// Why a request is not served.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub(super) struct Refusal {
    /// HTTP's.
    pub(super) status: Status,
    kind: &'static str,
    message: String,
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

    pub(super) fn too_long(context_tokens: u32, prompt_tokens: u32, requested: u64) -> Self {
        Self::new(
            Status::BadRequest,
            format!(
                "This model's maximum context length is {context_tokens} tokens. However, you \
                 requested {requested} output tokens and your prompt contains {prompt_tokens} tokens."
            ),
        )
    }

    /// OpenAI's JSON.
    pub(super) fn reply(&self) -> Reply<'static> {
        let Self { kind, message, status } = self;
        let code: u16 = status.line()[..3].parse().unwrap_or_default();
        let json = serde_json::json!({
            "error": { "message": message, "type": kind, "param": null, "code": code }
        });
        Reply::new(*status, JSON, json.to_string().into_bytes())
    }
}

impl From<BadRequest> for Refusal {
    fn from(BadRequest { status, message }: BadRequest) -> Self {
        Self::new(status, message)
    }
}
