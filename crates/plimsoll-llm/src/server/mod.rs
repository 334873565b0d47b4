//! The reference server of language models: it has no model, but the timing of one by a known law,
//! so that a client's figures can be held against what is true.
//!
//! One thread serves everything: HTTP/1.1, the law in virtual time, and the chunks at their
//! instants. Reading and writing are ours, because a runtime's timers would be late and a body
//! behind a channel would cost more than the chunk.
//!
//! | module | content |
//! | --- | --- |
//! | `config` | its settings |
//! | [`law`] | how long everything takes, without a clock |
//! | `serving` | connections, arrivals, tokens at their instants |
//! | `connection`, `incoming` | bytes of a client; its requests |
//! | `routes`, `request` | what a request gets; the server's own figures |
//! | `tokens` | what a token is; the words of answers |
//! | `answer`, `reply` | an answer as a stream; other replies, and why a request is refused |
//! | [`llama`] | `managed:llama`, a real server |
//! | `log` | what happened, for whoever judges a client |

mod answer;
mod config;
mod connection;
mod incoming;
pub mod law;
pub mod llama;
mod log;
mod reply;
mod request;
mod routes;
mod serving;
mod tokens;

use std::net::{SocketAddr, TcpListener};

use plimsoll_servers::timed::{self, Clients};
use plimsoll_servers::{ServerError, Stop};

pub use config::{LlmConfig, UsageStyle};
use law::{First, LawSpec};
use log::Log;
use serving::Serving;

/// A server that listens and does not serve yet.
pub struct LlmServer {
    listener: TcpListener,
    address: SocketAddr,
    config: LlmConfig,
}

impl LlmServer {
    /// Listens. That the log cannot be written is found out now and not at the end.
    pub fn bind(config: &LlmConfig) -> Result<Self, ServerError> {
        let (listener, address) = timed::bind(config.listen, config.log.as_deref())?;
        // Whatever is taken has room when nobody else is there.
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

    /// Serves on the calling thread until `stop` is requested; what is under way then is dropped.
    /// Writes the log, and says how late chunks were handed to the kernel, if there were any.
    pub fn serve_until(self, stop: &Stop) -> Result<Option<String>, ServerError> {
        let Self { listener, config, .. } = self;
        let clients = Clients::new(listener, &config.cores)?;
        let log = if config.log.is_some() { Log::new().with_rows() } else { Log::new() };
        let mut serving = Serving::new(&config, log);
        let left = clients.serve(&mut serving, stop);
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

#[cfg(test)]
mod tests;
