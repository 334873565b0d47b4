//! Writes the file set into a directory, for a server that serves files from disk, and removes
//! it again. Only below a directory that carries our marker, or that is new or empty.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use plimsoll_model::units::Bytes;

use crate::fileset::{
    DIRECTORIES_MAX, FileSet, FileSetId, FileSetMarker, MARKER, files_of_directory, ops_per_s_for,
};
pub use plimsoll_protocol::host::Prepared;
use plimsoll_protocol::marker::{Marker as _, MarkerError};
use plimsoll_protocol::net::GoOn;

/// Left free on the disk beyond the file set: logs and the server need some.
const SPARE_BYTES: u64 = 64 * 1024 * 1024;
/// Directories written between two updates of the marker (about 78 MiB).
const MARKER_EVERY: u32 = 16;
/// Blocks that a file of a few hundred bytes takes anyway.
const BLOCK_BYTES: u64 = 4096;

/// Why a file set cannot be written or removed.
#[derive(Debug, thiserror::Error)]
pub enum PrepareError {
    /// The directory holds something that is not ours.
    #[error("{0} is not empty and carries no {MARKER}; name a new or empty directory")]
    Foreign(PathBuf),
    /// The directory to clean carries no marker.
    #[error("{0} carries no {MARKER}, so nothing in it is removed; name the file set's directory")]
    NotOurs(PathBuf),
    /// The marker cannot be read.
    #[error("{path}: {source}")]
    Marker {
        /// The marker.
        path: PathBuf,
        /// What is wrong with it.
        source: MarkerError,
    },
    /// The directory holds a file set of another seed.
    #[error(
        "{path} holds a file set of seed {existing}, not {requested}; use another directory or run \
         plimsoll clean on it"
    )]
    OtherSeed {
        /// The directory.
        path: PathBuf,
        /// Seed of the set it holds.
        existing: u64,
        /// Requested seed.
        requested: u64,
    },
    /// Too little room; nothing was written.
    #[error(
        "{path} has {free} free, the file set needs {needed} more; free some or use another disk"
    )]
    NoSpace {
        /// The directory.
        path: PathBuf,
        /// Free bytes.
        free: Bytes,
        /// Bytes to be written, with some to spare.
        needed: Bytes,
    },
    /// More directories than a path can name.
    #[error("{0} directories are more than {DIRECTORIES_MAX}; lower the load or the scale")]
    TooMany(u32),
    /// The operating system refused.
    #[error("cannot {doing} {path}: {source}; check the path, its owner and the disk")]
    Io {
        /// What was tried.
        doing: &'static str,
        /// On what.
        path: PathBuf,
        /// The answer.
        source: io::Error,
    },
    /// The caller's progress function requested a stop; the marker lists what is complete.
    #[error("stopped; {0} holds what was complete, run plimsoll prepare again to go on")]
    Stopped(PathBuf),
}

/// How far the preparation is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Directories complete.
    pub directories_done: u32,
    /// Directories in all.
    pub directories: u32,
    /// Bytes written so far; what was there already is not written again.
    pub written: Bytes,
    /// Bytes in all.
    pub total: Bytes,
}

/// Brings `set` into the directory `root`: writes what is missing, keeps what is there.
pub fn prepare(
    root: &Path,
    id: FileSetId,
    progress: &mut dyn FnMut(Progress) -> GoOn,
) -> Result<Prepared, PrepareError> {
    prepare_with(root, id, progress, free_bytes)
}

fn prepare_with(
    root: &Path,
    id: FileSetId,
    progress: &mut dyn FnMut(Progress) -> GoOn,
    free: impl Fn(&Path) -> io::Result<u64>,
) -> Result<Prepared, PrepareError> {
    if id.directories > DIRECTORIES_MAX {
        return Err(PrepareError::TooMany(id.directories));
    }
    fs::create_dir_all(root).map_err(io_error("create", root))?;
    let existing = existing_set(root)?;
    if let Some(existing) = existing.filter(|existing| existing.seed != id.seed) {
        let path = root.to_owned();
        return Err(PrepareError::OtherSeed { path, existing: existing.seed, requested: id.seed });
    }
    let complete = existing.map_or(0, |existing| existing.directories);
    let set = FileSet::new(id.seed, id.directories.max(complete));
    check_space(root, &set, free)?;
    if existing.is_none() {
        write_marker(root, FileSetId { directories: 0, ..id })?;
    }
    write_set(root, &set, complete, progress)
}

/// The description of the file set in `root`, when it carries one.
pub fn read_marker(root: &Path) -> Result<Option<FileSetId>, PrepareError> {
    let path = root.join(MARKER);
    match fs::read_to_string(&path) {
        Ok(text) => match FileSetMarker::parse(text.as_bytes()) {
            Ok(marker) => Ok(Some(marker.id())),
            Err(source) => Err(PrepareError::Marker { path, source }),
        },
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(io_error("read", &path)(e)),
    }
}

/// Removes the file set from `root`: its files, directories and marker, and `root` itself when
/// nothing else is in it. Returns the number of files removed.
pub fn clean(root: &Path) -> Result<u64, PrepareError> {
    let Some(_) = read_marker(root)? else { return Err(PrepareError::NotOurs(root.to_owned())) };
    let mut removed = 0;
    for entry in fs::read_dir(root).map_err(io_error("list", root))? {
        let entry = entry.map_err(io_error("list", root))?;
        let is_directory = entry.file_type().is_ok_and(|kind| kind.is_dir());
        if let Some(directory) = directory_number(&entry.file_name()).filter(|_| is_directory) {
            removed += clean_directory(root, directory)?;
        }
    }
    // The marker last: a cleaning that was cut short can be done again.
    let marker = root.join(MARKER);
    fs::remove_file(&marker).map_err(io_error("remove", &marker))?;
    remove_if_empty(root)?;
    Ok(removed)
}

fn clean_directory(root: &Path, directory: u32) -> Result<u64, PrepareError> {
    let mut removed = 0;
    for id in files_of_directory(directory) {
        let path = root.join(id.to_string());
        match fs::remove_file(&path) {
            Ok(()) => removed += 1,
            Err(e) if e.kind() == io::ErrorKind::NotFound => {}
            Err(e) => return Err(io_error("remove", &path)(e)),
        }
    }
    remove_if_empty(&root.join(directory_name(directory)))?;
    Ok(removed)
}

/// What somebody else put there stays.
fn remove_if_empty(path: &Path) -> Result<(), PrepareError> {
    match fs::remove_dir(path) {
        Err(e) if e.kind() != io::ErrorKind::DirectoryNotEmpty => Err(io_error("remove", path)(e)),
        _ => Ok(()),
    }
}

fn directory_name(directory: u32) -> String {
    format!("dir{directory:05}")
}

fn directory_number(name: &std::ffi::OsStr) -> Option<u32> {
    let number = name.to_str()?.strip_prefix("dir")?.parse().ok()?;
    (name == directory_name(number).as_str()).then_some(number)
}

/// The set that `root` holds; an error when it holds something else.
fn existing_set(root: &Path) -> Result<Option<FileSetId>, PrepareError> {
    if let Some(id) = read_marker(root)? {
        return Ok(Some(id));
    }
    let is_empty = fs::read_dir(root).map_err(io_error("list", root))?.next().is_none();
    if is_empty { Ok(None) } else { Err(PrepareError::Foreign(root.to_owned())) }
}

/// The highest load in ops/s whose file set, `scale` of the method's, fits into `free` bytes.
pub fn load_max(free: Bytes, scale: f64) -> f64 {
    let of_one: u64 =
        files_of_directory(0).map(|id| id.bytes().next_multiple_of(BLOCK_BYTES)).sum();
    let directories = free.0.saturating_sub(SPARE_BYTES) / of_one;
    ops_per_s_for(directories as f64 / scale)
}

/// Refuses before the first byte when the missing files would not fit.
fn check_space(
    root: &Path,
    set: &FileSet,
    free: impl Fn(&Path) -> io::Result<u64>,
) -> Result<(), PrepareError> {
    let mut missing = 0;
    for directory in 0..set.id().directories {
        let absent = !root.join(directory_name(directory)).exists();
        missing += files_of_directory(directory)
            .filter(|id| absent || !is_written(&root.join(id.to_string()), id.bytes()))
            .map(|id| id.bytes().next_multiple_of(BLOCK_BYTES))
            .sum::<u64>();
    }
    let free = free(root).map_err(io_error("read the free space of", root))?;
    if missing == 0 || free >= missing.saturating_add(SPARE_BYTES) {
        return Ok(());
    }
    let needed = Bytes(missing + SPARE_BYTES);
    Err(PrepareError::NoSpace { path: root.to_owned(), free: Bytes(free), needed })
}

/// Free for us where `path` lies.
pub fn free_bytes(path: &Path) -> io::Result<u64> {
    let facts = rustix::fs::statvfs(path)?;
    Ok(facts.f_bavail.saturating_mul(facts.f_frsize))
}

fn is_written(path: &Path, bytes: u64) -> bool {
    fs::metadata(path).is_ok_and(|facts| facts.is_file() && facts.len() == bytes)
}

fn write_set(
    root: &Path,
    set: &FileSet,
    complete: u32,
    progress: &mut dyn FnMut(Progress) -> GoOn,
) -> Result<Prepared, PrepareError> {
    let id = set.id();
    let mut prepared = Prepared { id, files_written: 0, written: Bytes(0) };
    for directory in 0..id.directories {
        write_directory(root, set, directory, &mut prepared)?;
        let done = directory + 1;
        let is_stop = progress(Progress {
            directories_done: done,
            directories: id.directories,
            written: prepared.written,
            total: Bytes(set.bytes()),
        }) == GoOn::No;
        let is_last = done == id.directories;
        if done > complete && (is_last || is_stop || done.is_multiple_of(MARKER_EVERY)) {
            write_marker(root, FileSetId { directories: done, ..id })?;
        }
        if is_stop && !is_last {
            return Err(PrepareError::Stopped(root.to_owned()));
        }
    }
    Ok(prepared)
}

fn write_directory(
    root: &Path,
    set: &FileSet,
    directory: u32,
    prepared: &mut Prepared,
) -> Result<(), PrepareError> {
    let path = root.join(directory_name(directory));
    fs::create_dir_all(&path).map_err(io_error("create", &path))?;
    for id in files_of_directory(directory) {
        let path = root.join(id.to_string());
        if is_written(&path, id.bytes()) {
            continue;
        }
        fs::write(&path, set.content(id)).map_err(io_error("write", &path))?;
        prepared.files_written += 1;
        prepared.written.0 += id.bytes();
    }
    Ok(())
}

/// Replaces the marker in one step, so that it is whole at any instant.
fn write_marker(root: &Path, id: FileSetId) -> Result<(), PrepareError> {
    let path = root.join(MARKER);
    let fresh = root.join(format!("{MARKER}.new"));
    fs::write(&fresh, FileSetMarker::new(id).to_json()).map_err(io_error("write", &fresh))?;
    fs::rename(&fresh, &path).map_err(io_error("write", &path))
}

fn io_error(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> PrepareError {
    let path = path.to_owned();
    move |source| PrepareError::Io { doing, path, source }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(root: &Path, seed: u64, directories: u32) -> Result<Prepared, PrepareError> {
        prepare(root, FileSetId { seed, directories }, &mut |_| GoOn::Yes)
    }

    #[test]
    fn a_file_set_is_written_reused_grown_and_removed() {
        let temp_dir = tempfile::tempdir().unwrap();
        let root = temp_dir.path().join("set");
        let first = write(&root, 7, 1).unwrap();
        assert_eq!((first.files_written, first.written), (36, Bytes(5_119_484)));
        assert_eq!(write(&root, 7, 1).unwrap().files_written, 0);
        assert_eq!(write(&root, 7, 2).unwrap().files_written, 36);
        let again = write(&root, 7, 1).unwrap();
        assert_eq!((again.files_written, again.id.directories), (0, 2));
        let set = FileSet::new(7, 2);
        for id in files_of_directory(1) {
            assert!(fs::read(root.join(id.to_string())).unwrap() == set.content(id), "{id}");
        }
        fs::write(root.join("dir00000/class0_1"), "short").unwrap();
        assert_eq!(write(&root, 7, 2).unwrap().files_written, 1);
        assert_eq!(clean(&root).unwrap(), 72);
        assert!(!root.exists());
    }

    #[test]
    fn only_our_own_directory_is_touched() {
        let temp_dir = tempfile::tempdir().unwrap();
        fs::write(temp_dir.path().join("letter.txt"), "dear").unwrap();
        assert!(matches!(write(temp_dir.path(), 1, 1), Err(PrepareError::Foreign(_))));
        assert!(matches!(clean(temp_dir.path()), Err(PrepareError::NotOurs(_))));
        let root = temp_dir.path().join("set");
        write(&root, 1, 1).unwrap();
        fs::write(root.join("dir00000/letter.txt"), "dear").unwrap();
        assert!(matches!(
            write(&root, 2, 1),
            Err(PrepareError::OtherSeed { existing: 1, requested: 2, .. })
        ));
        clean(&root).unwrap();
        assert_eq!(fs::read(root.join("dir00000/letter.txt")).unwrap(), b"dear");
        assert!(!root.join("dir00000/class0_1").exists());
    }

    #[test]
    fn the_highest_load_there_is_room_for_has_a_file_set_that_fits() {
        for (gib, scale) in [(1, 1.0), (1, 0.1), (40, 0.1)] {
            let free = Bytes(gib << 30);
            let most = load_max(free, scale);
            let bytes = |load: f64| {
                let directories = crate::fileset::directories_for(load, scale);
                u64::from(directories) * crate::fileset::directory_bytes()
            };
            assert!(bytes(most) + SPARE_BYTES <= free.0, "{most}");
            assert!(bytes(most * 1.1) > free.0 * 9 / 10, "{most}");
        }
        assert_eq!(load_max(Bytes(0), 1.0), 0.0);
    }

    #[test]
    fn too_little_room_is_refused_before_the_first_byte() {
        let temp_dir = tempfile::tempdir().unwrap();
        let id = FileSetId { seed: 1, directories: 100 };
        let refused = prepare_with(temp_dir.path(), id, &mut |_| GoOn::Yes, |_| Ok(500_000_000));
        let message = refused.unwrap_err().to_string();
        assert!(message.contains("477 MiB free"), "{message}");
        assert_eq!(fs::read_dir(temp_dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_stop_leaves_a_marker_that_says_what_is_complete() {
        let temp_dir = tempfile::tempdir().unwrap();
        let id = FileSetId { seed: 1, directories: 3 };
        let mut reported = Vec::new();
        let stopped = prepare(temp_dir.path(), id, &mut |p| {
            reported.push((p.directories_done, p.total));
            if p.directories_done == 2 { GoOn::No } else { GoOn::Yes }
        });
        assert!(matches!(stopped, Err(PrepareError::Stopped(_))));
        assert_eq!(reported, [(1, Bytes(15_358_452)), (2, Bytes(15_358_452))]);
        assert_eq!(read_marker(temp_dir.path()).unwrap().map(|id| id.directories), Some(2));
    }
}
