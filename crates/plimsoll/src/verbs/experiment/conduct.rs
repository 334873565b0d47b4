//! An experiment as a verb asks for it: from the first run to the page.

use std::path::{Path, PathBuf};

use plimsoll_analysis::compare::Wishes;
use plimsoll_model::bundle::BundleWriter;
use plimsoll_model::comparison::RatioGate;
use plimsoll_model::comparison::experiment::Response;

use super::bench::Real;
use super::design::Design;
use super::hand::AtTheTerminal;
use super::outcome::Outcome;
use super::records::{Log, Started, has_begun};
use super::series::Series;

use crate::cli::{FailIf, GateArgs, Output, RunArgs, YesNo};
use crate::coordinator::RunRequest;
use crate::exit::{Exit, Failure};
use crate::secrets::command_line;
use crate::signals::Signals;
use crate::terminal;
use crate::verbs::compare::{show, write_junit};

/// Does an experiment begin, or go on?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Begin {
    /// It begins, in a directory of its own.
    New,
    /// It goes on where it was.
    Resume,
}

/// An experiment as a verb asks for it.
pub(crate) struct Asked<'a> {
    /// Names the files: `experiment`, `versus`, `scale`.
    pub verb: &'static str,
    /// Where the bundles go.
    pub dir: &'a Path,
    pub begin: Begin,
    pub design: &'a Design,
    /// Of each cell.
    pub requests: &'a [RunRequest],
    pub response: Response,
    /// Conditions on ratios.
    pub ratios: &'a [RatioGate],
    pub gates: &'a GateArgs,
    /// Invalid runs count too.
    pub force: bool,
    pub output: Output,
}

impl Asked<'_> {
    /// Makes the runs, compares the cells after each repeat, and shows what came out.
    pub(crate) fn conduct(&self, signals: &Signals) -> Result<Exit, Failure> {
        let wishes = Wishes {
            paired: true,
            force: self.force,
            gates: self.ratios,
            unsure_fails: self.gates.fail_if_unsure == YesNo::Yes,
        };
        let log = self.log()?;
        let mut real = Real {
            design: self.design,
            requests: self.requests,
            outcome: Outcome::new(self.verb, self.dir, self.design, wishes, self.response),
            signals,
            progress: self.output.progress,
            force: self.force,
        };
        real.read_made(self.dir, &log)?;
        let series = Series::new(self.design, self.dir, log, signals);
        let (log, outcome) = series.make(&mut real, &mut AtTheTerminal);
        let comparison = real.outcome.comparison(log.records())?;
        if let Some(comparison) = &comparison {
            real.outcome.keep(comparison)?;
            show(comparison, self.output.json);
            write_junit(self.gates.junit.as_deref(), comparison)?;
            let report = self.dir.join(format!("{}.html", self.verb));
            terminal::note(&format!("report: {}", report.display()));
        }
        if matches!(outcome, Err(_) | Ok(Exit::Interrupted)) {
            terminal::note(&format!("to go on: plimsoll resume {}", self.dir.display()));
        }
        let fails = comparison.is_some_and(|comparison| comparison.fails());
        outcome.map(|exit| if fails { exit.max(Exit::Invalid) } else { exit })
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

/// Refuses a directory that holds runs already; hours may lie before the last of them.
pub(crate) fn refuse_occupied(dir: &Path, design: &Design) -> Result<(), Failure> {
    // One that got nowhere, for a mistake in its command perhaps, may begin anew.
    if has_begun(dir)? {
        return Err(Failure::wrong(format!(
            "{dir}: an experiment is there already; go on with plimsoll resume {dir}, or name \
             another directory with --out",
            dir = dir.display()
        )));
    }
    let places: Vec<PathBuf> = design.steps.iter().map(|step| design.place(dir, step)).collect();
    places.iter().try_for_each(|place| Ok(BundleWriter::refuse_occupied(place)?))
}

/// The conditions on each run stay with its arguments; those on ratios are the comparison's.
pub(crate) fn split_conditions(args: &mut RunArgs) -> Vec<RatioGate> {
    let all = std::mem::take(&mut args.gates.fail_if);
    let (ratios, figures): (Vec<FailIf>, Vec<FailIf>) =
        all.into_iter().partition(|it| matches!(it, FailIf::Ratio(_)));
    args.gates.fail_if = figures;
    let ratios = ratios.into_iter().filter_map(|condition| match condition {
        FailIf::Ratio(gate) => Some(gate),
        FailIf::Figure(_) => None,
    });
    ratios.collect()
}
