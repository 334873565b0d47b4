//! Kernel settings that bear on results, each beside its default. The tables are data:
//! `kernel.txt` and `disk.txt`.

mod rules;

use plimsoll_model::disclosure::{KernelSetting, Setting};

use crate::parse::{parse_cpu_list, parse_selected};
use crate::root::Root;
use rules::RULES;

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
    pub(super) fn of(root: &Root, memory_bytes: Option<u64>) -> Self {
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
    /// Those that differ from the kernel's default, then those whose default cannot be told.
    pub(super) not_default: Vec<KernelSetting>,
    /// How many were held against a known default.
    pub(super) judged: u32,
}

/// Reads every setting of the tables that the host has.
pub(super) fn settings(root: &Root, machine: &Machine) -> Settings {
    let mut found = Settings::default();
    let mut open = Vec::new();
    let kernel = rows(KERNEL).filter_map(|row| {
        let value = value(root, &path_of(row.name))?;
        Some(judged(&row, row.name.trim_start_matches('/'), value, machine))
    });
    let disks = root.names("sys/block").into_iter().filter(|disk| has_size(root, disk));
    let disks = disks.flat_map(|disk| {
        rows(DISK).filter_map(move |row| {
            let name = format!("sys/block/{disk}/{QUEUE}/{}", row.name);
            let value = value(root, &name)?;
            Some(judged(&row, &name, value, machine))
        })
    });
    for setting in kernel.chain(disks) {
        found.all.push(Setting::new(&setting.name, &setting.value));
        found.judged += u32::from(setting.default.is_some());
        match &setting.default {
            Some(default) if *default == setting.value => {}
            Some(_) => found.not_default.push(setting),
            None => open.push(setting),
        }
    }
    found.not_default.append(&mut open);
    found
}

fn has_size(root: &Root, disk: &str) -> bool {
    root.number(format!("sys/block/{disk}/size")).is_some_and(|sectors| sectors > 0)
}

fn judged(row: &Row, name: &str, value: String, machine: &Machine) -> KernelSetting {
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

#[cfg(test)]
mod tests;
