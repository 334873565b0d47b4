//! NFS from the command line to the bundle: on the reference server, on a real NFS-Ganesha, and on
//! bad days.

#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test that cannot be set up has failed, and one that is skipped says so"
)]

mod bad_days;
mod foreign;
mod ladder;
mod served;
mod wire;
