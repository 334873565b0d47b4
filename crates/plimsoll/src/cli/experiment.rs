//! Flags of `plimsoll experiment`.

use std::path::PathBuf;

use clap::Args;

use super::Output;
use super::values::parse_joined;

#[derive(Debug, Args)]
pub(crate) struct ExperimentArgs {
    /// File with suite, target, repeats, and factors with their levels; docs/experiments.md says
    /// what it holds
    #[arg(value_name = "FILE.toml", required_unless_present = "factor")]
    pub file: Option<PathBuf>,
    /// Bundles that were made before, with the levels they were made at, instead of a file, for
    /// example clock=350,run=runs/slow; given once for each time the levels were set
    #[arg(
        long,
        value_name = "NAME=LEVEL,…,run=DIR",
        value_parser = parse_joined,
        conflicts_with = "file"
    )]
    pub factor: Vec<Joined>,
    /// Where the bundles go; must be empty or absent [default: runs/experiment-SUITE-TIME]. With
    /// --factor where page, table and document go
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Take invalid runs too; every output is marked
    #[arg(long)]
    pub force: bool,
    #[command(flatten)]
    pub output: Output,
}

/// Bundles and the levels they were made at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Joined {
    /// Names of factors with their levels.
    pub levels: Vec<(String, String)>,
    /// A bundle, a directory of some, or the stem of repeats.
    pub run: String,
}
