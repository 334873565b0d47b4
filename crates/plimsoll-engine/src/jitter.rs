//! How often a core is taken from a thread that needs all of it while the generator is idle:
//! interrupts, other programs, the hypervisor. No generator can avoid these.

use std::io;

use plimsoll_model::units::Nanos;
use rustix::thread::{CpuSet, sched_setaffinity};

use crate::clock;

/// Two readings of the clock that are further apart than this were interrupted; otherwise they are
/// some tens of nanoseconds apart.
pub const INTERRUPTION_NS_MIN: u64 = 100_000;

/// What a thread that polled the clock on a core saw.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CoreJitter {
    /// For how long it polled.
    pub polled_ns: u64,
    /// Times the core was away for longer than [`INTERRUPTION_NS_MIN`].
    pub interruptions: u64,
    /// Sum of those.
    pub interrupted_ns: u64,
    /// The longest.
    pub interruption_ns_max: u64,
}

impl CoreJitter {
    /// Share of the time in which the core was away.
    pub fn ratio(&self) -> f64 {
        self.interrupted_ns as f64 / self.polled_ns.max(1) as f64
    }

    fn add(&mut self, between_ns: u64) {
        if between_ns > INTERRUPTION_NS_MIN {
            self.interruptions += 1;
            self.interrupted_ns += between_ns;
            self.interruption_ns_max = self.interruption_ns_max.max(between_ns);
        }
    }
}

/// Polls the clock on `core` for `span`, in a thread of its own.
pub fn poll_core(core: u32, span: Nanos) -> io::Result<CoreJitter> {
    let polling = std::thread::Builder::new().name("plimsoll-jitter".into()).spawn(move || {
        if core as usize >= CpuSet::MAX_CPU {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "no such core"));
        }
        let mut set = CpuSet::new();
        set.set(core as usize);
        sched_setaffinity(None, &set)?;
        Ok(poll(span, clock::monotonic))
    })?;
    match polling.join() {
        Ok(jitter) => jitter,
        Err(panic) => std::panic::resume_unwind(panic),
    }
}

fn poll(span: Nanos, mut now: impl FnMut() -> Nanos) -> CoreJitter {
    let mut jitter = CoreJitter::default();
    let begin = now();
    let mut before = begin;
    while before - begin < span {
        let at = now();
        jitter.add((at - before).0);
        before = at;
    }
    jitter.polled_ns = (before - begin).0;
    jitter
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_of_a_core_are_counted_and_plain_polls_are_not() {
        let mut readings = [0, 50, 100_050, 100_100, 400_100, 400_150, 3_000_000].into_iter();
        let jitter = poll(Nanos(2_000_000), || Nanos(readings.next().unwrap()));
        let longest = 3_000_000 - 400_150;
        let expected = CoreJitter {
            polled_ns: 3_000_000,
            interruptions: 2,
            interrupted_ns: 300_000 + longest,
            interruption_ns_max: longest,
        };
        assert_eq!(jitter, expected, "100 µs are no gap yet");
        assert!((jitter.ratio() - 0.966_616).abs() < 1e-6);
    }

    #[test]
    fn a_core_that_is_there_can_be_polled_and_another_cannot() {
        let core = rustix::thread::sched_getcpu() as u32;
        let jitter = poll_core(core, Nanos::from_millis(20)).unwrap();
        assert!(jitter.polled_ns >= 20_000_000, "{jitter:?}");
        assert!(
            jitter.interrupted_ns <= jitter.polled_ns
                && jitter.interruption_ns_max <= jitter.interrupted_ns,
            "{jitter:?}"
        );
        assert!(poll_core(u32::MAX, Nanos::from_millis(1)).is_err());
    }
}
