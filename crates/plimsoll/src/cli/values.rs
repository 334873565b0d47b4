//! Values of flags that need reading.

use plimsoll_model::suite::{Override, RATE_OPS_PER_S_MAX};
use plimsoll_model::units::{Nanos, parse_span};

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

pub(super) fn parse_peak(text: &str) -> Result<Peak, String> {
    if text == "auto" {
        return Ok(Peak::Auto);
    }
    match text.parse::<f64>() {
        Ok(value) if value.is_finite() && value > 0.0 => Ok(Peak::At(value)),
        _ => Err("write a load above zero, or auto".to_owned()),
    }
}
