//! Which resources of the server were full, and had a queue, at one load point.
//!
//! A ceiling that is known exactly (cores of an affinity or a quota, threads of a pool, a rate
//! limit of a disk, the speed of a link) must be reached, and its queue must be there. Where none
//! is known, the resource must have a queue that rose while the processors were not full.

mod cpu;
mod models;
mod storage;

use cpu::{cpu_is_idle, hypervisor, lock, processors, quota, threads, unread};
use models::{batch, gpu, kv_cache};
use plimsoll_model::limit::{Evidence, Limit, LimitFacts, LinkDirection};
use storage::{alternating, busy_disk, caused, memory, throttled_disk, waited_disk};

use super::monitored::{MonitoredPoint, Scene};

pub(super) use cpu::nearly_full;
pub(crate) use models::model_uses;
pub(super) use models::most_running;

/// Share of a ceiling from which it is reached.
const FULL_MIN_RATIO: f64 = 0.93;
/// Below this share a processor or disk is idle enough to be no bottleneck.
const IDLE_MAX_RATIO: f64 = 0.7;
/// Bytes of unread requests.
const UNREAD_MIN_BYTES: f64 = 1.0;
const QUEUE_MIN: f64 = 1.0;
/// Share of the time in which some thread of the host waited for storage.
const STORAGE_STALL_MIN_RATIO: f64 = 0.4;

/// The full resources, the most certain first. Without a lower load only ceilings that are known
/// exactly name a resource. On other hosts than the server's nothing else does: their queues may be
/// of other work.
pub(super) fn full(scenes: &[Scene<'_>]) -> Vec<Limit> {
    let servers = || scenes.iter().filter(|scene| scene.is_of_server());
    let several = servers().count() > 1;
    let with_host = |scene: &Scene<'_>, mut limits: Vec<Limit>| {
        if several || !scene.is_of_server() {
            limits.iter_mut().for_each(|limit| limit.host = scene.host.cloned());
        }
        limits
    };
    // What servers of language models report is of the load point, whichever host shows it.
    let limits = |(at, scene): (usize, &Scene<'_>)| with_host(scene, at_ceiling(scene, at == 0));
    let exact: Vec<Limit> = scenes.iter().enumerate().flat_map(limits).collect();
    if !exact.is_empty() {
        return exact;
    }
    servers().flat_map(|scene| with_host(scene, with_queue(scene))).collect()
}

/// Resources that reached a ceiling.
fn at_ceiling(scene: &Scene<'_>, with_models: bool) -> Vec<Limit> {
    // The queue of a model's requests comes before its batch; the processors of the batch come
    // after.
    let of_host = [hypervisor, quota, processors, throttled_disk, busy_disk, link, threads];
    let of_host = of_host.iter().filter_map(|check| check(scene));
    let limits: Vec<Limit> = match with_models {
        false => of_host.collect(),
        true => kv_cache(scene)
            .into_iter()
            .chain(batch(scene))
            .chain(of_host)
            .chain(gpu(scene))
            .collect(),
    };
    if scene.low.is_none() || limits.is_empty() {
        return limits;
    }
    match memory(scene).filter(|_| limits.iter().all(|limit| caused(scene, limit))) {
        Some(memory) => vec![filling(memory, limits)],
        None => limits,
    }
}

/// The resource whose queue rose with the load, where no ceiling was reached.
fn with_queue(scene: &Scene<'_>) -> Vec<Limit> {
    if scene.low.is_none() {
        return Vec::new();
    }
    let alternation = alternating(scene);
    if !alternation.is_empty() {
        return alternation;
    }
    let waits = [memory, waited_disk, unsent];
    // If two resources alternate, averages show spare capacity on both.
    let waits_in_spite_of_room = if scene.now.swings() { &[][..] } else { &[lock, unread] };
    waits.iter().chain(waits_in_spite_of_room).filter_map(|check| check(scene)).take(1).collect()
}

fn limit(facts: LimitFacts, evidence: impl IntoIterator<Item = Option<Evidence>>) -> Limit {
    Limit::new(facts, evidence.into_iter().flatten().collect())
}

/// The cause of full memory is reported with it, and is no limit of its own.
fn filling(mut memory: Limit, full: Vec<Limit>) -> Limit {
    if let LimitFacts::Memory { fills, .. } = &mut memory.facts {
        *fills = full;
        memory.evidence.extend(fills.iter_mut().flat_map(|it| std::mem::take(&mut it.evidence)));
    }
    memory
}

/// Do ops wait for the disks? Writes in the background keep a disk busy without anyone waiting.
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

fn busiest_disk<'a>(observed: &MonitoredPoint<'a>) -> Option<(&'a str, f64)> {
    let busy = |disk: &'a str| Some((disk, observed.get(&format!("disk.{disk}.busy"))?));
    observed.keys("disk", "busy").into_iter().filter_map(busy).max_by(|a, b| a.1.total_cmp(&b.1))
}

#[cfg(test)]
mod tests;

/// Bytes that wait in the server's sockets for the network.
const SEND_QUEUE_MIN_BYTES: f64 = 64.0 * 1024.0;

fn link(scene: &Scene<'_>) -> Option<Limit> {
    full_link(scene, |_| true)
}

/// A link that carries all it can, of the interfaces that count.
pub(super) fn full_link(scene: &Scene<'_>, counts: impl Fn(&str) -> bool) -> Option<Limit> {
    for direction in [LinkDirection::Sent, LinkDirection::Received] {
        let column = format!("{}_share", direction.as_str());
        let interfaces = scene.now.keys("network", &column);
        for interface in interfaces.into_iter().filter(|it| counts(it)) {
            let name = format!("network.{interface}.{column}");
            let share_ratio = scene.now.get(&name)?;
            if share_ratio >= FULL_MIN_RATIO {
                let evidence = [
                    scene.evidence(&name, Some(1.0)),
                    scene.evidence("socket.server.send_queue", None),
                    scene.evidence("host.tcp_retransmits", None),
                ];
                let drops = direction.drops().iter();
                let drops: Vec<_> = drops
                    .filter_map(|drops| {
                        scene.evidence(&format!("network.{interface}.{drops}"), None)
                    })
                    .collect();
                let dropped_per_s = drops.iter().map(|it| it.value).sum::<f64>();
                let facts = LimitFacts::Link {
                    interface: interface.to_owned(),
                    way: direction,
                    share_ratio,
                    dropped_per_s: (dropped_per_s > 0.0).then_some(dropped_per_s),
                };
                return Some(limit(facts, evidence.into_iter().chain(drops.into_iter().map(Some))));
            }
        }
    }
    None
}

/// Written data waits in the server's sockets, while its processors are not full.
fn unsent(scene: &Scene<'_>) -> Option<Limit> {
    let waiting_bytes = scene.now.sockets("send_queue")?;
    let rose = scene.rose(|observed| observed.sockets("send_queue"), SEND_QUEUE_MIN_BYTES);
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
        scene.evidence(&format!("network.{interface}.send_drops"), None),
        scene.evidence("host.tcp_retransmits", None),
    ];
    Some(limit(LimitFacts::Unsent { waiting_bytes, interface, sent_bytes_per_s }, evidence))
}
