//! Values of flags that need reading.

use plimsoll_model::capacity::Within;
use plimsoll_model::suite::{Override, RATE_OPS_PER_S_MAX};
use plimsoll_model::units::{Bytes, Nanos, parse_span};

use super::{Over, Peak};

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

/// `cores=0.5,1,2`.
pub(super) fn parse_over(text: &str) -> Result<Over, String> {
    const HOW: &str = "write cores=0.5,1,2 or memory=256MiB,1GiB or threads=1,4,16";
    let (what, list) = text.split_once('=').ok_or(HOW)?;
    let parts: Vec<&str> = list.split(',').map(str::trim).collect();
    match what.trim() {
        "cores" => {
            let core = |text: &&str| match text.parse::<f64>() {
                Ok(cores) if (0.01..=4_096.0).contains(&cores) => Ok(cores),
                _ => Err(format!("{text:?} is no number of cores from 0.01 up; {HOW}")),
            };
            parts.iter().map(core).collect::<Result<_, _>>().map(Over::Cores)
        }
        "memory" => {
            let size = |text: &&str| parse_size(text).map(|bytes| bytes.0);
            parts.iter().map(size).collect::<Result<_, _>>().map(Over::Memory)
        }
        "threads" => {
            let count = |text: &&str| match text.parse::<u32>() {
                Ok(threads) if (1..=1_024).contains(&threads) => Ok(threads),
                _ => Err(format!("{text:?} is no number of threads from 1 to 1024; {HOW}")),
            };
            parts.iter().map(count).collect::<Result<_, _>>().map(Over::Threads)
        }
        other => Err(format!("{other:?} cannot be scaled; {HOW}")),
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
