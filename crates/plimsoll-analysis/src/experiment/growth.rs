//! The law of scalability over a numeric factor.

use plimsoll_model::comparison::experiment::{AtLevel, Law, Setting};

use super::Observation;
use super::effects::Grid;
use crate::shape::{Loaded, scalability};

/// The laws of all numeric factors, each over the means of the others; where they `interact`, at
/// each combination of the others.
pub(super) fn laws(grid: &Grid<'_>, seen: &[Observation], interact: bool) -> Vec<Law> {
    let is_bound = grid.cells.iter().any(|cell| cell.at_least);
    if grid.figure.is_less_better() || is_bound {
        return Vec::new();
    }
    let steady = without_blocks(grid, seen);
    let of_factor = |factor: usize| {
        let held = if interact { grid.combinations(factor) } else { vec![Vec::new()] };
        held.into_iter().filter_map(|at| law(grid, &steady, factor, at)).collect::<Vec<_>>()
    };
    (0..grid.factors.len()).flat_map(of_factor).collect()
}

fn law(grid: &Grid<'_>, seen: &[Observation], factor: usize, at: Vec<AtLevel>) -> Option<Law> {
    let values = grid.factors[factor].values()?;
    let one = values.iter().copied().reduce(f64::min)?;
    let is_held =
        |cell: usize| at.iter().all(|held| grid.cells[cell].levels[held.factor] == held.level);
    let blocks = seen.iter().map(|it| it.block).max()?;
    let mut points = Vec::new();
    for (level, value) in values.iter().enumerate() {
        let is_of = |cell: usize| grid.cells[cell].levels[factor] == level && is_held(cell);
        let cells = (0..grid.cells.len()).filter(|cell| is_of(*cell)).count();
        for block in 0..=blocks {
            let logs = seen.iter().filter(|it| it.block == block && is_of(it.cell));
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

/// The runs as they would be if no block had been fast or slow as a whole.
fn without_blocks(grid: &Grid<'_>, seen: &[Observation]) -> Vec<Observation> {
    let once = |it: &Observation| {
        let own = grid.cells[it.cell].levels.iter().zip(grid.factors);
        let own = own.map(|(level, it)| if it.set == Setting::Once { *level } else { 0 });
        (it.block, own.collect::<Vec<usize>>())
    };
    let apart = |it: &Observation| it.log - grid.means[it.cell].unwrap_or(it.log);
    let shifted = |it: &Observation| {
        let of_block = seen.iter().filter(|other| once(other) == once(it));
        let shifts: Vec<f64> = of_block.map(apart).collect();
        let shift = shifts.iter().sum::<f64>() / shifts.len() as f64;
        Observation { log: it.log - shift, ..*it }
    };
    seen.iter().map(shifted).collect()
}
