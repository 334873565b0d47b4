//! What happened to each request, kept until the end: writing while requests are answered would
//! delay them.

use std::collections::HashMap;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use plimsoll_model::calibrated::CalibratedSpec;

use crate::ServerError;

/// Most requests that are kept, 32 bytes each; those after them are counted.
pub const ROWS_MAX: usize = 4_000_000;
/// Rows that are made room for together: a list that grew as a whole would be copied, for
/// milliseconds.
const BLOCK_ROWS: usize = 16_384;
/// Titles of the columns.
pub const LOG_TITLES: &str = "arrival_ns,departure_ns,sent_ns,key";
/// Start of the line that names the stall.
pub const LOG_STALL: &str = "# stall_ns=";

/// Makes the file of a log, if there is one, so that an unwritable one fails early.
pub fn create(path: Option<&Path>) -> Result<(), ServerError> {
    let Some(path) = path else { return Ok(()) };
    std::fs::File::create(path)
        .map(drop)
        .map_err(|source| ServerError::Log { path: path.to_owned(), source })
}

/// One request: when its last byte was read, when its reply was due, when it had been sent.
/// CLOCK_MONOTONIC, nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// Last byte read.
    pub arrival_ns: u64,
    /// Computed.
    pub completion_ns: u64,
    /// Handed to the kernel.
    pub sent_ns: u64,
    /// A value in the request that is unique in its load point: the seed of a transaction, which
    /// follows from its index in the schedule. Other protocols have none.
    pub key: Option<u32>,
}

/// The requests so far, a row each.
#[derive(Debug)]
pub struct Log<R = Row> {
    blocks: Vec<Vec<R>>,
    rows: usize,
    rows_max: usize,
    left_out: u64,
}

impl<R> Log<R> {
    /// Of the first `rows_max` requests.
    pub const fn new(rows_max: usize) -> Self {
        Self { blocks: Vec::new(), rows: 0, rows_max, left_out: 0 }
    }

    /// Keeps a request, or counts it as left out.
    pub fn add(&mut self, row: R) {
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

    /// Those that are kept.
    pub fn rows(&self) -> impl Iterator<Item = &R> {
        self.blocks.iter().flatten()
    }

    /// A line of comment, if some are left out.
    pub fn write_left_out(&self, out: &mut impl Write) -> io::Result<()> {
        let Self { rows, left_out, .. } = self;
        match left_out {
            0 => Ok(()),
            _ => writeln!(out, "# the first {rows} requests; {left_out} are left out"),
        }
    }
}

impl Log {
    /// Lines of comment, titles, a line a request, in the order in which replies left.
    pub fn write(
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
        self.write_left_out(&mut out)?;
        writeln!(out, "{LOG_TITLES}")?;
        for Row { arrival_ns, completion_ns, sent_ns, key } in self.rows() {
            match key {
                Some(key) => writeln!(out, "{arrival_ns},{completion_ns},{sent_ns},{key}")?,
                None => writeln!(out, "{arrival_ns},{completion_ns},{sent_ns},")?,
            }
        }
        out.flush()
    }
}

/// A parsed log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Logged {
    /// By arrival.
    pub rows: Vec<Row>,
    /// From and until when nothing was served.
    pub stall_ns: Option<(u64, u64)>,
}

impl Logged {
    /// Parses a log; `None` for text that is no log, or that is truncated.
    pub fn parse(text: &str) -> Option<Self> {
        let mut log = Self::default();
        let mut lines = text.lines();
        for line in lines.by_ref() {
            if let Some(span) = line.strip_prefix(LOG_STALL) {
                let (from, until) = span.split_once("..")?;
                log.stall_ns = Some((from.parse().ok()?, until.parse().ok()?));
            } else if line == LOG_TITLES {
                break;
            } else if !line.starts_with('#') {
                return None;
            }
        }
        for line in lines {
            let mut fields = line.split(',');
            let mut time = || fields.next()?.parse().ok();
            let (arrival_ns, completion_ns, sent_ns) = (time()?, time()?, time()?);
            let key = match fields.next()? {
                "" => None,
                key => Some(key.parse().ok()?),
            };
            log.rows.push(Row { arrival_ns, completion_ns, sent_ns, key });
        }
        log.rows.sort_unstable_by_key(|row| row.arrival_ns);
        text.contains(LOG_TITLES).then_some(log)
    }
}

/// An op as the schedule has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scheduled {
    /// When it was due, on the clock of the log.
    pub due_ns: u64,
    /// What the log calls it, where it has names.
    pub key: Option<u32>,
}

/// Times from due to the reply handed to the kernel, in nanoseconds, one for each of `schedule`.
pub fn truths_ns(rows: &[Row], schedule: &[Scheduled]) -> Option<Vec<u64>> {
    let rows = joined(rows, schedule)?.into_iter().zip(schedule);
    Some(rows.map(|(row, op)| row.sent_ns.saturating_sub(op.due_ns)).collect())
}

/// The log's row of each op of `schedule`. By key if the ops have one: ops that were sent late
/// together arrive in any order. Else by order: one client sends one op after the other, or several
/// send indistinguishable ones. `None` if the log lacks such an op, or has another number of them.
pub fn joined<'a>(rows: &'a [Row], schedule: &[Scheduled]) -> Option<Vec<&'a Row>> {
    let by_key: HashMap<u32, &Row> =
        rows.iter().rev().filter_map(|row| Some((row.key?, row))).collect();
    let row = |(index, op): (usize, &Scheduled)| match op.key {
        Some(key) => by_key.get(&key).copied(),
        None => rows.get(index),
    };
    schedule.iter().enumerate().map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ops_are_joined_with_their_due_times_by_key_or_by_order() {
        let row = |arrival_ns, sent_ns, key| Row { arrival_ns, completion_ns: 0, sent_ns, key };
        let op = |due_ns, key| Scheduled { due_ns, key };
        // Both were sent late, and arrived in reverse order.
        let keyed = [row(10, 30, Some(8)), row(11, 25, Some(7))];
        let schedule = [op(1, Some(7)), op(2, Some(8))];
        assert_eq!(truths_ns(&keyed, &schedule), Some(vec![24, 28]));
        assert_eq!(truths_ns(&keyed, &[op(1, None), op(2, None)]), Some(vec![29, 23]));
        assert_eq!(truths_ns(&keyed, &[op(1, Some(9))]), None, "never arrived");
        assert_eq!(truths_ns(&keyed[..1], &[op(1, None), op(2, None)]), None);
    }

    #[test]
    fn a_log_reads_back() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log.csv");
        let mut log = Log::new(9);
        let late = Row { arrival_ns: 9, completion_ns: 10, sent_ns: 11, key: None };
        let early = Row { arrival_ns: 5, completion_ns: 20, sent_ns: 21, key: Some(u32::MAX) };
        log.add(late);
        log.add(early);
        log.write(&path, &"service=const:1ms".parse().unwrap(), Some((3, 4))).unwrap();
        let read = Logged::parse(&std::fs::read_to_string(&path).unwrap());
        assert_eq!(read, Some(Logged { rows: vec![early, late], stall_ns: Some((3, 4)) }));
    }

    #[test]
    fn the_log_has_as_many_requests_as_it_says() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log.csv");
        let mut log = Log::new(BLOCK_ROWS + 2);
        for arrival_ns in 0..BLOCK_ROWS as u64 + 5 {
            log.add(Row { arrival_ns, completion_ns: 0, sent_ns: 0, key: None });
        }
        log.write(&path, &"service=const:1ms".parse().unwrap(), None).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.contains("# the first 16386 requests; 3 are left out\n"));
        assert_eq!(text.lines().filter(|line| line.ends_with(",0,0,")).count(), 16_386);
    }
}
