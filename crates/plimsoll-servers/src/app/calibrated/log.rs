//! What happened to each request, kept until the end: writing while requests are answered would be
//! in their way.

use std::io::{self, BufWriter, Write};
use std::path::Path;

use plimsoll_model::calibrated::CalibratedSpec;

/// Most requests that are kept, 32 bytes each; those after them are counted.
pub(crate) const ROWS_MAX: usize = 4_000_000;
/// Rows that are made room for together: a list that grew as a whole would be copied, for
/// milliseconds.
const BLOCK_ROWS: usize = 16_384;
/// Titles of the columns.
pub const LOG_TITLES: &str = "arrival_ns,departure_ns,sent_ns,key";
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
    /// What the request itself carries that no other of its load point does: the seed of a
    /// transaction, which follows from its place in the schedule. Other protocols have none.
    pub key: Option<u32>,
}

/// The requests so far.
#[derive(Debug)]
pub(crate) struct Log {
    blocks: Vec<Vec<Row>>,
    rows: usize,
    rows_max: usize,
    left_out: u64,
}

impl Log {
    /// Of the first `rows_max` requests.
    pub(crate) const fn new(rows_max: usize) -> Self {
        Self { blocks: Vec::new(), rows: 0, rows_max, left_out: 0 }
    }

    pub(crate) fn add(&mut self, row: Row) {
        if self.rows == self.rows_max {
            self.left_out += 1;
            return;
        }
        self.rows += 1;
        if self.blocks.last().is_none_or(|block| block.len() == BLOCK_ROWS) {
            self.blocks.push(Vec::with_capacity(BLOCK_ROWS));
        }
        if let Some(block) = self.blocks.last_mut() {
            block.push(row);
        }
    }

    /// Lines of comment, titles, a line a request, in the order in which replies left.
    pub(crate) fn write(
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
            let Self { rows, left_out, .. } = self;
            writeln!(out, "# the first {rows} requests; {left_out} are left out")?;
        }
        writeln!(out, "{LOG_TITLES}")?;
        for Row { arrival_ns, departure_ns, sent_ns, key } in self.blocks.iter().flatten() {
            match key {
                Some(key) => writeln!(out, "{arrival_ns},{departure_ns},{sent_ns},{key}")?,
                None => writeln!(out, "{arrival_ns},{departure_ns},{sent_ns},")?,
            }
        }
        out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_has_as_many_requests_as_it_says() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("log.csv");
        let mut log = Log::new(BLOCK_ROWS + 2);
        for arrival_ns in 0..BLOCK_ROWS as u64 + 5 {
            log.add(Row { arrival_ns, departure_ns: 0, sent_ns: 0, key: None });
        }
        log.write(&path, &"service=const:1ms".parse().unwrap(), None).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.contains("# the first 16386 requests; 3 are left out\n"));
        assert_eq!(text.lines().filter(|line| line.ends_with(",0,0,")).count(), 16_386);
    }
}
