//! Rows of comma-separated values, and the times they hold.

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
/// since some midnight long ago.
fn date_ns(text: &str) -> Result<i128, String> {
    read_date(text)
        .ok_or_else(|| format!("{text:?} is no time; write for example 2023-11-16 18:17:03.97996"))
}

fn read_date(text: &str) -> Option<i128> {
    let (date, time) = text.split_once([' ', 'T'])?;
    let (time, offset_s) = match time.find(['+', '-', 'Z']) {
        Some(at) => (&time[..at], offset_s(&time[at..])?),
        None => (time, 0),
    };
    let [year, month, day] = numbers(date, '-')?;
    let (whole, fraction) = time.split_once('.').unwrap_or((time, ""));
    let [hour, minute, second] = numbers(whole, ':')?;
    let is_time = (1..=9999).contains(&year)
        && (1..=12).contains(&month)
        && (1..=31).contains(&day)
        && hour < 24
        && minute < 60
        && second < 61;
    if !is_time || fraction.len() > 18 || !fraction.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let digits = format!("{fraction:0<9}");
    let below_ns: i128 = digits.get(..9)?.parse().ok()?;
    let seconds = days(year, month, day) * 86_400 + hour * 3_600 + minute * 60 + second - offset_s;
    Some(i128::from(seconds) * i128::from(NANOS_PER_SECOND) + below_ns)
}

/// `+02:00`, `-05`, `Z`.
fn offset_s(text: &str) -> Option<i64> {
    if text == "Z" {
        return Some(0);
    }
    let (sign, digits) = text.split_at(1);
    let (hours, minutes) = digits.split_once(':').unwrap_or((digits, "0"));
    let bounded = |text: &str| text.parse::<u8>().ok().filter(|part| *part < 60).map(i64::from);
    let seconds = bounded(hours)? * 3_600 + bounded(minutes)? * 60;
    Some(if sign == "-" { -seconds } else { seconds })
}

fn numbers(text: &str, between: char) -> Option<[i64; 3]> {
    let mut parts = text.split(between).map(|part| part.parse::<u16>().ok().map(i64::from));
    let read = [parts.next()??, parts.next()??, parts.next()??];
    parts.next().is_none().then_some(read)
}

/// Days of the Gregorian calendar since the first of March of the year 0.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    365 * year + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day - 1
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
