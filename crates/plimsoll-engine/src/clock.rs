//! The engine's clocks: the only place in this crate that reads time.

use std::fs::File;
use std::mem;
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
pub struct RunDelay {
    file: Option<File>,
    /// As last read.
    last: Option<Nanos>,
}

impl RunDelay {
    /// Of the calling thread, from now on.
    pub fn of_this_thread() -> Self {
        Self::from_file(File::open("/proc/thread-self/schedstat").ok())
    }

    pub(crate) fn from_file(file: Option<File>) -> Self {
        let mut delay = Self { file, last: None };
        delay.last = delay.read();
        delay
    }

    /// Since the last call; `None` if the kernel does not report it.
    pub fn since_last(&mut self) -> Option<Nanos> {
        let now = self.read();
        let before = mem::replace(&mut self.last, now);
        Some(now?.saturating_sub(before?))
    }

    /// Since the thread began; `None` if the kernel does not report it.
    pub fn read(&self) -> Option<Nanos> {
        let mut text = [0; 64];
        let length = self.file.as_ref()?.read_at(&mut text, 0).ok()?;
        let mut figures = text[..length].split(u8::is_ascii_whitespace);
        std::str::from_utf8(figures.nth(1)?).ok()?.parse().ok().map(Nanos)
    }
}

fn read(clock: ClockId) -> Nanos {
    let at = clock_gettime(clock);
    // Neither part is negative for these clocks on a running system.
    Nanos(at.tv_sec.unsigned_abs() * NANOS_PER_SECOND + at.tv_nsec.unsigned_abs())
}

#[cfg(test)]
mod tests {
    use std::{env, fs, process};

    use super::*;

    #[test]
    fn run_delay_is_told_since_it_was_last_asked_for() {
        let path = env::temp_dir().join(format!("plimsoll-schedstat-{}", process::id()));
        fs::write(&path, "900 5000 3\n").unwrap();
        let mut delay = RunDelay::from_file(File::open(&path).ok());
        fs::write(&path, "990 7300 4\n").unwrap();
        assert_eq!(delay.since_last(), Some(Nanos(2_300)));
        assert_eq!((delay.since_last(), delay.read()), (Some(Nanos::ZERO), Some(Nanos(7_300))));
        fs::remove_file(&path).unwrap();
        assert_eq!(RunDelay::default().since_last(), None);
    }
}
