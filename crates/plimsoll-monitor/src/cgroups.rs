//! The control groups of a process, of both versions: what they allow, and the files that count.
//!
//! A limit may be set on any group above the process's own; the smallest applies.

use std::path::{Path, PathBuf};

use procfs_core::{FromBufRead as _, ProcessCGroup, ProcessCGroups};

use crate::parse::{DeviceRates, Mount, parse_cpu_max, parse_device_limits, parse_mountinfo};
use crate::root::Root;

/// This process, where a process is named.
pub(crate) const SELF: &str = "self";

/// Version 1 writes "no limit" as a number near the largest; nobody has that much memory.
const MEMORY_LIMIT_BYTES_MAX: u64 = 1 << 60;

/// Field of one limit.
type LimitField = fn(&mut DeviceRates) -> &mut Option<u64>;

/// The control groups a process is in.
pub(crate) struct Cgroups<'a> {
    root: &'a Root,
    mounts: Vec<Mount>,
    paths: Vec<ProcessCGroup>,
}

impl<'a> Cgroups<'a> {
    /// Groups of a process: its id, or [`SELF`].
    pub(crate) fn of_process(root: &'a Root, process: &str) -> Self {
        let mounts = root.read("proc/self/mountinfo").unwrap_or_default();
        let paths = root.read(format!("proc/{process}/cgroup")).unwrap_or_default();
        let paths = ProcessCGroups::from_buf_read(paths.as_bytes());
        let paths = paths.map(|paths| paths.0).unwrap_or_default();
        Self { root, mounts: parse_mountinfo(&mounts), paths }
    }

    /// Directories of the version 2 hierarchy, from the process's own group up to the mount.
    fn v2_directories(&self) -> Vec<PathBuf> {
        let mount = self.mounts.iter().find(|mount| mount.kind == "cgroup2");
        let path = self.paths.iter().find(|path| path.controllers.is_empty());
        mount.zip(path).map(|(mount, path)| self.upwards(mount, &path.pathname)).unwrap_or_default()
    }

    /// The same for the version 1 hierarchy of a controller.
    fn v1_directories(&self, controller: &str) -> Vec<PathBuf> {
        let mount = self.mounts.iter().find(|m| m.kind == "cgroup" && m.has_option(controller));
        let path = self.paths.iter().find(|p| p.controllers.iter().any(|c| c == controller));
        mount.zip(path).map(|(mount, path)| self.upwards(mount, &path.pathname)).unwrap_or_default()
    }

    /// A container often sees its own group mounted as the root, while its path is the host's.
    fn upwards(&self, mount: &Mount, path: &str) -> Vec<PathBuf> {
        let path = Path::new(path);
        let below = path.strip_prefix(&mount.subtree).or_else(|_| path.strip_prefix("/"));
        let own = mount.mount_point.join(below.unwrap_or(Path::new("")));
        let inside = own.ancestors().take_while(|dir| dir.starts_with(&mount.mount_point));
        inside.filter(|dir| self.root.has(dir)).map(Path::to_owned).collect()
    }

    /// Files of the process's own groups that are sampled.
    pub(crate) fn own_files(&self) -> Vec<PathBuf> {
        let sampled = [
            (self.v2_directories(), &["cpu.stat", "memory.stat", "io.stat"][..]),
            (self.v1_directories("cpu"), &["cpu.stat"]),
            (self.v1_directories("memory"), &["memory.stat"]),
        ];
        let files = sampled.into_iter().filter_map(|(directories, files)| {
            let own = directories.into_iter().next()?;
            Some(files.iter().map(move |file| own.join(file)))
        });
        files.flatten().collect()
    }

    /// The file that counts how often a quota throttled the group: that of the smallest quota,
    /// else of the group itself.
    pub(crate) fn throttling_file(&self) -> Option<PathBuf> {
        let directories = [self.v2_directories(), self.v1_directories("cpu")].concat();
        let smallest = self.smallest_quota().map(|(directory, _)| directory);
        smallest
            .into_iter()
            .chain(directories)
            .map(|directory| directory.join("cpu.stat"))
            .find(|file| self.root.read(file).is_some_and(|text| text.contains("nr_throttled")))
    }

    /// The smallest quota of the group and those above it.
    pub(crate) fn cpu_quota_cores(&self) -> Option<f64> {
        self.smallest_quota().map(|(_, cores)| cores)
    }

    fn smallest_quota(&self) -> Option<(PathBuf, f64)> {
        let v2 = self.v2_directories().into_iter().filter_map(|dir| {
            let cores = parse_cpu_max(&self.root.line(dir.join("cpu.max"))?)?;
            Some((dir, cores))
        });
        let v1 = self.v1_directories("cpu").into_iter().filter_map(|dir| {
            let quota = self.root.line(dir.join("cpu.cfs_quota_us"))?;
            let period = self.root.line(dir.join("cpu.cfs_period_us"))?;
            let cores = parse_cpu_max(&format!("{quota} {period}"))?;
            Some((dir, cores))
        });
        v2.chain(v1).min_by(|a, b| a.1.total_cmp(&b.1))
    }

    /// The processors the group may use, as a list.
    pub(crate) fn processors(&self) -> Option<String> {
        let directories = [self.v2_directories(), self.v1_directories("cpuset")].concat();
        let files = ["cpuset.cpus.effective", "cpuset.effective_cpus", "cpuset.cpus"];
        directories
            .iter()
            .flat_map(|directory| files.map(|file| directory.join(file)))
            .find_map(|file| self.root.line(file))
    }

    /// The smallest memory limit of the group and those above it.
    pub(crate) fn memory_bytes(&self) -> Option<u64> {
        self.smallest_memory().map(|(_, bytes)| bytes)
    }

    /// The group of the smallest memory limit, by its directory; the process's own without one.
    pub(crate) fn memory_directory(&self) -> Option<PathBuf> {
        let own = || {
            let own = [self.v1_directories("memory"), self.v2_directories()].concat();
            own.into_iter().find(|dir| self.root.has(dir.join("memory.stat")))
        };
        self.smallest_memory().map(|(directory, _)| directory).or_else(own)
    }

    fn smallest_memory(&self) -> Option<(PathBuf, u64)> {
        let of = |directories: Vec<PathBuf>, file: &'static str| {
            let limits = directories.into_iter().filter_map(move |directory| {
                let bytes = self.root.number(directory.join(file))?;
                Some((directory, bytes))
            });
            limits.collect::<Vec<_>>()
        };
        let v2 = of(self.v2_directories(), "memory.max");
        let v1 = of(self.v1_directories("memory"), "memory.limit_in_bytes");
        let limits = v2.into_iter().chain(v1);
        limits.filter(|(_, bytes)| *bytes < MEMORY_LIMIT_BYTES_MAX).min_by_key(|(_, bytes)| *bytes)
    }

    /// Files that count the group's transfers since it was made: version 1 has one of requests and
    /// one of bytes, version 2 one of both.
    pub(crate) fn storage_files(&self) -> Vec<PathBuf> {
        match (self.v1_directories("blkio").first(), self.v2_directories().first()) {
            (Some(dir), _) => ["io_serviced", "io_service_bytes"]
                .map(|file| dir.join(format!("blkio.throttle.{file}_recursive")))
                .to_vec(),
            (None, Some(dir)) => vec![dir.join("io.stat")],
            (None, None) => Vec::new(),
        }
    }

    /// What the group and those above it are allowed per second, by device.
    pub(crate) fn storage_limits(&self) -> Vec<(String, DeviceRates)> {
        let mut smallest: Vec<(String, DeviceRates)> = Vec::new();
        let mut add = |limits: Vec<(String, DeviceRates)>| {
            for (device, rates) in limits {
                match smallest.iter_mut().find(|(name, _)| *name == device) {
                    Some((_, existing)) => existing.keep_smaller(&rates),
                    None => smallest.push((device, rates)),
                }
            }
        };
        for dir in self.v1_directories("blkio") {
            add(self.v1_storage_limits(&dir));
        }
        for dir in self.v2_directories() {
            add(parse_device_limits(&self.root.read(dir.join("io.max")).unwrap_or_default()));
        }
        smallest
    }

    fn v1_storage_limits(&self, dir: &Path) -> Vec<(String, DeviceRates)> {
        let mut limits: Vec<(String, DeviceRates)> = Vec::new();
        let files: [(&str, LimitField); 4] = [
            ("read_iops", |rates| &mut rates.reads),
            ("write_iops", |rates| &mut rates.writes),
            ("read_bps", |rates| &mut rates.read_bytes),
            ("write_bps", |rates| &mut rates.written_bytes),
        ];
        for (file, field) in files {
            let path = dir.join(format!("blkio.throttle.{file}_device"));
            let text = self.root.read(path).unwrap_or_default();
            for line in text.lines() {
                let Some((device, limit)) = line.split_once(' ') else { continue };
                let position = limits.iter().position(|(name, _)| name == device);
                let position = position.unwrap_or_else(|| {
                    limits.push((device.to_owned(), DeviceRates::default()));
                    limits.len() - 1
                });
                *field(&mut limits[position].1) = limit.trim().parse().ok();
            }
        }
        limits
    }
}
