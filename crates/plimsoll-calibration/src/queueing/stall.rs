//! D/D/1 with a pause: evenly spaced arrivals, a constant service shorter than the inter-arrival
//! time, one server that does nothing for a while. Every response time follows.
//!
//! Let the first arrival within the pause come x₀ after its start, arrivals be g apart, a service
//! take s, and r be the rest of a service when the pause of length L began. The k-th arrival from
//! that one on comes at x₀ + k·g and, as long as the queue has not emptied, completes at L + r + (k
//! + 1)·s: first the pause, then the requests before it, one service each. So
//!
//! > response(k) = s + max(0, L + r − x₀ − k·(g − s))
//!
//! — a straight line down to s, through the pause and through the catching up after it.

/// A server that pauses once. Seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stalled {
    /// L: length of the pause.
    pub stall_s: f64,
    /// g: between arrivals.
    pub inter_arrival_s: f64,
    /// s: of each; shorter than the inter-arrival time.
    pub service_s: f64,
    /// x₀: from the start of the pause to the first arrival within it; up to one inter-arrival
    /// time.
    pub first_s: f64,
}

impl Stalled {
    /// Response time of the `k`-th arrival from the first within the pause.
    pub fn response_s(&self, k: u64) -> f64 {
        let Self { stall_s, inter_arrival_s, service_s, first_s } = *self;
        // The one before came first − inter_arrival before the pause, and had that much of its
        // service.
        let remaining = (service_s - (inter_arrival_s - first_s)).max(0.0);
        let wait = stall_s + remaining - first_s - k as f64 * (inter_arrival_s - service_s);
        service_s + wait.max(0.0)
    }

    /// The response time that this share of `ops` does not exceed, when pause and catching up lie
    /// among them: the exact order statistic.
    pub fn quantile_s(&self, share: f64, ops: u64) -> f64 {
        let rank = (share * ops as f64).ceil() as u64;
        // The line falls: the k-th longest response is that of the k-th arrival.
        self.response_s(ops.saturating_sub(rank.max(1)))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// From the start of the pause until nobody waits any more.
    fn drained_after_s(law: &Stalled) -> f64 {
        law.stall_s / (1.0 - law.service_s / law.inter_arrival_s)
    }

    #[test]
    fn a_pause_of_1_4_s_shows_in_the_tail_as_it_must() {
        // 400 ops/s for 20 s, 0.2 ms each: 80 responses lie above p99, 2.3 ms apart.
        let stalled =
            Stalled { stall_s: 1.4, inter_arrival_s: 2.5e-3, service_s: 0.2e-3, first_s: 1.25e-3 };
        let p99 = stalled.quantile_s(0.99, 8_000);
        assert!((p99 - (1.4 - 1.25e-3 - 80.0 * 2.3e-3 + 0.2e-3)).abs() < 1e-12, "{p99}");
        assert_eq!(stalled.quantile_s(0.5, 8_000), 0.2e-3);
        assert!((drained_after_s(&stalled) - 1.521_74).abs() < 1e-5);
    }

    /// The recursion itself, a pause in working time, over enough arrivals.
    fn responses(law: &Stalled, before: u32, after: u32) -> Vec<f64> {
        let mut free: f64 = f64::NEG_INFINITY;
        let working = |t: f64| if t < 0.0 { t } else { (t - law.stall_s).max(0.0) };
        let real = |w: f64| if w < 0.0 { w } else { w + law.stall_s };
        (0..before + after)
            .map(|i| {
                let arrival =
                    law.first_s + (f64::from(i) - f64::from(before)) * law.inter_arrival_s;
                free = free.max(working(arrival)) + law.service_s;
                real(free) - arrival
            })
            .collect()
    }

    proptest! {
        #[test]
        fn the_line_is_what_the_recursion_gives(
            stall_s in 0.01_f64..2.0,
            inter_arrival_s in 1e-3_f64..10e-3,
            load in 0.05_f64..0.8,
            phase in 0.0_f64..0.999,
        ) {
            let service_s = inter_arrival_s * load;
            let law = Stalled { stall_s, inter_arrival_s, service_s, first_s: inter_arrival_s * phase };
            let after = (drained_after_s(&law) / inter_arrival_s) as u32 + 20;
            let simulated = responses(&law, 50, after);
            for (k, response) in simulated[50..].iter().enumerate() {
                prop_assert!((response - law.response_s(k as u64)).abs() < 1e-9);
            }
            // The one that the pause cut in two is the only other that may be late.
            let mut sorted = simulated[..49].to_vec();
            sorted.extend(&simulated[50..]);
            sorted.sort_by(f64::total_cmp);
            let rank = (0.99 * sorted.len() as f64).ceil() as usize - 1;
            let expected = law.quantile_s(0.99, sorted.len() as u64);
            prop_assert!((sorted[rank] - expected).abs() < 1e-9);
        }
    }
}
