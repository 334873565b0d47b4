//! The only place in this crate that reads a clock.

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

/// Nanoseconds of the clock that nobody can set. It stands still while the machine is suspended.
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
