//! The clock of the test servers: the host's monotonic clock, as the engine reads it.

use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

/// For waits that must have an end.
#[allow(clippy::disallowed_methods, reason = "tests wait for real threads and processes")]
pub fn now() -> Instant {
    Instant::now()
}

/// Nanoseconds on `CLOCK_MONOTONIC`.
pub fn monotonic_ns() -> u64 {
    read_ns(ClockId::Monotonic)
}

/// Nanoseconds since 1970.
pub fn unix_ns() -> u64 {
    read_ns(ClockId::Realtime)
}

/// CPU time of this thread in nanoseconds, however many others compete.
pub fn thread_cpu_ns() -> u64 {
    read_ns(ClockId::ThreadCPUTime)
}

fn read_ns(clock: ClockId) -> u64 {
    let now = clock_gettime(clock);
    now.tv_sec.unsigned_abs() * 1_000_000_000 + now.tv_nsec.unsigned_abs()
}

/// `duration` as nanoseconds; tests never come near 584 years.
pub(crate) fn nanoseconds(duration: Duration) -> u64 {
    duration.as_nanos() as u64
}
