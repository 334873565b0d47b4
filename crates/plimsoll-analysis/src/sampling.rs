//! Statistics of samples: Student's and Fisher's distributions, the smallest detectable difference,
//! and samples drawn with replacement (bootstrap).

use std::f64::consts::{FRAC_PI_2, PI};
use std::sync::OnceLock;

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// Of a normal distribution, two-sided 95 %.
pub(crate) const NORMAL_95: f64 = 1.96;
/// 85 % of a normal distribution lie below it: runs with slow modes are not quite normal, and the
/// reported probability is four in five.
const NORMAL_85: f64 = 1.036;
/// Share that an interval leaves out.
pub(crate) const OUTSIDE: f64 = 0.05;
/// Of a logarithm: half a step of the histograms. Runs that agree more closely agree by rounding.
pub(crate) const ERROR_MIN: f64 = 0.000_5;
/// Steps of the integral; quantiles are right to four digits.
const STEPS: usize = 2_000;
/// Above this number of degrees of freedom the distribution is normal to three digits.
const DEGREES_MAX: f64 = 1_000.0;
/// Degrees of freedom from 1 for which Student's t differs from the normal distribution.
const SMALL_DEGREES: usize = 29;

/// Student's t for 95 % (two-sided), to the three decimals of the tables; `None` without a degree
/// of freedom.
pub(crate) fn t_95(degrees: usize) -> Option<f64> {
    /// By degrees of freedom from 1, each computed at its first use.
    static TABLE: [OnceLock<f64>; SMALL_DEGREES] = [const { OnceLock::new() }; SMALL_DEGREES];
    let index = degrees.checked_sub(1)?;
    let compute = || (quantile(0.975, degrees as f64) * 1e3).round() / 1e3;
    Some(TABLE.get(index).map_or(NORMAL_95, |cell| *cell.get_or_init(compute)))
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
    let target = (2.0 * share - 1.0).clamp(0.0, 1.0) * sum;
    let k = sums.partition_point(|sum| *sum < target).clamp(1, STEPS);
    let part = (target - sums[k - 1]) / (sums[k] - sums[k - 1]).max(f64::MIN_POSITIVE);
    let angle = ((k - 1) as f64 + part.clamp(0.0, 1.0)) * step;
    degrees.sqrt() * angle.tan()
}

/// By how many standard errors a 95 % interval goes beyond either of two bounds that lie `apart`
/// standard errors apart, if the truth lies anywhere between them and both bounds have the same
/// sampling error: F(c + apart) − F(−c) = 0.95 (Imbens and Manski, Econometrica 2004).
pub(crate) fn beyond_bounds(apart: f64, degrees: usize) -> f64 {
    /// To a millionth of a standard error.
    const HALVINGS: usize = 24;
    let outside = |errors: f64| f_above(errors * errors, [1.0, degrees as f64]) / 2.0;
    let (mut low, mut high) = (0.0, t_95(degrees).unwrap_or(f64::INFINITY));
    for _ in 0..HALVINGS {
        let middle = f64::midpoint(low, high);
        if outside(middle + apart) + outside(middle) > OUTSIDE {
            low = middle
        } else {
            high = middle
        }
    }
    high
}

/// The difference, in errors, that four of five experiments claim if they claim differences beyond
/// `critical` errors.
///
/// A difference of `K` errors is claimed where `K·s + Z > t·s'`: `Z` is the chance in the
/// means, `s` and `s'` that in the error, from these runs and from those of another
/// time. Each `s` has mean `m` and variance `1 − m²`; taken as normal, which is right to a
/// tenth of a percent from two degrees of freedom on, four in five is a quadratic in `K`.
pub(crate) fn detectable_errors(critical: f64, degrees: f64) -> f64 {
    let (t, df, z2) = (critical, degrees, NORMAL_85 * NORMAL_85);
    let m = 1.0 - 1.0 / (4.0 * df) + 1.0 / (32.0 * df * df);
    let (m2, v) = (m * m, 1.0 - m * m);
    let a = m2 - z2 * v;
    let c = m2 * t * t - z2 * (1.0 + v * t * t);
    (m2 * t + (m2 * m2 * t * t - a * c).max(0.0).sqrt()) / a
}

/// Variance of a sum of two independent means, each known with its degrees of freedom, and the
/// degrees of freedom of that (Satterthwaite 1946, Welch 1947). `None` where neither varies.
pub(crate) fn summed([a, b]: [(f64, f64); 2]) -> Option<(f64, f64)> {
    let sum = a.0 + b.0;
    let below: f64 =
        [a, b].iter().filter(|(v, _)| *v > 0.0).map(|(v, degrees)| v * v / degrees).sum();
    (below > 0.0).then(|| (sum, sum * sum / below))
}

/// Share of Fisher's distribution above `f`.
pub(crate) fn f_above(f: f64, [above, below]: [f64; 2]) -> f64 {
    let part = below / (below + above * f.max(0.0));
    incomplete_beta(part, below / 2.0, above / 2.0)
}

/// The value that `share` of Fisher's distribution lies above, by bisection.
pub(crate) fn f_critical(share: f64, degrees: [f64; 2]) -> f64 {
    const HALVINGS: usize = 80;
    let (mut low, mut high) = (0.0, 1.0);
    while f_above(high, degrees) > share && high < 1e12 {
        high *= 2.0;
    }
    for _ in 0..HALVINGS {
        let middle = f64::midpoint(low, high);
        if f_above(middle, degrees) > share { low = middle } else { high = middle }
    }
    f64::midpoint(low, high)
}

/// The regularised incomplete beta function.
fn incomplete_beta(x: f64, a: f64, b: f64) -> f64 {
    match x {
        ..=0.0 => 0.0,
        1.0.. => 1.0,
        // The fraction converges fast on this side of the mean alone.
        x if x > (a + 1.0) / (a + b + 2.0) => 1.0 - beta_fraction(1.0 - x, b, a),
        x => beta_fraction(x, a, b),
    }
}

/// The same by its continued fraction (Lentz's steps).
fn beta_fraction(x: f64, a: f64, b: f64) -> f64 {
    const TERMS_MAX: u32 = 500;
    let front = ln_gamma(a + b) - ln_gamma(a) - ln_gamma(b) + a * x.ln() + b * (1.0 - x).ln();
    let apart =
        |value: f64| if value.abs() < f64::MIN_POSITIVE { f64::MIN_POSITIVE } else { value };
    let (mut c, mut d) = (1.0, 1.0 / apart(1.0 - (a + b) * x / (a + 1.0)));
    let mut fraction = d;
    for term in 1..TERMS_MAX {
        let m = f64::from(term);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        let before = fraction;
        for step in [even, odd] {
            d = 1.0 / apart(1.0 + step * d);
            c = apart(1.0 + step / c);
            fraction *= c * d;
        }
        if (fraction / before - 1.0).abs() < 1e-14 {
            break;
        }
    }
    front.exp() * fraction / a
}

/// How likely a binomial variable of `n` tries is `t` or less.
pub fn binomial_at_most(t: u64, n: u64, chance: f64) -> f64 {
    if t < n { incomplete_beta(1.0 - chance, (n - t) as f64, t as f64 + 1.0) } else { 1.0 }
}

/// Of a number above zero: Stirling's series, from eight up.
fn ln_gamma(value: f64) -> f64 {
    let (mut at, mut below) = (value, 1.0_f64);
    while at < 8.0 {
        below *= at;
        at += 1.0;
    }
    let series = 1.0 / (12.0 * at) - 1.0 / (360.0 * at.powi(3)) + 1.0 / (1_260.0 * at.powi(5));
    (at - 0.5) * at.ln() - at + (2.0 * PI).ln() / 2.0 + series - below.ln()
}

/// Share of the normal distribution above `z`, from zero up (Abramowitz and Stegun 26.2.17, right
/// to seven digits).
pub fn normal_above(z: f64) -> f64 {
    const TERMS: [f64; 5] =
        [0.319_381_530, -0.356_563_782, 1.781_477_937, -1.821_255_978, 1.330_274_429];
    let t = 1.0 / (1.0 + 0.231_641_9 * z);
    let series = TERMS.iter().rev().fold(0.0, |sum, term| (sum + term) * t);
    series * (-z * z / 2.0).exp() / (2.0 * PI).sqrt()
}

/// Number, mean and variance of some values.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moments {
    pub(crate) n: f64,
    pub(crate) mean: f64,
    pub(crate) variance: f64,
}

impl Moments {
    pub(crate) fn from_values(values: &[f64]) -> Self {
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        Self { n, mean, variance: squares / (n - 1.0).max(1.0) }
    }

    /// Of the mean.
    pub(crate) fn error(&self) -> f64 {
        (self.variance / self.n).sqrt()
    }
}

/// Whether the interval of a ratio shows a difference.
pub(crate) fn leaves_one_out([low, high]: [f64; 2]) -> bool {
    low > 1.0 || high < 1.0
}

/// Values of `statistic` over `resamples` samples. The same seed draws the same samples.
pub(crate) fn resampled<T>(
    seed: u64,
    resamples: usize,
    mut statistic: impl FnMut(&mut Draws) -> T,
) -> Vec<T> {
    let mut draws = Draws(Xoshiro256PlusPlus::seed_from_u64(seed));
    (0..resamples).map(|_| statistic(&mut draws)).collect()
}

/// The middle 95 % of `values`; `None` of nothing.
pub(crate) fn middle(mut values: Vec<f64>) -> Option<[f64; 2]> {
    values.sort_by(f64::total_cmp);
    let at = |share: f64| values.get(((values.len() as f64 - 1.0) * share).round() as usize);
    Some([*at(0.025)?, *at(0.975)?])
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
        let computed: Vec<f64> = (1..=10).filter_map(t_95).collect();
        assert_eq!(computed, printed);
        assert_eq!((t_95(0), t_95(29), t_95(30)), (None, Some(2.045), Some(1.96)));
    }

    /// The table of the report that this method comes from, for twelve degrees of freedom.
    #[test]
    fn bounds_that_lie_apart_need_less_beyond_each_down_to_a_one_sided_interval() {
        let table =
            [(0.0, 2.179), (0.25, 2.067), (0.5, 1.980), (1.0, 1.871), (2.0, 1.797), (5.0, 1.782)];
        for (apart, beyond) in table {
            let computed = beyond_bounds(apart, 12);
            assert!((computed - beyond).abs() < 1e-3, "{apart}: {computed}");
        }
    }

    #[test]
    fn fishers_distribution_has_the_printed_figures_and_is_students_squared() {
        let printed =
            [(1.0, 6.0, 5.987), (2.0, 8.0, 4.459), (3.0, 10.0, 3.708), (6.0, 24.0, 2.508)];
        for (above, below, table) in printed {
            let computed = f_critical(0.05, [above, below]);
            assert!((computed / table - 1.0).abs() < 2e-4, "{above}, {below}: {computed}");
            assert!((f_above(computed, [above, below]) - 0.05).abs() < 1e-9);
        }
        let t = quantile(0.975, 7.0);
        assert!((f_critical(0.05, [1.0, 7.0]) / (t * t) - 1.0).abs() < 1e-4);
        assert_eq!((f_above(0.0, [2.0, 8.0]), f_above(f64::INFINITY, [2.0, 8.0])), (1.0, 0.0));
    }

    #[test]
    fn where_both_fractions_converge_alike_either_will_do() {
        for step in -50..50 {
            let degrees = 4.0 + f64::from(step) * f64::EPSILON;
            let above = f_above(2.0, [1.0, degrees]);
            assert!((above - 0.230_200).abs() < 1e-5, "{degrees}: {above}");
        }
    }

    #[test]
    fn quantiles_are_those_of_the_tables() {
        let check = |share, degrees, table: f64| {
            let computed = quantile(share, degrees);
            assert!((computed / table - 1.0).abs() < 2e-3, "{share} of {degrees}: {computed}");
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
