//! Throughput that changes much within a second: the server does two things by turns, or pauses.
//! Seen from the generator alone, it needs no access to the server.

use plimsoll_model::event::{ResourceUse, TICK, WorkerTotals};
use plimsoll_model::units::NANOS_PER_SECOND;

/// Fewer ticks tell nothing.
const TICKS_MIN: usize = 40;
/// With fewer ops a tick, chance alone makes them differ.
const OPS_MIN: f64 = 20.0;
/// The slowest quarter of the ticks has at most this part of the fastest quarter's ops. A normal
/// law has that where its deviation is a third of its mean.
const SLOW_MAX_RATIO: f64 = 0.4;
/// Changes between the slower half of the ticks and the faster one, a second.
const CHANGES_MIN_PER_S: f64 = 1.0;
/// Where the load itself paused, at most this part of it was sent in the slower half.
const SENT_MIN_RATIO: f64 = 0.7;

/// Names of what is told, among a point's resources: ops a second in the slowest quarter of ticks.
pub(crate) const SLOW_RATE: &str = "load.slow_rate";
pub(crate) const FAST_RATE: &str = "load.fast_rate";

/// How far apart slow and fast ticks are, if they are. `closed`: clients send when they are
/// answered, so that what is sent tells nothing of its own.
pub(crate) fn bursts(totals: &WorkerTotals, closed: bool) -> Vec<ResourceUse> {
    let done = &totals.done_by_tick;
    let sum: f64 = done.iter().map(|&n| f64::from(n)).sum();
    if done.len() < TICKS_MIN || sum < OPS_MIN * done.len() as f64 {
        return Vec::new();
    }
    let mut order: Vec<usize> = (0..done.len()).collect();
    order.sort_by_key(|tick| done[*tick]);
    let (slower, faster) = order.split_at(order.len() / 2);
    let (slow, fast) = (&slower[..slower.len() / 2], &faster[faster.len() / 2..]);
    let (slow, fast) = (mean(done, slow), mean(done, fast));
    let median = done[faster[0]];
    let changes = done.windows(2).filter(|pair| (pair[0] < median) != (pair[1] < median)).count();
    let per_second = NANOS_PER_SECOND as f64 / TICK.0 as f64;
    let within_seconds = changes as f64 >= CHANGES_MIN_PER_S * done.len() as f64 / per_second;
    let sent = &totals.sent_by_tick;
    let load_went_on = closed || mean(sent, slower) >= SENT_MIN_RATIO * mean(sent, faster);
    if slow > SLOW_MAX_RATIO * fast || !within_seconds || !load_went_on {
        return Vec::new();
    }
    let use_ = |(name, rate)| {
        let rate = rate * per_second;
        ResourceUse::of_window(name, "1/s", rate, rate)
    };
    [(SLOW_RATE, slow), (FAST_RATE, fast)].map(use_).into()
}

fn mean(counts: &[u32], ticks: &[usize]) -> f64 {
    let of_ticks = ticks.iter().filter_map(|tick| counts.get(*tick));
    of_ticks.map(|&n| f64::from(n)).sum::<f64>() / ticks.len().max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_xoshiro::Xoshiro256PlusPlus;
    use rand_xoshiro::rand_core::{Rng, SeedableRng};

    fn totals(ops: impl Fn(usize, f64) -> (f64, f64)) -> WorkerTotals {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(3);
        let noise = (0..200).map(|_| f64::from(random.next_u32()) / f64::from(u32::MAX));
        let counts = noise.enumerate().map(|(tick, noise)| ops(tick, noise));
        let (done, sent) = counts.map(|(done, sent)| (done as u32, sent as u32)).unzip();
        WorkerTotals { done_by_tick: done, sent_by_tick: sent, ..WorkerTotals::default() }
    }

    #[test]
    fn turns_within_a_second_are_told_wherever_ticks_cut_them() {
        for part in [0.0, 0.3, 0.5] {
            let by_turns = totals(|tick, noise| {
                let mixed = [200.0, 200.0 - 150.0 * part, 50.0, 50.0 + 150.0 * part];
                (mixed[tick % 4] + noise * 10.0, 125.0)
            });
            for closed in [true, false] {
                let told = bursts(&by_turns, closed);
                let values: Vec<f64> = told.iter().map(|told| told.mean).collect();
                let near = |value: f64, wanted: f64| (value / wanted - 1.0).abs() < 0.1;
                assert!(near(values[0], 1_100.0) && near(values[1], 4_100.0), "{values:?}");
            }
        }
    }

    #[test]
    fn noise_slow_changes_and_few_ops_are_none() {
        let noise = totals(|_, noise| (80.0 + noise * 80.0, 100.0));
        let steps = totals(|tick, noise| (if tick < 100 { 200.0 } else { 50.0 } + noise, 100.0));
        let few = totals(|tick, _| (if tick % 2 == 0 { 9.0 } else { 1.0 }, 5.0));
        for (what, none) in [("noise", noise), ("steps", steps), ("few", few)] {
            assert!(bursts(&none, true).is_empty(), "{what}");
        }
    }

    #[test]
    fn pauses_of_an_open_load_are_not_the_servers() {
        let paused = totals(|tick, noise| {
            let level = if tick / 2 % 2 == 0 { 200.0 } else { 50.0 };
            (level + noise, level + noise)
        });
        assert!(bursts(&paused, false).is_empty());
        assert!(!bursts(&paused, true).is_empty(), "closed clients send when they are answered");
    }
}
