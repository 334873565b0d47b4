//! Application transactions from the command line to the bundle: on a server that is not ours, and
//! on bad days.

#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test that cannot be set up has failed, and one that is skipped says so"
)]

mod bad_days;
mod flips;
mod python;
mod watched;
