//! Holding a server to a share of the processors and to a size of memory: control groups of its
//! own, of either version, made for it and removed when it has ended.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::{ServerError, ServerProcess};

/// Where control groups are mounted, by systemd and everybody else.
const MOUNT: &str = "/sys/fs/cgroup";
const PREFIX: &str = "plimsoll-scale-";
/// The kernel's default; quotas are parts of it.
const PERIOD_US: u64 = 100_000;
/// A group can be removed once its last process is gone.
const REMOVE_TRIES: u32 = 20;
const REMOVE_PAUSE: Duration = Duration::from_millis(50);

/// The limits of a server.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Confinement {
    /// CPU time per time: 0.5 is half of one core.
    pub quota_cores: Option<f64>,
    /// Memory, its part of the page cache included.
    pub memory_bytes: Option<u64>,
}

/// The control groups of a server. Dropped after the server has ended, it removes them.
#[derive(Debug)]
pub struct Confined {
    groups: Vec<PathBuf>,
}

/// A file of a group and what is written there.
struct Rule {
    controller: &'static str,
    /// In version 1, then in version 2.
    files: [(&'static str, String); 2],
}

impl Confinement {
    /// Nothing is limited.
    pub const fn is_none(&self) -> bool {
        self.quota_cores.is_none() && self.memory_bytes.is_none()
    }

    /// Moves every process of the server into groups with these limits; what it forks later is
    /// limited with it.
    pub fn hold(&self, server: &ServerProcess) -> Result<Confined, ServerError> {
        let refused = |source| ServerError::System {
            doing: "hold the server to a control group (this needs root, or a cgroup that was \
                    handed over)",
            source,
        };
        let memberships = fs::read_to_string("/proc/self/cgroup").map_err(refused)?;
        let mut confined = Confined { groups: Vec::new() };
        for rule in self.rules() {
            let (home, version) = home(Path::new(MOUNT), &memberships, rule.controller)
                .ok_or_else(|| {
                    refused(io::Error::new(
                        io::ErrorKind::NotFound,
                        format!("no {} controller is mounted", rule.controller),
                    ))
                })?;
            let group = home.join(format!("{PREFIX}{}-{}", rule.controller, server.pid()));
            fs::create_dir(&group).map_err(refused)?;
            confined.groups.push(group.clone());
            let (file, text) = &rule.files[version];
            fs::write(group.join(file), text).map_err(refused)?;
            // A second look finds what was forked during the first.
            for _ in 0..2 {
                for pid in server.pids().map_err(refused)? {
                    fs::write(group.join("cgroup.procs"), pid.to_string()).map_err(refused)?;
                }
            }
        }
        Ok(confined)
    }

    fn rules(&self) -> Vec<Rule> {
        let quota = self.quota_cores.map(|cores| {
            let us = ((cores * PERIOD_US as f64).round() as u64).max(1_000);
            Rule {
                controller: "cpu",
                files: [
                    ("cpu.cfs_quota_us", us.to_string()),
                    ("cpu.max", format!("{us} {PERIOD_US}")),
                ],
            }
        });
        let memory = self.memory_bytes.map(|bytes| Rule {
            controller: "memory",
            files: [
                ("memory.limit_in_bytes", bytes.to_string()),
                ("memory.max", bytes.to_string()),
            ],
        });
        quota.into_iter().chain(memory).collect()
    }
}

impl Drop for Confined {
    fn drop(&mut self) {
        for group in &self.groups {
            for _ in 0..REMOVE_TRIES {
                match fs::remove_dir(group) {
                    Err(error) if error.kind() == io::ErrorKind::ResourceBusy => {
                        std::thread::sleep(REMOVE_PAUSE);
                    }
                    _ => break,
                }
            }
        }
    }
}

/// The group this process is in, of the hierarchy that has the controller, and the index of its
/// version. In version 2 a group with processes may not hand controllers on: the one above it may.
fn home(mount: &Path, memberships: &str, controller: &str) -> Option<(PathBuf, usize)> {
    let mut unified = None;
    for line in memberships.lines() {
        let mut fields = line.splitn(3, ':');
        let (number, controllers, path) = (fields.next()?, fields.next()?, fields.next()?);
        let path = path.trim_start_matches('/');
        let below = |top: PathBuf| {
            let full = top.join(path);
            if full.is_dir() { full } else { top }
        };
        if controllers.split(',').any(|name| name == controller) {
            return Some((below(mount.join(controller)), 0));
        }
        if number == "0" && controllers.is_empty() {
            unified = Some(below(mount.to_owned()));
        }
    }
    let own = unified?;
    let hands_on = |group: &Path| {
        let handed = fs::read_to_string(group.join("cgroup.subtree_control")).unwrap_or_default();
        handed.split_whitespace().any(|name| name == controller)
    };
    [Some(&*own), own.parent()]
        .into_iter()
        .flatten()
        .find(|group| hands_on(group))
        .map(|group| (group.to_owned(), 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_controller_is_found_in_either_version() {
        let mount = tempfile::tempdir().unwrap();
        let mount = mount.path();
        fs::create_dir_all(mount.join("cpu/a")).unwrap();
        fs::create_dir_all(mount.join("slice/own")).unwrap();
        let v1 = "4:memory:/a\n1:cpu:/a\n0::/slice/own\n";
        assert_eq!(home(mount, v1, "cpu"), Some((mount.join("cpu/a"), 0)));
        let v2 = "0::/slice/own\n";
        assert_eq!(home(mount, v2, "cpu"), None);
        fs::write(mount.join("slice/cgroup.subtree_control"), "cpu memory").unwrap();
        assert_eq!(home(mount, v2, "cpu"), Some((mount.join("slice"), 1)));
    }

    #[test]
    fn a_fraction_of_a_core_is_a_quota_of_the_period() {
        let confinement = Confinement { quota_cores: Some(0.25), memory_bytes: Some(64 << 20) };
        let texts: Vec<String> = confinement
            .rules()
            .iter()
            .flat_map(|rule| rule.files.iter().map(|f| f.1.clone()))
            .collect();
        assert_eq!(texts, ["25000", "25000 100000", "67108864", "67108864"]);
    }
}
