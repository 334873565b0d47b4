//! SMB as others see it: a server that misbehaves, a packet capture, the kernel's counters and
//! flipped bytes.

#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test that cannot be set up has failed, and one that is skipped says so"
)]

mod counts;
mod flips;
mod hostile;
#[allow(dead_code, reason = "the crowd uses the rest")]
mod sharing;
