//! The file that says a directory is ours and what it holds.

use serde::{Deserialize, Serialize};

use super::{FILES_MAX, FileSet};

/// Version of the file.
const MARKER_FORMAT: u32 = 1;

/// Text of [`super::MARKER`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Marker {
    /// Version of this format.
    format: u32,
    /// Program and version that wrote the set.
    tool: String,
    /// Seed of the content.
    seed: u64,
    /// Files that are complete; 0 while the first are being made.
    files: u32,
}

/// A marker that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MarkerError {
    /// Not the JSON of a marker.
    #[error("the file set's marker is not valid: {0}; remove the file set and prepare it again")]
    Invalid(String),
    /// Of another version.
    #[error(
        "the file set's marker has format {0}, this program reads {MARKER_FORMAT}; \
             use the version of plimsoll that wrote it"
    )]
    Format(u32),
    /// More files than there can be.
    #[error(
        "the file set's marker names {0} files, at most {FILES_MAX} can be; \
             remove the file set and prepare it again"
    )]
    Files(u32),
}

impl Marker {
    /// The marker of a set whose files are complete.
    pub fn new(seed: u64, set: FileSet) -> Self {
        Self {
            format: MARKER_FORMAT,
            tool: concat!("plimsoll ", env!("CARGO_PKG_VERSION")).to_owned(),
            seed,
            files: set.files(),
        }
    }

    /// Reads a marker.
    pub fn parse(text: &[u8]) -> Result<Self, MarkerError> {
        let marker: Self =
            serde_json::from_slice(text).map_err(|e| MarkerError::Invalid(e.to_string()))?;
        match marker {
            Self { format, .. } if format != MARKER_FORMAT => Err(MarkerError::Format(format)),
            Self { files, .. } if files > FILES_MAX => Err(MarkerError::Files(files)),
            _ => Ok(marker),
        }
    }

    /// Seed of the content.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// What is complete; no files while the first are being made.
    pub fn set(&self) -> FileSet {
        FileSet::new(self.files)
    }

    /// The text of the file.
    pub fn to_json(&self) -> String {
        let mut text =
            serde_json::to_string_pretty(self).expect("numbers and strings are always JSON");
        text.push('\n');
        text
    }
}
