//! `plimsoll experiment FILE.toml`: a suite over the levels of factors. With `--factor` instead of a
//! file, over bundles that were made before.

use std::path::{Path, PathBuf};

use plimsoll_model::bundle::write_durably;

use super::cells::requests;
use super::conduct::{Asked, Begin, refuse_occupied, split_conditions};
use super::design::{Design, Order};
use super::{file, joined};
use crate::cli::ExperimentArgs;
use crate::exit::{Exit, Failure};
use crate::signals::Signals;
use crate::verbs::make_directory;
use crate::verbs::run::default_out;

const VERB: &str = "experiment";
/// The experiment's own copy of its file.
const FILE_COPY: &str = "experiment.toml";

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
        // What the file says by now is another experiment.
        (Begin::Resume, Some(copy)) => copy.clone(),
        _ => file.to_owned(),
    };
    let (text, asked) = file::read(&file)?;
    let mut base = file::run_args(&file, &asked)?;
    let ratios = split_conditions(&mut base);
    let response = file::response(&file, &asked)?;
    let factors = file::factors(&file, &asked)?;
    let design = Design::new(factors, asked.repeats, Order::Seeded(asked.seed));
    let requests = requests(&base, &design)?;
    let name = &requests[0].suite.name;
    let dir = args.out.clone().unwrap_or_else(|| default_out(&format!("{VERB}-{name}")));
    let signals = Signals::listen()?;
    if begin == Begin::New {
        refuse_occupied(&dir, &design)?;
        make_directory(&dir)?;
        write_durably(&dir.join(FILE_COPY), text.as_bytes())?;
    }
    let asked = Asked {
        verb: VERB,
        dir: &dir,
        begin,
        design: &design,
        requests: &requests,
        response,
        ratios: &ratios,
        gates: &base.gates,
        force: args.force,
        output: args.output,
    };
    asked.conduct(&signals)
}
