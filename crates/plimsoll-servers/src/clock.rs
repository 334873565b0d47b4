//! The only place of this crate that reads a clock: deadlines of bounded waits, file times.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::nfs::store::Time;

/// How often a bounded wait looks again.
const LOOK_AGAIN: Duration = Duration::from_millis(4);

/// A moment after which waiting is given up.
#[derive(Clone, Copy)]
pub(crate) struct Deadline(Instant);

impl Deadline {
    #[allow(clippy::disallowed_methods, reason = "bounded waits for processes need a real clock")]
    pub(crate) fn after(wait: Duration) -> Self {
        Self(Instant::now() + wait)
    }

    #[allow(clippy::disallowed_methods, reason = "bounded waits for processes need a real clock")]
    pub(crate) fn left(self) -> Duration {
        self.0.saturating_duration_since(Instant::now())
    }

    /// Sleeps one step; false once the deadline has passed.
    pub(crate) fn wait_a_step(self) -> bool {
        let left = self.left();
        std::thread::sleep(left.min(LOOK_AGAIN));
        !left.is_zero()
    }
}

/// CLOCK_MONOTONIC, in nanoseconds.
pub(crate) fn monotonic_ns() -> u64 {
    let at = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    // Neither part is negative on a running system.
    at.tv_sec.unsigned_abs() * 1_000_000_000 + at.tv_nsec.unsigned_abs()
}

/// Now, as times of files have it.
#[allow(clippy::disallowed_methods, reason = "times of files are those of the wall clock")]
pub(crate) fn wall() -> Time {
    // Before 1970 and after 2106 there is no NFSv3.
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let seconds = u32::try_from(since.as_secs()).unwrap_or(u32::MAX);
    Time { seconds, nanoseconds: since.subsec_nanos() }
}

/// Now in FILETIME: 100 ns since 1601 (MS-DTYP 2.3.3).
pub(crate) fn filetime() -> u64 {
    const BEFORE_1970_S: u64 = 11_644_473_600;
    let Time { seconds, nanoseconds } = wall();
    (u64::from(seconds) + BEFORE_1970_S) * 10_000_000 + u64::from(nanoseconds) / 100
}
