//! Writes a bundle while a run goes on, and files that survive a crash whole or not at all.

use std::fs::{self, File};
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};

use super::{
    BundleError, BundleReader, DISCLOSURE_FILE, INTERVALS_DIR, IntervalLog, IntervalSlice,
    JOURNAL_FILE, JournalWriter, MANIFEST_FILE, MONITORS_DIR, PARTIAL_ENDING, PROFILE_DIR,
    REPORT_FILE, RESULT_FILE, SIGNATURE_FILE, SUITE_FILE,
};
use crate::assignment::PointId;
use crate::disclosure::Disclosure;
use crate::event::{JournalRecord, PointRecord};
use crate::outcome::OpNames;
use crate::suite::Suite;

/// The bundle of a run in progress.
#[derive(Debug)]
pub struct BundleWriter {
    dir: PathBuf,
    journal: JournalWriter,
}

impl BundleWriter {
    /// Makes the directory (which must be empty or absent) with its suite; the journal is empty.
    pub fn create(dir: &Path, suite: &Suite) -> Result<Self, BundleError> {
        Self::refuse_occupied(dir)?;
        for inner in [INTERVALS_DIR, MONITORS_DIR] {
            let path = dir.join(inner);
            fs::create_dir_all(&path).map_err(|e| BundleError::storage(&path, "create it", e))?;
        }
        write_durably(&dir.join(SUITE_FILE), suite.to_toml().as_bytes())?;
        let journal = JournalWriter::create(&dir.join(JOURNAL_FILE))?;
        sync_dir(dir)?;
        Ok(Self { dir: dir.to_owned(), journal })
    }

    /// An error when there is something at `dir` that a new run would mix with.
    pub fn refuse_occupied(dir: &Path) -> Result<(), BundleError> {
        match fs::read_dir(dir) {
            Ok(mut entries) => match entries.next() {
                None => Ok(()),
                Some(_) => Err(BundleError::Occupied { path: dir.to_owned() }),
            },
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(()),
            Err(e) => Err(BundleError::storage(dir, "use it as the output directory", e)),
        }
    }

    /// Continues an interrupted run; half-written content is cut off or removed. An error when
    /// another process writes the bundle.
    pub fn resume(reader: &BundleReader) -> Result<Self, BundleError> {
        let dir = reader.dir().to_owned();
        let journal = JournalWriter::reopen(&dir.join(JOURNAL_FILE), reader.journal())?;
        for inner in ["", INTERVALS_DIR, MONITORS_DIR] {
            remove_partial_files(&dir.join(inner))?;
        }
        Ok(Self { dir, journal })
    }

    /// Removes what was derived from the run so far: it will not be true any more.
    pub fn forget_derived(&self) -> Result<(), BundleError> {
        // The manifest first: one that lists files which are gone would speak of damage.
        for name in [SIGNATURE_FILE, MANIFEST_FILE, REPORT_FILE, RESULT_FILE] {
            let path = self.dir.join(name);
            match fs::remove_file(&path) {
                Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
                    return Err(BundleError::storage(&path, "remove what was derived", e));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Where it is.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Writes `disclosure.json`, again if need be.
    pub fn write_disclosure(&self, disclosure: &Disclosure) -> Result<(), BundleError> {
        let mut text = serde_json::to_vec_pretty(disclosure).expect("a disclosure is plain JSON");
        text.push(b'\n');
        write_durably(&self.dir.join(DISCLOSURE_FILE), &text)
    }

    /// Appends a record; it is on the disk at the latest with the next durable one.
    pub fn record(&mut self, record: &JournalRecord) -> Result<(), BundleError> {
        self.journal.append(record)
    }

    /// Appends a record and waits until it is on the disk.
    pub fn record_durably(&mut self, record: &JournalRecord) -> Result<(), BundleError> {
        self.journal.append_durably(record)
    }

    /// Writes the folded stacks of a profile; their path within the bundle.
    pub fn write_profile(&self, stem: &str, stacks: &str) -> Result<String, BundleError> {
        let directory = self.dir.join(PROFILE_DIR);
        fs::create_dir_all(&directory)
            .map_err(|e| BundleError::storage(&directory, "create it", e))?;
        let file = format!("{PROFILE_DIR}/{stem}.folded");
        write_durably(&self.dir.join(&file), stacks.as_bytes())?;
        Ok(file)
    }

    /// Begins the interval log of a load point.
    pub fn begin_point(&self, point: PointId, op_names: &OpNames) -> Result<PointLog, BundleError> {
        let path = self.dir.join(INTERVALS_DIR).join(format!("{}.hlog", point.stem()));
        let partial = partial_path(&path);
        let file =
            File::create(&partial).map_err(|e| BundleError::storage(&partial, "create it", e))?;
        let log = IntervalLog::begin(BufWriter::new(file), op_names)
            .map_err(|e| BundleError::storage(&partial, "write it", e))?;
        Ok(PointLog { log, path, partial: PartialFile(partial) })
    }

    /// Makes a load point count: its interval log first, then its record, both on the disk.
    pub fn finish_point(&mut self, log: PointLog, record: PointRecord) -> Result<(), BundleError> {
        log.commit()?;
        self.journal.append_durably(&JournalRecord::PointFinished(Box::new(record)))
    }
}

/// The interval log of the load point in progress.
pub struct PointLog {
    log: IntervalLog<BufWriter<File>>,
    path: PathBuf,
    partial: PartialFile,
}

/// Removed when dropped, unless it has got its name: an interrupted run leaves no half of a log.
struct PartialFile(PathBuf);

impl Drop for PartialFile {
    fn drop(&mut self) {
        // Without it there is nothing to remove; `resume` removes what a crash leaves.
        let _ = fs::remove_file(&self.0);
    }
}

impl PointLog {
    /// Adds one second over all workers.
    pub fn write(&mut self, slice: &IntervalSlice) -> Result<(), BundleError> {
        self.log.write(slice).map_err(|e| BundleError::storage(&self.partial.0, "write it", e))
    }

    fn commit(self) -> Result<(), BundleError> {
        let Self { log, path, partial } = self;
        let writing = |e| BundleError::storage(&partial.0, "write it", e);
        let file =
            log.finish().map_err(writing)?.into_inner().map_err(|e| writing(e.into_error()))?;
        commit_file(&file, &partial.0, &path)
    }
}

fn remove_partial_files(dir: &Path) -> Result<(), BundleError> {
    let Ok(entries) = fs::read_dir(dir) else { return Ok(()) };
    for path in entries.flatten().map(|entry| entry.path()) {
        if path.extension().is_some_and(|ending| ending == PARTIAL_ENDING) {
            fs::remove_file(&path)
                .map_err(|e| BundleError::storage(&path, "remove the leftover", e))?;
        }
    }
    Ok(())
}

/// Writes `bytes` to `path`: under another name first, synchronised, renamed, and the directory
/// synchronised. A reader sees the old file or the whole new one; an error leaves nothing behind.
pub fn write_durably(path: &Path, bytes: &[u8]) -> Result<(), BundleError> {
    let partial = partial_path(path);
    let written =
        write_partial(&partial, bytes).and_then(|file| commit_file(&file, &partial, path));
    if written.is_err() {
        // Half a file is of no use, and a full disk needs the space.
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
fn commit_file(file: &File, partial: &Path, path: &Path) -> Result<(), BundleError> {
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
fn sync_dir(dir: &Path) -> Result<(), BundleError> {
    File::open(dir)
        .and_then(|d| d.sync_all())
        .map_err(|e| BundleError::storage(dir, "synchronise it", e))
}

/// Name a file has until it is complete.
fn partial_path(path: &Path) -> PathBuf {
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
        let temp_dir = tempfile::tempdir().unwrap();
        let taken = temp_dir.path().join("taken");
        fs::create_dir(&taken).unwrap();
        assert!(write_durably(&taken, b"x").is_err());
        assert_eq!(fs::read_dir(temp_dir.path()).unwrap().count(), 1);
    }
}
