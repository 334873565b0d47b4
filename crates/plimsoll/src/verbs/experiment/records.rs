//! `experiment.jsonl`: the completed steps in order of time, so that a killed experiment can be
//! continued.

use std::fmt;
use std::path::{Path, PathBuf};

use plimsoll_model::bundle::{JournalWriter, Records};
use plimsoll_model::comparison::experiment::HookFailure;
use plimsoll_run::clock::unix_ns;
use serde::{Deserialize, Serialize};

use super::design::Step;
use crate::exit::Failure;
use crate::verbs::make_directory;

/// Name of the journal in the experiment's directory.
pub(crate) const RECORDS_FILE: &str = "experiment.jsonl";
const RECORDS_FORMAT: u32 = 1;

/// An event.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub(crate) enum Record {
    /// The first record.
    Started(Started),
    /// The user confirmed that a level is set.
    HandSet { factor: String, level: String, block: u32, at_unix_ns: u64 },
    /// A run ended. It has its own bundle; a later record of the same run replaces this one.
    Run { cell: usize, block: u32, valid: bool, at_unix_ns: u64 },
    /// A cell's run could not be made; the cell gets no further runs until the experiment is
    /// resumed.
    CellEnded { cell: usize, block: u32, why: Box<CellEnd>, at_unix_ns: u64 },
    /// The state before the experiment could not be restored.
    NotUndone { failure: Box<HookFailure>, at_unix_ns: u64 },
    /// The experiment was resumed.
    Resumed { version: String, at_unix_ns: u64 },
}

/// The start of an experiment: all that `plimsoll resume` needs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Started {
    pub format: u32,
    pub version: String,
    /// The command line, without secrets.
    pub command: Vec<String>,
    /// Directory in which it was started: paths are relative to it.
    pub directory: PathBuf,
    /// Names of the cells, in the order of the design.
    pub cells: Vec<String>,
    pub at_unix_ns: u64,
}

/// Why a cell got no run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum CellEnd {
    /// A command failed.
    Hook(HookFailure),
    /// The run could not be made.
    Run(String),
}

impl fmt::Display for CellEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Hook(failure) => failure.fmt(f),
            Self::Run(message) => f.write_str(message),
        }
    }
}

/// The journal of a running experiment, and its records.
#[derive(Debug)]
pub(crate) struct Log {
    writer: JournalWriter<Record>,
    records: Vec<Record>,
}

impl Log {
    /// Begins a journal in `dir`, which is created.
    pub(crate) fn create(dir: &Path, started: Started) -> Result<Self, Failure> {
        make_directory(dir)?;
        let path = dir.join(RECORDS_FILE);
        if path.exists() && !has_begun(dir)? {
            std::fs::remove_file(&path).map_err(|e| {
                Failure::unusable(format!("{}: cannot begin it anew: {e}", path.display()))
            })?;
        }
        let writer = JournalWriter::create(&path)?;
        let mut log = Self { writer, records: Vec::new() };
        log.write(Record::Started(started))?;
        Ok(log)
    }

    /// Continues the journal of an interrupted experiment with the same cells.
    pub(crate) fn resume(dir: &Path, cells: &[String]) -> Result<Self, Failure> {
        let path = dir.join(RECORDS_FILE);
        let read = Records::read_all(&path)?;
        let writer = JournalWriter::reopen(&path, &read)?;
        let mut log = Self { writer, records: read.records };
        if started(&path, &log.records)?.cells != cells {
            return Err(Failure::wrong(format!(
                "{}: the experiment has other cells now than when it began; begin a new one with \
                 another --out",
                dir.display()
            )));
        }
        let version = env!("CARGO_PKG_VERSION").to_owned();
        log.write(Record::Resumed { version, at_unix_ns: unix_ns() })?;
        Ok(log)
    }

    pub(crate) fn write(&mut self, record: Record) -> Result<(), Failure> {
        self.writer.append_durably(&record)?;
        self.records.push(record);
        Ok(())
    }

    /// Whether the run of a step is valid; `None` if it was not made.
    pub(crate) fn made(&self, step: &Step) -> Option<bool> {
        self.records.iter().rev().find_map(|record| match record {
            Record::Run { cell, block, valid, .. }
                if (*cell, *block) == (step.cell, step.block) =>
            {
                Some(*valid)
            }
            _ => None,
        })
    }

    /// Why a cell gets no more runs, unless the experiment was resumed since.
    pub(crate) fn ended(&self, cell_index: usize) -> Option<&CellEnd> {
        let since = self.records.iter().rposition(|it| matches!(it, Record::Resumed { .. }));
        self.records[since.unwrap_or_default()..].iter().find_map(|record| match record {
            Record::CellEnded { cell, why, .. } if *cell == cell_index => Some(&**why),
            _ => None,
        })
    }

    pub(crate) fn records(&self) -> &[Record] {
        &self.records
    }
}

/// The start of the experiment in a directory; `None` without one.
pub(crate) fn started_in(dir: &Path) -> Result<Option<Started>, Failure> {
    let path = dir.join(RECORDS_FILE);
    if !path.exists() {
        return Ok(None);
    }
    started(&path, &Records::read_all(&path)?.records).map(|it| Some(it.clone()))
}

/// Whether an experiment in a directory has a run, or a level that was set by hand.
pub(crate) fn has_begun(dir: &Path) -> Result<bool, Failure> {
    let path = dir.join(RECORDS_FILE);
    if !path.exists() {
        return Ok(false);
    }
    let records = Records::<Record>::read_all(&path)?.records;
    Ok(records.iter().any(|it| matches!(it, Record::Run { .. } | Record::HandSet { .. })))
}

fn started<'r>(path: &Path, records: &'r [Record]) -> Result<&'r Started, Failure> {
    let wrong = |why: String| Err(Failure::wrong(format!("{}: {why}", path.display())));
    match records.first() {
        Some(Record::Started(started)) if started.format == RECORDS_FORMAT => Ok(started),
        Some(Record::Started(started)) => wrong(format!(
            "its format is {}, and this program reads {RECORDS_FORMAT}",
            started.format
        )),
        _ => wrong(
            "the experiment was killed before it began; remove the directory and begin again"
                .into(),
        ),
    }
}

impl Started {
    /// The record of an experiment that starts now.
    pub(crate) fn now(command: Vec<String>, cells: Vec<String>) -> Result<Self, Failure> {
        let directory = std::env::current_dir()
            .map_err(|e| Failure::unusable(format!("cannot tell the current directory: {e}")))?;
        Ok(Self {
            format: RECORDS_FORMAT,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            command,
            directory,
            cells,
            at_unix_ns: unix_ns(),
        })
    }
}
