//! The ratio of two groups with its interval: Student's t on logarithms, since disturbances change
//! a run by a share of itself.

use plimsoll_model::comparison::{Method, RUNS_MIN};

use crate::sampling::{
    Draws, ERROR_MIN, Moments, OUTSIDE, detectable_errors, quantile, resampled, summed,
};

/// Runs of a side, or pairs, from which the bootstrap draws: fewer allow too few different samples.
const BOOTSTRAP_RUNS_MIN: usize = 15;
const RESAMPLES: usize = 1_999;
/// The same bundles give the same comparison.
const SEED: u64 = 0x504c_494d_5241_5449;

/// A difference of logarithms, its error, and the method.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Estimate {
    log: f64,
    error: f64,
    degrees: f64,
    /// Errors to either side that leave 5 % out.
    critical: f64,
    /// Those that leave out 5 % shared among several figures.
    critical_of_all: f64,
    pub(super) method: Method,
}

impl Estimate {
    /// From pairs of runs: the second over the first. `None` below three.
    pub(super) fn paired(first: &[f64], other: &[f64], figures: usize) -> Option<Self> {
        let logs: Vec<f64> = first.iter().zip(other).map(|(a, b)| (b / a).ln()).collect();
        let n = logs.len();
        if n < RUNS_MIN {
            return None;
        }
        let start = Moments::from_values(&logs);
        let degrees = n as f64 - 1.0;
        let t = |moments: Moments| (moments.mean - start.mean) / moments.error().max(ERROR_MIN);
        let drawn = (n >= BOOTSTRAP_RUNS_MIN)
            .then(|| sizes(|random| t(Moments::from_values(&drawn_from(&logs, random)))));
        let base = (start.mean, start.error(), degrees);
        Some(Self::new(base, drawn, Method::PairedT, figures))
    }

    /// From two groups of runs made apart. `None` below three of a side.
    pub(super) fn apart(first: &[f64], other: &[f64], figures: usize) -> Option<Self> {
        let [first, other] = [first, other]
            .map(|runs| -> Vec<f64> { runs.iter().map(|value| value.ln()).collect() });
        let fewer = first.len().min(other.len());
        if fewer < RUNS_MIN {
            return None;
        }
        let (a, b) = (Moments::from_values(&first), Moments::from_values(&other));
        let log = b.mean - a.mean;
        let t = |a: Moments, b: Moments| (b.mean - a.mean - log) / welch(a, b).0.max(ERROR_MIN);
        let drawn = (fewer >= BOOTSTRAP_RUNS_MIN).then(|| {
            sizes(|random| {
                let a = Moments::from_values(&drawn_from(&first, random));
                t(a, Moments::from_values(&drawn_from(&other, random)))
            })
        });
        let (error, degrees) = welch(a, b);
        Some(Self::new((log, error, degrees), drawn, Method::Welch, figures))
    }

    fn new(
        (log, error, degrees): (f64, f64, f64),
        drawn: Option<Vec<f64>>,
        method: Method,
        figures: usize,
    ) -> Self {
        let share = OUTSIDE / figures.max(1) as f64;
        let critical = |outside: f64| match &drawn {
            None => quantile(1.0 - outside / 2.0, degrees),
            Some(drawn) => {
                let at = (1.0 - outside) * RESAMPLES as f64;
                drawn[(at.ceil() as usize).min(RESAMPLES) - 1]
            }
        };
        Self {
            log,
            error: error.max(ERROR_MIN),
            degrees,
            critical: critical(OUTSIDE),
            critical_of_all: critical(share),
            method: if drawn.is_some() { Method::Bootstrap } else { method },
        }
    }

    /// Of the ratio, 95 %.
    pub(super) fn interval(&self) -> [f64; 2] {
        self.around(self.critical)
    }

    /// The same with the 5 % shared among several figures.
    pub(super) fn interval_of_all(&self) -> [f64; 2] {
        self.around(self.critical_of_all)
    }

    fn around(&self, errors: f64) -> [f64; 2] {
        [-1.0, 1.0].map(|side| (self.log + side * errors * self.error).exp())
    }

    /// The ratio above 1 that four of five such comparisons would claim.
    pub(super) fn detectable(&self) -> f64 {
        (detectable_errors(self.critical_of_all, self.degrees) * self.error).exp()
    }
}

/// Error of the difference of two means, and its degrees of freedom (Welch 1947).
fn welch(a: Moments, b: Moments) -> (f64, f64) {
    let parts = [(a.variance / a.n, a.n - 1.0), (b.variance / b.n, b.n - 1.0)];
    let (variance, degrees) = summed(parts).unwrap_or((0.0, a.n + b.n - 2.0));
    (variance.sqrt(), degrees)
}

/// Sorted sizes of the statistic over resampled runs.
fn sizes(mut statistic: impl FnMut(&mut Draws) -> f64) -> Vec<f64> {
    let mut drawn = resampled(SEED, RESAMPLES, |random| statistic(random).abs());
    drawn.sort_unstable_by(f64::total_cmp);
    drawn
}

fn drawn_from(values: &[f64], random: &mut Draws) -> Vec<f64> {
    values.iter().map(|_| random.one(values)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_compared_by_their_own_ratios() {
        // A host that slows down moves both runs of a pair.
        let first = [100.0, 80.0, 60.0, 90.0, 70.0];
        let other = [110.2, 87.9, 66.1, 98.8, 77.1];
        let [low, high] = Estimate::paired(&first, &other, 1).unwrap().interval();
        assert!(1.095 < low && low < 1.1 && high < 1.105, "{low} to {high}");
        let [low, high] = Estimate::apart(&first, &other, 1).unwrap().interval();
        assert!(low < 0.9 && high > 1.2, "apart, the host hides it: {low} to {high}");
    }

    #[test]
    fn a_known_case_of_welch_gives_the_published_figures() {
        // Means 3 and 5, variances 2.5 and 10, five of each: t = 1.265, df = 5.882.
        let runs = |values: [f64; 5]| values.map(f64::exp);
        let estimate = Estimate::apart(&runs([1., 2., 3., 4., 5.]), &runs([1., 3., 5., 7., 9.]), 1);
        let estimate = estimate.unwrap();
        assert!((estimate.log / estimate.error - 1.2649).abs() < 1e-3, "{estimate:?}");
        assert!((estimate.degrees - 5.882).abs() < 1e-3, "{estimate:?}");
    }

    #[test]
    fn fewer_than_three_runs_have_no_interval_and_fifteen_are_resampled() {
        let runs = |n: usize| -> Vec<f64> { (0..n).map(|i| 100.0 + (i % 5) as f64).collect() };
        assert_eq!(Estimate::apart(&runs(2), &runs(5), 1), None);
        assert_eq!(Estimate::paired(&runs(2), &runs(2), 1), None);
        assert_eq!(Estimate::apart(&runs(14), &runs(15), 1).unwrap().method, Method::Welch);
        let many = Estimate::apart(&runs(15), &runs(15), 1).unwrap();
        assert_eq!(many.method, Method::Bootstrap);
        assert!((1.8..2.4).contains(&many.critical), "{many:?}");
    }

    #[test]
    fn several_figures_share_what_chance_may_take() {
        let (first, other) = ([100.0, 103.0, 98.0, 101.0], [105.0, 101.0, 104.0, 106.0]);
        let estimate = Estimate::apart(&first, &other, 10).unwrap();
        let ([low, high], [low_all, high_all]) = (estimate.interval(), estimate.interval_of_all());
        assert!(low_all < low && high_all > high);
    }

    #[test]
    fn runs_that_agree_by_rounding_claim_no_less_than_the_rounding() {
        let estimate = Estimate::paired(&[100.0; 3], &[100.01; 3], 1).unwrap();
        assert!(estimate.interval()[0] < 1.0 && estimate.detectable() > 1.001, "{estimate:?}");
    }
}
