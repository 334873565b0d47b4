//! node_exporter: what Linux tells in `/proc`, by other names. Pure.

use std::collections::BTreeMap;

use super::Metrics;
use crate::root::Texts;
use crate::source::proc_texts::{CpuSeconds, DiskTotals, NetworkTotals, ProcTexts};

pub(super) const CPU: &str = "node_cpu_seconds_total";

pub(super) fn system(metrics: &Metrics<'_>) -> String {
    let of = |label| metrics.label("node_uname_info", label);
    let parts = [of("sysname"), of("release"), of("machine")];
    let text = parts.into_iter().flatten().collect::<Vec<_>>().join(" ");
    format!("{} (node_exporter)", if text.is_empty() { "not told" } else { &text })
}

pub(super) fn texts(metrics: &Metrics<'_>) -> Texts {
    let mut texts = ProcTexts::default();
    texts.stat(
        &cpus(metrics),
        &[
            ("btime", metrics.sum("node_boot_time_seconds")),
            ("intr", metrics.sum("node_intr_total")),
            ("ctxt", metrics.sum("node_context_switches_total")),
            ("processes", metrics.sum("node_forks_total")),
            ("procs_running", metrics.sum("node_procs_running")),
            ("procs_blocked", metrics.sum("node_procs_blocked")),
        ],
    );
    texts.load(metrics.sum("node_load1"));
    let memory = metrics.below("node_memory_");
    let sizes =
        memory.iter().filter_map(|(name, size)| Some((name.strip_suffix("_bytes")?, *size)));
    texts.memory(sizes);
    texts.vmstat(metrics.below("node_vmstat_"));
    texts.paired("proc/net/snmp", "Tcp", metrics.below("node_netstat_Tcp_"));
    texts.paired("proc/net/netstat", "TcpExt", metrics.below("node_netstat_TcpExt_"));
    for name in ["cpu", "io", "memory"] {
        let seconds = |kind| metrics.sum(&format!("node_pressure_{name}_{kind}_seconds_total"));
        texts.pressure(name, seconds("waiting"), seconds("stalled"));
    }
    let disks = disks(metrics);
    texts.disks(disks.iter().map(|(name, disk)| (name.as_str(), *disk)));
    let networks = networks(metrics);
    texts.networks(networks.iter().map(|(name, network)| (name.as_str(), *network)));
    texts.into_texts()
}

fn cpus(metrics: &Metrics<'_>) -> Vec<(u32, CpuSeconds)> {
    let mut cpus: BTreeMap<u32, CpuSeconds> = BTreeMap::new();
    for ([cpu, mode], seconds) in metrics.by_two(CPU, ["cpu", "mode"]) {
        let Ok(number) = cpu.parse() else { continue };
        let cpu = cpus.entry(number).or_default();
        match mode.as_str() {
            "user" => cpu.user = seconds,
            "nice" => cpu.nice = seconds,
            "system" => cpu.system = seconds,
            "idle" => cpu.idle = seconds,
            "iowait" => cpu.iowait = seconds,
            "irq" => cpu.irq = seconds,
            "softirq" => cpu.softirq = seconds,
            "steal" => cpu.steal = seconds,
            _ => {}
        }
    }
    cpus.into_iter().collect()
}

fn disks(metrics: &Metrics<'_>) -> BTreeMap<String, DiskTotals> {
    let mut disks: BTreeMap<String, DiskTotals> = BTreeMap::new();
    type Field = fn(&mut DiskTotals) -> &mut f64;
    let fields: [(&str, Field); 9] = [
        ("reads_completed_total", |disk| &mut disk.reads),
        ("read_bytes_total", |disk| &mut disk.read_bytes),
        ("read_time_seconds_total", |disk| &mut disk.read_seconds),
        ("writes_completed_total", |disk| &mut disk.writes),
        ("written_bytes_total", |disk| &mut disk.written_bytes),
        ("write_time_seconds_total", |disk| &mut disk.write_seconds),
        ("io_now", |disk| &mut disk.in_flight),
        ("io_time_seconds_total", |disk| &mut disk.busy_seconds),
        ("io_time_weighted_seconds_total", |disk| &mut disk.queue_seconds),
    ];
    for (name, field) in fields {
        for (device, value) in metrics.by(&format!("node_disk_{name}"), "device") {
            *field(disks.entry(device).or_default()) = value;
        }
    }
    disks
}

fn networks(metrics: &Metrics<'_>) -> BTreeMap<String, NetworkTotals> {
    let mut networks: BTreeMap<String, NetworkTotals> = BTreeMap::new();
    type Field = fn(&mut NetworkTotals) -> &mut f64;
    let fields: [(&str, Field); 8] = [
        ("receive_bytes_total", |network| &mut network.received_bytes),
        ("receive_packets_total", |network| &mut network.received_packets),
        ("receive_errs_total", |network| &mut network.receive_errors),
        ("receive_drop_total", |network| &mut network.receive_drops),
        ("transmit_bytes_total", |network| &mut network.sent_bytes),
        ("transmit_packets_total", |network| &mut network.sent_packets),
        ("transmit_errs_total", |network| &mut network.send_errors),
        ("transmit_drop_total", |network| &mut network.send_drops),
    ];
    for (name, field) in fields {
        for (device, value) in metrics.by(&format!("node_network_{name}"), "device") {
            *field(networks.entry(device).or_default()) = value;
        }
    }
    for (device, speed) in metrics.by("node_network_speed_bytes", "device") {
        if let Some(network) = networks.get_mut(&device) {
            network.speed = Some(speed);
        }
    }
    networks
}
