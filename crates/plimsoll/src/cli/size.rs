//! Flags of `plimsoll size`.

use std::path::PathBuf;

use clap::Args;
use plimsoll_model::capacity::Within;
use plimsoll_model::units::{Bytes, Nanos};

use super::values::{parse_rate, parse_share, parse_size, parse_span_arg};

#[derive(Debug, Args)]
pub(crate) struct SizeArgs {
    /// Bundles of runs of one suite, or directories that hold several; runs on servers with other
    /// numbers of processors tell what more of them bring
    #[arg(required = true, value_name = "RUN")]
    pub runs: Vec<PathBuf>,
    /// The load to size for, in ops/s, for example 50k
    #[arg(long, value_name = "N", value_parser = parse_rate)]
    pub load: f64,
    /// Limits of the response time, for example p99<20ms; figures: mean, p50, p90, p95, p99, p999,
    /// max
    #[arg(long, value_name = "LIMITS")]
    pub within: Option<Within>,
    /// Share of each resource that the load may use
    #[arg(long, value_name = "SHARE", default_value = "0.7", value_parser = parse_share)]
    pub headroom: f64,
    /// Pause of a user between two requests: tells how many users the load is
    #[arg(long, value_name = "SPAN", value_parser = parse_span_arg)]
    pub think: Option<Nanos>,
    /// Reads and writes per second that one disk can do [default: as the runs tell]
    #[arg(long, value_name = "N", value_parser = parse_rate)]
    pub disk_iops: Option<f64>,
    /// Bytes per second that one disk can do [default: as the runs tell]
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub disk_rate: Option<Bytes>,
    /// Bytes per second and direction that one network adapter can do [default: its link's speed]
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub adapter_rate: Option<Bytes>,
    /// What the server costs, by the name of the first run's directory
    #[arg(long, value_name = "FILE.toml")]
    pub prices: Option<PathBuf>,
    /// Print the sizing as JSON on standard output, everything else on standard error
    #[arg(long)]
    pub json: bool,
}
