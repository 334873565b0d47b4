//! How numbers are written: three significant digits, one unit per column.

use plimsoll_model::reported::ReportedFigure;
use plimsoll_model::result::Axis;
use plimsoll_model::units::{Bytes, Nanos, clients, grouped};

/// Shown where there is no value.
pub(crate) const ABSENT: &str = "–";

/// Unit of a column or axis of times, chosen once so that its numbers can be compared by eye.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TimeUnit {
    Micros,
    Millis,
    Seconds,
}

impl TimeUnit {
    /// The unit in which the largest value of a column reads well.
    pub(crate) fn for_largest(nanos: f64) -> Self {
        match nanos {
            n if n < 1e6 => Self::Micros,
            n if n < 1e10 => Self::Millis,
            _ => Self::Seconds,
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Micros => "µs",
            Self::Millis => "ms",
            Self::Seconds => "s",
        }
    }

    fn nanos(self) -> f64 {
        match self {
            Self::Micros => 1e3,
            Self::Millis => 1e6,
            Self::Seconds => 1e9,
        }
    }

    pub(crate) fn convert(self, nanos: f64) -> f64 {
        nanos / self.nanos()
    }

    pub(crate) fn text(self, nanos: Option<f64>) -> String {
        nanos.map_or_else(|| ABSENT.to_owned(), |n| three_digits(self.convert(n)))
    }

    pub(crate) fn figure_text(self, figure: Option<ReportedFigure>) -> String {
        figure.map_or_else(|| ABSENT.to_owned(), |figure| figure.text_in(self.nanos()))
    }
}

/// Unit of a row or axis of resources, chosen once so that its numbers can be compared by eye.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ResourceUnit {
    /// Of the unit the resource has in a result.
    divisor: f64,
    pub(crate) name: String,
}

impl ResourceUnit {
    /// For values in `unit`, as results name it, the largest of which is `largest`.
    pub(crate) fn for_largest(unit: &str, largest: f64) -> Self {
        let of = |divisor: f64, name: &str| Self { divisor, name: name.to_owned() };
        match unit {
            "ratio" => of(0.01, "%"),
            "bytes" => Self::binary(largest, ""),
            "bytes/s" => Self::binary(largest, "/s"),
            "s" if largest < 1.0 => of(1e-3, "ms"),
            other => of(1.0, other),
        }
    }

    fn binary(largest: f64, per: &str) -> Self {
        let units = ["B", "KiB", "MiB", "GiB", "TiB"];
        let last = units.len() - 1;
        let power = (0..last).find(|p| largest < 1000.0 * 1024f64.powi(*p as i32)).unwrap_or(last);
        Self { divisor: 1024f64.powi(power as i32), name: format!("{}{per}", units[power]) }
    }

    pub(crate) fn convert(&self, value: f64) -> f64 {
        value / self.divisor
    }

    pub(crate) fn text(&self, value: f64) -> String {
        three_digits(self.convert(value))
    }

    /// With the unit behind it, where there is one.
    pub(crate) fn named_text(&self, value: f64) -> String {
        match (value.is_finite(), self.name.as_str()) {
            (false, _) => ABSENT.to_owned(),
            (true, "") => self.text(value),
            (true, name) => format!("{}\u{a0}{name}", self.text(value)),
        }
    }
}

/// Three significant digits; thousands grouped; trailing zeros kept, since they are digits.
pub(crate) fn three_digits(value: f64) -> String {
    if value.is_finite() { plimsoll_model::units::three_digits(value) } else { ABSENT.to_owned() }
}

/// A rate or count that may have a fraction.
pub(crate) fn number(value: Option<f64>) -> String {
    value.filter(|v| v.is_finite()).map_or_else(|| ABSENT.to_owned(), grouped)
}

/// What an axis counts, with its unit where there is one and the name lacks it.
pub(crate) fn axis_name(axis: &Axis) -> String {
    match axis.unit.as_str() {
        "" => axis.name.clone(),
        unit if unit == axis.name => axis.name.clone(),
        unit => format!("{}, {unit}", axis.name),
    }
}

/// A load on the axis of a run.
pub(crate) fn load(value: f64, axis: &Axis) -> String {
    match axis.unit.as_str() {
        "" => format!("{} {}", axis.name, number(Some(value))),
        "clients" if value.is_finite() => clients(value),
        unit => format!("{} {unit}", number(Some(value))),
    }
}

/// A whole number, thousands grouped.
pub(crate) fn count(value: Option<u64>) -> String {
    value.map_or_else(|| ABSENT.to_owned(), |v| grouped(v as f64))
}

pub(crate) fn percent(ratio: Option<f64>) -> String {
    ratio
        .filter(|r| r.is_finite())
        .map_or_else(|| ABSENT.to_owned(), |r| format!("{:.0}\u{a0}%", r * 100.0))
}

/// A single time with its own unit.
pub(crate) fn time(nanos: Option<u64>) -> String {
    nanos.map_or_else(|| ABSENT.to_owned(), |n| Nanos(n).to_string())
}

/// A single size with its own unit.
pub(crate) fn bytes(value: Option<u64>) -> String {
    value.map_or_else(|| ABSENT.to_owned(), |b| Bytes(b).to_string())
}

/// `2026-11-21T20:11:46.5Z` as `2026-11-21 20:11:46 UTC`; anything else as it is.
pub(crate) fn instant(rfc3339: &str) -> String {
    let Some((date, clock)) = rfc3339.split_once('T') else { return rfc3339.to_owned() };
    match clock.strip_suffix('Z') {
        Some(clock) => format!("{date} {} UTC", clock.split('.').next().unwrap_or(clock)),
        None => format!("{date} {clock}"),
    }
}

/// A command line that a POSIX shell splits into the same arguments.
pub(crate) fn command_line(arguments: &[String]) -> String {
    arguments.iter().map(|w| quoted(w)).collect::<Vec<_>>().join(" ")
}

fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,@%+".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// With a capital letter at its beginning.
pub(crate) fn capitalised(text: &str) -> String {
    let mut characters = text.chars();
    let first = characters.next().map(|first| first.to_uppercase().to_string());
    first.unwrap_or_default() + characters.as_str()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_of_times_keeps_three_digits_in_one_unit() {
        assert_eq!(TimeUnit::Millis.text(Some(183_400.0)), "0.183");
        assert_eq!(TimeUnit::Millis.text(Some(1_234_567_890.0)), "1,235");
        assert_eq!(TimeUnit::Seconds.text(Some(340_000.0)), "0.000340");
        assert_eq!(TimeUnit::Micros.text(None), "–");
        assert_eq!(three_digits(9.999), "10.0");
        assert_eq!(three_digits(f64::NAN), "–");
    }

    #[test]
    fn resources_are_written_in_a_unit_that_suits_the_largest() {
        let text = |unit: &str, value| ResourceUnit::for_largest(unit, value).named_text(value);
        assert_eq!(text("ratio", 0.984), "98.4\u{a0}%");
        assert_eq!(text("bytes/s", 3.5 * 1024.0 * 1024.0), "3.50\u{a0}MiB/s");
        assert_eq!(text("s", 0.000_2), "0.200\u{a0}ms");
        assert_eq!(text("", 48.0), "48.0");
        assert_eq!(text("cores", f64::NAN), "–");
    }

    #[test]
    fn instants_read_as_date_and_clock() {
        assert_eq!(instant("2026-11-21T20:11:46.123Z"), "2026-11-21 20:11:46 UTC");
        assert_eq!(instant("yesterday"), "yesterday");
    }

    #[test]
    fn a_command_line_can_be_pasted_into_a_shell() {
        let arguments = ["plimsoll", "run", "it's", "a b"].map(str::to_owned);
        assert_eq!(command_line(&arguments), r"plimsoll run 'it'\''s' 'a b'");
    }
}
