//! What the runs of a row show of the intervals of a figure: do they contain the truth less often
//! than in 93 of 100 runs, or more often than in 97?

use plimsoll_analysis::binomial_at_most;

use super::outcome::Measured;
use super::truth::{GOOD, MEAN, PERCENTILES, THROUGHPUT, Truth};
use crate::bench::median;

/// Chance that at least one figure is refuted although all are as they should be.
const FAMILY_LEVEL: f64 = 0.05;
/// Figures that share it (Bonferroni): ten of each row.
const FAMILY_FIGURES: f64 = 480.0;
/// Shares of intervals that contain the truth, beyond which a figure is refuted.
const SHARES: [f64; 2] = [0.93, 0.97];
/// With a smaller effective sample an interval may contain the truth more often: a percentile needs
/// some ops beyond it even if all are independent.
const EFFECTIVE_MIN: f64 = 30.0;
/// Where the sample makes less of the width than this, an interval may contain the truth more
/// often: it may lie anywhere between the bounds that generator and histogram leave.
const SAMPLE_MIN_RATIO: f64 = 0.9;
/// Figures that vary less between runs than a step of a result's histograms do not vary.
const CONSTANT_RATIO: f64 = 1e-3;

/// Whether the intervals contain the truth as often as they claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing speaks against it.
    NotRefuted,
    /// In less than 93 of 100 runs.
    Below,
    /// In more than 97 of 100 runs.
    Above,
}

/// A figure of a row, over its runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Evaluation {
    /// Runs with an interval.
    pub runs: usize,
    /// Intervals that contain the truth.
    pub covering: usize,
    /// Intervals above the truth, and below it.
    pub truth_below: usize,
    pub truth_above: usize,
    /// Intervals without an upper end.
    pub open: usize,
    /// Median width of the others, by the middle 95 % of the runs' own figures.
    pub width: Option<f64>,
    /// How many independent ops would scatter as much: of a percentile, those beyond it.
    pub effective: f64,
    /// It is the same in all runs.
    pub is_constant: bool,
    /// Its intervals may contain the truth neither less nor more often than they claim.
    pub has_two_limits: bool,
    /// What follows.
    pub verdict: Verdict,
}

impl Evaluation {
    /// Of a figure by its index; `None` where no run has an interval, and where the figure has no
    /// truth.
    pub fn from_runs(figure: usize, truth: &Truth, measured: &[Measured]) -> Option<Self> {
        let value = truth.figure(figure)?;
        let runs = measured.len();
        if runs == 0 {
            return None;
        }
        let count = |of: &dyn Fn(&Measured) -> bool| measured.iter().filter(|it| of(it)).count();
        let truth_below = count(&|it| value < it.low);
        let truth_above = count(&|it| it.high.is_some_and(|high| value > high));
        let covering = runs - truth_below - truth_above;
        let spread = middle_width(measured.iter().map(|it| it.estimate).collect());
        let is_constant = spread <= CONSTANT_RATIO * value.abs();
        let effective = effective(figure, truth, measured);
        let closed = || measured.iter().filter_map(|it| Some((it, it.high? - it.low)));
        let widths: Vec<f64> = closed().map(|(_, width)| width / spread).collect();
        let by_sample: Vec<f64> =
            closed().map(|(it, width)| 1.0 - it.apart / width.max(f64::MIN_POSITIVE)).collect();
        let has_two_limits = !is_constant
            && effective >= EFFECTIVE_MIN
            && median(&by_sample).is_none_or(|ratio| ratio >= SAMPLE_MIN_RATIO);
        Some(Self {
            runs,
            covering,
            truth_below,
            truth_above,
            open: count(&|it| it.high.is_none()),
            width: median(&widths).filter(|_| !is_constant),
            effective,
            is_constant,
            has_two_limits,
            verdict: verdict(covering, runs, has_two_limits),
        })
    }

    /// Percent of the intervals that contain the truth.
    pub fn percent(&self) -> f64 {
        self.covering as f64 / self.runs as f64 * 100.0
    }
}

/// By Clopper and Pearson: a share is refuted where it would hardly give a number as low, or as high.
fn verdict(covering: usize, runs: usize, has_two_limits: bool) -> Verdict {
    let rare = |chance: f64| chance < FAMILY_LEVEL / FAMILY_FIGURES / 2.0;
    let [least, most] = SHARES;
    let (covering, runs) = (covering as u64, runs as u64);
    if rare(binomial_at_most(covering, runs, least)) {
        return Verdict::Below;
    }
    let too_often = rare(binomial_at_most(runs - covering, runs, 1.0 - most));
    if too_often && has_two_limits { Verdict::Above } else { Verdict::NotRefuted }
}

/// The middle 95 % of the values.
fn middle_width(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let value = |share: f64| values[(values.len() as f64 * share) as usize];
    value(0.975) - value(0.025)
}

/// From how much the runs' own figures scatter.
fn effective(figure: usize, truth: &Truth, measured: &[Measured]) -> f64 {
    let n = measured.len() as f64;
    let about = |middle: f64, of: fn(&Measured) -> f64| {
        measured.iter().map(|it| (of(it) - middle).powi(2)).sum::<f64>() / n
    };
    let estimate = |it: &Measured| it.estimate;
    let mean = measured.iter().map(estimate).sum::<f64>() / n;
    let of_share = |share: f64| (1.0 - share).powi(2) / about(share, |it| it.share);
    match figure {
        MEAN => truth.deviation_ns.powi(2) / about(mean, estimate),
        THROUGHPUT => {
            let variation = truth.closed.map_or(0.0, |cycle| cycle.variation);
            (variation * mean).powi(2) / about(mean, estimate)
        }
        GOOD => of_share(truth.good_ratio),
        percentile => of_share(PERCENTILES[percentile - 1].1),
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_engine::rng::{Random, Stream};

    use super::*;

    #[test]
    fn of_2000_runs_fewer_than_1814_refute_93_and_more_than_1967_refute_97() {
        let verdict = |covering| verdict(covering, 2_000, true);
        assert_eq!([1_813, 1_814].map(verdict), [Verdict::Below, Verdict::NotRefuted]);
        assert_eq!([1_967, 1_968].map(verdict), [Verdict::NotRefuted, Verdict::Above]);
        assert_eq!(super::verdict(2_000, 2_000, false), Verdict::NotRefuted);
        // Few runs refute only what is far off.
        assert_eq!(super::verdict(50, 50, true), Verdict::NotRefuted);
        assert_eq!(super::verdict(20, 50, true), Verdict::Below);
    }

    fn truth() -> Truth {
        Truth {
            mean_ns: 1_000.0,
            deviation_ns: 1_000.0,
            percentiles_ns: [700.0, 2_300.0, 3_000.0, 4_600.0, 6_900.0],
            limit_ns: 2_300,
            good_ratio: 0.9,
            closed: None,
        }
    }

    /// Means of 400 ops, with intervals of this many true widths; every tenth has no upper end.
    fn procedure(width: f64) -> Vec<Measured> {
        let mut random = Random::new(3, Stream::Script, 0);
        let error = 1_000.0 / 400_f64.sqrt();
        let run = |number: u32| {
            let normal = (0..12).map(|_| random.unit()).sum::<f64>() - 6.0;
            let estimate = 1_000.0 + error * normal;
            let half = width * 1.96 * error;
            let high = (!number.is_multiple_of(10)).then_some(estimate + half);
            Measured { low: estimate - half, high, estimate, share: 0.0, apart: 0.0 }
        };
        (0..2_000).map(run).collect()
    }

    #[test]
    fn intervals_of_half_the_width_are_refuted_and_so_are_those_of_twice_the_width() {
        let evaluation = |width| Evaluation::from_runs(MEAN, &truth(), &procedure(width)).unwrap();
        let right = evaluation(1.0);
        assert_eq!((right.verdict, right.open), (Verdict::NotRefuted, 200));
        assert!((right.effective / 400.0 - 1.0).abs() < 0.1, "{right:?}");
        assert!((right.width.unwrap() - 1.0).abs() < 0.05, "{right:?}");
        assert_eq!(right.covering + right.truth_below + right.truth_above, right.runs);
        assert_eq!(evaluation(0.5).verdict, Verdict::Below);
        assert_eq!(evaluation(2.0).verdict, Verdict::Above);
    }

    #[test]
    fn wide_intervals_are_not_refuted_where_bounds_make_more_than_a_tenth_of_the_width() {
        let verdict = |apart: f64| {
            let bounded = |it: Measured| Measured { apart, ..it };
            let runs: Vec<Measured> = procedure(2.0).into_iter().map(bounded).collect();
            Evaluation::from_runs(MEAN, &truth(), &runs).unwrap().verdict
        };
        // The width is 4 · 1.96 · 50.
        assert_eq!([30.0, 50.0].map(verdict), [Verdict::Above, Verdict::NotRefuted]);
    }

    #[test]
    fn a_figure_that_is_the_same_in_all_runs_may_always_contain_the_truth() {
        let same =
            Measured { low: 999.0, high: Some(1_001.0), estimate: 1_000.0, share: 0.0, apart: 0.0 };
        let evaluation = Evaluation::from_runs(MEAN, &truth(), &vec![same; 2_000]).unwrap();
        assert!(evaluation.is_constant && evaluation.width.is_none());
        assert_eq!((evaluation.percent(), evaluation.verdict), (100.0, Verdict::NotRefuted));
        assert_eq!(Evaluation::from_runs(THROUGHPUT, &truth(), &[same]), None, "of an open load");
        assert_eq!(Evaluation::from_runs(MEAN, &truth(), &[]), None);
    }
}
