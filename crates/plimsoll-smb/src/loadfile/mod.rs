//! Load files of dbench: recorded desktop sessions, replayed by every client in its own directory.
//!
//! A file is read once, line by line, into records of 24 bytes and one pool of names; all clients
//! share it. `docs/load-files.md` has the format, the mapping and where a replay differs from it.
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`grammar`], [`levels`] | the keywords and numbers of the format |
//! | [`names`] | names, and where a client finds them on the share |
//! | [`line`](mod@line), [`problem`] | a line as text, what can be wrong with it, bounds |
//! | [`record`] | a line in 24 bytes, and a file read into such records |
//! | [`replay`] | the script, and where SMB2 answers differently from SMB1 |

pub(crate) mod grammar;
pub(crate) mod levels;
pub(crate) mod line;
pub(crate) mod names;
pub(crate) mod problem;
pub(crate) mod record;
pub(crate) mod replay;

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use plimsoll_model::disclosure::Setting;
use plimsoll_protocol::{InputFile, LoadFiles, PlanError};

use crate::parameters::{Pattern, SmbWorkload};

pub(crate) use replay::Replay;

use grammar::{Status, Verb};
use line::Line;
use names::Pool;
use record::Record;

/// Most bytes of one read or write: what every content table serves in one slice, and twice
/// what SMB1 transfers at once.
pub(crate) const TRANSFER_BYTES_MAX: u64 = 128 * 1024;
/// A load file in memory.
pub struct LoadFile {
    records: Box<[Record]>,
    statuses: Box<[Status]>,
    pool: Pool,
    /// Lines with a number of seconds in front.
    timestamps: u64,
}

/// A load file and where it came from.
#[derive(Clone, Debug)]
pub(crate) struct LoadFileSource {
    /// Where it lies, absolute, so that a resumed run finds it.
    pub path: PathBuf,
    /// Of its bytes, in hexadecimal.
    pub sha256: String,
    /// Its content; every client shares it.
    pub file: Arc<LoadFile>,
}

/// How load files are taken up by a run.
pub(crate) const LOAD_FILES: LoadFiles = LoadFiles {
    belong_to: "suite disk-mix and to SMB suites with pattern = \"disk-mix\"",
    fit: |suite| suite.workload.parameters::<SmbWorkload>().pattern == Pattern::DiskMix,
    read: |reader, name| Ok(Arc::new(LoadFile::parse(reader, name).map_err(PlanError::own)?)),
    due_times: |_| None,
};

impl LoadFileSource {
    /// The file that the user named; `None` where nothing of this protocol was read.
    pub(crate) fn from_input(input: &InputFile) -> Option<Self> {
        let InputFile { path, sha256, content } = input;
        let file = Arc::clone(content).downcast().ok()?;
        Some(Self { path: path.clone(), sha256: sha256.clone(), file })
    }
}

impl LoadFile {
    /// The records of one pass.
    pub fn records(&self) -> &[Record] {
        &self.records
    }

    /// A record as a line.
    pub fn line(&self, record: &Record) -> Line<'_> {
        record.line(&self.statuses, &self.pool)
    }

    /// Lines of each verb, in the order of [`Verb::ALL`].
    pub fn counts(&self) -> BTreeMap<Verb, u64> {
        let mut counts = BTreeMap::new();
        for record in &self.records {
            *counts.entry(record.verb).or_default() += 1;
        }
        counts
    }

    /// Bytes in memory.
    pub fn memory_bytes(&self) -> usize {
        size_of_val(&*self.records) + size_of_val(&*self.statuses) + self.pool.memory_bytes()
    }

    /// How a replay of this file deviates from the file, for a person.
    fn deviations(&self) -> Vec<String> {
        let mut deviations = Vec::new();
        if self.timestamps > 0 {
            deviations.push(format!(
                "the timestamps of {} lines are ignored: an op follows when the one before it is \
                 answered",
                self.timestamps
            ));
        }
        let mut levels = BTreeMap::new();
        let mut masked = 0u64;
        for record in &self.records {
            let numbers = record.numbers();
            match record.verb {
                Verb::NtCreateX => masked += u64::from(numbers[1] & !replay::OPTIONS_OF_SMB2 != 0),
                Verb::QueryFs => *levels.entry((record.verb, numbers[0])).or_insert(0u64) += 1,
                _ => *levels.entry((record.verb, numbers[1])).or_insert(0u64) += 1,
            }
        }
        for ((verb, level), lines) in levels {
            if let Some((mapped, Some(instead_of))) = levels::describe(verb, level) {
                deviations.push(format!(
                    "{} level {level} ({instead_of}) is asked as {mapped} ({lines} lines)",
                    verb.name()
                ));
            }
        }
        if masked > 0 {
            deviations.push(format!(
                "CreateOptions that SMB2 forbids are left out of {masked} NTCreateX lines"
            ));
        }
        deviations
    }
}

impl LoadFileSource {
    /// All deviations of a replay of this file, from the suite's method and from the file.
    pub(crate) fn deviations(&self) -> Vec<String> {
        let first = format!(
            "the ops are those of load file {}, pass after pass, instead of the suite's mix",
            self.path.display()
        );
        std::iter::once(first).chain(self.file.deviations()).collect()
    }

    /// For the disclosure.
    pub(crate) fn facts(&self) -> Vec<Setting> {
        let counts = self.file.counts();
        let ops: u64 = counts.values().sum();
        let parts = counts.iter().map(|(verb, count)| format!("{} {count}", verb.name()));
        vec![
            Setting::new("load file", self.path.display().to_string()),
            Setting::new("load file SHA-256", self.sha256.clone()),
            Setting::new("lines of one pass", ops.to_string()),
            Setting::new("lines by operation", parts.collect::<Vec<_>>().join(", ")),
        ]
    }
}

impl fmt::Debug for LoadFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LoadFile of {} lines", self.records.len())
    }
}

#[cfg(test)]
mod tests;
