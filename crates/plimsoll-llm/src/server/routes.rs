//! Which request gets what.

use plimsoll_model::event::Times;

use super::answer::Manner;
use super::incoming::Head;
use super::law::Counts;
use super::metrics::Figures;
use super::refusal::{Refusal, Status};
use super::reply::{Whole, write_whole};
use super::request::{self, Kind, Model, Wanted};

/// What the server knows for its replies.
pub(super) struct Routes {
    pub(super) model: Model,
    pub(super) manner: Manner,
    pub(super) kv_tokens: u64,
    /// What requests below `/v1` must bring, where they must.
    pub(super) api_key: Option<String>,
    pub(super) created_s: u64,
}

/// What a request gets.
pub(super) enum Routed {
    /// A reply, head and body.
    Reply(Vec<u8>),
    /// An answer of the model, when the law gives it.
    Answer(Box<Wanted>),
}

/// What `/` says.
const ABOUT: &str = "This is the reference server of language models of Plimsoll: no model, but the \
    timing of one by a known law.\n\nPOST /v1/chat/completions and /v1/completions, GET /v1/models, \
    /metrics, POST /tokenize. To measure it:\n\n  plimsoll run llm-chat http://HOST:PORT\n";

impl Routes {
    pub(super) fn route(
        &self,
        head: &Head,
        body: &[u8],
        state: (Counts, &Times),
    ) -> Result<Routed, Refusal> {
        let path = head.path.as_str();
        if path.starts_with("/v1/") && self.api_key.is_some() && head.key != self.api_key {
            return Err(Refusal::no_key());
        }
        match (head.method.as_str(), path) {
            ("POST", "/v1/chat/completions") => self.answer(Kind::Chat, body),
            ("POST", "/v1/completions") => self.answer(Kind::Completion, body),
            ("POST", "/tokenize") => self.tokenize(body),
            ("GET", "/v1/models") => Ok(json(&self.models())),
            ("GET", "/metrics") => Ok(reply(Whole::text(&self.metrics(state)))),
            ("GET", "/health") => Ok(reply(Whole::text(""))),
            ("GET", "/version") => {
                Ok(json(&serde_json::json!({ "version": env!("CARGO_PKG_VERSION") })))
            }
            ("GET", "/") => Ok(reply(Whole::text(ABOUT))),
            (_, "/v1/chat/completions" | "/v1/completions" | "/tokenize" | "/v1/models") => {
                Err(Refusal::new(Status::MethodNotAllowed, "Method Not Allowed"))
            }
            _ => Err(Refusal::new(Status::NotFound, "Not Found")),
        }
    }

    fn answer(&self, kind: Kind, body: &[u8]) -> Result<Routed, Refusal> {
        Ok(Routed::Answer(Box::new(request::read(kind, body, &self.model)?)))
    }

    /// In vLLM's shape, or in llama.cpp's where the request is.
    fn tokenize(&self, body: &[u8]) -> Result<Routed, Refusal> {
        let (tokens, has_count) = request::read_tokenize(body, &self.model)?;
        Ok(match has_count {
            false => json(&serde_json::json!({ "tokens": tokens })),
            true => json(&serde_json::json!({
                "count": tokens.len(),
                "max_model_len": self.model.context_tokens,
                "tokens": tokens,
            })),
        })
    }

    fn models(&self) -> serde_json::Value {
        serde_json::json!({
            "object": "list",
            "data": [{
                "id": self.model.name,
                "object": "model",
                "created": self.created_s,
                "owned_by": "plimsoll",
                "max_model_len": self.model.context_tokens,
            }]
        })
    }

    fn metrics(&self, (counts, lateness): (Counts, &Times)) -> String {
        let (model, kv_tokens) = (self.manner.model.as_str(), self.kv_tokens);
        Figures { model, counts, kv_tokens, lateness }.text()
    }
}

fn json(value: &serde_json::Value) -> Routed {
    reply(Whole::json(value.to_string().as_bytes()))
}

fn reply(whole: Whole<'_>) -> Routed {
    let mut out = Vec::new();
    write_whole(&mut out, whole);
    Routed::Reply(out)
}
