//! What a server is told to be.

use std::net::SocketAddr;
use std::path::PathBuf;

use plimsoll_model::units::Nanos;

use super::law::LawSpec;

/// What to be, and where.
#[derive(Clone, Debug)]
pub struct LlmConfig {
    /// Address to listen on; port 0 takes a free one.
    pub listen: SocketAddr,
    /// How long everything takes.
    pub law: LawSpec,
    /// Name of the model.
    pub model: String,
    /// Most tokens of prompt and answer; no more than memory has room for in any case.
    pub context_tokens: u32,
    /// Tokens after which an answer ends by itself; `None`: never.
    pub ends_after_tokens: Option<u32>,
    /// Tokens in a chunk.
    pub tokens_per_chunk: u32,
    /// Tokens of reasoning at the start of each answer to a chat.
    pub reasoning_tokens: u32,
    /// The most usage that it tells.
    pub usage: UsageStyle,
    /// The connection ends after a streamed answer, although it was to be kept.
    pub closes_after_stream: bool,
    /// A comment into each stream that is silent for so long.
    pub ping: Option<Nanos>,
    /// What requests must bring.
    pub api_key: Option<String>,
    /// Where to write what happened to each request, at the end; the file is replaced.
    pub log: Option<PathBuf>,
    /// Cores for itself, on which it looks without sleeping; empty: anywhere, asleep until shortly
    /// before a chunk is due.
    pub cores: Vec<u32>,
}

/// Which usage is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum)]
pub enum UsageStyle {
    /// None, whatever is asked for
    None,
    /// Once, at the end of a stream
    Final,
    /// In every chunk too, where continuous_usage_stats is asked for
    Continuous,
}

impl LlmConfig {
    /// The model's name as JSON, which is as Prometheus quotes it.
    pub(super) fn model_json(&self) -> String {
        serde_json::Value::from(self.model.as_str()).to_string()
    }
}
