//! Which resources of the server were full, and had a queue, at one load point.
//!
//! A ceiling that is known exactly (cores of an affinity or a quota, threads of a pool, a rate that
//! a disk is held to, the speed of a link) must be reached, and its queue must be there. Where none
//! is known, the resource must have a queue that rose while the processors were not full.

mod cpu;
mod models;
mod storage;
mod threads;

use cpu::{cpu_is_idle, hypervisor, processors, quota};
use models::{batch, gpu, kv_cache};
use plimsoll_model::limit::{Evidence, Limit, LimitFacts, Way};
use storage::{busy_disk, caused, held_disk, memory, turns, waited_disk};
use threads::{lock, threads, unread};

use super::seen::Scene;

pub(super) use cpu::nearly_full;
pub(super) use models::most_running;
pub(crate) use models::told_of_models;

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
    // The queue of a model's requests is before its batch; what the batch computes on comes after.
    let exact =
        [kv_cache, batch, hypervisor, quota, processors, held_disk, busy_disk, link, threads, gpu];
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

/// Bytes that wait in the server's sockets for the network.
const SEND_QUEUE_MIN_BYTES: f64 = 64.0 * 1024.0;

/// A link that carries all it can.
fn link(scene: &Scene<'_>) -> Option<Limit> {
    for way in [Way::Sent, Way::Received] {
        let column = format!("{}_share", way.as_str());
        for interface in scene.now.keys("network", &column) {
            let name = format!("network.{interface}.{column}");
            let share_ratio = scene.now.get(&name)?;
            if share_ratio >= FULL_MIN_RATIO {
                let evidence = [
                    scene.evidence(&name, Some(1.0)),
                    scene.evidence("socket.server.send_queue", None),
                    scene.evidence("host.tcp_retransmits", None),
                ];
                let interface = interface.to_owned();
                return Some(limit(LimitFacts::Link { interface, way, share_ratio }, evidence));
            }
        }
    }
    None
}

/// What the server has written waits in its sockets, while it has processors left.
fn unsent(scene: &Scene<'_>) -> Option<Limit> {
    let waiting_bytes = scene.now.sockets("send_queue")?;
    let rose = scene.rose(|seen| seen.sockets("send_queue"), SEND_QUEUE_MIN_BYTES);
    if !(rose && cpu_is_idle(&scene.now)) {
        return None;
    }
    let rate = |key: &&str| scene.now.get(&format!("network.{key}.sent")).unwrap_or_default();
    let keys = scene.now.keys("network", "sent");
    // The server's own namespace, where it has one, has its interfaces.
    let inside = keys.iter().copied().filter(|key| key.contains(':') && !key.ends_with(":lo"));
    let outside = keys.iter().copied().filter(|key| !key.contains(':'));
    let busiest = |all: Vec<&str>| {
        all.into_iter().max_by(|a, b| rate(a).total_cmp(&rate(b))).map(str::to_owned)
    };
    let interface = busiest(inside.collect()).or_else(|| busiest(outside.collect()))?;
    let sent_bytes_per_s = rate(&interface.as_str());
    let evidence = [
        scene.evidence("socket.server.send_queue", None),
        scene.evidence(&format!("network.{interface}.sent"), None),
        scene.evidence("host.tcp_retransmits", None),
    ];
    Some(limit(LimitFacts::Unsent { waiting_bytes, interface, sent_bytes_per_s }, evidence))
}
