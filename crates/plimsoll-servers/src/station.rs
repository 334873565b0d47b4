//! The queue itself, in virtual time: who arrives is served in order, by whichever of the servers
//! is free first. Nothing sleeps here, so no wakeup is ever late (Kiefer and Wolfowitz's
//! recursion; with one server it is Lindley's).
//!
//! A stall is a piece of time in which no work is done. Everything is computed in *working time*,
//! which stands still during the stall, and put back into real time at the end.
//!
//! A thread that slept through each service would oversleep, and at high utilisation the error
//! would feed back through the queue. Here only the wakeups of server and client remain, as one
//! constant delay that calibration measures.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use plimsoll_model::calibrated::{CalibratedSpec, ServiceLaw, Stall, unit_from_bits};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng as _, SeedableRng as _};

/// A first-come-first-served queue with a fixed number of servers.
#[derive(Clone, Debug)]
pub struct Station {
    service: ServiceLaw,
    seed: u64,
    /// When each server is free, in working time.
    free_at: BinaryHeap<Reverse<u64>>,
    planned_stall: Option<Stall>,
    /// From and until, known with the first arrival.
    stall: Option<(u64, u64)>,
    arrived: u64,
    last_arrival_ns: u64,
}

/// What became of an arrival, on the clock of the arrivals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Passage {
    /// When it arrived; not before the arrival that came ahead of it.
    pub arrival_ns: u64,
    /// When its service is over.
    pub departure_ns: u64,
}

impl Station {
    /// Nobody has arrived, and all servers are free.
    pub fn new(spec: &CalibratedSpec) -> Self {
        Self {
            service: spec.service,
            seed: spec.seed,
            free_at: (0..spec.servers).map(|_| Reverse(0)).collect(),
            planned_stall: spec.stall,
            stall: None,
            arrived: 0,
            last_arrival_ns: 0,
        }
    }

    /// The same with all free again after so many requests: the next is number `arrived`.
    pub fn after(spec: &CalibratedSpec, arrived: u64) -> Self {
        Self { arrived, ..Self::new(spec) }
    }

    /// Takes the next arrival and says when it departs. Arrivals come in order; one that claims
    /// to be earlier than the last counts as arriving with it.
    pub fn arrive(&mut self, now_ns: u64) -> Passage {
        let arrival_ns = now_ns.max(self.last_arrival_ns);
        self.last_arrival_ns = arrival_ns;
        if self.arrived == 0 {
            self.stall = self.planned_stall.map(|Stall { length, after }| {
                let from = arrival_ns + after.0;
                (from, from + length.0)
            });
        }
        let service_ns = service_ns(self.service, self.seed, self.arrived);
        self.arrived += 1;
        let Reverse(free) = self.free_at.pop().expect("a station has at least one server");
        let end = free.max(self.working(arrival_ns)) + service_ns;
        self.free_at.push(Reverse(end));
        Passage { arrival_ns, departure_ns: self.real(end) }
    }

    /// From and until when nothing is served; `None` before the first arrival.
    pub fn stall(&self) -> Option<(u64, u64)> {
        self.stall
    }

    fn working(&self, real_ns: u64) -> u64 {
        match self.stall {
            Some((from, until)) if real_ns >= from => from + real_ns.saturating_sub(until),
            _ => real_ns,
        }
    }

    /// What ends just as the stall begins leaves after it: nothing departs within a stall.
    fn real(&self, working_ns: u64) -> u64 {
        match self.stall {
            Some((from, until)) if working_ns >= from => working_ns + (until - from),
            _ => working_ns,
        }
    }
}

/// The service time of request `index`: of the seed and its number alone, so that neither the
/// client's connections nor the order of its threads decide it.
fn service_ns(law: ServiceLaw, seed: u64, index: u64) -> u64 {
    const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;
    // `seed_from_u64` mixes with SplitMix64, whose steps are GOLDEN apart: an odd factor keeps
    // neighbouring requests from sharing a part of their states.
    let key = seed.wrapping_mul(GOLDEN).rotate_left(32) ^ index.wrapping_mul(0xD1B5_4A32_D192_ED03);
    let mut random = Xoshiro256PlusPlus::seed_from_u64(key);
    law.draw(|| unit_from_bits(random.next_u64())).0
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MS: u64 = 1_000_000;

    fn station(text: &str) -> Station {
        Station::new(&text.parse().unwrap())
    }

    fn passages(text: &str, arrivals: impl IntoIterator<Item = u64>) -> Vec<Passage> {
        let mut station = station(text);
        arrivals.into_iter().map(|at| station.arrive(at)).collect()
    }

    fn service_of(text: &str, index: u64) -> u64 {
        let spec: CalibratedSpec = text.parse().unwrap();
        service_ns(spec.service, spec.seed, index)
    }

    #[test]
    fn a_constant_service_at_a_low_rate_never_waits() {
        for passage in passages("service=const:1ms,servers=1", (0..100).map(|i| i * 2 * MS)) {
            assert_eq!(passage.departure_ns, passage.arrival_ns + MS);
        }
    }

    #[test]
    fn two_servers_serve_two_and_the_third_waits() {
        let ends: Vec<u64> = passages("service=const:1ms,servers=2", [0, 0, 0, 5 * MS])
            .iter()
            .map(|passage| passage.departure_ns)
            .collect();
        assert_eq!(ends, [MS, MS, 2 * MS, 6 * MS]);
    }

    #[test]
    fn nothing_departs_within_a_stall_and_what_was_begun_goes_on_after_it() {
        // The stall is from 10 to 20 ms; the second request has had 0.5 of its 1 ms by then.
        let found = passages(
            "service=const:1ms,servers=1,stall=10ms@10ms",
            [0, 9 * MS + MS / 2, 15 * MS, 30 * MS],
        );
        let ends: Vec<u64> = found.iter().map(|passage| passage.departure_ns).collect();
        assert_eq!(ends, [MS, 20 * MS + MS / 2, 21 * MS + MS / 2, 31 * MS]);
    }

    #[test]
    fn what_ends_as_the_stall_begins_leaves_after_it() {
        let found = passages("service=const:1ms,servers=1,stall=10ms@5ms", [0, 4 * MS]);
        assert_eq!(found[1].departure_ns, 15 * MS);
    }

    #[test]
    fn the_seed_and_the_number_of_a_request_decide_its_service() {
        let spec = "service=exp:1ms,servers=1,seed=5";
        let far_apart = |n: u64| n * 1_000 * MS;
        let once = passages(spec, (0..50).map(far_apart));
        assert_eq!(once, passages(spec, (0..50).map(far_apart)));
        let other = passages("service=exp:1ms,servers=1,seed=6", (0..50).map(far_apart));
        let same = once.iter().zip(&other).filter(|(a, b)| a == b).count();
        assert_eq!(same, 0);
    }

    #[test]
    fn draws_of_neighbouring_requests_are_unrelated() {
        let n = 100_000;
        let draws: Vec<f64> =
            (0..n).map(|i| service_of("service=exp:1ms", i) as f64 / 1e6).collect();
        let mean = draws.iter().sum::<f64>() / n as f64;
        let variance = draws.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n as f64;
        let pairs = draws.windows(2).map(|w| (w[0] - mean) * (w[1] - mean)).sum::<f64>();
        let correlation = pairs / (n - 1) as f64 / variance;
        assert!((mean - 1.0).abs() < 0.015 && (variance - 1.0).abs() < 0.05, "{mean} {variance}");
        assert!(correlation.abs() < 0.015, "{correlation}");
    }

    proptest! {
        #[test]
        fn one_server_is_lindleys_recursion(gaps in prop::collection::vec(0_u64..3 * MS, 1..200)) {
            let text = "service=exp:1ms,servers=1,seed=3";
            let mut now = 0;
            let arrivals: Vec<u64> = gaps.iter().map(|gap| { now += gap; now }).collect();
            let mut wait = 0;
            let mut last: Option<(u64, u64)> = None;
            for (index, passage) in passages(text, arrivals.clone()).into_iter().enumerate() {
                let service = service_of(text, index as u64);
                if let Some((arrival, before)) = last {
                    wait = (wait + before).saturating_sub(arrivals[index] - arrival);
                }
                prop_assert_eq!(passage.departure_ns, arrivals[index] + wait + service);
                last = Some((arrivals[index], service));
            }
        }

        #[test]
        fn starts_are_in_order_and_no_server_idles_while_somebody_waits(
            gaps in prop::collection::vec(0_u64..MS, 1..200),
            servers in 1_u32..6,
            stall_ms in 0_u64..20,
        ) {
            let text = format!("service=exp:2ms,servers={servers},stall={stall_ms}ms@10ms,seed=9");
            let mut station = station(&text);
            let mut now = 0;
            let mut busy: Vec<(u64, u64)> = Vec::new();
            let mut last_start = 0;
            for (index, gap) in gaps.iter().enumerate() {
                now += gap;
                let passage = station.arrive(now);
                let (from, until) = station.stall().unwrap();
                let service = service_of(&text, index as u64);
                prop_assert!(passage.departure_ns >= now + service);
                prop_assert!(passage.departure_ns < from || passage.departure_ns >= until);
                let (arrived, end) = (station.working(now), {
                    let stalled = if passage.departure_ns >= until { until - from } else { 0 };
                    passage.departure_ns - stalled
                });
                let start = end - service;
                prop_assert!(start >= last_start && start >= arrived);
                let at_work = |t: u64| busy.iter().filter(|(s, e)| *s <= t && t < *e).count();
                prop_assert!(at_work(start) < servers as usize);
                if start > arrived {
                    prop_assert_eq!(at_work(arrived), servers as usize);
                    prop_assert_eq!(at_work(start - 1), servers as usize);
                }
                busy.push((start, end));
                last_start = start;
            }
        }
    }
}
