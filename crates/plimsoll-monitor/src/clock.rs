//! The only place in this crate that reads a clock; and whether the wall clock was set, or the
//! machine suspended, while a point ran.

use plimsoll_model::units::NANOS_PER_SECOND;
use rustix::time::{ClockId, clock_gettime};

/// Nanoseconds of one of the kernel's clocks. Clocks before their epoch read as zero.
fn read_ns(id: ClockId) -> u64 {
    let time = clock_gettime(id);
    let secs = u64::try_from(time.tv_sec).unwrap_or(0);
    let nanos = u64::try_from(time.tv_nsec).unwrap_or(0);
    secs.saturating_mul(NANOS_PER_SECOND).saturating_add(nanos)
}

/// Nanoseconds since the Unix epoch.
pub(crate) fn unix_ns() -> u64 {
    read_ns(ClockId::Realtime)
}

/// Nanoseconds of the clock that nobody can set. It stops while the machine is suspended.
pub(crate) fn monotonic_ns() -> u64 {
    read_ns(ClockId::Monotonic)
}

/// CPU time of the calling thread.
pub(crate) fn thread_cpu_ns() -> u64 {
    read_ns(ClockId::ThreadCPUTime)
}

/// CPU time of all threads of this process, ended ones included.
pub(crate) fn process_cpu_ns() -> u64 {
    read_ns(ClockId::ProcessCPUTime)
}

/// Wall and monotonic clock read one after the other (some 50 ns apart).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClockReading {
    /// Nanoseconds since the Unix epoch.
    pub unix_ns: u64,
    /// Nanoseconds of the monotonic clock.
    pub monotonic_ns: u64,
}

impl ClockReading {
    /// Both clocks, now.
    pub fn now() -> Self {
        Self { monotonic_ns: monotonic_ns(), unix_ns: unix_ns() }
    }
}

/// By how much the wall clock moved against the monotonic clock between two readings, in
/// nanoseconds; positive when it was set forward. The kernel slews both clocks alike, so NTP that
/// merely disciplines the clock shows as (almost) nothing; a step or a suspend shows in full.
pub fn clock_step_ns(start: ClockReading, end: ClockReading) -> i64 {
    let wall = i128::from(end.unix_ns) - i128::from(start.unix_ns);
    let monotonic = i128::from(end.monotonic_ns) - i128::from(start.monotonic_ns);
    let step = wall - monotonic;
    step.clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(unix_ns: u64, monotonic_ns: u64) -> ClockReading {
        ClockReading { unix_ns, monotonic_ns }
    }

    #[test]
    fn a_clock_set_forward_shows_as_a_positive_step() {
        assert_eq!(clock_step_ns(reading(1_000, 10), reading(3_500, 1_010)), 1_500);
    }

    #[test]
    fn a_clock_set_back_shows_as_a_negative_step() {
        assert_eq!(clock_step_ns(reading(5_000, 10), reading(4_000, 20)), -1_010);
    }

    #[test]
    fn steps_beyond_the_range_saturate() {
        assert_eq!(clock_step_ns(reading(0, 0), reading(u64::MAX, 0)), i64::MAX);
    }

    #[test]
    fn two_readings_of_an_untouched_clock_agree_within_a_millisecond() {
        let step = clock_step_ns(ClockReading::now(), ClockReading::now());
        assert!(step.abs() < 1_000_000, "step {step} ns");
    }
}
