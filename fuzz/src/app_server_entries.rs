//! The transaction server's frame reader under arbitrary bytes. It needs nothing else of its
//! crate, which would bring a web server and an SMB server into every fuzz target.

#[path = "../../crates/plimsoll-servers/src/app/connection.rs"]
pub mod connection;

#[path = "../../crates/plimsoll-servers/tests/app/checks.rs"]
mod checks;

pub use checks::app_request;
