//! The only place of this crate that reads a clock.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

#[derive(Clone, Copy, Debug)]
pub(crate) struct Stopwatch(Instant);

impl Stopwatch {
    #[allow(clippy::disallowed_methods, reason = "progress and bounded waits need a real clock")]
    pub(crate) fn start() -> Self {
        Self(Instant::now())
    }

    pub(crate) fn elapsed(self) -> Duration {
        self.0.elapsed()
    }
}

/// Nanoseconds since the Unix epoch.
#[allow(clippy::disallowed_methods, reason = "the journal carries wall-clock times")]
pub(crate) fn unix_ns() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    since.as_nanos() as u64
}

/// How far the wall clock is ahead of CLOCK_MONOTONIC.
pub(crate) fn wall_ahead_of_monotonic_ns() -> i64 {
    let since = |clock| {
        let at = rustix::time::clock_gettime(clock);
        at.tv_sec * 1_000_000_000 + at.tv_nsec
    };
    since(rustix::time::ClockId::Realtime) - since(rustix::time::ClockId::Monotonic)
}

/// UTC time for a directory name: `20261121-201530`.
pub(crate) fn utc_stamp(unix_ns: u64) -> String {
    match jiff::Timestamp::from_nanosecond(i128::from(unix_ns)) {
        Ok(at) => at.strftime("%Y%m%d-%H%M%S").to_string(),
        Err(_) => unix_ns.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_sorts_by_time() {
        assert_eq!(utc_stamp(1_795_000_000_000_000_000), "20261118-110640");
    }
}
