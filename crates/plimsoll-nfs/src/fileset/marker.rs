//! The file that says a directory is ours and what it holds.

use plimsoll_protocol::marker::Marker;
use serde::{Deserialize, Serialize};

use super::{FILES_MAX, FileSet};

/// Text of [`super::MARKER`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileSetMarker {
    /// Seed of the content.
    seed: u64,
    /// Files that are complete; 0 while the first are being made.
    files: u32,
}

impl FileSetMarker {
    /// The marker of a set whose files are complete.
    pub fn new(seed: u64, set: FileSet) -> Self {
        Self { seed, files: set.files() }
    }

    /// Seed of the content.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// What is complete; no files while the first are being made.
    pub fn set(&self) -> FileSet {
        FileSet::new(self.files)
    }
}

impl Marker for FileSetMarker {
    const TITLE: &'static str = "the file set's marker";
    const REMEDY: &'static str = "remove the file set and prepare it again";

    fn excess(&self) -> Option<String> {
        let Self { files, .. } = self;
        (*files > FILES_MAX).then(|| format!("{files} files, at most {FILES_MAX} can be"))
    }
}
