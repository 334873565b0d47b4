//! How far another host's clock is off, by the exchange with the shortest round trip. Pure.

use crate::clock_step::ClockReading;

const NANOS_PER_MILLI: f64 = 1e6;

/// Another clock's reading less this host's, and by how much that may be wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ClockOffset {
    offset_ns: i128,
    error_ns: u64,
}

impl ClockOffset {
    /// Of one exchange. The other clock was read somewhere between question and answer, so the
    /// error is half the round trip, and half of the step in which that clock was told.
    pub(super) fn of(asked: ClockReading, answered_ns: u64, told_ns: u64, step_ns: u64) -> Self {
        let half = answered_ns.saturating_sub(asked.monotonic_ns) / 2;
        let here = i128::from(asked.unix_ns) + i128::from(half);
        Self {
            offset_ns: i128::from(told_ns) + i128::from(step_ns / 2) - here,
            error_ns: half.saturating_add(step_ns / 2),
        }
    }

    /// The one that is known better.
    pub(super) fn better(self, other: Self) -> Self {
        if other.error_ns < self.error_ns { other } else { self }
    }

    /// For the disclosure.
    pub(super) fn text(self, exchanges: usize) -> String {
        let ms = self.offset_ns as f64 / NANOS_PER_MILLI;
        let error = self.error_ns as f64 / NANOS_PER_MILLI;
        let way = if ms < 0.0 { "behind" } else { "ahead of" };
        let of = match exchanges {
            0 | 1 => "one round trip".to_owned(),
            n => format!("the shortest of {n} round trips"),
        };
        format!(
            "{:.2} ms {way} this host's, give or take {error:.2} ms ({of}); samples carry this \
             host's time",
            ms.abs()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ASKED: ClockReading = ClockReading { unix_ns: 5_000_000_000, monotonic_ns: 100 };

    #[test]
    fn the_shortest_round_trip_tells_best_and_its_half_is_the_error() {
        let slow = ClockOffset::of(ASKED, 100 + 8_000_000, 5_007_000_000, 0);
        let quick = ClockOffset::of(ASKED, 100 + 1_000_000, 5_002_000_000, 0);
        let best = slow.better(quick);
        assert_eq!(best, quick.better(slow));
        let text = best.text(2);
        assert!(text.starts_with("1.50 ms ahead of this host's, give or take 0.50 ms"), "{text}");
    }

    #[test]
    fn a_clock_told_in_seconds_is_known_to_half_a_second() {
        let offset = ClockOffset::of(ASKED, 100, 4_000_000_000, 1_000_000_000);
        assert_eq!(offset, ClockOffset { offset_ns: -500_000_000, error_ns: 500_000_000 });
        assert!(offset.text(1).contains("behind"), "{}", offset.text(1));
    }
}
