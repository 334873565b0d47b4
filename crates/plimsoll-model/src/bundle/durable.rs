//! Files that survive a crash whole or not at all.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use super::{BundleError, PARTIAL_ENDING};

/// Writes `bytes` to `path`: under another name first, synchronised, renamed, and the directory
/// synchronised. A reader sees the old file or the whole new one; an error leaves nothing behind.
pub fn write_durably(path: &Path, bytes: &[u8]) -> Result<(), BundleError> {
    let partial = partial_path(path);
    let written =
        write_partial(&partial, bytes).and_then(|file| put_in_place(&file, &partial, path));
    if written.is_err() {
        // Half a file is of no use, and on a full disk its room is wanted.
        let _ = fs::remove_file(&partial);
    }
    written
}

fn write_partial(partial: &Path, bytes: &[u8]) -> Result<File, BundleError> {
    let mut file =
        File::create(partial).map_err(|e| BundleError::storage(partial, "create it", e))?;
    file.write_all(bytes).map_err(|e| BundleError::storage(partial, "write it", e))?;
    Ok(file)
}

/// Gives a complete partial file its name, durably.
pub(super) fn put_in_place(file: &File, partial: &Path, path: &Path) -> Result<(), BundleError> {
    file.sync_all().map_err(|e| BundleError::storage(partial, "synchronise it", e))?;
    fs::rename(partial, path).map_err(|e| BundleError::storage(path, "rename to it", e))?;
    sync_dir(dir_of(path))
}

/// The directory a file lies in; a bare name lies in the current one.
fn dir_of(path: &Path) -> &Path {
    match path.parent() {
        Some(dir) if !dir.as_os_str().is_empty() => dir,
        _ => Path::new("."),
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bare_name_lies_in_the_current_directory() {
        assert_eq!(dir_of(Path::new("r.md")), Path::new("."));
        assert_eq!(dir_of(Path::new("a/r.md")), Path::new("a"));
    }

    #[test]
    fn a_file_that_cannot_be_put_in_place_leaves_no_partial_one() {
        let place = tempfile::tempdir().unwrap();
        let taken = place.path().join("taken");
        fs::create_dir(&taken).unwrap();
        assert!(write_durably(&taken, b"x").is_err());
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 1);
    }
}
