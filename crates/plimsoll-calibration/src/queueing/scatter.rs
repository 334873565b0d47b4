//! How far a run of a given length may lie from the steady state, from many simulations of the same
//! queue. At 90 % utilisation and 60 s, the mean alone varies by 2.6 %.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use plimsoll_model::calibrated::{ServiceLaw, unit_from_bits};
use plimsoll_model::certificate::Statistic;
use plimsoll_model::units::NANOS_PER_SECOND;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng as _, SeedableRng as _};

use super::family::tolerance_interval;

/// Simulated runs: enough to know the spread of a figure to a tenth.
pub const REPLICATIONS: u32 = 199;
/// Seed of the first; fixed, so that the interval belongs to the case and not to the run.
pub(super) const SEED: u64 = 0x506C_696D;

/// A run to simulate: Poisson arrivals, first come first served.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Plan {
    /// Arrivals per second.
    pub rate_per_s: f64,
    /// Law of the service times.
    pub service: ServiceLaw,
    /// How many servers.
    pub servers: u32,
    /// The queue starts empty this long before the window.
    pub warm_up_s: f64,
    /// Length of the window: responses of those who arrive in it count.
    pub window_s: f64,
}

/// Lowest and highest value of each statistic, in seconds.
#[derive(Clone, Debug, PartialEq)]
pub struct Scatter(Vec<(Statistic, f64, f64)>);

impl Scatter {
    /// The interval of a statistic; `None` when no simulated run had an arrival.
    pub fn interval_s(&self, statistic: Statistic) -> Option<(f64, f64)> {
        let entry = self.0.iter().find(|(of, ..)| *of == statistic);
        entry.map(|(_, low, high)| (*low, *high))
    }
}

/// Simulates [`REPLICATIONS`] runs: for each statistic the interval that one more run leaves as
/// rarely as [`super::family`] allows.
pub fn scatter(plan: &Plan) -> Scatter {
    let mut all = Statistic::ALL.map(|statistic| (statistic, Vec::new()));
    for replication in 0..REPLICATIONS {
        let mut responses = simulate(plan, SEED + u64::from(replication));
        for (statistic, values) in &mut all {
            values.extend(figure(&mut responses, *statistic));
        }
    }
    let interval = |(statistic, values): &(Statistic, Vec<f64>)| {
        let (low, high) = tolerance_interval(values)?;
        Some((*statistic, low, high))
    };
    Scatter(all.iter().filter_map(interval).collect())
}

/// Response times, in seconds, of one simulated run.
pub fn simulate(plan: &Plan, seed: u64) -> Vec<f64> {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut unit = || unit_from_bits(random.next_u64());
    let servers = plan.servers.max(1);
    let mut free: BinaryHeap<Reverse<u64>> = (0..servers).map(|_| Reverse(0)).collect();
    let to_ns = |seconds: f64| seconds * NANOS_PER_SECOND as f64;
    let (from, until) = (to_ns(plan.warm_up_s), to_ns(plan.warm_up_s + plan.window_s));
    let mean_inter_arrival = to_ns(1.0 / plan.rate_per_s);
    let mut responses = Vec::with_capacity((plan.rate_per_s * plan.window_s * 1.1) as usize);
    let mut now = 0.0;
    loop {
        now -= (1.0 - unit()).ln() * mean_inter_arrival;
        if now >= until {
            return responses;
        }
        let Some(Reverse(first_free)) = free.pop() else { return responses };
        // Whole nanoseconds, as in a server's log: a constant is the same constant there.
        let arrival = now as u64;
        let end = first_free.max(arrival) + plan.service.draw(&mut unit).0;
        free.push(Reverse(end));
        if now >= from {
            responses.push((end - arrival) as f64 / NANOS_PER_SECOND as f64);
        }
    }
}

/// A statistic of values, which are reordered; `None` without any.
pub fn figure(values: &mut [f64], statistic: Statistic) -> Option<f64> {
    let n = values.len();
    if n == 0 {
        return None;
    }
    let Some(share) = statistic.share() else {
        return Some(values.iter().sum::<f64>() / n as f64);
    };
    let rank = ((share * n as f64).ceil() as usize).clamp(1, n);
    let (_, value, _) = values.select_nth_unstable_by(rank - 1, f64::total_cmp);
    Some(*value)
}

#[cfg(test)]
mod tests {
    use super::super::Queue;
    use super::*;

    fn plan(window_s: f64) -> Plan {
        let service = "exp:1ms".parse().unwrap();
        Plan { rate_per_s: 3_600.0, service, servers: 4, warm_up_s: 0.5, window_s }
    }

    #[test]
    fn percentiles_are_order_statistics() {
        let mut values: Vec<f64> = (1..=1_000).rev().map(f64::from).collect();
        assert_eq!(figure(&mut values, Statistic::P50), Some(500.0));
        assert_eq!(figure(&mut values, Statistic::P999), Some(999.0));
        assert_eq!(figure(&mut values, Statistic::Mean), Some(500.5));
        assert_eq!(figure(&mut [], Statistic::P50), None);
    }

    #[test]
    fn the_interval_holds_the_steady_state_and_narrows_with_the_window() {
        let queue = Queue::from_rate(3_600.0, plan(1.0).service, 4).unwrap();
        let (short, long) = (scatter(&plan(0.5)), scatter(&plan(4.0)));
        for statistic in Statistic::ALL {
            let exact = queue.response_s(statistic);
            let (low, high) = long.interval_s(statistic).unwrap();
            assert!(low < exact && exact < high, "{statistic:?}: {exact} not in {low}..{high}");
            let (wider_low, wider_high) = short.interval_s(statistic).unwrap();
            assert!(wider_high / wider_low > high / low, "{statistic:?}");
        }
    }

    #[test]
    fn the_same_case_has_the_same_interval() {
        assert_eq!(scatter(&plan(0.1)), scatter(&plan(0.1)));
    }
}
