//! Where chance enters: between runs, and between settings that a person makes. A sum of cells has
//! a part in each, and each part is judged by the scatter of its own.
//!
//! Runs of a block that share a setting made by hand are a *plot* of it (split-plot designs of the
//! textbooks): runs are compared within their plot, plots within their block. A level set once has
//! no second setting to be compared with, and its blocks are its own.

use std::collections::BTreeSet;

use plimsoll_model::comparison::experiment::{Basis, Factor, Scatter, Setting};

use super::stratum::{Part, Stratum, Test, Unit};
use super::{BLOCKS_MIN, Observation};
use crate::sampling::{ERROR_MIN, summed};

/// With one degree of freedom an interval is a dozen errors wide.
const DEGREES_MIN: f64 = 2.0;
/// Sums of weights below this are zero.
const ROUNDING: f64 = 1e-9;
const NO_PART: Part = (0.0, 1.0);

/// The cells of an experiment, with what their runs tell.
pub(super) struct Strata {
    places: Vec<Place>,
    /// Those with a run.
    blocks: Vec<usize>,
    once_count: usize,
    runs: Stratum,
    /// Where factors are set by hand in each block.
    plots: Option<Stratum>,
}

/// Where the runs of a cell are made.
#[derive(Clone, Copy, Debug)]
struct Place {
    /// Number of what is set once.
    once: usize,
    /// Number of that with what is set by hand.
    setting: usize,
    has_runs: bool,
}

/// What is known of a sum of cells.
#[derive(Clone, Copy, Debug)]
pub(super) struct Known {
    pub(super) log: f64,
    /// `None` where nothing scatters that it could be judged by.
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
    pub(super) fn new(factors: &[Factor], cells: &[Vec<usize>], seen: &[Observation]) -> Self {
        // Levels of factors that are set more often count as one.
        let kept = |levels: &Vec<usize>, sets: &[Setting]| -> Vec<usize> {
            let own = levels.iter().zip(factors);
            own.map(|(level, it)| if sets.contains(&it.set) { *level } else { 0 }).collect()
        };
        let once = numbered(cells.iter().map(|levels| kept(levels, &[Setting::Once])));
        let by_hand = [Setting::Once, Setting::ByHand];
        let settings = numbered(cells.iter().map(|levels| kept(levels, &by_hand)));
        let numbers = once.1.iter().zip(&settings.1).enumerate();
        let place = |(cell, (once, setting)): (usize, (&usize, &usize))| Place {
            once: *once,
            setting: *setting,
            has_runs: seen.iter().any(|it| it.cell == cell),
        };
        let places: Vec<Place> = numbers.map(place).collect();
        let (once_count, settings) = (once.0.len(), settings.0);
        let unit = |it: &Observation| Unit {
            group: it.block * settings.len() + places[it.cell].setting,
            treatment: it.cell,
            value: it.log,
        };
        let runs = Stratum::new(seen.iter().map(unit).collect(), cells.to_vec());
        let blocks: BTreeSet<usize> = seen.iter().map(|it| it.block).collect();
        let blocks = blocks.into_iter().collect();
        let mut strata = Self { places, blocks, once_count, runs, plots: None };
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
            let mut columns = vec![0.0; self.places.len()];
            self.shares(setting).for_each(|(cell, share)| columns[cell] = share);
            let once = self.places.iter().find(|place| place.setting == setting)?.once;
            // Where its cells never meet, the plot stands for those it has.
            let found = self.runs.fit.level(&columns, &group);
            let value = found.map(|sum| sum.value).or_else(|| self.runs.fit.mean(group[0]))?;
            Some(Unit { group: block * self.once_count + once, treatment: setting, value })
        };
        let all = self.blocks.iter().flat_map(|block| (0..settings).map(move |it| (*block, it)));
        Stratum::new(all.filter_map(plot).collect(), treatments)
    }

    /// The mean of a cell over all blocks.
    pub(super) fn level(&self, cell: usize) -> Option<Known> {
        let place = self.places[cell];
        let mut columns = vec![0.0; self.places.len()];
        columns[cell] = 1.0;
        let Some(plots) = &self.plots else {
            let found = self.runs.fit.level(&columns, &self.groups(place.once))?;
            let error = self.runs.part(found).and_then(|part| self.error([part, NO_PART]));
            return Some(Known { log: found.value, error, basis: Basis::Residual });
        };
        let mut setting = vec![0.0; plots.treatments.len()];
        setting[place.setting] = 1.0;
        let between = plots.fit.level(&setting, &self.groups(place.once))?;
        self.shares(place.setting).for_each(|(other, share)| columns[other] -= share);
        let within = self.runs.fit.sum(&columns)?;
        let parts = plots.part(between).zip(self.runs_part(&columns));
        let error = parts.and_then(|(a, b)| self.error([a, b]));
        Some(Known { log: between.value + within.value, error, basis: Basis::Both })
    }

    /// What is known of cells with these weights, whose sum is zero, from the `means` of the cells.
    pub(super) fn contrast(&self, weights: &[f64], means: &[Option<f64>]) -> Option<Known> {
        let named = weights.iter().zip(means).filter(|(weight, _)| **weight != 0.0);
        let log = named.map(|(weight, mean)| Some(weight * (*mean)?)).sum::<Option<f64>>()?;
        let without = |basis| Some(Known { log, error: None, basis });
        if !is_zero(&self.summed(weights, |place| place.once)) {
            return without(Basis::SetOnce);
        }
        let settings = self.summed(weights, |place| place.setting);
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
            error => Some(Known { log, error, basis }),
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

    /// Groups of what was set once.
    fn groups(&self, once: usize) -> Vec<usize> {
        self.blocks.iter().map(|block| block * self.once_count + once).collect()
    }

    /// Variance of a sum of cells within their plots.
    fn runs_part(&self, weights: &[f64]) -> Option<Part> {
        match is_zero(weights) {
            true => Some(NO_PART),
            false => self.runs.part(self.runs.fit.sum(weights)?),
        }
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
            let place = self.places[*cell];
            place.has_runs && place.setting == setting
        };
        let count = (0..self.places.len()).filter(of).count() as f64;
        (0..self.places.len()).filter(of).map(move |cell| (cell, 1.0 / count))
    }

    /// Weights of cells by a number of their place.
    fn summed(&self, weights: &[f64], number: fn(&Place) -> usize) -> Vec<f64> {
        let count = self.places.iter().map(number).max().map_or(0, |last| last + 1);
        let mut sums = vec![0.0; count];
        for (place, weight) in self.places.iter().zip(weights) {
            sums[number(place)] += weight;
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
