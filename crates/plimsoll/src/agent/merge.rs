//! Joins what the workers of a load point report: slices over workers, totals over workers.

use std::collections::BTreeMap;

use plimsoll_fleet::message::SecondTotals;
use plimsoll_model::bundle::IntervalSlice;
use plimsoll_model::event::{
    CoarseTimes, Interval, OpTimes, Phase, SecondRecord, Times, WorkerHealth, add_times, new_times,
};
use plimsoll_model::units::{NANOS_PER_SECOND, Nanos};

/// Slices that may wait for a slow worker; each holds some hundred KiB per op.
const WAITING_SLICES_MAX: usize = 60;

/// The slices of a load point, joined over workers as they come in.
#[derive(Debug)]
pub(super) struct Slices {
    /// Up to when each worker has reported.
    reached: Vec<Nanos>,
    waiting: BTreeMap<(Nanos, Phase), Joined>,
    records: Vec<Second>,
    health: Vec<Vec<WorkerHealth>>,
    live: Option<LiveSecond>,
}

/// A second's record and what it spans.
#[derive(Debug)]
struct Second {
    record: SecondRecord,
    start: Nanos,
    end: Nanos,
}

/// An interval of all workers that have reported it.
#[derive(Debug)]
struct Joined {
    interval: Interval,
    busy_ratio_max: f64,
}

/// The second under way, for those who look on.
#[derive(Debug)]
struct LiveSecond {
    record: SecondRecord,
    start: Nanos,
    end: Nanos,
    response: Times,
    busy_ratio_max: f64,
}

/// A slice that every worker has reported.
#[derive(Debug)]
pub(super) struct FullSlice {
    /// For the interval log and the analysis.
    pub slice: IntervalSlice,
    /// The second that has ended with it.
    pub second: Option<SecondTotals>,
}

impl Slices {
    /// Of a point with so many workers.
    pub(super) fn new(workers: usize) -> Self {
        Self {
            reached: vec![Nanos::ZERO; workers],
            waiting: BTreeMap::new(),
            records: Vec::new(),
            health: vec![Vec::new(); workers],
            live: None,
        }
    }

    /// Takes in one worker's slice; answers with those that are now full, in order.
    pub(super) fn add(&mut self, interval: Interval) -> Vec<FullSlice> {
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
    pub(super) fn ended(&mut self) -> Vec<FullSlice> {
        self.reached.fill(Nanos::MAX);
        self.take_full()
    }

    /// The records of all seconds and the health of each worker.
    pub(super) fn into_records(self) -> (Vec<SecondRecord>, Vec<Vec<WorkerHealth>>) {
        (self.records.into_iter().map(|second| second.record).collect(), self.health)
    }

    fn take_full(&mut self) -> Vec<FullSlice> {
        let slowest = self.reached.iter().min().copied().unwrap_or(Nanos::MAX);
        let mut full = Vec::new();
        while let Some((_, first)) = self.waiting.first_key_value() {
            let overdue = self.waiting.len() > WAITING_SLICES_MAX;
            if !overdue && first.interval.end > slowest {
                break;
            }
            let Some((_, joined)) = self.waiting.pop_first() else { break };
            full.push(self.finish(joined));
        }
        full
    }

    fn finish(&mut self, joined: Joined) -> FullSlice {
        let ended = self.add_to_second(&joined);
        let Interval { start, end, mut record, ops, .. } = joined.interval;
        let length = end.saturating_sub(start);
        record.length_ns = length.0;
        let SecondRecord { second, phase, .. } = record;
        let slice = IntervalSlice { second, start, length, phase, ops };
        // The second is among the last; only a part that came late is further back.
        let same = |s: &&mut Second| (s.record.second, s.record.phase) == (second, phase);
        match self.records.iter_mut().rev().find(same) {
            Some(known) => known.add(&record, start, end),
            None => self.records.push(Second { record, start, end }),
        }
        FullSlice { slice, second: ended }
    }

    /// Adds a slice to the second under way; answers with that second when it has ended, or with the
    /// one before when it ended without saying so.
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
            response: as_quantiles_tell(&response),
            busy_ratio_max,
        }
    }
}

/// Each bucket by its upper end, as the percentiles of the result are.
fn as_quantiles_tell(times: &Times) -> CoarseTimes {
    let counted = times.iter_recorded();
    let upper = |ns| times.highest_equivalent(ns);
    let counts = counted.map(|it| (upper(it.value_iterated_to()), it.count_at_value().into()));
    CoarseTimes(counts.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interval(worker: u32, second: u32, done: u64) -> Interval {
        let mut ops = vec![OpTimes::new()];
        ops[0].response.record_n(1_000 * (u64::from(worker) + 1), done as u32).unwrap();
        Interval {
            worker,
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
        let mut seconds = Slices::new(2);
        assert!(seconds.add(interval(0, 0, 5)).is_empty());
        assert!(seconds.add(interval(0, 1, 5)).is_empty());
        let full = seconds.add(interval(1, 0, 7));
        assert_eq!(full.len(), 1);
        assert_eq!(full[0].slice.ops[0].response.len(), 12);
        let second = full[0].second.as_ref().unwrap();
        assert_eq!((second.done, second.response.n(), second.busy_ratio_max), (12, 12, 0.5));
        assert_eq!(seconds.ended().len(), 1, "what one worker reported before another died");
        let (records, health) = seconds.into_records();
        assert_eq!(records.iter().map(|r| r.done).collect::<Vec<_>>(), [12, 5]);
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
        let mut slices = Slices::new(2);
        let mut seconds = Vec::new();
        for at in (0..2_000).step_by(250) {
            let phase = if at < 500 { Phase::WarmUp } else { Phase::Measure };
            assert!(slices.add(quarter(at, phase)).is_empty());
            let full = slices.add(Interval { worker: 1, ..quarter(at, phase) });
            assert_eq!(full.len(), 1, "two workers, one slice");
            assert_eq!(full[0].slice.length, Nanos::from_millis(250));
            seconds.extend(full[0].second.clone());
        }
        let told: Vec<_> = seconds.iter().map(|s| (s.phase, s.length.0, s.done)).collect();
        let half = 500_000_000;
        let expected =
            [(Phase::WarmUp, half, 20), (Phase::Measure, half, 20), (Phase::Measure, 2 * half, 40)];
        assert_eq!(told, expected, "the warm-up's half second, then the rest of it, then one");
        let (records, health) = slices.into_records();
        let lengths: Vec<_> = records.iter().map(|r| (r.second, r.length_ns, r.done)).collect();
        assert_eq!(lengths, [(0, 500_000_000, 20), (0, 500_000_000, 20), (1, 1_000_000_000, 40)]);
        assert_eq!(health[0].len(), 8);
    }

    #[test]
    fn a_worker_that_never_reports_does_not_hold_memory_for_ever() {
        let mut seconds = Slices::new(2);
        let full: usize = (0..100).map(|s| seconds.add(interval(0, s, 1)).len()).sum();
        assert_eq!(full, 100 - WAITING_SLICES_MAX);
        seconds.add(interval(1, 0, 1));
        seconds.ended();
        let (records, _) = seconds.into_records();
        assert_eq!(records[0].done, 2, "a late part is added to its second");
        assert_eq!(records.len(), 100);
    }
}
