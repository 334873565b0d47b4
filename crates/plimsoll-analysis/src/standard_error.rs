//! The standard error of a ratio of sums over one window: of a mean, a share, a rate.
//!
//! Neighbouring ops depend on each other (a queue stays a queue for a while), so that a window
//! holds less than its number of ops suggests. What each of its slices deviates by is projected on
//! the lowest frequencies of the window, which have in them what is left of the dependence over its
//! whole length (equal-weighted cosines: Lazarus, Lewis, Stock and Watson, Journal of Business and
//! Economic Statistics 2018). With ν frequencies the figure has Student's distribution with ν
//! degrees of freedom.

use std::f64::consts::PI;

use crate::sampling::{beyond_bounds, t_95};

/// Frequencies of a window: more would not see how long a queue remembers, fewer make every
/// interval wider.
const DEGREES_MAX: usize = 12;
/// The slowest frequency against the mean of the eleven others: chance exceeds this (F with 1 and
/// 11 degrees of freedom) once in a thousand windows.
const DRIFT_MIN: f64 = 19.7;
/// Student's distribution with these is normal.
const NORMAL_DEGREES: usize = 1_000;
/// Slices to each frequency, so that the slices themselves do not hide it.
const SLICES_PER_DEGREE: usize = 3;
/// Fewer than these frequencies, where a window has few slices, know their own scatter too little:
/// samples of a monitor, and bundles of earlier versions.
const DEGREES_MIN: usize = 6;

/// How far chance moves a figure, and how well that is known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct StandardError {
    /// In the unit of the figure.
    pub(crate) error: f64,
    /// Degrees of freedom of Student's distribution.
    pub(crate) degrees: usize,
    /// The slowest of all frequencies is stronger than chance makes it: the figure drifts.
    pub(crate) drifts: bool,
}

impl StandardError {
    /// Of Σ numerators / Σ denominators over slices in order of time. `degrees_max` limits the
    /// degrees of freedom: no more than a quarter of the ops, no more than half of the waves of
    /// clients that go in step. `None` of fewer than two slices, or where nothing was counted.
    pub(crate) fn of_ratio(slices: &[(f64, f64)], degrees_max: f64) -> Option<Self> {
        let count = slices.len();
        let (sum, weight) = ratio_parts(slices.iter());
        if count < 2 || weight <= 0.0 {
            return None;
        }
        let by_slices = (count / SLICES_PER_DEGREE).clamp(DEGREES_MIN.min(count - 1), DEGREES_MAX);
        let degrees = by_slices.min((degrees_max as usize).max(1));
        let ratio = sum / weight;
        let projected = |frequency: usize| -> f64 {
            let angle = PI * frequency as f64 / count as f64;
            let part = |(at, (part, weight)): (usize, &(f64, f64))| {
                (part - ratio * weight) * (angle * (at as f64 + 0.5)).cos()
            };
            slices.iter().enumerate().map(part).sum()
        };
        let slowest = projected(1).powi(2);
        let others: f64 = (2..=degrees).map(|frequency| projected(frequency).powi(2)).sum();
        let drifts = degrees == DEGREES_MAX
            && slowest * (degrees - 1) as f64 > DRIFT_MIN * others.max(f64::MIN_POSITIVE);
        let squares = slowest + others;
        // Each projection is scaled by √(2 / slices), their mean square by the slices.
        Some(Self { error: (2.0 * squares / degrees as f64).sqrt() / weight, degrees, drifts })
    }

    /// No less than independent ops scatter: less is luck. Their error is known, with as many
    /// degrees of freedom as a normal distribution has.
    pub(crate) fn at_least(self, error: f64) -> Self {
        let independent = Self { error, degrees: NORMAL_DEGREES, ..self };
        match self.degrees < DEGREES_MAX {
            true => Self { error: self.error.max(error), ..self },
            false if independent.half_width() > self.half_width() => independent,
            false => self,
        }
    }

    /// Half of the width of a 95 % interval, in standard errors.
    pub(crate) fn t(self) -> f64 {
        t_95(self.degrees).unwrap_or(f64::INFINITY)
    }

    /// Half of the width of a 95 % interval.
    pub(crate) fn half_width(self) -> f64 {
        self.t() * self.error
    }

    /// By how many standard errors an interval goes beyond the two bounds that its truth lies
    /// between, which are `apart`: [`beyond_bounds`].
    pub(crate) fn beyond(self, apart: f64) -> f64 {
        match self.error > 0.0 && apart > 0.0 {
            true => beyond_bounds(apart / self.error, self.degrees),
            false => self.t(),
        }
    }
}

/// Sums of numerators and denominators.
pub(crate) fn ratio_parts<'a>(parts: impl Iterator<Item = &'a (f64, f64)>) -> (f64, f64) {
    parts.fold((0.0, 0.0), |sum, part| (sum.0 + part.0, sum.1 + part.1))
}

#[cfg(test)]
mod tests;
