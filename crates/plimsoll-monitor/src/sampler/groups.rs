//! Control groups of watched processes: their limits, how often they were throttled, and what they
//! read and write.

use std::path::PathBuf;

use plimsoll_model::units::NANOS_PER_SECOND;

use super::Elapsed;
use super::table::{Column, Rows, Table, Unit};
use crate::cgroups::Cgroups;
use crate::parse::{
    DeviceRates, Throttling, parse_device_limits, parse_device_lines, parse_refaults,
    parse_throttling,
};
use crate::process::{Scope, WatchedProcess};
use crate::root::{ProcFile, Root};

pub(super) static GROUPS: Table = Table::keyed("cgroup").columns(&[
    // CPU time it may use, and how much of it its threads were kept from, over all cores.
    Column::summed("quota", Unit::Cores),
    Column::summed("throttled", Unit::Cores),
    Column::summed("throttled_periods", Unit::PerSecond),
    Column::summed("memory", Unit::Bytes),
    Column::summed("memory_max", Unit::Bytes),
    // Times that memory was full, and pages read again soon after it had no room for them.
    Column::summed("memory_full", Unit::PerSecond),
    Column::summed("refaults", Unit::PerSecond),
]);

pub(super) static STORAGE: Table = Table::keyed("storage").without_idle().columns(&[
    Column::summed("reads", Unit::PerSecond),
    Column::summed("writes", Unit::PerSecond),
    Column::summed("read", Unit::BytesPerSecond),
    Column::summed("written", Unit::BytesPerSecond),
    Column::summed("reads_max", Unit::PerSecond),
    Column::summed("writes_max", Unit::PerSecond),
    Column::summed("read_max", Unit::BytesPerSecond),
    Column::summed("written_max", Unit::BytesPerSecond),
]);

/// Groups are looked for again once in this many samples: a process may move to another.
const SAMPLES_PER_LOOK: u32 = 10;

#[derive(Debug)]
pub(super) struct GroupSource {
    root: Root,
    groups: Vec<Group>,
    buffer: Vec<u8>,
}

/// The groups of one watched process.
#[derive(Debug)]
struct Group {
    name: String,
    pid: u32,
    samples_to_look: u32,
    files: Files,
    quota: Option<f64>,
    memory_max: Option<u64>,
    before: Counters,
    devices: Vec<(String, DeviceRates)>,
    limits: Vec<(String, DeviceRates)>,
}

#[derive(Debug, Default)]
struct Files {
    throttling: Option<ProcFile>,
    memory: Option<ProcFile>,
    memory_full: Option<ProcFile>,
    memory_stat: Option<ProcFile>,
    storage: Vec<ProcFile>,
}

#[derive(Debug, Default)]
struct Counters {
    throttling: Throttling,
    memory_full: Option<u64>,
    refaults: Option<u64>,
}

impl GroupSource {
    pub(super) fn new(root: Root) -> Self {
        Self { root, groups: Vec::new(), buffer: Vec::new() }
    }

    pub(super) fn rescan(&mut self) {
        self.groups.iter_mut().for_each(|group| group.samples_to_look = 0);
    }

    pub(super) fn sample<'w>(
        &mut self,
        elapsed: Elapsed,
        watched: impl Iterator<Item = &'w WatchedProcess>,
        (groups, storage): (&mut Rows, &mut Rows),
    ) {
        groups.clear();
        storage.clear();
        for process in watched.filter(|process| process.scope == Scope::WithDescendants) {
            let Some(&pid) = process.pids.first() else { continue };
            let position = self.groups.iter().position(|group| group.name == process.name);
            let index = position.unwrap_or_else(|| {
                self.groups.push(Group::new(&process.name, pid));
                self.groups.len() - 1
            });
            let group = &mut self.groups[index];
            if group.samples_to_look == 0 {
                group.look(&self.root);
            }
            group.samples_to_look -= 1;
            let values = group.values(elapsed, &mut self.buffer);
            if values.iter().any(Option::is_some) {
                groups.push(&group.name, &values);
            }
            group.push_storage(&self.root, elapsed, &mut self.buffer, storage);
        }
    }
}

impl Group {
    fn new(name: &str, pid: u32) -> Self {
        Self {
            name: name.to_owned(),
            pid,
            samples_to_look: 0,
            files: Files::default(),
            quota: None,
            memory_max: None,
            before: Counters::default(),
            devices: Vec::new(),
            limits: Vec::new(),
        }
    }

    fn look(&mut self, root: &Root) {
        self.samples_to_look = SAMPLES_PER_LOOK;
        let groups = Cgroups::of_process(root, &self.pid.to_string());
        let open = |path: Option<PathBuf>| {
            let path = path.filter(|path| root.has(path))?;
            Some(ProcFile::open(root, path))
        };
        let memory = groups.memory_directory();
        let of_memory = |names: [&str; 2]| {
            names.map(|name| memory.as_ref().map(|dir| dir.join(name))).into_iter().find_map(open)
        };
        self.files = Files {
            throttling: open(groups.throttling_file()),
            memory: of_memory(["memory.current", "memory.usage_in_bytes"]),
            memory_full: of_memory(["memory.events", "memory.failcnt"]),
            memory_stat: open(memory.as_ref().map(|dir| dir.join("memory.stat"))),
            storage: groups
                .storage_files()
                .into_iter()
                .map(|path| ProcFile::open(root, path))
                .collect(),
        };
        self.quota = groups.cpu_quota_cores();
        self.memory_max = groups.memory_bytes();
        self.limits = groups.storage_limits();
    }

    fn values(&mut self, elapsed: Elapsed, buffer: &mut Vec<u8>) -> [Option<f64>; 7] {
        let mut text = |file: &Option<ProcFile>| Some(file.as_ref()?.read(buffer)?.into_owned());
        let throttling = text(&self.files.throttling);
        let now = Counters {
            throttling: throttling.map(|text| parse_throttling(&text)).unwrap_or_default(),
            memory_full: text(&self.files.memory_full).and_then(|text| times_full(&text)),
            refaults: text(&self.files.memory_stat).and_then(|text| parse_refaults(&text)),
        };
        let memory: Option<u64> =
            text(&self.files.memory).and_then(|text| text.trim().parse().ok());
        let before = std::mem::replace(&mut self.before, now);
        let now = &self.before;
        let throttled = elapsed.rate(before.throttling.throttled_ns, now.throttling.throttled_ns);
        [
            self.quota,
            throttled.map(|ns| ns / NANOS_PER_SECOND as f64),
            elapsed.rate(before.throttling.periods, now.throttling.periods),
            memory.map(|bytes| bytes as f64),
            self.memory_max.map(|bytes| bytes as f64),
            elapsed.rate(before.memory_full, now.memory_full),
            elapsed.rate(before.refaults, now.refaults),
        ]
    }

    /// Since the group was made, by device (`254:0`).
    fn transfers(&self, buffer: &mut Vec<u8>) -> Vec<(String, DeviceRates)> {
        match self.files.storage.as_slice() {
            [requests, bytes] => {
                let mut devices = Vec::new();
                for (file, bytes) in [(requests, false), (bytes, true)] {
                    if let Some(text) = file.read(buffer) {
                        parse_device_lines(&text, bytes, &mut devices);
                    }
                }
                devices
            }
            [both] => both.read(buffer).map(|text| parse_device_limits(&text)).unwrap_or_default(),
            _ => Vec::new(),
        }
    }

    fn push_storage(
        &mut self,
        root: &Root,
        elapsed: Elapsed,
        buffer: &mut Vec<u8>,
        rows: &mut Rows,
    ) {
        let now = self.transfers(buffer);
        for (device, is) in &now {
            let was = self.devices.iter().find(|(name, _)| name == device);
            let was = was.map(|(_, was)| *was).unwrap_or_default();
            let limits = self.limits.iter().find(|(name, _)| name == device);
            let limits = limits.map(|(_, limits)| *limits).unwrap_or_default();
            let limit = |limit: Option<u64>| limit.map(|limit| limit as f64);
            let values = [
                elapsed.rate(was.reads, is.reads),
                elapsed.rate(was.writes, is.writes),
                elapsed.rate(was.read_bytes, is.read_bytes),
                elapsed.rate(was.written_bytes, is.written_bytes),
                limit(limits.reads),
                limit(limits.writes),
                limit(limits.read_bytes),
                limit(limits.written_bytes),
            ];
            let disk = root.link_name(format!("sys/dev/block/{device}"));
            rows.push(&format!("{}:{}", self.name, disk.as_deref().unwrap_or(device)), &values);
        }
        self.devices = now;
    }
}

/// Version 2 counts them among other events, version 1 in a file of one number.
fn times_full(text: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix("max ")).unwrap_or(text).trim().parse().ok()
}
