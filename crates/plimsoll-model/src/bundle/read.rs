//! Reads a bundle.

use std::fs;
use std::path::{Path, PathBuf};

use super::{
    BundleError, DISCLOSURE_FILE, INTERVALS_DIR, IntervalEntry, JOURNAL_FILE, Journal, SUITE_FILE,
    read_intervals,
};
use crate::assignment::PointId;
use crate::disclosure::Disclosure;
use crate::outcome::OpNames;

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
        std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory => {
            BundleError::NotABundle { path: dir.to_owned(), missing: name }
        }
        _ => BundleError::storage(&path, "read it", e),
    })
}
