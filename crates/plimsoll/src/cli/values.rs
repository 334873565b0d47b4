//! Values of flags that need reading.

use plimsoll_model::capacity::Within;
use plimsoll_model::suite::{Override, RATE_OPS_PER_S_MAX};
use plimsoll_model::units::{Bytes, Nanos, parse_span};

use super::Peak;

pub(super) fn parse_override(text: &str) -> Result<Override, String> {
    Override::parse(text).ok_or_else(|| "write KEY=VALUE, for example load.clients=32".to_owned())
}

pub(super) fn parse_span_arg(text: &str) -> Result<Nanos, String> {
    match parse_span(text) {
        Some(span) if span > Nanos::ZERO => Ok(span),
        _ => Err("write a span of time above zero, for example 30s or 500ms".to_owned()),
    }
}

pub(super) fn parse_rate(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(value) if value > 0.0 && value <= RATE_OPS_PER_S_MAX => Ok(value),
        _ => Err("write a rate above zero in ops/s, for example 500".to_owned()),
    }
}

pub(super) fn parse_within(text: &str) -> Result<Within, String> {
    text.parse().map_err(|e: plimsoll_model::capacity::WithinError| e.to_string())
}

pub(super) fn parse_users(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(value) if value > 0.0 && value <= 1e6 => Ok(value),
        _ => Err("write a number of users above zero, for example 5".to_owned()),
    }
}

pub(super) fn parse_share(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(value) if value > 0.0 && value <= 1.0 => Ok(value),
        _ => Err("write a share above 0, up to 1".to_owned()),
    }
}

pub(super) fn parse_peak(text: &str) -> Result<Peak, String> {
    if text == "auto" {
        return Ok(Peak::Auto);
    }
    match text.parse::<f64>() {
        Ok(value) if value.is_finite() && value > 0.0 => Ok(Peak::At(value)),
        _ => Err("write a load above zero, or auto".to_owned()),
    }
}

/// Bytes, with a unit of 1024 or without.
pub(super) fn parse_size(text: &str) -> Result<Bytes, String> {
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
