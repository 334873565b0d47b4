//! Heartbeats. Each end that has sent nothing for a while sends one, and treats the other end as
//! lost after a longer silence: no launcher reports a silent cut soon.

use plimsoll_model::units::Nanos;

/// How often a state machine sends heartbeats, and how long the other end may be silent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pulse {
    /// A state machine that has sent nothing for this long sends a heartbeat.
    pub alive_every: Nanos,
    /// The other end is lost after so long without a byte.
    pub silence: Nanos,
}

impl Default for Pulse {
    /// Five heartbeats may be late, and the loss is detected before the fourth second.
    fn default() -> Self {
        Self { alive_every: Nanos::from_millis(500), silence: Nanos::from_secs(3) }
    }
}

/// Whether this machine was awake to hear the other end. One that was stopped itself (SIGSTOP, a
/// suspended host, starved of CPU time) first takes in what has arrived meanwhile.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Awake {
    pulse: Pulse,
    last: Nanos,
    since: Nanos,
}

impl Awake {
    pub(crate) const fn new(pulse: Pulse, now: Nanos) -> Self {
        Self { pulse, last: now, since: Nanos::ZERO }
    }

    /// The state machine runs. Heartbeats alone cause that every `alive_every`.
    pub(crate) fn tick(&mut self, now: Nanos) {
        if now.saturating_sub(self.last).0 > 2 * self.pulse.alive_every.0 {
            self.since = now;
        }
        self.last = self.last.max(now);
    }

    /// When the other end may be declared lost by `deadline`: not before this machine was awake for
    /// half a heartbeat interval.
    pub(crate) fn effective_deadline(&self, deadline: Nanos) -> Nanos {
        deadline.max(self.since.saturating_add(Nanos(self.pulse.alive_every.0 / 2)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_that_slept_judges_nobody_at_once() {
        let millis = Nanos::from_millis;
        let mut awake = Awake::new(Pulse::default(), millis(100));
        awake.tick(millis(1_000));
        assert_eq!(awake.effective_deadline(millis(900)), millis(900));
        awake.tick(millis(4_000));
        assert_eq!(awake.effective_deadline(millis(3_900)), millis(4_250));
        awake.tick(millis(4_300));
        assert_eq!(awake.effective_deadline(millis(3_900)), millis(4_250));
        assert_eq!(awake.effective_deadline(millis(7_000)), millis(7_000));
    }
}
