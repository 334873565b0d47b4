//! Processors, memory, paging, TCP, UDP, pressure and throttling of the host.

use plimsoll_model::units::NANOS_PER_SECOND;
use procfs_core::{FromBufRead as _, VmStat};

use super::table::{Column, Rows, Table, Unit};
use super::{Elapsed, HostFigures, growth, share};
use crate::cgroups::{Cgroups, SELF};
use crate::parse::{
    CpuTimes, MeasuredTimes, MemInfo, Pressure, Stat, Throttling, parse_load, parse_meminfo,
    parse_paired, parse_pressure, parse_softnet, parse_stat, parse_throttling, parse_udp,
};
use crate::root::{ProcFile, Root};

const MICROS_PER_SECOND: f64 = 1e6;

pub(super) static CPUS: Table = Table::keyed("cpu").columns(&[
    Column::summed("busy", Unit::Ratio),
    Column::written("user", Unit::Ratio),
    Column::written("system", Unit::Ratio),
    Column::written("iowait", Unit::Ratio),
    Column::written("irq", Unit::Ratio),
    Column::written("softirq", Unit::Ratio),
    Column::written("steal", Unit::Ratio),
    Column::written("idle", Unit::Ratio),
]);

pub(super) static HOST: Table = Table::single("host").columns(&[
    Column::drawn("cpu_busy", Unit::Ratio),
    Column::summed("cpu_user", Unit::Ratio),
    Column::summed("cpu_system", Unit::Ratio),
    Column::summed("cpu_iowait", Unit::Ratio),
    Column::summed("cpu_irq", Unit::Ratio),
    Column::summed("cpu_softirq", Unit::Ratio),
    Column::summed("cpu_steal", Unit::Ratio),
    Column::written("cpu_idle", Unit::Ratio),
    Column::summed("cpu_busiest", Unit::Ratio),
    Column::summed("runnable", Unit::Count),
    Column::summed("blocked", Unit::Count),
    Column::written("load_1min", Unit::Count),
    Column::drawn("context_switches", Unit::PerSecond),
    Column::summed("interrupts", Unit::PerSecond),
    Column::written("forks", Unit::PerSecond),
    Column::summed("memory_used", Unit::Bytes),
    Column::summed("memory_available", Unit::Bytes),
    Column::summed("memory_cached", Unit::Bytes),
    Column::summed("memory_dirty", Unit::Bytes),
    Column::written("memory_writeback", Unit::Bytes),
    Column::summed("swap_used", Unit::Bytes),
    Column::summed("paged_in", Unit::BytesPerSecond),
    Column::written("paged_out", Unit::BytesPerSecond),
    Column::summed("swapped_in_pages", Unit::PerSecond),
    Column::summed("swapped_out_pages", Unit::PerSecond),
    Column::summed("major_faults", Unit::PerSecond),
    Column::summed("tcp_retransmits", Unit::PerSecond),
    Column::summed("tcp_listen_overflows", Unit::PerSecond),
    Column::summed("tcp_listen_drops", Unit::PerSecond),
    Column::summed("tcp_timeouts", Unit::PerSecond),
    Column::summed("tcp_loss_probes", Unit::PerSecond),
    Column::summed("tcp_syn_retransmits", Unit::PerSecond),
    Column::summed("tcp_delayed_acks", Unit::PerSecond),
    Column::summed("udp_received", Unit::PerSecond),
    // Those of full buffers included.
    Column::summed("udp_receive_errors", Unit::PerSecond),
    Column::summed("udp_receive_buffer_errors", Unit::PerSecond),
    Column::summed("softnet_processed", Unit::PerSecond),
    Column::summed("softnet_dropped", Unit::PerSecond),
    Column::summed("softnet_squeezed", Unit::PerSecond),
    Column::summed("pressure_cpu_some", Unit::Ratio),
    Column::summed("pressure_io_some", Unit::Ratio),
    Column::written("pressure_io_full", Unit::Ratio),
    Column::summed("pressure_memory_some", Unit::Ratio),
    Column::written("pressure_memory_full", Unit::Ratio),
    Column::summed("throttled_periods", Unit::PerSecond),
    Column::summed("throttled", Unit::Cores),
]);

/// Counters of `/proc/vmstat`, in the order of their columns: KiB, then pages and faults.
pub(crate) const PAGING: [&str; 5] = ["pgpgin", "pgpgout", "pswpin", "pswpout", "pgmajfault"];

/// Counters of `/proc/net/netstat`, in the order of their columns.
pub(crate) const TCP_EXT: [&str; 6] = [
    "ListenOverflows",
    "ListenDrops",
    "TCPTimeouts",
    "TCPLossProbes",
    "TCPSynRetrans",
    "DelayedACKs",
];

/// Counters of UDP in `/proc/net/snmp` and `snmp6`, in the order of their columns.
pub(crate) const UDP: [&str; 3] = ["InDatagrams", "InErrors", "RcvbufErrors"];

/// Counters, sizes and load of a host at one instant.
#[derive(Clone, Debug, Default)]
pub(crate) struct HostCounters {
    pub(crate) stat: Stat,
    /// Mean over a minute.
    pub(crate) load: Option<f64>,
    pub(crate) memory: MemInfo,
    /// See [`PAGING`].
    pub(crate) paging: [Option<u64>; PAGING.len()],
    pub(crate) retransmits: Option<u64>,
    /// See [`TCP_EXT`].
    pub(crate) tcp_ext: [Option<u64>; TCP_EXT.len()],
    /// See [`UDP`]; versions 4 and 6 of IP together.
    pub(crate) udp: [Option<u64>; UDP.len()],
    /// Packets processed, packets dropped and polls that ended early, over the processors.
    pub(crate) softnet: [Option<u64>; 3],
    /// CPU, I/O, memory.
    pub(crate) pressure: [Pressure; 3],
    pub(crate) throttling: Throttling,
}

#[derive(Debug)]
pub(super) struct HostSource {
    stat: ProcFile,
    load: ProcFile,
    memory: ProcFile,
    vm: ProcFile,
    snmp: ProcFile,
    snmp6: ProcFile,
    softnet: ProcFile,
    netstat: ProcFile,
    pressure: [ProcFile; 3],
    throttling: Option<ProcFile>,
    pub(super) before: HostCounters,
    buffer: Vec<u8>,
    values: Vec<Option<f64>>,
}

impl HostSource {
    pub(super) fn open(root: &Root) -> Self {
        let throttling = Cgroups::of_process(root, SELF).throttling_file();
        Self {
            stat: ProcFile::open(root, "proc/stat"),
            load: ProcFile::open(root, "proc/loadavg"),
            memory: ProcFile::open(root, "proc/meminfo"),
            vm: ProcFile::open(root, "proc/vmstat"),
            snmp: ProcFile::open(root, "proc/net/snmp"),
            snmp6: ProcFile::open(root, "proc/net/snmp6"),
            softnet: ProcFile::open(root, "proc/net/softnet_stat"),
            netstat: ProcFile::open(root, "proc/net/netstat"),
            pressure: ["cpu", "io", "memory"]
                .map(|name| ProcFile::open(root, format!("proc/pressure/{name}"))),
            throttling: throttling.map(|file| ProcFile::open(root, file)),
            before: HostCounters::default(),
            buffer: Vec::new(),
            values: Vec::new(),
        }
    }

    /// `reported` is what a host reports that has no texts of `/proc`.
    pub(super) fn sample(
        &mut self,
        elapsed: Elapsed,
        reported: Option<&HostFigures>,
        host: &mut Rows,
        cpus: &mut Rows,
    ) {
        let now = reported.map(|it| it.host.clone()).unwrap_or_else(|| self.counters());
        let before = std::mem::replace(&mut self.before, now);
        self.values.clear();
        let busiest = sample_cpus(&before.stat, &self.before.stat, cpus);
        self.push_cpu(&before, busiest, elapsed);
        self.push_memory(&before, elapsed);
        self.push_network(&before, elapsed);
        self.push_stalls(&before, elapsed);
        host.clear();
        host.push("", &self.values);
    }

    fn counters(&mut self) -> HostCounters {
        let buffer = &mut self.buffer;
        let stat = self.stat.read(buffer).map(|text| parse_stat(&text)).unwrap_or_default();
        let load = self.load.read(buffer).and_then(|text| parse_load(&text));
        let memory = self.memory.read(buffer).map(|text| parse_meminfo(&text)).unwrap_or_default();
        let vm = self.vm.read(buffer).and_then(|text| VmStat::from_buf_read(text.as_bytes()).ok());
        let paging = PAGING.map(|name| u64::try_from(*vm.as_ref()?.0.get(name)?).ok());
        let snmp = self.snmp.read(buffer).unwrap_or_default().into_owned();
        let retransmits = parse_paired(&snmp, "Tcp", "RetransSegs");
        let snmp6 = self.snmp6.read(buffer).unwrap_or_default();
        let udp = UDP.map(|name| parse_udp(&snmp, &snmp6, name));
        let netstat = self.netstat.read(buffer);
        let tcp_ext = TCP_EXT.map(|name| parse_paired(netstat.as_deref()?, "TcpExt", name));
        let softnet = self.softnet.read(buffer).and_then(|text| parse_softnet(&text));
        let softnet = softnet.map_or([None; 3], |counts| counts.map(Some));
        let pressure = self
            .pressure
            .each_ref()
            .map(|file| file.read(buffer).map(|text| parse_pressure(&text)).unwrap_or_default());
        let throttling = self.throttling.as_ref().and_then(|file| file.read(buffer));
        let throttling = throttling.map(|text| parse_throttling(&text)).unwrap_or_default();
        HostCounters {
            stat,
            load,
            memory,
            paging,
            retransmits,
            tcp_ext,
            udp,
            softnet,
            pressure,
            throttling,
        }
    }

    fn push_cpu(&mut self, before: &HostCounters, busiest: Option<f64>, elapsed: Elapsed) {
        let load = self.before.load;
        let (before, now) = (&before.stat, &self.before.stat);
        let shares = before.all.as_ref().zip(now.all.as_ref()).map(|(b, n)| cpu_shares(b, n));
        self.values.extend(shares.unwrap_or_default());
        self.values.extend([
            busiest,
            now.running.map(|n| n as f64),
            now.blocked.map(|n| n as f64),
            load,
            elapsed.rate(before.context_switches, now.context_switches),
            elapsed.rate(before.interrupts, now.interrupts),
            elapsed.rate(before.forks, now.forks),
        ]);
    }

    fn push_memory(&mut self, before: &HostCounters, elapsed: Elapsed) {
        let memory = self.before.memory;
        let bytes = |value: Option<u64>| value.map(|bytes| bytes as f64);
        let paging = |i: usize| elapsed.rate(before.paging[i], self.before.paging[i]);
        self.values.extend([
            growth(memory.available, memory.total),
            bytes(memory.available),
            bytes(memory.cached),
            bytes(memory.dirty),
            bytes(memory.writeback),
            growth(memory.swap_free, memory.swap_total),
            paging(0).map(|kib| kib * 1024.0),
            paging(1).map(|kib| kib * 1024.0),
            paging(2),
            paging(3),
            paging(4),
        ]);
    }

    fn push_network(&mut self, before: &HostCounters, elapsed: Elapsed) {
        let now = &self.before;
        self.values.push(elapsed.rate(before.retransmits, now.retransmits));
        let counters = |it: &HostCounters| [&it.tcp_ext[..], &it.udp, &it.softnet].concat();
        let pairs = counters(before).into_iter().zip(counters(now));
        self.values.extend(pairs.map(|(before, now)| elapsed.rate(before, now)));
    }

    fn push_stalls(&mut self, before: &HostCounters, elapsed: Elapsed) {
        let micros = |b, n| elapsed.rate(b, n).map(|us| us / MICROS_PER_SECOND);
        let some = |i: usize| micros(before.pressure[i].some_us, self.before.pressure[i].some_us);
        let full = |i: usize| micros(before.pressure[i].full_us, self.before.pressure[i].full_us);
        let (was, is) = (&before.throttling, &self.before.throttling);
        let throttled = elapsed.rate(was.throttled_ns, is.throttled_ns);
        let values = [
            some(0),
            some(1),
            full(1),
            some(2),
            full(2),
            elapsed.rate(was.periods, is.periods),
            throttled.map(|ns| ns / NANOS_PER_SECOND as f64),
        ];
        self.values.extend(values);
    }
}

/// One row per processor; returns the busiest one's share.
fn sample_cpus(before: &Stat, now: &Stat, rows: &mut Rows) -> Option<f64> {
    rows.clear();
    let mut busiest: Option<f64> = None;
    for (number, times) in &now.cpus {
        let was = before.cpus.iter().find(|(n, _)| n == number);
        let shares = was.map(|(_, was)| cpu_shares(was, times)).unwrap_or_default();
        busiest = match (busiest, shares[0]) {
            (Some(a), Some(b)) => Some(a.max(b)),
            (a, b) => a.or(b),
        };
        rows.push(&number.to_string(), &shares);
    }
    busiest
}

/// Busy, user, system, iowait, irq, softirq, steal, idle as shares of the ticks that passed.
/// Ticks, not the clock, are the whole: the kernel counts them at its own borders.
fn cpu_shares(before: &CpuTimes, now: &CpuTimes) -> [Option<f64>; 8] {
    let whole = growth(Some(before.total()), Some(now.total()));
    let part = |b: u64, n: u64| share(growth(Some(b), Some(n)), whole);
    let use_of = |b, n| part(b, n).filter(|_| now.measured != MeasuredTimes::BusyAndIdle);
    let wait = |b, n| part(b, n).filter(|_| now.measured == MeasuredTimes::All);
    [
        part(before.busy(), now.busy()),
        use_of(before.user.saturating_add(before.nice), now.user.saturating_add(now.nice)),
        use_of(before.system, now.system),
        wait(before.iowait, now.iowait),
        use_of(before.irq, now.irq),
        use_of(before.softirq, now.softirq),
        wait(before.steal, now.steal),
        part(before.idle, now.idle),
    ]
}
