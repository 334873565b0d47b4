//! Units as types. Serialised as plain numbers whose field name ends in the unit.

use std::fmt;
use std::ops::{Add, AddAssign, Sub};

use schemars::JsonSchema;
use serde::de::{Error, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

const NANOS_PER_MICRO: u64 = 1_000;
const NANOS_PER_MILLI: u64 = 1_000_000;
/// Nanoseconds in one second.
pub const NANOS_PER_SECOND: u64 = 1_000_000_000;

/// A span of time, or an instant counted from an agreed start, in nanoseconds.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(transparent)]
pub struct Nanos(pub u64);

impl Nanos {
    /// No time at all.
    pub const ZERO: Self = Self(0);
    /// Later than any run lasts.
    pub const MAX: Self = Self(u64::MAX);

    /// Whole microseconds.
    pub const fn from_micros(micros: u64) -> Self {
        Self(micros * NANOS_PER_MICRO)
    }

    /// Whole milliseconds.
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis * NANOS_PER_MILLI)
    }

    /// Whole seconds.
    pub const fn from_secs(secs: u64) -> Self {
        Self(secs * NANOS_PER_SECOND)
    }

    /// Rounded to the nearest nanosecond; negative and non-finite values become zero.
    pub fn from_secs_f64(secs: f64) -> Self {
        Self((secs * NANOS_PER_SECOND as f64).round() as u64)
    }

    /// Seconds, for display and arithmetic that needs fractions.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / NANOS_PER_SECOND as f64
    }

    /// `self - other`, or zero when `other` is later.
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// `self + other`, or the latest instant.
    pub const fn saturating_add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

/// Makes `least` the lesser of itself and `other`, where there is one.
pub fn keep_least(least: &mut Option<Nanos>, other: impl Into<Option<Nanos>>) {
    *least = least.iter().copied().chain(other.into()).min();
}

impl Add for Nanos {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }
}

impl AddAssign for Nanos {
    fn add_assign(&mut self, other: Self) {
        self.0 += other.0;
    }
}

impl Sub for Nanos {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self(self.0 - other.0)
    }
}

impl fmt::Display for Nanos {
    /// Three significant digits with the largest unit that keeps the number at 1 or above.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == 0 {
            return write!(f, "0 s");
        }
        let (unit_ns, unit) = time_unit(self.0 as f64);
        match unit_ns {
            1.0 => write!(f, "{} {unit}", self.0),
            _ => write!(f, "{} {unit}", three_digits(self.0 as f64 / unit_ns)),
        }
    }
}

/// The largest unit in which a time, rounded to three digits, is 1 or above: its length in
/// nanoseconds and its name.
pub fn time_unit(nanos: f64) -> (f64, &'static str) {
    const UNITS: [(f64, &str); 3] = [(1e9, "s"), (1e6, "ms"), (1e3, "µs")];
    // 0.9995 ms is written as 1.00 ms.
    let reads_well = |(unit_ns, _): &(f64, &str)| nanos >= 0.9995 * unit_ns;
    UNITS.into_iter().find(reads_well).unwrap_or((1.0, "ns"))
}

/// A count of bytes.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(transparent)]
pub struct Bytes(pub u64);

impl fmt::Display for Bytes {
    /// Binary multiples, named as such (`MiB`).
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match byte_unit(self.0 as f64) {
            (1.0, unit) => write!(f, "{} {unit}", self.0),
            (bytes, unit) => write!(f, "{} {unit}", three_digits(self.0 as f64 / bytes)),
        }
    }
}

/// The unit in which a count of bytes is written: its size in bytes and its name.
pub fn byte_unit(bytes: f64) -> (f64, &'static str) {
    const UNITS: [&str; 5] = ["KiB", "MiB", "GiB", "TiB", "PiB"];
    if bytes < 1024.0 {
        return (1.0, "B");
    }
    let (mut size, mut unit) = (1024.0, 0);
    while bytes / size >= 1000.0 && unit + 1 < UNITS.len() {
        size *= 1024.0;
        unit += 1;
    }
    (size, UNITS[unit])
}

/// Bytes of one MiB.
pub const BYTES_PER_MIB: f64 = 1_048_576.0;
/// Bits of one Mbit.
pub const BITS_PER_MBIT: f64 = 1e6;

/// A rate of bytes per second in its two common units, whose bases differ: MiB/s of 2^20 bytes
/// and Mbit/s of 10^6 bits.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct BytesPerSec(pub f64);

impl BytesPerSec {
    /// In 2^20 bytes per second.
    pub fn mib_per_s(self) -> f64 {
        self.0 / BYTES_PER_MIB
    }

    /// In 10^6 bits per second.
    pub fn mbit_per_s(self) -> f64 {
        self.0 * 8.0 / BITS_PER_MBIT
    }
}

impl fmt::Display for BytesPerSec {
    /// Binary multiples, named as such (`MiB/s`).
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/s", Bytes(self.0 as u64))
    }
}

/// A rate in operations per second: finite, zero or above.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, PartialOrd, Serialize, Deserialize, JsonSchema,
)]
#[serde(transparent)]
pub struct OpsPerSec(f64);

impl OpsPerSec {
    /// `None` for a negative or non-finite value.
    pub fn new(value: f64) -> Option<Self> {
        (value.is_finite() && value >= 0.0).then_some(Self(value))
    }

    /// The number.
    pub const fn get(self) -> f64 {
        self.0
    }
}

impl fmt::Display for OpsPerSec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ops/s", grouped(self.0))
    }
}

/// `1234567.8` as `1,234,568`; below 100 with up to two decimals.
pub fn grouped(value: f64) -> String {
    if value.abs() < 100.0 {
        return format!("{value:.2}").trim_end_matches('0').trim_end_matches('.').to_owned();
    }
    grouped_whole(value)
}

/// `0.0512` as `5.12 %`, with as many decimals as distinguish it from a limit.
pub fn percent(ratio: f64) -> String {
    let value = ratio * 100.0;
    let decimals = match value.abs() {
        v if v >= 10.0 => 1,
        v if v >= 0.1 || v == 0.0 => 2,
        _ => 4,
    };
    let text = format!("{value:.decimals$}");
    let text = match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.'),
        false => &text,
    };
    format!("{text} %")
}

/// `0.512` as `51 %`.
pub fn whole_percent(ratio: f64) -> String {
    format!("{:.0} %", ratio * 100.0)
}

/// `1 run`, `2 runs`.
pub fn counted(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

/// `1 client`, `1,024 clients`.
pub fn clients(count: f64) -> String {
    let plural = if count == 1.0 { "" } else { "s" };
    format!("{} client{plural}", grouped(count))
}

/// `1 core`, `4 cores`, `1.50 cores`.
pub fn cores(count: f64) -> String {
    let plural = if count == 1.0 { "" } else { "s" };
    format!("{} core{plural}", short_decimal(count))
}

/// `2` and `1.50`: two decimals unless it is whole.
pub fn short_decimal(value: f64) -> String {
    match value.fract() {
        0.0 => format!("{value:.0}"),
        _ => format!("{value:.2}"),
    }
}

/// `13900.5` with two decimals as `13,900.50`: an amount of money.
pub fn grouped_with(value: f64, decimals: usize) -> String {
    let text = format!("{:.decimals$}", value.abs());
    let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
    let sign = if value < 0.0 { "-" } else { "" };
    let point = if fraction.is_empty() { "" } else { "." };
    format!("{sign}{}{point}{fraction}", grouped_digits(whole))
}

fn grouped_whole(value: f64) -> String {
    let digits = grouped_digits(&format!("{:.0}", value.abs()));
    if value < 0.0 { format!("-{digits}") } else { digits }
}

fn grouped_digits(digits: &str) -> String {
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, c) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(c);
    }
    out
}

/// Three significant digits whatever the size, trailing zeros kept, since they are digits; whole
/// numbers from 1,000 up, thousands grouped. Finite values only.
pub fn three_digits(value: f64) -> String {
    match decimals(value, 3) {
        0 => grouped_whole(value),
        decimals => format!("{value:.decimals$}"),
    }
}

/// Decimals that leave `value` this many significant digits, once it is rounded.
pub fn decimals(value: f64, digits: usize) -> usize {
    if value == 0.0 || !value.is_finite() {
        return 0;
    }
    // The exponent of the rounded value: 0.9996 to three digits is 1.00.
    let text = format!("{value:.*e}", digits.saturating_sub(1));
    let exponent = text.rsplit('e').next().and_then(|e| e.parse::<i64>().ok()).unwrap_or(0);
    usize::try_from(digits as i64 - 1 - exponent).unwrap_or(0)
}

/// A span of time as people write it in a suite file: `"300s"`, `"1.5ms"`, `"2m"`.
pub fn parse_span(text: &str) -> Option<Nanos> {
    let text = text.trim();
    let split = text.find(|c: char| !(c.is_ascii_digit() || c == '.'))?;
    let value: f64 = text[..split].parse().ok()?;
    let unit = match text[split..].trim() {
        "ns" => 1,
        "us" | "µs" => NANOS_PER_MICRO,
        "ms" => NANOS_PER_MILLI,
        "s" => NANOS_PER_SECOND,
        "m" | "min" => 60 * NANOS_PER_SECOND,
        "h" => 3_600 * NANOS_PER_SECOND,
        _ => return None,
    };
    let nanos = value * unit as f64;
    (nanos.is_finite() && nanos < u64::MAX as f64).then(|| Nanos(nanos.round() as u64))
}

/// The shortest text that [`parse_span`] reads back as the same span.
pub fn span_text(span: Nanos) -> String {
    let n = span.0;
    for (unit, name) in [(NANOS_PER_SECOND, "s"), (NANOS_PER_MILLI, "ms"), (NANOS_PER_MICRO, "us")]
    {
        if n.is_multiple_of(unit) {
            return format!("{}{name}", n / unit);
        }
    }
    format!("{n}ns")
}

/// Serde adapter: a [`Nanos`] as text such as `"300s"`.
pub mod span_serde {
    use serde::{Deserializer, Serializer};

    use super::{Nanos, parse_span, read_text, span_text};

    /// Writes the shortest exact text.
    pub fn serialize<S: Serializer>(span: &Nanos, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&span_text(*span))
    }

    /// Writes a list of them.
    pub fn serialize_list<S: Serializer>(
        spans: &[Nanos],
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(spans.iter().map(|span| span_text(*span)))
    }

    /// Reads what [`parse_span`] reads.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Nanos, D::Error> {
        read_text(deserializer, "a span of time like \"30s\" or \"1.5ms\"", parse_span)
    }
}

/// Reads a value written as text, with a description of what it should be.
pub fn read_text<'de, D: Deserializer<'de>, T>(
    deserializer: D,
    expected: &'static str,
    parse: fn(&str) -> Option<T>,
) -> Result<T, D::Error> {
    deserializer.deserialize_str(TextVisitor { expected, parse })
}

struct TextVisitor<T> {
    expected: &'static str,
    parse: fn(&str) -> Option<T>,
}

impl<T> Visitor<'_> for TextVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.expected)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
        (self.parse)(text).ok_or_else(|| E::invalid_value(Unexpected::Str(text), &self))
    }
}

/// A span of time as suites write it, such as `"30s"`.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, JsonSchema)]
pub struct SpanText(
    #[serde(with = "span_serde")]
    #[schemars(with = "String")]
    pub Nanos,
);

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn spans_read_as_people_write_them() {
        assert_eq!(parse_span("300s"), Some(Nanos::from_secs(300)));
        assert_eq!(parse_span("1.5 ms"), Some(Nanos::from_micros(1_500)));
        assert_eq!(parse_span("2m"), Some(Nanos::from_secs(120)));
        for bad in ["", "5", "s", "-1s", "1 fortnight", "1..2s"] {
            assert_eq!(parse_span(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn display_keeps_three_digits() {
        assert_eq!(Nanos(1_234_567).to_string(), "1.23 ms");
        assert_eq!(Nanos(999_960).to_string(), "1.00 ms");
        assert_eq!(Nanos(999_400).to_string(), "999 µs");
        assert_eq!(Nanos(45_000_000_000_000).to_string(), "45,000 s");
        assert_eq!(Bytes(5_119_484).to_string(), "4.88 MiB");
        assert_eq!(grouped(1_234_567.8), "1,234,568");
        assert_eq!(grouped(0.5), "0.5");
    }

    #[test]
    fn byte_rates_name_their_bases() {
        let rate = BytesPerSec(8_398_371.0);
        assert_eq!(rate.to_string(), "8.01 MiB/s");
        assert!((rate.mib_per_s() - 8.009).abs() < 0.001, "{}", rate.mib_per_s());
        assert!((rate.mbit_per_s() - 67.187).abs() < 0.001, "{}", rate.mbit_per_s());
    }

    /// Significant digits of a text.
    fn digits(text: &str) -> usize {
        let all: String = text.chars().filter(char::is_ascii_digit).collect();
        all.trim_start_matches('0').len()
    }

    #[test]
    fn a_time_of_a_third_of_a_millisecond_is_never_written_as_zero_seconds() {
        assert_eq!(three_digits(0.000_34), "0.000340");
        assert_eq!(three_digits(0.099_96), "0.100");
        assert_eq!(three_digits(0.0), "0");
    }

    proptest! {
        #[test]
        fn three_digits_are_kept_in_any_unit(mantissa in 1.0f64..10.0, exponent in -9i32..12) {
            let value = mantissa * 10f64.powi(exponent);
            let text = three_digits(value);
            let back: f64 = text.replace(',', "").parse().unwrap();
            prop_assert!((back - value).abs() <= 0.005_001 * value, "{value} as {text}");
            prop_assert!(digits(&text) >= 3, "{value} as {text}");
            prop_assert!(value >= 999.0 || digits(&text) == 3, "{value} as {text}");
        }

        #[test]
        fn a_time_reads_back_within_its_third_digit(n in 1_000u64..1 << 60) {
            let text = Nanos(n).to_string();
            let back = parse_span(&text.replace(',', "")).unwrap().0 as f64;
            prop_assert!((back - n as f64).abs() <= 0.005_001 * n as f64, "{n} as {text}");
            prop_assert!(digits(&text) >= 3, "{n} as {text}");
        }

        #[test]
        fn span_text_reads_back_as_the_same_span(n in 0u64..1 << 50) {
            prop_assert_eq!(parse_span(&span_text(Nanos(n))), Some(Nanos(n)));
        }
    }
}
