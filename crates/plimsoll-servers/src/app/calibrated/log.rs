//! What happened to each request, kept until the end: writing while requests are answered would be
//! in their way.

use std::io::{self, BufWriter, Write};
use std::path::Path;

use plimsoll_model::calibrated::CalibratedSpec;

/// Most requests that are kept, 24 bytes each; those after them are counted.
const ROWS_MAX: usize = 4_000_000;
/// Rows that are made room for together: a list that grew as a whole would be copied, for
/// milliseconds.
const BLOCK_ROWS: usize = 16_384;
/// Titles of the columns.
pub const LOG_TITLES: &str = "arrival_ns,departure_ns,sent_ns";
/// First words of the line that names the stall.
pub const LOG_STALL: &str = "# stall_ns=";

/// One request: when its last byte was read, when its reply was due, when it had been sent.
/// CLOCK_MONOTONIC, nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// Last byte read.
    pub arrival_ns: u64,
    /// Computed.
    pub departure_ns: u64,
    /// Handed to the kernel.
    pub sent_ns: u64,
}

/// The requests so far.
#[derive(Debug, Default)]
pub(super) struct Log {
    blocks: Vec<Vec<Row>>,
    left_out: u64,
}

impl Log {
    pub(super) fn add(&mut self, row: Row) {
        if self.blocks.len() * BLOCK_ROWS >= ROWS_MAX {
            self.left_out += 1;
            return;
        }
        if self.blocks.last().is_none_or(|block| block.len() == BLOCK_ROWS) {
            self.blocks.push(Vec::with_capacity(BLOCK_ROWS));
        }
        if let Some(block) = self.blocks.last_mut() {
            block.push(row);
        }
    }

    /// Lines of comment, titles, a line a request, in the order in which replies left.
    pub(super) fn write(
        &self,
        path: &Path,
        spec: &CalibratedSpec,
        stall: Option<(u64, u64)>,
    ) -> io::Result<()> {
        let mut out = BufWriter::new(std::fs::File::create(path)?);
        writeln!(out, "# {spec}; CLOCK_MONOTONIC")?;
        if let Some((from, until)) = stall {
            writeln!(out, "{LOG_STALL}{from}..{until}")?;
        }
        if self.left_out > 0 {
            writeln!(out, "# the first {ROWS_MAX} requests; {} are left out", self.left_out)?;
        }
        writeln!(out, "{LOG_TITLES}")?;
        for Row { arrival_ns, departure_ns, sent_ns } in self.blocks.iter().flatten() {
            writeln!(out, "{arrival_ns},{departure_ns},{sent_ns}")?;
        }
        out.flush()
    }
}
