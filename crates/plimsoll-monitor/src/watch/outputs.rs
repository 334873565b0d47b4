//! Where rows go: one writer per table.

use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use super::MonitorError;
use crate::sampler::Sample;

/// What an error calls the tables, in the order of [`Sample::tables`].
const TABLES: [&str; 6] = ["host", "cpu", "disk", "network", "process", "server"];

/// A writer of one table. It gets a header, unless it has one, and one `write` per sample.
pub struct Output {
    writer: Box<dyn Write + Send>,
    has_header: bool,
    /// Without rows it gets no header either.
    only_rows: bool,
}

impl Output {
    /// An empty file, or whatever takes its place.
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

/// Writers of the CSV files.
#[derive(Debug)]
pub struct Outputs {
    /// `host.csv`: one row a sample.
    pub host: Output,
    /// `cpus.csv`: one row a sample and processor.
    pub cpus: Output,
    /// `disks.csv`: one row a sample and disk.
    pub disks: Output,
    /// `network.csv`: one row a sample and interface.
    pub network: Output,
    /// `processes.csv`: one row a sample and watched process.
    pub processes: Output,
    /// `app-server.csv`: one row a sample and server that answers; no file where none does.
    pub servers: Output,
}

impl Outputs {
    /// Rows are thrown away; only the sums per load point remain.
    pub fn discard() -> Self {
        let sink = || Output::new(io::sink());
        Self {
            host: sink(),
            cpus: sink(),
            disks: sink(),
            network: sink(),
            processes: sink(),
            servers: sink(),
        }
    }

    /// Files of the names above in a directory (a bundle's `monitors`), which is made if need be.
    /// Files that are there go on: a resumed run appends.
    pub fn in_directory(directory: &Path) -> Result<Self, MonitorError> {
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |source| MonitorError::Open { path, source }
        };
        fs::create_dir_all(directory).map_err(failed(directory))?;
        let file = |name: &str| {
            let path: PathBuf = directory.join(name);
            Output::append(&path).map_err(failed(&path))
        };
        Ok(Self {
            host: file("host.csv")?,
            cpus: file("cpus.csv")?,
            disks: file("disks.csv")?,
            network: file("network.csv")?,
            processes: file("processes.csv")?,
            servers: {
                let path = directory.join("app-server.csv");
                Output::of_rows(&path).map_err(failed(&path))?
            },
        })
    }
}

/// Writes samples until a table cannot be written any more; the others go on.
pub(super) struct CsvWriters {
    /// In the order of [`Sample::tables`].
    outputs: [Option<Output>; 6],
    text: String,
    first_error: Option<MonitorError>,
}

impl CsvWriters {
    pub(super) fn new(outputs: Outputs) -> Self {
        let Outputs { host, cpus, disks, network, processes, servers } = outputs;
        Self {
            outputs: [host, cpus, disks, network, processes, servers].map(Some),
            text: String::new(),
            first_error: None,
        }
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
        self.first_error.get_or_insert(MonitorError::Write { table: TABLES[index], source });
    }

    pub(super) fn into_error(self) -> Option<MonitorError> {
        self.first_error
    }
}
