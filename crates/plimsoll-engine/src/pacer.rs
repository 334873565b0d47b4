//! When ops are due. Pure: a function of rate, inter-arrival times and seed; no clock.
//!
//! Due times are absolute, in nanoseconds from the start of the point. Lateness is measured against
//! the schedule, so a slow reply cannot hide the ops that waited behind it (coordinated omission).

use std::sync::Arc;

use plimsoll_model::assignment::Load;
use plimsoll_model::suite::{InterArrival, Think, ThinkDistribution};
use plimsoll_model::units::{NANOS_PER_SECOND, Nanos, OpsPerSec};

use crate::rng::{Random, Stream};
use crate::summed_rate::SummedRate;

/// Due times that were recorded: those of a whole schedule, which begins anew after its end.
#[derive(Clone, Debug)]
pub struct Recorded {
    /// Since the first op, in order.
    offsets: Arc<[Nanos]>,
    length: Nanos,
}

impl Recorded {
    /// A schedule of two ops at least, not all at one instant; `None` for others. After the last
    /// op it begins anew, at the distance that ops have on average.
    pub fn new(offsets: impl Into<Arc<[Nanos]>>) -> Option<Self> {
        let offsets: Arc<[Nanos]> = offsets.into();
        let last = offsets.last().copied().filter(|last| *last > Nanos::ZERO)?;
        let intervals = offsets.len() as u64 - 1;
        let length = Nanos(last.0.saturating_add(last.0 / intervals.max(1)));
        Some(Self { offsets, length })
    }

    /// Ops of it.
    pub fn ops(&self) -> u64 {
        self.offsets.len() as u64
    }

    /// Those due before `span`, as the recorded clock has it.
    pub fn ops_within(&self, span: Nanos) -> u64 {
        self.offsets.partition_point(|due| *due < span) as u64
    }

    /// From its first op to its next repetition.
    pub const fn length(&self) -> Nanos {
        self.length
    }

    /// Ops per second as they were recorded.
    pub fn rate(&self) -> f64 {
        self.offsets.len() as f64 / self.length.as_secs_f64()
    }

    /// Of op `index`, as recorded.
    fn due_ns(&self, index: u64) -> f64 {
        let (round, at) = (index / self.ops(), index % self.ops());
        round as f64 * self.length.0 as f64 + self.offsets[at as usize].0 as f64
    }
}

/// The due times of one schedule, in order, without end.
#[derive(Clone, Debug)]
pub struct Arrivals {
    inter_arrival: InterArrivalState,
    /// Time between ops on average; `None` for a rate of zero. Where the rate changes, that of its
    /// sum instead.
    mean_interval_ns: Option<f64>,
    index: u64,
    /// Turns sums into instants where the rate changes.
    summed: Option<SummedRate>,
}

#[derive(Clone, Debug)]
enum InterArrivalState {
    /// due(n) = (n + phase) · interval, computed from n so that errors do not accumulate.
    Uniform { phase: f64 },
    /// The sum of the intervals so far. A float holds whole nanoseconds exactly up to 104 days.
    Exponential { random: Random, sum_ns: f64 },
    /// due(n) as recorded, faster or slower by the load's rate.
    Recorded(Recorded),
}

impl Arrivals {
    /// The schedule of client `client` of `clients`, which share `rate` equally. A shared schedule
    /// is client 0 of 1. Evenly spaced clients interleave: client i starts i/n of an interval
    /// later.
    pub fn new(
        rate: OpsPerSec,
        inter_arrival: InterArrival,
        seed: u64,
        client: u32,
        clients: u32,
    ) -> Self {
        let mean_interval_ns =
            (rate.get() > 0.0).then(|| f64::from(clients) * NANOS_PER_SECOND as f64 / rate.get());
        let inter_arrival = match inter_arrival {
            InterArrival::Uniform => {
                InterArrivalState::Uniform { phase: f64::from(client) / f64::from(clients) }
            }
            InterArrival::Exponential => InterArrivalState::Exponential {
                random: Random::new(seed, Stream::Arrivals, u64::from(client)),
                sum_ns: 0.0,
            },
        };
        Self { inter_arrival, mean_interval_ns, index: 0, summed: None }
    }

    /// The same with a rate that changes; these schedules end with it.
    pub fn changing(
        rate: SummedRate,
        inter_arrival: InterArrival,
        seed: u64,
        client: u32,
        clients: u32,
    ) -> Self {
        let one = OpsPerSec::new(1.0).unwrap_or_default();
        let steady = Self::new(one, inter_arrival, seed, client, clients);
        Self { mean_interval_ns: Some(f64::from(clients)), summed: Some(rate), ..steady }
    }

    /// A recorded schedule at another rate: its times are as much closer together as that is
    /// higher.
    pub fn recorded(recorded: Recorded, rate: OpsPerSec) -> Self {
        let mean_interval_ns = (rate.get() > 0.0).then(|| NANOS_PER_SECOND as f64 / rate.get());
        Self {
            inter_arrival: InterArrivalState::Recorded(recorded),
            mean_interval_ns,
            index: 0,
            summed: None,
        }
    }
}

/// Yields the index in the schedule and the due time of each op.
impl Iterator for Arrivals {
    type Item = (u64, Nanos);

    fn next(&mut self) -> Option<(u64, Nanos)> {
        let mean_ns = self.mean_interval_ns?;
        let index = self.index;
        self.index += 1;
        let due_ns = match &mut self.inter_arrival {
            InterArrivalState::Uniform { phase } => (index as f64 + *phase) * mean_ns,
            InterArrivalState::Exponential { random, sum_ns } => {
                *sum_ns += random.exponential() * mean_ns;
                *sum_ns
            }
            InterArrivalState::Recorded(recorded) => {
                let recorded_mean_ns = recorded.length.0 as f64 / recorded.ops() as f64;
                recorded.due_ns(index) * (mean_ns / recorded_mean_ns)
            }
        };
        match &mut self.summed {
            None => Some((index, Nanos(due_ns as u64))),
            Some(summed) => Some((index, summed.instant(due_ns)?)),
        }
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

/// When a client of a closed load begins, and the whole think time that ends then.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClientStart {
    /// After the load point's begin.
    pub at: Nanos,
    /// Zero where it does not start thinking.
    pub think: Nanos,
}

impl ClientStart {
    /// Of client `client`: within the load's start delay, or after the rest of a think time at a
    /// random instant within it. Such clients are not synchronised, and their requests come at the
    /// same rate from the first moment.
    pub fn draw(load: &Load, seed: u64, client: u32) -> Self {
        let Load::Closed { think, start_delay_ns, starts_thinking, .. } = load else {
            return Self::default();
        };
        let mut random = Random::new(seed, Stream::StartDelay, u64::from(client));
        let mean = think.mean.0 as f64;
        // A client is more likely to be in a long think time than in a short one.
        let (think_ns, left_ns) = match (starts_thinking, think.distribution) {
            (false, _) => (0.0, start_delay_ns.0 as f64 * random.unit()),
            (true, ThinkDistribution::Constant) => (mean, mean * random.unit()),
            (true, ThinkDistribution::Uniform) => {
                let think_ns = 2.0 * mean * random.unit().sqrt();
                (think_ns, think_ns * random.unit())
            }
            (true, ThinkDistribution::Exponential) => {
                let left_ns = mean * random.exponential();
                (left_ns + mean * random.exponential(), left_ns)
            }
        };
        Self { at: Nanos(left_ns as u64), think: Nanos(think_ns as u64) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_model::load_shape::LoadShape;
    use plimsoll_model::suite::InterArrival::{Exponential, Uniform};

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
            let inter_arrival = if case % 2 == 0 { Uniform } else { Exponential };
            let mut arrivals = Arrivals::new(rate(ops_per_s), inter_arrival, case, 0, 1);
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
    fn a_recorded_schedule_keeps_its_times_at_its_own_rate_and_at_any_other() {
        let offsets = [0, 10, 10, 35].map(Nanos::from_millis);
        let recorded = Recorded::new(offsets).unwrap();
        assert_eq!((recorded.ops(), recorded.ops_within(Nanos::from_millis(10))), (4, 1));
        let dues = |speed: f64| -> Vec<u64> {
            let rate = rate(recorded.rate() * speed);
            let all = Arrivals::recorded(recorded.clone(), rate).take(6);
            all.map(|(_, due)| (due.0 as f64 / 1e3).round() as u64).collect()
        };
        // The interval after the last op is the mean of the others.
        assert_eq!(dues(1.0), [0, 10_000, 10_000, 35_000, 46_667, 56_667]);
        assert_eq!(dues(2.0), [0, 5_000, 5_000, 17_500, 23_333, 28_333]);
        assert!(Recorded::new([Nanos::ZERO; 3]).is_none());
        assert!(Recorded::new([]).is_none());
    }

    #[test]
    fn a_changing_rate_has_as_many_arrivals_in_each_second_as_its_mean_there() {
        let shape = LoadShape::parse("ramp 0..1k in 10s, hold 10s, pulse 3x for 5s", None).unwrap();
        for (inter_arrival, deviations) in [(Uniform, 0.2), (Exponential, 4.5)] {
            let of_client = |client| {
                let rate = SummedRate::new(&shape, Nanos::ZERO, 1.0);
                Arrivals::changing(rate, inter_arrival, 9, client, 4)
            };
            let all: Vec<Nanos> = (0..4).flat_map(of_client).map(|(_, due)| due).collect();
            for second in 0..25 {
                let [from, to] = [second, second + 1].map(Nanos::from_secs);
                let count = all.iter().filter(|due| (from..to).contains(due)).count() as f64;
                let expected = shape.mean(from, to);
                let allowed = deviations * expected.sqrt() + 4.0;
                assert!((count - expected).abs() <= allowed, "{second}: {count} {expected}");
            }
            assert!(all.iter().all(|due| *due < Nanos::from_secs(25)), "it ends");
        }
    }

    #[test]
    fn a_rate_of_zero_has_no_arrivals() {
        assert_eq!(Arrivals::new(rate(0.0), Uniform, 1, 0, 1).next(), None);
    }

    #[test]
    fn clients_that_start_thinking_send_at_one_rate_after_think_times_of_one_mean() {
        let laws = [
            ThinkDistribution::Constant,
            ThinkDistribution::Uniform,
            ThinkDistribution::Exponential,
        ];
        for distribution in laws {
            let think = Think { mean: Nanos::from_secs(1), distribution };
            let load = Load::Closed {
                clients: 20_000,
                think: think.clone(),
                start_delay_ns: Nanos::ZERO,
                starts_thinking: true,
                axis_think_ns: None,
            };
            // Requests of 20,000 clients in each of twenty tenths of a second: 2,000 are due, with
            // think times of 2,000 s in total.
            let mut counts = [(0_u32, 0.0); 20];
            for client in 0..20_000 {
                let mut thinker = Thinker::new(think.clone(), 7, client);
                let ClientStart { mut at, think: mut thought } =
                    ClientStart::draw(&load, 7, client);
                while let Some((n, thought_s)) = counts.get_mut((at.0 / 100_000_000) as usize) {
                    (*n, *thought_s) = (*n + 1, *thought_s + thought.as_secs_f64());
                    thought = thinker.draw();
                    at += thought;
                }
            }
            let as_due = |(n, thought_s): &(u32, f64)| {
                n.abs_diff(2_000) < 250 && (thought_s - 2_000.0).abs() < 250.0
            };
            assert!(counts.iter().all(as_due), "{distribution:?} {counts:?}");
        }
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
