//! Values of flags that need reading.

use plimsoll_model::suite::RATE_OPS_PER_S_MAX;
use plimsoll_model::units::{Bytes, Nanos, parse_span};

/// A span of time above zero.
pub fn parse_span_arg(text: &str) -> Result<Nanos, String> {
    match parse_span(text) {
        Some(span) if span > Nanos::ZERO => Ok(span),
        _ => Err("write a span of time above zero, for example 30s or 500ms".to_owned()),
    }
}

/// A span of time that may be zero.
pub fn parse_span_or_none_arg(text: &str) -> Result<Nanos, String> {
    let help = || "write a span of time, for example 30s, or 0s for none".to_owned();
    parse_span(text).ok_or_else(help)
}

/// A number, with `k` for thousands or `M` for millions or without.
pub fn parse_number(text: &str) -> Option<f64> {
    const SUFFIXES: [(&str, &str); 3] = [("k", "e3"), ("K", "e3"), ("M", "e6")];
    let suffix = SUFFIXES.iter().find_map(|(of, power)| Some((text.strip_suffix(of)?, power)));
    let Some((number, power)) = suffix else { return text.parse().ok() };
    // Only figures: as text, so that 1.005k is 1005 to the last bit.
    let is_plain = number.chars().all(|c| c.is_ascii_digit() || c == '.');
    is_plain.then(|| format!("{number}{power}").parse().ok())?
}

/// A rate above zero in ops/s.
pub fn parse_rate(text: &str) -> Result<f64, String> {
    match parse_number(text) {
        Some(value) if value > 0.0 && value <= RATE_OPS_PER_S_MAX => Ok(value),
        _ => Err("write a rate above zero in ops/s, for example 500 or 2.5k".to_owned()),
    }
}

/// A whole number above zero.
pub fn parse_count(text: &str) -> Result<u64, String> {
    // Up to here every whole number is one of f64 too.
    const COUNT_MAX: f64 = 9e15;
    match parse_number(text) {
        Some(value) if (1.0..=COUNT_MAX).contains(&value) && value.fract() == 0.0 => {
            Ok(value as u64)
        }
        _ => Err("write a whole number above zero, for example 500 or 1k".to_owned()),
    }
}

/// Bytes, with a unit of 1024 or without.
pub fn parse_size(text: &str) -> Result<Bytes, String> {
    const UNITS: [(&str, u32); 4] = [("KiB", 10), ("MiB", 20), ("GiB", 30), ("TiB", 40)];
    let unit = UNITS.iter().find_map(|(unit, bits)| Some((text.strip_suffix(unit)?, *bits)));
    let (number, bits) = unit.unwrap_or((text, 0));
    let bytes = number.trim().parse::<u64>().ok().and_then(|n| n.checked_mul(1 << bits));
    bytes
        .filter(|bytes| *bytes > 0)
        .map(Bytes)
        .ok_or_else(|| "write a size above zero, for example 512MiB or 4GiB".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_and_millions_may_be_written_short() {
        for (text, number) in [
            ("500", 500.0),
            ("1k", 1_000.0),
            ("2.5k", 2_500.0),
            ("1.005k", 1_005.0),
            ("2K", 2_000.0),
            ("1M", 1e6),
            (".5M", 5e5),
            ("0.25", 0.25),
        ] {
            assert_eq!(parse_rate(text), Ok(number), "{text}");
        }
        for wrong in ["", "k", "1m", "1kk", "1 k", "1e3k", "-1k", "infk", "NaN", "0k", "1G"] {
            assert!(parse_rate(wrong).is_err(), "{wrong}");
        }
        assert_eq!((parse_count("1k"), parse_count("1.5k")), (Ok(1_000), Ok(1_500)));
        for wrong in ["0", "1.5", "-1", "1.0005k", "9999999999M", "1e99"] {
            assert!(parse_count(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_size_has_a_unit_of_1024_or_none() {
        assert_eq!(parse_size("4096"), Ok(Bytes(4096)));
        assert_eq!(parse_size("512MiB"), Ok(Bytes(512 << 20)));
        assert_eq!(parse_size("4 GiB"), Ok(Bytes(4 << 30)));
        for wrong in ["", "0", "GiB", "-1", "1GB", "1.5GiB", "99999999999TiB"] {
            assert!(parse_size(wrong).is_err(), "{wrong}");
        }
    }
}
