//! The engine's clocks: the only place in this crate that reads time.

use std::fs::File;
use std::os::unix::fs::FileExt;

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

/// How long the thread that opened it was ready to run while another had its core: the second
/// figure of the kernel's `schedstat`.
#[derive(Debug, Default)]
pub struct RunDelay(Option<File>);

impl RunDelay {
    /// Of the calling thread.
    pub fn of_this_thread() -> Self {
        Self(File::open("/proc/thread-self/schedstat").ok())
    }

    /// Since the thread began; `None` where the kernel does not say.
    pub fn read(&self) -> Option<Nanos> {
        let mut text = [0; 64];
        let length = self.0.as_ref()?.read_at(&mut text, 0).ok()?;
        let mut figures = text[..length].split(u8::is_ascii_whitespace);
        std::str::from_utf8(figures.nth(1)?).ok()?.parse().ok().map(Nanos)
    }
}

fn read(clock: ClockId) -> Nanos {
    let at = clock_gettime(clock);
    // Neither part is negative for these clocks on a running system.
    Nanos(at.tv_sec.unsigned_abs() * NANOS_PER_SECOND + at.tv_nsec.unsigned_abs())
}
