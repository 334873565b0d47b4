//! The directory that contains everything about a run.
//!
//! | file | content |
//! | --- | --- |
//! | `suite.toml` | the suite as run, every default explicit |
//! | `disclosure.json` | hosts, servers, tool, settings |
//! | `journal.jsonl` | append-only list of [`crate::event::JournalRecord`] |
//! | `intervals/point-NN.hlog` | HdrHistogram interval log of one load point |
//! | `monitors/*.csv` | resource samples, units in the header |
//! | `profile/point-NN.folded` | folded stacks of the server, where it was profiled |
//! | `result.json`, `report.html` … | derived: may be deleted and made again |
//! | `manifest.json` | SHA-256 of every file, raw and derived apart |
//! | `manifest.json.minisig` | its signature, where somebody signed it |
//!
//! A load point counts from the moment its `point_finished` record is in the journal. Its interval
//! log is on the disk by then: written under another name, synchronised, renamed, the directory
//! synchronised. So a crash at any instant costs at most the point in progress.

mod intervals;
mod journal;
mod manifest;
mod write;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::assignment::PointId;
use crate::disclosure::Disclosure;
use crate::outcome::OpNames;

pub use intervals::{
    IntervalEntry, IntervalLog, IntervalSlice, PackedSlice, SlicePacker, read_intervals,
};
pub use journal::{Journal, JournalWriter, Records};
pub use manifest::{MANIFEST_FORMAT, Manifest, ManifestProblem, sha256_of};
pub use write::{BundleWriter, PointLog, write_durably};

/// The suite as run.
pub const SUITE_FILE: &str = "suite.toml";
/// What is needed to repeat the run.
pub const DISCLOSURE_FILE: &str = "disclosure.json";
/// What happened, in order.
pub const JOURNAL_FILE: &str = "journal.jsonl";
/// Interval logs, one a load point.
pub const INTERVALS_DIR: &str = "intervals";
/// Resource samples.
pub const MONITORS_DIR: &str = "monitors";
/// Folded stacks of profiled servers.
pub const PROFILE_DIR: &str = "profile";
/// The derived result.
pub const RESULT_FILE: &str = "result.json";
/// The derived page.
pub const REPORT_FILE: &str = "report.html";
/// Checksums.
pub const MANIFEST_FILE: &str = "manifest.json";

/// Signature of the checksums, in the format of minisign.
pub const SIGNATURE_FILE: &str = "manifest.json.minisig";

/// Ending of a file that is being written; such files are leftovers after a crash.
const PARTIAL_ENDING: &str = "partial";

/// What can go wrong with a bundle.
#[derive(Debug, thiserror::Error)]
pub enum BundleError {
    /// A new run needs an empty directory.
    #[error(
        "{path} exists and is not empty; name another directory with --out, or go on with an \
         interrupted run: plimsoll resume {path}"
    )]
    Occupied {
        /// The directory.
        path: PathBuf,
    },
    /// The device is full, or the user's quota is spent.
    #[error("{path}: no space left on the device; make room there")]
    StorageFull {
        /// The file.
        path: PathBuf,
    },
    /// Two processes must not write one journal.
    #[error("{path} is being written by another plimsoll; wait until that run has ended")]
    InUse {
        /// The journal.
        path: PathBuf,
    },
    /// The system refused something else.
    #[error("{path}: cannot {doing}: {source}")]
    Storage {
        /// The file or directory.
        path: PathBuf,
        /// What was tried.
        doing: &'static str,
        /// The system's answer.
        source: io::Error,
    },
    /// Not what it should be.
    #[error("{path} is not a Plimsoll bundle: it holds no {missing}; name the directory of a run")]
    NotABundle {
        /// The directory.
        path: PathBuf,
        /// The file that is not there.
        missing: &'static str,
    },
    /// A file of the bundle cannot be read back.
    #[error("{path}:{line}: {message}; the file was changed after the run")]
    Malformed {
        /// The file.
        path: PathBuf,
        /// 1-based.
        line: usize,
        /// What is wrong.
        message: String,
    },
    /// Written by a version this one does not know.
    #[error(
        "{path}: format {format}, this program reads {supported}; use the version that wrote it"
    )]
    Format {
        /// The file.
        path: PathBuf,
        /// Format in the file.
        format: u32,
        /// Format that this program reads.
        supported: u32,
    },
}

impl BundleError {
    /// Sorts an I/O error: full storage is a case of its own.
    pub fn storage(path: &Path, doing: &'static str, source: io::Error) -> Self {
        use io::ErrorKind::{QuotaExceeded, StorageFull};
        if matches!(source.kind(), StorageFull | QuotaExceeded) {
            return Self::StorageFull { path: path.to_owned() };
        }
        Self::Storage { path: path.to_owned(), doing, source }
    }
}

/// A bundle on the disk, complete or not.
#[derive(Clone, Debug)]
pub struct BundleReader {
    dir: PathBuf,
    suite_text: String,
    journal: Journal,
}

impl BundleReader {
    /// Opens a bundle and reads its journal, torn end or not.
    pub fn open(dir: &Path) -> Result<Self, BundleError> {
        let suite_text = read_text(dir, SUITE_FILE)?;
        let journal_path = dir.join(JOURNAL_FILE);
        if !journal_path.exists() {
            return Err(BundleError::NotABundle { path: dir.to_owned(), missing: JOURNAL_FILE });
        }
        let journal = Journal::read(&journal_path)?;
        Ok(Self { dir: dir.to_owned(), suite_text, journal })
    }

    /// Where it is.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Text of `suite.toml`.
    pub fn suite_text(&self) -> &str {
        &self.suite_text
    }

    /// What happened.
    pub fn journal(&self) -> &Journal {
        &self.journal
    }

    /// What is needed to repeat the run; absent when the run ended before it was written.
    pub fn disclosure(&self) -> Result<Option<Disclosure>, BundleError> {
        let path = self.dir.join(DISCLOSURE_FILE);
        if !path.exists() {
            return Ok(None);
        }
        let text = read_text(&self.dir, DISCLOSURE_FILE)?;
        let disclosure = serde_json::from_str(&text).map_err(|e| BundleError::Malformed {
            path,
            line: e.line(),
            message: e.to_string(),
        })?;
        Ok(Some(disclosure))
    }

    /// Hands out every histogram of a finished load point, in order of time.
    pub fn intervals(
        &self,
        point: PointId,
        op_names: &OpNames,
        each: impl FnMut(IntervalEntry),
    ) -> Result<(), BundleError> {
        let path = self.dir.join(INTERVALS_DIR).join(format!("{}.hlog", point.stem()));
        let bytes = fs::read(&path).map_err(|e| BundleError::storage(&path, "read it", e))?;
        read_intervals(&path, &bytes, op_names, each)
    }
}

fn read_text(dir: &Path, name: &'static str) -> Result<String, BundleError> {
    let path = dir.join(name);
    fs::read_to_string(&path).map_err(|e| match e.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => {
            BundleError::NotABundle { path: dir.to_owned(), missing: name }
        }
        _ => BundleError::storage(&path, "read it", e),
    })
}

#[cfg(test)]
mod tests;
