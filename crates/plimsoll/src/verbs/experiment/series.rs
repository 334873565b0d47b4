//! The runs of an experiment, one after the other: levels are set, the run is made, and what came
//! of it is in the journal before the next begins.

use std::path::{Path, PathBuf};

use super::design::{Change, Design, Step};
use super::hand::Person;
use super::records::{CellEnd, Log, Record};
use crate::clock::unix_ns;
use crate::exit::{Exit, Failure};
use crate::level_commands::{LevelCommands, NotSet};
use crate::signals::Signals;
use crate::terminal;
use plimsoll_model::comparison::experiment::HookFailure;

/// Where bundles go that do not count: of runs that were cut off, and of invalid ones that were
/// made again.
const SET_ASIDE_DIR: &str = "set-aside";
/// With fewer cells nothing is compared.
const CELLS_MIN: usize = 2;

/// What makes the runs.
pub(crate) trait Bench {
    /// Makes a run into `dir`.
    fn make(&mut self, step: &Step, dir: &Path) -> Result<Made, Failure>;

    /// The run that is in `dir`, if it came to its end.
    fn finished(&mut self, step: &Step, dir: &Path) -> Result<Option<Made>, Failure>;

    /// Writes down what is known so far.
    fn keep(&mut self, log: &Log) -> Result<(), Failure>;
}

/// How a run came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Made {
    /// How the program would end after this run alone.
    pub exit: Exit,
    /// Its figures count.
    pub counts: bool,
    /// It does not count, and another might.
    pub again: bool,
}

/// An experiment under way.
pub(crate) struct Series<'a> {
    design: &'a Design,
    dir: &'a Path,
    log: Log,
    signals: &'a Signals,
    /// Of each factor, the level that this process has set.
    standing: Vec<Option<usize>>,
    /// Of each factor, the level that a command of this process last tried to set.
    touched: Vec<Option<usize>>,
    /// Of each factor, the setting that the user has confirmed to this process.
    confirmed: Vec<Option<u32>>,
    worst: Exit,
}

/// What follows a step.
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
            standing: vec![None; factors],
            touched: vec![None; factors],
            confirmed: vec![None; factors],
            worst: Exit::Valid,
        }
    }

    /// Makes every run that is missing, then restores what the levels changed. The exit code is
    /// the worst of the runs', and of cells without one.
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

    /// A run that cannot be made ends its cell. Where it is the second in a row, or nothing is
    /// left to compare with, the fault is not the cell's.
    fn end_cell(
        &mut self,
        step: &Step,
        failure: Failure,
        failed_before: &mut bool,
    ) -> Result<(), Failure> {
        let why = match failure {
            Failure::Hook(failure) => CellEnd::Hook(*failure),
            Failure::Other { exit: Exit::Unusable, message } => CellEnd::Run(message),
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

    /// One run, made again where it is invalid.
    fn step(
        &mut self,
        step: &Step,
        bench: &mut impl Bench,
        person: &mut impl Person,
    ) -> Result<Next, Failure> {
        let place = self.design.place(self.dir, step);
        let mut made = match bench.finished(step, &place)? {
            // The program was killed between the end of the run and its record.
            Some(made) => made,
            None => {
                if let Next::Interrupted = self.set_levels(step, person)? {
                    return Ok(Next::Interrupted);
                }
                self.set_aside(&place)?;
                bench.make(step, &place)?
            }
        };
        if made.again && made.exit != Exit::Interrupted {
            terminal::note("the run is invalid, and is made again once");
            if let Next::Interrupted = self.set_levels(step, person)? {
                return Ok(Next::Interrupted);
            }
            self.set_aside(&place)?;
            made = bench.make(step, &place)?;
        }
        if made.exit == Exit::Interrupted {
            return Ok(Next::Interrupted);
        }
        self.worst = self.worst.max(made.exit);
        let (cell, block, at_unix_ns) = (step.cell, step.block, unix_ns());
        self.log.write(Record::Run { cell, block, valid: made.counts, at_unix_ns })?;
        Ok(Next::Goes)
    }

    /// Sets what differs from what stands, and verifies the rest.
    fn set_levels(&mut self, step: &Step, person: &mut impl Person) -> Result<Next, Failure> {
        let levels = &self.design.cells[step.cell].levels;
        for (index, level) in levels.iter().enumerate() {
            let factor = &self.design.factors[index];
            let is_hand = factor.hand.is_some();
            let setting = step.settings[index];
            if is_hand && self.confirmed[index] != Some(setting) {
                if !person.sets(factor, (*level, self.standing[index]), step.block, self.signals)? {
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
            let stands = self.standing[index].replace(*level) == Some(*level);
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
                        // Nobody knows what stands now.
                        self.standing[index] = None;
                        self.confirmed[index] = None;
                        return Err(Failure::Hook(failure));
                    }
                }
            }
        }
        Ok(Next::Goes)
    }

    /// Restores what was there before, also after Ctrl-C.
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

    /// Moves a bundle that does not count out of the way; it is kept.
    fn set_aside(&self, place: &Path) -> Result<(), Failure> {
        if !place.exists() {
            return Ok(());
        }
        let within = place.strip_prefix(self.dir).unwrap_or(place);
        let name = within.to_string_lossy().replace('/', "-");
        let aside = self.dir.join(SET_ASIDE_DIR);
        let free = (1..).map(|n| aside.join(format!("{name}-{n}"))).find(|it| !it.exists());
        let free: PathBuf = free.unwrap_or(aside.clone());
        let moved = std::fs::create_dir_all(&aside).and_then(|()| std::fs::rename(place, &free));
        moved.map_err(|e| {
            Failure::unusable(format!(
                "{}: cannot move it to {}: {e}",
                place.display(),
                free.display()
            ))
        })
    }
}

/// The commands among what a level changes, before the run.
fn commands_of(changes: &[Change]) -> impl Iterator<Item = &LevelCommands> {
    changes.iter().filter_map(|change| match change {
        Change::Commands(commands) => Some(commands),
        _ => None,
    })
}
