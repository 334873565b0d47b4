//! How often the monitors look: as requested, or less often where that would cost too much,
//! since watching must not change what is watched. Pure.

use std::collections::VecDeque;

/// Looks that are remembered: some cost more than others, but no more than one in this many.
const REMEMBERED: usize = 10;

/// Of one thing that is looked at again and again.
#[derive(Clone, Debug)]
pub(crate) struct Pace {
    requested_ns: u64,
    /// The looks may take one part in this many of a core.
    parts: u64,
    /// CPU time of the last looks.
    costs_ns: VecDeque<u64>,
}

impl Pace {
    /// At this interval, unless it costs too much.
    pub(crate) const fn new(requested_ns: u64, parts: u64) -> Self {
        Self { requested_ns, parts, costs_ns: VecDeque::new() }
    }

    /// A look took this much CPU time.
    pub(crate) fn took(&mut self, cpu_ns: u64) {
        self.costs_ns.truncate(REMEMBERED - 1);
        self.costs_ns.push_front(cpu_ns);
    }

    /// Time between two looks.
    pub(crate) fn interval_ns(&self) -> u64 {
        self.requested_ns.max(self.cost_ns().saturating_mul(self.parts))
    }

    /// It can be looked at as often as requested.
    pub(crate) fn is_kept(&self) -> bool {
        self.interval_ns() == self.requested_ns
    }

    /// The greater of two: the cheaper of the last two looks, since one that opens files does not
    /// predict the next, and the mean of all that are remembered.
    fn cost_ns(&self) -> u64 {
        let Some(last) = self.costs_ns.front().zip(self.costs_ns.get(1)) else { return 0 };
        let last = *last.0.min(last.1);
        let mean = self.costs_ns.iter().sum::<u64>() / REMEMBERED as u64;
        last.max(if self.costs_ns.len() == REMEMBERED { mean } else { 0 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn intervals_ms(costs_ms: impl IntoIterator<Item = u64>) -> Vec<u64> {
        let mut pace = Pace::new(1_000_000_000, 250);
        let after = |cost_ms| {
            pace.took(cost_ms * 1_000_000);
            pace.interval_ns() / 1_000_000
        };
        costs_ms.into_iter().map(after).collect()
    }

    #[test]
    fn what_costs_little_is_looked_at_as_often_as_asked() {
        assert_eq!(intervals_ms([4; 20]), [1_000; 20]);
    }

    #[test]
    fn what_costs_more_is_looked_at_less_often_and_one_outlier_changes_nothing() {
        assert_eq!(intervals_ms([50, 8, 90, 6]), [1_000, 2_000, 2_000, 1_500]);
    }

    #[test]
    fn one_dear_look_in_ten_counts_by_its_part() {
        let costs = (0..30).map(|n| if n % 10 == 0 { 91 } else { 1 });
        let intervals = intervals_ms(costs);
        assert_eq!(intervals[..9], [1_000; 9]);
        assert_eq!(intervals[9..], [2_500; 21]);
    }

    #[test]
    fn what_must_come_often_is_kept_while_it_is_cheap() {
        let mut pace = Pace::new(50_000_000, 250);
        for (cost_us, kept) in [(900, true), (200, true), (210, true), (201, false), (90, true)] {
            pace.took(cost_us * 1_000);
            assert_eq!(pace.is_kept(), kept, "{cost_us}");
        }
    }
}
