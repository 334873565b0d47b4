//! The kernel: release, build, command line.

use crate::root::Root;

/// What stands for a value that is not disclosed.
const LEFT_OUT: &str = "(left out)";

/// `Linux 6.1.0-18-amd64 #1 SMP …`, what `uname -srv` says.
pub(super) fn release(root: &Root) -> Option<String> {
    let part = |name: &str| root.line(format!("proc/sys/kernel/{name}"));
    let release = part("osrelease")?;
    let parts = [part("ostype"), Some(release), part("version")];
    Some(parts.into_iter().flatten().collect::<Vec<_>>().join(" "))
}

/// Parameters whose values say how the machine runs. Values of all others are left out: a command
/// line may hold passwords, keys and addresses. What follows `--` is for the first program.
const SHOWN: [&str; 62] = [
    "acpi",
    "acpi_idle",
    "amd_iommu",
    "amd_pstate",
    "apparmor",
    "audit",
    "cgroup_disable",
    "clocksource",
    "console",
    "cpufreq.default_governor",
    "default_hugepagesz",
    "elevator",
    "hpet",
    "hugepages",
    "hugepagesz",
    "idle",
    "init_on_alloc",
    "init_on_free",
    "intel_idle.max_cstate",
    "intel_iommu",
    "intel_pstate",
    "iommu",
    "iommu.passthrough",
    "iommu.strict",
    "irqaffinity",
    "isolcpus",
    "kpti",
    "l1tf",
    "maxcpus",
    "mds",
    "mem",
    "memmap",
    "mitigations",
    "net.ifnames",
    "nmi_watchdog",
    "nohz",
    "nohz_full",
    "nosmt",
    "nr_cpus",
    "numa",
    "numa_balancing",
    "nvme.poll_queues",
    "nvme_core.default_ps_max_latency_us",
    "pci",
    "pcie_aspm",
    "preempt",
    "processor.max_cstate",
    "psi",
    "rcu_nocbs",
    "rootfstype",
    "selinux",
    "skew_tick",
    "spec_store_bypass_disable",
    "spectre_v2",
    "srbds",
    "swiotlb",
    "systemd.unified_cgroup_hierarchy",
    "transparent_hugepage",
    "tsc",
    "tsx",
    "workqueue.unbound_cpus",
    "zswap.enabled",
];

/// Names of all parameters, and the values of those that are known to hold no secret.
pub(super) fn command_line(root: &Root) -> Option<String> {
    let line = root.line("proc/cmdline")?;
    let mut words = Vec::new();
    for word in line.split_whitespace() {
        if word == "--" {
            words.push(format!("-- {LEFT_OUT}"));
            break;
        }
        words.push(match word.split_once('=') {
            Some((name, _)) if !SHOWN.contains(&name) => format!("{name}={LEFT_OUT}"),
            _ => word.to_owned(),
        });
    }
    Some(words.join(" "))
}
