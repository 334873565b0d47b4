//! A limit on the memory of this process, its part of the page cache included: a control group of
//! its own, below the present one, removed at the end.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::AppServerError;

/// Less is not enough for the server itself: its threads, buffers and program text.
pub const MEMORY_BYTES_MIN: u64 = 32 << 20;

/// Where control groups are mounted, by systemd and everybody else.
const MOUNT: &str = "/sys/fs/cgroup";
const PREFIX: &str = "plimsoll-app-";

/// A control group with a limit, and this process in it. Dropping it puts the process back where
/// it was.
#[derive(Debug)]
pub(super) struct MemoryLimit {
    group: PathBuf,
    /// Where the process was before.
    home: PathBuf,
    version: Version,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Version {
    V1,
    V2,
}

impl MemoryLimit {
    /// Limits this process to `bytes`.
    pub(super) fn enter(bytes: u64) -> Result<Self, AppServerError> {
        if bytes < MEMORY_BYTES_MIN {
            return Err(AppServerError::MemoryTooSmall { bytes, bytes_min: MEMORY_BYTES_MIN });
        }
        let refused = |source| AppServerError::Memory { bytes, source };
        let memberships = fs::read_to_string("/proc/self/cgroup").map_err(refused)?;
        Self::enter_below(Path::new(MOUNT), &memberships, bytes).map_err(refused)
    }

    fn enter_below(mount: &Path, memberships: &str, bytes: u64) -> io::Result<Self> {
        let (home, version) = home(mount, memberships).ok_or_else(|| {
            io::Error::new(io::ErrorKind::NotFound, "no memory controller is mounted")
        })?;
        let name = format!("{PREFIX}{}", std::process::id());
        let mut last = None;
        for parent in parents(&home, version) {
            remove_leftovers(parent);
            match make(&parent.join(&name), version, bytes) {
                Ok(group) => {
                    let limit = Self { group, home: home.clone(), version };
                    limit.join(&limit.group)?;
                    return Ok(limit);
                }
                Err(error) => last = Some(error),
            }
        }
        Err(last.unwrap_or_else(|| io::ErrorKind::NotFound.into()))
    }

    fn join(&self, group: &Path) -> io::Result<()> {
        fs::write(group.join("cgroup.procs"), std::process::id().to_string())
    }
}

impl Drop for MemoryLimit {
    fn drop(&mut self) {
        // What fails here is left over, empty, and removed by the next server.
        let _ = self.join(&self.home);
        if self.version == Version::V1 {
            // Pages that stay charged would keep the kernel's part of the group alive.
            let _ = fs::write(self.group.join("memory.force_empty"), "0");
        }
        let _ = fs::remove_dir(&self.group);
    }
}

/// The group this process is in, of the hierarchy that has the memory controller.
fn home(mount: &Path, memberships: &str) -> Option<(PathBuf, Version)> {
    let mut unified = None;
    for line in memberships.lines() {
        let mut fields = line.splitn(3, ':');
        let (Some(number), Some(controllers), Some(path)) =
            (fields.next(), fields.next(), fields.next())
        else {
            continue;
        };
        if controllers.split(',').any(|controller| controller == "memory") {
            return Some((below(&mount.join("memory"), path), Version::V1));
        }
        if number == "0" && controllers.is_empty() {
            unified = Some((below(mount, path), Version::V2));
        }
    }
    unified.filter(|(home, _)| home.join("cgroup.controllers").exists())
}

/// Within a container the path may be one of the host, while the mount begins further down.
fn below(mount: &Path, path: &str) -> PathBuf {
    let full = mount.join(path.trim_start_matches('/'));
    if full.is_dir() { full } else { mount.to_owned() }
}

/// Where a group can be created: below the current one; in version 2, where a group with processes
/// cannot delegate controllers, also next to it.
fn parents(home: &Path, version: Version) -> Vec<&Path> {
    match version {
        Version::V1 => vec![home],
        Version::V2 => [Some(home), home.parent()].into_iter().flatten().collect(),
    }
}

fn make(group: &Path, version: Version, bytes: u64) -> io::Result<PathBuf> {
    if version == Version::V2 {
        let parent = group.parent().unwrap_or(group);
        let handed_on = fs::read_to_string(parent.join("cgroup.subtree_control"))?;
        if !handed_on.split_whitespace().any(|controller| controller == "memory") {
            fs::write(parent.join("cgroup.subtree_control"), "+memory")?;
        }
    }
    fs::create_dir(group)?;
    let limit = match version {
        Version::V1 => "memory.limit_in_bytes",
        Version::V2 => "memory.max",
    };
    if let Err(error) = fs::write(group.join(limit), bytes.to_string()) {
        let _ = fs::remove_dir(group);
        return Err(error);
    }
    // The limit is one of memory; swap would stretch it. Not every kernel counts swap.
    let _ = match version {
        Version::V1 => fs::write(group.join("memory.memsw.limit_in_bytes"), bytes.to_string()),
        Version::V2 => fs::write(group.join("memory.swap.max"), "0"),
    };
    Ok(group.to_owned())
}

/// Groups of servers that were killed. One with a process in it cannot be removed.
fn remove_leftovers(parent: &Path) {
    let entries = fs::read_dir(parent).into_iter().flatten().flatten();
    for entry in entries {
        if entry.file_name().to_string_lossy().starts_with(PREFIX) {
            let _ = fs::remove_dir(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_memory_controller_is_found_in_either_version() {
        let mount = tempfile::tempdir().unwrap();
        let mount = mount.path();
        fs::create_dir_all(mount.join("memory/a/b")).unwrap();
        fs::create_dir_all(mount.join("slice/own")).unwrap();
        let v1 = "9:name=systemd:/\n4:cpu,memory:/a/b\n0::/slice/own\n";
        assert_eq!(home(mount, v1), Some((mount.join("memory/a/b"), Version::V1)));
        let elsewhere = "4:memory:/of/the/host\n";
        assert_eq!(home(mount, elsewhere), Some((mount.join("memory"), Version::V1)));
        let v2 = "0::/slice/own\n";
        assert_eq!(home(mount, v2), None);
        fs::write(mount.join("slice/own/cgroup.controllers"), "memory").unwrap();
        assert_eq!(home(mount, v2), Some((mount.join("slice/own"), Version::V2)));
        assert_eq!(home(mount, "4:cpu:/x\n"), None);
    }

    #[test]
    fn a_version_2_group_is_made_beside_one_that_may_not_hand_controllers_on() {
        let mount = tempfile::tempdir().unwrap();
        let (slice, own) = (mount.path().join("slice"), mount.path().join("slice/own"));
        fs::create_dir_all(&own).unwrap();
        fs::write(own.join("cgroup.controllers"), "memory").unwrap();
        // A directory instead of the file simulates the kernel's refusal.
        fs::create_dir(own.join("cgroup.subtree_control")).unwrap();
        fs::write(slice.join("cgroup.subtree_control"), "cpu memory").unwrap();
        let limit = MemoryLimit::enter_below(mount.path(), "0::/slice/own\n", 64 << 20).unwrap();
        let id = std::process::id();
        assert_eq!(limit.group, slice.join(format!("{PREFIX}{id}")));
        assert_eq!(fs::read_to_string(limit.group.join("memory.max")).unwrap(), "67108864");
        let joined = fs::read_to_string(limit.group.join("cgroup.procs")).unwrap();
        assert_eq!(joined, id.to_string());
        drop(limit);
        let back = fs::read_to_string(own.join("cgroup.procs")).unwrap();
        assert_eq!(back, id.to_string());
    }
}
