//! Are the runs of a group of one thing? Looks for a gap between them that is wide beside what
//! lies on either side of it: two modes, or a run far from the others.

use plimsoll_model::comparison::{Comparison, FigureRow};

/// Runs from which a gap can be told from scatter.
const RUNS_MIN: usize = 4;
/// A gap narrower than this share is of no weight, however regular the runs are.
const GAP_MIN_RATIO: f64 = 0.03;
/// By how much the widest gap between runs of one normal distribution exceeds their scatter about
/// the means of its two sides in one case of a hundred, by number of runs (40,000 simulations).
const GAP_99: [(usize, f64); 10] = [
    (4, 27.8),
    (5, 13.0),
    (6, 8.95),
    (7, 6.97),
    (8, 5.74),
    (10, 4.54),
    (12, 3.74),
    (15, 3.16),
    (20, 2.65),
    (30, 2.28),
];
/// Figures of load points are many: their gap must be so much wider.
const POINT_FACTOR: f64 = 1.75;

/// What is seen in the figures of the group at `index`, for a person; of each load point at most
/// one figure is named.
pub(super) fn splits(comparison: &Comparison, index: usize) -> Vec<String> {
    let mut said = Vec::new();
    let mut loads: Vec<f64> = Vec::new();
    // What an op costs of a disk falls into modes by when the kernel writes.
    for row in comparison.figures.iter().filter(|row| !row.figure.is_cost()) {
        if row.load.is_some_and(|load| loads.contains(&load)) {
            continue;
        }
        let Some(text) = split_of(row, index, comparison) else { continue };
        loads.extend(row.load);
        said.push(text);
    }
    said
}

fn split_of(row: &FigureRow, index: usize, comparison: &Comparison) -> Option<String> {
    let (group, figure) = (comparison.groups.get(index)?, row.groups.get(index)?);
    let known = figure.values.iter().enumerate();
    let known: Vec<(usize, f64)> = known.filter_map(|(i, v)| Some((i, (*v)?.ln()))).collect();
    let factor = if row.load.is_some() { POINT_FACTOR } else { 1.0 };
    let (lower, upper) = gap(known, factor)?;
    let mean =
        |side: &[(usize, f64)]| side.iter().map(|(_, log)| log).sum::<f64>() / side.len() as f64;
    let apart = (mean(&upper) - mean(&lower)).exp_m1() * 100.0;
    let (fewer, word) = match lower.len() <= upper.len() {
        true => (&lower, "below"),
        false => (&upper, "above"),
    };
    let mut runs: Vec<usize> = fewer.iter().map(|(run, _)| *run).collect();
    runs.sort_unstable();
    let named: Vec<&str> =
        runs.iter().filter_map(|run| Some(group.runs.get(*run)?.bundle.as_str())).collect();
    let place = row
        .load
        .map_or(String::new(), |load| format!(" at {}", plimsoll_model::units::grouped(load)));
    let what = if named.len() == 1 { "lies" } else { "lie" };
    Some(format!(
        "two modes in {}{place}: {} {what} {word} the others, the two sides {apart:.0} % apart; \
         look at what was different then, or compare them apart",
        row.figure.as_str(),
        named.join(", "),
    ))
}

type Side = Vec<(usize, f64)>;

/// The runs on either side of a gap too wide for chance.
fn gap(mut runs: Side, factor: f64) -> Option<(Side, Side)> {
    let n = runs.len();
    if n < RUNS_MIN {
        return None;
    }
    runs.sort_by(|a, b| a.1.total_cmp(&b.1));
    let width = |at: usize| runs[at].1 - runs[at - 1].1;
    let at = (1..n).max_by(|a, b| width(*a).total_cmp(&width(*b)))?;
    let width = width(at);
    let upper = runs.split_off(at);
    let squares = |side: &[(usize, f64)]| {
        let mean = side.iter().map(|(_, log)| log).sum::<f64>() / side.len() as f64;
        side.iter().map(|(_, log)| (log - mean).powi(2)).sum::<f64>()
    };
    let scatter = ((squares(&runs) + squares(&upper)) / (n - 2) as f64).sqrt();
    let wide = width > GAP_MIN_RATIO && width > limit(n) * factor * scatter;
    wide.then_some((runs, upper))
}

fn limit(runs: usize) -> f64 {
    let known = GAP_99.iter().rev().find(|(n, _)| *n <= runs);
    known.map_or(f64::INFINITY, |(_, limit)| *limit)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sides(values: &[f64]) -> Option<(usize, usize)> {
        let runs = values.iter().map(|value: &f64| value.ln()).enumerate().collect();
        gap(runs, 1.0).map(|(lower, upper)| (lower.len(), upper.len()))
    }

    #[test]
    fn two_modes_and_a_run_far_off_are_seen() {
        assert_eq!(sides(&[100.0, 101.0, 100.5, 80.0, 100.2]), Some((1, 4)));
        assert_eq!(sides(&[100.0, 81.0, 100.5, 80.0, 100.2, 80.4]), Some((3, 3)));
    }

    #[test]
    fn scatter_and_small_gaps_are_not() {
        assert_eq!(sides(&[100.0, 104.0, 97.0, 101.0, 95.0]), None);
        assert_eq!(sides(&[100.0, 100.0, 100.0, 101.0, 101.0]), None, "one percent");
        assert_eq!(sides(&[100.0, 100.0, 50.0]), None, "three runs cannot tell");
    }
}
