//! What a host is: every field of the disclosure's [`Host`], from `/proc`, `/sys` and `/etc`.

mod disk_tree;
mod ethtool;
mod kernel;
mod limits;
mod machine;
mod network;
mod settings;
mod storage;

use std::path::Path;

use plimsoll_model::disclosure::Host;

use crate::parse::{parse_cpuinfo, parse_meminfo, parse_os_release};
use crate::root::Root;
pub use disk_tree::{DiskTree, appended_files};
pub use limits::unreadable;
pub(crate) use network::addresses;
pub use network::interface_towards;
use settings::{Machine, settings};
pub use storage::mounted;
pub(crate) use storage::whole_disks;

/// This host. `paths` are those whose file systems matter, each with its role (`bundle`,
/// `file set`); a path that does not exist yet counts as its nearest existing parent.
pub fn inventory(paths: &[(&str, &Path)]) -> Host {
    inventory_at(&Root::default(), paths)
}

/// The host whose `proc`, `sys` and `etc` lie below `root`. What cannot be read is absent.
pub fn inventory_at(root: &Root, paths: &[(&str, &Path)]) -> Host {
    let cpuinfo = parse_cpuinfo(&root.read("proc/cpuinfo").unwrap_or_default());
    let memory = parse_meminfo(&root.read("proc/meminfo").unwrap_or_default());
    let settings = settings(root, &Machine::from_root(root, memory.total));
    Host {
        name: root.line("proc/sys/kernel/hostname"),
        firmware: machine::firmware(root, &cpuinfo),
        os: os(root),
        kernel: kernel::release(root),
        virtualisation: machine::virtualisation(root, &cpuinfo),
        cpus_available: machine::cpus_available(root),
        cpus_online: machine::cpus_online(root, &cpuinfo),
        cpu_details: machine::cpu_details(root, &cpuinfo),
        cpu_model: cpuinfo.model,
        memory_bytes: memory.total,
        swap_bytes: memory.swap_total,
        disks: storage::disks(root),
        file_systems: storage::file_systems(root, paths),
        networks: network::networks(root),
        tuning: settings.all,
        kernel_settings: settings.not_default,
        kernel_settings_judged: (settings.compared > 0).then_some(settings.compared),
        kernel_command_line: kernel::command_line(root),
        addresses: addresses(root),
        clocks: kernel::clocks(root),
        limits: limits::limits(root),
    }
}

fn os(root: &Root) -> Option<String> {
    let files = ["etc/os-release", "usr/lib/os-release"];
    files.iter().find_map(|file| parse_os_release(&root.read(file)?))
}

#[cfg(test)]
mod tests;
