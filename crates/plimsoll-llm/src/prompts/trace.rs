//! Recorded loads (`--trace FILE`): when each request was sent, and how long prompt and answer
//! were.
//!
//! | format | by | a line or row has |
//! | --- | --- | --- |
//! | JSON lines | Mooncake, GuideLLM | `timestamp` (ms), `input_length`, `output_length`, perhaps `hash_ids` |
//! | CSV | Azure | `TIMESTAMP` (date and time), `ContextTokens`, `GeneratedTokens` |
//! | CSV | BurstGPT | `Timestamp` (s), `Request tokens`, `Response tokens`; no response is a failed call |

use std::io::BufRead;
use std::ops::Range;

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use plimsoll_model::units::{NANOS_PER_SECOND, Nanos};
use serde::Deserialize;

use super::FileError;
use crate::lengths::TOKENS_MAX;

/// Longest line: a prompt of a million tokens has 2,000 blocks.
const LINE_BYTES_MAX: u64 = 1 << 20;
/// Rows that are read; the largest published file has 1.4 million.
const ROWS_MAX: usize = 8_000_000;
/// Blocks of all rows: 512 MB.
const BLOCKS_MAX: usize = 1 << 26;
/// Tokens of a block of a Mooncake trace.
pub(crate) const BLOCK_TOKENS: u32 = 512;

/// A recorded load.
#[derive(Debug, Default)]
pub(crate) struct Trace {
    /// In the order of their times.
    pub(crate) rows: Vec<Row>,
    /// Of all rows.
    blocks: Vec<u64>,
    /// Rows of failed calls, which are not sent.
    pub(crate) failed_rows: u64,
}

/// One request of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Row {
    /// Since the first request.
    pub(crate) due: Nanos,
    /// Tokens of the prompt.
    pub(crate) input_tokens: u32,
    /// Tokens of the answer.
    pub(crate) output_tokens: u32,
    /// Its blocks among those of all rows.
    blocks: Range<u32>,
}

impl Trace {
    /// Names of the blocks that a row's prompt is made of: where those of two rows begin alike, so
    /// do their prompts. Empty where the trace has none.
    pub(crate) fn blocks(&self, row: &Row) -> &[u64] {
        &self.blocks[row.blocks.start as usize..row.blocks.end as usize]
    }

    /// Some rows have blocks.
    pub(crate) fn has_blocks(&self) -> bool {
        !self.blocks.is_empty()
    }
}

/// Reads a file, named for messages.
pub(crate) fn read(reader: &mut dyn BufRead, file: &str) -> Result<Trace, FileError> {
    let error = |line: Option<u64>, reason: String| FileError {
        file: file.to_owned(),
        location: line.map_or_else(String::new, |line| format!(":{line}")),
        reason,
    };
    let mut reading = Reading::default();
    let mut lines = Lines { reader, number: 0, text: Vec::new() };
    loop {
        let number = lines.number + 1;
        let at = |reason: String| error(Some(number), reason);
        let Some(line) = lines.next_line().map_err(at)? else { break };
        reading.take(line.trim()).map_err(|reason| error(Some(number), reason))?;
    }
    reading.finish().map_err(|reason| error(None, reason))
}

struct Lines<'a> {
    reader: &'a mut dyn BufRead,
    number: u64,
    text: Vec<u8>,
}

impl Lines<'_> {
    fn next_line(&mut self) -> Result<Option<&str>, String> {
        use std::io::Read as _;
        self.text.clear();
        self.number += 1;
        let mut bounded = (&mut *self.reader).take(LINE_BYTES_MAX);
        let n = bounded.read_until(b'\n', &mut self.text).map_err(|e| e.to_string())?;
        if n as u64 == LINE_BYTES_MAX {
            return Err("the line is longer than 1 MiB".to_owned());
        }
        let text = std::str::from_utf8(&self.text).map_err(|_| "it is not text".to_owned())?;
        Ok((n > 0).then(|| text.trim_start_matches('\u{feff}')))
    }
}

/// What has been read, times not yet counted from the first.
#[derive(Default)]
struct Reading {
    columns: Option<Columns>,
    /// With the time in nanoseconds since the trace's own zero.
    rows: Vec<(i128, Row)>,
    blocks: Vec<u64>,
    failed_rows: u64,
}

/// A line of JSON.
#[derive(Deserialize)]
struct JsonRow {
    timestamp: f64,
    input_length: f64,
    output_length: f64,
    #[serde(default)]
    hash_ids: Vec<u64>,
}

/// A row as in its format.
struct RawRow<'a> {
    at_ns: i128,
    input_tokens: f64,
    output_tokens: f64,
    blocks: &'a [u64],
}

impl Reading {
    fn take(&mut self, line: &str) -> Result<(), String> {
        if line.is_empty() {
            return Ok(());
        }
        if line.starts_with('{') && self.columns.is_none() {
            let row: JsonRow = serde_json::from_str(line).map_err(json_reason)?;
            return self.add(&RawRow {
                at_ns: nanos(row.timestamp, NANOS_PER_SECOND / 1_000)?,
                input_tokens: row.input_length,
                output_tokens: row.output_length,
                blocks: &row.hash_ids,
            });
        }
        let Some(columns) = &self.columns else {
            if self.rows.is_empty() {
                self.columns = Some(Columns::from_header(line)?);
                return Ok(());
            }
            return Err("this line is not JSON as those before it are".to_owned());
        };
        let row = columns.read(line)?;
        if row.output_tokens == 0.0 && columns.zero_is_failed() {
            self.failed_rows += 1;
            return Ok(());
        }
        self.add(&row)
    }

    fn add(&mut self, row: &RawRow<'_>) -> Result<(), String> {
        if self.rows.len() == ROWS_MAX || self.blocks.len() + row.blocks.len() > BLOCKS_MAX {
            return Err(format!("a trace has at most {ROWS_MAX} requests; cut it"));
        }
        let start = self.blocks.len() as u32;
        self.blocks.extend_from_slice(row.blocks);
        let made = Row {
            due: Nanos::ZERO,
            input_tokens: tokens(row.input_tokens, "the prompt")?,
            output_tokens: tokens(row.output_tokens, "the answer")?,
            blocks: start..self.blocks.len() as u32,
        };
        self.rows.push((row.at_ns, made));
        Ok(())
    }

    fn finish(mut self) -> Result<Trace, String> {
        self.rows.sort_by_key(|(at, _)| *at);
        let (first, last) = match (self.rows.first(), self.rows.last()) {
            (Some((first, _)), Some((last, _))) if last > first => (*first, *last),
            (Some(_), _) => return Err("all its requests were sent at one instant".to_owned()),
            (None, _) => return Err("it holds no request".to_owned()),
        };
        if u64::try_from(last - first).is_err() {
            return Err("its times span more than five hundred years".to_owned());
        }
        let since_first = |(at, row): (i128, Row)| Row { due: Nanos((at - first) as u64), ..row };
        Ok(Trace {
            rows: self.rows.into_iter().map(since_first).collect(),
            blocks: self.blocks,
            failed_rows: self.failed_rows,
        })
    }
}

/// A length that a trace has, taken as one at least: an answer has a token.
fn tokens(number: f64, of: &str) -> Result<u32, String> {
    match (0.0..=f64::from(TOKENS_MAX)).contains(&number) {
        true => Ok((number as u32).max(1)),
        false => Err(format!("{number} is no number of tokens of {of}")),
    }
}

/// A time in units of `unit_ns` nanoseconds.
fn nanos(time: f64, unit_ns: u64) -> Result<i128, String> {
    let ns = time * unit_ns as f64;
    // Up to the year 2262, which also bounds what follows.
    if ns.abs() < 9.2e18 { Ok(ns as i128) } else { Err(format!("{time} is no time")) }
}

/// Without the position, which counts within the line.
fn json_reason(error: serde_json::Error) -> String {
    let message = error.to_string();
    let what = message.split(" at line ").next().unwrap_or(&message);
    format!(
        "{what}; a line has timestamp (ms), input_length and output_length, and may have hash_ids"
    )
}

/// Where a file has what a row needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Columns {
    at: usize,
    input: usize,
    output: usize,
    source: Source,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    Azure,
    BurstGpt,
}

impl Columns {
    /// From the line that names the columns.
    fn from_header(head: &str) -> Result<Self, String> {
        let names: Vec<String> = fields(head).map(|name| name.to_ascii_lowercase()).collect();
        let find = |column: &str| names.iter().position(|name| name == column);
        let formats = [
            (Source::Azure, "contexttokens", "generatedtokens"),
            (Source::BurstGpt, "request tokens", "response tokens"),
        ];
        let columns = formats.into_iter().find_map(|(source, input, output)| {
            let (input, output) = (find(input)?, find(output)?);
            Some(Self { at: find("timestamp")?, input, output, source })
        });
        columns.ok_or_else(|| {
            "no format that is known: a trace is JSON lines with timestamp, input_length and \
             output_length (Mooncake), or CSV whose first line has TIMESTAMP, ContextTokens and \
             GeneratedTokens (Azure), or Timestamp, Request tokens and Response tokens (BurstGPT)"
                .to_owned()
        })
    }

    /// An answer without tokens is a call that failed.
    fn zero_is_failed(self) -> bool {
        self.source == Source::BurstGpt
    }

    fn read(self, line: &str) -> Result<RawRow<'static>, String> {
        let fields: Vec<&str> = fields(line).collect();
        let field = |at: usize| {
            let last = self.at.max(self.input).max(self.output) + 1;
            fields
                .get(at)
                .copied()
                .ok_or_else(|| format!("{} columns, and {last} are needed", fields.len()))
        };
        let number = |at: usize| {
            let text = field(at)?;
            text.parse::<f64>().map_err(|_| format!("{text:?} is no number"))
        };
        let at_ns = match self.source {
            Source::Azure => date_ns(field(self.at)?)?,
            Source::BurstGpt => nanos(number(self.at)?, NANOS_PER_SECOND)?,
        };
        let (input_tokens, output_tokens) = (number(self.input)?, number(self.output)?);
        Ok(RawRow { at_ns, input_tokens, output_tokens, blocks: &[] })
    }
}

/// Fields of a line. No needed field contains a comma.
fn fields(line: &str) -> impl Iterator<Item = &str> {
    line.split(',').map(|field| field.trim().trim_matches('"'))
}

/// `2023-11-16 18:17:03.9799600`, with `T` for the space or an offset behind it too, as nanoseconds
/// since 1970.
fn date_ns(text: &str) -> Result<i128, String> {
    let with_offset = || text.parse::<Timestamp>().ok();
    let of_utc = || TimeZone::UTC.to_timestamp(text.parse::<DateTime>().ok()?).ok();
    // A date alone would be read as its midnight.
    let at = text.contains(':').then(|| with_offset().or_else(of_utc)).flatten();
    at.map(Timestamp::as_nanosecond)
        .ok_or_else(|| format!("{text:?} is no time; write for example 2023-11-16 18:17:03.97996"))
}

#[cfg(test)]
mod tests;
