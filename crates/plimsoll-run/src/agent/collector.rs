//! Collects what the workers of a load point report in slices: joins them over workers, and keeps
//! them in memory until the workers have ended. Encoding and compressing them is no work for the
//! window.

use std::collections::{BTreeMap, VecDeque};
use std::io;

use plimsoll_fleet::message::SecondTotals;
use plimsoll_model::bundle::{IntervalSlice, PackedSlice, SlicePacker};
use plimsoll_model::event::{
    CoarseTimes, Interval, OpTimes, Phase, SecondRecord, Times, WorkerHealth, add_times, new_times,
};
use plimsoll_model::units::{NANOS_PER_SECOND, Nanos};

/// Slices that may wait for a slow worker; each holds some hundred KiB per op.
const WAITING_SLICES_MAX: usize = 60;
/// Above this the oldest are to be written while the load runs. Twenty ops with seven kinds of
/// times take 19, 58 and 114 MiB in ten minutes at 2,000, 10,000 and 38,000 ops/s (measured; one
/// slice a second, times spread over two decades).
const FULL_BYTES_MAX: usize = 96 * 1024 * 1024;

/// The slices of a load point, joined over workers as they come in.
#[derive(Default)]
pub(super) struct SliceCollector {
    /// Up to when each worker has reported.
    reached: Vec<Nanos>,
    waiting: BTreeMap<(Nanos, Phase), Joined>,
    records: Vec<Second>,
    health: Vec<Vec<WorkerHealth>>,
    live: Option<LiveSecond>,
    packer: SlicePacker,
    /// Slices that every worker has reported, the oldest first.
    full: VecDeque<PackedSlice>,
    full_bytes: usize,
}

/// A second's record and what it spans.
#[derive(Debug)]
struct Second {
    record: SecondRecord,
    start: Nanos,
    end: Nanos,
}

/// An interval that all workers have reported.
#[derive(Debug)]
struct Joined {
    interval: Interval,
    busy_ratio_max: f64,
}

/// The current second, for observers.
#[derive(Debug)]
struct LiveSecond {
    record: SecondRecord,
    start: Nanos,
    end: Nanos,
    response: Times,
    busy_ratio_max: f64,
}

/// All that was collected.
pub(super) struct Collected {
    /// The slices that are left, the oldest first.
    pub slices: VecDeque<PackedSlice>,
    pub seconds: Vec<SecondRecord>,
    /// Of each worker.
    pub health: Vec<Vec<WorkerHealth>>,
}

impl SliceCollector {
    /// For a load point with this many workers.
    pub(super) fn new(workers: usize) -> Self {
        Self {
            reached: vec![Nanos::ZERO; workers],
            health: vec![Vec::new(); workers],
            ..Self::default()
        }
    }

    /// Adds one worker's slice; returns the seconds that have ended with it, in order.
    pub(super) fn add(&mut self, interval: Interval) -> io::Result<Vec<SecondTotals>> {
        let worker = interval.worker as usize;
        if let Some(reached) = self.reached.get_mut(worker) {
            *reached = (*reached).max(interval.end);
            self.health[worker].push(interval.health);
        }
        let key = (interval.start, interval.record.phase);
        match self.waiting.get_mut(&key) {
            Some(joined) => joined.add(&interval),
            None => {
                let busy_ratio_max = interval.health.busy_ratio();
                self.waiting.insert(key, Joined { interval, busy_ratio_max });
            }
        }
        self.take_full()
    }

    /// Every worker has ended, well or not: nothing more will come.
    pub(super) fn ended(&mut self) -> io::Result<Vec<SecondTotals>> {
        self.reached.fill(Nanos::MAX);
        self.take_full()
    }

    /// Removes and returns the oldest full slice while they exceed `FULL_BYTES_MAX`.
    pub(super) fn take_excess(&mut self) -> Option<PackedSlice> {
        if self.full_bytes <= FULL_BYTES_MAX {
            return None;
        }
        let oldest = self.full.pop_front()?;
        self.full_bytes = self.full_bytes.saturating_sub(oldest.memory_bytes());
        Some(oldest)
    }

    /// What is left when all is in.
    pub(super) fn into_collected(self) -> Collected {
        let seconds = self.records.into_iter().map(|second| second.record).collect();
        Collected { slices: self.full, seconds, health: self.health }
    }

    fn take_full(&mut self) -> io::Result<Vec<SecondTotals>> {
        let slowest = self.reached.iter().min().copied().unwrap_or(Nanos::MAX);
        let mut seconds = Vec::new();
        while let Some((_, first)) = self.waiting.first_key_value() {
            let overdue = self.waiting.len() > WAITING_SLICES_MAX;
            if !overdue && first.interval.end > slowest {
                break;
            }
            let Some((_, joined)) = self.waiting.pop_first() else { break };
            seconds.extend(self.finish(joined)?);
        }
        Ok(seconds)
    }

    /// Keeps a slice; returns the second that has ended with it.
    fn finish(&mut self, joined: Joined) -> io::Result<Option<SecondTotals>> {
        let ended = self.add_to_second(&joined);
        let Interval { start, end, mut record, ops, .. } = joined.interval;
        let length = end.saturating_sub(start);
        record.length_ns = length.0;
        let SecondRecord { second, phase, .. } = record;
        self.keep(&IntervalSlice { second, start, length, phase, ops })?;
        // The second is among the last ones. Only a late part belongs further back.
        let same = |s: &&mut Second| (s.record.second, s.record.phase) == (second, phase);
        match self.records.iter_mut().rev().find(same) {
            Some(existing) => existing.add(&record, start, end),
            None => self.records.push(Second { record, start, end }),
        }
        Ok(ended)
    }

    fn keep(&mut self, slice: &IntervalSlice) -> io::Result<()> {
        let packed = self.packer.pack(slice)?;
        self.full_bytes += packed.memory_bytes();
        self.full.push_back(packed);
        Ok(())
    }

    /// Adds a slice to the current second. Returns that second when it has ended, or the one before
    /// if its end was not reported.
    fn add_to_second(&mut self, joined: &Joined) -> Option<SecondTotals> {
        let key = |record: &SecondRecord| (record.second, record.phase);
        let other = self.live.take_if(|live| key(&live.record) != key(&joined.interval.record));
        let before = other.map(LiveSecond::totals);
        let live = self.live.get_or_insert_with(|| LiveSecond::new(&joined.interval));
        live.add(joined);
        let second_end = (u64::from(joined.interval.record.second) + 1) * NANOS_PER_SECOND;
        match joined.interval.end.0 >= second_end {
            true => self.live.take().map(LiveSecond::totals),
            false => before,
        }
    }
}

impl Second {
    fn add(&mut self, part: &SecondRecord, start: Nanos, end: Nanos) {
        self.record.add(*part);
        (self.start, self.end) = (self.start.min(start), self.end.max(end));
        self.record.length_ns = self.end.saturating_sub(self.start).0;
    }
}

impl Joined {
    fn add(&mut self, part: &Interval) {
        self.busy_ratio_max = self.busy_ratio_max.max(part.health.busy_ratio());
        let sum = &mut self.interval;
        sum.end = sum.end.max(part.end);
        sum.record.add(part.record);
        if sum.ops.len() < part.ops.len() {
            sum.ops.resize_with(part.ops.len(), OpTimes::new);
        }
        sum.ops.iter_mut().zip(&part.ops).for_each(|(sum, times)| sum.add(times));
    }
}

impl LiveSecond {
    fn new(first: &Interval) -> Self {
        let SecondRecord { second, phase, .. } = first.record;
        Self {
            start: first.start,
            end: first.end,
            record: SecondRecord { second, phase, ..SecondRecord::default() },
            response: new_times(),
            busy_ratio_max: 0.0,
        }
    }

    fn add(&mut self, joined: &Joined) {
        let Interval { start, end, record, ops, .. } = &joined.interval;
        self.record.add(*record);
        self.record.length_ns += end.saturating_sub(*start).0;
        self.end = self.end.max(*end);
        self.busy_ratio_max = self.busy_ratio_max.max(joined.busy_ratio_max);
        for op in ops {
            add_times(&mut self.response, &op.response);
        }
    }

    fn totals(self) -> SecondTotals {
        let Self { record, start, end, response, busy_ratio_max } = self;
        SecondTotals {
            second: record.second,
            phase: record.phase,
            start,
            end,
            length: Nanos(record.length_ns),
            done: record.done,
            errors: record.errors,
            bytes: record.bytes_read + record.bytes_written,
            chunks: record.chunks,
            response: coarse_times(&response),
            busy_ratio_max,
        }
    }
}

/// Each bucket by its upper end, like the percentiles of the result.
fn coarse_times(times: &Times) -> CoarseTimes {
    let counted = times.iter_recorded();
    let upper = |ns| times.highest_equivalent(ns);
    let counts = counted.map(|it| (upper(it.value_iterated_to()), it.count_at_value().into()));
    CoarseTimes(counts.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interval(worker: u32, second: u32, done: u64) -> Interval {
        let mut ops = vec![OpTimes::new(); 2];
        ops[0].response.record_n(1_000 * (u64::from(worker) + 1), done as u32).unwrap();
        Interval {
            worker,
            window: 0,
            start: Nanos::from_secs(u64::from(second)),
            end: Nanos::from_secs(u64::from(second) + 1),
            record: SecondRecord {
                second,
                phase: Phase::Measure,
                done,
                bytes_read: 10,
                ..SecondRecord::default()
            },
            ops,
            health: WorkerHealth { cpu_ns: 500, wall_ns: 1_000, ..WorkerHealth::default() },
        }
    }

    #[test]
    fn a_second_is_full_when_every_worker_has_reported_up_to_its_end() {
        let mut collector = SliceCollector::new(2);
        assert!(collector.add(interval(0, 0, 5)).unwrap().is_empty());
        assert!(collector.add(interval(0, 1, 5)).unwrap().is_empty());
        assert!(collector.full.is_empty());
        let seconds = collector.add(interval(1, 0, 7)).unwrap();
        assert_eq!(collector.full.len(), 1);
        assert_eq!(collector.full[0].unpack().unwrap().ops[0].response.len(), 12);
        let [second] = &seconds[..] else { panic!("{seconds:?}") };
        assert_eq!((second.done, second.response.n(), second.busy_ratio_max), (12, 12, 0.5));
        collector.ended().unwrap();
        assert_eq!(collector.full.len(), 2, "what one worker reported before another died");
        let Collected { seconds, health, .. } = collector.into_collected();
        assert_eq!(seconds.iter().map(|r| r.done).collect::<Vec<_>>(), [12, 5]);
        assert_eq!((health[0].len(), health[1].len()), (2, 1));
    }

    #[test]
    fn slices_of_a_second_are_joined_by_their_start_and_told_as_one_second() {
        let quarter = |at: u64, phase| Interval {
            start: Nanos::from_millis(at),
            end: Nanos::from_millis(at + 250),
            record: SecondRecord { phase, ..interval(0, (at / 1_000) as u32, 5).record },
            ..interval(0, 0, 5)
        };
        let mut collector = SliceCollector::new(2);
        let mut seconds = Vec::new();
        for (before, at) in (0..2_000).step_by(250).enumerate() {
            let phase = if at < 500 { Phase::WarmUp } else { Phase::Measure };
            assert!(collector.add(quarter(at, phase)).unwrap().is_empty());
            assert_eq!(collector.full.len(), before);
            seconds.extend(collector.add(Interval { worker: 1, ..quarter(at, phase) }).unwrap());
            assert_eq!(collector.full.len(), before + 1, "two workers, one slice");
            let slice = collector.full[before].unpack().unwrap();
            assert_eq!(slice.length, Nanos::from_millis(250));
        }
        let reported: Vec<_> = seconds.iter().map(|s| (s.phase, s.length.0, s.done)).collect();
        let half = 500_000_000;
        let expected =
            [(Phase::WarmUp, half, 20), (Phase::Measure, half, 20), (Phase::Measure, 2 * half, 40)];
        assert_eq!(reported, expected, "the warm-up's half second, then the rest of it, then one");
        let Collected { seconds, health, .. } = collector.into_collected();
        let lengths: Vec<_> = seconds.iter().map(|r| (r.second, r.length_ns, r.done)).collect();
        assert_eq!(lengths, [(0, 500_000_000, 20), (0, 500_000_000, 20), (1, 1_000_000_000, 40)]);
        assert_eq!(health[0].len(), 8);
    }

    #[test]
    fn a_worker_that_never_reports_does_not_hold_memory_for_ever() {
        let mut collector = SliceCollector::new(2);
        for second in 0..100 {
            collector.add(interval(0, second, 1)).unwrap();
        }
        assert_eq!(collector.full.len(), 100 - WAITING_SLICES_MAX);
        collector.add(interval(1, 0, 1)).unwrap();
        collector.ended().unwrap();
        let Collected { seconds, .. } = collector.into_collected();
        assert_eq!(seconds[0].done, 2, "a late part is added to its second");
        assert_eq!(seconds.len(), 100);
    }

    #[test]
    fn slices_come_back_in_order_with_their_times() {
        let mut collector = SliceCollector::new(1);
        for second in 0..3 {
            collector.add(interval(0, second, u64::from(second) + 1)).unwrap();
        }
        let Collected { slices, .. } = collector.into_collected();
        assert_eq!(slices.len(), 3);
        for (second, packed) in (0..).zip(&slices) {
            let slice = packed.unpack().unwrap();
            assert_eq!(slice.second, second);
            assert_eq!(slice.ops[0].response.len(), u64::from(second) + 1);
            assert!(slice.ops[1].response.is_empty());
        }
    }

    #[test]
    fn more_than_memory_should_hold_is_taken_out_until_the_oldest_are_gone() {
        let mut many = interval(0, 0, 0);
        for n in 0..20_000 {
            many.ops[1].response.record(1_000 + n * 977).unwrap();
        }
        let next = Interval { start: many.end, end: many.end + many.end, ..many.clone() };
        let mut collector = SliceCollector::new(1);
        collector.add(many).unwrap();
        let each = collector.full_bytes;
        collector.full_bytes = FULL_BYTES_MAX;
        assert!(collector.take_excess().is_none());
        collector.add(next).unwrap();
        assert!(each < 64 * 1_024, "{each}");
        assert!(collector.take_excess().is_some(), "the oldest");
        assert!(collector.take_excess().is_none());
    }
}
