//! Which request gets what.

use std::fmt::Write as _;

use plimsoll_model::event::Times;
use plimsoll_servers::clock::since_1970;
use plimsoll_servers::web::{Head, Reply, Status};

use super::LlmConfig;
use super::law::Counts;
use super::reply::{JSON, Refusal};
use super::request::{self, GenerationRequest, Kind};

/// What the server knows for its replies.
pub(super) struct Routes {
    pub(super) config: LlmConfig,
    created_s: u64,
}

/// What a request gets.
pub(super) enum Routed {
    /// A reply.
    Reply(Reply<'static>),
    /// An answer of the model, when the law gives it.
    Answer(Box<GenerationRequest>),
}

/// The text at `/`.
const ABOUT: &str = "This is the reference server of language models of Plimsoll: no model, but the \
    timing of one by a known law.\n\nPOST /v1/chat/completions and /v1/completions, GET /v1/models, \
    /metrics, POST /tokenize. To measure it:\n\n  plimsoll run llm-chat http://HOST:PORT\n";

impl Routes {
    pub(super) fn new(config: &LlmConfig) -> Self {
        Self { config: config.clone(), created_s: since_1970().as_secs() }
    }

    pub(super) fn route(
        &self,
        head: &Head,
        body: &[u8],
        (counts, lateness): (Counts, &Times),
    ) -> Result<Routed, Refusal> {
        let (path, api_key) = (head.path.as_str(), &self.config.api_key);
        if path.starts_with("/v1/") && api_key.is_some() && head.key != *api_key {
            return Err(Refusal::no_key());
        }
        match (head.method.as_str(), path) {
            ("POST", "/v1/chat/completions") => self.answer(Kind::Chat, body),
            ("POST", "/v1/completions") => self.answer(Kind::Completion, body),
            ("POST", "/tokenize") => self.tokenize(body),
            ("GET", "/v1/models") => Ok(json(&self.models())),
            ("GET", "/metrics") => Ok(text(metrics(&self.config, counts, lateness))),
            ("GET", "/health") => Ok(text("")),
            ("GET", "/version") => {
                Ok(json(&serde_json::json!({ "version": env!("CARGO_PKG_VERSION") })))
            }
            ("GET", "/") => Ok(text(ABOUT)),
            (_, "/v1/chat/completions" | "/v1/completions" | "/tokenize" | "/v1/models") => {
                Err(Refusal::new(Status::MethodNotAllowed, "Method Not Allowed"))
            }
            _ => Err(Refusal::new(Status::NotFound, "Not Found")),
        }
    }

    fn answer(&self, kind: Kind, body: &[u8]) -> Result<Routed, Refusal> {
        Ok(Routed::Answer(Box::new(request::read(kind, body, &self.config)?)))
    }

    /// In vLLM's shape, or in llama.cpp's where the request is.
    fn tokenize(&self, body: &[u8]) -> Result<Routed, Refusal> {
        let (tokens, has_count) = request::read_tokenize(body, &self.config)?;
        Ok(match has_count {
            false => json(&serde_json::json!({ "tokens": tokens })),
            true => json(&serde_json::json!({
                "count": tokens.len(),
                "max_model_len": self.config.context_tokens,
                "tokens": tokens,
            })),
        })
    }

    fn models(&self) -> serde_json::Value {
        serde_json::json!({
            "object": "list",
            "data": [{
                "id": self.config.model,
                "object": "model",
                "created": self.created_s,
                "owned_by": "plimsoll",
                "max_model_len": self.config.context_tokens,
            }]
        })
    }
}

/// The server's own figures in Prometheus' text format, under vLLM's names where it has the same.
fn metrics(config: &LlmConfig, counts: Counts, lateness: &Times) -> String {
    let Counts { running, waiting, reserved_tokens, preemptions, .. } = counts;
    let Counts { prompt_tokens, generation_tokens, prefix_queries, prefix_hits, .. } = counts;
    let kv_usage = reserved_tokens as f64 / config.law.kv_tokens().max(1) as f64;
    let (mut text, model) = (String::new(), config.model_json());
    for (name, kind, help, value) in [
        ("vllm:num_requests_running", "gauge", "Requests in the batch.", running as f64),
        ("vllm:num_requests_waiting", "gauge", "Requests that wait.", waiting as f64),
        ("vllm:kv_cache_usage_perc", "gauge", "Share of KV tokens held; 1 is all.", kv_usage),
        ("vllm:num_preemptions_total", "counter", "Preemptions.", preemptions as f64),
        ("vllm:prompt_tokens_total", "counter", "Prompt tokens.", prompt_tokens as f64),
        ("vllm:generation_tokens_total", "counter", "Output tokens.", generation_tokens as f64),
        (
            "vllm:prefix_cache_queries_total",
            "counter",
            "Prompt tokens looked up.",
            prefix_queries as f64,
        ),
        ("vllm:prefix_cache_hits_total", "counter", "Those found.", prefix_hits as f64),
    ] {
        let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
        let _ = writeln!(text, "{name}{{model_name={model}}} {value}");
    }
    write_lateness(lateness, &mut text);
    text
}

fn write_lateness(lateness: &Times, text: &mut String) {
    const NAME: &str = "plimsoll:chunk_lateness_seconds";
    let _ = writeln!(
        text,
        "# HELP {NAME} From a chunk's instant by the law until the kernel had it.\n\
             # TYPE {NAME} summary"
    );
    for quantile in [0.5, 0.99, 1.0] {
        let late_s = lateness.value_at_quantile(quantile) as f64 / 1e9;
        let _ = writeln!(text, "{NAME}{{quantile=\"{quantile}\"}} {late_s}");
    }
    let _ = writeln!(text, "{NAME}_count {}", lateness.len());
}

fn json(value: &serde_json::Value) -> Routed {
    Routed::Reply(Reply::new(Status::Ok, JSON, value.to_string().into_bytes()))
}

fn text(text: impl Into<Vec<u8>>) -> Routed {
    Routed::Reply(Reply::text(Status::Ok, text))
}
