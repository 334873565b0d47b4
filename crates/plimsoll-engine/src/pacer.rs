//! When ops are due. Pure: a function of rate, gaps and seed; no clock.
//!
//! Due times are absolute, in nanoseconds from the start of the point. A late op is late by
//! however much the schedule says, so a slow reply cannot hide the ops that waited behind it
//! (coordinated omission).

use plimsoll_model::suite::{Gaps, Think, ThinkDistribution};
use plimsoll_model::units::{NANOS_PER_SECOND, Nanos, OpsPerSec};

use crate::rng::{Random, Stream};

/// The due times of one schedule, in order, without end.
#[derive(Clone, Debug)]
pub struct Arrivals {
    gaps: GapState,
    /// Time between ops on average; `None` for a rate of zero.
    mean_gap_ns: Option<f64>,
    index: u64,
}

#[derive(Clone, Debug)]
enum GapState {
    /// due(n) = (n + phase) · gap, computed from n so that no error adds up.
    Uniform { phase: f64 },
    /// The sum of gaps so far. A float holds whole nanoseconds exactly up to 104 days.
    Exponential { random: Random, sum_ns: f64 },
}

impl Arrivals {
    /// The schedule of client `client` of `clients`, which share `rate` equally. A shared schedule
    /// is client 0 of 1. Evenly spaced clients interleave: client i starts i/n of a gap later.
    pub fn new(rate: OpsPerSec, gaps: Gaps, seed: u64, client: u32, clients: u32) -> Self {
        let mean_gap_ns =
            (rate.get() > 0.0).then(|| f64::from(clients) * NANOS_PER_SECOND as f64 / rate.get());
        let gaps = match gaps {
            Gaps::Uniform => GapState::Uniform { phase: f64::from(client) / f64::from(clients) },
            Gaps::Exponential => GapState::Exponential {
                random: Random::new(seed, Stream::Arrivals, u64::from(client)),
                sum_ns: 0.0,
            },
        };
        Self { gaps, mean_gap_ns, index: 0 }
    }
}

/// Of each op its index in the schedule and its due time.
impl Iterator for Arrivals {
    type Item = (u64, Nanos);

    fn next(&mut self) -> Option<(u64, Nanos)> {
        let gap = self.mean_gap_ns?;
        let index = self.index;
        self.index += 1;
        let due_ns = match &mut self.gaps {
            GapState::Uniform { phase } => (index as f64 + *phase) * gap,
            GapState::Exponential { random, sum_ns } => {
                *sum_ns += random.exponential() * gap;
                *sum_ns
            }
        };
        Some((index, Nanos(due_ns as u64)))
    }
}

/// Draws think times of one client.
#[derive(Clone, Debug)]
pub struct Thinker {
    think: Think,
    random: Random,
}

impl Thinker {
    /// Think times of `client`.
    pub fn new(think: Think, seed: u64, client: u32) -> Self {
        Self { think, random: Random::new(seed, Stream::Think, u64::from(client)) }
    }

    /// The next pause.
    pub fn draw(&mut self) -> Nanos {
        let mean = self.think.mean.0 as f64;
        if self.think.mean == Nanos::ZERO {
            return Nanos::ZERO;
        }
        let ns = match self.think.distribution {
            ThinkDistribution::Constant => mean,
            ThinkDistribution::Uniform => 2.0 * mean * self.random.unit(),
            ThinkDistribution::Exponential => mean * self.random.exponential(),
        };
        Nanos(ns as u64)
    }
}

/// When client `client` of a closed load begins.
pub fn start_delay(span: Nanos, seed: u64, client: u32) -> Nanos {
    let unit = Random::new(seed, Stream::StartDelay, u64::from(client)).unit();
    Nanos((span.0 as f64 * unit) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_model::suite::Gaps::{Exponential, Uniform};

    fn rate(value: f64) -> OpsPerSec {
        OpsPerSec::new(value).unwrap()
    }

    fn dues(arrivals: Arrivals, until: Nanos) -> Vec<u64> {
        arrivals.map(|(_, due)| due.0).take_while(|due| *due < until.0).collect()
    }

    #[test]
    fn uniform_gaps_never_drift() {
        for (ops_per_s, index, expected_ns) in
            [(1_000.0, 999u64, 999_000_000u64), (3.0, 3_000_000, 1_000_000_000_000_000)]
        {
            let mut arrivals = Arrivals::new(rate(ops_per_s), Uniform, 1, 0, 1);
            arrivals.index = index;
            let (_, due) = arrivals.next().unwrap();
            assert!(due.0.abs_diff(expected_ns) <= 1, "{ops_per_s} {index}: {due:?}");
        }
    }

    #[test]
    fn clients_with_uniform_gaps_interleave_into_one_even_schedule() {
        let until = Nanos::from_secs(1);
        let mut all: Vec<u64> = (0..8)
            .flat_map(|client| dues(Arrivals::new(rate(800.0), Uniform, 1, client, 8), until))
            .collect();
        all.sort_unstable();
        let one = dues(Arrivals::new(rate(800.0), Uniform, 1, 0, 1), until);
        assert_eq!(all.len(), one.len());
        assert!(all.iter().zip(&one).all(|(a, b)| a.abs_diff(*b) <= 1));
    }

    #[test]
    fn exponential_gaps_make_a_poisson_process() {
        let until = Nanos::from_secs(100);
        let all = dues(Arrivals::new(rate(1_000.0), Exponential, 42, 0, 1), until);
        // 100,000 expected, standard deviation 316.
        assert!(all.len().abs_diff(100_000) < 1_300, "{}", all.len());
        let mut counts = vec![0u32; 10_000];
        all.iter().for_each(|due| counts[(due / 10_000_000) as usize] += 1);
        let mean = all.len() as f64 / 10_000.0;
        let variance =
            counts.iter().map(|c| (f64::from(*c) - mean).powi(2)).sum::<f64>() / 10_000.0;
        assert!((variance / mean - 1.0).abs() < 0.06, "dispersion {}", variance / mean);
    }

    #[test]
    fn a_million_random_schedules_are_monotonic_and_hold_their_rate() {
        let mut random = Random::new(3, Stream::Script, 0);
        for case in 0..1_000u64 {
            let ops_per_s = 10f64.powf(random.unit() * 6.0);
            let gaps = if case % 2 == 0 { Uniform } else { Exponential };
            let mut arrivals = Arrivals::new(rate(ops_per_s), gaps, case, 0, 1);
            let mut last = 0;
            for expected in 0..1_000 {
                let (index, due) = arrivals.next().unwrap();
                assert!(index == expected && due.0 >= last);
                last = due.0;
            }
            let mean = last as f64 / 1_000.0 * ops_per_s / 1e9;
            assert!((mean - 1.0).abs() < 0.2, "case {case}: mean gap {mean}");
        }
    }

    #[test]
    fn a_rate_of_zero_has_no_arrivals() {
        assert_eq!(Arrivals::new(rate(0.0), Uniform, 1, 0, 1).next(), None);
    }

    #[test]
    fn think_times_have_their_mean() {
        for distribution in [
            ThinkDistribution::Constant,
            ThinkDistribution::Uniform,
            ThinkDistribution::Exponential,
        ] {
            let think = Think { mean: Nanos::from_millis(10), distribution };
            let mut thinker = Thinker::new(think, 5, 1);
            let mean = (0..100_000).map(|_| thinker.draw().0 as f64).sum::<f64>() / 1e5;
            assert!((mean / 1e7 - 1.0).abs() < 0.02, "{distribution:?} {mean}");
        }
    }
}
