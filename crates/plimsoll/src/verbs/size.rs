//! `plimsoll size RUN… --load N|--users N`: estimates how big a server must be for a load.

use std::path::PathBuf;

use clap::{ArgGroup, Args};
use plimsoll_analysis::compare::RunInput;
use plimsoll_analysis::size::{RequestedLoad, price, size};
use plimsoll_model::capacity::Within;
use plimsoll_model::size::{Ceilings, SizeRequest, Sizing};
use plimsoll_model::units::{Bytes, Nanos};
use plimsoll_report::sizing_text;

use super::capacity::parse_users;
use super::groups::{bundles, run_of};
use super::prices::Prices;
use crate::exit::{Exit, Failure};
use crate::flags::values::{parse_rate, parse_share, parse_size, parse_span_arg};
use crate::terminal;

#[derive(Debug, Args)]
#[command(group(ArgGroup::new("requested").required(true).args(["load", "users"])))]
pub(crate) struct SizeArgs {
    /// Bundles of runs of one suite, or directories that hold several; runs on servers with other
    /// numbers of processors show the effect of more processors
    #[arg(required = true, value_name = "RUN")]
    pub runs: Vec<PathBuf>,
    /// The load to size for: in ops/s, for example 50k, or, of suites that count bytes, in bytes/s,
    /// for example 200MiB/s
    #[arg(long, value_name = "N", value_parser = parse_load)]
    pub load: Option<RequestedLoad>,
    /// The load as a number of users, each with the pause of --think, or the suite's own think time
    #[arg(long, value_name = "N", value_parser = parse_users)]
    pub users: Option<f64>,
    /// How many users one client of the suite stands for, whose think time is the suite's
    #[arg(long, value_name = "N", value_parser = parse_users, requires = "users", conflicts_with = "think")]
    pub users_per_client: Option<f64>,
    /// Limits of the response time, for example p99<20ms; figures: mean, p50, p90, p95, p99, p999,
    /// max
    #[arg(long, value_name = "LIMITS")]
    pub within: Option<Within>,
    /// Share of each resource that the load may use
    #[arg(long, value_name = "SHARE", default_value = "0.7", value_parser = parse_share)]
    pub headroom: f64,
    /// Pause of a user between two requests: with it the number of users is computed
    #[arg(long, value_name = "SPAN", value_parser = parse_span_arg)]
    pub think: Option<Nanos>,
    /// Reads and writes per second that one disk can do [default: derived from the runs]
    #[arg(long, value_name = "N", value_parser = parse_rate)]
    pub disk_iops: Option<f64>,
    /// Bytes per second that one disk can do [default: derived from the runs]
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub disk_rate: Option<Bytes>,
    /// Bytes per second and direction that one network adapter can do [default: its link's speed]
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub adapter_rate: Option<Bytes>,
    /// Memory of the server, for example 64GiB: with it the number of disks is computed, for suites
    /// whose files are ours
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub memory: Option<Bytes>,
    /// What the server costs, by the name of the first run's directory
    #[arg(long, value_name = "FILE.toml")]
    pub prices: Option<PathBuf>,
    /// Print the sizing as JSON on standard output, everything else on standard error
    #[arg(long)]
    pub json: bool,
}

/// Sizes and shows; exit code 1 if no size can be given for the load.
pub(crate) fn perform(args: &SizeArgs) -> Result<Exit, Failure> {
    let prices = Prices::read(args.prices.as_deref())?;
    let mut bundle_dirs = Vec::new();
    for run in &args.runs {
        bundle_dirs.extend(bundles(run)?);
    }
    let runs =
        bundle_dirs.iter().map(|bundle| run_of(bundle)).collect::<Result<Vec<RunInput>, _>>()?;
    let load = args.load.or(args.users.map(RequestedLoad::Users));
    let load = load.expect("clap requires --load or --users");
    let sizing = size(&runs, load, size_request(args));
    let mut sizing = sizing.map_err(|error| Failure::wrong(error.to_string()))?;
    if let (Some(prices), Some(first)) = (&prices, bundle_dirs.first()) {
        price(&mut sizing, prices.system_of(first)?);
    }
    show(&sizing, args.json);
    Ok(if sizing.refused.is_some() { Exit::Invalid } else { Exit::Valid })
}

fn parse_load(text: &str) -> Result<RequestedLoad, String> {
    let bytes =
        text.strip_suffix("/s").map(|size| Ok(RequestedLoad::Bytes(parse_size(size)?.0 as f64)));
    let load = bytes.unwrap_or_else(|| parse_rate(text).map(RequestedLoad::Ops));
    load.map_err(|_: String| {
        "write a rate above zero in ops/s, for example 50k, or in bytes/s, for example 200MiB/s"
            .to_owned()
    })
}

fn size_request(args: &SizeArgs) -> SizeRequest {
    SizeRequest {
        load_ops_per_s: 0.0,
        users: None,
        users_per_client: args.users_per_client,
        load_bytes_per_s: None,
        within: args.within.clone(),
        headroom_ratio: args.headroom,
        think: args.think,
        stated: Ceilings {
            disk_transfers_per_s: args.disk_iops,
            disk_bytes_per_s: args.disk_rate.map(|rate| rate.0 as f64),
            adapter_bytes_per_s: args.adapter_rate.map(|rate| rate.0 as f64),
        },
        memory_bytes: args.memory.map(|size| size.0 as f64),
    }
}

fn show(sizing: &Sizing, json: bool) {
    let text = sizing_text(sizing);
    if json {
        terminal::note(&text);
        let json = serde_json::to_string_pretty(sizing);
        terminal::print(&(json.expect("numbers and text become JSON") + "\n"));
    } else {
        terminal::print(&text);
    }
}
