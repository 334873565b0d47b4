//! The reference server of language models: it has no model, but the timing of one by a known law,
//! so that a client's figures can be held against what is true.
//!
//! One thread serves everything: HTTP/1.1, the law in virtual time, and the chunks at their
//! instants. Reading and writing are ours, because a runtime's timers would be late and a body
//! behind a channel would cost more than the chunk.
//!
//! | module | content |
//! | --- | --- |
//! | [`law`] | how long everything takes, without a clock |
//! | `serving` | the loop: connections, arrivals, tokens at their instants |
//! | `connection`, `incoming` | bytes of a client; its requests |
//! | `routes`, `request`, `refusal` | what a request gets, and why not |
//! | `tokens` | what a token is; the words of answers |
//! | `answer`, `reply` | an answer as a stream; other replies |
//! | [`llama`] | `managed:llama`, a real server |
//! | `log`, `metrics` | what happened, for judges and for scrapers |

mod answer;
mod connection;
mod incoming;
pub mod law;
pub mod llama;
mod log;
mod metrics;
mod refusal;
mod reply;
mod request;
mod routes;
mod serving;
mod tokens;

use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;

use plimsoll_model::units::Nanos;
use plimsoll_servers::clock::since_1970;
use plimsoll_servers::{ServerError, Stop, cores};

use answer::Manner;
use law::{First, Law, LawSpec};
use log::Log;
use request::Model;
pub use request::UsageStyle;
use routes::Routes;
use serving::{Serving, Waiting};

/// Connections that may wait for the kernel's accept queue to be emptied.
const BACKLOG: i32 = 4096;

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
    /// After so many tokens an answer ends by itself; `None`: never.
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

/// A server that listens and does not serve yet.
pub struct LlmServer {
    listener: TcpListener,
    address: SocketAddr,
    config: LlmConfig,
}

impl LlmServer {
    /// Listens. That the log cannot be written is found out now and not at the end.
    pub fn bind(config: &LlmConfig) -> Result<Self, ServerError> {
        if let Some(path) = &config.log {
            std::fs::File::create(path)
                .map_err(|source| ServerError::Log { path: path.clone(), source })?;
        }
        let error = |source| ServerError::Listen { address: config.listen, source };
        let listener = TcpListener::bind(config.listen).map_err(error)?;
        // std's backlog is too short for clients that come all at once.
        rustix::net::listen(&listener, BACKLOG).map_err(|e| error(e.into()))?;
        listener.set_nonblocking(true).map_err(error)?;
        let address = listener.local_addr().map_err(error)?;
        Ok(Self { listener, address, config: config.clone() })
    }

    /// Where it listens, with the port the system chose.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// `http://ADDRESS:PORT/`.
    pub fn url(&self) -> String {
        format!("http://{}/", self.address)
    }

    /// Serves on the calling thread until `stop` is requested; what is under way then is dropped.
    /// Writes the log, and says how late chunks were handed to the kernel, if there were any.
    pub fn serve_until(self, stop: &Stop) -> Result<Option<String>, ServerError> {
        let Self { listener, config, .. } = self;
        let pin = |source| ServerError::Pin { cores: cores::list(&config.cores), source };
        cores::pin_current_thread(&config.cores).map_err(pin)?;
        let waiting = if config.cores.is_empty() { Waiting::Sleep } else { Waiting::Spin };
        let ping_ns = config.ping.map(|ping| ping.0);
        let log = if config.log.is_some() { Log::new().with_rows() } else { Log::new() };
        let parts = (Law::new(&config.law), routes(&config));
        let serving = Serving::new(listener, parts, (waiting, ping_ns), log)
            .map_err(|source| ServerError::System { doing: "make an event queue", source })?;
        let log = serving.until(stop);
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

fn routes(config: &LlmConfig) -> Routes {
    let LlmConfig { law, context_tokens, ends_after_tokens, .. } = config;
    // Whatever is taken has room when nobody else is there.
    let context_tokens = u64::from(*context_tokens).min(law.kv_tokens()) as u32;
    Routes {
        model: Model {
            name: config.model.clone(),
            context_tokens,
            ends_after_tokens: *ends_after_tokens,
            has_prefix_cache: law.has_prefix_cache(),
        },
        manner: Manner {
            model: serde_json::Value::from(config.model.as_str()).to_string(),
            tokens_per_chunk: config.tokens_per_chunk,
            reasoning_tokens: config.reasoning_tokens,
            usage: config.usage,
            tells_cached: law.has_prefix_cache(),
            closes_after_stream: config.closes_after_stream,
        },
        kv_tokens: law.kv_tokens(),
        api_key: config.api_key.clone(),
        created_s: since_1970().as_secs(),
    }
}

#[cfg(test)]
mod tests;
