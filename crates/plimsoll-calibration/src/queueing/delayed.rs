//! Response times when each also takes a delay of known distribution.
//!
//! A percentile of a sum is not the sum of percentiles. Where one op in a hundred is delayed by
//! milliseconds, p95 moves too, since that op moves from the bulk to the tail, and how far depends
//! on the law of the rest. So the delays are drawn and added, response by response.

use plimsoll_model::calibrated::unit_from_bits;
use plimsoll_model::event::Times;
use plimsoll_model::units::{NANOS_PER_SECOND, Nanos};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng as _, SeedableRng as _};

use super::scatter::SEED;

/// A measured distribution of delays, to draw from.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Delays {
    /// Samples up to and with a value, and the value in seconds.
    steps: Vec<(u64, f64)>,
}

impl Delays {
    /// From the measured times, less `baseline` each.
    pub fn beyond(times: &Times, baseline: Nanos) -> Self {
        let mut samples = 0;
        let step = |value: hdrhistogram::iterators::IterationValue<u32>| {
            samples += value.count_since_last_iteration();
            let beyond_ns = value.value_iterated_to().saturating_sub(baseline.0);
            (samples, beyond_ns as f64 / NANOS_PER_SECOND as f64)
        };
        Self { steps: times.iter_recorded().map(step).collect() }
    }

    /// The delay at `unit`, from 0 to 1, of the distribution; 0 of an empty one.
    fn quantile_s(&self, unit: f64) -> f64 {
        let Some((samples, _)) = self.steps.last() else { return 0.0 };
        let rank = unit * *samples as f64;
        let step = self.steps.partition_point(|(up_to, _)| *up_to as f64 <= rank);
        self.steps[step.min(self.steps.len() - 1)].1
    }
}

/// Each response plus one independently drawn delay of each distribution. The draws are the same
/// every time, so that a certificate can be checked.
pub fn delayed(responses_s: &[f64], delays: &[&Delays]) -> Vec<f64> {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(SEED);
    let mut draw = |delays: &&Delays| delays.quantile_s(unit_from_bits(random.next_u64()));
    responses_s
        .iter()
        .map(|response| response + delays.iter().map(&mut draw).sum::<f64>())
        .collect()
}

#[cfg(test)]
mod tests {
    use plimsoll_model::certificate::Statistic;
    use plimsoll_model::event::new_times;

    use super::super::scatter::figure;
    use super::*;

    fn delays(samples: &[(u64, u32)]) -> Delays {
        let mut times = new_times();
        for (delay_us, count) in samples {
            times.record_n(1_000_000 + delay_us * 1_000, *count).unwrap();
        }
        Delays::beyond(&times, Nanos::from_millis(1))
    }

    /// Evenly over a millisecond.
    fn responses() -> Vec<f64> {
        (0..100_000).map(|i| f64::from(i) * 1e-8).collect()
    }

    #[test]
    fn a_constant_delay_moves_everything_by_itself() {
        let mut moved = delayed(&responses(), &[&delays(&[(500, 10)])]);
        for (statistic, expected_s) in [(Statistic::Mean, 1.0e-3), (Statistic::P99, 1.49e-3)] {
            let actual = figure(&mut moved, statistic).unwrap();
            assert!((actual - expected_s).abs() < 2e-6, "{statistic:?} {actual}");
        }
    }

    #[test]
    fn one_long_delay_in_fifty_moves_p95_by_what_it_takes_from_the_bulk() {
        // Two of the five hundredths beyond p95 are now the delayed: 97 of the other 98 are below
        // the new one, at 95/98 of the millisecond.
        let mut moved = delayed(&responses(), &[&delays(&[(0, 98), (10_000, 2)])]);
        let p95_s = figure(&mut moved, Statistic::P95).unwrap();
        assert!((p95_s - 95.0 / 98.0 * 1e-3).abs() < 3e-6, "{p95_s}");
        assert!(figure(&mut moved, Statistic::P99).unwrap() > 10e-3);
    }

    #[test]
    fn several_delays_add_up_and_none_changes_nothing() {
        let half = delays(&[(250, 1)]);
        let mut moved = delayed(&responses(), &[&half, &half, &Delays::default()]);
        let mean_s = figure(&mut moved, Statistic::Mean).unwrap();
        assert!((mean_s - 1.0e-3).abs() < 2e-6, "{mean_s}");
        assert_eq!(delayed(&responses(), &[]), responses());
    }
}
