//! The only place of this crate that reads a clock: deadlines of bounded waits.

use std::time::{Duration, Instant};

/// How often a bounded wait looks again.
const LOOK_AGAIN: Duration = Duration::from_millis(4);

/// A moment after which waiting is given up.
#[derive(Clone, Copy)]
pub(crate) struct Deadline(Instant);

impl Deadline {
    #[allow(clippy::disallowed_methods, reason = "bounded waits for processes need a real clock")]
    pub(crate) fn after(wait: Duration) -> Self {
        Self(Instant::now() + wait)
    }

    #[allow(clippy::disallowed_methods, reason = "bounded waits for processes need a real clock")]
    pub(crate) fn left(self) -> Duration {
        self.0.saturating_duration_since(Instant::now())
    }

    /// Sleeps one step; false once the deadline has passed.
    pub(crate) fn wait_a_step(self) -> bool {
        let left = self.left();
        std::thread::sleep(left.min(LOOK_AGAIN));
        !left.is_zero()
    }
}
