//! The kernel: release, build, command line; what time is read from, and what keeps it right.

use plimsoll_model::disclosure::Setting;

use crate::root::Root;

/// Shown instead of a value that is not disclosed.
const LEFT_OUT: &str = "(left out)";

/// `Linux 6.1.0-18-amd64 #1 SMP …`, as `uname -srv` prints it.
pub(super) fn release(root: &Root) -> Option<String> {
    let part = |name: &str| root.line(format!("proc/sys/kernel/{name}"));
    let release = part("osrelease")?;
    let parts = [part("ostype"), Some(release), part("version")];
    Some(parts.into_iter().flatten().collect::<Vec<_>>().join(" "))
}

/// Parameters whose values show how the machine runs. Values of all others are left out: a command
/// line may contain passwords, keys and addresses. Text after `--` is for the first program.
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

/// Names of all parameters, and the values of those that are known to contain no secret.
pub(super) fn command_line(root: &Root) -> Option<String> {
    let line = root.line("proc/cmdline")?;
    let mut tokens = Vec::new();
    for word in line.split_whitespace() {
        if word == "--" {
            tokens.push(format!("-- {LEFT_OUT}"));
            break;
        }
        tokens.push(match word.split_once('=') {
            Some((name, _)) if !SHOWN.contains(&name) => format!("{name}={LEFT_OUT}"),
            _ => word.to_owned(),
        });
    }
    Some(tokens.join(" "))
}

const CLOCKSOURCE: &str = "sys/devices/system/clocksource/clocksource0";
/// Programs that keep a clock right, by the names of their processes.
const KEEPERS: [&str; 6] = ["chronyd", "ntpd", "systemd-timesyn", "openntpd", "ptp4l", "phc2sys"];

pub(super) fn clocks(root: &Root) -> Vec<Setting> {
    let mut settings = Vec::new();
    let mut add = |name: &str, value: Option<String>| {
        settings.extend(value.map(|value| Setting::new(name, value)));
    };
    add("clock source", root.line(format!("{CLOCKSOURCE}/current_clocksource")));
    add("clock sources there are", root.line(format!("{CLOCKSOURCE}/available_clocksource")));
    let devices = root.names("sys/class/ptp");
    let device = |name: &String| root.line(format!("sys/class/ptp/{name}/clock_name"));
    let devices: Vec<String> = devices.iter().filter_map(device).collect();
    add("hardware clocks", (!devices.is_empty()).then(|| devices.join(", ")));
    let kept = root.has("run/systemd/timesync/synchronized");
    add("set by systemd-timesyncd", kept.then(|| "yes, since it was started".to_owned()));
    let keepers = keepers(root);
    add("kept by", (!keepers.is_empty()).then(|| keepers.join(", ")));
    settings
}

fn keepers(root: &Root) -> Vec<String> {
    let is_process = |name: &String| name.bytes().all(|b| b.is_ascii_digit());
    let processes = root.names("proc").into_iter().filter(is_process);
    let mut names: Vec<String> = processes
        .filter_map(|pid| root.line(format!("proc/{pid}/comm")))
        .filter(|name| KEEPERS.contains(&name.as_str()))
        .collect();
    names.sort();
    names.dedup();
    names
}
