//! `cargo lab fleet`: many agents under one controller. What fails, what it costs, how close they
//! start.

mod failures;
mod meter;
mod overhead;
mod scale;
mod site;
mod target;
mod trial;
mod verdict;

use std::path::PathBuf;

use clap::{Parser, ValueEnum};
use xtask::verb::Result;

pub use meter::{METER, meter};

use crate::program;

/// The page that holds the tables.
const PAGE: &str = "docs/fleet.md";

/// What is looked at.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Part {
    /// Agents, links and controllers that fail at random instants; needs root and sshd
    Failures,
    /// Starts of 16, 64 and 256 agents, and the size of what one sends
    Scale,
    /// CPU per op of four agents, compared with one
    Overhead,
}

/// Options of `cargo lab fleet`.
#[derive(Parser)]
pub struct Options {
    part: Part,
    /// The random instants follow from it.
    #[arg(long, default_value_t = 1876)]
    seed: u64,
    /// Failures of agents.
    #[arg(long, default_value_t = 30)]
    agents: u32,
    /// Failures of controllers.
    #[arg(long, default_value_t = 20)]
    controllers: u32,
    /// Pairs of runs for `overhead`.
    #[arg(long, default_value_t = 7, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Program to measure instead of a release build made now.
    #[arg(long)]
    program: Option<PathBuf>,
    /// Replace the table in docs/fleet.md.
    #[arg(long)]
    write: bool,
}

/// Looks at one part and prints its table.
pub fn fleet(options: Options) -> Result<()> {
    let program = options.program.clone().map_or_else(program::plimsoll, Ok)?;
    match options.part {
        Part::Failures => failures::failures(&program, &options),
        Part::Scale => scale::scale(&program, &options),
        Part::Overhead => overhead::overhead(&program, &options),
    }
}

#[cfg(test)]
impl Options {
    fn of_seed(seed: u64) -> Self {
        let seed = seed.to_string();
        Self::try_parse_from(["fleet", "failures", "--seed", &seed]).unwrap()
    }
}
