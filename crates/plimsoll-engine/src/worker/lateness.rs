//! How late were the ops that were in flight together? Late sends bunch and queue at the server,
//! so one op's lateness may be in another's response time. Bounded by the largest of them.

use std::collections::VecDeque;

use plimsoll_model::units::Nanos;

/// Steps per doubling: a lateness is rounded up by an eighth at most.
const STEPS: u32 = 8;
const BUCKETS: usize = 64 * STEPS as usize;
const WORDS: usize = BUCKETS / 64;

/// The lateness of ops in flight.
#[derive(Debug)]
pub(super) struct LatenessInFlight {
    /// Ops in flight by their lateness.
    in_flight: Box<[u32; BUCKETS]>,
    /// Which of these hold any.
    held: [u64; WORDS],
    ops: u64,
    /// Sends whose lateness no later one has reached: instants rise, lateness falls. As many as
    /// there are buckets at most.
    recent: VecDeque<(Nanos, usize)>,
}

impl Default for LatenessInFlight {
    fn default() -> Self {
        let in_flight = Box::new([0; BUCKETS]);
        Self { in_flight, held: [0; WORDS], ops: 0, recent: VecDeque::new() }
    }
}

impl LatenessInFlight {
    /// An op goes out at `sent`, late by `late`; the largest lateness in flight with it so far.
    pub(super) fn sent(&mut self, sent: Nanos, late: Nanos) -> Nanos {
        let bucket = bucket_of(late);
        self.in_flight[bucket] += 1;
        self.held[bucket / 64] |= 1 << (bucket % 64);
        self.ops += 1;
        while self.recent.back().is_some_and(|(_, before)| *before <= bucket) {
            self.recent.pop_back();
        }
        self.recent.push_back((sent, bucket));
        top_of(self.highest())
    }

    /// The op sent at `sent`, late by `late`, has ended; the largest lateness of any op that was
    /// in flight with it. `met` is what [`LatenessInFlight::sent`] answered.
    pub(super) fn ended(&mut self, sent: Nanos, late: Nanos, met: Nanos) -> Nanos {
        let since = self.recent.partition_point(|(at, _)| *at < sent);
        let later = self.recent.get(since).map_or(Nanos::ZERO, |(_, bucket)| top_of(*bucket));
        let bucket = bucket_of(late);
        self.in_flight[bucket] = self.in_flight[bucket].saturating_sub(1);
        if self.in_flight[bucket] == 0 {
            self.held[bucket / 64] &= !(1 << (bucket % 64));
        }
        self.ops = self.ops.saturating_sub(1);
        if self.ops == 0 {
            self.recent.clear();
        }
        met.max(later)
    }

    fn highest(&self) -> usize {
        let top = self.held.iter().rposition(|word| *word != 0).unwrap_or(0);
        top * 64 + (63 - self.held[top].max(1).leading_zeros() as usize)
    }
}

/// Values below [`STEPS`] have a bucket each; above, each doubling has [`STEPS`].
fn bucket_of(late: Nanos) -> usize {
    let value = late.0;
    if value < u64::from(STEPS) {
        return value as usize;
    }
    let log = value.ilog2();
    let step = (value >> (log - 3)) as usize & (STEPS as usize - 1);
    (log as usize - 2) * STEPS as usize + step
}

/// The largest lateness of a bucket.
fn top_of(bucket: usize) -> Nanos {
    let (log, step) = (bucket / STEPS as usize + 2, (bucket % STEPS as usize) as u64);
    if bucket < STEPS as usize {
        return Nanos(bucket as u64);
    }
    let width = 1_u64 << (log - 3);
    Nanos(((u64::from(STEPS) + step) * width).saturating_add(width - 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_lateness_is_rounded_up_by_an_eighth_at_most() {
        for value in (0..5_000).chain([1 << 20, (1 << 40) + 12_345, u64::MAX]) {
            let top = top_of(bucket_of(Nanos(value))).0;
            assert!(top >= value && top - value < (value / 8).max(1), "{value} {top}");
        }
    }

    /// By looking at every pair of ops.
    fn plain(ops: &[(u64, u64, u64)]) -> Vec<u64> {
        let meets = |a: &(u64, u64, u64), b: &(u64, u64, u64)| a.0 <= b.1 && b.0 <= a.1;
        let worst = |a| ops.iter().filter(|b| meets(a, b)).map(|b| b.2).max().unwrap();
        ops.iter().map(worst).collect()
    }

    proptest! {
        #[test]
        fn the_largest_lateness_in_flight_with_an_op_is_found(
            ops in prop::collection::vec((0_u64..60, 1_u64..20, 0_u64..5_000), 1..40),
        ) {
            // Instants of their own, so that the order of events is known.
            let ops: Vec<(u64, u64, u64)> = ops.iter().enumerate().map(|(n, (at, long, late))| {
                let n = n as u64;
                (at * 1_000 + n, (at + long) * 1_000 + 500 + n, *late)
            }).collect();
            let mut events: Vec<(u64, usize, bool)> = Vec::new();
            for (n, op) in ops.iter().enumerate() {
                events.extend([(op.0, n, true), (op.1, n, false)]);
            }
            events.sort_unstable();
            let mut lateness = LatenessInFlight::default();
            let (mut met, mut found) = (vec![Nanos::ZERO; ops.len()], vec![0; ops.len()]);
            for (_, n, goes_out) in events {
                let (sent, late) = (Nanos(ops[n].0), Nanos(ops[n].2));
                if goes_out {
                    met[n] = lateness.sent(sent, late);
                } else {
                    found[n] = lateness.ended(sent, late, met[n]).0;
                }
            }
            for (found, plain) in found.iter().zip(plain(&ops)) {
                prop_assert!(*found >= plain && found - plain <= plain / 8, "{found} {plain}");
            }
            prop_assert_eq!(lateness.ops, 0);
        }
    }
}
