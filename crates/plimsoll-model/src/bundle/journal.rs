//! `journal.jsonl`: one record a line, in order of time, never rewritten. An experiment keeps a
//! journal of the same kind, with records of its own.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::Write as _;
use std::marker::PhantomData;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::BundleError;
use crate::event::{JOURNAL_FORMAT, JournalRecord, PointRecord, RunStarted};

/// Appends records. The file is locked as long as this lives: two processes that write one journal
/// would cut off each other's records.
#[derive(Debug)]
pub struct JournalWriter<R = JournalRecord> {
    file: File,
    path: PathBuf,
    records: PhantomData<fn(&R)>,
}

impl<R: Serialize> JournalWriter<R> {
    /// Starts a journal; the file must not exist.
    pub fn create(path: &Path) -> Result<Self, BundleError> {
        let file = OpenOptions::new().write(true).create_new(true).open(path);
        Self::from_open(path, file)?.locked()
    }

    /// Goes on with a journal after its last whole record; a torn end is cut off. An error when
    /// another process writes it, or has written it since `read` was read.
    pub fn reopen(path: &Path, read: &Records<R>) -> Result<Self, BundleError> {
        let file = OpenOptions::new().append(true).open(path);
        let writer = Self::from_open(path, file)?.locked()?;
        let length = writer
            .file
            .metadata()
            .map_err(|e| BundleError::storage(path, "ask for its length", e))?
            .len();
        if length != read.whole_bytes + read.torn_bytes {
            return Err(BundleError::InUse { path: path.to_owned() });
        }
        writer
            .file
            .set_len(read.whole_bytes)
            .map_err(|e| BundleError::storage(path, "cut off a torn record", e))?;
        Ok(writer)
    }

    fn from_open(path: &Path, file: std::io::Result<File>) -> Result<Self, BundleError> {
        let file = file.map_err(|e| BundleError::storage(path, "open it for writing", e))?;
        Ok(Self { file, path: path.to_owned(), records: PhantomData })
    }

    fn locked(self) -> Result<Self, BundleError> {
        match self.file.try_lock() {
            // A file system without locks must not keep anybody from measuring.
            Ok(()) | Err(TryLockError::Error(_)) => Ok(self),
            Err(TryLockError::WouldBlock) => Err(BundleError::InUse { path: self.path }),
        }
    }

    /// A journal on a device whose length cannot be set, such as `/dev/full`.
    #[cfg(test)]
    pub(super) fn open_device_for_test(path: &Path) -> Result<Self, BundleError> {
        Self::from_open(path, OpenOptions::new().write(true).open(path))
    }

    /// Appends a record without waiting for the disk.
    pub fn append(&mut self, record: &R) -> Result<(), BundleError> {
        let mut line = serde_json::to_vec(record)
            .expect("a record holds only what JSON can say: finite numbers, string keys");
        line.push(b'\n');
        self.file.write_all(&line).map_err(|e| BundleError::storage(&self.path, "append to it", e))
    }

    /// Appends a record and waits until it, and all before it, are on the disk.
    pub fn append_durably(&mut self, record: &R) -> Result<(), BundleError> {
        self.append(record)?;
        self.file.sync_data().map_err(|e| BundleError::storage(&self.path, "synchronise it", e))
    }
}

/// The records of a journal read back.
#[derive(Clone, Debug, PartialEq)]
pub struct Records<R = JournalRecord> {
    /// Every whole record.
    pub records: Vec<R>,
    /// Length of the file up to the end of the last whole record.
    pub whole_bytes: u64,
    /// Bytes after it: a record that was being written when the run was killed.
    pub torn_bytes: u64,
}

/// The journal of a run.
pub type Journal = Records<JournalRecord>;

impl<R> Default for Records<R> {
    fn default() -> Self {
        Self { records: Vec::new(), whole_bytes: 0, torn_bytes: 0 }
    }
}

impl<R: DeserializeOwned> Records<R> {
    /// Reads a journal of such records; a torn last record is left out, a bad one before it is an
    /// error.
    pub fn read_all(path: &Path) -> Result<Self, BundleError> {
        let bytes = fs::read(path).map_err(|e| BundleError::storage(path, "read it", e))?;
        let mut journal = Self::default();
        let mut at = 0;
        let lines = bytes.split_inclusive(|b| *b == b'\n');
        for (index, line) in lines.enumerate() {
            let last = at + line.len() == bytes.len();
            match serde_json::from_slice(line) {
                Ok(record) if line.ends_with(b"\n") => journal.records.push(record),
                _ if last => break,
                Ok(_) => unreachable!("only the last line can lack its end"),
                Err(e) => {
                    return Err(BundleError::Malformed {
                        path: path.to_owned(),
                        line: index + 1,
                        message: e.to_string(),
                    });
                }
            }
            at += line.len();
        }
        journal.whole_bytes = at as u64;
        journal.torn_bytes = (bytes.len() - at) as u64;
        Ok(journal)
    }
}

impl Journal {
    /// Reads the journal of a run; a torn last record is left out, a bad one before it, or one of
    /// another format, is an error.
    pub fn read(path: &Path) -> Result<Self, BundleError> {
        let journal = Self::read_all(path)?;
        match journal.started() {
            Some(started) if started.format != JOURNAL_FORMAT => Err(BundleError::Format {
                path: path.to_owned(),
                format: started.format,
                supported: JOURNAL_FORMAT,
            }),
            _ => Ok(journal),
        }
    }

    /// The first record, when it was written.
    pub fn started(&self) -> Option<&RunStarted> {
        match self.records.first() {
            Some(JournalRecord::RunStarted(started)) => Some(started),
            _ => None,
        }
    }

    /// The run came to its end.
    pub fn is_finished(&self) -> bool {
        matches!(self.records.last(), Some(JournalRecord::RunFinished { .. }))
    }

    /// Finished load points in the order of execution.
    pub fn points(&self) -> impl Iterator<Item = &PointRecord> {
        self.records.iter().filter_map(|record| match record {
            JournalRecord::PointFinished(point) => Some(&**point),
            _ => None,
        })
    }

    /// The re-verified peak, when a search found it.
    pub fn peak(&self) -> Option<f64> {
        self.records.iter().find_map(|record| match record {
            JournalRecord::PeakFound { peak, .. } => Some(*peak),
            _ => None,
        })
    }
}
