//! The directory below which `proc` and `sys` lie: `/` on a real host, anything in a test.

use std::fs;
use std::path::{Path, PathBuf};

/// Where to look for `proc`, `sys` and `etc`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Root(PathBuf);

impl Default for Root {
    /// The host this process runs on.
    fn default() -> Self {
        Self(PathBuf::from("/"))
    }
}

impl Root {
    /// A machine laid out below a directory.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    /// Path of a file below the root; a leading slash does not lead out of it.
    pub fn path(&self, file: impl AsRef<Path>) -> PathBuf {
        let file = file.as_ref();
        self.0.join(file.strip_prefix("/").unwrap_or(file))
    }

    /// Content of a file; bytes that are not UTF-8 are replaced.
    pub(crate) fn read(&self, file: impl AsRef<Path>) -> Option<String> {
        let bytes = fs::read(self.path(file)).ok()?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Content of a file of one line, trimmed; `None` when it is empty.
    pub(crate) fn line(&self, file: impl AsRef<Path>) -> Option<String> {
        let text = self.read(file)?;
        let line = text.trim_matches(|c: char| c.is_whitespace() || c == '\0');
        (!line.is_empty()).then(|| line.to_owned())
    }

    /// A file that holds one number.
    pub(crate) fn number(&self, file: impl AsRef<Path>) -> Option<u64> {
        self.line(file)?.parse().ok()
    }

    /// Names in a directory, sorted; empty when there is none.
    pub(crate) fn names(&self, directory: impl AsRef<Path>) -> Vec<String> {
        let Ok(entries) = fs::read_dir(self.path(directory)) else { return Vec::new() };
        let mut names: Vec<String> =
            entries.flatten().map(|e| e.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    /// Last part of a symbolic link's destination (`driver -> ../../virtio_net`).
    pub(crate) fn link_name(&self, link: impl AsRef<Path>) -> Option<String> {
        let target = fs::read_link(self.path(link)).ok()?;
        Some(target.file_name()?.to_string_lossy().into_owned())
    }

    /// Is there such a file.
    pub(crate) fn has(&self, file: impl AsRef<Path>) -> bool {
        self.path(file).exists()
    }
}
