//! Where rows go: one writer per table.

use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use super::MonitorError;
use crate::sampler::{Sample, TABLES};

/// Name of each table, for an error, and its file, in the order of [`Sample::tables`].
const FILES: [(&str, &str); TABLES] = [
    ("host", "host.csv"),
    ("cpu", "cpus.csv"),
    ("disk", "disks.csv"),
    ("network", "network.csv"),
    ("process", "processes.csv"),
    ("cgroup", "cgroups.csv"),
    ("storage", "storage.csv"),
    ("socket", "sockets.csv"),
    ("server", "app-server.csv"),
    ("nfsd", "nfsd.csv"),
    ("model", "models.csv"),
    ("gpu", "gpus.csv"),
];
/// Tables that every host has; the others have a file only where there is a row for it.
const ALWAYS: usize = 5;

/// A writer of one table. It gets a header, unless it has one, and one `write` per sample.
pub struct Output {
    writer: Box<dyn Write + Send>,
    has_header: bool,
    /// Without rows it gets no header either.
    only_rows: bool,
}

impl Output {
    /// An empty file, or another writer instead.
    pub fn new(writer: impl Write + Send + 'static) -> Self {
        Self { writer: Box::new(writer), has_header: false, only_rows: false }
    }

    /// A file that has its header from before.
    pub fn continued(writer: impl Write + Send + 'static) -> Self {
        Self { writer: Box::new(writer), has_header: true, only_rows: false }
    }

    /// A file that is not there until there is a row for it; one that is there goes on.
    fn of_rows(path: &Path) -> io::Result<Self> {
        if path.exists() {
            return Self::append(path);
        }
        let writer = FileOfRows { path: path.to_owned(), file: None };
        Ok(Self { only_rows: true, ..Self::new(writer) })
    }

    /// Appends to a file, or makes it. A last line that a crash cut short is ended first, so that
    /// it spoils no new row.
    fn append(path: &Path) -> io::Result<Self> {
        let mut file = OpenOptions::new().create(true).append(true).read(true).open(path)?;
        let length = file.metadata()?.len();
        if length == 0 {
            return Ok(Self::new(file));
        }
        if !ends_with_newline(&file, length)? {
            file.write_all(b"\n")?;
        }
        Ok(Self::continued(file))
    }
}

/// A file that is made with its first row.
struct FileOfRows {
    path: PathBuf,
    file: Option<File>,
}

impl Write for FileOfRows {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.file {
            Some(file) => file.write(bytes),
            None => {
                let mut file = OpenOptions::new().create(true).append(true).open(&self.path)?;
                let written = file.write(bytes);
                self.file = Some(file);
                written
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.as_mut().map_or(Ok(()), File::flush)
    }
}

fn ends_with_newline(file: &File, length: u64) -> io::Result<bool> {
    let mut last = [0];
    file.read_exact_at(&mut last, length - 1)?;
    Ok(last == *b"\n")
}

impl fmt::Debug for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Output").field("has_header", &self.has_header).finish_non_exhaustive()
    }
}

/// Writers of the CSV files, in the order of [`Sample::tables`].
#[derive(Debug)]
pub struct Outputs([Output; TABLES]);

impl Outputs {
    /// Rows are thrown away; only the sums per load point remain.
    pub fn discard() -> Self {
        Self(std::array::from_fn(|_| Output::new(io::sink())))
    }

    /// Replaces the writer of one table, by its index in [`Sample::tables`].
    pub fn with(mut self, table: usize, output: Output) -> Self {
        self.0[table] = output;
        self
    }

    /// Files in a directory (a bundle's `monitors`), which is made if need be. Files that are there
    /// go on: a resumed run appends.
    pub fn in_directory(directory: &Path) -> Result<Self, MonitorError> {
        fs::create_dir_all(directory)
            .map_err(|source| MonitorError::Open { path: directory.to_owned(), source })?;
        let mut outputs = Self::discard();
        for (index, (_, file)) in FILES.into_iter().enumerate() {
            let path = directory.join(file);
            let output = match index < ALWAYS {
                true => Output::append(&path),
                false => Output::of_rows(&path),
            };
            outputs.0[index] =
                output.map_err(|source| MonitorError::Open { path: path.clone(), source })?;
        }
        Ok(outputs)
    }
}

/// Writes samples until a table cannot be written any more; the others go on.
pub(super) struct CsvWriters {
    /// In the order of [`Sample::tables`].
    outputs: [Option<Output>; TABLES],
    text: String,
    first_error: Option<MonitorError>,
}

impl CsvWriters {
    pub(super) fn new(outputs: Outputs) -> Self {
        Self { outputs: outputs.0.map(Some), text: String::new(), first_error: None }
    }

    /// The first sample has no rates: it only brings the headers.
    pub(super) fn write(&mut self, sample: &Sample, point: &str) {
        for (index, rows) in sample.tables().into_iter().enumerate() {
            let Some(output) = &mut self.outputs[index] else { continue };
            if output.only_rows && rows.rows().is_empty() {
                continue;
            }
            self.text.clear();
            if !output.has_header {
                output.has_header = true;
                self.text.push_str(&rows.table.header());
            }
            if sample.elapsed_ns > 0 {
                rows.write_csv(sample.at.unix_ns, point, &mut self.text);
            }
            if let Err(source) = output.writer.write_all(self.text.as_bytes()) {
                self.give_up(index, source);
            }
        }
    }

    /// Hands buffered rows on, so that a finished point's rows outlive a crash of this process.
    pub(super) fn flush(&mut self) {
        for index in 0..self.outputs.len() {
            let Some(output) = &mut self.outputs[index] else { continue };
            if let Err(source) = output.writer.flush() {
                self.give_up(index, source);
            }
        }
    }

    fn give_up(&mut self, index: usize, source: io::Error) {
        self.outputs[index] = None;
        self.first_error.get_or_insert(MonitorError::Write { table: FILES[index].0, source });
    }

    pub(super) fn into_error(self) -> Option<MonitorError> {
        self.first_error
    }
}
