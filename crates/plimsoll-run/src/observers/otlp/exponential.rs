//! Converts our histograms to OpenTelemetry's: buckets whose bounds grow by a constant factor.
//!
//! The base is 2^(2^−scale); bucket `i` holds what lies in (base^i, base^(i+1)] seconds.
//! <https://opentelemetry.io/docs/specs/otel/metrics/data-model/#exponentialhistogram>

use plimsoll_model::event::Times;
use plimsoll_model::units::NANOS_PER_SECOND;

/// The finest scale used, which is Prometheus's finest too: a bucket is 0.27 % wide.
pub(super) const SCALE_MAX: i32 = 8;
/// Buckets of one histogram. At scale 7 they span 42 doublings, more than lie between a nanosecond
/// and [`plimsoll_model::event::HISTOGRAM_NS_MAX`]; at 8 they span 21, from a microsecond to two
/// seconds. So the scale is never below 7, and a bucket's middle is within 0.28 % of its values.
pub(super) const BUCKETS_MAX: usize = 42 * 128;

/// Counts by bucket.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Exponential {
    pub(super) scale: i32,
    pub(super) zeros: u64,
    /// Index of the first of `counts`.
    pub(super) offset: i32,
    pub(super) counts: Vec<u64>,
    pub(super) count: u64,
    pub(super) sum_s: f64,
    /// `None` if nothing was recorded.
    pub(super) min_s: Option<f64>,
    pub(super) max_s: Option<f64>,
}

impl Exponential {
    /// Puts each count at the value that our histogram reports for it, so that any quantile lies in
    /// the bucket that contains ours.
    pub(super) fn from_times(times: &Times) -> Self {
        let mut zeros = 0;
        let mut filled: Vec<(i32, u64)> = Vec::new();
        for recorded in times.iter_recorded() {
            let count = u64::from(recorded.count_at_value());
            match recorded.value_iterated_to() {
                0 => zeros += count,
                ns => filled.push((index(seconds(ns), SCALE_MAX), count)),
            }
        }
        let (first, last) = match (filled.first(), filled.last()) {
            (Some((first, _)), Some((last, _))) => (*first, *last),
            _ => (0, -1),
        };
        // One step coarser joins buckets 2i and 2i + 1 to bucket i.
        let mut coarser = 0;
        while (last >> coarser) - (first >> coarser) >= BUCKETS_MAX as i32 {
            coarser += 1;
        }
        let offset = first >> coarser;
        let mut counts = vec![0; ((last >> coarser) - offset + 1) as usize];
        for (index, count) in filled {
            counts[((index >> coarser) - offset) as usize] += count;
        }
        let any = !times.is_empty();
        Self {
            scale: SCALE_MAX - coarser,
            zeros,
            offset,
            counts,
            count: times.len(),
            sum_s: if any { times.mean() * times.len() as f64 / 1e9 } else { 0.0 },
            min_s: any.then(|| seconds(times.min())),
            max_s: any.then(|| seconds(times.max())),
        }
    }
}

/// By division, so that powers of two are exact.
fn seconds(ns: u64) -> f64 {
    ns as f64 / NANOS_PER_SECOND as f64
}

/// The bucket of a positive, normal value: ⌈log_base(value)⌉ − 1. Exponent and mantissa are
/// separate, since powers of two must fall exactly below their bound.
fn index(value: f64, scale: i32) -> i32 {
    const MANTISSA_BITS: u32 = f64::MANTISSA_DIGITS - 1;
    const EXPONENT_BIAS: i32 = f64::MAX_EXP - 1;
    let bits = value.to_bits();
    let exponent = (bits >> MANTISSA_BITS) as i32 - EXPONENT_BIAS;
    let per_doubling = 1 << scale;
    let mantissa = f64::from_bits((bits & ((1 << MANTISSA_BITS) - 1)) | 1.0_f64.to_bits());
    let within = (mantissa.log2() * f64::from(per_doubling)).ceil() as i32;
    // Rounding must not leave the doubling of a mantissa above 1.
    let within = if mantissa > 1.0 { within.clamp(1, per_doubling) } else { 0 };
    exponent * per_doubling + within - 1
}

#[cfg(test)]
mod tests {
    use plimsoll_model::event::{HISTOGRAM_NS_MAX, new_times};
    use proptest::prelude::*;

    use super::*;

    /// The lower bound of a bucket by the closed formula.
    fn bound(index: i32, scale: i32) -> f64 {
        2_f64.powf(f64::from(index) / f64::from(1 << scale))
    }

    fn times_of(values_ns: impl IntoIterator<Item = u64>) -> Times {
        let mut times = new_times();
        values_ns.into_iter().for_each(|ns| times.saturating_record(ns));
        times
    }

    /// The quantile that a reader of the buckets alone computes, at the middle of a bucket.
    fn quantile_s(of: &Exponential, quantile: f64) -> f64 {
        let mut rank = ((quantile * of.count as f64).ceil() as u64).max(1);
        if rank <= of.zeros {
            return 0.0;
        }
        rank -= of.zeros;
        for (index, count) in (of.offset..).zip(&of.counts) {
            if rank <= *count {
                return (bound(index, of.scale) * bound(index + 1, of.scale)).sqrt();
            }
            rank -= count;
        }
        panic!("the counts are fewer than the count")
    }

    #[test]
    fn a_value_between_two_powers_of_the_base_lies_in_their_bucket() {
        for scale in 0..=SCALE_MAX {
            for i in -30 * (1 << scale)..12 * (1 << scale) {
                let (low, high) = (bound(i, scale), bound(i + 1, scale));
                for value in [low * (1.0 + 1e-9), (low * high).sqrt(), high * (1.0 - 1e-9)] {
                    assert_eq!(index(value, scale), i, "{value} at scale {scale}");
                }
            }
        }
    }

    #[test]
    fn a_power_of_the_base_belongs_to_the_bucket_below_it() {
        for scale in 0..=SCALE_MAX {
            for power in -30..=12 {
                let value = 2_f64.powi(power);
                assert_eq!(index(value, scale), power * (1 << scale) - 1);
                assert_eq!(index(value.next_up(), scale), power * (1 << scale));
                assert_eq!(index(value.next_down(), scale), power * (1 << scale) - 1);
            }
        }
        // 2^-9 s is a whole number of nanoseconds.
        assert_eq!(index(seconds(1_953_125), 0), -10);
        assert_eq!(index(seconds(NANOS_PER_SECOND), SCALE_MAX), -1);
    }

    #[test]
    fn no_time_at_all_is_counted_as_zero_and_nothing_as_nothing() {
        let of = Exponential::from_times(&times_of([0, 0, 1_000_000]));
        assert_eq!((of.count, of.zeros, of.counts.as_slice()), (3, 2, &[1][..]));
        assert_eq!((of.min_s, of.max_s.map(|max| (max * 1e3).round())), (Some(0.0), Some(1.0)));
        let none = Exponential::from_times(&new_times());
        assert_eq!(none, Exponential { scale: SCALE_MAX, ..Exponential::default() });
    }

    #[test]
    fn the_widest_range_is_bounded_and_still_fine_enough() {
        let of = Exponential::from_times(&times_of([1, HISTOGRAM_NS_MAX, u64::MAX]));
        assert_eq!((of.scale, of.count), (7, 3));
        assert!(of.counts.len() <= BUCKETS_MAX);
        let usual = Exponential::from_times(&times_of([1_000, 2_000_000_000]));
        assert_eq!(usual.scale, SCALE_MAX);
    }

    /// Constant, exponential, log-normal, two humps, uniform over decades: by the inverse of their
    /// distribution or an approximation.
    fn value_ns(kind: u8, scale_ns: f64, uniform: f64) -> u64 {
        let far = uniform.clamp(1e-9, 1.0 - 1e-9);
        let ns = match kind {
            0 => scale_ns,
            1 => -scale_ns * (1.0 - far).ln(),
            2 => scale_ns * (2.0 * (far / (1.0 - far)).ln() / 1.702).exp(),
            3 if far < 0.97 => scale_ns * (1.0 + far / 10.0),
            3 => scale_ns * 300.0 * (1.0 + far),
            _ => 10_f64.powf(far * 12.0),
        };
        ns as u64
    }

    proptest! {
        #[test]
        fn quantiles_of_the_buckets_are_within_half_a_percent_of_the_histograms(
            kind in 0_u8..5,
            scale_ns in 1e3_f64..1e9,
            draws in prop::collection::vec(0.0_f64..1.0, 1..2_000),
        ) {
            let times = times_of(draws.iter().map(|draw| value_ns(kind, scale_ns, *draw)));
            let of = Exponential::from_times(&times);
            prop_assert_eq!(of.counts.iter().sum::<u64>() + of.zeros, times.len());
            prop_assert!(of.counts.len() <= BUCKETS_MAX && of.scale >= 7);
            let mean_s = of.sum_s / of.count as f64;
            prop_assert!((mean_s * 1e9 / times.mean() - 1.0).abs() < 1e-9 || times.mean() == 0.0);
            for quantile in [0.01, 0.1, 0.5, 0.9, 0.95, 0.99, 0.999, 1.0] {
                let ours_ns = times.value_at_quantile(quantile) as f64;
                let theirs_ns = quantile_s(&of, quantile) * 1e9;
                prop_assert!(
                    (theirs_ns - ours_ns).abs() <= 0.003 * ours_ns,
                    "q{} of kind {}: {} ns in the buckets, {} ns in the histogram",
                    quantile, kind, theirs_ns, ours_ns
                );
            }
        }
    }
}
