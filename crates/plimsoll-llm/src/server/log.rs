//! What happened to each request, and how late chunks were: for checking a client against it.

use std::io::{self, BufWriter, Write};
use std::path::Path;

use plimsoll_model::calibrated::CalibratedSpec;
use plimsoll_model::event::{Times, new_times};
use plimsoll_servers::clock::{monotonic_ns, since_1970};
use plimsoll_servers::log;

/// Most requests that are kept; those after them are counted.
const ROWS_MAX: usize = 2_000_000;
/// Titles of the columns.
pub(super) const TITLES: &str = "number,arrival_ns,first_due_ns,first_sent_ns,last_due_ns,\
     last_sent_ns,prompt_tokens,cached_tokens,output_tokens,chunks,ended";

/// One request. CLOCK_MONOTONIC, nanoseconds; 0 where it never came to that.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Row {
    /// 1 for the first.
    pub(super) number: u64,
    /// Last byte of the request read.
    pub(super) arrival_ns: u64,
    /// When the law gave the first chunk with output, and the kernel got it.
    pub(super) first_due_ns: u64,
    pub(super) first_sent_ns: u64,
    /// Of the last.
    pub(super) last_due_ns: u64,
    pub(super) last_sent_ns: u64,
    pub(super) prompt_tokens: u32,
    pub(super) cached_tokens: u32,
    pub(super) output_tokens: u32,
    /// Chunks with output.
    pub(super) chunks: u32,
    /// The answer was sent to its end.
    pub(super) is_whole: bool,
}

/// All requests, if requested, and the lateness of all chunks.
pub(super) struct Log {
    rows: Option<log::Log<Row>>,
    late: Times,
}

impl Log {
    /// Of lateness alone.
    pub(super) fn new() -> Self {
        Self { rows: None, late: new_times() }
    }

    /// The same that keeps requests.
    pub(super) fn with_rows(self) -> Self {
        Self { rows: Some(log::Log::new(ROWS_MAX)), ..self }
    }

    pub(super) fn add(&mut self, row: Row) {
        if let Some(rows) = &mut self.rows {
            rows.add(row);
        }
    }

    /// Chunks were handed to the kernel so long after the first of them was due.
    pub(super) fn late(&mut self, late_ns: u64) {
        self.late.saturating_record(late_ns);
    }

    pub(super) fn lateness(&self) -> &Times {
        &self.late
    }

    /// In a sentence.
    pub(super) fn lateness_text(&self) -> Option<String> {
        let us = |quantile| self.late.value_at_quantile(quantile) as f64 / 1e3;
        (!self.late.is_empty()).then(|| {
            format!(
                "{} writes of chunks were handed to the kernel after they were due by: p50 {:.0} us, \
                 p99 {:.0} us, most {:.0} us",
                self.late.len(),
                us(0.5),
                us(0.99),
                us(1.0)
            )
        })
    }

    /// The same in the format of the servers of other protocols, for calibrations.
    pub(super) fn write_calibrated(&self, path: &Path, spec: &CalibratedSpec) -> io::Result<()> {
        let mut calibrated = log::Log::new(ROWS_MAX);
        let rows = self.rows.iter().flat_map(log::Log::rows).filter(|row| row.is_whole);
        for Row { arrival_ns, first_due_ns, first_sent_ns, .. } in rows.copied() {
            let (completion_ns, sent_ns) = (first_due_ns, first_sent_ns);
            calibrated.add(log::Row { arrival_ns, completion_ns, sent_ns, key: None });
        }
        calibrated.write(path, spec, None)
    }

    /// Lines of comment, titles, a line a request, in the order of their ends.
    pub(super) fn write(&self, path: &Path, law: &str) -> io::Result<()> {
        let Some(rows) = &self.rows else { return Ok(()) };
        let mut out = BufWriter::new(std::fs::File::create(path)?);
        writeln!(out, "# {law}; CLOCK_MONOTONIC")?;
        // Both within a microsecond.
        let wall_ns = since_1970().as_nanos() - u128::from(monotonic_ns());
        writeln!(out, "# for the wall clock (since 1970) add {wall_ns}")?;
        if let Some(text) = self.lateness_text() {
            writeln!(out, "# {text}")?;
        }
        rows.write_left_out(&mut out)?;
        writeln!(out, "{TITLES}")?;
        for row in rows.rows() {
            let Row { number, arrival_ns, first_due_ns, first_sent_ns, .. } = row;
            let Row { last_due_ns, last_sent_ns, prompt_tokens, cached_tokens, .. } = row;
            let Row { output_tokens, chunks, is_whole, .. } = row;
            let ended = if *is_whole { "whole" } else { "gone" };
            writeln!(
                out,
                "{number},{arrival_ns},{first_due_ns},{first_sent_ns},{last_due_ns},{last_sent_ns},\
                 {prompt_tokens},{cached_tokens},{output_tokens},{chunks},{ended}"
            )?;
        }
        out.flush()
    }
}
