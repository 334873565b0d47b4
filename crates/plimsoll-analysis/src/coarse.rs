//! Histograms of few buckets: one for each slice of a window.

use plimsoll_model::event::Times;

/// Steps per doubling of the coarse histograms.
pub(crate) const STEPS: u64 = 128;

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

    /// How many lie in this bucket and those below.
    pub(crate) fn at_most(&self, bucket: u16) -> u64 {
        let below = self.counts.iter().take_while(|(at, _)| *at <= bucket);
        below.map(|(_, count)| u64::from(*count)).sum()
    }
}

/// Monotonic in the value; within 0.8 %.
pub(crate) fn bucket_of(ns: u64) -> u16 {
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

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_model::event::new_times;

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
}
