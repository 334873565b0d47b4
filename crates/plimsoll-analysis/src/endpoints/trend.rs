//! Has a series a trend, or a break? Mann–Kendall's test with the correction of Hamed and Rao
//! (1998) for neighbours that depend on each other, Sen's slope, Pettitt's test (1979).

use std::f64::consts::PI;

/// A trend with its slope per step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Trend {
    /// How likely a series without a trend shows as much.
    pub(super) p: f64,
    /// Sen's: the median of the slopes between all pairs.
    pub(super) slope: f64,
}

/// `None` below four values.
pub(super) fn mann_kendall(values: &[f64]) -> Option<Trend> {
    let n = values.len();
    if n < 4 {
        return None;
    }
    let pairs = || (0..n).flat_map(|i| (i + 1..n).map(move |j| (i, j)));
    let s: f64 = pairs().map(|(i, j)| sign(values[j] - values[i])).sum();
    let mut slopes: Vec<f64> =
        pairs().map(|(i, j)| (values[j] - values[i]) / (j - i) as f64).collect();
    let slope = median(&mut slopes);
    let count = n as f64;
    let ties: f64 = tied(values).map(|t| t * (t - 1.0) * (2.0 * t + 5.0)).sum();
    let variance = (count * (count - 1.0) * (2.0 * count + 5.0) - ties) / 18.0;
    let corrected = variance * hamed_rao(values, slope);
    let p = match corrected > 0.0 {
        true => 2.0 * normal_above((s.abs() - 1.0).max(0.0) / corrected.sqrt()),
        // All values are the same.
        false => 1.0,
    };
    Some(Trend { p: p.min(1.0), slope })
}

/// By how much neighbours that are alike widen the variance: from the autocorrelations of the ranks
/// of what is left without the trend, of those that are significant.
fn hamed_rao(values: &[f64], slope: f64) -> f64 {
    let rest: Vec<f64> = values.iter().enumerate().map(|(i, v)| v - slope * i as f64).collect();
    let ranks = ranks(&rest);
    let n = ranks.len();
    let count = n as f64;
    let mean = ranks.iter().sum::<f64>() / count;
    let off: Vec<f64> = ranks.iter().map(|rank| rank - mean).collect();
    let squares: f64 = off.iter().map(|off| off * off).sum();
    if squares == 0.0 {
        return 1.0;
    }
    let sum: f64 = (1..n - 1)
        .map(|lag| (lag, off.iter().zip(&off[lag..]).map(|(a, b)| a * b).sum::<f64>() / squares))
        .filter(|(_, rho)| rho.abs() > 1.96 / count.sqrt())
        .map(|(lag, rho)| {
            let left = count - lag as f64;
            left * (left - 1.0) * (left - 2.0) * rho
        })
        .sum();
    // Neighbours that are unlike each other do not make a trend surer.
    (1.0 + 2.0 * sum / (count * (count - 1.0) * (count - 2.0))).max(1.0)
}

/// The place before which a level shift lies, and how likely a series without one shows as much.
pub(super) fn pettitt(values: &[f64]) -> Option<(usize, f64)> {
    let n = values.len();
    let shift = |at: usize| -> f64 {
        let (before, after) = values.split_at(at);
        before.iter().flat_map(|a| after.iter().map(move |b| sign(a - b))).sum()
    };
    let all = (1..n).map(|at| (at, shift(at).abs()));
    let (at, k) = all.max_by(|a, b| a.1.total_cmp(&b.1))?;
    let count = n as f64;
    let p = 2.0 * (-6.0 * k * k / (count.powi(3) + count.powi(2))).exp();
    Some((at, p.min(1.0)))
}

/// Standard deviation over mean.
pub(super) fn variation(values: &[f64]) -> f64 {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (n - 1.0).max(1.0);
    if mean > 0.0 { variance.sqrt() / mean } else { 0.0 }
}

/// Middle value; sorts. Of none zero.
pub(super) fn median(values: &mut [f64]) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    match (values.len() / 2, values.len() % 2) {
        (0, 0) => 0.0,
        (half, 0) => f64::midpoint(values[half - 1], values[half]),
        (half, _) => values[half],
    }
}

fn sign(value: f64) -> f64 {
    if value == 0.0 { 0.0 } else { value.signum() }
}

/// How many values share each value that several have.
fn tied(values: &[f64]) -> impl Iterator<Item = f64> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let sizes: Vec<f64> = sorted.chunk_by(|a, b| a == b).map(|same| same.len() as f64).collect();
    sizes.into_iter().filter(|size| *size > 1.0)
}

fn ranks(values: &[f64]) -> Vec<f64> {
    let rank = |value: &f64| {
        let below = values.iter().filter(|other| *other < value).count();
        let same = values.iter().filter(|other| *other == value).count();
        below as f64 + (same as f64 + 1.0) / 2.0
    };
    values.iter().map(rank).collect()
}

/// Share of the normal distribution above `z`, from zero up (Abramowitz and Stegun 26.2.17, right
/// to seven digits).
fn normal_above(z: f64) -> f64 {
    const TERMS: [f64; 5] =
        [0.319_381_530, -0.356_563_782, 1.781_477_937, -1.821_255_978, 1.330_274_429];
    let t = 1.0 / (1.0 + 0.231_641_9 * z);
    let series = TERMS.iter().rev().fold(0.0, |sum, term| (sum + term) * t);
    series * (-z * z / 2.0).exp() / (2.0 * PI).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trend_is_found_and_noise_is_none() {
        let rising: Vec<f64> = (0..12).map(|i| 10.0 + f64::from(i)).collect();
        let trend = mann_kendall(&rising).unwrap();
        assert!(trend.p < 1e-4 && (trend.slope - 1.0).abs() < 1e-12, "{trend:?}");
        let noise = [5.0, 3.0, 8.0, 1.0, 9.0, 2.0, 7.0, 4.0, 6.0, 5.0];
        assert!(mann_kendall(&noise).unwrap().p > 0.5);
        assert_eq!(mann_kendall(&[2.0; 8]).unwrap(), Trend { p: 1.0, slope: 0.0 });
        assert_eq!(mann_kendall(&[1.0, 2.0, 3.0]), None);
    }

    #[test]
    fn the_variance_of_a_series_without_ties_is_the_printed_one() {
        // By hand, n = 10: S = 1 has variance 10·9·25/18 = 125, so z = (|S| − 1)/√125.
        let values = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 10.0, 9.0];
        // S = 43: z = 42/11.18 = 3.757, two-sided p = 1.7e-4.
        let p = mann_kendall(&values).unwrap().p;
        assert!((p / 1.72e-4 - 1.0).abs() < 0.02, "{p}");
    }

    #[test]
    fn neighbours_that_are_alike_make_a_trend_less_sure() {
        let wave: Vec<f64> =
            (0..24).map(|i| (f64::from(i) / 6.0).sin() + f64::from(i) / 40.0).collect();
        let slope = mann_kendall(&wave).unwrap().slope;
        assert!(hamed_rao(&wave, slope) > 1.5);
    }

    #[test]
    fn a_level_shift_is_found_where_it_is() {
        let mut values = vec![10.0, 11.0, 10.5, 10.2, 10.8, 10.4, 10.6, 10.1];
        values.extend([15.0, 15.2, 14.9, 15.4, 15.1, 15.3, 14.8, 15.5]);
        let (at, p) = pettitt(&values).unwrap();
        assert!(at == 8 && p < 0.05, "{at} {p}");
        assert_eq!(pettitt(&[1.0]), None);
    }

    #[test]
    fn the_tail_of_the_normal_distribution_is_that_of_the_tables() {
        for (z, table) in [(0.0, 0.5), (1.0, 0.158_655), (1.96, 0.024_998), (3.0, 0.001_350)] {
            assert!((normal_above(z) - table).abs() < 1e-6, "{z}");
        }
    }
}
