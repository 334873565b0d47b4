//! SMB from the command line to the bundle: on a real Samba, on the reference server where none is
//! needed, and on bad days.

#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test that cannot be set up has failed, and one that is skipped says so"
)]

mod foreign;
mod ladder;
mod losses;
mod refusals;
mod room;
mod runs;
mod setup;
mod suites;
