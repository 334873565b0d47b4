//! Processors: how many, how clocked, how cached, how guarded.

use plimsoll_model::disclosure::Setting;

use crate::parse::{CpuInfo, parse_cpu_list, parse_status_field};
use crate::root::Root;

/// Processors this process may run on. A quota is not part of it; it is among the limits.
pub(super) fn available(root: &Root) -> Option<u32> {
    let status = root.read("proc/self/status")?;
    parse_cpu_list(parse_status_field(&status, "Cpus_allowed_list")?)
}

/// Processors online.
pub(super) fn online(root: &Root, cpuinfo: &CpuInfo) -> Option<u32> {
    let listed = || (cpuinfo.processors > 0).then_some(cpuinfo.processors);
    root.line("sys/devices/system/cpu/online").and_then(|l| parse_cpu_list(&l)).or_else(listed)
}

const CPU: &str = "sys/devices/system/cpu";

/// Topology, clock, frequency control, caches and mitigations.
pub(super) fn details(root: &Root, cpuinfo: &CpuInfo) -> Vec<Setting> {
    let mut details = Vec::new();
    let mut add = |name: &str, value: Option<String>| {
        details.extend(value.map(|value| Setting::new(name, value)));
    };
    add("sockets", cpuinfo.sockets.map(|n| n.to_string()));
    add("cores per socket", cpuinfo.cores_per_socket.map(|n| n.to_string()));
    add("threads per core", threads_per_core(root));
    add("NUMA nodes", root.line("sys/devices/system/node/online"));
    add("microcode", cpuinfo.microcode.clone());
    for (name, file) in [
        ("clock source", "sys/devices/system/clocksource/clocksource0/current_clocksource"),
        ("governor", "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        ("frequency driver", "sys/devices/system/cpu/cpu0/cpufreq/scaling_driver"),
        ("idle driver", "sys/devices/system/cpu/cpuidle/current_driver"),
        ("SMT", "sys/devices/system/cpu/smt/control"),
        ("isolated processors", "sys/devices/system/cpu/isolated"),
    ] {
        add(name, root.line(file));
    }
    add("highest frequency", highest_frequency(root));
    add("turbo", turbo(root));
    for (name, value) in caches(root) {
        add(&name, Some(value));
    }
    for name in root.names(format!("{CPU}/vulnerabilities")) {
        add(&format!("mitigation {name}"), root.line(format!("{CPU}/vulnerabilities/{name}")));
    }
    details
}

fn threads_per_core(root: &Root) -> Option<String> {
    let siblings = root.line(format!("{CPU}/cpu0/topology/thread_siblings_list"))?;
    Some(parse_cpu_list(&siblings)?.to_string())
}

fn highest_frequency(root: &Root) -> Option<String> {
    let khz = root.number(format!("{CPU}/cpu0/cpufreq/cpuinfo_max_freq"))?;
    Some(format!("{} MHz", khz / 1_000))
}

/// Two drivers spell it in opposite ways.
fn turbo(root: &Root) -> Option<String> {
    let boost = root.number(format!("{CPU}/cpufreq/boost")).map(|on| on != 0);
    let no_turbo = || root.number(format!("{CPU}/intel_pstate/no_turbo")).map(|off| off == 0);
    let on = boost.or_else(no_turbo)?;
    Some(if on { "on" } else { "off" }.to_owned())
}

/// Caches of the first processor: `L2 cache` is `1024K, shared by processors 0-1`.
fn caches(root: &Root) -> Vec<(String, String)> {
    let directory = format!("{CPU}/cpu0/cache");
    root.names(&directory)
        .iter()
        .filter(|name| name.starts_with("index"))
        .filter_map(|index| {
            let part = |name: &str| root.line(format!("{directory}/{index}/{name}"));
            let kind = match part("type").as_deref() {
                Some("Data") => " data",
                Some("Instruction") => " instruction",
                _ => "",
            };
            let name = format!("L{}{kind} cache", part("level")?);
            let size = part("size")?;
            Some(match part("shared_cpu_list") {
                Some(list) => (name, format!("{size}, shared by processors {list}")),
                None => (name, size),
            })
        })
        .collect()
}
