//! M/M/c: Poisson arrivals, exponential service, c servers, first come first served.
//! Gross and Harris, Fundamentals of Queueing Theory, §2.3.

use super::crossing;

/// An M/M/c queue in its steady state.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Markov {
    rate_per_s: f64,
    /// μ: services per second of one server.
    service_rate_per_s: f64,
    servers: u32,
    wait_probability: f64,
}

impl Markov {
    /// `None` without a steady state: at least one server must be idle at times.
    pub fn new(rate_per_s: f64, mean_service_s: f64, servers: u32) -> Option<Self> {
        let offered = rate_per_s * mean_service_s;
        let stable = rate_per_s > 0.0 && mean_service_s > 0.0 && offered < f64::from(servers);
        stable.then(|| Self {
            rate_per_s,
            service_rate_per_s: 1.0 / mean_service_s,
            servers,
            wait_probability: erlang_c(servers, offered),
        })
    }

    /// How many servers.
    pub const fn servers(&self) -> u32 {
        self.servers
    }

    /// cμ − λ: waits are exponential with this rate, if there is one.
    fn slack_per_s(&self) -> f64 {
        f64::from(self.servers) * self.service_rate_per_s - self.rate_per_s
    }

    /// Mean time before service.
    pub fn mean_wait_s(&self) -> f64 {
        self.wait_probability / self.slack_per_s()
    }

    /// Mean time from arrival to completion.
    pub fn mean_response_s(&self) -> f64 {
        self.mean_wait_s() + 1.0 / self.service_rate_per_s
    }

    /// Probability that a response takes longer than this: an exponential service, and with
    /// [`erlang_c`]'s probability an exponential wait before it.
    pub fn response_tail(&self, time_s: f64) -> f64 {
        let (c, mu, slack) = (self.wait_probability, self.service_rate_per_s, self.slack_per_s());
        let served = (-mu * time_s).exp();
        // Of the sum of two exponentials: (a e^{−bt} − b e^{−at}) / (a − b). Where the rates are
        // (nearly) the same it is Erlang's, and the formula would subtract like from like.
        let difference = slack - mu;
        let waited_too = if difference.abs() < 1e-6 * mu {
            served * (1.0 + f64::midpoint(mu, slack) * time_s)
        } else {
            (slack * served - mu * (-slack * time_s).exp()) / difference
        };
        (1.0 - c) * served + c * waited_too
    }

    /// The response time that this share of responses does not exceed.
    pub fn response_quantile_s(&self, share: f64) -> f64 {
        crossing(1.0 - share, 0.0, 1.0 / self.service_rate_per_s, |t| self.response_tail(t))
    }
}

/// Probability that an arrival finds all servers busy, `offered` = λ/μ < c. From Erlang's loss
/// formula, whose recursion adds only what is positive.
pub fn erlang_c(servers: u32, offered: f64) -> f64 {
    let loss = (1..=servers).fold(1.0, |loss, k| {
        let part = offered * loss;
        part / (f64::from(k) + part)
    });
    let idle_share = 1.0 - offered / f64::from(servers);
    loss / (idle_share + (1.0 - idle_share) * loss)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn near(actual: f64, expected: f64, tolerance: f64) {
        assert!((actual - expected).abs() < tolerance, "{actual}, not {expected}");
    }

    #[test]
    fn erlang_c_has_its_tabulated_values() {
        // With one server it is the utilisation; the others by hand from the sums.
        near(erlang_c(1, 0.7), 0.7, 1e-12);
        near(erlang_c(2, 1.0), 1.0 / 3.0, 1e-12);
        near(erlang_c(4, 3.6), 0.7878, 5e-5);
        near(erlang_c(10, 8.0), 0.4092, 5e-5);
    }

    #[test]
    fn four_servers_at_nine_tenths_answer_within_2_97_ms_on_average() {
        let queue = Markov::new(3_600.0, 1e-3, 4).unwrap();
        near(queue.mean_response_s(), 2.9695e-3, 5e-7);
        near(queue.mean_wait_s(), 1.9695e-3, 5e-7);
    }

    #[test]
    fn one_server_has_exponential_responses() {
        let queue = Markov::new(500.0, 1e-3, 1).unwrap();
        near(queue.mean_response_s(), 2e-3, 1e-12);
        // −ln(0.01) · 2 ms.
        near(queue.response_quantile_s(0.99), 9.210_340e-3, 1e-8);
        near(queue.response_quantile_s(0.5), 1.386_294e-3, 1e-8);
    }

    #[test]
    fn the_special_case_of_equal_rates_joins_its_neighbours() {
        // cμ − λ = μ: two servers at half their capacity.
        let at = |rate| Markov::new(rate, 1e-3, 2).unwrap().response_tail(3e-3);
        let (below, exactly, above) = (at(999.9), at(1_000.0), at(1_000.1));
        assert!(below < exactly && exactly < above);
        near(exactly, f64::midpoint(below, above), 1e-8);
        // (2/3) e^{−3} + (1/3) e^{−3} (1 + 3), by hand.
        near(exactly, 2.0 * (-3.0_f64).exp(), 1e-12);
    }

    #[test]
    fn the_tail_integrates_to_the_mean() {
        for (rate, servers) in [(300.0, 1), (1_000.0, 2), (3_600.0, 4)] {
            let queue = Markov::new(rate, 1e-3, servers).unwrap();
            let step = 1e-6;
            let mean: f64 =
                (0..200_000).map(|i| queue.response_tail((f64::from(i) + 0.5) * step) * step).sum();
            near(mean, queue.mean_response_s(), 1e-8);
        }
    }

    #[test]
    fn a_queue_that_is_always_behind_has_no_steady_state() {
        assert!(Markov::new(4_000.0, 1e-3, 4).is_none());
        assert!(Markov::new(0.0, 1e-3, 4).is_none());
    }
}
