//! The disks that files lie on: from a mount to its device, and from there through partitions and
//! devices that are made of others (dm, md).

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::storage::{nearest_existing, whole_disks};
use crate::parse::{Mount, parse_mountinfo};
use crate::root::Root;

/// The disks of a host, and what they are made of.
#[derive(Clone, Debug, Default)]
pub struct DiskTree {
    /// Whole disks with a size.
    disks: Vec<String>,
    /// `None` where only the names are known.
    root: Option<Root>,
}

impl DiskTree {
    /// Those of the host whose `proc` and `sys` lie below `root`.
    pub fn from_root(root: Root) -> Self {
        Self { disks: whole_disks(&root), root: Some(root) }
    }

    /// Those of a host that has no `/sys`.
    pub(crate) const fn from_names(disks: Vec<String>) -> Self {
        Self { disks, root: None }
    }

    /// All names.
    pub fn names(&self) -> &[String] {
        &self.disks
    }

    /// The disk of this name, or those below this absolute path; empty if there are none.
    pub fn find(&self, name_or_path: &str) -> Vec<String> {
        match name_or_path.starts_with('/') {
            true => self.below(Path::new(name_or_path), "self"),
            false => self.disks.iter().filter(|disk| *disk == name_or_path).cloned().collect(),
        }
    }

    /// The disks that a path lies on, in the view of a process (its id, or `self`): a server may
    /// have mounts of its own. Empty where its file system names no disk: in memory, of the
    /// network, of several disks.
    pub fn below(&self, path: &Path, process: &str) -> Vec<String> {
        let Some(root) = &self.root else { return Vec::new() };
        let resolved = nearest_existing(path).filter(|_| root.is_this_host());
        let mounts = root.read(format!("proc/{process}/mountinfo")).unwrap_or_default();
        let mounts = parse_mountinfo(&mounts);
        let mount = Mount::holding(&mounts, resolved.as_deref().unwrap_or(path));
        let device = mount.and_then(|it| root.link_name(format!("sys/dev/block/{}", it.device)));
        let (mut visited, mut disks) = (BTreeSet::new(), BTreeSet::new());
        let mut left = Vec::from_iter(device);
        while let Some(device) = left.pop() {
            let is_part = |disk: &&String| root.has(format!("sys/block/{disk}/{device}/partition"));
            let whole = self.disks.iter().find(is_part).unwrap_or(&device);
            let parts = root.names(format!("sys/block/{whole}/slaves"));
            if parts.is_empty() {
                disks.extend(self.disks.iter().find(|disk| *disk == whole).cloned());
            }
            if visited.insert(whole.clone()) {
                left.extend(parts);
            }
        }
        disks.into_iter().collect()
    }
}

/// Files of this host that a process has open for appending: its logs.
pub fn appended_files(pid: u32) -> Vec<PathBuf> {
    const APPENDS: u32 = 0o2000;
    let root = Root::default();
    let path = |number: String| {
        let info = root.read(format!("proc/{pid}/fdinfo/{number}"))?;
        let flags = info.lines().find_map(|line| line.strip_prefix("flags:"))?;
        let appends = u32::from_str_radix(flags.trim(), 8).ok()? & APPENDS != 0;
        let file = root.path(format!("proc/{pid}/fd/{number}"));
        let is_file = appends && file.metadata().is_ok_and(|file| file.is_file());
        is_file.then(|| file.read_link().ok())?
    };
    root.names(format!("proc/{pid}/fd")).into_iter().filter_map(path).collect()
}

#[cfg(test)]
mod tests;
