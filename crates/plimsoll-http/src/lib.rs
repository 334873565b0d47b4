//! HTTP/1.1 and HTTP/2: the `web-static`, `web-url` and `web-users` suites.
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`wire`] | requests and replies as bytes, pure |
//! | [`session`] | the state machine of one client of HTTP/1.1 |
//! | [`h2`], [`h2_session`] | HTTP/2 as bytes and connections, and its clients |
//! | [`reader`] | its op in flight, and what it does with the bodies of replies |
//! | [`tls`] | a byte filter around it |
//! | [`site`] | one server: its requests ready as bytes, what a good reply is |
//! | `script` | which op comes next |
//! | [`journey`] | users who go from page to page |
//! | [`fileset`] | the generated file set |
//! | [`transport`] | from the keys of a suite to sites and TLS, for protocols on top too |
//! | [`look`], [`excerpt`] | one request before any load; the text of a reply, for people |
//! | `host`, `server` | servers, started and greeted; file sets on disk |
//! | [`headers`] | header fields of suites, and which of their values may be shown |
//! | `urls` | weighted lists of URLs |
//! | `warm` | the file set read once before the first load point |
//! | [`parameters`], `version`, `plan`, `workload` | from a suite to running clients |

#![warn(unreachable_pub)]

mod error;
pub mod excerpt;
pub mod fileset;
pub mod h2;
pub mod h2_session;
pub mod headers;
#[cfg(feature = "host")]
pub mod host;
pub mod journey;
pub mod look;
mod parallel_session;
pub mod parameters;
mod plan;
pub mod reader;
mod replay;
mod script;
#[cfg(feature = "host")]
pub mod server;
pub mod session;
pub mod site;
mod spare_links;
pub mod tls;
pub mod transport;
mod urls;
pub mod version;
mod warm;
pub mod wire;
pub mod workload;

#[cfg(test)]
mod plan_tests;
#[cfg(test)]
mod session_tests;
#[cfg(test)]
mod test_io;
#[cfg(test)]
mod tls_tests;

use plimsoll_protocol::Protocol;

/// The registration.
pub const PROTOCOL: Protocol = Protocol {
    name: "http",
    title: "HTTP",
    suites: &[
        ("web-static", include_str!("../suites/web-static.toml")),
        ("web-url", include_str!("../suites/web-url.toml")),
        ("web-users", include_str!("../suites/web-users.toml")),
        ("web-banking", include_str!("../suites/web-banking.toml")),
        ("web-shopping", include_str!("../suites/web-shopping.toml")),
        ("web-support", include_str!("../suites/web-support.toml")),
    ],
    schemes: &[("http", 80), ("https", 443)],
    read_workload: |table| parameters::read(table).map(Into::into),
    workload_schema: || schemars::schema_for!(parameters::HttpWorkload),
    plan: plan::plan,
    needed_file_set: Some(plan::needed_file_set),
    load_files: Some(replay::LOAD_FILES),
    clean: None,
};
