//! Disks and memory.

use plimsoll_model::limit::{DiskRate, Limit, LimitFacts};

use super::cpu::cpu_is_idle;
use super::{
    FULL_MIN_RATIO, QUEUE_MIN, STORAGE_STALL_MIN_RATIO, busiest_disk, limit, waits_for_disk,
};
use crate::limit::monitored::{MonitoredPoint, Scene};

/// Requests that wait in the queue of a disk, and for a thread.
const DISK_QUEUE_MIN: f64 = 1.5;
/// The end of a disk may differ by this share from the prediction at low load.
const PREDICTION_MAX_RATIO: f64 = 0.15;
/// Share of its limit from which memory is full.
const MEMORY_FULL_MIN_RATIO: f64 = 0.9;
/// Pages that are read again, per op.
const REFAULTS_MIN_PER_OP: f64 = 0.1;
/// An op whose pages are read again takes more CPU time than at low load by this factor.
const CAUSED_MIN_RATIO: f64 = 1.25;
/// If a disk is one of two alternating resources, ops wait for it half of the time.
const STALL_OF_SWINGS_MIN_RATIO: f64 = 0.7;
/// Share of samples of 50 ms in which each of two alternating resources was full, and their
/// correlation.
const ALTERNATION_MIN_RATIO: f64 = 0.15;
const ALTERNATION_CORRELATION_MAX: f64 = -0.5;

/// A disk at the rate limit of a control group.
pub(super) fn throttled_disk(scene: &Scene<'_>) -> Option<Limit> {
    for rate in DiskRate::ALL {
        let max = format!("{}_max", rate.as_str());
        for key in scene.now.keys("storage", &max) {
            let name = format!("storage.{key}.{}", rate.as_str());
            let limit_per_s = scene.now.get(&format!("storage.{key}.{max}"))?;
            let Some(per_s) = scene.now.get(&name) else { continue };
            if per_s < FULL_MIN_RATIO * limit_per_s {
                continue;
            }
            let evidence = [
                scene.evidence(&name, Some(limit_per_s)),
                scene.evidence("process.server.threads_waiting_for_disk", None),
                scene.evidence("host.pressure_io_some", None),
            ];
            let disk = key.rsplit(':').next().unwrap_or(key).to_owned();
            return Some(limit(LimitFacts::GroupRate { disk, rate, per_s, limit_per_s }, evidence));
        }
    }
    None
}

/// A disk without time left, with a queue that rose.
pub(super) fn busy_disk(scene: &Scene<'_>) -> Option<Limit> {
    let (disk, busy_ratio) = busiest_disk(&scene.now)?;
    let queue = format!("disk.{disk}.queue_mean");
    let queued = scene.now.get(&queue).filter(|queue| *queue >= DISK_QUEUE_MIN)?;
    let rose = scene.rose(|observed| observed.get(&queue), DISK_QUEUE_MIN);
    let predicted = is_predicted(scene, &format!("disk.{disk}.busy"));
    (busy_ratio >= FULL_MIN_RATIO && rose && predicted && waits_for_disk(scene)).then(|| {
        let evidence = [
            scene.evidence(&format!("disk.{disk}.busy"), Some(1.0)),
            scene.evidence(&queue, None),
            scene.evidence(&format!("disk.{disk}.per_read"), None),
        ];
        limit(LimitFacts::BusyDisk { disk: disk.to_owned(), busy_ratio, queued }, evidence)
    })
}

/// Does the share of its time that an op took at the lowest load predict the end of a resource? One
/// that serves many requests at once is busy long before it is full.
fn is_predicted(scene: &Scene<'_>, busy: &str) -> bool {
    let at_low_load = || {
        let low = scene.low?;
        let busy = low.get(busy).filter(|busy| (0.0..FULL_MIN_RATIO).contains(busy))?;
        Some((low.point.achieved_ops_per_s? / busy, scene.now.point.achieved_ops_per_s?))
    };
    at_low_load().is_none_or(|(most, rate)| (most - rate).abs() <= PREDICTION_MAX_RATIO * rate)
}

/// Threads that wait for a disk without a known ceiling, on processors with spare capacity.
pub(super) fn waited_disk(scene: &Scene<'_>) -> Option<Limit> {
    let (disk, busy_ratio) = busiest_disk(&scene.now)?;
    let waiting = scene.rose(|observed| observed.process("threads_waiting_for_disk"), QUEUE_MIN);
    let stalled_ratio = scene.now.get("host.pressure_io_some")?;
    let least = match scene.now.swings() {
        true => STALL_OF_SWINGS_MIN_RATIO,
        false => STORAGE_STALL_MIN_RATIO,
    };
    (waiting && stalled_ratio >= least && cpu_is_idle(&scene.now)).then(|| {
        let evidence = [
            scene.evidence("host.pressure_io_some", None),
            scene.evidence("process.server.threads_waiting_for_disk", None),
            scene.evidence(&format!("disk.{disk}.busy"), None),
        ];
        let disk = disk.to_owned();
        limit(LimitFacts::WaitedDisk { disk, stalled_ratio, busy_ratio }, evidence)
    })
}

/// Memory that is full, and pages that are read again because of it.
pub(super) fn memory(scene: &Scene<'_>) -> Option<Limit> {
    let now = &scene.now;
    let rate = now.point.achieved_ops_per_s.filter(|rate| *rate > 0.0)?;
    let (used, max) = (now.group("memory")?, now.group("memory_max")?);
    let refaults = now.group("refaults")?;
    let full = used >= MEMORY_FULL_MIN_RATIO * max && refaults >= REFAULTS_MIN_PER_OP * rate;
    let rose = scene.rose(|observed| observed.group("refaults"), REFAULTS_MIN_PER_OP * rate);
    (full && rose).then(|| {
        let facts = LimitFacts::Memory {
            used_ratio: used / max,
            limit_bytes: max,
            pages_per_op: refaults / rate,
            fills: Vec::new(),
        };
        let evidence = [
            scene.evidence("cgroup.server.memory", Some(max)),
            scene.evidence("cgroup.server.refaults", None),
            scene.evidence("host.pressure_memory_some", None),
            scene.evidence("host.pressure_io_some", None),
        ];
        limit(facts, evidence)
    })
}

/// Is it only full because pages without memory are read again? The rate limit of a group, a quota
/// and a link are limits of their own.
pub(super) fn caused(scene: &Scene<'_>, limit: &Limit) -> bool {
    match limit.facts {
        LimitFacts::Cores { .. } | LimitFacts::Thread { .. } => {
            let cpu_per_op = |observed: &MonitoredPoint<'_>| {
                Some(observed.process("cpu")? / observed.point.achieved_ops_per_s?)
            };
            let low = scene.low.as_ref().and_then(cpu_per_op);
            let grown = cpu_per_op(&scene.now).zip(low).map(|(now, low)| now / low);
            grown.is_some_and(|grown| grown >= CAUSED_MIN_RATIO)
        }
        LimitFacts::BusyDisk { .. } => true,
        _ => false,
    }
}

/// Processors and storage that alternate within a second: each is half used on average.
pub(super) fn alternating(scene: &Scene<'_>) -> Vec<Limit> {
    let now = &scene.now;
    let figure = |what: &str| now.get(&format!("host.turns_{what}")).unwrap_or_default();
    let (cpu, storage) = (figure("cpu_full"), figure("storage_stalled"));
    let apart = figure("correlation") <= ALTERNATION_CORRELATION_MAX;
    let (Some(cores), true) = (now.cores(), apart && cpu.min(storage) >= ALTERNATION_MIN_RATIO)
    else {
        return Vec::new();
    };
    let evidence = |names: [&str; 2]| names.map(|name| scene.evidence(name, Some(1.0)));
    let full = LimitFacts::CoresByTurns { cores: now.named_cores(cores), full_ratio: cpu };
    let disk = busiest_disk(now).map(|(disk, _)| disk.to_owned());
    let waited = LimitFacts::StorageByTurns { disk, stalled_ratio: storage };
    vec![
        limit(full, evidence(["host.turns_cpu_full", "host.turns_correlation"])),
        limit(waited, evidence(["host.turns_storage_stalled", "host.pressure_io_some"])),
    ]
}
