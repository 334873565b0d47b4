//! Bare metal, virtual machine or container: only what the host itself shows.

use crate::parse::CpuInfo;
use crate::root::Root;

/// Words of a cgroup path that only container software writes.
const CONTAINER_PATHS: [&str; 5] = ["docker", "kubepods", "containerd", "libpod", "lxc"];

/// One line for the disclosure; `None` when nothing points either way.
pub(super) fn virtualisation(root: &Root, cpuinfo: &CpuInfo) -> Option<String> {
    let parts: Vec<String> =
        [machine(root, cpuinfo), container(root)].into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}

/// The flag decides: a DMI name alone is only shown, since metal has one too.
fn machine(root: &Root, cpuinfo: &CpuInfo) -> Option<String> {
    let kind = match (root.line("sys/hypervisor/type"), cpuinfo.hypervisor) {
        (Some(hypervisor), _) => format!("virtual machine on {hypervisor}"),
        (None, Some(true)) => "virtual machine".to_owned(),
        (None, Some(false)) => "bare metal".to_owned(),
        (None, None) => return dmi(root).map(|name| format!("machine: {name}")),
    };
    Some(match dmi(root) {
        Some(name) => format!("{kind} ({name})"),
        None => kind,
    })
}

fn dmi(root: &Root) -> Option<String> {
    let names = ["sys_vendor", "product_name"];
    let found = names.iter().filter_map(|name| root.line(format!("sys/class/dmi/id/{name}")));
    let found: Vec<String> = found.collect();
    (!found.is_empty()).then(|| found.join(" "))
}

fn container(root: &Root) -> Option<String> {
    if let Some(kind) = root.line("run/systemd/container") {
        return Some(format!("container ({kind})"));
    }
    for (mark, kind) in [(".dockerenv", "docker"), ("run/.containerenv", "podman")] {
        if root.has(mark) {
            return Some(format!("container ({kind})"));
        }
    }
    let cgroups = root.read("proc/self/cgroup")?;
    let kind = CONTAINER_PATHS.iter().find(|kind| cgroups.contains(&format!("/{kind}")))?;
    Some(format!("container ({kind})"))
}
