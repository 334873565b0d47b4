//! The reference server of application transactions and the calibrated one, over real sockets.
#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test that cannot be set up has failed, and one that is skipped says so"
)]

mod any_bytes;
mod calibrated;
mod crowd;
mod end;
mod flood;
mod hostile;
mod requests;
mod status;
mod stress;
mod support;
