//! Servers of language models that answer in streams (OpenAI's chat completions and their kin):
//! suites, their answers, and servers to measure.
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`wire`] | streams of events, and the content of one, pure |
//! | [`answer`], [`reader`] | the figures of an answer; what reads them for a session of HTTP |
//! | `prompts` | the content of requests: words, lengths, salts, recorded loads |
//! | `requests` | the workload: the requests of a worker, and which comes next |
//! | `lengths` | how many tokens, drawn |
//! | `offers`, `learn`, `server_reply` | what a server accepts and counts, learnt before any load |
//! | `endpoint` | paths, and requests before any load |
//! | `host`, `server` | servers to measure, started and greeted |
//! | [`parameters`], `plan` | from a suite to running clients |

#![warn(unreachable_pub)]

pub mod answer;
mod endpoint;
#[cfg(feature = "host")]
pub mod host;
mod learn;
mod lengths;
mod offers;
pub mod parameters;
mod plan;
mod prompts;
pub mod reader;
mod requests;
#[cfg(feature = "host")]
pub mod server;
mod server_reply;
pub mod wire;

#[cfg(test)]
mod fault_tests;
#[cfg(test)]
mod server_tests;
#[cfg(test)]
mod test_client;

use plimsoll_protocol::Protocol;

/// The registration.
pub const PROTOCOL: Protocol = Protocol {
    name: "llm",
    title: "language model",
    suites: &[
        ("llm-chat", include_str!("../suites/llm-chat.toml")),
        ("llm-endpoints", include_str!("../suites/llm-endpoints.toml")),
        ("llm-shared-prefix", include_str!("../suites/llm-shared-prefix.toml")),
        ("llm-conversation", include_str!("../suites/llm-conversation.toml")),
        ("llm-trace", include_str!("../suites/llm-trace.toml")),
    ],
    schemes: &[("http", 80), ("https", 443)],
    read_workload: |table| parameters::read(table).map(Into::into),
    workload_schema: || schemars::schema_for!(parameters::LlmWorkload),
    plan: plan::plan,
    needed_file_set: None,
    load_files: Some(plan::LOAD_FILES),
    clean: None,
};
