//! Early stopping: what a percentile is at most, with 99 % confidence, of the samples there are. It
//! is an estimate of the reference client beside its exact percentiles.

use plimsoll_model::event::Times;

use crate::sampling::binomial_at_most;

/// What may be wrong of a hundred estimates.
const ERROR: f64 = 0.01;

/// Most samples that may lie above the estimate: the largest `t` of which a true percentile would
/// show no more in one of a hundred samples of that size. `None` below the least size.
fn samples_above(n: u64, percentile_e2: u32) -> Option<u64> {
    let above = 1.0 - f64::from(percentile_e2) / 10_000.0;
    let may = |t: u64| binomial_at_most(t, n, above) <= ERROR;
    if n == 0 || !may(1) {
        return None;
    }
    // No more than are expected: at the mean half of all samples would show as many.
    let (mut holds, mut fails) = (1, (n as f64 * above).ceil() as u64 + 1);
    while fails - holds > 1 {
        let middle = holds.midpoint(fails);
        if may(middle) { holds = middle } else { fails = middle }
    }
    Some(holds)
}

/// The estimate of this percentile (in hundredths of a percent): the sample with as many above it
/// as [`samples_above`] allows, to the resolution of the histogram.
pub(crate) fn early_stopping(times: &Times, percentile_e2: u32) -> Option<u64> {
    let n = times.len();
    let rank = n - samples_above(n, percentile_e2)?;
    // The rank's own sample, and not the one below it for a rounding.
    Some(times.value_at_quantile((rank as f64 - 0.5) / n as f64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_model::event::new_times;

    #[test]
    fn the_least_samples_of_each_percentile_are_those_that_the_client_prints() {
        let printed = [
            (5_000, 11),
            (7_500, 24),
            (8_000, 31),
            (9_000, 64),
            (9_500, 130),
            (9_700, 219),
            (9_900, 662),
            (9_990, 6_636),
            (9_999, 66_381),
        ];
        for (percentile, least) in printed {
            assert_eq!(samples_above(least - 1, percentile), None, "{percentile}");
            assert_eq!(samples_above(least, percentile), Some(1), "{percentile}");
        }
        assert_eq!(samples_above(10_000, 9_900), Some(77));
        assert_eq!(samples_above(0, 9_900), None);
    }

    #[test]
    fn an_estimate_lies_above_the_percentile_by_what_the_sample_leaves_open() {
        let mut times = new_times();
        (1..=1_000).for_each(|n| times.record(n).unwrap());
        let [exact, early] = [times.value_at_quantile(0.9), early_stopping(&times, 9_000).unwrap()];
        assert!(early > exact && early < 950, "{exact} {early}");
    }
}
