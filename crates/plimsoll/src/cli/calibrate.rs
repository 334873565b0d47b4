//! Flags of `plimsoll calibrate`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::run::PacingArg;
use super::values::parse_share;
use super::{DEFAULT_SEED, Progress};

#[derive(Debug, Args)]
pub struct CalibrateArgs {
    /// Two minutes instead of eight: less is known of the tails
    #[arg(long)]
    pub quick: bool,
    /// Protocols to speak; that of the calibrated server is always among them
    #[arg(long, value_enum, default_value_t = CalibrateProtocol::All, value_name = "PROTOCOL")]
    pub protocol: CalibrateProtocol,
    /// Share of the time to take
    #[arg(long, value_name = "SHARE", default_value_t = 1.0, value_parser = parse_share, hide = true)]
    pub scale: f64,
    /// Keep the bundles here; must be empty or absent [default: a temporary directory]
    #[arg(long, value_name = "DIR")]
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
    /// Print the certificate as JSON on standard output, everything else on standard error
    #[arg(long)]
    pub json: bool,
}

/// What a certificate is to cover.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum CalibrateProtocol {
    /// HTTP, with and without TLS
    Http,
    /// NFS over TCP
    Nfs,
    /// SMB
    Smb,
    /// Transactions, nothing else
    App,
    /// All of them
    All,
}
