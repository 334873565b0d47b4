//! Which cells an effect compares, and what may be claimed of it.

use plimsoll_model::comparison::RatioFigure;
use plimsoll_model::comparison::experiment::{
    AtLevel, Basis, Best, BestClaim, Cell, Effect, EffectClaim, Factor, Interaction,
};

use super::strata::{Error, LogEstimate, Strata, Test};
use crate::sampling::{OUTSIDE, detectable_errors, f_above, f_critical, leaves_one_out, quantile};

/// The facts of an experiment that effects are computed from.
pub(super) struct Grid<'a> {
    pub(super) factors: &'a [Factor],
    pub(super) figure: RatioFigure,
    pub(super) cells: &'a [Cell],
    /// Logarithms of the cells' means; `None` for bounds.
    pub(super) means: &'a [Option<f64>],
    pub(super) strata: &'a Strata,
}

impl Error {
    /// The 95 % interval; `shared` intervals share the 5 %.
    pub(super) fn interval(self, log: f64, shared: usize) -> [f64; 2] {
        let errors = self.critical(shared);
        [-1.0, 1.0].map(|side| (log + side * errors * self.size).exp())
    }

    fn critical(self, shared: usize) -> f64 {
        quantile(1.0 - OUTSIDE / shared.max(1) as f64 / 2.0, self.degrees)
    }

    fn detectable(self) -> f64 {
        (detectable_errors(self.critical(1), self.degrees) * self.size).exp()
    }
}

impl Grid<'_> {
    /// Effects of each level against the first of its factor, over all combinations of the others.
    pub(super) fn main_effects(&self) -> Vec<Effect> {
        let factors = self.factors.iter().enumerate();
        let levels =
            factors.flat_map(|(at, factor)| (1..factor.levels.len()).map(move |to| (at, to)));
        levels.map(|(factor, to)| self.effect(factor, to, Vec::new())).collect()
    }

    /// The same at each combination of the others.
    pub(super) fn effects_at_levels(&self) -> Vec<Effect> {
        let mut effects = Vec::new();
        for factor in 0..self.factors.len() {
            for fixed in self.combinations(factor) {
                let to = 1..self.factors[factor].levels.len();
                effects.extend(to.map(|to| self.effect(factor, to, fixed.clone())));
            }
        }
        effects.retain(|effect| effect.claim != EffectClaim::Absent);
        effects
    }

    /// Levels of all other factors, in the order of the cells.
    pub(super) fn combinations(&self, factor: usize) -> Vec<Vec<AtLevel>> {
        let mut combinations: Vec<Vec<AtLevel>> = Vec::new();
        for cell in self.cells {
            let fixed = others(&cell.levels, factor);
            if !combinations.contains(&fixed) {
                combinations.push(fixed);
            }
        }
        combinations
    }

    fn effect(&self, factor: usize, to: usize, at: Vec<AtLevel>) -> Effect {
        let pairs = self.pairs(factor, to, &at);
        let is_bound = |side: fn(&(usize, usize)) -> usize| {
            pairs.iter().any(|pair| self.cells[side(pair)].at_least)
        };
        let (from_least, to_least) = (is_bound(|pair| pair.0), is_bound(|pair| pair.1));
        let absent = Effect {
            factor,
            from: 0,
            to,
            over: if at.is_empty() { self.left(factor, &pairs) } else { Vec::new() },
            at,
            ratio: None,
            interval: None,
            detectable: None,
            efficiency: None,
            claim: EffectClaim::Absent,
            basis: Basis::Bound,
        };
        let effect = match (pairs.is_empty(), from_least, to_least) {
            (true, _, _) => absent,
            (_, false, false) => self.evaluate(absent, &pairs),
            (_, from_least, to_least) => {
                let logs = pairs.iter().filter_map(|(from, to)| {
                    Some((self.cells[*to].mean? / self.cells[*from].mean?).ln())
                });
                let claim = match (from_least, to_least) {
                    (true, true) => EffectClaim::Open,
                    (true, false) => EffectClaim::AtMost,
                    (false, _) => EffectClaim::AtLeast,
                };
                let ratio = Some((logs.sum::<f64>() / pairs.len() as f64).exp());
                Effect { ratio, claim, ..absent }
            }
        };
        let efficiency = effect.ratio.filter(|_| !self.figure.is_less_better()).and_then(|ratio| {
            let values = self.factors[factor].values()?;
            Some(ratio / (values[to] / values[0]))
        });
        Effect { efficiency, ..effect }
    }

    /// The combinations of the other factors that these pairs cover, where they do not cover all.
    fn left(&self, factor: usize, pairs: &[(usize, usize)]) -> Vec<Vec<AtLevel>> {
        if pairs.len() == self.combinations(factor).len() {
            return Vec::new();
        }
        pairs.iter().map(|(from, _)| others(&self.cells[*from].levels, factor)).collect()
    }

    fn evaluate(&self, absent: Effect, pairs: &[(usize, usize)]) -> Effect {
        let share = 1.0 / pairs.len() as f64;
        let mut weights = vec![0.0; self.cells.len()];
        for (from, to) in pairs {
            weights[*from] -= share;
            weights[*to] += share;
        }
        let Some(LogEstimate { log, error, basis }) = self.strata.contrast(&weights, self.means)
        else {
            return absent;
        };
        let interval = error.map(|error| error.interval(log, 1));
        Effect {
            ratio: Some(log.exp()),
            interval,
            detectable: error.map(Error::detectable),
            claim: match interval {
                None => EffectClaim::RatioOnly,
                Some(interval) if leaves_one_out(interval) => EffectClaim::Differs,
                Some(_) => EffectClaim::Within,
            },
            basis,
            ..absent
        }
    }

    /// Cells at the first level and at another that have the rest in common, where both have runs.
    fn pairs(&self, factor: usize, to: usize, at: &[AtLevel]) -> Vec<(usize, usize)> {
        let has_mean = |cell: &&Cell| cell.mean.is_some();
        let index = |levels: &[usize]| {
            self.cells.iter().position(|cell| cell.mean.is_some() && cell.levels == levels)
        };
        let fixed = |cell: &&Cell| at.iter().all(|fixed| cell.levels[fixed.factor] == fixed.level);
        let of_first = self.cells.iter().filter(has_mean).filter(fixed);
        let pair = |cell: &Cell| {
            let mut levels = cell.levels.clone();
            levels[factor] = to;
            Some((index(&cell.levels)?, index(&levels)?))
        };
        of_first.filter(|cell| cell.levels[factor] == 0).filter_map(pair).collect()
    }

    /// The cell with the best mean against the first; 5 % is shared among all cells, since the best
    /// was chosen.
    pub(super) fn best(&self) -> Option<Best> {
        let first = self.cells.first()?.mean?;
        let better = |a: f64, b: f64| if self.figure.is_less_better() { a < b } else { a > b };
        let measured =
            self.cells.iter().enumerate().filter_map(|(at, cell)| Some((at, cell.mean?)));
        let (cell, mean) = measured.clone().reduce(|a, b| if better(b.1, a.1) { b } else { a })?;
        let mut weights = vec![0.0; self.cells.len()];
        weights[cell] += 1.0;
        weights[0] -= 1.0;
        let contrast = self.strata.contrast(&weights, self.means).filter(|_| cell != 0);
        let others = measured.count().saturating_sub(1);
        let interval = contrast.and_then(|it| Some(it.error?.interval(it.log, others)));
        let claim = match (cell, interval) {
            (0, _) => BestClaim::First,
            (_, Some(interval)) if leaves_one_out(interval) => BestClaim::Better,
            _ => BestClaim::RunAgain,
        };
        Some(Best { cell, ratio: mean / first, interval, claim, again: None })
    }
}

/// One test of all interactions; where two kinds of scatter need one each, they share the 5 %.
pub(super) fn interaction(tests: &[Test]) -> Option<Interaction> {
    let count = tests.len() as f64;
    let evaluate = |test: &Test| {
        let &Test { f, degrees: [above, below], error } = test;
        let p = (f_above(f, [above, below]) * count).min(1.0);
        // Chance also adds to each of its other directions.
        let critical = (above * f_critical(OUTSIDE / count, [above, below])).sqrt();
        let errors = detectable_errors(critical, below);
        let errors = (errors * errors - (above - 1.0)).max(0.0).sqrt();
        let detectable = (errors * error).exp();
        Interaction { f, degrees: [above, below], p, found: p < OUTSIDE, detectable }
    };
    let all: Vec<Interaction> = tests.iter().map(evaluate).collect();
    let detectable = all.iter().map(|it| it.detectable).fold(1.0, f64::max);
    let surest = all.into_iter().min_by(|a, b| a.p.total_cmp(&b.p))?;
    Some(Interaction { detectable, ..surest })
}

/// Levels of all factors but one.
pub(super) fn others(levels: &[usize], factor: usize) -> Vec<AtLevel> {
    let all = levels.iter().enumerate().map(|(factor, level)| AtLevel { factor, level: *level });
    all.filter(|fixed| fixed.factor != factor).collect()
}
