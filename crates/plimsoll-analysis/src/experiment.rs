//! What the factors of an experiment do: a full factorial by least squares on the logarithms of the
//! response, with the repeats as blocks.
//!
//! | module | what it answers |
//! | --- | --- |
//! | `fit` | least squares within groups, with any runs missing |
//! | `stratum` | units of one kind, their scatter, and the F test of their interactions |
//! | `strata` | what a sum of cells rests on: scatter of runs, of settings made by hand, or nothing |
//! | `effects` | which cells an effect compares, and what may be said |
//! | `growth` | the law of scalability over a numeric factor |

mod effects;
mod fit;
mod growth;
#[cfg(test)]
mod judge;
mod strata;
mod stratum;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

use plimsoll_model::comparison::experiment::{
    Cell, Experiment, Factor, Missing, MissingWhy, Response,
};
use plimsoll_model::comparison::{FigureRow, GroupFigure, RUNS_MIN};

use effects::{Grid, interaction};
use strata::Strata;

/// Repeats from which more than ratios is said.
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

/// What the factors do to the figure of `row`; effects are stated against the first level of each
/// factor, and the first of the `cells`, which differ in their levels, is what the others are
/// compared with.
pub fn analyse(factors: Vec<Factor>, cells: &[CellInput], row: &FigureRow) -> Experiment {
    let runs = || cells.iter().flat_map(|cell| &cell.blocks);
    let without = cells.iter().flat_map(|cell| &cell.missing).map(|missing| &missing.block);
    let blocks = runs().chain(without).max().map_or(0, |last| last + 1);
    let seen = observations(cells, row);
    let levels: Vec<Vec<usize>> = cells.iter().map(|cell| cell.levels.clone()).collect();
    let strata = Strata::new(&factors, &levels, &seen);
    let cells = known(cells, row, &strata);
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
    let is_found = interaction.is_some_and(|it| it.found);
    let mut effects = grid.main_effects();
    if is_found {
        effects.extend(grid.effects_at_levels());
    }
    let laws = growth::laws(&grid, &seen, is_found);
    let best = grid.best();
    let [residual, between_blocks] = strata.scatter();
    Experiment {
        response: Response { figure: row.figure, load: row.load },
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

/// The runs that have the figure; a bound is none of the server's.
fn observations(cells: &[CellInput], row: &FigureRow) -> Vec<Observation> {
    let of_cell = |(cell, input): (usize, &CellInput)| {
        let group = input.group.and_then(|group| row.groups.get(group));
        let group = group.filter(|group| !group.at_least);
        let values = input.blocks.iter().zip(group.into_iter().flat_map(|group| &group.values));
        let seen = values.filter_map(move |(block, value)| {
            let value = value.filter(|value| value.is_finite() && *value > 0.0)?;
            Some(Observation { cell, block: *block, log: value.ln() })
        });
        seen.collect::<Vec<_>>()
    };
    cells.iter().enumerate().flat_map(of_cell).collect()
}

/// The cells with their means; a bound's is that of its runs as they are.
fn known(cells: &[CellInput], row: &FigureRow, strata: &Strata) -> Vec<Cell> {
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
        if missing.iter().all(|known| known.block != *block) {
            missing.push(Missing { block: *block, why: MissingWhy::NoFigure });
        }
    }
    missing.sort_by_key(|known| known.block);
    missing
}
