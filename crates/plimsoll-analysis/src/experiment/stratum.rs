//! Units of one kind, compared within groups: runs within what they were made in, or settings made
//! by hand within their block.

use std::collections::BTreeMap;

use plimsoll_model::comparison::experiment::Scatter;

use super::fit::{Fit, Row, Sum};

/// One unit: a run, or a setting in a block.
#[derive(Clone, Copy, Debug)]
pub(super) struct Unit {
    pub(super) group: usize,
    /// Index of its levels.
    pub(super) treatment: usize,
    pub(super) value: f64,
}

/// All units of a kind.
pub(super) struct Stratum {
    units: Vec<Unit>,
    /// Levels by factor; those of factors that the units do not tell apart are zero.
    pub(super) treatments: Vec<Vec<usize>>,
    /// A column for each treatment.
    pub(super) fit: Fit,
}

/// A variance, and the degrees of freedom that it is known by.
pub(super) type Part = (f64, f64);

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
        let fit = Fit::of(&units.iter().map(row).collect::<Vec<_>>());
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

    /// Of interactions; `None` where the units tell none.
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
        Fit::of(&self.units.iter().map(row).collect::<Vec<_>>())
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
