//! Code that `cargo xtask` and `cargo lab` share.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a developer command talks to the developer's terminal"
)]

pub mod command;
pub mod verb;
pub mod workspace;
