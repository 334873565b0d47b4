//! The simulated server: first come, first served, by a law of service times; or all that wait
//! together. The runs and their truth have the same one.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use plimsoll_engine::rng::{Random, Stream};
use plimsoll_model::calibrated::ServiceLaw;
use plimsoll_model::units::Nanos;
use plimsoll_testkit::sim::Target;

use super::row::{Row, Service};

/// A server stands still for this long …
const STALL_NS: u64 = 20_000_000;
/// … and begins to after this long on average, since it last began.
const STALL_EVERY_NS: f64 = 1e9;
/// Mean length of a fast or a slow phase.
const BURST_NS: f64 = 20e6;
/// Service times of both, relative to the mean.
const FAST_AND_SLOW: [f64; 2] = [0.5, 1.5];
/// Humps, relative to the mean, and how many of the services are in the first. No percentile that a
/// result has lies just between them, where no figure of a run is near the true one.
const SHORT: f64 = 0.4;
const LONG: f64 = 7.9;
const SHORT_SHARE: f64 = 0.92;
/// Half the width of a hump, relative to its middle.
const HUMP_RATIO: f64 = 0.25;

/// A server, from time zero.
pub struct Server {
    service: Service,
    mean_ns: f64,
    random: Random,
    free_at_ns: BinaryHeap<Reverse<u64>>,
    /// Start and end of the last batch, where requests are answered in batches.
    batch_ns: Option<(u64, u64)>,
    batches: bool,
    next_stall_ns: u64,
    /// Of a bursty server: it is slow, and until when it stays as it is.
    slow: usize,
    phase_end_ns: u64,
}

impl Server {
    /// The server of a row. Service times follow from the seed.
    pub fn new(row: &Row, seed: u64) -> Self {
        let setup = row.setup();
        let mut server = Self {
            service: row.service,
            mean_ns: setup.service_mean_ns,
            random: Random::new(seed, Stream::Data, 0),
            free_at_ns: (0..setup.servers).map(|_| Reverse(0)).collect(),
            batch_ns: None,
            batches: setup.batches,
            next_stall_ns: u64::MAX,
            slow: 0,
            phase_end_ns: u64::MAX,
        };
        match row.service {
            Service::Stalls => server.next_stall_ns = server.exponential_ns(STALL_EVERY_NS),
            Service::Bursty => server.phase_end_ns = server.exponential_ns(BURST_NS),
            Service::Constant | Service::Exponential | Service::Lognormal | Service::TwoHumped => {}
        }
        server
    }

    /// When the request is answered that arrives at `now_ns`, no earlier than the one before.
    pub fn completion_ns(&mut self, now_ns: u64) -> u64 {
        self.advance(now_ns);
        // A batch takes requests until it begins.
        if let Some((_, end)) = self.batch_ns.filter(|(start, _)| self.batches && now_ns <= *start)
        {
            return end;
        }
        let Reverse(free_ns) = self.free_at_ns.pop().unwrap_or_default();
        let start = free_ns.max(now_ns);
        let end = start + self.draw_ns();
        self.free_at_ns.push(Reverse(end));
        self.batch_ns = Some((start, end));
        end
    }

    /// Stalls delay what arrives later: what was promised before is kept.
    fn advance(&mut self, now_ns: u64) {
        while self.next_stall_ns <= now_ns {
            let begin = self.next_stall_ns;
            let free = std::mem::take(&mut self.free_at_ns).into_iter();
            self.free_at_ns =
                free.map(|Reverse(free_ns)| Reverse(free_ns.max(begin) + STALL_NS)).collect();
            self.next_stall_ns += self.exponential_ns(STALL_EVERY_NS);
        }
        while self.phase_end_ns <= now_ns {
            self.slow = 1 - self.slow;
            self.phase_end_ns += self.exponential_ns(BURST_NS);
        }
    }

    fn draw_ns(&mut self) -> u64 {
        let (mean_ns, random) = (self.mean_ns, &mut self.random);
        let ns = match self.service {
            Service::Constant => mean_ns,
            Service::Exponential | Service::Stalls => mean_ns * random.exponential(),
            Service::Bursty => mean_ns * random.exponential() * FAST_AND_SLOW[self.slow],
            Service::Lognormal => {
                let median = Nanos((mean_ns * (-0.5_f64).exp()) as u64);
                return ServiceLaw::Lognormal { median, sigma: 1.0 }.draw(|| random.unit()).0;
            }
            Service::TwoHumped => {
                let hump = if random.unit() < SHORT_SHARE { SHORT } else { LONG };
                mean_ns * hump * (1.0 + HUMP_RATIO * (2.0 * random.unit() - 1.0))
            }
        };
        ns.round() as u64
    }

    fn exponential_ns(&mut self, mean_ns: f64) -> u64 {
        (self.random.exponential() * mean_ns) as u64 + 1
    }
}

impl Target for Server {
    fn completion(&mut self, now: Nanos) -> Option<Nanos> {
        Some(Nanos(self.completion_ns(now.0)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::coverage::simulated::row::{Host, LoadKind};

    fn server(load: LoadKind, service: Service) -> Server {
        let row = Row { load, utilisation: 0.6, window_s: 3, service, host: Host::Quiet };
        Server::new(&row, 7)
    }

    /// Times of requests, each of which comes after the one before has been answered.
    fn times_ns(service: Service) -> Vec<u64> {
        let mut server = server(LoadKind::Open, service);
        let arrivals_ns = (1..=100_000).map(|n| n * 40_000_000);
        arrivals_ns.map(|now_ns| server.completion_ns(now_ns) - now_ns).collect()
    }

    #[test]
    fn service_times_have_their_mean() {
        for service in [
            Service::Constant,
            Service::Exponential,
            Service::Lognormal,
            Service::TwoHumped,
            Service::Bursty,
        ] {
            let times = times_ns(service);
            let mean = times.iter().sum::<u64>() as f64 / times.len() as f64;
            assert!((mean / 300_000.0 - 1.0).abs() < 0.02, "{service:?}: {mean}");
        }
    }

    #[test]
    fn a_server_with_stalls_stands_still_for_a_fiftieth_of_the_time() {
        let times = times_ns(Service::Stalls);
        // A quarter of those that come in a stall waits for less than this.
        let long = times.iter().filter(|ns| **ns > 5_000_000).count();
        let share = long as f64 / times.len() as f64;
        assert!((share / (0.75 * 0.02) - 1.0).abs() < 0.1, "{share}");
        assert!(times.iter().all(|ns| *ns < 60_000_000));
    }

    #[test]
    fn what_waits_at_a_server_of_batches_is_answered_together() {
        let mut server = server(LoadKind::InStep, Service::Constant);
        let wave_ns = 30_000_000;
        assert_eq!([0, 0, 0].map(|now| server.completion_ns(now)), [wave_ns; 3]);
        assert_eq!([5, 9].map(|now| server.completion_ns(now)), [2 * wave_ns; 2]);
        assert_eq!(server.completion_ns(2 * wave_ns), 3 * wave_ns);
        assert_eq!(server.completion_ns(9 * wave_ns), 10 * wave_ns);
    }

    #[test]
    fn ten_servers_work_side_by_side() {
        let mut server = server(LoadKind::Saturating, Service::Constant);
        let ends: Vec<u64> = (0..11).map(|_| server.completion_ns(0)).collect();
        assert_eq!((ends[9], ends[10]), (3_000_000, 6_000_000));
    }
}
