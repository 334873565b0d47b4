//! What a sample tells of the population behind it: Student's distribution, and samples drawn from
//! it with replacement (bootstrap).

use std::f64::consts::FRAC_PI_2;
use std::sync::OnceLock;

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// Of a normal distribution, two-sided 95 %.
pub(crate) const NORMAL_95: f64 = 1.96;
/// Steps of the integral; quantiles are right to four digits.
const STEPS: usize = 2_000;
/// Above this number of degrees of freedom the distribution is normal to three digits.
const DEGREES_MAX: f64 = 1_000.0;
/// Degrees of freedom from 1 for which Student's t differs from the normal distribution.
const SMALL_DEGREES: usize = 29;

/// Student's t for 95 % (two-sided), to the three decimals of the tables; `None` without a degree of
/// freedom.
pub(crate) fn t_95(degrees: usize) -> Option<f64> {
    /// By degrees of freedom from 1, each computed when it is first asked for.
    static TABLE: [OnceLock<f64>; SMALL_DEGREES] = [const { OnceLock::new() }; SMALL_DEGREES];
    let index = degrees.checked_sub(1)?;
    let compute = || (quantile(0.975, degrees as f64) * 1e3).round() / 1e3;
    Some(TABLE.get(index).map_or(NORMAL_95, |known| *known.get_or_init(compute)))
}

/// The value that `share` of the distribution lies below; `share` is above a half and below one.
///
/// With `t = √df · tan θ` the density becomes a power of the cosine, whose integral is taken by
/// trapezoids.
pub(crate) fn quantile(share: f64, degrees: f64) -> f64 {
    let degrees = degrees.clamp(1.0, DEGREES_MAX);
    let step = FRAC_PI_2 / STEPS as f64;
    let density = |k: usize| (k as f64 * step).cos().max(0.0).powf(degrees - 1.0);
    let mut sums = Vec::with_capacity(STEPS + 1);
    let (mut sum, mut before) = (0.0, density(0));
    sums.push(sum);
    for k in 1..=STEPS {
        let here = density(k);
        sum += (before + here) / 2.0;
        sums.push(sum);
        before = here;
    }
    let wanted = (2.0 * share - 1.0).clamp(0.0, 1.0) * sum;
    let k = sums.partition_point(|sum| *sum < wanted).clamp(1, STEPS);
    let part = (wanted - sums[k - 1]) / (sums[k] - sums[k - 1]).max(f64::MIN_POSITIVE);
    let angle = ((k - 1) as f64 + part.clamp(0.0, 1.0)) * step;
    degrees.sqrt() * angle.tan()
}

/// What `resamples` samples come to that `statistic` draws. The same seed draws the same samples.
pub(crate) fn resampled<T>(
    seed: u64,
    resamples: usize,
    mut statistic: impl FnMut(&mut Draws) -> T,
) -> Vec<T> {
    let mut draws = Draws(Xoshiro256PlusPlus::seed_from_u64(seed));
    (0..resamples).map(|_| statistic(&mut draws)).collect()
}

/// Draws with replacement.
pub(crate) struct Draws(Xoshiro256PlusPlus);

impl Draws {
    /// One of `values`, which are not empty.
    pub(crate) fn one<T: Copy>(&mut self, values: &[T]) -> T {
        values[(self.0.next_u64() % values.len() as u64) as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_has_the_printed_figures() {
        let printed = [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228];
        let found: Vec<f64> = (1..=10).filter_map(t_95).collect();
        assert_eq!(found, printed);
        assert_eq!((t_95(0), t_95(29), t_95(30)), (None, Some(2.045), Some(1.96)));
    }

    #[test]
    fn quantiles_are_those_of_the_tables() {
        let check = |share, degrees, table: f64| {
            let found = quantile(share, degrees);
            assert!((found / table - 1.0).abs() < 2e-3, "{share} of {degrees}: {found}");
        };
        check(0.975, 2.0, 4.303);
        check(0.975, 4.0, 2.776);
        check(0.975, 28.0, 2.048);
        check(0.975, 1e9, 1.962);
        check(0.8, 4.0, 0.941);
        check(0.9975, 8.0, 3.833);
        check(0.975, 2.5, 3.575);
    }
}
