//! Which resources of the server were full, and had a queue, at one load point.
//!
//! A ceiling that is known exactly (cores of an affinity or a quota, threads of a pool, a rate that
//! a disk is held to, the speed of a link) must be reached, and its queue must be there. Where none
//! is known, the resource must have a queue that rose while the processors were not full.

mod cpu;
mod network;
mod storage;
mod threads;

use plimsoll_model::limit::{Evidence, Limit, LimitFacts};

use super::seen::Scene;
pub(super) use cpu::nearly_full;
use cpu::{hypervisor, processors, quota};
use network::{link, unsent};
use storage::{busy_disk, caused, held_disk, memory, turns, waited_disk};
use threads::{lock, threads, unread};

/// Share of a ceiling from which it is reached.
const FULL_MIN_RATIO: f64 = 0.93;
/// Below this share a processor or disk is idle enough not to be what the server waits for.
const IDLE_MAX_RATIO: f64 = 0.7;
/// Bytes of requests that nobody reads.
const UNREAD_MIN_BYTES: f64 = 1.0;
const QUEUE_MIN: f64 = 1.0;
/// Share of the time in which some thread of the host waited for storage.
const STORAGE_STALL_MIN_RATIO: f64 = 0.4;

/// What was full, the most certain first. Without a lower load only ceilings that are known exactly
/// name a resource.
pub(super) fn full(scene: &Scene<'_>) -> Vec<Limit> {
    let exact = [hypervisor, quota, processors, held_disk, busy_disk, link, threads];
    let found: Vec<Limit> = exact.iter().filter_map(|judge| judge(scene)).collect();
    if scene.low.is_none() {
        return found;
    }
    if !found.is_empty() {
        return match memory(scene).filter(|_| found.iter().all(|limit| caused(scene, limit))) {
            Some(memory) => vec![filling(memory, found)],
            None => found,
        };
    }
    let by_turns = turns(scene);
    if !by_turns.is_empty() {
        return by_turns;
    }
    let waits = [memory, waited_disk, unsent];
    // Of two that take turns averages say that both had room.
    let waits_in_spite_of_room = if scene.now.swings() { &[][..] } else { &[lock, unread] };
    let likely = waits.iter().chain(waits_in_spite_of_room);
    likely.filter_map(|judge| judge(scene)).take(1).collect()
}

fn limit(facts: LimitFacts, evidence: impl IntoIterator<Item = Option<Evidence>>) -> Limit {
    Limit::new(facts, evidence.into_iter().flatten().collect())
}

/// What memory filled is reported with it, and is no limit of its own.
fn filling(mut memory: Limit, full: Vec<Limit>) -> Limit {
    if let LimitFacts::Memory { fills, .. } = &mut memory.facts {
        *fills = full;
        memory.evidence.extend(fills.iter_mut().flat_map(|it| std::mem::take(&mut it.evidence)));
    }
    memory
}

/// Does anybody wait for the disks? Writes in the background keep a disk busy and nobody waiting.
fn waits_for_disk(scene: &Scene<'_>) -> bool {
    let waiting = scene.now.process("threads_waiting_for_disk");
    let stalled = scene.now.get("host.pressure_io_some");
    match (waiting, stalled) {
        (None, None) => true,
        (waiting, stalled) => {
            waiting.is_some_and(|threads| threads >= QUEUE_MIN)
                || stalled.is_some_and(|share| share >= STORAGE_STALL_MIN_RATIO)
        }
    }
}

#[cfg(test)]
mod tests;
