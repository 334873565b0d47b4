//! Kernel settings that bear on results, under the names `sysctl` gives them.

use plimsoll_model::disclosure::Setting;

use crate::parse::parse_selected;
use crate::root::Root;

/// Single settings below `/proc/sys`.
const SYSCTLS: [&str; 32] = [
    "fs.file-max",
    "fs.nr_open",
    "kernel.numa_balancing",
    "kernel.randomize_va_space",
    "kernel.sched_autogroup_enabled",
    "kernel.timer_migration",
    "net.ipv4.ip_local_port_range",
    "net.ipv4.tcp_abort_on_overflow",
    "net.ipv4.tcp_autocorking",
    "net.ipv4.tcp_congestion_control",
    "net.ipv4.tcp_fastopen",
    "net.ipv4.tcp_fin_timeout",
    "net.ipv4.tcp_keepalive_time",
    "net.ipv4.tcp_max_syn_backlog",
    "net.ipv4.tcp_max_tw_buckets",
    "net.ipv4.tcp_mem",
    "net.ipv4.tcp_moderate_rcvbuf",
    "net.ipv4.tcp_no_metrics_save",
    "net.ipv4.tcp_notsent_lowat",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_sack",
    "net.ipv4.tcp_slow_start_after_idle",
    "net.ipv4.tcp_syncookies",
    "net.ipv4.tcp_timestamps",
    "net.ipv4.tcp_tw_reuse",
    "net.ipv4.tcp_window_scaling",
    "net.ipv4.tcp_wmem",
    "net.ipv4.udp_mem",
    "sunrpc.tcp_max_slot_table_entries",
    "sunrpc.tcp_slot_table_entries",
    "vm.overcommit_memory",
    "vm.swappiness",
];

/// Directories below `/proc/sys` whose settings with these beginnings all count.
const SYSCTL_FAMILIES: [(&str, &str); 3] =
    [("net.core", ""), ("vm", "dirty_"), ("vm", "vfs_cache_pressure")];

/// Families hold keys and raw tables too, which say nothing or should not be disclosed.
const LEFT_OUT: [&str; 2] = ["net.core.netdev_rss_key", "net.core.flow_limit_cpu_bitmap"];

/// Longer values are tables, not settings.
const VALUE_BYTES_MAX: usize = 200;

pub(super) fn tuning(root: &Root) -> Vec<Setting> {
    let mut names: Vec<String> = SYSCTLS.iter().map(|&name| name.to_owned()).collect();
    for (family, beginning) in SYSCTL_FAMILIES {
        let members = root.names(format!("proc/sys/{}", family.replace('.', "/")));
        let members = members.iter().filter(|name| name.starts_with(beginning));
        names.extend(members.map(|name| format!("{family}.{name}")));
    }
    names.retain(|name| !LEFT_OUT.contains(&name.as_str()));
    names.sort();
    let mut settings: Vec<Setting> =
        names.into_iter().filter_map(|name| sysctl(root, name)).collect();
    settings.extend(huge_pages(root));
    settings.extend(boot_parameters(root));
    settings
}

fn sysctl(root: &Root, name: String) -> Option<Setting> {
    let value = root.line(format!("proc/sys/{}", name.replace('.', "/")))?;
    // Tabs part the numbers of a triple; one blank reads better.
    let value = value.split_whitespace().collect::<Vec<_>>().join(" ");
    (value.len() <= VALUE_BYTES_MAX).then(|| Setting::new(name, value))
}

/// Boot parameters that bear on speed. Only these: a command line may hold secrets and places.
const BOOT_PARAMETERS: [&str; 24] = [
    "amd_pstate",
    "clocksource",
    "default_hugepagesz",
    "elevator",
    "hugepages",
    "idle",
    "intel_idle.max_cstate",
    "intel_iommu",
    "intel_pstate",
    "iommu",
    "isolcpus",
    "maxcpus",
    "mem",
    "mitigations",
    "nohz",
    "nohz_full",
    "nosmt",
    "nowatchdog",
    "preempt",
    "processor.max_cstate",
    "rcu_nocbs",
    "threadirqs",
    "transparent_hugepage",
    "tsc",
];

fn boot_parameters(root: &Root) -> Option<Setting> {
    let line = root.line("proc/cmdline")?;
    let bears = |word: &&str| BOOT_PARAMETERS.contains(&word.split('=').next().unwrap_or(word));
    let found: Vec<&str> = line.split_whitespace().filter(bears).collect();
    (!found.is_empty()).then(|| Setting::new("boot parameters", found.join(" ")))
}

fn huge_pages(root: &Root) -> Vec<Setting> {
    ["enabled", "defrag"]
        .iter()
        .filter_map(|name| {
            let text = root.line(format!("sys/kernel/mm/transparent_hugepage/{name}"))?;
            Some(Setting::new(format!("transparent_hugepage.{name}"), parse_selected(&text)?))
        })
        .collect()
}
