//! node_exporter: the content of Linux's `/proc`, by other names. Pure.

use std::collections::BTreeMap;

use super::{
    HostCounters, HostFigures, MS, Metrics, PAGING, SECTORS, TCP_EXT, UDP, devices, named,
    speeds_mbit, ticks, whole,
};
use crate::parse::{CpuTimes, MemInfo, Pressure, Stat};
use crate::source::whole_kib;

pub(super) const CPU: &str = "node_cpu_seconds_total";

const DISKS: [(&str, f64); 9] = [
    ("reads_completed_total", 1.0),
    ("read_bytes_total", SECTORS),
    ("read_time_seconds_total", MS),
    ("writes_completed_total", 1.0),
    ("written_bytes_total", SECTORS),
    ("write_time_seconds_total", MS),
    ("io_now", 1.0),
    ("io_time_seconds_total", MS),
    ("io_time_weighted_seconds_total", MS),
];
const NETWORKS: [(&str, f64); 9] = [
    ("receive_bytes_total", 1.0),
    ("receive_packets_total", 1.0),
    ("receive_errs_total", 1.0),
    ("receive_drop_total", 1.0),
    ("transmit_bytes_total", 1.0),
    ("transmit_packets_total", 1.0),
    ("transmit_errs_total", 1.0),
    ("transmit_drop_total", 1.0),
    ("receive_fifo_total", 1.0),
];
/// As the columns of `/proc/net/softnet_stat`.
const SOFTNET: [&str; 3] = ["processed", "dropped", "times_squeezed"];
/// Modes of a processor, in the order of `/proc/stat`.
const MODES: [&str; 8] = ["user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal"];

pub(super) fn figures(metrics: &Metrics<'_>) -> HostFigures {
    let size = |name| whole_kib(metrics.sum(&format!("node_memory_{name}_bytes"))?);
    HostFigures {
        host: HostCounters {
            stat: Stat {
                boot_unix_s: metrics.count("node_boot_time_seconds"),
                interrupts: metrics.count("node_intr_total"),
                context_switches: metrics.count("node_context_switches_total"),
                forks: metrics.count("node_forks_total"),
                running: metrics.count("node_procs_running"),
                blocked: metrics.count("node_procs_blocked"),
                ..Stat::from_cpus(cpus(metrics))
            },
            load: metrics.sum("node_load1"),
            memory: MemInfo {
                total: size("MemTotal"),
                available: size("MemAvailable"),
                cached: size("Cached"),
                dirty: size("Dirty"),
                writeback: size("Writeback"),
                swap_total: size("SwapTotal"),
                swap_free: size("SwapFree"),
            },
            paging: PAGING.map(|name| metrics.count(&format!("node_vmstat_{name}"))),
            retransmits: metrics.count("node_netstat_Tcp_RetransSegs"),
            tcp_ext: TCP_EXT.map(|name| metrics.count(&format!("node_netstat_TcpExt_{name}"))),
            udp: UDP.map(|name| udp(metrics, name)),
            softnet: SOFTNET.map(|name| metrics.count(&format!("node_softnet_{name}_total"))),
            pressure: ["cpu", "io", "memory"].map(|name| pressure(metrics, name)),
            ..HostCounters::default()
        },
        disks: named(devices(metrics, ("node_disk_", "device"), &DISKS)),
        networks: named(devices(metrics, ("node_network_", "device"), &NETWORKS)),
        speeds_mbit: speeds_mbit(metrics.by("node_network_speed_bytes", "device")),
    }
}

/// Of both versions of IP.
fn udp(metrics: &Metrics<'_>, name: &str) -> Option<u64> {
    let [v4, v6] =
        ["Udp", "Udp6"].map(|group| metrics.count(&format!("node_netstat_{group}_{name}")));
    Some(v4?.saturating_add(v6.unwrap_or_default()))
}

fn pressure(metrics: &Metrics<'_>, name: &str) -> Pressure {
    const MICROS_PER_SECOND: f64 = 1e6;
    let micros = |kind| {
        let seconds = metrics.sum(&format!("node_pressure_{name}_{kind}_seconds_total"))?;
        Some(whole(seconds * MICROS_PER_SECOND))
    };
    Pressure { some_us: micros("waiting"), full_us: micros("stalled") }
}

fn cpus(metrics: &Metrics<'_>) -> Vec<(u32, CpuTimes)> {
    let mut cpus: BTreeMap<u32, CpuTimes> = BTreeMap::new();
    for (cpu, seconds) in metrics.by_two(CPU, ["cpu", "mode"]) {
        let Ok(number) = cpu.parse() else { continue };
        let time = |mode| seconds.get(mode).map_or(0, |seconds| ticks(*seconds));
        cpus.insert(number, CpuTimes::from_ticks(MODES.map(time)));
    }
    cpus.into_iter().collect()
}
