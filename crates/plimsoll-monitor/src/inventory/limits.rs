//! What this process may use: its own limits and those of its control groups.

use std::path::{Path, PathBuf};

use plimsoll_model::disclosure::Setting;

use crate::parse::{
    CgroupPath, Mount, parse_cgroup_paths, parse_cpu_max, parse_limit, parse_mountinfo,
};
use crate::root::Root;

/// Names in `/proc/self/limits` and what the disclosure calls them.
const PROCESS_LIMITS: [(&str, &str); 4] = [
    ("Max open files", "RLIMIT_NOFILE"),
    ("Max processes", "RLIMIT_NPROC"),
    ("Max locked memory", "RLIMIT_MEMLOCK"),
    ("Max address space", "RLIMIT_AS"),
];

/// Version 1 writes "no limit" as a number near the largest; nobody has that much memory.
const MEMORY_LIMIT_BYTES_MAX: u64 = 1 << 60;

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
    let groups = Cgroups::of_this_process(root);
    add("cgroup CPU quota", groups.cpu_quota_cores().map(|cores| format!("{cores:.2} cores")));
    add("cgroup processors", groups.processors());
    add("cgroup memory", groups.memory_bytes().map(|bytes| format!("{bytes} bytes")));
    limits
}

/// The control groups this process is in.
pub(crate) struct Cgroups<'a> {
    root: &'a Root,
    mounts: Vec<Mount>,
    paths: Vec<CgroupPath>,
}

impl<'a> Cgroups<'a> {
    pub(crate) fn of_this_process(root: &'a Root) -> Self {
        let mounts = root.read("proc/self/mountinfo").unwrap_or_default();
        let paths = root.read("proc/self/cgroup").unwrap_or_default();
        Self { root, mounts: parse_mountinfo(&mounts), paths: parse_cgroup_paths(&paths) }
    }

    /// Directories of the version 2 hierarchy, from the process's own group up to the mount.
    fn v2_directories(&self) -> Vec<PathBuf> {
        let mount = self.mounts.iter().find(|mount| mount.kind == "cgroup2");
        let path = self.paths.iter().find(|path| path.is_v2());
        mount.zip(path).map(|(mount, path)| self.upwards(mount, &path.path)).unwrap_or_default()
    }

    /// The same for the version 1 hierarchy of a controller.
    fn v1_directories(&self, controller: &str) -> Vec<PathBuf> {
        let mount = self.mounts.iter().find(|m| m.kind == "cgroup" && m.has_option(controller));
        let path = self.paths.iter().find(|p| p.controllers.iter().any(|c| c == controller));
        mount.zip(path).map(|(mount, path)| self.upwards(mount, &path.path)).unwrap_or_default()
    }

    /// A container often sees its own group mounted as the root, while its path is the host's.
    fn upwards(&self, mount: &Mount, path: &str) -> Vec<PathBuf> {
        let path = Path::new(path);
        let below = path.strip_prefix(&mount.subtree).or_else(|_| path.strip_prefix("/"));
        let own = mount.mount_point.join(below.unwrap_or(Path::new("")));
        let inside = own.ancestors().take_while(|dir| dir.starts_with(&mount.mount_point));
        inside.filter(|dir| self.root.path(dir).is_dir()).map(Path::to_owned).collect()
    }

    /// The file that counts how often a quota held this process's group back.
    pub(crate) fn throttling_file(&self) -> Option<PathBuf> {
        let directories = [self.v2_directories(), self.v1_directories("cpu")].concat();
        directories
            .iter()
            .map(|directory| directory.join("cpu.stat"))
            .find(|file| self.root.read(file).is_some_and(|text| text.contains("nr_throttled")))
    }

    /// The smallest quota of the group and those above it.
    fn cpu_quota_cores(&self) -> Option<f64> {
        let v2 = self.v2_directories();
        let v2 = v2.iter().filter_map(|dir| parse_cpu_max(&self.root.line(dir.join("cpu.max"))?));
        let v1 = self.v1_directories("cpu");
        let v1 = v1.iter().filter_map(|dir| {
            let quota = self.root.line(dir.join("cpu.cfs_quota_us"))?;
            let period = self.root.line(dir.join("cpu.cfs_period_us"))?;
            parse_cpu_max(&format!("{quota} {period}"))
        });
        v2.chain(v1).min_by(f64::total_cmp)
    }

    /// The processors the group may use, as a list.
    fn processors(&self) -> Option<String> {
        let directories = [self.v2_directories(), self.v1_directories("cpuset")].concat();
        let files = ["cpuset.cpus.effective", "cpuset.effective_cpus", "cpuset.cpus"];
        directories
            .iter()
            .flat_map(|directory| files.map(|file| directory.join(file)))
            .find_map(|file| self.root.line(file))
    }

    /// The smallest memory limit of the group and those above it.
    fn memory_bytes(&self) -> Option<u64> {
        let v2 = self.v2_directories().into_iter().map(|dir| dir.join("memory.max"));
        let v1 = self.v1_directories("memory");
        let v1 = v1.into_iter().map(|dir| dir.join("memory.limit_in_bytes"));
        let limits = v2.chain(v1).filter_map(|file| self.root.number(file));
        limits.filter(|&bytes| bytes < MEMORY_LIMIT_BYTES_MAX).min()
    }
}
