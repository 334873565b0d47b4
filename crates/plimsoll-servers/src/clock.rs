//! The only module of the servers that reads a clock: deadlines of bounded waits, file times.

use std::io;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// How often a bounded wait looks again.
const LOOK_AGAIN: Duration = Duration::from_millis(4);

/// A moment after which waiting is given up.
#[derive(Clone, Copy)]
pub struct Deadline(Instant);

impl Deadline {
    /// In `wait` from now.
    #[allow(clippy::disallowed_methods, reason = "bounded waits for processes need a real clock")]
    pub fn after(wait: Duration) -> Self {
        Self(Instant::now() + wait)
    }

    /// Until then; zero afterwards.
    #[allow(clippy::disallowed_methods, reason = "bounded waits for processes need a real clock")]
    pub fn left(self) -> Duration {
        self.0.saturating_duration_since(Instant::now())
    }

    /// Until then; an error afterwards.
    pub fn remaining(self) -> io::Result<Duration> {
        let left = self.left();
        if left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(left) }
    }

    /// Sleeps one step; false once the deadline has passed.
    pub fn wait_a_step(self) -> bool {
        let left = self.left();
        std::thread::sleep(left.min(LOOK_AGAIN));
        !left.is_zero()
    }
}

/// CLOCK_MONOTONIC, in nanoseconds.
pub fn monotonic_ns() -> u64 {
    let at = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    // Neither part is negative on a running system.
    at.tv_sec.unsigned_abs() * 1_000_000_000 + at.tv_nsec.unsigned_abs()
}

/// Time since 1970, by the wall clock: times of files are of that.
#[allow(clippy::disallowed_methods, reason = "times of files are those of the wall clock")]
pub fn since_1970() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}
