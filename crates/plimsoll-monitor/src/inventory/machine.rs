//! The machine: processors, vendor and firmware, virtualisation.

use std::collections::BTreeSet;

use plimsoll_model::certificate::NOT_VISIBLE;
use plimsoll_model::disclosure::Setting;

use crate::parse::{CpuInfo, parse_cpu_list, parse_status_field};
use crate::root::Root;

/// Processors this process may run on. A quota is not part of it; it is among the limits.
pub(super) fn cpus_available(root: &Root) -> Option<u32> {
    let status = root.read("proc/self/status")?;
    parse_cpu_list(parse_status_field(&status, "Cpus_allowed_list")?)
}

/// Processors online.
pub(super) fn cpus_online(root: &Root, cpuinfo: &CpuInfo) -> Option<u32> {
    let listed = || (cpuinfo.processors > 0).then_some(cpuinfo.processors);
    root.line("sys/devices/system/cpu/online").and_then(|l| parse_cpu_list(&l)).or_else(listed)
}

const CPU: &str = "sys/devices/system/cpu";

/// Topology, clock, frequency control, caches and mitigations.
pub(super) fn cpu_details(root: &Root, cpuinfo: &CpuInfo) -> Vec<Setting> {
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
    add("deepest C-state", deepest_c_state(root));
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

/// The deepest idle state that is enabled, of each processor that differs: `C6 (133 µs to wake)`.
/// `None` only where nothing of the processors is visible.
fn deepest_c_state(root: &Root) -> Option<String> {
    let number = |name: &str, prefix: &str| name.strip_prefix(prefix)?.parse::<u32>().ok();
    let deepest = |cpu: &String| {
        number(cpu, "cpu")?;
        let states = root.names(format!("{CPU}/{cpu}/cpuidle"));
        let numbers = states.iter().filter_map(|state| number(state, "state"));
        let directory = |state: u32| format!("{CPU}/{cpu}/cpuidle/state{state}");
        let is_enabled =
            |state: &u32| root.number(format!("{}/disable", directory(*state))) == Some(0);
        let deepest = directory(numbers.filter(is_enabled).max()?);
        let name = root.line(format!("{deepest}/name"))?;
        Some(match root.number(format!("{deepest}/latency")) {
            Some(latency_us) => format!("{name} ({latency_us} µs to wake)"),
            None => name,
        })
    };
    let processors = root.names(CPU);
    let states: BTreeSet<String> = processors.iter().filter_map(deepest).collect();
    let text = match states.is_empty() {
        true => NOT_VISIBLE.to_owned(),
        false => states.into_iter().collect::<Vec<_>>().join(", "),
    };
    (!processors.is_empty()).then_some(text)
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

const DMI: &str = "sys/class/dmi/id";

/// Words that boards carry where nobody wrote anything.
const FILLERS: [&str; 5] =
    ["To Be Filled By O.E.M.", "Default string", "Not Specified", "None", "System Product Name"];

/// Vendor, model, board and firmware, from the firmware's tables (DMI). Serial numbers and ids of
/// a single machine are not read.
pub(super) fn firmware(root: &Root, cpuinfo: &CpuInfo) -> Vec<Setting> {
    let rows = [
        ("system", &["sys_vendor", "product_name", "product_version"][..]),
        ("board", &["board_vendor", "board_name", "board_version"]),
        ("BIOS", &["bios_vendor", "bios_version"]),
        ("BIOS date", &["bios_date"]),
        ("BIOS release", &["bios_release"]),
        ("firmware of the board's controller", &["ec_firmware_release"]),
    ];
    let mut settings: Vec<Setting> = rows
        .iter()
        .filter_map(|(name, files)| {
            let parts = files.iter().filter_map(|file| root.line(format!("{DMI}/{file}")));
            let parts: Vec<String> =
                parts.filter(|text| !FILLERS.contains(&text.as_str())).collect();
            (!parts.is_empty()).then(|| Setting::new(*name, parts.join(" ")))
        })
        .collect();
    if root.has("sys/firmware/efi") {
        settings.push(Setting::new("started by", "UEFI"));
    }
    settings.extend(cpuinfo.microcode.clone().map(|text| Setting::new("microcode", text)));
    let hypervisor = root.line("sys/hypervisor/type");
    settings.extend(hypervisor.map(|text| Setting::new("hypervisor", text)));
    settings
}

/// Words of a cgroup path that only container software writes.
const CONTAINER_PATHS: [&str; 5] = ["docker", "kubepods", "containerd", "libpod", "lxc"];

/// Bare metal, virtual machine or container, in one line, from what the host itself shows; `None`
/// without any evidence.
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
    let values = names.iter().filter_map(|name| root.line(format!("sys/class/dmi/id/{name}")));
    let values: Vec<String> = values.collect();
    (!values.is_empty()).then(|| values.join(" "))
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
