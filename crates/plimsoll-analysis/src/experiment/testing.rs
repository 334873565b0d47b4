//! Experiments made up for tests.

use plimsoll_model::comparison::experiment::{Experiment, Factor, Level, Setting};
use plimsoll_model::comparison::{FigureRow, GroupFigure, RatioFigure};

use super::{CellInput, analyse};

/// A grid, and who sets its factors.
#[derive(Clone, Debug)]
pub(super) struct Shape {
    /// Levels of each factor.
    pub(super) sizes: Vec<usize>,
    /// Of the first factor's levels.
    pub(super) values: Option<Vec<f64>>,
    pub(super) by_hand: Option<usize>,
    pub(super) once: Option<usize>,
    /// Cells whose figures are bounds.
    pub(super) at_least: Vec<usize>,
}

impl Shape {
    pub(super) fn from_sizes(sizes: &[usize]) -> Self {
        let sizes = sizes.to_vec();
        Self { sizes, values: None, by_hand: None, once: None, at_least: Vec::new() }
    }

    /// Levels of each cell; the last factor changes first.
    pub(super) fn cells(&self) -> Vec<Vec<usize>> {
        self.sizes.iter().fold(vec![Vec::new()], |cells, size| {
            let longer = |cell: &Vec<usize>| {
                let cell = cell.clone();
                (0..*size).map(move |level| [cell.clone(), vec![level]].concat())
            };
            cells.iter().flat_map(longer).collect()
        })
    }

    pub(super) fn factors(&self) -> Vec<Factor> {
        let level = |factor: usize, level: usize| Level {
            name: level.to_string(),
            system: None,
            value: self.values.as_ref().filter(|_| factor == 0).map(|values| values[level]),
        };
        let set = |factor: usize| match Some(factor) {
            it if it == self.by_hand => Setting::ByHand,
            it if it == self.once => Setting::Once,
            _ => Setting::ByProgram,
        };
        let factor = |(at, size): (usize, &usize)| Factor {
            name: format!("f{at}"),
            unit: None,
            levels: (0..*size).map(|it| level(at, it)).collect(),
            set: set(at),
        };
        self.sizes.iter().enumerate().map(factor).collect()
    }
}

/// The analysis of runs, each given by cell, block and value.
pub(super) fn experiment(shape: &Shape, runs: &[(usize, usize, f64)]) -> Experiment {
    experiment_of(RatioFigure::Peak, shape, runs)
}

pub(super) fn experiment_of(
    figure: RatioFigure,
    shape: &Shape,
    runs: &[(usize, usize, f64)],
) -> Experiment {
    let of_cell = |at: usize| runs.iter().filter(move |(cell, ..)| *cell == at);
    let cell = |(group, levels): (usize, Vec<usize>)| CellInput {
        levels,
        group: Some(group),
        blocks: of_cell(group).map(|(_, block, _)| *block).collect(),
        missing: Vec::new(),
    };
    let cells: Vec<CellInput> = shape.cells().into_iter().enumerate().map(cell).collect();
    let group = |at: usize| {
        let values = of_cell(at).map(|(.., value)| Some(*value).filter(|value| value.is_finite()));
        let values: Vec<Option<f64>> = values.collect();
        let logs: Vec<f64> = values.iter().flatten().map(|value| value.ln()).collect();
        let mean = (logs.iter().sum::<f64>() / logs.len() as f64).exp();
        GroupFigure {
            mean: (!logs.is_empty()).then_some(mean),
            spread_ratio: None,
            values,
            at_least: shape.at_least.contains(&at),
        }
    };
    let row = FigureRow {
        figure,
        load: None,
        interpolated: false,
        not_counted: Vec::new(),
        groups: (0..cells.len()).map(group).collect(),
        ratios: Vec::new(),
    };
    analyse(shape.factors(), &cells, &row)
}
