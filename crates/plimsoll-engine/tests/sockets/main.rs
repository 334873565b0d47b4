//! The engine on real sockets: workers, datagrams, and the stamps of replies against a capture.

#![allow(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

mod cross_check;
mod datagrams;
mod workers;
