//! The only module of this crate that reads a clock.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use plimsoll_model::units::Nanos;

/// Measures how long something takes.
#[derive(Clone, Copy, Debug)]
pub struct Stopwatch(Instant);

impl Stopwatch {
    /// Starts now.
    #[allow(clippy::disallowed_methods, reason = "progress and bounded waits need a real clock")]
    pub fn start() -> Self {
        Self(Instant::now())
    }

    /// Time since the start.
    pub fn elapsed(self) -> Duration {
        self.0.elapsed()
    }
}

/// Time left of work whose parts have fixed durations.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Countdown {
    started: Stopwatch,
    total: Nanos,
}

impl Countdown {
    /// Work that takes `total`.
    pub(crate) fn start(total: Nanos) -> Self {
        Self { started: Stopwatch::start(), total }
    }

    pub(crate) fn left(&self) -> Nanos {
        let gone = self.started.elapsed().as_nanos() as u64;
        self.total.saturating_sub(Nanos(gone))
    }
}

/// Nanoseconds since the Unix epoch.
#[allow(clippy::disallowed_methods, reason = "the journal carries wall-clock times")]
pub fn unix_ns() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos() as u64
}

/// How far the wall clock is ahead of CLOCK_MONOTONIC.
pub fn wall_ahead_of_monotonic_ns() -> i64 {
    let since = |clock| {
        let at = rustix::time::clock_gettime(clock);
        at.tv_sec * 1_000_000_000 + at.tv_nsec
    };
    since(rustix::time::ClockId::Realtime) - since(rustix::time::ClockId::Monotonic)
}

/// UTC time for a directory name: `20261121-201530`.
pub fn utc_stamp(unix_ns: u64) -> String {
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
