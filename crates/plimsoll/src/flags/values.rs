//! Parsers of flag values.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use plimsoll_model::server_profile::ProfileAt;
use plimsoll_model::suite::{Override, Peak};
pub(crate) use plimsoll_protocol::host::arguments::{
    parse_number, parse_rate, parse_size, parse_span_arg, parse_span_or_none_arg,
};

/// One of several names. Each value has its name, which others that are accepted too may follow,
/// its help, and its meaning.
pub(crate) fn one_of<T: Clone + Send + Sync + 'static, const N: usize>(
    values: [(&'static [&'static str], &'static str, T); N],
) -> impl TypedValueParser<Value = T> {
    let shown = values.clone().map(|(names, help, _)| {
        PossibleValue::new(names[0]).aliases(names[1..].iter().copied()).help(help)
    });
    PossibleValuesParser::new(shown).map(move |typed: String| {
        let meant = values.iter().find(|(names, ..)| names.contains(&typed.as_str()));
        meant.expect("the parser accepts these names alone").2.clone()
    })
}

pub(crate) fn parse_override(text: &str) -> Result<Override, String> {
    Override::parse(text).ok_or_else(|| "write KEY=VALUE, for example load.clients=32".to_owned())
}

pub(crate) fn parse_share(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(value) if value > 0.0 && value <= 1.0 => Ok(value),
        _ => Err("write a share above 0, up to 1".to_owned()),
    }
}

pub(crate) fn parse_peak(text: &str) -> Result<Peak, String> {
    if text == "auto" {
        return Ok(Peak::Auto);
    }
    match parse_number(text) {
        Some(value) if value.is_finite() && value > 0.0 => Ok(Peak::At(value)),
        _ => Err("write a load above zero, for example 500 or 2.5k, or auto".to_owned()),
    }
}

/// The suite checks the bounds: the meaning of a point depends on its ladder.
pub(crate) fn parse_point(text: &str) -> Result<f64, String> {
    parse_number(text).ok_or_else(|| "write a number, for example 500 or 2.5k".to_owned())
}

/// The load point at which a server is profiled.
pub(crate) fn parse_profile_at(text: &str) -> Result<ProfileAt, String> {
    match text {
        "peak" => Ok(ProfileAt::Peak),
        load => parse_point(load)
            .map(ProfileAt::Load)
            .map_err(|_| "write peak, or a load, for example 500 or 2.5k".to_owned()),
    }
}
