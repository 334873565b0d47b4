//! Flags of `plimsoll compare` and `plimsoll versus`, and conditions, which either may be given.

use std::path::PathBuf;
use std::str::FromStr;

use clap::Args;
use plimsoll_model::comparison::RatioGate;
use plimsoll_model::condition::ConditionError;
use plimsoll_model::gate::Gate;
use plimsoll_model::suite::Override;

use super::values::{parse_label, parse_override};
use super::{RunArgs, YesNo};

#[derive(Debug, Args)]
pub(crate) struct CompareArgs {
    /// Bundles of runs, or directories that hold several (a group each; DIR stands for DIR-1,
    /// DIR-2 … of run --repeat too). The first is the one to compare with; with --against all of
    /// them are. Among them published:NAME draws a published curve beside those of the runs; two
    /// published results without runs are compared with each other
    #[arg(value_name = "RUNS", required_unless_present = "label")]
    pub runs: Vec<String>,
    /// Runs of the second group
    #[arg(long, value_name = "RUNS", num_args = 1.., requires = "runs")]
    pub against: Vec<String>,
    /// A group with its name, for comparisons of more than two; may be given often
    #[arg(long, value_name = "NAME=DIR[,DIR…]", value_parser = parse_label)]
    pub label: Vec<Labelled>,
    /// The first runs of all groups were made one after the other, so were the second, and so on,
    /// as plimsoll versus makes them
    #[arg(long)]
    pub paired: bool,
    /// Compare runs of different methods, and invalid ones; every output is marked
    #[arg(long)]
    pub force: bool,
    /// What the systems cost, each by its group's label or by the name of its first directory
    #[arg(long, value_name = "FILE.toml")]
    pub prices: Option<PathBuf>,
    /// HTML file to write
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Markdown file to write
    #[arg(long, value_name = "FILE")]
    pub md: Option<PathBuf>,
    /// Print the comparison as JSON on standard output, everything else on standard error
    #[arg(long)]
    pub json: bool,
    /// End with exit code 1 if this is so of the ratio to the first group, for example
    /// 'p99 > 1.05x', 'peak < 0.97x', 'p99@4000 > 1.1x' (one load point); may be given often
    #[arg(long, value_name = "CONDITION")]
    pub fail_if: Vec<RatioGate>,
    /// Whether a limit within a ratio's interval fails too
    #[arg(long, value_enum, value_name = "yes|no", default_value_t = YesNo::No, requires = "fail_if")]
    pub fail_if_unsure: YesNo,
    /// Write the conditions as JUnit XML
    #[arg(long, value_name = "FILE")]
    pub junit: Option<PathBuf>,
}

/// A group by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Labelled {
    /// What it is called.
    pub name: String,
    /// Its bundles, or directories of them.
    pub runs: Vec<String>,
}

#[derive(Debug, Args)]
#[command(
    mut_arg("targets", |arg| arg.value_names(["TARGET_A", "TARGET_B"]).num_args(2)),
    mut_arg("repeat", |arg| arg.default_value("5").help(
        "Pairs of runs to make: A B, B A, A B …; fewer than three claim nothing")),
    mut_arg("out", |arg| arg.help(
        "Where the bundles go: DIR/a/1, DIR/b/1 … [default: runs/versus-SUITE-TIME]")),
    mut_arg("json", |arg| arg.help(
        "Print the comparison as JSON on standard output, everything else on standard error")),
    mut_arg("junit", |arg| arg.help("Write conditions on ratios as JUnit XML")),
    mut_arg("fail_if", |arg| arg.help(
        "End with exit code 1 if this is so: of the ratio of B to A ('p99 > 1.05x', \
         'peak < 0.97x'), or of any run ('errors > 0.1%'); may be given often")),
)]
pub(crate) struct VersusArgs {
    #[command(flatten)]
    pub run: RunArgs,
    /// Set a value of the suite for A only; may be given often
    #[arg(long, value_name = "KEY=VALUE", value_parser = parse_override, help_heading = "Options")]
    pub set_a: Vec<Override>,
    /// Set a value of the suite for B only; may be given often
    #[arg(long, value_name = "KEY=VALUE", value_parser = parse_override, help_heading = "Options")]
    pub set_b: Vec<Override>,
    /// Compare invalid runs too; every output is marked
    #[arg(long, help_heading = "Options")]
    pub force: bool,
}

/// A condition under which a command fails.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum FailIf {
    /// On a figure of a run.
    Figure(Gate),
    /// On a ratio of two groups.
    Ratio(RatioGate),
}

impl FromStr for FailIf {
    type Err = ConditionError;

    fn from_str(text: &str) -> Result<Self, ConditionError> {
        match text.trim_end().ends_with(['x', '×']) {
            true => text.parse().map(Self::Ratio),
            false => text.parse().map(Self::Figure),
        }
    }
}
