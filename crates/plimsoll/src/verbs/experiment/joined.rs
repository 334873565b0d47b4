//! `--factor clock=350,run=DIR`: joins existing bundles, made at levels of factors, to one
//! experiment. They may be old and from real hardware.

use std::path::Path;

use plimsoll_analysis::compare::CompareOptions;
use plimsoll_model::comparison::experiment::Response;

use super::ExperimentArgs;
use super::design::{Design, Factor, HandSet, Level, Order, Step};
use super::outcome::{self, Outcome};
use crate::exit::{Exit, Failure};
use crate::terminal;
use crate::verbs::compare::show;
use crate::verbs::{groups, make_directory};

/// Bundles with the levels they were made at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Joined {
    /// Names of factors with their levels.
    pub levels: Vec<(String, String)>,
    /// A bundle, a directory of bundles, or the stem of repeats.
    pub run: String,
}

/// `clock=350,run=DIR`.
pub(crate) fn parse_joined(text: &str) -> Result<Joined, String> {
    const HOW: &str = "write NAME=LEVEL,run=DIR, for example clock=350,run=runs/slow";
    let (factors, run) = text.split_once(",run=").filter(|(_, run)| !run.is_empty()).ok_or(HOW)?;
    let level = |part: &str| {
        let (name, level) = part.split_once('=')?;
        let (name, level) = (name.trim(), level.trim());
        (!name.is_empty() && !level.is_empty()).then(|| (name.to_owned(), level.to_owned()))
    };
    let levels = factors.split(',').map(level).collect::<Option<Vec<_>>>().ok_or(HOW)?;
    Ok(Joined { levels, run: run.to_owned() })
}

/// Compares the bundles by their levels.
pub(crate) fn perform(args: &ExperimentArgs) -> Result<Exit, Failure> {
    let factors = factors(&args.factor)?;
    let bundles: Vec<Vec<std::path::PathBuf>> = args
        .factor
        .iter()
        .map(|joined| groups::bundles(Path::new(&joined.run)))
        .collect::<Result<_, _>>()?;
    // Several runs of one setting share any other differences of that time.
    let once = bundles.iter().any(|of_one| of_one.len() > 1) || is_once(&args.factor);
    let hand = Some(if once { HandSet::Once } else { HandSet::EachBlock });
    let factors: Vec<Factor> = factors.into_iter().map(|it| Factor { hand, ..it }).collect();
    let mut design = Design::new(factors, 1, Order::Alternating);
    let cell_of = |joined: &Joined, design: &Design| {
        design.cells.iter().position(|cell| {
            let at = design.factors.iter().zip(&cell.levels);
            let mut all = at.map(|(factor, level)| (&factor.name, &factor.levels[*level].name));
            all.all(|(name, level)| joined.levels.iter().any(|it| it.0 == *name && it.1 == *level))
        })
    };
    let mut blocks = vec![0; design.cells.len()];
    let mut runs = Vec::new();
    for (joined, bundles) in args.factor.iter().zip(bundles) {
        let Some(cell) = cell_of(joined, &design) else { continue };
        for bundle in bundles {
            blocks[cell] += 1;
            let step = Step { cell, block: blocks[cell], settings: Vec::new() };
            runs.push((step, groups::run_of(&bundle)?));
        }
    }
    design.repeats = blocks.iter().copied().max().unwrap_or_default();
    let options = CompareOptions { force: args.force, ..CompareOptions::default() };
    let out_dir = args.out.as_deref().unwrap_or(Path::new("."));
    let mut outcome = Outcome::new("experiment", out_dir, &design, options, Response::default());
    runs.into_iter().for_each(|(step, run)| outcome.add(&step, run));
    let Some(comparison) = outcome.comparison(&[])? else {
        return Err(Failure::wrong("--factor: there is no run to compare"));
    };
    if let Some(dir) = &args.out {
        make_directory(dir)?;
        outcome::keep("experiment", dir, &comparison)?;
        terminal::note(&format!("report: {}", dir.join("experiment.html").display()));
    }
    show(&comparison, args.output.json);
    Ok(Exit::Valid)
}

/// Whether some combination of levels was set only once.
fn is_once(all: &[Joined]) -> bool {
    let sorted = |joined: &Joined| {
        let mut levels = joined.levels.clone();
        levels.sort_unstable();
        levels
    };
    let times = |one: &Joined| all.iter().filter(|it| sorted(it) == sorted(one)).count();
    all.iter().any(|one| times(one) == 1)
}

/// The factors that the flags name, in their order.
fn factors(all: &[Joined]) -> Result<Vec<Factor>, Failure> {
    let mut factors: Vec<Factor> = Vec::new();
    for (index, joined) in all.iter().enumerate() {
        for (name, level) in &joined.levels {
            let position = factors.iter_mut().position(|factor| factor.name == *name);
            let at = match position {
                Some(at) => at,
                None if index == 0 => {
                    let (name, levels) = (name.clone(), Vec::new());
                    factors.push(Factor { name, unit: None, levels, hand: None, undo: None });
                    factors.len() - 1
                }
                None => return Err(other_factors(joined, name)),
            };
            let levels = &mut factors[at].levels;
            if levels.iter().all(|existing| existing.name != *level) {
                let value = level.parse::<f64>().ok().filter(|value| value.is_finite());
                levels.push(Level { name: level.clone(), value, changes: Vec::new() });
            }
        }
        let missing =
            factors.iter().find(|it| joined.levels.iter().all(|(name, _)| *name != it.name));
        if let Some(missing) = missing {
            return Err(other_factors(joined, &missing.name));
        }
    }
    Ok(factors)
}

fn other_factors(joined: &Joined, name: &str) -> Failure {
    Failure::wrong(format!(
        "--factor …,run={}: every --factor names the same factors, and {name} is not in all of them",
        joined.run
    ))
}
