//! Application transactions: a protocol of our own, its clients and what they ask for.
//! `docs/app-protocol.md` is the specification.
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`wire`] | greetings, requests and replies as bytes, pure |
//! | [`op`] | one transaction, the data it may touch |
//! | [`script`] | which transaction is next |
//! | [`session`] | the state machine of one client, and what it must be answered |
//! | `refusal` | why a server refuses clients, as text |
//! | `prepare` | set-up: greet the server, fill the segments |
//! | [`parameters`], `plan` | from a suite to running clients |

#![warn(unreachable_pub)]

#[cfg(feature = "host")]
pub mod host;
pub mod op;
pub mod parameters;
#[cfg(test)]
mod peer;
mod plan;
mod prepare;
mod refusal;
pub mod script;
#[cfg(feature = "host")]
pub mod server;
pub mod session;
pub mod wire;

use plimsoll_protocol::Protocol;

/// The registration.
pub const PROTOCOL: Protocol = Protocol {
    name: "app",
    title: "transactions",
    suites: &[
        ("transactions", include_str!("../suites/transactions.toml")),
        ("transactions-processor", include_str!("../suites/transactions-processor.toml")),
        ("transactions-disk", include_str!("../suites/transactions-disk.toml")),
        ("transactions-network", include_str!("../suites/transactions-network.toml")),
    ],
    schemes: &[("app", DEFAULT_PORT)],
    read_workload: |table| parameters::read(table).map(Into::into),
    workload_schema: || schemars::schema_for!(parameters::AppWorkload),
    plan: plan::plan,
    needed_file_set: None,
    load_files: None,
    clean: Some(prepare::clean_target),
};

/// Where a server listens by default.
pub const DEFAULT_PORT: u16 = 7415;
