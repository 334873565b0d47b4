//! M/M/c//N: a closed loop of N clients that think, and a server of c with exponential service.
//! Gross and Harris, Fundamentals of Queueing Theory, §2.8 (finite source).
//!
//! The law of the think times does not matter, only their mean: a thinking client waits for nobody.
//! A constant delay of the round trip is therefore think time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use plimsoll_model::calibrated::unit_from_bits;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng as _, SeedableRng as _};

use super::family::tolerance_interval;
use super::scatter::{REPLICATIONS, SEED};

/// Such a loop. Every client is always either thinking or at the server.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Loop {
    /// N.
    pub clients: u32,
    /// c.
    pub servers: u32,
    /// Mean service time; above 0.
    pub service_s: f64,
    /// Mean think time, exponential in a simulation; above 0.
    pub think_s: f64,
    /// Added to every think time: the round trip.
    pub delay_s: f64,
}

impl Loop {
    /// Mean time from a completion to the next arrival of the same client.
    fn away_s(&self) -> f64 {
        self.think_s + self.delay_s
    }

    /// Completions per second in the steady state.
    pub fn throughput_per_s(&self) -> f64 {
        let Self { clients, servers, service_s, .. } = *self;
        let busy = |k: u32| f64::from(k.min(servers));
        // Births over deaths: k at the server, N − k away, each of which comes at 1 / away.
        let (mut weight, mut sum, mut busy_sum) = (1.0, 1.0, 0.0);
        for k in 1..=clients {
            weight *= f64::from(clients - k + 1) / self.away_s() * service_s / busy(k);
            sum += weight;
            busy_sum += weight * busy(k);
        }
        busy_sum / sum / service_s
    }

    /// Mean time from arrival to completion in the steady state, by Little's law.
    pub fn mean_response_s(&self) -> f64 {
        f64::from(self.clients) / self.throughput_per_s() - self.away_s()
    }

    /// Throughputs of runs with this warm-up and window, from as many simulated runs as
    /// [`super::scatter`] takes: one more lies outside as rarely as [`super::family`] allows.
    pub fn throughput_interval_per_s(&self, warm_up_s: f64, window_s: f64) -> (f64, f64) {
        let throughputs: Vec<f64> = (0..REPLICATIONS)
            .map(|replication| self.simulate(warm_up_s, window_s, SEED + u64::from(replication)))
            .collect();
        tolerance_interval(&throughputs).unwrap_or((0.0, f64::INFINITY))
    }

    /// Completions per second within the window of a simulated run in which all begin by thinking.
    fn simulate(&self, warm_up_s: f64, window_s: f64, seed: u64) -> f64 {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut exponential =
            |mean_s: f64| -(1.0 - unit_from_bits(random.next_u64())).ln() * mean_s;
        let until = warm_up_s + window_s;
        let mut free: BinaryHeap<Reverse<Seconds>> =
            (0..self.servers).map(|_| Reverse(Seconds(0.0))).collect();
        let mut arrivals: BinaryHeap<Reverse<Seconds>> = (0..self.clients)
            .map(|_| Reverse(Seconds(exponential(self.think_s) + self.delay_s)))
            .collect();
        let mut completions = 0_u64;
        // In the order of arrival: a client comes back later than this one came.
        while let (Some(Reverse(Seconds(arrival))), Some(Reverse(Seconds(first_free)))) =
            (arrivals.pop(), free.pop())
        {
            if arrival >= until {
                break;
            }
            let end = first_free.max(arrival) + exponential(self.service_s);
            completions += u64::from((warm_up_s..until).contains(&end));
            free.push(Reverse(Seconds(end)));
            arrivals.push(Reverse(Seconds(end + exponential(self.think_s) + self.delay_s)));
        }
        completions as f64 / window_s
    }
}

/// An instant, with the order that floats as such do not have.
#[derive(Clone, Copy, Debug)]
struct Seconds(f64);

impl Ord for Seconds {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0)
    }
}

impl PartialOrd for Seconds {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Seconds {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Seconds {}

#[cfg(test)]
mod tests {
    use super::*;

    fn closed_loop(clients: u32, servers: u32, service_s: f64, think_s: f64) -> Loop {
        Loop { clients, servers, service_s, think_s, delay_s: 0.0 }
    }

    #[track_caller]
    fn near(actual: f64, expected: f64, tolerance: f64) {
        assert!((actual / expected - 1.0).abs() < tolerance, "{actual}, not {expected}");
    }

    #[test]
    fn loops_of_two_and_three_clients_are_as_computed_by_hand() {
        // Weights of 0, 1, 2 at the server: 1, 2, 2. Busy for 4/5 of the time.
        let two = closed_loop(2, 1, 1.0, 1.0);
        near(two.throughput_per_s(), 0.8, 1e-12);
        near(two.mean_response_s(), 1.5, 1e-12);
        // 1, 3/2, 3/4, 3/16: sum 55/16; (3/2 + 2 · 3/4 + 2 · 3/16) / (55/16) = 54/55.
        let three = closed_loop(3, 2, 1.0, 2.0);
        near(three.throughput_per_s(), 54.0 / 55.0, 1e-12);
        near(three.mean_response_s(), 3.0 * 55.0 / 54.0 - 2.0, 1e-12);
    }

    #[test]
    fn who_has_a_server_of_his_own_never_waits() {
        near(closed_loop(4, 4, 1e-3, 5e-3).mean_response_s(), 1e-3, 1e-9);
        near(closed_loop(1, 1, 2.0, 3.0).throughput_per_s(), 0.2, 1e-12);
    }

    #[test]
    fn a_crowd_that_hardly_thinks_gets_what_the_servers_can_do() {
        near(closed_loop(200, 4, 1e-3, 1e-3).throughput_per_s(), 4_000.0, 1e-9);
    }

    #[test]
    fn simulation_and_theory_agree_and_a_delay_is_think_time() {
        let plain = closed_loop(16, 4, 1e-3, 5e-3);
        near(plain.simulate(0.5, 200.0, 7), plain.throughput_per_s(), 0.005);
        let late = Loop { delay_s: 3e-3, ..plain };
        near(late.simulate(0.5, 200.0, 7), late.throughput_per_s(), 0.005);
        assert_eq!(late.throughput_per_s(), closed_loop(16, 4, 1e-3, 8e-3).throughput_per_s());
    }

    #[test]
    fn the_interval_holds_the_steady_state_but_not_that_of_a_loop_that_is_late() {
        let plain = closed_loop(16, 4, 1e-3, 5e-3);
        let (low, high) = plain.throughput_interval_per_s(0.2, 2.0);
        let inside = |x: f64| low < x && x < high;
        assert!(inside(plain.throughput_per_s()), "{low} to {high}");
        assert!(!inside(Loop { delay_s: 1e-3, ..plain }.throughput_per_s()), "{low} to {high}");
    }
}
