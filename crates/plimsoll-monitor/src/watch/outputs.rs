//! Where rows go: one writer per table.

use std::fmt;
use std::io::{self, Write};

use super::MonitorError;
use crate::sampler::Sample;

/// Writers of the CSV files. Each gets a header and then one `write` per sample.
pub struct Outputs {
    /// `monitors/host.csv`: one row a sample.
    pub host: Box<dyn Write + Send>,
    /// `monitors/cpus.csv`: one row a sample and processor.
    pub cpus: Box<dyn Write + Send>,
    /// `monitors/disks.csv`: one row a sample and disk.
    pub disks: Box<dyn Write + Send>,
    /// `monitors/network.csv`: one row a sample and interface.
    pub network: Box<dyn Write + Send>,
    /// `monitors/processes.csv`: one row a sample and watched process.
    pub processes: Box<dyn Write + Send>,
}

impl Outputs {
    /// Rows are thrown away; only the sums per load point remain.
    pub fn discard() -> Self {
        Self {
            host: Box::new(io::sink()),
            cpus: Box::new(io::sink()),
            disks: Box::new(io::sink()),
            network: Box::new(io::sink()),
            processes: Box::new(io::sink()),
        }
    }
}

impl fmt::Debug for Outputs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Outputs").finish_non_exhaustive()
    }
}

/// What an error calls the tables, in the order of [`Sample::tables`].
const TABLES: [&str; 5] = ["host", "cpu", "disk", "network", "process"];

/// Writes samples until a table cannot be written any more; the others go on.
pub(super) struct CsvWriters {
    /// In the order of [`Sample::tables`].
    writers: [Option<Box<dyn Write + Send>>; 5],
    headers_written: bool,
    text: String,
    first_error: Option<MonitorError>,
}

impl CsvWriters {
    pub(super) fn new(outputs: Outputs) -> Self {
        let Outputs { host, cpus, disks, network, processes } = outputs;
        Self {
            writers: [host, cpus, disks, network, processes].map(Some),
            headers_written: false,
            text: String::new(),
            first_error: None,
        }
    }

    /// The first sample has no rates: it only brings the headers.
    pub(super) fn write(&mut self, sample: &Sample, point: &str) {
        for (index, rows) in sample.tables().into_iter().enumerate() {
            self.text.clear();
            if !self.headers_written {
                self.text.push_str(&rows.table.header());
            }
            if sample.elapsed_ns > 0 {
                rows.write_csv(sample.at.unix_ns, point, &mut self.text);
            }
            self.put(index, TABLES[index], |writer, text| writer.write_all(text.as_bytes()));
        }
        self.headers_written = true;
    }

    /// Hands buffered rows on, so that a finished point's rows outlive a crash of this process.
    pub(super) fn flush(&mut self) {
        for (index, table) in TABLES.into_iter().enumerate() {
            self.put(index, table, |writer, _| writer.flush());
        }
    }

    fn put(
        &mut self,
        index: usize,
        table: &'static str,
        write: impl Fn(&mut dyn Write, &str) -> io::Result<()>,
    ) {
        let Some(writer) = &mut self.writers[index] else { return };
        if let Err(source) = write(writer, &self.text) {
            self.writers[index] = None;
            self.first_error.get_or_insert(MonitorError::Write { table, source });
        }
    }

    pub(super) fn into_error(self) -> Option<MonitorError> {
        self.first_error
    }
}
