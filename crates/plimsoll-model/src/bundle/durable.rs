//! Files that survive a crash whole or not at all.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use super::{BundleError, PARTIAL_ENDING};

/// Writes `bytes` to `path`: under another name first, synchronised, renamed, and the directory
/// synchronised. A reader sees the old file or the whole new one.
pub fn write_durably(path: &Path, bytes: &[u8]) -> Result<(), BundleError> {
    let partial = partial_path(path);
    let mut file =
        File::create(&partial).map_err(|e| BundleError::storage(&partial, "create it", e))?;
    file.write_all(bytes).map_err(|e| BundleError::storage(&partial, "write it", e))?;
    put_in_place(&file, &partial, path)
}

/// Gives a complete partial file its name, durably.
pub(super) fn put_in_place(file: &File, partial: &Path, path: &Path) -> Result<(), BundleError> {
    file.sync_all().map_err(|e| BundleError::storage(partial, "synchronise it", e))?;
    fs::rename(partial, path).map_err(|e| BundleError::storage(path, "rename to it", e))?;
    sync_dir(path.parent().unwrap_or(Path::new(".")))
}

/// Makes the names in a directory durable.
pub(super) fn sync_dir(dir: &Path) -> Result<(), BundleError> {
    File::open(dir)
        .and_then(|d| d.sync_all())
        .map_err(|e| BundleError::storage(dir, "synchronise it", e))
}

/// Name a file has until it is complete.
pub(super) fn partial_path(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(PARTIAL_ENDING);
    PathBuf::from(name)
}
