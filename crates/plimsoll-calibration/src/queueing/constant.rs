//! M/D/1: Poisson arrivals, a constant service, one server.
//!
//! Crommelin's formula for the waiting time is a sum with alternating signs, which a double cannot
//! hold for long waits. This is Franx's (Operations Research Letters 29, 2001, 221–223), whose
//! terms are all positive: with (k − 1)D ≤ t < kD and u = λ(kD − t),
//!
//! > P(W ≤ t) = e^−u · Σ_{j<k} Q_{k−1−j} · u^j / j!
//!
//! where Q_m is the probability that at most m customers wait (at most m + 1 are in the system).
//! Their probabilities come from the chain embedded at completions, by Ramaswami's recursion, which
//! has no subtraction either.

use super::crossing;

/// An M/D/1 queue in its steady state.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Constant {
    rate_per_s: f64,
    service_s: f64,
}

impl Constant {
    /// `None` without a steady state.
    pub fn new(rate_per_s: f64, service_s: f64) -> Option<Self> {
        let stable = rate_per_s > 0.0 && service_s > 0.0 && rate_per_s * service_s < 1.0;
        stable.then_some(Self { rate_per_s, service_s })
    }

    fn utilisation(&self) -> f64 {
        self.rate_per_s * self.service_s
    }

    /// Mean time from arrival to completion (Pollaczek and Khinchine).
    pub fn mean_response_s(&self) -> f64 {
        let rho = self.utilisation();
        self.service_s * (1.0 + rho / (2.0 * (1.0 - rho)))
    }

    /// Probability that an arrival waits no longer than this.
    pub fn wait_within(&self, time_s: f64) -> f64 {
        if time_s < 0.0 {
            return 0.0;
        }
        let k = (time_s / self.service_s).floor() as usize + 1;
        within(self.rate_per_s * (k as f64 * self.service_s - time_s), &self.at_most_waiting(k))
    }

    /// The response time that this share of responses does not exceed.
    pub fn response_quantile_s(&self, share: f64) -> f64 {
        if share <= 1.0 - self.utilisation() {
            // They do not wait at all.
            return self.service_s;
        }
        let wait =
            crossing(1.0 - share, 0.0, self.service_s, |time_s| 1.0 - self.wait_within(time_s));
        wait + self.service_s
    }

    /// Q_0 … Q_{count−1}: the probability that at most m customers wait.
    fn at_most_waiting(&self, count: usize) -> Vec<f64> {
        let in_system = self.in_system(count + 1);
        let mut sum = in_system[0];
        in_system[1..]
            .iter()
            .map(|p| {
                sum += p;
                sum
            })
            .collect()
    }

    /// Probabilities of 0 … count−1 customers in the system.
    fn in_system(&self, count: usize) -> Vec<f64> {
        let rho = self.utilisation();
        let more = more_than(rho, count + 2);
        let mut probabilities = vec![1.0 - rho];
        for n in 1..count {
            // more[i]: more than i arrivals within one service.
            let from_empty = probabilities[0] * more[n - 1];
            let from_others: f64 = (1..n).map(|k| probabilities[k] * more[n - k]).sum();
            probabilities.push((from_empty + from_others) / (1.0 - more[0]));
        }
        probabilities
    }
}

fn within(u: f64, at_most: &[f64]) -> f64 {
    let mut weight = (-u).exp();
    let mut sum = 0.0;
    for (j, q) in at_most.iter().rev().enumerate() {
        sum += weight * q;
        weight *= u / (j + 1) as f64;
    }
    sum.min(1.0)
}

/// Probabilities that a Poisson number with this mean is more than 0, 1, … count−1: each summed
/// from its small end.
fn more_than(mean: f64, count: usize) -> Vec<f64> {
    /// With a mean below 1 the terms after these are below 10⁻³⁰⁰.
    const TERMS_BEYOND: usize = 170;
    let mut term = (-mean).exp();
    let mut terms = vec![term];
    for n in 1..count + TERMS_BEYOND {
        term *= mean / n as f64;
        terms.push(term);
    }
    let mut beyond = vec![0.0; count];
    let mut sum = 0.0;
    for n in (1..terms.len()).rev() {
        sum += terms[n];
        if n <= count {
            beyond[n - 1] = sum;
        }
    }
    beyond
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn near(actual: f64, expected: f64, tolerance: f64) {
        assert!((actual - expected).abs() < tolerance, "{actual}, not {expected}");
    }

    /// Crommelin's formula, sound while the wait is a few services long.
    fn crommelin(rho: f64, services: f64) -> f64 {
        let sum: f64 = (0..=services.floor() as u32)
            .map(|k| {
                let x = rho * (services - f64::from(k));
                let factorial: f64 = (1..=k).map(f64::from).product();
                (-x).powi(k as i32) / factorial * x.exp()
            })
            .sum();
        (1.0 - rho) * sum
    }

    #[test]
    fn the_mean_is_that_of_pollaczek_and_khinchine() {
        // 0.5 ms · (1 + 0.9 / 0.2), by hand.
        near(Constant::new(1_800.0, 0.5e-3).unwrap().mean_response_s(), 2.75e-3, 1e-15);
    }

    #[test]
    fn short_waits_agree_with_crommelins_formula() {
        for rho in [0.3, 0.6, 0.9] {
            let queue = Constant::new(rho, 1.0).unwrap();
            near(queue.wait_within(0.0), 1.0 - rho, 1e-14);
            for step in 0..70 {
                let services = f64::from(step) / 10.0;
                near(queue.wait_within(services), crommelin(rho, services), 1e-11);
            }
        }
    }

    #[test]
    fn long_waits_fall_off_exponentially() {
        // P(W > t) ~ C e^{−θt}, with ρ (e^θ − 1) = θ. At 0.9, θ = 0.207147…
        let queue = Constant::new(0.9, 1.0).unwrap();
        let theta = crossing(0.0, 1e-3, 0.1, |x: f64| x - 0.9 * (x.exp() - 1.0));
        for t in [20.0, 40.0, 80.0] {
            let ratio = (1.0 - queue.wait_within(t + 1.0)) / (1.0 - queue.wait_within(t));
            near(ratio, (-theta).exp(), 1e-6);
        }
    }

    #[test]
    fn the_tail_integrates_to_the_mean() {
        for rho in [0.3, 0.9] {
            let queue = Constant::new(rho, 1.0).unwrap();
            let step = 0.01;
            let wait: f64 = (0..12_000)
                .map(|i| (1.0 - queue.wait_within((f64::from(i) + 0.5) * step)) * step)
                .sum();
            near(wait + 1.0, queue.mean_response_s(), 1e-4);
        }
    }

    #[test]
    fn those_who_do_not_wait_take_the_service_time() {
        let queue = Constant::new(300.0, 1e-3).unwrap();
        near(queue.response_quantile_s(0.5), 1e-3, 1e-15);
        assert!(queue.response_quantile_s(0.95) > 1e-3);
    }
}
