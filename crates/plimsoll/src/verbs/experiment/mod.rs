//! Experiments: one suite over the levels of factors, repeated, in an order that distributes drift
//! evenly. `plimsoll experiment`, `versus` and `scale` use it.
//!
//! | module | purpose |
//! | --- | --- |
//! | `conduct` | conducts an experiment for a verb, from the first run to the page |
//! | `design` | factors, cells, and the order of runs |
//! | `file` | reads factors and options |
//! | `cells` | makes the request of each cell's runs |
//! | `series` | sets levels, makes the runs, keeps the journal |
//! | `hand` | asks the user to set a level |
//! | `records` | the journal, `experiment.jsonl` |
//! | `bench` | makes a run on real servers |
//! | `outcome` | the comparison of the cells |
//! | `joined` | cells of existing bundles |

mod bench;
mod cells;
mod conduct;
pub(crate) mod design;
pub(crate) mod file;
mod hand;
mod joined;
mod outcome;
mod records;
mod series;
#[cfg(test)]
mod tests;

pub(crate) use cells::{refuse_ladders, requests};
pub(crate) use conduct::{Begin, ExperimentRequest, refuse_occupied, split_conditions};
pub(crate) use records::started_in;

use std::path::{Path, PathBuf};

use clap::Args;
use plimsoll_model::bundle::write_durably;

use super::make_directory;
use super::run::default_out;
use crate::exit::{Exit, Failure};
use crate::flags::Output;
use crate::interrupts;
use design::{Design, Order};
use joined::{Joined, parse_joined};

const VERB: &str = "experiment";
/// The experiment's own copy of its file.
const FILE_COPY: &str = "experiment.toml";

#[derive(Debug, Args)]
pub(crate) struct ExperimentArgs {
    /// File with suite, target, repeats, and factors with their levels; see docs/experiments.md
    #[arg(value_name = "FILE.toml", required_unless_present = "factor")]
    pub file: Option<PathBuf>,
    /// Existing bundles with the levels they were made at, instead of a file, for example
    /// clock=350,run=runs/slow; given once for each time the levels were set
    #[arg(
        long,
        value_name = "NAME=LEVEL,…,run=DIR",
        value_parser = parse_joined,
        conflicts_with = "file"
    )]
    pub factor: Vec<Joined>,
    /// Where the bundles go; must be empty or absent [default: runs/experiment-SUITE-TIME]. With
    /// --factor, where page, table and document go
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Take invalid runs too; every output is marked
    #[arg(long)]
    pub force: bool,
    #[command(flatten)]
    pub output: Output,
}

/// Makes the runs of a file, or joins bundles.
pub(crate) fn perform(args: &ExperimentArgs, begin: Begin) -> Result<Exit, Failure> {
    match &args.file {
        Some(file) => conducted(args, file, begin),
        None => joined::perform(args),
    }
}

fn conducted(args: &ExperimentArgs, file: &Path, begin: Begin) -> Result<Exit, Failure> {
    let copy = args.out.as_ref().map(|dir| dir.join(FILE_COPY));
    let file: PathBuf = match (begin, &copy) {
        // The current content of the file is another experiment.
        (Begin::Resume, Some(copy)) => copy.clone(),
        _ => file.to_owned(),
    };
    let (text, experiment) = file::read(&file)?;
    let response = file::response(&file, &experiment)?;
    let factors = file::factors(&file, &experiment)?;
    let design = Design::new(factors, experiment.repeats, Order::Seeded(experiment.seed));
    let common_run = |flags: &[String]| {
        let mut run = file::common_run(&file, &experiment, flags)?;
        let ratios = split_conditions(run.args(), experiment.repeats)?;
        Ok::<_, Failure>((run, ratios))
    };
    let (mut common, ratios) = common_run(&[])?;
    let requests = requests(&design, |flags| Ok(common_run(flags)?.0))?;
    let name = &requests[0].suite.name;
    let dir = args.out.clone().unwrap_or_else(|| default_out(&format!("{VERB}-{name}")));
    let signals = interrupts::listen()?;
    if begin == Begin::New {
        refuse_occupied(&dir, &design)?;
        make_directory(&dir)?;
        write_durably(&dir.join(FILE_COPY), text.as_bytes())?;
    }
    let request = ExperimentRequest {
        verb: VERB,
        dir: &dir,
        begin,
        design: &design,
        requests: &requests,
        response,
        ratios: &ratios,
        gates: &common.args().gates,
        force: args.force,
        output: args.output,
    };
    request.conduct(&signals)
}
