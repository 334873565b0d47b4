//! Application transactions: a protocol of our own, its clients and what they ask for.
//! `docs/app-protocol.md` is the specification.
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`wire`] | greetings, requests and replies as bytes, pure |
//! | [`op`], [`segment`], [`expected`] | one transaction, the data it may touch, the checksum it must have |
//! | [`script`] | which transaction is next |
//! | [`session`] | the state machine of one client |
//! | [`refusal`] | why a server lets nobody in, for people |
//! | [`prepare`] | errands: greet the server, fill the segments |
//! | [`parameters`], [`plan`], [`workload`] | from a suite to running clients |

#[cfg(test)]
mod document;
pub mod expected;
pub mod op;
pub mod parameters;
#[cfg(test)]
mod peer;
pub mod plan;
pub mod prepare;
pub mod refusal;
pub mod script;
pub mod segment;
pub mod session;
pub mod wire;
pub mod workload;

use crate::Protocol;

/// The registration.
pub const PROTOCOL: Protocol = Protocol {
    name: "app",
    schemes: &[("app", DEFAULT_PORT)],
    read_workload: parameters::read,
    workload_schema: || schemars::schema_for!(parameters::AppWorkload),
    plan: plan::plan,
    needed_file_set: None,
    clean: Some(prepare::clean_target),
};

/// Where a server listens when nothing else is said.
pub const DEFAULT_PORT: u16 = 7415;
