//! How far a figure of a window may be chance. Neighbouring ops depend on each other (a queue stays
//! a queue for a while), so the sample of a window consists of blocks of time, not of ops.
//!
//! The chance of a percentile is estimated as a share: how much the share of ops at or below it
//! varies between blocks. The histogram then gives the times that lie that much further up or down
//! (Woodruff 1952). With twenty slices or more the variation comes from a moving-block bootstrap
//! (Künsch 1989), with fewer from batch means. Both are widened to 95 % by Student's t for the
//! number of blocks, and computed for blocks of several lengths, of which the one that varies most
//! counts.

use std::collections::BTreeSet;

use plimsoll_model::event::Times;

use crate::sampling::{NORMAL_95, resampled, t_95};
use crate::times::quantile_ns;

/// Steps per doubling of the coarse histograms.
pub(crate) const STEPS: u64 = 128;
/// Fewer blocks do not show how much they vary.
pub(crate) const BLOCKS_MIN: usize = 5;
/// Slices from which blocks are drawn again and again.
const BOOTSTRAP_SLICES_MIN: usize = 20;
const RESAMPLES: usize = 400;
/// The same bundle gives the same result.
const SEED: u64 = 0x504c_494d_534f_4c4c;
/// Neighbours that depend on each other more than this do not allow an estimate.
const CORRELATION_MAX: f64 = 0.75;
/// One slice does not show how much its ops depend on each other: they are taken to scatter by this
/// factor more than independent ones.
const ONE_SLICE_FACTOR: f64 = 3.0;

/// Counts of times in few buckets.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Coarse {
    /// Bucket and count, in order.
    counts: Vec<(u16, u32)>,
    pub(crate) n: u64,
    pub(crate) sum_ns: f64,
}

impl Coarse {
    /// Of a histogram.
    pub(crate) fn from_times(times: &Times) -> Self {
        let mut coarse = Self::default();
        coarse.add(times);
        coarse
    }

    /// Takes in a histogram.
    pub(crate) fn add(&mut self, times: &Times) {
        if times.is_empty() {
            return;
        }
        for value in times.iter_recorded() {
            let (ns, count) = (value.value_iterated_to(), value.count_at_value());
            self.n += u64::from(count);
            self.sum_ns += times.median_equivalent(ns) as f64 * f64::from(count);
            self.count(bucket_of(ns), count);
        }
    }

    /// Takes in another.
    pub(crate) fn merge(&mut self, other: &Self) {
        (self.n, self.sum_ns) = (self.n + other.n, self.sum_ns + other.sum_ns);
        for (bucket, count) in &other.counts {
            self.count(*bucket, *count);
        }
    }

    fn count(&mut self, bucket: u16, count: u32) {
        match self.counts.binary_search_by_key(&bucket, |entry| entry.0) {
            Ok(at) => self.counts[at].1 = self.counts[at].1.saturating_add(count),
            Err(at) => self.counts.insert(at, (bucket, count)),
        }
    }

    /// The value that this share lies at or below, to 0.8 %; `None` of nothing.
    pub(crate) fn quantile_ns(&self, share: f64) -> Option<f64> {
        let rank = (self.n as f64 * share).ceil().max(1.0) as u64;
        let mut below = 0;
        let holds = |entry: &&(u16, u32)| {
            below += u64::from(entry.1);
            below >= rank
        };
        let (bucket, _) = self.counts.iter().find(holds)?;
        Some((lower_edge_ns(*bucket) + lower_edge_ns(bucket + 1)) as f64 / 2.0)
    }

    /// Bucket and count, in order.
    pub(crate) fn counts(&self) -> &[(u16, u32)] {
        &self.counts
    }

    fn at_most(&self, bucket: u16) -> u64 {
        let below = self.counts.iter().take_while(|(at, _)| *at <= bucket);
        below.map(|(_, count)| u64::from(*count)).sum()
    }
}

/// Monotonic in the value; within 0.8 %.
fn bucket_of(ns: u64) -> u16 {
    if ns < STEPS {
        return ns as u16;
    }
    let log = u64::from(ns.ilog2());
    let step = (ns >> (log - 7)) & (STEPS - 1);
    ((log - 6) * STEPS + step) as u16
}

/// The shortest time of a bucket.
pub(crate) fn lower_edge_ns(bucket: u16) -> u64 {
    let bucket = u64::from(bucket);
    match bucket / STEPS {
        0 => bucket,
        doubling => (STEPS + bucket % STEPS) << (doubling - 1),
    }
}

/// How far chance may have moved a figure, 95 %: to either side.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Chance {
    pub(crate) below: f64,
    pub(crate) above: f64,
}

impl Chance {
    fn even(half_width: f64) -> Self {
        Self { below: half_width, above: half_width }
    }

    fn wider(self, other: Self) -> Self {
        Self { below: self.below.max(other.below), above: self.above.max(other.above) }
    }
}

/// Of the share of ops at or below the percentile `share` of the whole. `None` without ops.
pub(crate) fn chance_of_share(slices: &[&Coarse], whole: &Times, share: f64) -> Option<Chance> {
    let at = bucket_of(quantile_ns(whole, (share * 10_000.0).round() as u32));
    let parts = slices.iter().map(|slice| (slice.at_most(at) as f64, slice.n as f64));
    if whole.is_empty() {
        return None;
    }
    // Less than independent ops would scatter is luck.
    let least = NORMAL_95 * (share * (1.0 - share) / whole.len() as f64).sqrt();
    let chance = chance_of_ratio(&parts.collect::<Vec<_>>());
    let chance = chance.unwrap_or(Chance::even(least * ONE_SLICE_FACTOR));
    Some(Chance { below: chance.below.max(least), above: chance.above.max(least) })
}

/// Of the mean, in nanoseconds.
pub(crate) fn chance_of_mean(slices: &[&Coarse]) -> Option<Chance> {
    let parts = slices.iter().map(|slice| (slice.sum_ns, slice.n as f64));
    chance_of_ratio(&parts.collect::<Vec<_>>())
}

/// Of a rate: what was counted in each slice, over its length.
pub(crate) fn chance_of_rate(parts: &[(f64, f64)]) -> Option<Chance> {
    let (counted, length) = ratio_parts(parts.iter());
    let alone = || Chance::even(NORMAL_95 * counted.sqrt() / length * ONE_SLICE_FACTOR);
    chance_of_ratio(parts).or_else(|| (length > 0.0).then(alone))
}

/// Of Σ numerators / Σ denominators over slices in order of time.
pub(crate) fn chance_of_ratio(parts: &[(f64, f64)]) -> Option<Chance> {
    let parts: Vec<(f64, f64)> = parts.iter().copied().filter(|part| part.1 > 0.0).collect();
    let resampled = parts.len() >= BOOTSTRAP_SLICES_MIN;
    let shortest = if resampled { block_length(parts.len()) } else { 1 };
    // How long a queue remembers is not known: the length of blocks that scatters most is taken.
    let longest = (parts.len() / BLOCKS_MIN).max(shortest);
    let lengths = BTreeSet::from([1, 2, 4].map(|times| (shortest * times).min(longest)));
    let of_length = |length| match resampled {
        true => Some(bootstrap(&parts, length)),
        false => {
            let blocks = parts.chunks(length).map(|block| ratio_parts(block.iter()));
            batch_means(&blocks.collect::<Vec<_>>()).map(Chance::even)
        }
    };
    lengths.into_iter().filter_map(of_length).reduce(Chance::wider)
}

/// Sums of numerators and denominators.
pub(crate) fn ratio_parts<'a>(parts: impl Iterator<Item = &'a (f64, f64)>) -> (f64, f64) {
    parts.fold((0.0, 0.0), |sum, part| (sum.0 + part.0, sum.1 + part.1))
}

/// Half-width from the variation between batches, widened for neighbours that are alike.
fn batch_means(parts: &[(f64, f64)]) -> Option<f64> {
    let k = parts.len();
    let t = t_95(k.checked_sub(1)?)?;
    let (sum, weight) = ratio_parts(parts.iter());
    let ratio = sum / weight;
    let off: Vec<f64> = parts.iter().map(|(part, weight)| part - ratio * weight).collect();
    let squares: f64 = off.iter().map(|off| off * off).sum();
    let products: f64 = off.windows(2).map(|pair| pair[0] * pair[1]).sum();
    let k = k as f64;
    // Deviations from their own mean are slightly anti-correlated: 1/k on average.
    let alike = if squares > 0.0 { products / squares + 1.0 / k } else { 0.0 };
    let alike = alike.clamp(0.0, CORRELATION_MAX);
    let inflated = squares * (1.0 + alike) / (1.0 - alike);
    Some(t * (inflated * k / (k - 1.0)).sqrt() / weight)
}

fn bootstrap(parts: &[(f64, f64)], length: usize) -> Chance {
    let n = parts.len();
    let (sum, weight) = ratio_parts(parts.iter());
    let ratio = sum / weight;
    let blocks: Vec<(f64, f64)> =
        parts.windows(length).map(|block| ratio_parts(block.iter())).collect();
    let draws = n.div_ceil(length);
    let mut off = resampled(SEED, RESAMPLES, |random| {
        let drawn: Vec<_> = (0..draws).map(|_| random.one(&blocks)).collect();
        let (sum, weight) = ratio_parts(drawn.iter());
        sum / weight - ratio
    });
    off.sort_unstable_by(f64::total_cmp);
    let at = |share: f64| off[((RESAMPLES - 1) as f64 * share).round() as usize];
    // This few blocks scatter more than a bootstrap of them shows.
    let k = n as f64 / length as f64;
    let t = t_95((k as usize).saturating_sub(1).max(1)).unwrap_or(NORMAL_95);
    let widen = t / NORMAL_95 * (k / (k - 1.0)).sqrt();
    Chance { below: (-at(0.025)).max(0.0) * widen, above: at(0.975).max(0.0) * widen }
}

/// Slices that stay together at the least: the cube root of their number.
fn block_length(slices: usize) -> usize {
    ((slices as f64).cbrt().ceil() as usize).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_model::event::new_times;
    use rand_xoshiro::Xoshiro256PlusPlus;
    use rand_xoshiro::rand_core::{Rng, SeedableRng};

    fn random() -> Xoshiro256PlusPlus {
        Xoshiro256PlusPlus::seed_from_u64(7)
    }

    fn unit(random: &mut Xoshiro256PlusPlus) -> f64 {
        (random.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }

    #[test]
    fn buckets_rise_with_the_value_and_are_fine_enough() {
        let mut last = 0;
        for value in (0..100_000).chain((17..41).map(|log| 1_u64 << log)) {
            let bucket = bucket_of(value);
            assert!(bucket >= last, "{value}");
            last = bucket;
        }
        assert_ne!(bucket_of(1_000_000), bucket_of(1_010_000));
        assert!(bucket_of(3_600_000_000_000) < u16::MAX);
    }

    #[test]
    fn a_coarse_histogram_has_the_count_and_the_sum_of_the_fine_one() {
        let mut times = new_times();
        (1..=1_000).for_each(|n| times.record(n * 1_000).unwrap());
        let mut coarse = Coarse::default();
        coarse.add(&times);
        assert_eq!(coarse.n, 1_000);
        assert!((coarse.sum_ns / times.mean() / 1_000.0 - 1.0).abs() < 1e-9, "{}", coarse.sum_ns);
        let half = coarse.at_most(bucket_of(500_000)) as f64;
        assert!((half / 500.0 - 1.0).abs() < 0.01, "{half}");
    }

    /// The share of trials in which the interval of the mean of `n` slices holds the truth, zero.
    /// Each slice is `alike` times the one before it plus noise.
    fn coverage(n: usize, alike: f64) -> f64 {
        let mut random = random();
        let mut normal = || (0..12).map(|_| unit(&mut random)).sum::<f64>() - 6.0;
        let trials = 400;
        let covered = (0..trials)
            .filter(|_| {
                let mut state = normal() / (1.0 - alike * alike).sqrt();
                let parts: Vec<(f64, f64)> = (0..n)
                    .map(|_| {
                        state = alike * state + normal();
                        (state, 1.0)
                    })
                    .collect();
                let mean = parts.iter().map(|part| part.0).sum::<f64>() / n as f64;
                let chance = chance_of_ratio(&parts).unwrap();
                -chance.above <= mean && mean <= chance.below
            })
            .count();
        covered as f64 / f64::from(trials)
    }

    #[test]
    fn intervals_of_independent_slices_hold_the_truth_nineteen_times_in_twenty() {
        for n in [3, 12, 30] {
            let covered = coverage(n, 0.0);
            assert!((0.92..=1.0).contains(&covered), "{n} slices: {covered}");
        }
        // And no wider than they must be.
        let covered = coverage(30, 0.0);
        assert!(covered < 0.99, "{covered}");
    }

    #[test]
    fn slices_that_depend_on_each_other_give_wider_intervals() {
        for (n, alike) in [(12, 0.3), (40, 0.4)] {
            let covered = coverage(n, alike);
            assert!((0.88..=1.0).contains(&covered), "{n} slices, {alike}: {covered}");
        }
    }

    #[test]
    fn from_six_slices_on_pairs_that_vary_more_decide() {
        let slices = |n: usize| -> Vec<(f64, f64)> {
            (0..n).map(|i| (if i % 4 < 2 { 2.0 } else { 0.0 }, 1.0)).collect()
        };
        // By hand: six pairs, each 2 off the mean 2, t(5) = 2.571.
        let chance = chance_of_ratio(&slices(12)).unwrap();
        assert!((chance.above / (2.571 * (24.0_f64 * 6.0 / 5.0).sqrt() / 12.0) - 1.0).abs() < 1e-3);
        // Four slices: alike by a half, t(3) = 3.182.
        let chance = chance_of_ratio(&slices(4)).unwrap();
        assert!((chance.above / (3.182 * (12.0_f64 * 4.0 / 3.0).sqrt() / 4.0) - 1.0).abs() < 1e-3);
    }

    #[test]
    fn blocks_are_as_long_as_a_fifth_of_the_window_where_those_vary_most() {
        let parts: Vec<(f64, f64)> =
            (0..15).map(|i| (if i % 6 < 3 { 2.0 } else { 0.0 }, 1.0)).collect();
        // By hand: five blocks of three, three of them 2.4 off the mean and two 3.6, t(4) = 2.776.
        let by_hand = 2.776 * (43.2_f64 * 5.0 / 4.0).sqrt() / 15.0;
        let above = chance_of_ratio(&parts).unwrap().above;
        assert!((above / by_hand - 1.0).abs() < 1e-3, "{above} {by_hand}");
    }

    #[test]
    fn resampled_slices_that_scatter_evenly_leave_as_much_open_above_as_below() {
        let parts: Vec<(f64, f64)> =
            (0..40).map(|n| (if n * 7 % 40 < 20 { 0.01 } else { -0.01 }, 1.0)).collect();
        let Chance { below, above } = chance_of_ratio(&parts).unwrap();
        assert!(below > 0.0 && (above / below - 1.0).abs() < 0.2, "{below} {above}");
    }

    #[test]
    fn a_single_slice_says_nothing_of_chance() {
        assert_eq!(chance_of_ratio(&[(1.0, 1.0)]), None);
        // But of a rate: 400 in two seconds, as independent events.
        let alone = chance_of_rate(&[(400.0, 2.0)]).unwrap();
        assert!((alone.above - NORMAL_95 * 10.0 * ONE_SLICE_FACTOR).abs() < 1e-9);
        assert_eq!(chance_of_ratio(&[]), None);
    }

    #[test]
    fn the_share_varies_no_less_than_that_of_independent_ops() {
        let mut times = new_times();
        (1..=1_000).for_each(|n| times.record(n).unwrap());
        let mut coarse = Coarse::default();
        coarse.add(&times);
        // Ten slices that are all alike.
        let slices = vec![&coarse; 10];
        let chance = chance_of_share(&slices, &times, 0.5).unwrap();
        let least = NORMAL_95 * (0.25_f64 / 1_000.0).sqrt();
        assert!((chance.below - least).abs() < 1e-9);
        // One slice does not show how slices differ.
        let chance = chance_of_share(&[&coarse], &times, 0.5).unwrap();
        assert!((chance.above / least - ONE_SLICE_FACTOR).abs() < 1e-9);
    }
}
