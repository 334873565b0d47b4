//! Files that a suite names. A plan reads them through [`InputFiles`] only, so that an agent on
//! another host plans from their bytes as the controller read them.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// Where a plan reads the files that its suite names.
pub trait InputFiles: fmt::Debug {
    /// All bytes of a file, by the name that the suite gives it.
    fn read(&self, name: &Path) -> io::Result<Vec<u8>>;
}

/// Files by their names. Some hold keys: nothing shows their bytes.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct CachedFiles(BTreeMap<PathBuf, Vec<u8>>);

impl CachedFiles {
    /// No file.
    pub const NONE: Self = Self(BTreeMap::new());

    /// Names and bytes, in the order of the names.
    pub fn iter(&self) -> impl Iterator<Item = (&Path, &[u8])> {
        self.0.iter().map(|(name, bytes)| (name.as_path(), bytes.as_slice()))
    }
}

impl FromIterator<(PathBuf, Vec<u8>)> for CachedFiles {
    fn from_iter<I: IntoIterator<Item = (PathBuf, Vec<u8>)>>(files: I) -> Self {
        Self(files.into_iter().collect())
    }
}

impl fmt::Debug for CachedFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

impl InputFiles for CachedFiles {
    fn read(&self, name: &Path) -> io::Result<Vec<u8>> {
        self.0.get(name).cloned().ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}

/// Files of this host. Each is read once, and kept with its bytes for those who plan the same
/// elsewhere.
#[derive(Debug, Default)]
pub struct HostFiles(RefCell<CachedFiles>);

impl HostFiles {
    /// What was read so far.
    pub fn cached(&self) -> CachedFiles {
        self.0.borrow().clone()
    }
}

impl InputFiles for HostFiles {
    fn read(&self, name: &Path) -> io::Result<Vec<u8>> {
        if let Ok(bytes) = self.0.borrow().read(name) {
            return Ok(bytes);
        }
        let bytes = std::fs::read(name)?;
        self.0.borrow_mut().0.insert(name.to_owned(), bytes.clone());
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_read_on_this_host_can_be_read_elsewhere_and_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        let (key, other) = (dir.path().join("key.pem"), dir.path().join("other"));
        std::fs::write(&key, "s3cret").unwrap();
        let files = HostFiles::default();
        assert_eq!(files.read(&key).unwrap(), b"s3cret");
        assert_eq!(files.read(&other).unwrap_err().kind(), io::ErrorKind::NotFound);
        std::fs::write(&key, "another").unwrap();
        assert_eq!(files.read(&key).unwrap(), b"s3cret", "as it was read first");
        let cached = files.cached();
        std::fs::write(&other, "here").unwrap();
        assert_eq!(cached.read(&key).unwrap(), b"s3cret");
        assert_eq!(cached.read(&other).unwrap_err().kind(), io::ErrorKind::NotFound);
        let shown = format!("{cached:?}");
        assert!(shown.contains("key.pem") && !shown.contains("115, 51"), "{shown}");
    }
}
