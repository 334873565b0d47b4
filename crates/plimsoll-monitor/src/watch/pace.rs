//! How often the monitors look: as asked, or less often where that would cost too much, since
//! watching must not change what is watched. Pure.

use std::num::NonZeroU64;

/// What looks again and again may use this part of one core (0.4 %): two of them stay within the
/// limit of the rule `monitors`.
const PART_OF_CORE: u64 = 250;

/// Of one thing that is looked at again and again.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    asked_ns: u64,
    /// CPU time of the last look, and of the one before.
    cost_ns: [Option<NonZeroU64>; 2],
}

impl Pace {
    /// At this interval, unless it costs too much.
    pub(super) const fn new(asked_ns: u64) -> Self {
        Self { asked_ns, cost_ns: [None; 2] }
    }

    /// A look took this much CPU time.
    pub(super) fn took(&mut self, cpu_ns: u64) {
        self.cost_ns = [NonZeroU64::new(cpu_ns), self.cost_ns[0]];
    }

    /// Time between two looks. The cheaper of the last two counts: one that opens files, or found
    /// the core's cache cold, is no measure of the next.
    pub(super) fn interval_ns(&self) -> u64 {
        let [Some(last), Some(before)] = self.cost_ns else { return self.asked_ns };
        self.asked_ns.max(last.min(before).get().saturating_mul(PART_OF_CORE))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_costs_little_is_looked_at_as_often_as_asked() {
        let mut pace = Pace::new(1_000_000_000);
        assert_eq!(pace.interval_ns(), 1_000_000_000);
        for _ in 0..3 {
            pace.took(4_000_000);
            assert_eq!(pace.interval_ns(), 1_000_000_000);
        }
    }

    #[test]
    fn what_costs_more_is_looked_at_less_often_and_one_outlier_changes_nothing() {
        let mut pace = Pace::new(1_000_000_000);
        for (cost_ms, interval_ms) in [(50, 1_000), (8, 2_000), (90, 2_000), (6, 1_500)] {
            pace.took(cost_ms * 1_000_000);
            assert_eq!(pace.interval_ns(), interval_ms * 1_000_000, "{cost_ms}");
        }
    }
}
