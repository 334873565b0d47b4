//! windows_exporter: Windows' performance counters, as the nearest thing that Linux has. Pure.

use std::collections::BTreeMap;

use plimsoll_model::units::NANOS_PER_SECOND;

use super::Metrics;
use crate::root::Texts;
use crate::source::proc_texts::{CpuSeconds, DiskTotals, NetworkTotals, ProcTexts};

pub(super) const CPU: &str = "windows_cpu_time_total";
/// Physical disks where that collector is on, else volumes.
const DISKS: [(&str, &str); 2] =
    [("windows_physical_disk_", "disk"), ("windows_logical_disk_", "volume")];

/// Windows knows no such time.
pub(super) const UNTOLD: [(&str, &str); 4] =
    [("host", "cpu_iowait"), ("host", "cpu_steal"), ("cpu", "iowait"), ("cpu", "steal")];

pub(super) fn system(metrics: &Metrics<'_>) -> String {
    let of = |label| metrics.label("windows_os_info", label);
    let parts = [of("product"), of("version")];
    let text = parts.into_iter().flatten().collect::<Vec<_>>().join(" ");
    format!("{} (windows_exporter)", if text.is_empty() { "not told" } else { &text })
}

/// `now_ns` is any clock that runs on: a disk's idle time is told, and its busy time is the rest.
pub(super) fn texts(metrics: &Metrics<'_>, now_ns: u64) -> Texts {
    let mut texts = ProcTexts::default();
    texts.stat(
        &cpus(metrics),
        &[
            ("intr", metrics.sum("windows_cpu_interrupts_total")),
            ("ctxt", metrics.sum("windows_system_context_switches_total")),
            // Those that wait; those that run are not in it.
            ("procs_running", metrics.sum("windows_system_processor_queue_length")),
        ],
    );
    texts.memory(memory(metrics));
    let paging = [
        ("pgmajfault", "windows_memory_swap_page_reads_total"),
        ("pswpin", "windows_memory_swap_pages_read_total"),
        ("pswpout", "windows_memory_swap_pages_written_total"),
    ];
    texts.vmstat(paging.into_iter().filter_map(|(name, of)| Some((name, metrics.sum(of)?))));
    if let Some(count) = metrics.sum("windows_tcp_segments_retransmitted_total") {
        texts.paired("proc/net/snmp", "Tcp", [("RetransSegs", count)]);
    }
    let disks = disks(metrics, now_ns as f64 / NANOS_PER_SECOND as f64);
    texts.disks(disks.iter().map(|(name, disk)| (name.as_str(), *disk)));
    let networks = networks(metrics);
    texts.networks(networks.iter().map(|(name, network)| (name.as_str(), *network)));
    texts.into_texts()
}

/// Processors are named `GROUP,NUMBER`. Privileged time includes interrupts and deferred calls.
fn cpus(metrics: &Metrics<'_>) -> Vec<(u32, CpuSeconds)> {
    let mut cpus: BTreeMap<(u32, u32), CpuSeconds> = BTreeMap::new();
    for ([core, mode], seconds) in metrics.by_two(CPU, ["core", "mode"]) {
        let (group, number) = core.split_once(',').unwrap_or(("0", &core));
        let (Ok(group), Ok(number)) = (group.parse(), number.parse()) else { continue };
        let cpu = cpus.entry((group, number)).or_default();
        match mode.as_str() {
            "user" => cpu.user = seconds,
            "privileged" => cpu.system = seconds,
            "interrupt" => cpu.irq = seconds,
            "dpc" => cpu.softirq = seconds,
            "idle" => cpu.idle = seconds,
            _ => {}
        }
    }
    let mut numbered = Vec::new();
    for (number, mut cpu) in (0..).zip(cpus.into_values()) {
        cpu.system = (cpu.system - cpu.irq - cpu.softirq).max(0.0);
        numbered.push((number, cpu));
    }
    numbered
}

/// Names have changed from release to release.
fn memory(metrics: &Metrics<'_>) -> Vec<(&'static str, f64)> {
    let wanted: [(&str, &[&str]); 5] = [
        ("MemTotal", &["windows_memory_physical_total_bytes", "windows_cs_physical_memory_bytes"]),
        (
            "MemAvailable",
            &["windows_memory_available_bytes", "windows_os_physical_memory_free_bytes"],
        ),
        ("Cached", &["windows_memory_cache_bytes"]),
        ("SwapTotal", &["windows_pagefile_limit_bytes", "windows_os_paging_limit_bytes"]),
        ("SwapFree", &["windows_pagefile_free_bytes", "windows_os_paging_free_bytes"]),
    ];
    let first = |names: &[&str]| names.iter().find_map(|name| metrics.sum(name));
    wanted.into_iter().filter_map(|(name, of)| Some((name, first(of)?))).collect()
}

fn disks(metrics: &Metrics<'_>, now_s: f64) -> BTreeMap<String, DiskTotals> {
    let mut disks: BTreeMap<String, DiskTotals> = BTreeMap::new();
    let is_told = |(prefix, _): &&(&str, &str)| metrics.has(&format!("{prefix}reads_total"));
    let Some((prefix, label)) = DISKS.iter().find(is_told) else { return disks };
    type Field = fn(&mut DiskTotals) -> &mut f64;
    let fields: [(&str, Field); 7] = [
        ("reads_total", |disk| &mut disk.reads),
        ("read_bytes_total", |disk| &mut disk.read_bytes),
        ("read_latency_seconds_total", |disk| &mut disk.read_seconds),
        ("writes_total", |disk| &mut disk.writes),
        ("write_bytes_total", |disk| &mut disk.written_bytes),
        ("write_latency_seconds_total", |disk| &mut disk.write_seconds),
        ("requests_queued", |disk| &mut disk.in_flight),
    ];
    for (name, field) in fields {
        for (device, value) in metrics.by(&format!("{prefix}{name}"), label) {
            *field(disks.entry(device).or_default()) = value;
        }
    }
    let idle = metrics.by(&format!("{prefix}idle_seconds_total"), label);
    for (name, disk) in &mut disks {
        // Any start will do; one that keeps the counter above zero.
        disk.busy_seconds = idle.get(name).map_or(0.0, |idle| now_s + BUSY_START_S - idle);
        disk.queue_seconds = disk.read_seconds + disk.write_seconds;
    }
    disks
}

/// More than any disk has been idle.
const BUSY_START_S: f64 = 1e10;

fn networks(metrics: &Metrics<'_>) -> BTreeMap<String, NetworkTotals> {
    let mut networks: BTreeMap<String, NetworkTotals> = BTreeMap::new();
    type Field = fn(&mut NetworkTotals) -> &mut f64;
    let fields: [(&str, Field); 8] = [
        ("bytes_received_total", |network| &mut network.received_bytes),
        ("packets_received_total", |network| &mut network.received_packets),
        ("packets_received_errors_total", |network| &mut network.receive_errors),
        ("packets_received_discarded_total", |network| &mut network.receive_drops),
        ("bytes_sent_total", |network| &mut network.sent_bytes),
        ("packets_sent_total", |network| &mut network.sent_packets),
        ("packets_outbound_errors_total", |network| &mut network.send_errors),
        ("packets_outbound_discarded_total", |network| &mut network.send_drops),
    ];
    for (name, field) in fields {
        for (device, value) in metrics.by(&format!("windows_net_{name}"), "nic") {
            *field(networks.entry(device).or_default()) = value;
        }
    }
    for (name, network) in &mut networks {
        let of = |metric| metrics.by(metric, "nic").get(name).copied();
        network.speed = of("windows_net_current_bandwidth_bytes")
            .or_else(|| of("windows_net_current_bandwidth").map(|bits| bits / 8.0));
    }
    networks
}
