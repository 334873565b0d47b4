//! The directory that holds everything about a run.
//!
//! | file | what it holds |
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
mod packed;
mod read;
mod write;

use std::io;
use std::path::{Path, PathBuf};

pub use intervals::{IntervalEntry, IntervalLog, IntervalSlice, read_intervals};
pub use journal::{Journal, JournalWriter, Records};
pub use manifest::{MANIFEST_FORMAT, Manifest, ManifestProblem, sha256_of};
pub use packed::{PackedSlice, SlicePacker};
pub use read::BundleReader;
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
    /// A new run wants an empty place.
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
    #[error("{path}: format {found}, this program reads {known}; use the version that wrote it")]
    Format {
        /// The file.
        path: PathBuf,
        /// What the file says.
        found: u32,
        /// What this program reads.
        known: u32,
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

#[cfg(test)]
mod tests;
