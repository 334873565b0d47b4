//! windows_exporter: Windows' performance counters, as the nearest thing that Linux has. Pure.

use std::collections::BTreeMap;

use plimsoll_model::units::NANOS_PER_SECOND;

use super::{
    HostCounters, HostFigures, MS, Metrics, SECTORS, devices, named, speeds_mbit, ticks, whole,
};
use crate::parse::{CpuTimes, DiskCounters, MeasuredTimes, MemInfo, Stat};
use crate::source::whole_kib;

pub(super) const CPU: &str = "windows_cpu_time_total";

/// Physical disks where that collector is on, else volumes.
const DISK_KINDS: [(&str, &str); 2] =
    [("windows_physical_disk_", "disk"), ("windows_logical_disk_", "volume")];
const DISKS: [(&str, f64); 7] = [
    ("reads_total", 1.0),
    ("read_bytes_total", SECTORS),
    (READ_SECONDS, MS),
    ("writes_total", 1.0),
    ("write_bytes_total", SECTORS),
    (WRITE_SECONDS, MS),
    ("requests_queued", 1.0),
];
const READ_SECONDS: &str = "read_latency_seconds_total";
const WRITE_SECONDS: &str = "write_latency_seconds_total";

const NETWORKS: [(&str, f64); 8] = [
    ("bytes_received_total", 1.0),
    ("packets_received_total", 1.0),
    ("packets_received_errors_total", 1.0),
    ("packets_received_discarded_total", 1.0),
    ("bytes_sent_total", 1.0),
    ("packets_sent_total", 1.0),
    ("packets_outbound_errors_total", 1.0),
    ("packets_outbound_discarded_total", 1.0),
];

/// `now_ns` is any monotonic clock: a disk's idle time is reported, and its busy time is the rest.
pub(super) fn figures(metrics: &Metrics<'_>, now_ns: u64) -> HostFigures {
    let mut speeds = metrics.by("windows_net_current_bandwidth", "nic");
    speeds.values_mut().for_each(|bits| *bits /= 8.0);
    speeds.extend(metrics.by("windows_net_current_bandwidth_bytes", "nic"));
    HostFigures {
        host: HostCounters {
            stat: Stat {
                interrupts: metrics.count("windows_cpu_interrupts_total"),
                context_switches: metrics.count("windows_system_context_switches_total"),
                // Those that wait; those that run are not in it.
                running: metrics.count("windows_system_processor_queue_length"),
                ..Stat::from_cpus(cpus(metrics))
            },
            memory: memory(metrics),
            paging: [
                None,
                None,
                metrics.count("windows_memory_swap_pages_read_total"),
                metrics.count("windows_memory_swap_pages_written_total"),
                metrics.count("windows_memory_swap_page_reads_total"),
            ],
            retransmits: metrics.count("windows_tcp_segments_retransmitted_total"),
            ..HostCounters::default()
        },
        disks: disks(metrics, now_ns as f64 / NANOS_PER_SECOND as f64),
        networks: named(devices(metrics, ("windows_net_", "nic"), &NETWORKS)),
        speeds_mbit: speeds_mbit(speeds),
    }
}

/// Processors are named `GROUP,NUMBER`. Privileged time includes interrupts and deferred calls.
fn cpus(metrics: &Metrics<'_>) -> Vec<(u32, CpuTimes)> {
    let mut cpus: BTreeMap<(u32, u32), CpuTimes> = BTreeMap::new();
    for (core, seconds) in metrics.by_two(CPU, ["core", "mode"]) {
        let (group, number) = core.split_once(',').unwrap_or(("0", &core));
        let (Ok(group), Ok(number)) = (group.parse(), number.parse()) else { continue };
        let time = |mode| seconds.get(mode).copied().unwrap_or_default();
        let (irq, softirq) = (time("interrupt"), time("dpc"));
        let system = time("privileged") - irq - softirq;
        let times = [time("user"), 0.0, system, time("idle"), 0.0, irq, softirq, 0.0].map(ticks);
        let measured = MeasuredTimes::WithoutWaits;
        cpus.insert((group, number), CpuTimes { measured, ..CpuTimes::from_ticks(times) });
    }
    (0..).zip(cpus.into_values()).collect()
}

/// Names have changed from release to release.
fn memory(metrics: &Metrics<'_>) -> MemInfo {
    let size = |names: &[&str]| whole_kib(names.iter().find_map(|name| metrics.sum(name))?);
    MemInfo {
        total: size(&["windows_memory_physical_total_bytes", "windows_cs_physical_memory_bytes"]),
        available: size(&[
            "windows_memory_available_bytes",
            "windows_os_physical_memory_free_bytes",
        ]),
        cached: size(&["windows_memory_cache_bytes"]),
        swap_total: size(&["windows_pagefile_limit_bytes", "windows_os_paging_limit_bytes"]),
        swap_free: size(&["windows_pagefile_free_bytes", "windows_os_paging_free_bytes"]),
        ..MemInfo::default()
    }
}

fn disks(metrics: &Metrics<'_>, now_s: f64) -> Vec<DiskCounters> {
    let is_reported = |(prefix, _): &&(&str, &str)| metrics.has(&format!("{prefix}reads_total"));
    let Some((prefix, label)) = DISK_KINDS.iter().find(is_reported) else { return Vec::new() };
    let seconds = |name| metrics.by(&format!("{prefix}{name}"), label);
    let idle = seconds("idle_seconds_total");
    let transfers = [READ_SECONDS, WRITE_SECONDS].map(seconds);
    let mut disks: BTreeMap<_, [Option<u64>; 9]> = devices(metrics, (prefix, label), &DISKS);
    for (name, [.., busy, queue]) in &mut disks {
        // Any start will do; one that keeps the counter above zero.
        let busy_s = idle.get(name).map_or(0.0, |idle| now_s + BUSY_START_S - idle);
        let queue_s: f64 = transfers.iter().filter_map(|seconds| seconds.get(name)).sum();
        (*busy, *queue) = (Some(whole(busy_s * MS)), Some(whole(queue_s * MS)));
    }
    named(disks)
}

/// More than any disk has been idle.
const BUSY_START_S: f64 = 1e10;
