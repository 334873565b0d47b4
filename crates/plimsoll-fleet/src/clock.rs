//! The offset between the monotonic clocks of an agent and of the controller, with its bound.
//!
//! The controller asks, the agent reads its clock, the answer arrives: the reading was somewhere
//! between the two ends of the round trip, so the offset is known to within half of it. Nothing is
//! assumed of delays, only of clocks: that between two measurements one gains or loses steadily on
//! the other.

use plimsoll_model::event::ClockOffset;
use plimsoll_model::units::Nanos;

/// One question and its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exchange {
    /// When the controller sent the request, by its clock.
    pub sent: Nanos,
    /// When the agent read its clock, by that clock.
    pub at_ns: u64,
    /// When the answer had arrived, by the controller's clock.
    pub received: Nanos,
}

/// Questions and answers of one measurement. The one with the shortest round trip counts.
#[derive(Clone, Copy, Debug, Default)]
pub struct Exchanges {
    best: Option<Exchange>,
    count: u32,
}

impl Exchanges {
    /// Takes in one more.
    pub fn take(&mut self, exchange: Exchange) {
        self.count = self.count.saturating_add(1);
        let shorter = |best: &Exchange| round_trip(&exchange) < round_trip(best);
        if self.best.as_ref().is_none_or(shorter) {
            self.best = Some(exchange);
        }
    }

    /// How many there were.
    pub const fn count(&self) -> u32 {
        self.count
    }

    /// Their result; `None` before the first.
    pub fn reading(&self) -> Option<Reading> {
        let best = self.best?;
        let round_trip = round_trip(&best);
        let middle = best.sent.saturating_add(Nanos(round_trip.0 / 2));
        // The middle is rounded down, so the far end is half a nanosecond further away.
        let bound = Nanos(round_trip.0.div_ceil(2));
        Some(Reading { offset_ns: difference(best.at_ns, middle.0), bound })
    }
}

fn round_trip(exchange: &Exchange) -> Nanos {
    exchange.received.saturating_sub(exchange.sent)
}

/// An agent's clock less the controller's, at one instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading {
    /// As measured.
    pub offset_ns: i64,
    /// The true offset is at most so far away: half of the round trip.
    pub bound: Nanos,
}

impl Reading {
    /// The agent's clock when the controller's shows `here`.
    pub fn there(&self, here: Nanos) -> u64 {
        let there = i128::from(here.0) + i128::from(self.offset_ns);
        there.clamp(0, i128::from(u64::MAX)) as u64
    }

    /// The offset from this measurement to a later one. A clock that gains steadily was between the
    /// two offsets all the while, so the bound reaches to the far end of the second one.
    pub fn until(&self, later: &Self) -> ClockOffset {
        let drift_ns = later.offset_ns.saturating_sub(self.offset_ns);
        let far_end = Nanos(drift_ns.unsigned_abs()).saturating_add(later.bound);
        ClockOffset { offset_ns: self.offset_ns, bound: self.bound.max(far_end), drift_ns }
    }
}

/// How much later than the earliest each start was, by the controller's clock. A start is an
/// instant of the agent's clock with the offset of that clock.
pub(crate) fn start_skews(starts: &[(u64, i64)]) -> Vec<Nanos> {
    let here = |&(at_ns, offset_ns): &(u64, i64)| i128::from(at_ns) - i128::from(offset_ns);
    let earliest = starts.iter().map(here).min().unwrap_or_default();
    let skew = |start| Nanos(u64::try_from(here(start) - earliest).unwrap_or(u64::MAX));
    starts.iter().map(skew).collect()
}

/// `a - b`. Clocks count from the boot of their host: a difference of centuries is a fault of one
/// of them, and stays within what can be written.
fn difference(a: u64, b: u64) -> i64 {
    let difference = i128::from(a) - i128::from(b);
    difference.clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const HOUR_NS: i64 = 3_600_000_000_000;

    fn exchange(sent: u64, at_ns: u64, received: u64) -> Exchange {
        Exchange { sent: Nanos(sent), at_ns, received: Nanos(received) }
    }

    fn reading(exchanges: &[Exchange]) -> Reading {
        let mut all = Exchanges::default();
        exchanges.iter().for_each(|one| all.take(*one));
        assert_eq!(all.count() as usize, exchanges.len());
        all.reading().unwrap()
    }

    #[test]
    fn the_shortest_round_trip_counts() {
        let all = [exchange(0, 1_900, 2_000), exchange(3_000, 4_040, 3_100), exchange(5, 0, 900)];
        assert_eq!(reading(&all), Reading { offset_ns: 990, bound: Nanos(50) });
        assert_eq!(Exchanges::default().reading(), None);
        let odd = reading(&[exchange(10, 10, 15)]);
        assert_eq!(odd, Reading { offset_ns: -2, bound: Nanos(3) });
    }

    #[test]
    fn a_reading_translates_an_instant() {
        let behind = Reading { offset_ns: -500, bound: Nanos(1) };
        assert_eq!(behind.there(Nanos(700)), 200);
        assert_eq!(behind.there(Nanos(100)), 0, "before that clock began");
    }

    #[test]
    fn drift_widens_the_bound() {
        let before = Reading { offset_ns: 100, bound: Nanos(70) };
        let after = |offset_ns| Reading { offset_ns, bound: Nanos(40) };
        let wide = ClockOffset { offset_ns: 100, bound: Nanos(140), drift_ns: -100 };
        assert_eq!(before.until(&after(0)), wide);
        let within = ClockOffset { offset_ns: 100, bound: Nanos(70), drift_ns: 10 };
        assert_eq!(before.until(&after(110)), within);
    }

    #[test]
    fn starts_are_compared_on_the_controllers_clock() {
        let starts = [(1_000, 400), (50, -570), (u64::MAX, i64::MAX)];
        let skews = start_skews(&starts);
        assert_eq!(skews[..2], [Nanos(0), Nanos(20)]);
        assert!(skews[2].0 > 1 << 62);
        assert!(start_skews(&[]).is_empty());
    }

    #[test]
    fn clocks_that_are_centuries_apart_overflow_nothing() {
        let ends = [exchange(0, u64::MAX, 0), exchange(u64::MAX, 0, 0), exchange(9, 1, u64::MAX)];
        for one in ends {
            let reading = reading(&[one]);
            reading.until(&Reading { offset_ns: i64::MIN, bound: Nanos::MAX });
            reading.there(Nanos::MAX);
        }
    }

    /// A clock that runs at `drift_ppb` against the controller's.
    fn shown(here: u64, offset_ns: i64, drift_ppb: i64) -> i128 {
        let here = i128::from(here);
        here + i128::from(offset_ns) + here * i128::from(drift_ppb) / 1_000_000_000
    }

    proptest! {
        #[test]
        fn the_true_offset_is_within_the_bound_for_any_delays(
            offset_ns in 0..20 * HOUR_NS,
            delays in prop::collection::vec((0_u64..5_000_000_000, 0_u64..5_000_000_000), 1..20),
        ) {
            let mut now = 0;
            let exchanges: Vec<Exchange> = delays.iter().map(|(there, back)| {
                let sent = now;
                now += there + back;
                exchange(sent, sent + there + offset_ns as u64, now)
            }).collect();
            let reading = reading(&exchanges);
            prop_assert!(reading.offset_ns.abs_diff(offset_ns) <= reading.bound.0);
        }

        #[test]
        fn the_bound_covers_the_whole_point_for_any_steady_drift(
            offset_ns in 0..20 * HOUR_NS,
            drift_ppb in -200_000_i64..200_000,
            (there, back) in (0_u64..2_000_000, 0_u64..2_000_000),
            (there_later, back_later) in (0_u64..2_000_000, 0_u64..2_000_000),
            point_ns in 1_u64..600_000_000_000,
            instants in prop::collection::vec(0.0..1.0_f64, 1..20),
        ) {
            let at = |here| shown(here, offset_ns, drift_ppb) as u64;
            let before = reading(&[exchange(0, at(there), there + back)]);
            let (start, end) = (there + back, there + back + point_ns);
            let last = end + there_later + back_later;
            let after = reading(&[exchange(end, at(end + there_later), last)]);
            let combined = before.until(&after);
            for instant in instants {
                let here = start + (instant * point_ns as f64) as u64;
                let offset = (shown(here, offset_ns, drift_ppb) - i128::from(here)) as i64;
                prop_assert!(offset.abs_diff(combined.offset_ns) <= combined.bound.0);
            }
        }
    }
}
