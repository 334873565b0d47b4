//! How numbers are written: three significant digits, one unit per column.

use plimsoll_model::result::Axis;
use plimsoll_model::stated::Stated;
use plimsoll_model::units::{Bytes, Nanos, grouped};

/// What stands where there is no value.
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

    /// Its length.
    fn nanos(self) -> f64 {
        match self {
            Self::Micros => 1e3,
            Self::Millis => 1e6,
            Self::Seconds => 1e9,
        }
    }

    pub(crate) fn of(self, nanos: f64) -> f64 {
        nanos / self.nanos()
    }

    pub(crate) fn text(self, nanos: Option<f64>) -> String {
        nanos.map_or_else(|| ABSENT.to_owned(), |n| three_digits(self.of(n)))
    }

    /// A figure with its interval.
    pub(crate) fn stated(self, figure: Option<Stated>) -> String {
        figure.map_or_else(|| ABSENT.to_owned(), |figure| figure.text_in(self.nanos()))
    }
}

/// Three significant digits; thousands grouped; trailing zeros kept, since they are digits.
pub(crate) fn three_digits(value: f64) -> String {
    match value.is_finite() {
        true => plimsoll_model::units::three_digits(value),
        false => ABSENT.to_owned(),
    }
}

/// A rate or count that may have a fraction.
pub(crate) fn number(value: Option<f64>) -> String {
    value.filter(|v| v.is_finite()).map_or_else(|| ABSENT.to_owned(), grouped)
}

/// What an axis counts, with its unit where there is one and the name does not say it.
pub(crate) fn axis_name(axis: &Axis) -> String {
    match axis.unit.as_str() {
        "" => axis.name.clone(),
        unit if unit == axis.name => axis.name.clone(),
        unit => format!("{}, {unit}", axis.name),
    }
}

/// A load on the axis of a run.
pub(crate) fn load(value: f64, axis: &Axis) -> String {
    let value = number(Some(value));
    if axis.unit.is_empty() {
        format!("{} {value}", axis.name)
    } else {
        format!("{value} {}", axis.unit)
    }
}

/// A whole number, thousands grouped.
pub(crate) fn count(value: Option<u64>) -> String {
    value.map_or_else(|| ABSENT.to_owned(), |v| grouped(v as f64))
}

/// A ratio as a percentage.
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

/// A command line that a POSIX shell reads back as the same words.
pub(crate) fn command_line(words: &[String]) -> String {
    words.iter().map(|w| quoted(w)).collect::<Vec<_>>().join(" ")
}

fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,@%+".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
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
    fn instants_read_as_date_and_clock() {
        assert_eq!(instant("2026-11-21T20:11:46.123Z"), "2026-11-21 20:11:46 UTC");
        assert_eq!(instant("yesterday"), "yesterday");
    }

    #[test]
    fn a_command_line_can_be_pasted_into_a_shell() {
        let words = ["plimsoll", "run", "it's", "a b"].map(str::to_owned);
        assert_eq!(command_line(&words), r"plimsoll run 'it'\''s' 'a b'");
    }
}
