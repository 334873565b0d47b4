//! Conducts an experiment for a verb: from the first run to the page.

use std::path::{Path, PathBuf};

use plimsoll_analysis::compare::CompareOptions;
use plimsoll_model::bundle::BundleWriter;
use plimsoll_model::comparison::experiment::{BestClaim, Response, RunAgain};
use plimsoll_model::comparison::{Comparison, RUNS_MIN, RatioGate};
use plimsoll_run::Signals;
use plimsoll_run::coordinator::RunRequest;
use plimsoll_run::secrets::command_line;

use super::bench::Real;
use super::design::Design;
use super::hand::AtTheTerminal;
use super::outcome::{self, Outcome};
use super::records::{Log, Started, has_begun};
use super::series::Series;

use crate::exit::{Exit, Failure};
use crate::flags::{FailIf, GateArgs, Output, RunArgs};
use crate::terminal;
use crate::verbs::compare::{show, write_junit};
use crate::verbs::make_directory;

/// Where the bundles of the best combination and the first go that are run again.
const AGAIN_DIR: &str = "again";

/// Whether an experiment begins or continues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Begin {
    /// Begins, in a new directory.
    New,
    /// Continues an interrupted experiment.
    Resume,
}

/// An experiment as a verb requests it.
pub(crate) struct ExperimentRequest<'a> {
    /// Names the files: `experiment`, `versus`, `scale`.
    pub verb: &'static str,
    /// Where the bundles go.
    pub dir: &'a Path,
    pub begin: Begin,
    pub design: &'a Design,
    /// One for each cell.
    pub requests: &'a [RunRequest],
    pub response: Response,
    /// Conditions on ratios.
    pub ratios: &'a [RatioGate],
    pub gates: &'a GateArgs,
    /// Invalid runs count too.
    pub force: bool,
    pub output: Output,
}

impl ExperimentRequest<'_> {
    /// Makes the runs, compares the cells after each repeat, and shows the outcome.
    pub(crate) fn conduct(&self, signals: &Signals) -> Result<Exit, Failure> {
        let (mut comparison, mut outcome) = self.make(self.design, signals)?;
        if let (Some(comparison), &Ok(exit)) = (&mut comparison, &outcome)
            && exit != Exit::Interrupted
        {
            outcome = self.run_best_again(comparison, signals).map(|again| again.max(exit));
        }
        if let Some(comparison) = &comparison {
            outcome::keep(self.verb, self.dir, comparison)?;
            show(comparison, self.output.json);
            write_junit(self.gates.junit.as_deref(), comparison)?;
            let report = self.dir.join(format!("{}.html", self.verb));
            terminal::note(&format!("report: {}", report.display()));
        }
        if matches!(outcome, Err(_) | Ok(Exit::Interrupted)) && has_begun(self.dir)? {
            terminal::note(&format!("to go on: plimsoll resume {}", self.dir.display()));
        }
        let fails = comparison.is_some_and(|comparison| comparison.fails());
        outcome.map(|exit| if fails { exit.max(Exit::Invalid) } else { exit })
    }

    /// Makes the runs and compares them as those of the design `compared`.
    fn make(
        &self,
        compared: &Design,
        signals: &Signals,
    ) -> Result<(Option<Comparison>, Result<Exit, Failure>), Failure> {
        let options = CompareOptions {
            paired: true,
            force: self.force,
            gates: self.ratios,
            unsure_fails: self.gates.fail_if_unsure,
        };
        let log = self.log()?;
        let mut real = Real {
            design: self.design,
            requests: self.requests,
            outcome: Outcome::new(self.verb, self.dir, compared, options, self.response),
            signals,
            progress: self.output.progress,
            force: self.force,
        };
        real.read_made(self.dir, &log)?;
        let series = Series::new(self.design, self.dir, log, signals);
        let (log, outcome) = series.make(&mut real, &mut AtTheTerminal);
        Ok((real.outcome.comparison(log.records())?, outcome))
    }

    /// Runs the first combination and the best again where the best of many may be so by chance.
    fn run_best_again(
        &self,
        comparison: &mut Comparison,
        signals: &Signals,
    ) -> Result<Exit, Failure> {
        let experiment = comparison.experiment.as_mut();
        let Some(best) = experiment.and_then(|it| it.best.as_mut()).filter(|best| {
            let is_one_of_many = self.design.cells.len() > 2 && self.design.repeats > 1;
            is_one_of_many && best.claim == BestClaim::RunAgain
        }) else {
            return Ok(Exit::Valid);
        };
        let design = self.design.again(best.cell);
        let dir = self.dir.join(AGAIN_DIR);
        let begin = if has_begun(&dir)? { Begin::Resume } else { Begin::New };
        make_directory(&dir)?;
        let again = ExperimentRequest {
            dir: &dir,
            begin,
            design: &design,
            requests: &[self.requests[0].clone(), self.requests[best.cell].clone()],
            ratios: &[],
            ..*self
        };
        terminal::note(&format!("{} and {} run again", design.names[0], design.names[1]));
        let (comparison, exit) = again.make(&design.as_one_factor(), signals)?;
        let effects = comparison.and_then(|it| it.experiment).map(|it| it.effects);
        best.again = effects.and_then(|effects| {
            let effect = effects.into_iter().next()?;
            let runs = design.repeats;
            Some(RunAgain { ratio: effect.ratio?, interval: effect.interval, runs })
        });
        exit
    }

    fn log(&self) -> Result<Log, Failure> {
        match self.begin {
            Begin::Resume => Log::resume(self.dir, &self.design.names),
            Begin::New => {
                let started = Started::now(command_line(), self.design.names.clone())?;
                Log::create(self.dir, started)
            }
        }
    }
}

/// Refuses a directory that already holds runs, before hours of work are spent.
pub(crate) fn refuse_occupied(dir: &Path, design: &Design) -> Result<(), Failure> {
    // An experiment that made no progress, perhaps for a mistake in its command, may begin again.
    if has_begun(dir)? {
        return Err(Failure::wrong(format!(
            "{dir}: an experiment is there already; go on with plimsoll resume {dir}, or name \
             another directory with --out",
            dir = dir.display()
        )));
    }
    let bundle_dirs: Vec<PathBuf> =
        design.steps.iter().map(|step| design.bundle_dir(dir, step)).collect();
    bundle_dirs.iter().try_for_each(|bundle_dir| Ok(BundleWriter::refuse_occupied(bundle_dir)?))
}

/// Separates conditions: those on each run stay in its arguments, those on ratios are returned for
/// the comparison. Refuses the latter with too few `repeats` to give a ratio an interval.
pub(crate) fn split_conditions(
    args: &mut RunArgs,
    repeats: u32,
) -> Result<Vec<RatioGate>, Failure> {
    let all = std::mem::take(&mut args.gates.fail_if);
    let (ratios, figures): (Vec<FailIf>, Vec<FailIf>) =
        all.into_iter().partition(|it| matches!(it, FailIf::Ratio(_)));
    args.gates.fail_if = figures;
    let ratios = ratios.into_iter().filter_map(|condition| match condition {
        FailIf::Ratio(gate) => Some(gate),
        FailIf::Figure(_) => None,
    });
    let ratios: Vec<RatioGate> = ratios.collect();
    match ratios.first().filter(|_| (repeats as usize) < RUNS_MIN) {
        None => Ok(ratios),
        Some(gate) => Err(Failure::wrong(format!(
            "--fail-if '{gate}': a condition on a ratio needs {RUNS_MIN} runs a side, and \
             {repeats} would be made; write --repeat {RUNS_MIN} (in the file of an experiment \
             repeats = {RUNS_MIN}) or more"
        ))),
    }
}
