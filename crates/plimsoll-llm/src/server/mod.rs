//! The reference server of language models: it has no model, but the timing of one by a known law,
//! so that a client's figures can be compared with the truth.
//!
//! One thread serves everything: HTTP/1.1, the law in virtual time, and the chunks at their
//! instants. Reading and writing are ours, because a runtime's timers would be late and a body
//! behind a channel would cost more than the chunk.
//!
//! | module | content |
//! | --- | --- |
//! | [`law`] | how long everything takes, without a clock |
//! | `serving` | connections, arrivals, tokens at their instants |
//! | `connection` | a client; [`plimsoll_servers::web`] has its bytes and requests |
//! | `routes`, `request` | what a request gets; the server's own figures |
//! | `tokens` | what a token is; the words of answers |
//! | `answer`, `reply` | an answer as a stream or in one; why a request is refused |
//! | [`llama`] | `managed:llama`, a real server |
//! | `log` | what happened, for checking a client |

mod answer;
mod connection;
pub mod law;
pub mod llama;
mod log;
mod reply;
mod request;
mod routes;
mod serving;
mod tokens;

use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;

use plimsoll_servers::timed::{self, Clients};
use plimsoll_servers::{ServerError, Stop};

use law::{First, LawSpec};
use log::Log;
use plimsoll_model::units::Nanos;
use serving::Serving;

/// A server that listens and does not serve yet.
pub struct LlmServer {
    listener: TcpListener,
    address: SocketAddr,
    config: LlmConfig,
}

impl LlmServer {
    /// Listens. Opens the log now, so that an unwritable one fails early.
    pub fn bind(config: &LlmConfig) -> Result<Self, ServerError> {
        let (listener, address) = timed::bind(config.listen, config.log.as_deref())?;
        // Every accepted request has room if no other is present.
        let context_tokens = u64::from(config.context_tokens).min(config.law.kv_tokens()) as u32;
        Ok(Self { listener, address, config: LlmConfig { context_tokens, ..config.clone() } })
    }

    /// Where it listens, with the port the system chose.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// `http://ADDRESS:PORT/`.
    pub fn url(&self) -> String {
        format!("http://{}/", self.address)
    }

    /// Serves on the calling thread until `stop` is requested; what is in progress then is dropped.
    /// Writes the log, and returns how late chunks were handed to the kernel, if there were any.
    pub fn serve_until(self, stop: &Stop) -> Result<Option<String>, ServerError> {
        let Self { listener, config, .. } = self;
        let clients = Clients::new(listener, &config.cores)?;
        let log = if config.log.is_some() { Log::new().with_rows() } else { Log::new() };
        let mut serving = Serving::new(&config, log);
        let left = clients.serve(&mut serving, stop)?;
        let log = serving.ended(left);
        if let Some(path) = config.log {
            let written = match &config.law {
                LawSpec::Alone(First::Queue(spec), _) => log.write_calibrated(&path, spec),
                law => log.write(&path, &format!("{law:?}")),
            };
            written.map_err(|source| ServerError::Log { path, source })?;
        }
        Ok(log.lateness_text())
    }
}

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
    /// The most usage that it reports.
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

/// The usage that answers report.
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

#[cfg(test)]
mod tests;
