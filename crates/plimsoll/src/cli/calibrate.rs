//! Flags of `plimsoll calibrate`.

use std::path::PathBuf;

use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser};
use plimsoll_model::event::AgentsAsked;
use plimsoll_model::units::Nanos;
use plimsoll_protocol::host::Registration;

use super::run::PacingArg;
use super::values::{parse_share, parse_span_arg};
use super::{DEFAULT_SEED, Progress};
use crate::protocols;

#[derive(Debug, Args)]
pub(crate) struct CalibrateArgs {
    /// Calibrate the hosts of these agents, as for run, each once; their certificates are kept here
    /// [default: this host]
    #[arg(long, value_name = "WHERE")]
    pub agents: Vec<String>,
    /// How long agents may take to be there
    #[arg(long, value_name = "SPAN", default_value = "60s", value_parser = parse_span_arg)]
    pub agents_wait: Nanos,
    /// Copy this program to agents' hosts that do not have it
    #[arg(long, requires = "agents")]
    pub deploy: bool,
    /// End when standard input ends
    #[arg(long, hide = true)]
    pub stop_with_stdin: bool,
    /// Two minutes instead of eight: less is known of the tails
    #[arg(long)]
    pub quick: bool,
    /// Protocols to speak; that of the calibrated server is always among them
    #[arg(long, value_parser = parse_protocol(), default_value = "all", value_name = "PROTOCOL")]
    pub protocol: String,
    /// Share of the time to take
    #[arg(long, value_name = "SHARE", default_value_t = 1.0, value_parser = parse_share, hide = true)]
    pub scale: f64,
    /// Keep the bundles here; must be empty or absent [default: a temporary directory]
    #[arg(long, value_name = "DIR", conflicts_with = "agents")]
    pub out: Option<PathBuf>,
    /// One seed draws the same arrivals and service times again
    #[arg(long, value_name = "N", default_value_t = DEFAULT_SEED)]
    pub seed: u64,
    /// Worker threads of the generator [default: by the cores there are]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=256))]
    pub workers: Option<u32>,
    /// How workers wait for the next due time
    #[arg(long, value_enum, default_value_t = PacingArg::Auto, value_name = "HOW")]
    pub pacing: PacingArg,
    /// How to show progress
    #[arg(long, value_enum, default_value_t = Progress::Auto, value_name = "HOW")]
    pub progress: Progress,
    /// Print the certificate as JSON on standard output, everything else on standard error; of
    /// agents' hosts a list
    #[arg(long)]
    pub json: bool,
}

impl CalibrateArgs {
    /// The agents whose hosts are calibrated.
    pub(crate) fn asked(&self) -> AgentsAsked {
        let (at, wait) = (self.agents.clone(), self.agents_wait);
        AgentsAsked { at, wait, deploy: self.deploy, min: None }
    }
}

/// Those that can be calibrated, and all of them.
fn parse_protocol() -> PossibleValuesParser {
    let able = protocols::all().filter(|one| !one.calibration.is_empty());
    let value = |one: &'static Registration| {
        let names: Vec<_> = one.calibration.iter().map(|wire| wire.name).collect();
        PossibleValue::new(one.protocol.name).help(format!("over {}", names.join(" and ")))
    };
    let all = PossibleValue::new("all").help("all of them");
    PossibleValuesParser::new(able.map(value).chain([all]))
}
