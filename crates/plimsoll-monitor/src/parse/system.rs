//! The host as a whole: `/etc/os-release`, `/proc/meminfo`, `/proc/diskstats`, `/proc/pressure/*`,
//! `/proc/self/status`, `/proc/self/mountinfo`, and files that offer choices.

use std::path::{Path, PathBuf};

use super::DeviceCounters;

/// Name and version of the operating system from os-release(5).
pub fn parse_os_release(text: &str) -> Option<String> {
    let field = |name: &str| {
        let value =
            text.lines().find_map(|line| line.trim().strip_prefix(name)?.strip_prefix('='))?;
        let value = value.trim();
        let bare = ['"', '\'']
            .iter()
            .find_map(|&quote| value.strip_prefix(quote)?.strip_suffix(quote))
            .unwrap_or(value);
        (!bare.is_empty()).then(|| bare.to_owned())
    };
    field("PRETTY_NAME").or_else(|| {
        let name = field("NAME")?;
        Some(match field("VERSION").or_else(|| field("VERSION_ID")) {
            Some(version) => format!("{name} {version}"),
            None => name,
        })
    })
}

/// Time lost waiting for a resource since boot, in microseconds (kernel, accounting/psi).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pressure {
    /// At least one task waited.
    pub some_us: Option<u64>,
    /// Every task that could have run waited.
    pub full_us: Option<u64>,
}

/// Reads one file of `/proc/pressure`.
pub fn parse_pressure(text: &str) -> Pressure {
    let total = |kind: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(kind))?;
        line.split_whitespace().find_map(|word| word.strip_prefix("total="))?.parse().ok()
    };
    Pressure { some_us: total("some "), full_us: total("full ") }
}

/// The choice in brackets: `always [madvise] never`. A file without brackets is its own choice.
pub fn parse_selected(text: &str) -> Option<&str> {
    let text = text.trim();
    let selected = text.split_once('[').and_then(|(_, rest)| Some(rest.split_once(']')?.0));
    selected.or(Some(text)).filter(|choice| !choice.is_empty())
}

/// A field of `/proc/self/status`.
pub fn parse_status_field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim)
}

/// Sizes in bytes from `/proc/meminfo` (proc_meminfo(5)).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemInfo {
    /// Memory the kernel manages.
    pub total: Option<u64>,
    /// What could be had without swapping.
    pub available: Option<u64>,
    /// Page cache.
    pub cached: Option<u64>,
    /// Waiting to be written.
    pub dirty: Option<u64>,
    /// Being written.
    pub writeback: Option<u64>,
    /// Swap space.
    pub swap_total: Option<u64>,
    /// Unused swap space.
    pub swap_free: Option<u64>,
}

/// Reads `/proc/meminfo`. The kernel's `kB` are 1,024 bytes.
pub fn parse_meminfo(text: &str) -> MemInfo {
    let mut info = MemInfo::default();
    for line in text.lines() {
        let Some((key, value)) = line.split_once(':') else { continue };
        let bytes =
            || value.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024);
        match key {
            "MemTotal" => info.total = bytes(),
            "MemAvailable" => info.available = bytes(),
            "Cached" => info.cached = bytes(),
            "Dirty" => info.dirty = bytes(),
            "Writeback" => info.writeback = bytes(),
            "SwapTotal" => info.swap_total = bytes(),
            "SwapFree" => info.swap_free = bytes(),
            _ => {}
        }
    }
    info
}

/// Of a disk: reads, sectors read, milliseconds of all reads; the same of writes; transfers under way
/// now; milliseconds with a transfer under way, and of all transfers (the kernel's `iostats`).
pub type DiskCounters = DeviceCounters<9>;

/// Reads `/proc/diskstats`; lines that do not fit are passed over.
pub fn parse_diskstats(text: &str) -> Vec<DiskCounters> {
    text.lines().filter_map(parse_disk).collect()
}

fn parse_disk(line: &str) -> Option<DiskCounters> {
    let tokens: Vec<&str> = line.split_whitespace().collect();
    DeviceCounters::from_tokens(tokens.get(2)?, &tokens, [3, 5, 6, 7, 9, 10, 11, 12, 13])
}

/// One mounted file system (proc_pid_mountinfo(5)).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mount {
    /// Its device, `major:minor`; major 0 is none.
    pub device: String,
    /// Directory of the file system that is mounted; `/` unless it is a bind mount.
    pub subtree: PathBuf,
    /// Where it is mounted.
    pub mount_point: PathBuf,
    /// Type, `ext4`.
    pub kind: String,
    /// Options of the mount and of the file system, comma separated, each once.
    pub options: String,
}

impl Mount {
    /// The mount that contains a path: the longest mount point above it, the last of equals,
    /// because later mounts hide earlier ones.
    pub fn holding<'a>(mounts: &'a [Self], path: &Path) -> Option<&'a Self> {
        mounts
            .iter()
            .filter(|mount| path.starts_with(&mount.mount_point))
            .max_by_key(|mount| mount.mount_point.components().count())
    }

    /// Does the file system have this option.
    pub fn has_option(&self, option: &str) -> bool {
        self.options.split(',').any(|o| o == option)
    }
}

/// Reads `/proc/self/mountinfo`; lines that do not fit are passed over.
pub fn parse_mountinfo(text: &str) -> Vec<Mount> {
    text.lines().filter_map(parse_mount).collect()
}

fn parse_mount(line: &str) -> Option<Mount> {
    let (left, right) = line.split_once(" - ")?;
    let left: Vec<&str> = left.split(' ').collect();
    let right: Vec<&str> = right.split(' ').collect();
    let mut options: Vec<&str> = Vec::new();
    let given = [left.get(5).copied(), right.get(2).copied()];
    for option in given.into_iter().flatten().flat_map(|list| list.split(',')) {
        if !option.is_empty() && !options.contains(&option) {
            options.push(option);
        }
    }
    Some(Mount {
        device: (*left.get(2)?).to_owned(),
        subtree: unescape(left.get(3)?).into(),
        mount_point: unescape(left.get(4)?).into(),
        kind: (*right.first()?).to_owned(),
        options: options.join(","),
    })
}

/// The kernel writes blank, tab, newline and backslash as three octal digits.
fn unescape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('\\') {
        out.push_str(before);
        let code = after.get(..3).and_then(|digits| u8::from_str_radix(digits, 8).ok());
        match code {
            Some(code) if code.is_ascii() => {
                out.push(char::from(code));
                rest = &after[3..];
            }
            _ => {
                out.push('\\');
                rest = after;
            }
        }
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests;
