//! Student's distribution, for any degrees of freedom.

use std::f64::consts::FRAC_PI_2;

/// Steps of the integral; quantiles are right to four digits.
const STEPS: usize = 2_000;
/// Beyond so many the distribution is normal to three digits.
const DEGREES_MAX: f64 = 1_000.0;

/// The value that `share` of the distribution lies below; `share` is above a half and below one.
///
/// With `t = √df · tan θ` the density becomes a power of the cosine, whose integral is taken by
/// trapezoids.
pub(super) fn quantile(share: f64, degrees: f64) -> f64 {
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

#[cfg(test)]
mod tests {
    use super::*;

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
