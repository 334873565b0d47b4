//! What this process may use: its own limits and those of its control groups.

use plimsoll_model::disclosure::Setting;

use crate::cgroups::{Cgroups, SELF};
use crate::parse::parse_limit;
use crate::root::Root;

/// Names in `/proc/self/limits` and what the disclosure calls them.
const PROCESS_LIMITS: [(&str, &str); 4] = [
    ("Max open files", "RLIMIT_NOFILE"),
    ("Max processes", "RLIMIT_NPROC"),
    ("Max locked memory", "RLIMIT_MEMLOCK"),
    ("Max address space", "RLIMIT_AS"),
];

pub(super) fn limits(root: &Root) -> Vec<Setting> {
    let mut limits = Vec::new();
    let text = root.read("proc/self/limits").unwrap_or_default();
    for (kernel_name, name) in PROCESS_LIMITS {
        if let Some((soft, hard)) = parse_limit(&text, kernel_name) {
            limits.push(Setting::new(name, format!("{soft} (hard {hard})")));
        }
    }
    let mut add = |name: &str, value: Option<String>| {
        limits.extend(value.map(|value| Setting::new(name, value)));
    };
    let groups = Cgroups::of(root, SELF);
    add("cgroup CPU quota", groups.cpu_quota_cores().map(|cores| format!("{cores:.2} cores")));
    add("cgroup processors", groups.processors());
    add("cgroup memory", groups.memory_bytes().map(|bytes| format!("{bytes} bytes")));
    limits
}
