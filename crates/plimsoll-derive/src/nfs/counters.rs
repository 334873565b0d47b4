//! The texts in which NFS counters are read: `/proc/net/rpc/nfsd`, `nfsstat -s` and
//! `/proc/self/mountstats`.

use std::collections::BTreeMap;

/// Counters at one time.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Counters {
    /// What the text is.
    pub source: &'static str,
    /// RPCs by version and op.
    pub ops: BTreeMap<(u8, String), u64>,
    /// Bytes of READs.
    pub bytes_read: Option<u64>,
    /// Bytes of WRITEs.
    pub bytes_written: Option<u64>,
    /// Since the mount.
    pub age_s: Option<f64>,
}

/// Procedures in the order of their numbers. RFC 1094 §2.2
const V2: [&str; 18] = [
    "null", "getattr", "setattr", "root", "lookup", "readlink", "read", "wrcache", "write",
    "create", "remove", "rename", "link", "symlink", "mkdir", "rmdir", "readdir", "fsstat",
];
/// RFC 1813 §3.3
const V3: [&str; 22] = [
    "null",
    "getattr",
    "setattr",
    "lookup",
    "access",
    "readlink",
    "read",
    "write",
    "create",
    "mkdir",
    "symlink",
    "mknod",
    "remove",
    "rmdir",
    "rename",
    "link",
    "readdir",
    "readdirplus",
    "fsstat",
    "fsinfo",
    "pathconf",
    "commit",
];

/// Reads a text of any of the three kinds; the message says why it is none.
pub(super) fn read_counters(text: &str) -> Result<Counters, String> {
    if text.contains(" mounted on ") {
        read_mountstats(text)
    } else if text.lines().any(|line| line.starts_with("proc3 ") || line.starts_with("proc2 ")) {
        read_nfsd(text)
    } else if text.contains("nfs v") {
        read_nfsstat(text)
    } else {
        Err("it is no text of /proc/net/rpc/nfsd, nfsstat -s or /proc/self/mountstats".to_owned())
    }
}

fn read_nfsd(text: &str) -> Result<Counters, String> {
    let mut counters = Counters { source: "nfsd", ..Counters::default() };
    for (line, number) in text.lines().zip(1..) {
        let mut fields = line.split_ascii_whitespace();
        let key = fields.next().unwrap_or_default();
        let read = || -> Option<Vec<u64>> { fields.map(|field| field.parse().ok()).collect() };
        let values =
            || read().ok_or_else(|| format!("line {number} has a field that is no number"));
        match key {
            "io" => {
                if let [read, written, ..] = values()?[..] {
                    (counters.bytes_read, counters.bytes_written) = (Some(read), Some(written));
                }
            }
            "proc2" => counters.insert_all(2, &V2, &values()?),
            "proc3" => counters.insert_all(3, &V3, &values()?),
            "proc4ops" => {
                let total =
                    values()?.iter().skip(1).fold(0, |sum: u64, it| sum.saturating_add(*it));
                counters.ops.insert((4, "ops".to_owned()), total);
            }
            _ => {}
        }
    }
    Ok(counters)
}

impl Counters {
    /// The first value is how many follow.
    fn insert_all(&mut self, version: u8, names: &[&str], values: &[u64]) {
        for (name, value) in names.iter().zip(values.iter().skip(1)) {
            self.ops.insert((version, (*name).to_owned()), *value);
        }
    }
}

/// A heading `Server nfs v3:`, then lines of names, each with a line of counts and percents below.
fn read_nfsstat(text: &str) -> Result<Counters, String> {
    let mut counters = Counters { source: "nfsstat", ..Counters::default() };
    let (mut version, mut names): (Option<u8>, Vec<&str>) = (None, Vec::new());
    for (line, number) in text.lines().zip(1..) {
        let fields: Vec<&str> = line.split_ascii_whitespace().collect();
        if let Some(heading) = line.trim_end().strip_suffix(':') {
            let digits = heading.rsplit_once(" nfs v").map(|(_, digits)| digits);
            version = digits.and_then(|digits| digits.split_whitespace().next()?.parse().ok());
            names.clear();
            continue;
        }
        let Some(version) = version else { continue };
        match fields.first().and_then(|field| field.chars().next()) {
            None => names.clear(),
            Some(first) if first.is_ascii_digit() => {
                let counts = fields.iter().filter(|field| !field.ends_with('%'));
                let counts: Option<Vec<u64>> = counts.map(|count| count.parse().ok()).collect();
                let counts = counts.filter(|counts| counts.len() == names.len());
                let counts = counts
                    .ok_or_else(|| format!("line {number} is not the counts of the line above"))?;
                for (name, count) in names.drain(..).zip(counts) {
                    let name = name.to_ascii_lowercase().replace("statfs", "fsstat");
                    counters.ops.insert((version, name), count);
                }
            }
            Some(_) => names = fields,
        }
    }
    if counters.ops.is_empty() {
        return Err("it has no table of a version of NFS; read it with nfsstat -s".to_owned());
    }
    Ok(counters)
}

/// The mounts of one client; those of version 2 and 3 are added up.
fn read_mountstats(text: &str) -> Result<Counters, String> {
    let mut counters = Counters { source: "mountstats", ..Counters::default() };
    let (mut version, mut in_ops) = (None, false);
    for (line, number) in text.lines().zip(1..) {
        let line = line.trim();
        if line.starts_with("device ") {
            let is_nfs = line.contains(" fstype nfs");
            (version, in_ops) = (is_nfs.then_some(3), false);
            continue;
        }
        let Some(its) = &mut version else { continue };
        if let Some(options) = line.strip_prefix("opts:") {
            let vers =
                options.split([',', '\t', ' ']).find_map(|option| option.strip_prefix("vers="));
            *its = vers.and_then(|vers| vers.chars().next()?.to_digit(10)).unwrap_or(3) as u8;
        } else if let Some(age) = line.strip_prefix("age:") {
            let age: f64 = age.trim().parse().map_err(|_| format!("line {number} has no age"))?;
            counters.age_s = Some(counters.age_s.unwrap_or(0.0).max(age));
        } else if let Some(bytes) = line.strip_prefix("bytes:") {
            // Seven or eight counters; the fifth and sixth are what READ and WRITE carried.
            let bytes: Vec<u64> =
                bytes.split_whitespace().filter_map(|it| it.parse().ok()).collect();
            if let [_, _, _, _, read, written, ..] = bytes[..] {
                counters.bytes_read = Some(counters.bytes_read.unwrap_or(0) + read);
                counters.bytes_written = Some(counters.bytes_written.unwrap_or(0) + written);
            }
        } else if line.starts_with("per-op statistics") {
            in_ops = true;
        } else if let Some((op, rest)) = line.split_once(':').filter(|_| in_ops) {
            let count = rest.split_whitespace().next().and_then(|count| count.parse::<u64>().ok());
            let count = count.ok_or_else(|| format!("line {number} has no count of {op}"))?;
            let op = if *its == 4 { "ops".to_owned() } else { op.to_ascii_lowercase() };
            *counters.ops.entry((*its, op)).or_default() += count;
        }
    }
    if counters.ops.is_empty() {
        return Err("it has no NFS mount".to_owned());
    }
    Ok(counters)
}
