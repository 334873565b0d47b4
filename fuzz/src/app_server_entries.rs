//! The transaction server's frame reader under arbitrary bytes. It needs nothing else of its
//! crate, whose servers would come into every fuzz target.

#[path = "../../crates/plimsoll-app/src/server/connection.rs"]
pub mod connection;

#[path = "../../crates/plimsoll-app/tests/app/checks.rs"]
mod checks;

pub use checks::app_request;
