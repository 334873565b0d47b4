//! `--factor clock=350,run=DIR`: bundles that were made at levels of factors, on real hardware and
//! long ago perhaps, as one experiment.

use std::path::Path;

use plimsoll_analysis::compare::Wishes;
use plimsoll_model::comparison::experiment::Response;

use super::design::{Design, Factor, HandSet, Level, Order, Step};
use super::outcome::Outcome;
use crate::cli::{ExperimentArgs, Joined};
use crate::exit::{Exit, Failure};
use crate::terminal;
use crate::verbs::compare::show;
use crate::verbs::{groups, make_directory};

/// Compares the bundles by their levels.
pub(crate) fn perform(args: &ExperimentArgs) -> Result<Exit, Failure> {
    let factors = factors(&args.factor)?;
    let bundles: Vec<Vec<std::path::PathBuf>> = args
        .factor
        .iter()
        .map(|joined| groups::bundles(Path::new(&joined.run)))
        .collect::<Result<_, _>>()?;
    // Several runs of one time share whatever else differed then.
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
    let wishes = Wishes { force: args.force, ..Wishes::default() };
    let place = args.out.as_deref().unwrap_or(Path::new("."));
    let mut outcome = Outcome::new("experiment", place, &design, wishes, Response::default());
    runs.into_iter().for_each(|(step, run)| outcome.add(&step, run));
    let Some(comparison) = outcome.comparison(&[])? else {
        return Err(Failure::wrong("--factor: there is no run to compare"));
    };
    if let Some(dir) = &args.out {
        make_directory(dir)?;
        outcome.keep(&comparison)?;
        terminal::note(&format!("report: {}", dir.join("experiment.html").display()));
    }
    show(&comparison, args.output.json);
    Ok(Exit::Valid)
}

/// Some combination of levels was set a single time.
fn is_once(all: &[Joined]) -> bool {
    let sorted = |joined: &Joined| {
        let mut levels = joined.levels.clone();
        levels.sort_unstable();
        levels
    };
    let times = |one: &Joined| all.iter().filter(|it| sorted(it) == sorted(one)).count();
    all.iter().any(|one| times(one) == 1)
}

/// The factors that the flags name, in the order they do.
fn factors(all: &[Joined]) -> Result<Vec<Factor>, Failure> {
    let mut factors: Vec<Factor> = Vec::new();
    for (index, joined) in all.iter().enumerate() {
        for (name, level) in &joined.levels {
            let found = factors.iter_mut().position(|factor| factor.name == *name);
            let at = match found {
                Some(at) => at,
                None if index == 0 => {
                    let (name, levels) = (name.clone(), Vec::new());
                    factors.push(Factor { name, unit: None, levels, hand: None, undo: None });
                    factors.len() - 1
                }
                None => return Err(other_factors(joined, name)),
            };
            let levels = &mut factors[at].levels;
            if levels.iter().all(|known| known.name != *level) {
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
