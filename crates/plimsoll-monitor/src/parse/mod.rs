//! The texts of `/proc` and `/sys`, and what servers report of themselves, as types. Pure
//! functions: odd text gives `None` or fewer entries, never a panic and never an invented number.
//!
//! `procfs-core` reads `diskstats`, `vmstat`, `PID/cgroup`, `PID/schedstat` and `PID/statm` where
//! they are used. Version 0.18 does not serve for the rest, since the texts come from other hosts
//! too, and from exporters and SNMP agents that know a part of them:
//!
//! | text | what it does with it |
//! | --- | --- |
//! | `PID/stat`, `pressure/*`, `meminfo` | panics on a line that was cut |
//! | `meminfo`, `net/snmp`, `pressure/*`, `PID/status`, `PID/limits` | refuses a text that lacks a line |
//! | `stat` | skips interrupts, loses the numbers of processors |
//! | `cpuinfo` | counts one processor in an empty text |
//! | `loadavg` | rounds to `f32`, so that 0.05 becomes 0.05000000074505806 |
//! | `PID/mountinfo` | leaves `\040` in paths, loses the order of options |
//! | `net/dev` | loses the order of interfaces, and all of them with one odd line |
//! | `net/tcp` | takes nine times as long (10,000 sockets: 3.6 ms), since it keeps every socket |
//! | `net/netstat`, `interrupts`, `softirqs`, the files of control groups, `os-release` | does not read it |

mod cpu;
mod interrupts;
mod network;
mod process;
mod prometheus;
mod servers;
mod system;

pub use cpu::{
    CpuInfo, CpuTimes, Stat, parse_cpu_list, parse_cpu_numbers, parse_cpuinfo, parse_load,
    parse_stat,
};
pub use interrupts::{parse_interrupts, parse_softirqs};
pub use network::{
    NetworkCounters, SocketQueues, SocketState, parse_net_dev, parse_paired, parse_socket_queues,
};
pub use process::{
    DeviceRates, ProcessStat, ThreadStat, Throttling, parse_cpu_max, parse_device_limits,
    parse_device_lines, parse_limit, parse_process_stat, parse_refaults, parse_thread_stat,
    parse_throttling,
};
pub use prometheus::{Metrics, PrometheusSample, parse_prometheus};
pub use servers::{NfsdCounters, StubStatus, parse_nfsd, parse_stub_status};
pub use system::{
    MemInfo, Mount, Pressure, parse_meminfo, parse_mountinfo, parse_os_release, parse_pressure,
    parse_selected, parse_status_field,
};

/// The n-th word as a number; `None` when it is missing or not a number.
fn nth_number(words: &[&str], index: usize) -> Option<u64> {
    words.get(index)?.parse().ok()
}
