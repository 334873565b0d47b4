//! Disks, and the file systems that the run reads and writes.

use std::path::{Path, PathBuf};

use plimsoll_model::disclosure::{Disk, FileSystem, Setting};

use crate::parse::{Mount, parse_mountinfo, parse_selected};
use crate::root::Root;

/// `/sys/block/*/size` counts these, whatever the disk's own sectors.
const SECTOR_BYTES: u64 = 512;

/// Names of whole disks with a size; empty where that is unknown.
pub(crate) fn whole_disks(root: &Root) -> Vec<String> {
    let mut names = root.names("sys/block");
    names.retain(|name| root.number(format!("sys/block/{name}/size")) != Some(0));
    names
}

/// Whole disks with a size; empty loop and memory devices are left out.
pub(super) fn disks(root: &Root) -> Vec<Disk> {
    root.names("sys/block").into_iter().filter_map(|name| disk(root, name)).collect()
}

fn disk(root: &Root, name: String) -> Option<Disk> {
    let directory = format!("sys/block/{name}");
    let size_bytes = root.number(format!("{directory}/size"))?.checked_mul(SECTOR_BYTES)?;
    if size_bytes == 0 {
        return None;
    }
    let medium = match root.number(format!("{directory}/queue/rotational")) {
        Some(0) => "solid state",
        Some(_) => "rotational",
        None => "unknown",
    };
    let kind = match root.line(format!("{directory}/device/model")) {
        Some(model) => format!("{medium}, {model}"),
        None => medium.to_owned(),
    };
    let scheduler = root.line(format!("{directory}/queue/scheduler"));
    let scheduler = scheduler.as_deref().and_then(parse_selected).map(str::to_owned);
    Some(Disk { details: details(root, &directory), name, size_bytes, kind, scheduler })
}

/// The disk's own description. Serial numbers are not read.
fn details(root: &Root, directory: &str) -> Vec<Setting> {
    let files = [
        ("vendor", "device/vendor"),
        ("firmware", "device/firmware_rev"),
        ("revision", "device/rev"),
        ("write cache", "queue/write_cache"),
        ("logical block", "queue/logical_block_size"),
        ("physical block", "queue/physical_block_size"),
        ("transport", "device/transport"),
    ];
    let read = |(name, file): (&str, &str)| {
        let value = root.line(format!("{directory}/{file}"))?;
        let unit = if name.ends_with("block") { " bytes" } else { "" };
        Some(Setting::new(name, format!("{value}{unit}")))
    };
    let mut settings: Vec<Setting> = files.into_iter().filter_map(read).collect();
    let parts = root.names(format!("{directory}/slaves"));
    if !parts.is_empty() {
        settings.push(Setting::new("made of", parts.join(", ")));
    }
    let queues = root.names(format!("{directory}/mq")).len();
    if queues > 0 {
        settings.push(Setting::new("queues", queues.to_string()));
    }
    settings
}

/// The file system below each path. One whose size cannot be read is left out.
pub(super) fn file_systems(root: &Root, paths: &[(&str, &Path)]) -> Vec<FileSystem> {
    let mounts = parse_mountinfo(&root.read("proc/self/mountinfo").unwrap_or_default());
    paths.iter().filter_map(|(role, path)| file_system(&mounts, role, path)).collect()
}

/// File systems of disks of this host that are no pseudo file systems (a kernel's tables, a
/// container's layers).
const ON_DISKS: [&str; 9] =
    ["bcachefs", "btrfs", "ext2", "ext3", "ext4", "f2fs", "tmpfs", "xfs", "zfs"];
/// Directories whose file systems in memory belong to the system.
const OF_SYSTEM: [&str; 4] = ["/dev", "/proc", "/run", "/sys"];

/// Every directory that a file system of a disk is mounted on, or that lies in memory.
pub fn mounted(root: &Root) -> Vec<PathBuf> {
    let mounts = parse_mountinfo(&root.read("proc/self/mountinfo").unwrap_or_default());
    let mut mount_points: Vec<PathBuf> = mounts
        .into_iter()
        .filter(|mount| ON_DISKS.contains(&mount.kind.as_str()))
        .map(|mount| mount.mount_point)
        .filter(|path| !OF_SYSTEM.iter().any(|system| path.starts_with(system)))
        .filter(|path| path.is_dir())
        .collect();
    mount_points.sort();
    mount_points.dedup();
    mount_points
}

fn file_system(mounts: &[Mount], role: &str, path: &Path) -> Option<FileSystem> {
    let path = nearest_existing(path)?;
    let mount = Mount::holding(mounts, &path)?;
    let space = rustix::fs::statvfs(&path).ok()?;
    Some(FileSystem {
        role: role.to_owned(),
        kind: mount.kind.clone(),
        options: mount.options.clone(),
        size_bytes: space.f_blocks.saturating_mul(space.f_frsize),
        free_bytes: space.f_bavail.saturating_mul(space.f_frsize),
    })
}

/// With symbolic links resolved, as mount points are.
pub(super) fn nearest_existing(path: &Path) -> Option<PathBuf> {
    std::path::absolute(path).ok()?.ancestors().find_map(|ancestor| ancestor.canonicalize().ok())
}
