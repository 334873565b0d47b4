//! The sources of scatter: between runs, and between settings that a person makes. A sum of cells
//! has a part in each, and each part has an error from its own scatter.
//!
//! Runs of a block that share a setting made by hand are a *plot* of it (split-plot designs of the
//! textbooks): runs are compared within their plot, plots within their block. A level set once has
//! no second setting to be compared with, and its blocks are its own. A [`Stratum`] has units of one
//! kind, compared within groups.

use std::collections::{BTreeMap, BTreeSet};

use plimsoll_model::comparison::experiment::{Basis, Factor, Scatter, Setting};

use super::fit::{Fit, Row, Sum};
use super::{BLOCKS_MIN, Observation};
use crate::sampling::{ERROR_MIN, summed};

/// With one degree of freedom an interval is a dozen errors wide.
const DEGREES_MIN: f64 = 2.0;
/// Sums of weights below this are zero.
const ROUNDING: f64 = 1e-9;
const NO_PART: Part = (0.0, 1.0);

/// The cells of an experiment, and the fits of their runs.
pub(super) struct Strata {
    layouts: Vec<CellLayout>,
    /// Those with a run.
    blocks: Vec<usize>,
    once_count: usize,
    runs: Stratum,
    /// Where factors are set by hand in each block.
    plots: Option<Stratum>,
}

/// Position of a cell's runs in the strata.
#[derive(Clone, Copy, Debug)]
struct CellLayout {
    /// Number of its levels that are set once.
    once: usize,
    /// Number of its levels that are set once or by hand.
    setting: usize,
    has_runs: bool,
}

/// A sum of cells and its error.
#[derive(Clone, Copy, Debug)]
pub(super) struct LogEstimate {
    pub(super) log: f64,
    /// `None` where no scatter gives an error.
    pub(super) error: Option<Error>,
    pub(super) basis: Basis,
}

/// How sure a sum is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Error {
    pub(super) size: f64,
    pub(super) degrees: f64,
}

impl Strata {
    pub(super) fn new(factors: &[Factor], cells: &[Vec<usize>], observed: &[Observation]) -> Self {
        // Factors that are set more often count as one level.
        let kept = |levels: &Vec<usize>, sets: &[Setting]| -> Vec<usize> {
            let own = levels.iter().zip(factors);
            own.map(|(level, it)| if sets.contains(&it.set) { *level } else { 0 }).collect()
        };
        let once = numbered(cells.iter().map(|levels| kept(levels, &[Setting::Once])));
        let by_hand = [Setting::Once, Setting::ByHand];
        let settings = numbered(cells.iter().map(|levels| kept(levels, &by_hand)));
        let numbers = once.1.iter().zip(&settings.1).enumerate();
        let layout = |(cell, (once, setting)): (usize, (&usize, &usize))| CellLayout {
            once: *once,
            setting: *setting,
            has_runs: observed.iter().any(|it| it.cell == cell),
        };
        let layouts: Vec<CellLayout> = numbers.map(layout).collect();
        let (once_count, settings) = (once.0.len(), settings.0);
        let unit = |it: &Observation| Unit {
            group: it.block * settings.len() + layouts[it.cell].setting,
            treatment: it.cell,
            value: it.log,
        };
        let runs = Stratum::new(observed.iter().map(unit).collect(), cells.to_vec());
        let blocks: BTreeSet<usize> = observed.iter().map(|it| it.block).collect();
        let blocks = blocks.into_iter().collect();
        let mut strata = Self { layouts, blocks, once_count, runs, plots: None };
        if factors.iter().any(|factor| factor.set == Setting::ByHand) {
            strata.plots = Some(strata.of_plots(settings));
        }
        strata
    }

    /// A setting in a block, as it would be with all its cells.
    fn of_plots(&self, treatments: Vec<Vec<usize>>) -> Stratum {
        let settings = treatments.len();
        let plot = |(block, setting): (usize, usize)| {
            let group = [block * settings + setting];
            let mut columns = vec![0.0; self.layouts.len()];
            self.shares(setting).for_each(|(cell, share)| columns[cell] = share);
            let once = self.layouts.iter().find(|layout| layout.setting == setting)?.once;
            // Where its cells never occur together, the plot stands for those that it has.
            let level = self.runs.fit.level(&columns, &group);
            let value = level.map(|sum| sum.value).or_else(|| self.runs.fit.mean(group[0]))?;
            Some(Unit { group: block * self.once_count + once, treatment: setting, value })
        };
        let all = self.blocks.iter().flat_map(|block| (0..settings).map(move |it| (*block, it)));
        Stratum::new(all.filter_map(plot).collect(), treatments)
    }

    /// The mean of a cell over all blocks.
    pub(super) fn level(&self, cell: usize) -> Option<LogEstimate> {
        let layout = self.layouts[cell];
        let mut columns = vec![0.0; self.layouts.len()];
        columns[cell] = 1.0;
        let Some(plots) = &self.plots else {
            let level = self.runs.fit.level(&columns, &self.groups(layout.once))?;
            let error = self.runs.part(level).and_then(|part| self.error([part, NO_PART]));
            return Some(LogEstimate { log: level.value, error, basis: Basis::Residual });
        };
        let mut setting = vec![0.0; plots.treatments.len()];
        setting[layout.setting] = 1.0;
        let between = plots.fit.level(&setting, &self.groups(layout.once))?;
        self.shares(layout.setting).for_each(|(other, share)| columns[other] -= share);
        let within = self.runs.fit.sum(&columns)?;
        let parts = plots.part(between).zip(self.runs_part(&columns));
        let error = parts.and_then(|(a, b)| self.error([a, b]));
        Some(LogEstimate { log: between.value + within.value, error, basis: Basis::Both })
    }

    /// The sum of cells with these weights, which add up to zero, from the `means` of the cells.
    pub(super) fn contrast(&self, weights: &[f64], means: &[Option<f64>]) -> Option<LogEstimate> {
        let named = weights.iter().zip(means).filter(|(weight, _)| **weight != 0.0);
        let log = named.map(|(weight, mean)| Some(weight * (*mean)?)).sum::<Option<f64>>()?;
        let without = |basis| Some(LogEstimate { log, error: None, basis });
        if !is_zero(&self.summed(weights, |layout| layout.once)) {
            return without(Basis::SetOnce);
        }
        let settings = self.summed(weights, |layout| layout.setting);
        let mut within = weights.to_vec();
        for (setting, sum) in settings.iter().enumerate() {
            self.shares(setting).for_each(|(cell, share)| within[cell] -= sum * share);
        }
        let between = match &self.plots {
            Some(plots) if !is_zero(&settings) => {
                plots.fit.sum(&settings).and_then(|sum| plots.part(sum))
            }
            _ => Some(NO_PART),
        };
        let parts = between.zip(self.runs_part(&within));
        let basis = match (is_zero(&settings), is_zero(&within)) {
            (true, _) => Basis::Residual,
            (false, true) => Basis::BetweenBlocks,
            (false, false) => Basis::Both,
        };
        match parts.and_then(|(a, b)| self.error([a, b])) {
            None => without(Basis::TooFewRuns),
            error => Some(LogEstimate { log, error, basis }),
        }
    }

    /// Tests of interaction: of runs within plots, of plots within blocks.
    pub(super) fn tests(&self) -> Vec<Test> {
        let strata = std::iter::once(&self.runs).chain(&self.plots);
        strata.filter(|it| self.is_enough(it.fit.degrees)).filter_map(Stratum::test).collect()
    }

    /// Residual of the runs, and scatter of the plots.
    pub(super) fn scatter(&self) -> [Option<Scatter>; 2] {
        let enough = |it: &&Stratum| self.is_enough(it.fit.degrees);
        [Some(&self.runs), self.plots.as_ref()]
            .map(|it| it.filter(enough).and_then(Stratum::scatter))
    }

    fn is_enough(&self, degrees: f64) -> bool {
        self.blocks.len() >= BLOCKS_MIN && degrees >= DEGREES_MIN
    }

    /// Groups by the levels that were set once.
    fn groups(&self, once: usize) -> Vec<usize> {
        self.blocks.iter().map(|block| block * self.once_count + once).collect()
    }

    /// Variance of a sum of cells within their plots.
    fn runs_part(&self, weights: &[f64]) -> Option<Part> {
        if is_zero(weights) { Some(NO_PART) } else { self.runs.part(self.runs.fit.sum(weights)?) }
    }

    fn error(&self, parts: [Part; 2]) -> Option<Error> {
        // Runs that agree to the last digit have no variance.
        let (variance, degrees) = summed(parts).unwrap_or((0.0, parts[0].1.max(parts[1].1)));
        let size = variance.sqrt().max(ERROR_MIN);
        self.is_enough(degrees).then_some(Error { size, degrees })
    }

    /// Equal shares of the cells of a setting that have runs.
    fn shares(&self, setting: usize) -> impl Iterator<Item = (usize, f64)> {
        let of = move |cell: &usize| {
            let layout = self.layouts[*cell];
            layout.has_runs && layout.setting == setting
        };
        let count = (0..self.layouts.len()).filter(of).count() as f64;
        (0..self.layouts.len()).filter(of).map(move |cell| (cell, 1.0 / count))
    }

    /// Weights of cells, summed by a number of their layout.
    fn summed(&self, weights: &[f64], number: fn(&CellLayout) -> usize) -> Vec<f64> {
        let count = self.layouts.iter().map(number).max().map_or(0, |last| last + 1);
        let mut sums = vec![0.0; count];
        for (layout, weight) in self.layouts.iter().zip(weights) {
            sums[number(layout)] += weight;
        }
        sums
    }
}

/// The different items in order, and the number of each item among them.
fn numbered(items: impl Iterator<Item = Vec<usize>> + Clone) -> (Vec<Vec<usize>>, Vec<usize>) {
    let different: BTreeSet<Vec<usize>> = items.clone().collect();
    let different: Vec<Vec<usize>> = different.into_iter().collect();
    let number = |item: Vec<usize>| different.partition_point(|other| *other < item);
    let numbers = items.map(number).collect();
    (different, numbers)
}

fn is_zero(weights: &[f64]) -> bool {
    weights.iter().all(|weight| weight.abs() < ROUNDING)
}

/// One unit: a run, or a setting in a block.
#[derive(Clone, Copy, Debug)]
pub(super) struct Unit {
    pub(super) group: usize,
    /// Index of its levels.
    pub(super) treatment: usize,
    pub(super) value: f64,
}

/// All units of a kind.
struct Stratum {
    units: Vec<Unit>,
    /// Levels by factor; those of factors that the units do not distinguish are zero.
    pub(super) treatments: Vec<Vec<usize>>,
    /// A column for each treatment.
    pub(super) fit: Fit,
}

/// A variance, and its degrees of freedom.
type Part = (f64, f64);

/// One F test: do the factors by themselves leave more of the values than the treatments?
#[derive(Clone, Copy, Debug)]
pub(super) struct Test {
    pub(super) f: f64,
    pub(super) degrees: [f64; 2],
    /// The largest error of the ratio of two effects.
    pub(super) error: f64,
}

impl Stratum {
    pub(super) fn new(units: Vec<Unit>, treatments: Vec<Vec<usize>>) -> Self {
        let row = |unit: &Unit| {
            let mut columns = vec![0.0; treatments.len()];
            columns[unit.treatment] = 1.0;
            Row { group: unit.group, columns, value: unit.value }
        };
        let fit = Fit::from_rows(&units.iter().map(row).collect::<Vec<_>>());
        Self { units, treatments, fit }
    }

    /// Variance of a sum.
    pub(super) fn part(&self, sum: Sum) -> Option<Part> {
        Some((self.fit.variance()? * sum.factor, self.fit.degrees))
    }

    pub(super) fn scatter(&self) -> Option<Scatter> {
        let spread_ratio = self.fit.variance()?.sqrt().exp_m1();
        Some(Scatter { spread_ratio, degrees: self.fit.degrees })
    }

    /// The F test of interactions; `None` where the units cannot show any.
    pub(super) fn test(&self) -> Option<Test> {
        let additive = self.additive();
        let variance = self.fit.variance().filter(|variance| *variance > 0.0)?;
        let above = self.fit.rank() - additive.rank();
        if above < 1.0 {
            return None;
        }
        let f = (additive.squares() - self.fit.squares()).max(0.0) / above / variance;
        let factors = self.squares().filter_map(|weights| Some(self.fit.sum(&weights)?.factor));
        let factor = factors.fold(0.0, f64::max);
        Some(Test { f, degrees: [above, self.fit.degrees], error: (factor * variance).sqrt() })
    }

    /// The units explained by their factors alone.
    fn additive(&self) -> Fit {
        let factors = self.treatments.first().map_or(0, Vec::len);
        let last = |factor: usize| self.treatments.iter().map(|levels| levels[factor]).max();
        let columns: Vec<(usize, usize)> = (0..factors)
            .flat_map(|factor| (1..=last(factor).unwrap_or(0)).map(move |level| (factor, level)))
            .collect();
        let row = |unit: &Unit| {
            let levels = &self.treatments[unit.treatment];
            let is = |(factor, level): &(usize, usize)| f64::from(levels[*factor] == *level);
            let columns = columns.iter().map(is).collect();
            Row { group: unit.group, columns, value: unit.value }
        };
        Fit::from_rows(&self.units.iter().map(row).collect::<Vec<_>>())
    }

    /// Weights of four treatments each: the effect of a factor at a level of another, less that at
    /// the first level of the other.
    fn squares(&self) -> impl Iterator<Item = Vec<f64>> {
        let index: BTreeMap<&[usize], usize> =
            self.treatments.iter().enumerate().map(|(at, it)| (it.as_slice(), at)).collect();
        let of = |[a, b]: [usize; 2], levels: &[usize]| {
            let mut weights = vec![0.0; self.treatments.len()];
            for (keep_a, keep_b, sign) in
                [(true, true, 1.0), (true, false, -1.0), (false, true, -1.0), (false, false, 1.0)]
            {
                let mut corner = levels.to_vec();
                corner[a] *= usize::from(keep_a);
                corner[b] *= usize::from(keep_b);
                weights[*index.get(corner.as_slice())?] = sign;
            }
            Some(weights)
        };
        let pairs = |levels: &[usize]| {
            let varied: Vec<usize> = (0..levels.len()).filter(|at| levels[*at] > 0).collect();
            let pair = |(at, a): (usize, &usize)| {
                varied[at + 1..].iter().map(|b| [*a, *b]).collect::<Vec<_>>()
            };
            varied.iter().enumerate().flat_map(pair).collect::<Vec<_>>()
        };
        let all = self.treatments.iter().flat_map(|levels| {
            pairs(levels).into_iter().filter_map(|pair| of(pair, levels)).collect::<Vec<_>>()
        });
        all.collect::<Vec<_>>().into_iter()
    }
}
