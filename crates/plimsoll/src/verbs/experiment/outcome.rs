//! The outcome of an experiment: one comparison of its cells, as a page, as text and as a document.

use std::collections::BTreeMap;
use std::path::Path;

use plimsoll_analysis::compare::{CompareOptions, GroupInput, RunInput};
use plimsoll_analysis::experiment::{CellInput, analyse, response_row};
use plimsoll_model::bundle::{REPORT_FILE, write_durably};
use plimsoll_model::comparison::experiment::{
    Experiment, Factor, Level, Missing, MissingWhy, Response, Setting,
};
use plimsoll_model::comparison::{Comparison, FigureRow};
use plimsoll_model::condition::ConditionFigure as _;
use plimsoll_report::comparison_markdown;

use super::design::{self, Design, HandSet, Step};
use super::records::{CellEnd, Record};
use crate::exit::Failure;
use crate::verbs::compare::{compared, json_text, page};

/// The results of an experiment so far.
pub(crate) struct Outcome<'a> {
    /// Names the files: `experiment`, `versus`, `scale`.
    pub verb: &'static str,
    pub dir: &'a Path,
    pub design: &'a Design,
    pub options: CompareOptions<'a>,
    pub response: Response,
    /// By cell and repeat.
    runs: BTreeMap<(usize, u32), RunInput>,
}

impl<'a> Outcome<'a> {
    pub(crate) fn new(
        verb: &'static str,
        dir: &'a Path,
        design: &'a Design,
        options: CompareOptions<'a>,
        response: Response,
    ) -> Self {
        Self { verb, dir, design, options, response, runs: BTreeMap::new() }
    }

    /// Adds a run; it replaces an earlier one of the same step.
    pub(crate) fn add(&mut self, step: &Step, run: RunInput) {
        self.runs.insert((step.cell, step.block), run);
    }

    /// Compares the cells and computes the factors' effects; `None` before the first run.
    pub(crate) fn comparison(&self, records: &[Record]) -> Result<Option<Comparison>, Failure> {
        if self.runs.is_empty() {
            return Ok(None);
        }
        let cells = 0..self.design.cells.len();
        // A cell without a run has no group.
        let with_runs: Vec<usize> =
            cells.clone().filter(|cell| !self.blocks(*cell).is_empty()).collect();
        let groups: Vec<GroupInput> = with_runs.iter().map(|cell| self.group(*cell)).collect();
        let in_step = with_runs.iter().all(|cell| {
            let blocks = self.blocks(*cell);
            blocks.iter().copied().eq(0..blocks.len())
        });
        let options = CompareOptions { paired: self.design.repeats > 1 && in_step, ..self.options };
        let mut comparison = compared(&groups, options)?;
        for run in comparison.groups.iter_mut().flat_map(|group| &mut group.runs) {
            let within = Path::new(&run.bundle).strip_prefix(self.dir).ok();
            run.report = within.map(|within| within.join(REPORT_FILE).display().to_string());
        }
        let Response { figure, load } = self.response;
        let empty = FigureRow {
            figure,
            load,
            interpolated: false,
            not_counted: Vec::new(),
            groups: Vec::new(),
            ratios: Vec::new(),
        };
        let (row, peak_unknown) = response_row(&comparison, self.response);
        let row = row.cloned();
        let is_there = row.is_some();
        let group = |cell: usize| with_runs.iter().position(|it| *it == cell);
        let inputs: Vec<CellInput> = cells
            .map(|cell| CellInput { group: group(cell), ..self.input(cell, records) })
            .collect();
        let mut factors: Vec<Factor> = self.design.factors.iter().map(factor).collect();
        for (cell, group) in with_runs.iter().zip(&comparison.groups) {
            if let [level] = self.design.cells[*cell].levels[..]
                && group.system != group.label
            {
                factors[0].levels[level].system = Some(group.system.clone());
            }
        }
        let experiment = analyse(factors, &inputs, &row.unwrap_or(empty));
        comparison.experiment = Some(Experiment { peak_unknown, ..experiment });
        if figure.is_of_point() && !is_there {
            comparison.notes.push(format!(
                "no load point of {} is common to all runs, so there is no {} to judge the factors \
                 by; give all runs the same --points",
                load.map(|load| load.to_string()).unwrap_or_default(),
                figure.as_str()
            ));
        }
        Ok(Some(comparison))
    }

    fn group(&self, cell: usize) -> GroupInput {
        let runs = self.runs.range((cell, 0)..=(cell, u32::MAX)).map(|(_, run)| run.clone());
        let (label, is_named) = (self.design.names[cell].clone(), self.design.factors.len() > 1);
        GroupInput { label, is_named, runs: runs.collect() }
    }

    /// Repeats in which a cell has a run, from 0.
    fn blocks(&self, cell: usize) -> Vec<usize> {
        let runs = self.runs.range((cell, 0)..=(cell, u32::MAX));
        runs.map(|((_, block), _)| *block as usize - 1).collect()
    }

    fn input(&self, cell: usize, records: &[Record]) -> CellInput {
        let blocks = self.blocks(cell);
        let invalid = |block: usize| {
            let run = &self.runs[&(cell, block as u32 + 1)];
            let counts = run.result.verdict.valid || self.options.force;
            (!counts).then(|| Missing { block, why: MissingWhy::Invalid { rules: broken(run) } })
        };
        let without = (0..self.design.repeats as usize).filter(|block| !blocks.contains(block));
        let why = records.iter().rev().find_map(|record| match record {
            Record::CellEnded { cell: ended, why, .. } if *ended == cell => Some(missing_why(why)),
            _ => None,
        });
        let not_run =
            without.map(|block| Missing { block, why: why.clone().unwrap_or(MissingWhy::NotRun) });
        let missing = blocks.iter().filter_map(|block| invalid(*block)).chain(not_run).collect();
        let levels = self.design.cells[cell].levels.clone();
        CellInput { levels, group: None, blocks, missing }
    }
}

/// Writes page, table and document to the experiment's directory.
pub(crate) fn keep(verb: &'static str, dir: &Path, comparison: &Comparison) -> Result<(), Failure> {
    let files = [
        ("html", page(comparison)?),
        ("md", comparison_markdown(comparison)),
        ("json", json_text(comparison)),
    ];
    for (ending, text) in files {
        write_durably(&dir.join(format!("{verb}.{ending}")), text.as_bytes())?;
    }
    Ok(())
}

/// The rules that a run broke.
fn broken(run: &RunInput) -> Vec<String> {
    let reasons = &run.result.verdict.reasons;
    let mut rules: Vec<String> = reasons.iter().map(|it| it.rule.name().to_owned()).collect();
    rules.sort_unstable();
    rules.dedup();
    rules
}

fn missing_why(why: &CellEnd) -> MissingWhy {
    match why {
        CellEnd::Run(message) => MissingWhy::Unusable { message: message.clone() },
        CellEnd::Hook(failure) => MissingWhy::Hook(failure.clone()),
    }
}

fn factor(factor: &design::Factor) -> Factor {
    let level = |level: &design::Level| Level {
        name: level.name.clone(),
        system: None,
        value: level.value,
    };
    Factor {
        name: factor.name.clone(),
        unit: factor.unit.clone(),
        levels: factor.levels.iter().map(level).collect(),
        set: match factor.hand {
            None => Setting::ByProgram,
            Some(HandSet::EachBlock) => Setting::ByHand,
            Some(HandSet::Once) => Setting::Once,
        },
    }
}
