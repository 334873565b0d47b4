//! The directory that holds the data segments. Files are made only below a directory that carries
//! our marker.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, Mode, OFlags, flock, open, statfs};

use super::AppServerError;

/// Name of the marker file.
pub const MARKER: &str = ".plimsoll-segments";
const MARKER_TEXT: &str = "Data segments of plimsoll serve app, format 1. Files beside this one \
                           may be replaced or removed.\n";
/// statfs(2): TMPFS_MAGIC.
const TMPFS: i64 = 0x0102_1994;

/// Where the segments are to be.
#[derive(Clone, Debug)]
pub enum SegmentsRoot {
    /// A new directory below `TMPDIR`, removed at the end.
    Temporary,
    /// This new or empty directory, removed at the end.
    TemporaryAt(PathBuf),
    /// This directory, made where there is none; what is in it stays and is used again.
    Kept(PathBuf),
}

/// A directory in use. Dropping it removes a temporary one.
#[derive(Debug)]
pub(super) struct Root {
    /// Of the directory.
    pub(super) directory: OwnedFd,
    pub(super) path: PathBuf,
    /// Locked as long as this server uses the directory.
    _marker: File,
    _remove: Option<Removed>,
}

impl Root {
    pub(super) fn open(requested: &SegmentsRoot) -> Result<Self, AppServerError> {
        let (path, remove) = match requested {
            SegmentsRoot::Temporary => {
                let made = tempfile::Builder::new().prefix("plimsoll-segments-").tempdir();
                let made = made.map_err(AppServerError::Temporary)?;
                (made.path().to_owned(), Some(Removed(made.keep())))
            }
            SegmentsRoot::TemporaryAt(path) | SegmentsRoot::Kept(path) => (path.clone(), None),
        };
        let failed = |source| AppServerError::Segments { path: path.clone(), source };
        match fs::create_dir(&path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                return Err(failed(error));
            }
            _ => {}
        }
        let marker = marker(&path)?;
        if flock(&marker, FlockOperation::NonBlockingLockExclusive).is_err() {
            return Err(AppServerError::SegmentsInUse { path });
        }
        let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC;
        let directory = open(&path, flags, Mode::empty()).map_err(|e| failed(e.into()))?;
        let remove = match requested {
            // Another server's segments carry our marker too, and are not ours to remove.
            SegmentsRoot::TemporaryAt(path) if !has_marker_only(path).map_err(failed)? => {
                return Err(AppServerError::SegmentsKept { path: path.clone() });
            }
            SegmentsRoot::TemporaryAt(path) => Some(Removed(path.clone())),
            _ => remove,
        };
        Ok(Self { directory, path, _marker: marker, _remove: remove })
    }

    /// Whether what is written here is kept in memory only.
    pub(super) fn is_in_memory(&self) -> bool {
        statfs(&self.path).is_ok_and(|statfs_result| statfs_result.f_type == TMPFS)
    }
}

/// Opens or writes the marker; a directory with anything else in it and no marker is refused.
fn marker(path: &Path) -> Result<File, AppServerError> {
    let failed = |source| AppServerError::Segments { path: path.to_owned(), source };
    let file = path.join(MARKER);
    let is_marked = file.symlink_metadata().is_ok_and(|metadata| metadata.is_file());
    if !is_marked && fs::read_dir(path).map_err(failed)?.next().is_some() {
        return Err(AppServerError::SegmentsOccupied { path: path.to_owned() });
    }
    // Written each time, to detect a directory that is not writable.
    let mut marker = File::options().write(true).create(true).truncate(false).open(&file);
    if let Ok(marker) = &mut marker {
        marker.write_all(MARKER_TEXT.as_bytes()).map_err(failed)?;
    }
    marker.map_err(failed)
}

fn has_marker_only(path: &Path) -> io::Result<bool> {
    for entry in fs::read_dir(path)? {
        if entry?.file_name() != MARKER {
            return Ok(false);
        }
    }
    Ok(true)
}

/// A directory that is removed, with all in it, when this is dropped.
#[derive(Debug)]
struct Removed(PathBuf);

impl Drop for Removed {
    fn drop(&mut self) {
        // Whoever started us may have removed it already.
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_with_other_files_is_refused_and_left_as_it_is() {
        let outer = tempfile::tempdir().unwrap();
        fs::write(outer.path().join("letter.txt"), "dear").unwrap();
        let refused = Root::open(&SegmentsRoot::Kept(outer.path().to_owned())).unwrap_err();
        assert!(matches!(refused, AppServerError::SegmentsOccupied { .. }), "{refused}");
        let refused = Root::open(&SegmentsRoot::TemporaryAt(outer.path().to_owned())).unwrap_err();
        assert!(matches!(refused, AppServerError::SegmentsOccupied { .. }), "{refused}");
        assert_eq!(fs::read_dir(outer.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_kept_directory_is_used_again_and_by_one_server_at_a_time() {
        let outer = tempfile::tempdir().unwrap();
        let requested = SegmentsRoot::Kept(outer.path().join("new"));
        let first = Root::open(&requested).unwrap();
        fs::write(first.path.join("client-000001.segment"), "data").unwrap();
        let second = Root::open(&requested).unwrap_err();
        assert!(matches!(second, AppServerError::SegmentsInUse { .. }), "{second}");
        let path = first.path.clone();
        drop(first);
        assert!(path.join("client-000001.segment").exists());
        Root::open(&requested).unwrap();
    }

    #[test]
    fn a_temporary_directory_goes_with_all_in_it() {
        for requested in [
            SegmentsRoot::Temporary,
            SegmentsRoot::TemporaryAt(tempfile::tempdir().unwrap().keep()),
        ] {
            let root = Root::open(&requested).unwrap();
            let path = root.path.clone();
            fs::write(path.join("client-000001.segment"), "data").unwrap();
            drop(root);
            assert!(!path.exists(), "{requested:?}");
        }
    }

    #[test]
    fn a_directory_that_keeps_segments_is_not_taken_as_a_temporary_one() {
        let outer = tempfile::tempdir().unwrap();
        let path = outer.path().join("kept");
        drop(Root::open(&SegmentsRoot::Kept(path.clone())).unwrap());
        let segment = path.join("client-000001.segment");
        fs::write(&segment, "data").unwrap();
        let refused = Root::open(&SegmentsRoot::TemporaryAt(path.clone())).unwrap_err();
        assert!(matches!(refused, AppServerError::SegmentsKept { .. }), "{refused}");
        assert_eq!(fs::read(&segment).unwrap(), b"data");
        fs::remove_file(&segment).unwrap();
        drop(Root::open(&SegmentsRoot::TemporaryAt(path.clone())).unwrap());
        assert!(!path.exists());
    }
}
