//! HTTP/1.1: the `web-static` and `web-url` suites.
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`wire`] | requests and replies as bytes, pure |
//! | [`session`] | the state machine of one client |
//! | [`tls`] | a byte filter around it |
//! | [`site`] | one server: its requests ready as bytes, what a good reply is |
//! | [`script`] | which op comes next |
//! | [`fileset`], [`prepare`] | the generated file set, in memory and on disk |
//! | [`headers`] | header fields of suites, and which of their values may be shown |
//! | [`urls`] | weighted lists of URLs |
//! | [`parameters`], [`plan`], [`workload`] | from a suite to running clients |

pub mod fileset;
mod flight;
pub mod headers;
pub mod parameters;
pub mod plan;
pub mod prepare;
pub mod script;
pub mod session;
pub mod site;
pub mod tls;
pub mod urls;
pub mod wire;
pub mod workload;

#[cfg(test)]
mod recorder;
#[cfg(test)]
mod session_tests;
#[cfg(test)]
mod tls_tests;

use crate::Protocol;

/// The registration.
pub const PROTOCOL: Protocol = Protocol {
    name: "http",
    schemes: &[("http", 80), ("https", 443)],
    read_workload: parameters::read,
    workload_schema: || schemars::schema_for!(parameters::HttpWorkload),
    plan: plan::plan,
    needed_file_set: Some(plan::needed_file_set),
    clean: None,
};
