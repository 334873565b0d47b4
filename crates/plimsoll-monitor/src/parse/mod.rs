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
//! | `net/netstat`, the files of control groups, `os-release` | does not read it |

mod cgroup;
mod cpu;
mod memory;
mod mounts;
mod network;
mod nfsd;
mod nginx;
mod process;
mod prometheus;
mod sockets;
mod system;

pub use cgroup::{
    DeviceRates, Throttling, parse_cpu_max, parse_device_limits, parse_device_lines,
    parse_refaults, parse_throttling,
};
pub use cpu::{
    CpuInfo, CpuTimes, Stat, parse_cpu_list, parse_cpu_numbers, parse_cpuinfo, parse_load,
    parse_stat,
};
pub use memory::{MemInfo, parse_meminfo};
pub use mounts::{Mount, parse_mountinfo};
pub use network::{NetworkCounters, parse_net_dev, parse_paired};
pub use nfsd::{NfsdCounters, parse_nfsd};
pub use nginx::{StubStatus, parse_stub_status};
pub use process::{ProcessStat, ThreadStat, parse_limit, parse_process_stat, parse_thread_stat};
pub use prometheus::{PrometheusSample, parse_prometheus, sum_of};
pub use sockets::{SocketQueues, SocketState, parse_socket_queues};
pub use system::{Pressure, parse_os_release, parse_pressure, parse_selected, parse_status_field};

/// The n-th word as a number; `None` when it is missing or not a number.
fn nth_number(words: &[&str], index: usize) -> Option<u64> {
    words.get(index)?.parse().ok()
}
