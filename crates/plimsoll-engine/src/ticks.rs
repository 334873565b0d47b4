//! Ops sent and done in each twentieth of a second: what changes within a second shows there.

use plimsoll_model::assignment::Phases;
use plimsoll_model::event::{TICK, TICKS_MAX};
use plimsoll_model::units::Nanos;

/// Counts of the window's first minute.
pub(crate) struct Ticks {
    start: Nanos,
    done: Vec<u32>,
    sent: Vec<u32>,
}

impl Ticks {
    /// Of the window of these phases.
    pub(crate) fn new(phases: &Phases) -> Self {
        let window = phases.window_end().saturating_sub(phases.warm_up_ns);
        let ticks = usize::try_from(window.0 / TICK.0).map_or(TICKS_MAX, |n| n.min(TICKS_MAX));
        Self { start: phases.warm_up_ns, done: vec![0; ticks], sent: vec![0; ticks] }
    }

    /// An op that ended, whenever that was.
    pub(crate) fn count(&mut self, sent: Nanos, done: Nanos) {
        for (counts, at) in [(&mut self.done, done), (&mut self.sent, sent)] {
            let tick = at.0.checked_sub(self.start.0).map(|since| since / TICK.0);
            if let Some(count) = tick.and_then(|tick| counts.get_mut(tick as usize)) {
                *count += 1;
            }
        }
    }

    /// Ops done and sent in each tick that ended before `now`.
    pub(crate) fn into_counts(mut self, now: Nanos) -> (Vec<u32>, Vec<u32>) {
        let ended = (now.saturating_sub(self.start).0 / TICK.0) as usize;
        self.done.truncate(ended);
        self.sent.truncate(ended);
        (self.done, self.sent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_op_counts_in_the_ticks_in_which_it_was_sent_and_done_if_they_are_in_the_window() {
        let phases = Phases {
            warm_up_ns: TICK,
            measure_ns: Nanos(TICK.0 * 3 + 1),
            ramp_down_ns: Nanos::ZERO,
            drain_ns: TICK,
            ops: None,
        };
        let mut ticks = Ticks::new(&phases);
        let at = |tenths: u64| Nanos(TICK.0 * tenths / 10);
        for (sent, done) in [(0, 5), (9, 10), (11, 19), (20, 39), (39, 41)] {
            ticks.count(at(sent), at(done));
        }
        assert_eq!(ticks.into_counts(Nanos(TICK.0 * 9)), (vec![2, 0, 1], vec![1, 1, 1]));
    }
}
