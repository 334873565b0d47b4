//! Distributions of times: summaries, and which figures a sample of a given size supports.

use plimsoll_model::event::{OpTimes, Times, add_times};
use plimsoll_model::result::TimeSummary;

use crate::sampling::t_95;

/// Samples that must lie beyond a percentile before it is shown. With ten beyond, the share
/// beyond is known to about a third (1/√10); with one, the percentile is just the maximum again.
pub const SAMPLES_BEYOND_MIN: u64 = 10;

/// Percentiles of the response chart, in hundredths of a percent.
const CHART_PERCENTILES: [u32; 15] = [
    1_000, 2_000, 3_000, 4_000, 5_000, 6_000, 7_000, 8_000, 9_000, 9_500, 9_900, 9_950, 9_990,
    9_995, 9_999,
];
const WHOLE: u32 = 10_000;
/// Upper bounds of a histogram's buckets, from each power of ten to the next.
const BOUNDS: [u64; 10] = [10, 12, 15, 20, 25, 30, 40, 50, 60, 80];

/// Groups the mean's error is computed from; more would leave them correlated, fewer imprecise.
const BATCHES_MAX: usize = 30;

/// Summary of one second.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SecondSummary {
    /// done − due.
    pub response: Batch,
    /// done − sent.
    pub service: Batch,
    /// sent − due.
    pub send_lag: Batch,
    /// The generator's own part of send lag.
    pub lateness: Batch,
    /// Median response, where the sample supports it.
    pub response_p50_ns: Option<u64>,
    /// 99th percentile of the response, where the sample supports it.
    pub response_p99_ns: Option<u64>,
    /// Longest response.
    pub response_max_ns: Option<u64>,
}

/// Count and sum of a group of samples.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Batch {
    /// Samples.
    pub n: u64,
    /// Their sum.
    pub sum_ns: f64,
}

impl Batch {
    fn from_times(times: &Times) -> Self {
        match times.len() {
            0 => Self::default(),
            n => Self { n, sum_ns: times.mean() * n as f64 },
        }
    }

    fn add(&mut self, other: Self) {
        self.n += other.n;
        self.sum_ns += other.sum_ns;
    }
}

impl SecondSummary {
    /// Takes in a slice of the second. `response` has the second's response times before this
    /// slice, and includes it afterwards.
    pub(crate) fn add(&mut self, ops: &[OpTimes], response: &mut Times) {
        for op in ops {
            self.response.add(Batch::from_times(&op.response));
            self.service.add(Batch::from_times(&op.service));
            self.send_lag.add(Batch::from_times(&op.send_lag));
            self.lateness.add(Batch::from_times(&op.lateness));
            add_times(response, &op.response);
        }
        if !response.is_empty() {
            self.response_p50_ns = percentile(response, 5_000);
            self.response_p99_ns = percentile(response, 9_900);
            self.response_max_ns = Some(response.max());
        }
    }
}

/// Does a sample of `n` support this percentile (in hundredths of a percent): are at least
/// [`SAMPLES_BEYOND_MIN`] samples expected on its far side? p50 needs 20, p99 1,000, p99.9 10,000.
pub fn supports(n: u64, percentile_e2: u32) -> bool {
    let far_side = percentile_e2.min(WHOLE.saturating_sub(percentile_e2));
    u128::from(n) * u128::from(far_side) >= u128::from(SAMPLES_BEYOND_MIN) * u128::from(WHOLE)
}

/// The percentile (in hundredths of a percent), or `None` where the sample is too small.
pub fn percentile(times: &Times, percentile_e2: u32) -> Option<u64> {
    supports(times.len(), percentile_e2).then(|| quantile_ns(times, percentile_e2))
}

/// The percentile whatever the size of the sample. For rules, not for display.
pub fn quantile_ns(times: &Times, percentile_e2: u32) -> u64 {
    times.value_at_quantile(f64::from(percentile_e2) / f64::from(WHOLE))
}

/// The summary of a distribution; `batches` (one a second) give the mean's error.
pub fn summarise(times: &Times, batches: &[Batch]) -> TimeSummary {
    let n = times.len();
    TimeSummary {
        n,
        mean: (n > 0).then(|| times.mean()),
        mean_error: mean_error(batches),
        p50: percentile(times, 5_000),
        p90: percentile(times, 9_000),
        p95: percentile(times, 9_500),
        p99: percentile(times, 9_900),
        p999: percentile(times, 9_990),
        max: (n > 0).then(|| times.max()),
    }
}

/// Pairs of (percentile, nanoseconds) for a chart: shortest and longest always, between them those
/// that the sample supports.
pub fn percentile_series(times: &Times) -> Vec<(f64, u64)> {
    if times.is_empty() {
        return Vec::new();
    }
    let inner = CHART_PERCENTILES
        .iter()
        .filter_map(|&p| Some((f64::from(p) / 100.0, percentile(times, p)?)));
    std::iter::once((0.0, times.min())).chain(inner).chain([(100.0, times.max())]).collect()
}

/// Pairs of (longest time, ops) of the buckets that have any. Their bounds are `BOUNDS` of each
/// power of ten.
pub fn histogram(times: &Times) -> Vec<(u64, u64)> {
    let bucket = |ns: u64| {
        let power = ns.max(1).ilog10().saturating_sub(1);
        let within = BOUNDS.partition_point(|bound| bound * 10_u64.pow(power) < ns);
        power as usize * BOUNDS.len() + within
    };
    let recorded: Vec<(u64, u64)> = times
        .iter_recorded()
        .map(|it| (it.value_iterated_to().min(times.max()), it.count_at_value().into()))
        .collect();
    let buckets = recorded.chunk_by(|(a, _), (b, _)| bucket(*a) == bucket(*b));
    buckets.filter_map(|it| Some((it.last()?.0, it.iter().map(|(_, n)| n).sum()))).collect()
}

/// Half-width of the mean's 95 % confidence interval by the method of batch means: neighbouring ops
/// are correlated, so the error comes from the variation between seconds. `None` with fewer than
/// two seconds that hold samples.
pub fn mean_error(seconds: &[Batch]) -> Option<f64> {
    let batches = regroup(seconds);
    let k = batches.len();
    let n: u64 = batches.iter().map(|batch| batch.n).sum();
    let t = t_95(k.checked_sub(1)?)?;
    let mean = batches.iter().map(|batch| batch.sum_ns).sum::<f64>() / n as f64;
    // The ratio estimator: batches weigh as many samples as they hold.
    let squares: f64 =
        batches.iter().map(|batch| (batch.sum_ns - mean * batch.n as f64).powi(2)).sum();
    let k = k as f64;
    Some(t * (squares * k / (k - 1.0)).sqrt() / n as f64)
}

/// At most [`BATCHES_MAX`] groups of neighbouring seconds, none of them empty.
fn regroup(seconds: &[Batch]) -> Vec<Batch> {
    let size = seconds.len().div_ceil(BATCHES_MAX).max(1);
    seconds
        .chunks(size)
        .map(|chunk| {
            let mut sum = Batch::default();
            chunk.iter().for_each(|batch| sum.add(*batch));
            sum
        })
        .filter(|batch| batch.n > 0)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_model::event::new_times;
    use proptest::prelude::*;

    fn times(values: impl IntoIterator<Item = u64>) -> Times {
        let mut times = new_times();
        for value in values {
            times.record(value).unwrap();
        }
        times
    }

    #[test]
    fn a_percentile_needs_ten_samples_beyond_it() {
        for (percentile, n_min) in
            [(5_000, 20), (9_000, 100), (9_500, 200), (9_900, 1_000), (9_990, 10_000)]
        {
            assert!(supports(n_min, percentile), "{percentile}");
            assert!(!supports(n_min - 1, percentile), "{percentile}");
        }
        assert!(!supports(99, 1_000));
        assert!(supports(100, 1_000));
    }

    #[test]
    fn percentiles_of_a_known_sample_are_exact_to_the_histograms_resolution() {
        let summary = summarise(&times(1..=10_000), &[]);
        for (value, expected) in [(summary.p50, 5_000.0), (summary.p99, 9_900.0)] {
            let value = value.unwrap() as f64;
            assert!((value / expected - 1.0).abs() <= 0.001, "{value} {expected}");
        }
        assert!((summary.mean.unwrap() / 5_000.5 - 1.0).abs() < 0.001);
        assert_eq!(summary.n, 10_000);
    }

    #[test]
    fn a_small_sample_shows_its_mean_and_maximum_only() {
        let summary = summarise(&times([5, 7, 9]), &[]);
        assert_eq!((summary.n, summary.p50, summary.p99), (3, None, None));
        assert_eq!((summary.mean, summary.max), (Some(7.0), Some(9)));
        assert_eq!(percentile_series(&times([5, 7, 9])), vec![(0.0, 5), (100.0, 9)]);
        assert_eq!(summarise(&times([]), &[]), TimeSummary::default());
    }

    #[test]
    fn a_histogram_has_every_op_and_no_time_that_none_had() {
        let mut all = times([116_000_000; 59]);
        all.record(4_000_000_000).unwrap();
        let bins = histogram(&all);
        let near = |ns: u64, expected: f64| (ns as f64 / expected - 1.0).abs() < 2e-3;
        assert!(near(bins[0].0, 116e6) && near(bins[1].0, 4e9), "{bins:?}");
        assert_eq!((bins.len(), bins[0].1, bins[1].1), (2, 59, 1));
        let spread = histogram(&times(1..=100_000));
        assert_eq!(spread.iter().map(|(_, ops)| ops).sum::<u64>(), 100_000);
        assert!(spread.is_sorted() && spread.len() <= 50, "{spread:?}");
        assert_eq!(histogram(&times([])), []);
    }

    #[test]
    fn the_error_of_a_mean_follows_students_t() {
        // Means 10, 12, 14 with equal weight: s = 2, error = 4.303 × 2 / √3.
        let batches = [10.0, 12.0, 14.0].map(|mean| Batch { n: 5, sum_ns: mean * 5.0 });
        let error = mean_error(&batches).unwrap();
        assert!((error - 4.303 * 2.0 / 3f64.sqrt()).abs() < 1e-9, "{error}");
        assert_eq!(mean_error(&batches[..1]), None);
        assert_eq!(mean_error(&[Batch::default(); 4]), None);
    }

    #[test]
    fn a_long_window_is_cut_into_at_most_thirty_batches() {
        assert_eq!(regroup(&[Batch { n: 1, sum_ns: 1.0 }; 600]).len(), 30);
        assert_eq!(regroup(&[Batch { n: 1, sum_ns: 1.0 }; 61]).len(), 21);
        assert!(mean_error(&[Batch { n: 1, sum_ns: 1.0 }; 600]).is_some());
    }

    proptest! {
        #[test]
        fn merging_parts_is_the_same_as_recording_the_whole(
            values in prop::collection::vec(0u64..1 << 40, 1..200), cut in 0usize..200,
        ) {
            let cut = cut.min(values.len());
            let mut merged = times(values[..cut].iter().copied());
            add_times(&mut merged, &times(values[cut..].iter().copied()));
            prop_assert_eq!(merged, times(values.iter().copied()));
        }
    }
}
