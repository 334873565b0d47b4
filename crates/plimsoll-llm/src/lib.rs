//! Servers of language models that answer in streams (OpenAI's chat completions and their kin):
//! suites, what their answers say, and servers to measure.

#![warn(unreachable_pub)]

#[cfg(feature = "host")]
pub mod host;
#[cfg(feature = "host")]
pub mod server;

use plimsoll_protocol::{PlanError, Protocol};

/// Servers of language models.
pub const PROTOCOL: Protocol = Protocol {
    name: "llm",
    title: "language model",
    suites: &[],
    schemes: &[("http", 80), ("https", 443)],
    read_workload: |table| Err(table.error_at("protocol", "there are no suites yet")),
    workload_schema: || schemars::schema_for!(()),
    plan: |_| Err(PlanError::NoTarget),
    needed_file_set: None,
    load_files: None,
    clean: None,
};
