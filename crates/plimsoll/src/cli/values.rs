//! Values of flags that need reading.

use plimsoll_model::server_profile::ProfileAt;
use plimsoll_model::suite::{OPS_MAX, Override, Peak};
use plimsoll_protocol::host::arguments::{parse_count, parse_number};
pub(super) use plimsoll_protocol::host::arguments::{
    parse_rate, parse_size, parse_span_arg, parse_span_or_none_arg,
};

use super::{Joined, Labelled, Over};

pub(super) fn parse_override(text: &str) -> Result<Override, String> {
    Override::parse(text).ok_or_else(|| "write KEY=VALUE, for example load.clients=32".to_owned())
}

/// `NAME=DIR,DIR`.
pub(super) fn parse_label(text: &str) -> Result<Labelled, String> {
    let parts = text.split_once('=').filter(|(name, dirs)| !name.is_empty() && !dirs.is_empty());
    let (name, dirs) = parts.ok_or("write NAME=DIR, for example before=runs/a,runs/b")?;
    let runs = dirs.split(',').filter(|dir| !dir.is_empty()).map(str::to_owned).collect();
    Ok(Labelled { name: name.to_owned(), runs })
}

/// `clock=350,run=DIR`.
pub(super) fn parse_joined(text: &str) -> Result<Joined, String> {
    const HOW: &str = "write NAME=LEVEL,run=DIR, for example clock=350,run=runs/slow";
    let (factors, run) = text.split_once(",run=").filter(|(_, run)| !run.is_empty()).ok_or(HOW)?;
    let level = |part: &str| {
        let (name, level) = part.split_once('=')?;
        let (name, level) = (name.trim(), level.trim());
        (!name.is_empty() && !level.is_empty()).then(|| (name.to_owned(), level.to_owned()))
    };
    let levels = factors.split(',').map(level).collect::<Option<Vec<_>>>().ok_or(HOW)?;
    Ok(Joined { levels, run: run.to_owned() })
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
    match parse_number(text) {
        Some(value) if value.is_finite() && value > 0.0 => Ok(Peak::At(value)),
        _ => Err("write a load above zero, for example 500 or 2.5k, or auto".to_owned()),
    }
}

/// Bounds are those of the suite: what a point is depends on its ladder.
pub(super) fn parse_point(text: &str) -> Result<f64, String> {
    parse_number(text).ok_or_else(|| "write a number, for example 500 or 2.5k".to_owned())
}

/// The name of the first flag that is given.
pub(super) fn first_of<const N: usize>(flags: [(bool, &'static str); N]) -> Option<&'static str> {
    flags.into_iter().find_map(|(given, name)| given.then_some(name))
}

/// A number of tokens, or how it is drawn: which texts say it, the suite knows.
pub(super) fn parse_tokens(text: &str) -> Result<toml::Value, String> {
    let number = parse_number(text).filter(|number| number.fract() == 0.0 && *number < 1e15);
    Ok(number.map_or_else(|| text.into(), |number| (number as i64).into()))
}

/// Where a server is profiled.
pub(super) fn parse_profile_at(text: &str) -> Result<ProfileAt, String> {
    match text {
        "peak" => Ok(ProfileAt::Peak),
        load => parse_point(load)
            .map(ProfileAt::Load)
            .map_err(|_| "write peak, or a load, for example 500 or 2.5k".to_owned()),
    }
}

/// Clients or connections.
pub(super) fn parse_clients(text: &str) -> Result<u32, String> {
    const CLIENTS_MAX: u32 = 100_000;
    let count = u32::try_from(parse_count(text)?).ok().filter(|count| *count <= CLIENTS_MAX);
    count.ok_or_else(|| format!("write a number up to {CLIENTS_MAX}"))
}

pub(super) fn parse_requests(text: &str) -> Result<u64, String> {
    let count = parse_count(text)?;
    (count <= OPS_MAX).then_some(count).ok_or_else(|| format!("write a number up to {OPS_MAX}"))
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
