//! The texts of `/proc` and `/sys`, and what servers report of themselves, as types. Pure
//! functions: odd text gives `None` or fewer entries, never a panic and never an invented number.
//!
//! `procfs-core` reads `vmstat`, `PID/cgroup`, `PID/schedstat` and `PID/statm` where they are used.
//! Version 0.18 does not serve for the rest, since the texts come from other hosts too:
//!
//! | text | what it does with it |
//! | --- | --- |
//! | `PID/stat`, `pressure/*`, `meminfo` | panics on a line that was cut |
//! | `meminfo`, `net/snmp`, `pressure/*`, `PID/status`, `PID/limits` | refuses a text that lacks a line |
//! | `stat` | skips interrupts, loses the numbers of processors |
//! | `cpuinfo` | counts one processor in an empty text |
//! | `loadavg` | rounds to `f32`, so that 0.05 becomes 0.05000000074505806 |
//! | `PID/mountinfo` | leaves `\040` in paths, loses the order of options |
//! | `diskstats` | takes no counters but the kernel's, while those of other hosts may be absent |
//! | `net/dev` | loses the order of interfaces, and all of them with one odd line |
//! | `net/tcp` | takes nine times as long (10,000 sockets: 3.6 ms), since it keeps every socket |
//! | `net/netstat`, `net/snmp6`, `net/softnet_stat`, `interrupts`, `softirqs`, the files of control groups, `os-release` | does not read it |

mod cpu;
mod interrupts;
mod network;
mod process;
mod prometheus;
mod servers;
mod system;

pub use cpu::{
    CpuInfo, CpuTimes, MeasuredTimes, Stat, parse_cpu_list, parse_cpu_numbers, parse_cpuinfo,
    parse_load, parse_stat,
};
pub use interrupts::{parse_interrupts, parse_softirqs};
pub use network::{
    NetworkCounters, SocketQueues, SocketState, parse_net_dev, parse_paired, parse_socket_queues,
    parse_softnet, parse_udp,
};
pub use process::{
    DeviceRates, ProcessStat, ThreadStat, Throttling, parse_cpu_max, parse_device_limits,
    parse_device_lines, parse_limit, parse_process_stat, parse_refaults, parse_thread_stat,
    parse_throttling,
};
pub(crate) use prometheus::whole;
pub use prometheus::{Metrics, PrometheusSample, parse_prometheus};
pub use servers::{NfsdCounters, StubStatus, parse_nfsd, parse_stub_status};
pub use system::{
    DiskCounters, MemInfo, Mount, Pressure, parse_diskstats, parse_meminfo, parse_mountinfo,
    parse_os_release, parse_pressure, parse_selected, parse_status_field,
};

/// Counts since boot of a disk or a network interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceCounters<const N: usize> {
    /// Kernel name.
    pub name: String,
    /// In the order of the kernel's text.
    pub counters: [Option<u64>; N],
}

impl<const N: usize> DeviceCounters<N> {
    /// `None` where one of its tokens is missing or not a number.
    fn from_tokens(name: &str, tokens: &[&str], indices: [usize; N]) -> Option<Self> {
        let counters = indices.map(|index| nth_number(tokens, index));
        let name = name.trim().to_owned();
        counters.iter().all(Option::is_some).then_some(Self { name, counters })
    }
}

/// The n-th token as a number; `None` when it is missing or not a number.
fn nth_number(tokens: &[&str], index: usize) -> Option<u64> {
    tokens.get(index)?.parse().ok()
}
