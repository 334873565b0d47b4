//! The runs of an experiment, one after the other: levels are set, the run is made, and its outcome
//! is in the journal before the next begins.

use std::path::{Path, PathBuf};

use super::design::{Change, Design, Step};
use super::hand::Person;
use super::records::{CellEnd, Log, Record};
use crate::exit::{Exit, Failure};
use crate::terminal;
use plimsoll_model::comparison::experiment::HookFailure;
use plimsoll_run::clock::unix_ns;
use plimsoll_run::level_commands::{LevelCommands, NotSet};
use plimsoll_run::{FailureKind, Signals};

/// Where bundles go that do not count: those of interrupted runs, and of invalid ones that were
/// repeated.
const SET_ASIDE_DIR: &str = "set-aside";
/// With fewer cells there is nothing to compare.
const CELLS_MIN: usize = 2;

/// Makes the runs.
pub(crate) trait Bench {
    /// Makes a run into `dir`.
    fn make(&mut self, step: &Step, dir: &Path) -> Result<Made, Failure>;

    /// The finished run in `dir`, if there is one.
    fn finished(&mut self, step: &Step, dir: &Path) -> Result<Option<Made>, Failure>;

    /// Writes the results so far.
    fn keep(&mut self, log: &Log) -> Result<(), Failure>;
}

/// The outcome of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Made {
    /// Exit code of the program after this run alone.
    pub exit: Exit,
    /// Whether its figures count.
    pub counts: bool,
    /// It does not count, but a repeat might.
    pub again: bool,
}

/// A running experiment.
pub(crate) struct Series<'a> {
    design: &'a Design,
    dir: &'a Path,
    log: Log,
    signals: &'a Signals,
    /// For each factor, the level that this process has set.
    current_levels: Vec<Option<usize>>,
    /// For each factor, the level that a command of this process last tried to set.
    touched: Vec<Option<usize>>,
    /// For each factor, the setting that the user has confirmed to this process.
    confirmed: Vec<Option<u32>>,
    worst: Exit,
}

/// The action after a step.
enum Next {
    Goes,
    Interrupted,
}

impl<'a> Series<'a> {
    pub(crate) fn new(design: &'a Design, dir: &'a Path, log: Log, signals: &'a Signals) -> Self {
        let factors = design.factors.len();
        Self {
            design,
            dir,
            log,
            signals,
            current_levels: vec![None; factors],
            touched: vec![None; factors],
            confirmed: vec![None; factors],
            worst: Exit::Valid,
        }
    }

    /// Makes every missing run, then restores what the levels changed. The exit code is the worst
    /// of the runs', and of cells without one.
    pub(crate) fn make(
        mut self,
        bench: &mut impl Bench,
        person: &mut impl Person,
    ) -> (Log, Result<Exit, Failure>) {
        let outcome = self.steps(bench, person);
        let undone = self.undo();
        let outcome = outcome.and_then(|next| {
            undone?;
            Ok(match next {
                Next::Goes => self.worst,
                Next::Interrupted => Exit::Interrupted,
            })
        });
        (self.log, outcome)
    }

    fn steps(&mut self, bench: &mut impl Bench, person: &mut impl Person) -> Result<Next, Failure> {
        let mut failed_before = false;
        for (index, step) in self.design.steps.iter().enumerate() {
            let made = self.log.made(step).is_some();
            if !made && self.log.ended(step.cell).is_none() {
                match self.step(step, bench, person) {
                    Ok(Next::Interrupted) => return Ok(Next::Interrupted),
                    Ok(Next::Goes) => failed_before = false,
                    Err(failure) => self.end_cell(step, failure, &mut failed_before)?,
                }
            }
            let block_ends =
                self.design.steps.get(index + 1).is_none_or(|next| next.block != step.block);
            if block_ends && !made {
                bench.keep(&self.log)?;
            }
        }
        Ok(Next::Goes)
    }

    /// Ends a cell whose run cannot be made. If it is the second in a row, or only one cell is
    /// left, the cause is elsewhere and the experiment ends.
    fn end_cell(
        &mut self,
        step: &Step,
        failure: Failure,
        failed_before: &mut bool,
    ) -> Result<(), Failure> {
        let why = match failure {
            Failure::Hook(failure) => CellEnd::Hook(*failure),
            Failure::Other { kind: FailureKind::Unusable, message } => CellEnd::Run(message),
            other => return Err(other),
        };
        let name = &self.design.names[step.cell];
        terminal::note(&format!(
            "{name}: no run: {why}\nthis cell gets no more runs; plimsoll \
             resume {} tries it again",
            self.dir.display()
        ));
        let is_run = matches!(why, CellEnd::Run(_));
        let message = why.to_string();
        let (cell, block, at_unix_ns) = (step.cell, step.block, unix_ns());
        self.log.write(Record::CellEnded { cell, block, why: Box::new(why), at_unix_ns })?;
        self.worst = self.worst.max(Exit::Invalid);
        let cells = 0..self.design.cells.len();
        let left = cells.filter(|cell| self.log.ended(*cell).is_none()).count();
        if is_run && (*failed_before || left < CELLS_MIN) {
            return Err(Failure::unusable(message));
        }
        *failed_before = is_run;
        Ok(())
    }

    /// Makes one run, and repeats it once if it is invalid.
    fn step(
        &mut self,
        step: &Step,
        bench: &mut impl Bench,
        person: &mut impl Person,
    ) -> Result<Next, Failure> {
        let bundle_dir = self.design.bundle_dir(self.dir, step);
        let mut made = match bench.finished(step, &bundle_dir)? {
            // The program was killed between the end of the run and its record.
            Some(made) => made,
            None => {
                if let Next::Interrupted = self.set_levels(step, person)? {
                    return Ok(Next::Interrupted);
                }
                self.set_aside(&bundle_dir)?;
                bench.make(step, &bundle_dir)?
            }
        };
        if made.again && made.exit != Exit::Interrupted {
            terminal::note("the run is invalid, and is made again once");
            if let Next::Interrupted = self.set_levels(step, person)? {
                return Ok(Next::Interrupted);
            }
            self.set_aside(&bundle_dir)?;
            made = bench.make(step, &bundle_dir)?;
        }
        if made.exit == Exit::Interrupted {
            return Ok(Next::Interrupted);
        }
        self.worst = self.worst.max(made.exit);
        let (cell, block, at_unix_ns) = (step.cell, step.block, unix_ns());
        self.log.write(Record::Run { cell, block, valid: made.counts, at_unix_ns })?;
        Ok(Next::Goes)
    }

    /// Sets the levels that differ from the current ones, and verifies the rest.
    fn set_levels(&mut self, step: &Step, person: &mut impl Person) -> Result<Next, Failure> {
        let levels = &self.design.cells[step.cell].levels;
        for (index, level) in levels.iter().enumerate() {
            let factor = &self.design.factors[index];
            let is_hand = factor.hand.is_some();
            let setting = step.settings[index];
            if is_hand && self.confirmed[index] != Some(setting) {
                if !person.sets(
                    factor,
                    (*level, self.current_levels[index]),
                    step.block,
                    self.signals,
                )? {
                    return Ok(Next::Interrupted);
                }
                self.log.write(Record::HandSet {
                    factor: factor.name.clone(),
                    level: factor.levels[*level].name.clone(),
                    block: step.block,
                    at_unix_ns: unix_ns(),
                })?;
                self.confirmed[index] = Some(setting);
            }
            let stands = self.current_levels[index].replace(*level) == Some(*level);
            for commands in commands_of(&factor.levels[*level].changes) {
                self.touched[index] = Some(*level);
                let outcome = match stands {
                    true => commands.verify(self.signals),
                    false => commands.set(self.signals),
                };
                match outcome {
                    Ok(()) => {}
                    Err(NotSet::Interrupted) => return Ok(Next::Interrupted),
                    Err(NotSet::Failed(failure)) => {
                        // The current level is unknown now.
                        self.current_levels[index] = None;
                        self.confirmed[index] = None;
                        return Err(Failure::Hook(failure));
                    }
                }
            }
        }
        Ok(Next::Goes)
    }

    /// Restores the state before the experiment, also after Ctrl-C.
    fn undo(&mut self) -> Result<(), Failure> {
        let mut failed: Option<HookFailure> = None;
        for (factor, touched) in self.design.factors.iter().zip(&self.touched) {
            let (Some(undo), Some(level)) = (&factor.undo, touched) else { continue };
            let Some(commands) = commands_of(&factor.levels[*level].changes).next() else {
                continue;
            };
            if let Err(NotSet::Failed(failure)) = commands.undo(undo, &Signals::unheard()) {
                let (failure, at_unix_ns) = (Box::new(*failure.clone()), unix_ns());
                self.log.write(Record::NotUndone { failure: failure.clone(), at_unix_ns })?;
                failed = Some(*failure);
            }
        }
        match failed {
            None => Ok(()),
            Some(failure) => Err(Failure::unusable(format!(
                "{failure}\nthe server is left with {} = {}; restore it by hand",
                failure.factor, failure.level
            ))),
        }
    }

    /// Moves a bundle that does not count away; it is kept.
    fn set_aside(&self, bundle_dir: &Path) -> Result<(), Failure> {
        if !bundle_dir.exists() {
            return Ok(());
        }
        let within = bundle_dir.strip_prefix(self.dir).unwrap_or(bundle_dir);
        let name = within.to_string_lossy().replace('/', "-");
        let aside = self.dir.join(SET_ASIDE_DIR);
        let free = (1..).map(|n| aside.join(format!("{name}-{n}"))).find(|it| !it.exists());
        let free: PathBuf = free.unwrap_or(aside.clone());
        std::fs::create_dir_all(&aside).and_then(|()| std::fs::rename(bundle_dir, &free)).map_err(
            |e| {
                Failure::unusable(format!(
                    "{}: cannot move it to {}: {e}",
                    bundle_dir.display(),
                    free.display()
                ))
            },
        )
    }
}

/// The commands among a level's changes, before the run.
fn commands_of(changes: &[Change]) -> impl Iterator<Item = &LevelCommands> {
    changes.iter().filter_map(|change| match change {
        Change::Commands(commands) => Some(commands),
        _ => None,
    })
}
