//! Whole fleet runs in virtual time: 1 to 16 agents with clocks of their own, delays, stalls, lost
//! and dying agents, controllers that die and others that go on. Everything follows from a seed.
//!
//! | checked | where |
//! | --- | --- |
//! | each load point is finished exactly once, over all controllers | `coordinator.rs`, `run` |
//! | a finished load point was run whole by each of its agents, and their reports add up to it | `check.rs` |
//! | true starts and true offsets of clocks lie within the reported bounds | `check.rs` |
//! | without a controller load ends within 4 s, after the end of the stream within 1 s | `host.rs` |
//! | a silent agent is lost in its fourth second, whatever the others do | `fleet.rs` |
//! | every process ends | `fleet.rs` |

mod check;
mod clock;
mod coordinator;
mod faults;
mod fleet;
mod host;
mod link;
mod process;
mod random;
mod work;

use std::env;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use coordinator::{Coordinator, Tally};
use fleet::Fleet;
use random::Random;

/// Runs of a test by default.
const SEEDS: u64 = 1_000;
/// Controllers that things go wrong for. The one after them has a good day.
const CONTROLLERS_MAX: usize = 3;

#[test]
fn no_load_point_is_lost_doubled_or_wrongly_valid_and_every_run_ends() {
    let (first, end) = seeds();
    let next = AtomicU64::new(first);
    let (failed, tally) = (Mutex::new(Vec::new()), Mutex::new(Tally::new()));
    let cores = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        for _ in 0..cores {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= end || !failed.lock().expect("no holder panics").is_empty() {
                        return;
                    }
                    match catch_unwind(AssertUnwindSafe(|| run(seed))) {
                        Ok(counts) => add(&mut tally.lock().expect("no holder panics"), counts),
                        Err(_) => failed.lock().expect("no holder panics").push(seed),
                    }
                }
            });
        }
    });
    if let Some(seed) = failed.into_inner().expect("no holder panics").first() {
        panic!("PLIMSOLL_FLEET_SEED={seed} cargo test -p plimsoll-fleet --test simulated");
    }
    let tally = tally.into_inner().expect("no holder panics");
    println!("{tally:#?}");
    if end - first >= SEEDS {
        let rare = HAPPENS.iter().find(|what| tally.get(*what).is_none_or(|count| *count < 10));
        assert_eq!(rare, None, "this happens too seldom");
    }
    // Controller and agent understand each other, and no live agent leaves a request unanswered.
    assert_eq!((tally.get("agents out of turn"), tally.get("agents overdue")), (None, None));
}

fn add(tally: &mut Tally, counts: Tally) {
    counts.into_iter().for_each(|(what, count)| *tally.entry(what).or_default() += count);
}

/// What must happen now and then in a thousand runs.
const HAPPENS: [&str; 11] = [
    "runs with too few agents",
    "plans failed",
    "points finished",
    "points lost with an agent",
    "points refused",
    "points stopped before their start",
    "agents lost silently",
    "agents ended",
    "agents hung",
    "interrupts",
    "loads cut",
];

/// The seeds to run: from, to.
fn seeds() -> (u64, u64) {
    let number = |name| env::var(name).ok().and_then(|text| text.parse().ok());
    match number("PLIMSOLL_FLEET_SEED") {
        Some(seed) => (seed, seed + 1),
        None => (0, number("PLIMSOLL_FLEET_SEEDS").unwrap_or(SEEDS)),
    }
}

fn run(seed: u64) -> Tally {
    let mut random = Random::new(random::mix(seed));
    let mut coordinator = Coordinator::any(&mut random);
    for _ in 0..CONTROLLERS_MAX {
        coordinator.resume();
        let (own, agents) = (Random::new(random.bits()), random.between(1, 16));
        let mut fleet = Fleet::new(own, &mut coordinator, agents as usize);
        faults::launch_some(&mut fleet);
        fleet.run();
        if coordinator.is_done() {
            return coordinator.tally;
        }
    }
    coordinator.resume();
    let (own, agents) = (Random::new(random.bits()), random.between(1, 16));
    let mut fleet = Fleet::new(own, &mut coordinator, agents as usize);
    faults::launch_all(&mut fleet);
    fleet.run();
    assert!(coordinator.is_done(), "a run without faults finishes every load point");
    coordinator.tally
}
