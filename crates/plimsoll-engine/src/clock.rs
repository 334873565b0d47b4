//! The engine's clocks: the only place in this crate that reads time.

use plimsoll_model::units::{NANOS_PER_SECOND, Nanos};
use rustix::time::{ClockId, clock_gettime};

/// Monotonic time since the host's own start.
pub fn monotonic() -> Nanos {
    read(ClockId::Monotonic)
}

/// Wall clock, since the Unix epoch.
pub fn wall() -> Nanos {
    read(ClockId::Realtime)
}

/// CPU time (user + system) of the calling thread.
pub fn thread_cpu() -> Nanos {
    read(ClockId::ThreadCPUTime)
}

/// CPU time (user + system) of the whole process.
pub fn process_cpu() -> Nanos {
    read(ClockId::ProcessCPUTime)
}

fn read(clock: ClockId) -> Nanos {
    let at = clock_gettime(clock);
    // Neither part is negative for these clocks on a running system.
    Nanos(at.tv_sec.unsigned_abs() * NANOS_PER_SECOND + at.tv_nsec.unsigned_abs())
}
