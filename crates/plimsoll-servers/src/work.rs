//! Work that a reference server does besides: so much processor time for each request. It makes a
//! server slower by a known amount, so that a generator on the same host finds where its line ends.

use plimsoll_model::units::Nanos;
use rustix::time::{ClockId, clock_gettime};

/// Processor time for each request, besides what the server needs for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work(pub Nanos);

impl Work {
    /// Keeps the calling thread at work for so long; a pause of the thread does not count.
    pub fn spend(self) {
        let end = match self.0 {
            Nanos::ZERO => return,
            time => thread_cpu() + time,
        };
        while thread_cpu() < end {
            std::hint::spin_loop();
        }
    }
}

fn thread_cpu() -> Nanos {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Nanos::from_secs(time.tv_sec as u64) + Nanos(time.tv_nsec as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn so_much_processor_time_is_spent_and_hardly_more() {
        let before = thread_cpu();
        (0..10).for_each(|_| Work(Nanos::from_millis(1)).spend());
        let spent = thread_cpu().saturating_sub(before);
        assert!(spent >= Nanos::from_millis(10) && spent < Nanos::from_millis(15), "{spent}");
        Work::default().spend();
    }
}
