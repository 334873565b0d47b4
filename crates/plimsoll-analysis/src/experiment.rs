//! The effects of the factors of an experiment: a full factorial by least squares on the logarithms
//! of the response, with the repeats as blocks; the law of scalability over a numeric factor.
//!
//! | module | what it answers |
//! | --- | --- |
//! | `fit` | least squares within groups, with any runs missing |
//! | `strata` | the error of a sum of cells: scatter of runs, of settings made by hand, or unknown |
//! | `effects` | which cells an effect compares, and what may be claimed |

mod effects;
mod fit;
#[cfg(test)]
mod statsmodels;
mod strata;
#[cfg(test)]
mod testing;

use plimsoll_model::comparison::experiment::{
    AtLevel, Cell, Experiment, Factor, Law, Missing, MissingWhy, Response, Setting,
};
use plimsoll_model::comparison::{Comparison, FigureRow, GroupFigure, RUNS_MIN, RatioFigure};

use crate::shape::{Loaded, scalability};
use effects::{Grid, interaction};
use strata::Strata;

/// Repeats from which more than ratios is claimed.
const BLOCKS_MIN: usize = RUNS_MIN;

/// A combination of levels as it was run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CellInput {
    /// For each factor the index of its level.
    pub levels: Vec<usize>,
    /// Index of its group in the comparison; `None` without a run.
    pub group: Option<usize>,
    /// The block of each run of the group, in their order.
    pub blocks: Vec<usize>,
    /// Repeats that have no run.
    pub missing: Vec<Missing>,
}

/// A run's logarithm.
#[derive(Clone, Copy, Debug)]
struct Observation {
    cell: usize,
    block: usize,
    log: f64,
}

/// The effects of the factors on the figure of `row`. Effects are relative to the first level of
/// each factor. The `cells` differ in their levels; the others are compared with the first.
pub fn analyse(factors: Vec<Factor>, cells: &[CellInput], row: &FigureRow) -> Experiment {
    let runs = || cells.iter().flat_map(|cell| &cell.blocks);
    let without = cells.iter().flat_map(|cell| &cell.missing).map(|missing| &missing.block);
    let blocks = runs().chain(without).max().map_or(0, |last| last + 1);
    let observed = observations(cells, row);
    let levels: Vec<Vec<usize>> = cells.iter().map(|cell| cell.levels.clone()).collect();
    let strata = Strata::new(&factors, &levels, &observed);
    let cells = cells_with_means(cells, row, &strata);
    let means: Vec<Option<f64>> =
        cells.iter().map(|cell| cell.mean.filter(|_| !cell.at_least).map(f64::ln)).collect();
    let grid = Grid {
        factors: &factors,
        figure: row.figure,
        cells: &cells,
        means: &means,
        strata: &strata,
    };
    let interaction = interaction(&strata.tests());
    let interacts = interaction.is_some_and(|it| it.found);
    let mut effects = grid.main_effects();
    if interacts {
        effects.extend(grid.effects_at_levels());
    }
    let laws = laws(&grid, &observed, interacts);
    let best = grid.best();
    let [residual, between_blocks] = strata.scatter();
    Experiment {
        response: Response { figure: row.figure, load: row.load },
        peak_unknown: Vec::new(),
        blocks,
        effects,
        interaction,
        residual,
        between_blocks,
        laws,
        best,
        cells,
        factors,
    }
}

/// The row for an experiment, and the groups without a known peak. Where the headline is a bound
/// for one of them, the cells are compared by the highest rate, if every server was saturated, else
/// at the highest load that counts in all of them.
pub fn response_row(
    comparison: &Comparison,
    requested: Response,
) -> (Option<&FigureRow>, Vec<usize>) {
    let row = comparison.rows(requested.figure).find(|row| row.load == requested.load);
    let groups = row.map(|row| row.groups.as_slice()).unwrap_or_default();
    let unknown: Vec<usize> = (0..groups.len()).filter(|at| groups[*at].at_least).collect();
    if unknown.is_empty() || requested != Response::default() {
        return (row, Vec::new());
    }
    let exact = |row: &&FigureRow| row.groups.iter().all(|group| !group.at_least);
    let rate = comparison.rows(RatioFigure::PeakOpsPerS).find(exact);
    let counts = |row: &&FigureRow| {
        let has_means = row.groups.iter().all(|group| group.mean.is_some());
        has_means && row.not_counted.is_empty() && !row.interpolated
    };
    // A sustained open load has the requested throughput.
    let is_closed = ["clients", "s"].contains(&comparison.axis.unit.as_str());
    let figure = if is_closed { RatioFigure::AchievedOpsPerS } else { RatioFigure::P99 };
    let load = |row: &FigureRow| row.load.unwrap_or_default();
    let highest =
        |figure| comparison.rows(figure).filter(counts).max_by(|a, b| load(a).total_cmp(&load(b)));
    let instead = rate.or_else(|| highest(figure)).or_else(|| highest(RatioFigure::P50));
    (instead.or(row), unknown)
}

/// The runs that have the figure, without bounds.
fn observations(cells: &[CellInput], row: &FigureRow) -> Vec<Observation> {
    let of_cell = |(cell, input): (usize, &CellInput)| {
        let group = input.group.and_then(|group| row.groups.get(group));
        let group = group.filter(|group| !group.at_least);
        let values = input.blocks.iter().zip(group.into_iter().flat_map(|group| &group.values));
        let observed = values.filter_map(move |(block, value)| {
            let value = value.filter(|value| value.is_finite() && *value > 0.0)?;
            Some(Observation { cell, block: *block, log: value.ln() })
        });
        observed.collect::<Vec<_>>()
    };
    cells.iter().enumerate().flat_map(of_cell).collect()
}

/// The cells with their means. The mean of a bound is that of its runs as they are.
fn cells_with_means(cells: &[CellInput], row: &FigureRow, strata: &Strata) -> Vec<Cell> {
    let one = |(at, input): (usize, &CellInput)| {
        let group =
            input.group.and_then(|group| row.groups.get(group)).cloned().unwrap_or_default();
        let level = strata.level(at).filter(|_| !group.at_least);
        Cell {
            levels: input.levels.clone(),
            group: input.group,
            runs: group.values.iter().flatten().count(),
            mean: level.map(|it| it.log.exp()).or(group.mean),
            interval: level.and_then(|it| Some(it.error?.interval(it.log, 1))),
            at_least: group.at_least,
            ratio: None,
            missing: missing(input, &group),
        }
    };
    let mut cells: Vec<Cell> = cells.iter().enumerate().map(one).collect();
    let exact = |cell: &Cell| cell.mean.filter(|_| !cell.at_least);
    let first = cells.first().and_then(exact);
    for cell in &mut cells {
        cell.ratio = exact(cell).zip(first).map(|(mean, first)| mean / first);
    }
    cells
}

/// Repeats without a run, and runs without the figure.
fn missing(input: &CellInput, group: &GroupFigure) -> Vec<Missing> {
    let mut missing = input.missing.clone();
    let blocks = input.blocks.iter().enumerate();
    let blank = blocks.filter(|(run, _)| group.values.get(*run).copied().flatten().is_none());
    for (_, block) in blank {
        if missing.iter().all(|listed| listed.block != *block) {
            missing.push(Missing { block: *block, why: MissingWhy::NoFigure });
        }
    }
    missing.sort_by_key(|listed| listed.block);
    missing
}

/// The laws of all numeric factors, each over the means of the others; where they `interact`, at
/// each combination of the others.
fn laws(grid: &Grid<'_>, observed: &[Observation], interact: bool) -> Vec<Law> {
    let is_bound = grid.cells.iter().any(|cell| cell.at_least);
    if grid.figure.is_less_better() || is_bound {
        return Vec::new();
    }
    let steady = without_blocks(grid, observed);
    let of_factor = |factor: usize| {
        let combinations = if interact { grid.combinations(factor) } else { vec![Vec::new()] };
        combinations.into_iter().filter_map(|at| law(grid, &steady, factor, at)).collect::<Vec<_>>()
    };
    (0..grid.factors.len()).flat_map(of_factor).collect()
}

fn law(grid: &Grid<'_>, observed: &[Observation], factor: usize, at: Vec<AtLevel>) -> Option<Law> {
    let values = grid.factors[factor].values()?;
    let one = values.iter().copied().reduce(f64::min)?;
    let is_fixed =
        |cell: usize| at.iter().all(|fixed| grid.cells[cell].levels[fixed.factor] == fixed.level);
    let blocks = observed.iter().map(|it| it.block).max()?;
    let mut points = Vec::new();
    for (level, value) in values.iter().enumerate() {
        let is_of = |cell: usize| grid.cells[cell].levels[factor] == level && is_fixed(cell);
        let cells = (0..grid.cells.len()).filter(|cell| is_of(*cell)).count();
        for block in 0..=blocks {
            let logs = observed.iter().filter(|it| it.block == block && is_of(it.cell));
            let logs: Vec<f64> = logs.map(|it| it.log).collect();
            // Without one of its cells a mean is of something else.
            if logs.len() == cells && cells > 0 {
                let throughput = (logs.iter().sum::<f64>() / cells as f64).exp();
                points.push(Loaded { position: level as u32 + 1, load: value / one, throughput });
            }
        }
    }
    Some(Law { factor, at, one, fit: scalability(&points)? })
}

/// The runs with the effect of their block removed.
fn without_blocks(grid: &Grid<'_>, observed: &[Observation]) -> Vec<Observation> {
    let once = |it: &Observation| {
        let own = grid.cells[it.cell].levels.iter().zip(grid.factors);
        let own = own.map(|(level, it)| if it.set == Setting::Once { *level } else { 0 });
        (it.block, own.collect::<Vec<usize>>())
    };
    let apart = |it: &Observation| it.log - grid.means[it.cell].unwrap_or(it.log);
    let shifted = |it: &Observation| {
        let of_block = observed.iter().filter(|other| once(other) == once(it));
        let shifts: Vec<f64> = of_block.map(apart).collect();
        let shift = shifts.iter().sum::<f64>() / shifts.len() as f64;
        Observation { log: it.log - shift, ..*it }
    };
    observed.iter().map(shifted).collect()
}

#[cfg(test)]
mod tests;
