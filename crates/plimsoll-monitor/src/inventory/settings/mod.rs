//! Kernel settings that affect results, each with its default. The tables are data:
//! `kernel.txt` and `disk.txt`. Some defaults the kernel computes from the machine; here they are
//! computed in the same way.

use plimsoll_model::disclosure::{KernelSetting, Setting};

use crate::parse::{parse_cpu_list, parse_selected};
use crate::root::Root;

const KERNEL: &str = include_str!("kernel.txt");
const DISK: &str = include_str!("disk.txt");
const QUEUE: &str = "queue";

/// Longer values are tables, not settings.
const VALUE_BYTES_MAX: usize = 200;

/// What defaults depend on.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Machine {
    /// Version of the kernel: 6, 1 of `6.1.0-18-amd64`.
    pub(super) kernel: Option<(u32, u32)>,
    pub(super) memory_bytes: Option<u64>,
    pub(super) processors_possible: Option<u32>,
}

impl Machine {
    pub(super) fn from_root(root: &Root, memory_bytes: Option<u64>) -> Self {
        let possible = root.line("sys/devices/system/cpu/possible");
        Self {
            kernel: root.line("proc/sys/kernel/osrelease").and_then(|text| version(&text)),
            memory_bytes,
            processors_possible: possible.and_then(|list| parse_cpu_list(&list)),
        }
    }
}

/// The settings of a host.
#[derive(Debug, Default)]
pub(super) struct Settings {
    /// Every one of the tables that the host has.
    pub(super) all: Vec<Setting>,
    /// Those that differ from the kernel's default, then those whose default is unknown.
    pub(super) not_default: Vec<KernelSetting>,
    /// How many were compared with a known default.
    pub(super) compared: u32,
}

/// Reads every setting of the tables that the host has.
pub(super) fn settings(root: &Root, machine: &Machine) -> Settings {
    let mut result = Settings::default();
    let mut open = Vec::new();
    let kernel = rows(KERNEL).filter_map(|row| {
        let value = value(root, &path_of(row.name))?;
        Some(kernel_setting(&row, row.name.trim_start_matches('/'), value, machine))
    });
    let disks = root.names("sys/block").into_iter().filter(|disk| has_size(root, disk));
    let disks = disks.flat_map(|disk| {
        rows(DISK).filter_map(move |row| {
            let name = format!("sys/block/{disk}/{QUEUE}/{}", row.name);
            let value = value(root, &name)?;
            Some(kernel_setting(&row, &name, value, machine))
        })
    });
    for setting in kernel.chain(disks) {
        result.all.push(Setting::new(&setting.name, &setting.value));
        result.compared += u32::from(setting.default.is_some());
        match &setting.default {
            Some(default) if *default == setting.value => {}
            Some(_) => result.not_default.push(setting),
            None => open.push(setting),
        }
    }
    result.not_default.append(&mut open);
    result
}

fn has_size(root: &Root, disk: &str) -> bool {
    root.number(format!("sys/block/{disk}/size")).is_some_and(|sectors| sectors > 0)
}

fn kernel_setting(row: &Row, name: &str, value: String, machine: &Machine) -> KernelSetting {
    let (default, depends_on) = match default_of(row.default, machine) {
        Ok(default) => (Some(default), None),
        Err(depends_on) => (None, Some(depends_on.to_owned())),
    };
    KernelSetting {
        name: name.to_owned(),
        value,
        default,
        depends_on,
        meaning: row.meaning.to_owned(),
        unit: row.unit.to_owned(),
    }
}

fn path_of(name: &str) -> String {
    match name.strip_prefix('/') {
        Some(path) => path.to_owned(),
        None => format!("proc/sys/{}", name.replace('.', "/")),
    }
}

fn value(root: &Root, path: &str) -> Option<String> {
    let text = root.line(path)?;
    // Files below /sys that offer a choice show all of it.
    let text = match parse_selected(&text) {
        Some(selected) if text.contains('[') => selected,
        _ => &text,
    };
    // Tabs part the numbers of a triple; one blank reads better.
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    (text.len() <= VALUE_BYTES_MAX).then_some(text)
}

/// A line of a table.
struct Row {
    name: &'static str,
    default: &'static str,
    unit: &'static str,
    meaning: &'static str,
}

fn rows(table: &'static str) -> impl Iterator<Item = Row> {
    table.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).filter_map(|line| {
        let mut columns = line.splitn(4, '|').map(str::trim);
        Some(Row {
            name: columns.next()?,
            default: columns.next()?,
            unit: columns.next()?,
            meaning: columns.next()?,
        })
    })
}

/// The default on this machine, or what it depends on.
fn default_of(column: &'static str, machine: &Machine) -> Result<String, &'static str> {
    if let Some(depends_on) = column.strip_prefix('?') {
        return Err(depends_on.trim());
    }
    if let Some(name) = column.strip_prefix('=') {
        let rule = RULES.iter().find(|rule| rule.name == name).ok_or("a rule that is not there")?;
        return (rule.value)(machine).ok_or(rule.needs);
    }
    let mut steps = column.split(';').map(str::trim);
    let first = steps.next().unwrap_or_default();
    let mut default = first;
    for step in steps {
        let (since, value) = step.split_once(':').ok_or("the kernel's version")?;
        let kernel = machine.kernel.ok_or("the kernel's version")?;
        if version(since).is_some_and(|since| kernel >= since) {
            default = value.trim();
        }
    }
    Ok(default.to_owned())
}

/// 6 and 1 of `6.1.0-18-amd64`.
fn version(text: &str) -> Option<(u32, u32)> {
    let mut numbers = text.split(|c: char| !c.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

/// The table of established connections has an entry for each of these bytes of memory
/// (`alloc_large_system_hash` with a scale of 17, in `tcp_init`) …
const BYTES_PER_ENTRY: u64 = 1 << 17;
/// … and no more entries than this.
const ENTRIES_MAX: u64 = 512 * 1024;
const MIB: u64 = 1 << 20;
/// A buffer may grow to a 128th part of the memory that is free at boot (`tcp_init`). How much that
/// was cannot be read later: half of all is certain.
const MEMORY_PER_BUFFER: u64 = 128 * 2;
/// `net.ipv4.tcp_rmem`'s first growth, and its second.
const RMEM_VERSIONS: [((u32, u32), &str); 3] = [
    ((6, 16), "4096 131072 33554432"),
    ((4, 20), "4096 131072 6291456"),
    ((0, 0), "4096 87380 6291456"),
];
const WMEM: &str = "4096 16384 4194304";
/// `PID_MAX_DEFAULT` and `PIDS_PER_CPU_DEFAULT`.
const PIDS_MIN: u64 = 32_768;
const PIDS_PER_PROCESSOR: u64 = 1_024;

/// A rule: its name in the table, its inputs, and the value where they are
/// known.
struct Rule {
    name: &'static str,
    needs: &'static str,
    value: fn(&Machine) -> Option<String>,
}

const RULES: [Rule; 5] = [
    Rule {
        name: "tcp_rmem",
        needs: "the size of memory, and the kernel's version",
        value: |machine| {
            let version = machine.kernel?;
            let matched = RMEM_VERSIONS.iter().find(|(since, _)| version >= *since)?;
            unless_memory_is_short(matched.1, machine)
        },
    },
    Rule {
        name: "tcp_wmem",
        needs: "the size of memory",
        value: |machine| unless_memory_is_short(WMEM, machine),
    },
    Rule {
        name: "tcp_max_tw_buckets",
        needs: "the size of memory",
        value: |machine| Some((established_entries(machine)? / 2).to_string()),
    },
    Rule {
        name: "tcp_max_syn_backlog",
        needs: "the size of memory",
        value: |machine| Some((established_entries(machine)? / 128).max(128).to_string()),
    },
    Rule {
        name: "pid_max",
        needs: "the number of processors",
        value: |machine| {
            let processors = u64::from(machine.processors_possible?);
            Some(PIDS_MIN.max(PIDS_PER_PROCESSOR * processors).to_string())
        },
    },
];

fn unless_memory_is_short(buffers: &str, machine: &Machine) -> Option<String> {
    let most: u64 = buffers.rsplit(' ').next()?.parse().ok()?;
    (machine.memory_bytes? >= most * MEMORY_PER_BUFFER).then(|| buffers.to_owned())
}

fn established_entries(machine: &Machine) -> Option<u64> {
    let memory = machine.memory_bytes?.next_multiple_of(MIB);
    let entries = (memory / BYTES_PER_ENTRY).checked_next_power_of_two()?;
    Some(entries.min(ENTRIES_MAX))
}

#[cfg(test)]
mod tests;
