//! The queue itself, in virtual time: arrivals are served in order, by whichever server is free
//! first. Nothing sleeps here, so no wakeup is ever late (Kiefer and Wolfowitz's recursion; with
//! one server it is Lindley's).
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
pub struct ServiceQueue {
    service: ServiceLaw,
    seed: u64,
    /// When each server is free, in working time.
    free_at: BinaryHeap<Reverse<u64>>,
    planned_stall: Option<Stall>,
    /// Start and end, known from the first arrival.
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
    pub completion_ns: u64,
}

impl ServiceQueue {
    /// No arrivals yet, and all servers free.
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

    /// The same, all servers idle after `arrived` requests: the next has that number.
    pub fn after(spec: &CalibratedSpec, arrived: u64) -> Self {
        Self { arrived, ..Self::new(spec) }
    }

    /// Takes the next arrival and returns its completion. Arrivals come in order; one that claims
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
        Passage { arrival_ns, completion_ns: self.real(end) }
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

    /// What ends just as the stall begins is completed after it: nothing is completed within a
    /// stall.
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
mod tests;
