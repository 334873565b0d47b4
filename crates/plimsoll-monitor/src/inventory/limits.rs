//! What this process may use: its own limits and those of its control groups; and existing files
//! that it may not read, with what is therefore unknown.

use std::path::Path;
use std::{fs, io};

use plimsoll_model::disclosure::Setting;

use crate::cgroups::{Cgroups, SELF};
use crate::parse::parse_limit;
use crate::root::Root;

/// Names in `/proc/self/limits` and in the disclosure.
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
    let groups = Cgroups::of_process(root, SELF);
    add("cgroup CPU quota", groups.cpu_quota_cores().map(|cores| format!("{cores:.2} cores")));
    add("cgroup processors", groups.processors());
    add("cgroup memory", groups.memory_bytes().map(|bytes| format!("{bytes} bytes")));
    limits
}

const PRESSURE: [(&str, &str); 3] = [
    ("cpu", "how long work waited for processors"),
    ("io", "how long work waited for disks"),
    ("memory", "how long work waited for memory"),
];

/// Unknowns of this host and of these processes, each with its file, the reason, and what to do. A
/// missing file is no unknown: not every kernel has them all.
pub fn unreadable(root: &Root, processes: &[u32]) -> Vec<String> {
    let pressure = PRESSURE.iter().filter_map(|(name, what)| {
        describe_unreadable(root, Path::new(&format!("proc/pressure/{name}")), what)
    });
    let groups = processes.iter().filter_map(|pid| {
        let own = format!("proc/{pid}/cgroup");
        let groups = Cgroups::of_process(root, &pid.to_string());
        let what = format!("what the control group of process {pid} allows and counts");
        let mut files = vec![own.into()];
        files.extend(groups.own_files());
        files.iter().find_map(|file| describe_unreadable(root, file, &what))
    });
    pressure.chain(groups).collect()
}

fn describe_unreadable(root: &Root, file: &Path, what: &str) -> Option<String> {
    match fs::read(root.path(file)) {
        Ok(_) => None,
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => Some(format!(
            "{what}, since /{} cannot be read ({error}); run as root, or let this user read it",
            file.strip_prefix("/").unwrap_or(file).display()
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sampler::Sampler;
    use crate::{ClockReading, WatchedProcess};

    fn write(root: &Path, file: &str, text: &str) {
        let path = root.join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// Root may read a file of any mode, but nobody can read a directory in place of a file.
    fn bar(root: &Path, file: &str) {
        fs::create_dir_all(root.join(file)).unwrap();
    }

    #[test]
    fn pressure_and_control_groups_that_may_not_be_read_are_told_and_the_samples_go_on() {
        let temp_dir = tempfile::tempdir().unwrap();
        let at = temp_dir.path();
        write(at, "proc/stat", "cpu  1 0 0 1\nprocs_running 3\n");
        write(at, "proc/pressure/io", "some avg10=0 avg60=0 avg300=0 total=5\n");
        bar(at, "proc/pressure/cpu");
        let mount = "30 20 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";
        write(at, "proc/self/mountinfo", mount);
        write(at, "proc/7/cgroup", "0::/web\n");
        bar(at, "sys/fs/cgroup/web/cpu.stat");
        let root = Root::in_directory(at);
        let messages = unreadable(&root, &[7, 8]);
        assert_eq!(messages.len(), 2, "{messages:?}");
        assert!(messages[0].contains("/proc/pressure/cpu cannot be read"), "{messages:?}");
        assert!(messages[1].contains("/sys/fs/cgroup/web/cpu.stat cannot be read"), "{messages:?}");
        assert!(
            messages.iter().all(|text| text.ends_with("let this user read it")),
            "{messages:?}"
        );
        let mut sampler = Sampler::new(&root, vec![WatchedProcess::new("server", 7)]);
        let sample = sampler.sample(ClockReading::now());
        assert_eq!(sample.host.value("", "runnable"), Some(3.0));
        assert_eq!(sample.host.value("", "pressure_cpu_some"), None);
    }

    #[test]
    fn a_host_without_pressure_and_control_groups_has_nothing_that_may_not_be_read() {
        let temp_dir = tempfile::tempdir().unwrap();
        assert_eq!(unreadable(&Root::in_directory(temp_dir.path()), &[1]), Vec::<String>::new());
    }
}
