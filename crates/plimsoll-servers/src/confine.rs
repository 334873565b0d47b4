//! Holding a server to a share of the processors, a size of memory and a rate of each disk: control
//! groups of its own, of either version, made for it and removed when it has ended.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::io::Errno;

use crate::{ServerError, ServerProcess};

/// Where control groups are mounted, by systemd and everybody else.
const MOUNT: &str = "/sys/fs/cgroup";
const BLOCK_DEVICES: &str = "/sys/block";
const PREFIX: &str = "plimsoll-scale-";
/// The kernel's default; quotas are parts of it.
const PERIOD_US: u64 = 100_000;
/// A group can be removed once its last process is gone, for which a busy host takes its time.
const REMOVE_TRIES: u32 = 200;
const REMOVE_PAUSE: Duration = Duration::from_millis(50);

/// The limits of a server.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Confinement {
    /// CPU time per time: 0.5 is half of one core.
    pub quota_cores: Option<f64>,
    /// Memory, its part of the page cache included.
    pub memory_bytes: Option<u64>,
    /// Bytes per second that it may read from each disk, and as many that it may write. Version 1
    /// of control groups does not limit writes from the page cache.
    pub disk_bytes_per_s: Option<u64>,
    /// Transfers per second, likewise.
    pub disk_transfers_per_s: Option<u64>,
}

/// The control groups of a server. Dropped after the server has ended, it removes them.
#[derive(Debug, Default)]
pub struct Confined {
    groups: Vec<PathBuf>,
}

/// What is written to the files of a group. Each pair is of version 1, then of version 2.
struct Rule {
    controllers: [&'static str; 2],
    files: [Vec<(&'static str, String)>; 2],
}

/// A server's helper may end between the list of its processes and the move.
fn ended_is_fine(moved: io::Result<()>) -> io::Result<()> {
    match moved {
        Err(e) if Errno::from_io_error(&e) == Some(Errno::SRCH) => Ok(()),
        other => other,
    }
}

impl Confinement {
    /// Nothing is limited.
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }

    /// Moves every process of the server into groups with these limits; what it forks later is
    /// limited with it. `confined` has every group that was made, also after an error: it can be
    /// removed only once the server in it has ended.
    pub fn hold(&self, server: &ServerProcess, confined: &mut Confined) -> Result<(), ServerError> {
        let refused = |source| ServerError::System {
            doing: "hold the server to a control group (this needs root, or a cgroup that was \
                    handed over)",
            source,
        };
        let memberships = fs::read_to_string("/proc/self/cgroup").map_err(refused)?;
        let has_rate = self.disk_bytes_per_s.or(self.disk_transfers_per_s).is_some();
        // A host may hide its disks, which no other limit needs.
        let disks = if has_rate { disks(Path::new(BLOCK_DEVICES)) } else { Ok(Vec::new()) };
        for rule in self.rules(&disks.map_err(refused)?) {
            let (home, version) = home(Path::new(MOUNT), &memberships, rule.controllers)
                .ok_or_else(|| {
                    refused(io::Error::new(
                        io::ErrorKind::NotFound,
                        format!("no {} controller is mounted", rule.controllers[1]),
                    ))
                })?;
            let group = home.join(format!("{PREFIX}{}-{}", rule.controllers[1], server.pid()));
            fs::create_dir(&group).map_err(refused)?;
            confined.groups.push(group.clone());
            for (file, text) in &rule.files[version] {
                fs::write(group.join(file), text).map_err(refused)?;
            }
            // A second look finds what was forked during the first.
            for _ in 0..2 {
                for pid in server.pids().map_err(refused)? {
                    ended_is_fine(fs::write(group.join("cgroup.procs"), pid.to_string()))
                        .map_err(refused)?;
                }
            }
        }
        Ok(())
    }

    /// `disks` are device numbers, as `8:0`.
    fn rules(&self, disks: &[String]) -> Vec<Rule> {
        let quota = self.quota_cores.map(|cores| {
            let us = ((cores * PERIOD_US as f64).round() as u64).max(1_000);
            Rule {
                controllers: ["cpu"; 2],
                files: [
                    vec![("cpu.cfs_quota_us", us.to_string())],
                    vec![("cpu.max", format!("{us} {PERIOD_US}"))],
                ],
            }
        });
        let memory = self.memory_bytes.map(|bytes| Rule {
            controllers: ["memory"; 2],
            files: [
                vec![("memory.limit_in_bytes", bytes.to_string())],
                vec![("memory.max", bytes.to_string())],
            ],
        });
        let rates = [
            (
                self.disk_bytes_per_s,
                ["blkio.throttle.read_bps_device", "blkio.throttle.write_bps_device"],
                "bps",
            ),
            (
                self.disk_transfers_per_s,
                ["blkio.throttle.read_iops_device", "blkio.throttle.write_iops_device"],
                "iops",
            ),
        ];
        let mut disk = Rule { controllers: ["blkio", "io"], files: [Vec::new(), Vec::new()] };
        for (rate, files, kind) in rates {
            let Some(rate) = rate else { continue };
            for number in disks {
                disk.files[0].extend(files.map(|file| (file, format!("{number} {rate}"))));
                let text = format!("{number} r{kind}={rate} w{kind}={rate}");
                disk.files[1].push(("io.max", text));
            }
        }
        let disk = Some(disk).filter(|disk| !disk.files[0].is_empty());
        [quota, memory, disk].into_iter().flatten().collect()
    }
}

/// Device numbers of the disks, those of device mapper and md included.
fn disks(devices: &Path) -> io::Result<Vec<String>> {
    let mut numbers = Vec::new();
    for device in fs::read_dir(devices)? {
        let device = device?.path();
        let read = |file| fs::read_to_string(device.join(file)).map(|text| text.trim().to_owned());
        // A loop device without a file has no size.
        if read("size")? != "0" {
            numbers.push(read("dev")?);
        }
    }
    Ok(numbers)
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
fn home(mount: &Path, memberships: &str, [first, second]: [&str; 2]) -> Option<(PathBuf, usize)> {
    let mut unified = None;
    for line in memberships.lines() {
        let mut fields = line.splitn(3, ':');
        let (number, controllers, path) = (fields.next()?, fields.next()?, fields.next()?);
        let path = path.trim_start_matches('/');
        let below = |top: PathBuf| {
            let full = top.join(path);
            if full.is_dir() { full } else { top }
        };
        if controllers.split(',').any(|name| name == first) {
            return Some((below(mount.join(first)), 0));
        }
        if number == "0" && controllers.is_empty() {
            unified = Some(below(mount.to_owned()));
        }
    }
    let own = unified?;
    let hands_on = |group: &Path| {
        let handed = fs::read_to_string(group.join("cgroup.subtree_control")).unwrap_or_default();
        handed.split_whitespace().any(|name| name == second)
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
        assert_eq!(home(mount, v1, ["cpu"; 2]), Some((mount.join("cpu/a"), 0)));
        let v2 = "0::/slice/own\n";
        assert_eq!(home(mount, v2, ["cpu"; 2]), None);
        fs::write(mount.join("slice/cgroup.subtree_control"), "cpu memory").unwrap();
        assert_eq!(home(mount, v2, ["cpu"; 2]), Some((mount.join("slice"), 1)));
    }

    #[test]
    fn a_process_that_has_ended_since_needs_no_limit_and_other_failures_are_told() {
        let moved = |error| ended_is_fine(Err(io::Error::from_raw_os_error(error)));
        assert!(
            moved(Errno::SRCH.raw_os_error()).is_ok()
                && moved(Errno::ACCESS.raw_os_error()).is_err()
        );
    }

    #[test]
    fn a_fraction_of_a_core_is_a_quota_of_the_period() {
        let confinement = Confinement {
            quota_cores: Some(0.25),
            memory_bytes: Some(64 << 20),
            ..Confinement::default()
        };
        let rules = confinement.rules(&["8:0".to_owned()]);
        let texts: Vec<&str> =
            rules.iter().flat_map(|rule| rule.files.iter().map(|files| &*files[0].1)).collect();
        assert_eq!(texts, ["25000", "25000 100000", "67108864", "67108864"]);
    }

    #[test]
    fn a_rate_is_one_of_each_disk_with_a_size() {
        let devices = tempfile::tempdir().unwrap();
        for (name, number, size) in [("sda", "8:0", "100"), ("loop0", "7:0", "0")] {
            let device = devices.path().join(name);
            fs::create_dir(&device).unwrap();
            fs::write(device.join("dev"), format!("{number}\n")).unwrap();
            fs::write(device.join("size"), format!("{size}\n")).unwrap();
        }
        let disks = disks(devices.path()).unwrap();
        let confinement = Confinement {
            disk_bytes_per_s: Some(1 << 20),
            disk_transfers_per_s: Some(100),
            ..Confinement::default()
        };
        let [rule] = &confinement.rules(&disks)[..] else { panic!("one controller") };
        let [first, second] = &rule.files;
        assert_eq!(first[1], ("blkio.throttle.write_bps_device", "8:0 1048576".to_owned()));
        assert_eq!(second[0], ("io.max", "8:0 rbps=1048576 wbps=1048576".to_owned()));
        assert_eq!(second[1], ("io.max", "8:0 riops=100 wiops=100".to_owned()));
        assert_eq!((first.len(), second.len()), (4, 2));
    }
}
