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

/// A rate above zero in ops/s.
pub fn parse_rate(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(value) if value > 0.0 && value <= RATE_OPS_PER_S_MAX => Ok(value),
        _ => Err("write a rate above zero in ops/s, for example 500".to_owned()),
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
    fn a_size_has_a_unit_of_1024_or_none() {
        assert_eq!(parse_size("4096"), Ok(Bytes(4096)));
        assert_eq!(parse_size("512MiB"), Ok(Bytes(512 << 20)));
        assert_eq!(parse_size("4 GiB"), Ok(Bytes(4 << 30)));
        for wrong in ["", "0", "GiB", "-1", "1GB", "1.5GiB", "99999999999TiB"] {
            assert!(parse_size(wrong).is_err(), "{wrong}");
        }
    }
}
