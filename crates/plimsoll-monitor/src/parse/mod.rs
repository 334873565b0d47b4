//! The texts of `/proc` and `/sys`, and what servers tell of themselves, as types. Pure functions: odd text gives `None` or fewer
//! entries, never a panic and never an invented number.

mod cgroup;
mod cpu;
mod disk;
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
    CgroupPath, DeviceRates, Throttling, parse_cgroup_paths, parse_cpu_max, parse_device_limits,
    parse_device_lines, parse_refaults, parse_throttling,
};
pub use cpu::{
    CpuInfo, CpuTimes, Stat, parse_cpu_list, parse_cpu_numbers, parse_cpuinfo, parse_load,
    parse_stat,
};
pub use disk::{DiskCounters, parse_diskstats};
pub use memory::{MemInfo, VmStat, parse_meminfo, parse_vmstat};
pub use mounts::{Mount, parse_mountinfo};
pub use network::{NetworkCounters, parse_net_dev, parse_paired};
pub use nfsd::{NfsdCounters, parse_nfsd};
pub use nginx::{StubStatus, parse_stub_status};
pub use process::{
    ProcessStat, SchedStat, ThreadStat, parse_limit, parse_process_stat, parse_resident_pages,
    parse_schedstat, parse_thread_stat,
};
pub use prometheus::{PrometheusSample, parse_prometheus, sum_of};
pub use sockets::{SocketQueues, SocketState, parse_socket_queues};
pub use system::{Pressure, parse_os_release, parse_pressure, parse_selected, parse_status_field};

/// The n-th word as a number; `None` when it is missing or not a number.
fn nth_number(words: &[&str], index: usize) -> Option<u64> {
    words.get(index)?.parse().ok()
}
