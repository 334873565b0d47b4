//! `plimsoll serve app` as a process of its own: flags, ends, durability as the system sees it,
//! and memory.
#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test that cannot be set up has failed, and one that is skipped says so"
)]

mod capacity;
mod client;
mod durability;
mod memory;
mod places;
mod scale;
