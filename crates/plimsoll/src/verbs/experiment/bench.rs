//! Makes the runs of an experiment on real servers, and keeps the outcome of each.

use std::path::Path;

use plimsoll_analysis::compare::RunInput;
use plimsoll_model::finding::Rule;
use plimsoll_model::reported::ReportedFigure;
use plimsoll_model::result::RunResult;
use plimsoll_run::coordinator::{RunRequest, run};
use plimsoll_run::{RunProgress as _, Signals, derive};

use super::design::{Design, Step};
use super::outcome::{self, Outcome};
use super::records::Log;
use super::series::{Bench, Made};
use crate::exit::{Exit, Failure};
use crate::flags::Progress;
use crate::terminal::Live;
use crate::verbs::groups;

/// Makes runs on real servers.
pub(crate) struct Real<'a> {
    pub design: &'a Design,
    /// One for each cell.
    pub requests: &'a [RunRequest],
    pub outcome: Outcome<'a>,
    pub signals: &'a Signals,
    pub progress: Progress,
    /// Invalid runs count too.
    pub force: bool,
}

impl Bench for Real<'_> {
    fn make(&mut self, step: &Step, dir: &Path) -> Result<Made, Failure> {
        let mut live = Live::new(self.progress);
        live.line(&self.title(step));
        let request = RunRequest { out: dir.to_owned(), ..self.requests[step.cell].clone() };
        let end = run(&request, self.signals, &mut live)?;
        live.line(&headline(&end.result));
        self.made(step, dir, (Exit::from(&end), end.result))
    }

    fn finished(&mut self, step: &Step, dir: &Path) -> Result<Option<Made>, Failure> {
        if !groups::is_finished(dir) {
            return Ok(None);
        }
        let (result, _) = derive::finish(dir)?;
        self.made(step, dir, (Exit::from(&result), result)).map(Some)
    }

    fn keep(&mut self, log: &Log) -> Result<(), Failure> {
        match self.outcome.comparison(log.records())? {
            Some(comparison) => outcome::keep(self.outcome.verb, self.outcome.dir, &comparison),
            None => Ok(()),
        }
    }
}

impl Real<'_> {
    /// Reads the runs that an earlier part of the experiment made.
    pub(crate) fn read_made(&mut self, dir: &Path, log: &Log) -> Result<(), Failure> {
        for step in &self.design.steps {
            if log.made(step).is_some() {
                let bundle_dir = self.design.bundle_dir(dir, step);
                let input = groups::run_of(&bundle_dir)?;
                self.outcome.add(step, input);
            }
        }
        Ok(())
    }

    fn made(
        &mut self,
        step: &Step,
        dir: &Path,
        (exit, result): (Exit, RunResult),
    ) -> Result<Made, Failure> {
        let counts = result.verdict.valid || self.force;
        let again = !counts && another_may_be_valid(&result);
        if exit != Exit::Interrupted {
            let input: RunInput = groups::input(dir, result)?;
            self.outcome.add(step, input);
        }
        Ok(Made { exit, counts, again })
    }

    /// `run 3 of 12 (repeat 1 of 3), quota 0.3:`.
    fn title(&self, step: &Step) -> String {
        let at = self.design.steps.iter().position(|it| it == step).unwrap_or_default();
        format!(
            "run {} of {} (repeat {} of {}), {}:",
            at + 1,
            self.design.steps.len(),
            step.block,
            self.design.repeats,
            self.design.names[step.cell]
        )
    }
}

/// Whether a repeat might be valid: a debug build's never is.
fn another_may_be_valid(result: &RunResult) -> bool {
    let of_program = |rule: &Rule| rule.name() == "debug_build";
    !result.verdict.reasons.iter().any(|reason| of_program(&reason.rule))
}

fn headline(result: &RunResult) -> String {
    let verdict = if result.verdict.valid { "valid" } else { "invalid" };
    match result.summary.value {
        Some(value) => {
            let value = ReportedFigure::new(value, None).throughput_text(&result.summary.unit);
            format!("{value}, {verdict}")
        }
        None => format!("no figure, {verdict}"),
    }
}
