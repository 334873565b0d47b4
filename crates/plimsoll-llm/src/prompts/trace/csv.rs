//! Rows of comma-separated values, and the times they hold.

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use plimsoll_model::units::NANOS_PER_SECOND;

use super::{RawRow, nanos};

/// Where a file has what a row needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Columns {
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
    pub(super) fn of(head: &str) -> Result<Self, String> {
        let names: Vec<String> = fields(head).map(|name| name.to_ascii_lowercase()).collect();
        let find = |wanted: &str| names.iter().position(|name| name == wanted);
        let known = [
            (Source::Azure, "contexttokens", "generatedtokens"),
            (Source::BurstGpt, "request tokens", "response tokens"),
        ];
        let found = known.into_iter().find_map(|(source, input, output)| {
            let (input, output) = (find(input)?, find(output)?);
            Some(Self { at: find("timestamp")?, input, output, source })
        });
        found.ok_or_else(|| {
            "no format that is known: a trace is JSON lines with timestamp, input_length and \
             output_length (Mooncake), or CSV whose first line has TIMESTAMP, ContextTokens and \
             GeneratedTokens (Azure), or Timestamp, Request tokens and Response tokens (BurstGPT)"
                .to_owned()
        })
    }

    /// An answer without tokens is a call that failed.
    pub(super) fn zero_is_failed(self) -> bool {
        self.source == Source::BurstGpt
    }

    pub(super) fn read(self, line: &str) -> Result<RawRow<'static>, String> {
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

/// Fields of a line. None that is needed holds a comma.
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
mod tests {
    use super::*;

    fn seconds(text: &str) -> f64 {
        date_ns(text).unwrap() as f64 / 1e9
    }

    #[test]
    fn times_differ_by_what_lies_between_them() {
        let first = seconds("2023-11-16 18:17:03.9799600");
        for (later, after_s) in [
            ("2023-11-16 18:17:04.0319600", 0.052),
            ("2023-11-17 18:17:03.97996", 86_400.0),
            ("2024-11-16T18:17:03.9799600", 366.0 * 86_400.0),
            ("2023-11-16 18:17:03.979960+00:00", 0.0),
            ("2023-11-16 20:17:03.979960+02:00", 0.0),
            ("2023-11-16T18:17:03.979960Z", 0.0),
        ] {
            assert!((seconds(later) - first - after_s).abs() < 1e-4, "{later}");
        }
    }

    #[test]
    fn what_is_no_time_is_refused() {
        for wrong in [
            "",
            "2023-11-16",
            "18:17:03",
            "2023-13-01 00:00:00",
            "2023-1-1 1:1:1.x",
            "2023-1-1 24:0:0",
            "99999-1-1 1:1:1",
            "2023-1-1 1:1:1+é",
            "2023-1-1 1:1:1-",
        ] {
            assert!(date_ns(wrong).is_err(), "{wrong}");
        }
    }
}
