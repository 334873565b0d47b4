//! Joins what the workers of a load point report: slices over workers, totals over workers.

use std::collections::BTreeMap;

use plimsoll_model::bundle::IntervalSlice;
use plimsoll_model::event::{
    Interval, OpTimes, Phase, SecondRecord, Times, WorkerHealth, WorkerTotals, add_times, new_times,
};
use plimsoll_model::units::{NANOS_PER_SECOND, Nanos, keep_least};

use crate::observers::SecondView;

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
    /// Zero until [`Slices::started`] says it.
    started_unix_ns: u64,
}

/// A second's record and what it spans.
#[derive(Debug)]
struct Second {
    record: SecondRecord,
    start: Nanos,
    end: Nanos,
}

#[derive(Debug)]
struct Joined {
    slice: IntervalSlice,
    end: Nanos,
    record: SecondRecord,
    busy_ratio_max: f64,
}

/// The second of the live line, up to now.
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
    /// For the live line, when a second has ended.
    pub view: Option<SecondView>,
}

impl Slices {
    /// Of a point with so many workers.
    pub(super) fn new(workers: u32) -> Self {
        let workers = workers as usize;
        Self {
            reached: vec![Nanos::ZERO; workers],
            waiting: BTreeMap::new(),
            records: Vec::new(),
            health: vec![Vec::new(); workers],
            live: None,
            started_unix_ns: 0,
        }
    }

    /// The load point has begun.
    pub(super) fn started(&mut self, at_unix_ns: u64) {
        self.started_unix_ns = at_unix_ns;
    }

    /// Takes in one worker's slice; answers with those that are now full, in order.
    pub(super) fn add(&mut self, interval: Interval) -> Vec<FullSlice> {
        let worker = interval.worker as usize;
        if let Some(reached) = self.reached.get_mut(worker) {
            *reached = (*reached).max(interval.end);
            self.health[worker].push(interval.health);
        }
        match self.waiting.entry((interval.start, interval.phase)) {
            std::collections::btree_map::Entry::Occupied(mut entry) => {
                entry.get_mut().add(interval)
            }
            std::collections::btree_map::Entry::Vacant(entry) => {
                entry.insert(Joined::new(interval));
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
            if !overdue && first.end > slowest {
                break;
            }
            let Some((_, joined)) = self.waiting.pop_first() else { break };
            full.push(self.finish(joined));
        }
        full
    }

    fn finish(&mut self, joined: Joined) -> FullSlice {
        let view = self.show(&joined);
        let Joined { mut slice, end, mut record, .. } = joined;
        slice.length = end.saturating_sub(slice.start);
        record.length_ns = slice.length.0;
        let key = (record.second, record.phase);
        // The second is among the last; only a part that came late is further back.
        let known =
            self.records.iter_mut().rev().find(|s| (s.record.second, s.record.phase) == key);
        match known {
            Some(known) => known.add(&record, slice.start, end),
            None => self.records.push(Second { record, start: slice.start, end }),
        }
        FullSlice { slice, view }
    }

    /// Adds a slice to the second of the live line; answers with that second when it has ended, or
    /// with the one before when it ended without saying so.
    fn show(&mut self, joined: &Joined) -> Option<SecondView> {
        let key = |record: &SecondRecord| (record.second, record.phase);
        let other = self.live.take_if(|live| key(&live.record) != key(&joined.record));
        let before = other.map(|live| live.view(self.started_unix_ns));
        let live = self.live.get_or_insert_with(|| LiveSecond::new(joined));
        live.add(joined);
        let second_end = (u64::from(joined.record.second) + 1) * NANOS_PER_SECOND;
        match joined.end.0 >= second_end {
            true => self.live.take().map(|live| live.view(self.started_unix_ns)),
            false => before,
        }
    }
}

impl Second {
    fn add(&mut self, part: &SecondRecord, start: Nanos, end: Nanos) {
        add_counts_of(&mut self.record, part);
        (self.start, self.end) = (self.start.min(start), self.end.max(end));
        self.record.length_ns = self.end.saturating_sub(self.start).0;
    }
}

impl Joined {
    fn new(interval: Interval) -> Self {
        let Interval { second, start, end, phase, .. } = interval;
        Self {
            end,
            record: SecondRecord {
                second,
                phase,
                length_ns: 0,
                done: interval.done,
                errors: interval.errors,
                bytes_read: interval.bytes_read,
                bytes_written: interval.bytes_written,
            },
            busy_ratio_max: interval.health.busy_ratio(),
            slice: IntervalSlice { second, start, length: Nanos::ZERO, phase, ops: interval.ops },
        }
    }

    fn add(&mut self, interval: Interval) {
        self.end = self.end.max(interval.end);
        self.busy_ratio_max = self.busy_ratio_max.max(interval.health.busy_ratio());
        self.record.done += interval.done;
        self.record.errors += interval.errors;
        self.record.bytes_read += interval.bytes_read;
        self.record.bytes_written += interval.bytes_written;
        if self.slice.ops.len() < interval.ops.len() {
            self.slice.ops.resize_with(interval.ops.len(), OpTimes::new);
        }
        for (sum, times) in self.slice.ops.iter_mut().zip(&interval.ops) {
            sum.add(times);
        }
    }
}

impl LiveSecond {
    fn new(first: &Joined) -> Self {
        let SecondRecord { second, phase, .. } = first.record;
        Self {
            start: first.slice.start,
            end: first.end,
            record: SecondRecord {
                second,
                phase,
                length_ns: 0,
                done: 0,
                errors: 0,
                bytes_read: 0,
                bytes_written: 0,
            },
            response: new_times(),
            busy_ratio_max: 0.0,
        }
    }

    fn add(&mut self, joined: &Joined) {
        add_counts_of(&mut self.record, &joined.record);
        self.record.length_ns += joined.end.saturating_sub(joined.slice.start).0;
        self.end = self.end.max(joined.end);
        self.busy_ratio_max = self.busy_ratio_max.max(joined.busy_ratio_max);
        for op in &joined.slice.ops {
            add_times(&mut self.response, &op.response);
        }
    }

    /// Of a load point that began at that time.
    fn view(&self, started_unix_ns: u64) -> SecondView {
        let Self { record, start, end, response, busy_ratio_max } = self;
        let quantile = |q: f64| (!response.is_empty()).then(|| response.value_at_quantile(q));
        let seconds = Nanos(record.length_ns).as_secs_f64();
        let per_second = |count: u64| if seconds > 0.0 { count as f64 / seconds } else { 0.0 };
        SecondView {
            second: record.second,
            phase: record.phase,
            start_unix_ns: started_unix_ns.saturating_add(start.0),
            end_unix_ns: started_unix_ns.saturating_add(end.0),
            ops_per_s: per_second(record.done.saturating_sub(record.errors)),
            bytes_per_s: per_second(record.bytes_read + record.bytes_written),
            errors: record.errors,
            response_p50_ns: quantile(0.5),
            response_p99_ns: quantile(0.99),
            generator_busy_ratio: *busy_ratio_max,
        }
    }
}

fn add_counts_of(known: &mut SecondRecord, record: &SecondRecord) {
    known.done += record.done;
    known.errors += record.errors;
    known.bytes_read += record.bytes_read;
    known.bytes_written += record.bytes_written;
}

fn add_ticks(sum: &mut Vec<u32>, part: &[u32]) {
    sum.resize(sum.len().max(part.len()), 0);
    sum.iter_mut().zip(part).for_each(|(sum, part)| *sum += part);
}

/// Adds one worker's totals to the sum.
pub(super) fn add_totals(sum: &mut WorkerTotals, part: WorkerTotals) {
    sum.due += part.due;
    sum.done_in_window += part.done_in_window;
    sum.not_sent += part.not_sent;
    sum.unfinished += part.unfinished;
    keep_least(&mut sum.response_age_min, part.response_age_min);
    keep_least(&mut sum.service_age_min, part.service_age_min);
    sum.first_ops += part.first_ops;
    sum.first_service_ns_total += part.first_service_ns_total;
    for (op, counts) in part.ops {
        let known = sum.ops.entry(op).or_default();
        known.count += counts.count;
        known.errors += counts.errors;
        known.expected_failures += counts.expected_failures;
        known.ended_in_window += counts.ended_in_window;
    }
    add_counts(&mut sum.errors, part.errors);
    add_counts(&mut sum.warm_up_errors, part.warm_up_errors);
    for item in part.unexpected {
        let same = |known: &&mut plimsoll_model::event::UnexpectedCount| {
            (&known.op, known.expected, known.actual) == (&item.op, item.expected, item.actual)
        };
        match sum.unexpected.iter_mut().find(same) {
            Some(known) => known.count += item.count,
            None => sum.unexpected.push(item),
        }
    }
    sum.unexpected.sort();
    sum.cut_off.add(part.cut_off);
    sum.ambiguous += part.ambiguous;
    sum.retransmissions += part.retransmissions;
    sum.connects += part.connects;
    sum.bytes_read += part.bytes_read;
    sum.bytes_written += part.bytes_written;
    sum.wire_bytes_in += part.wire_bytes_in;
    sum.wire_bytes_out += part.wire_bytes_out;
    sum.verified += part.verified;
    sum.nonconformities.add(&part.nonconformities);
    sum.arrived_stamped += part.arrived_stamped;
    sum.arrived_bounded += part.arrived_bounded;
    sum.clients_participating += part.clients_participating;
    sum.pieces += part.pieces;
    sum.piece_ns_total += part.piece_ns_total;
    sum.think_ns_total += part.think_ns_total;
    sum.last_due = sum.last_due.max(part.last_due);
    sum.last_sent = sum.last_sent.max(part.last_sent);
    add_ticks(&mut sum.done_by_tick, &part.done_by_tick);
    add_ticks(&mut sum.sent_by_tick, &part.sent_by_tick);
    sum.per_client.extend(part.per_client);
    sum.per_client.sort_by_key(|counts| counts.client);
    // By place: the same server may be named twice, for twice the connections.
    sum.signs.add(part.signs);
    for (at, target) in part.per_target.into_iter().enumerate() {
        match sum.per_target.get_mut(at) {
            Some(known) => {
                known.done_in_window += target.done_in_window;
                known.errors += target.errors;
                known.bytes_read += target.bytes_read;
                known.bytes_written += target.bytes_written;
                known.service.add(&target.service);
            }
            None => sum.per_target.push(target),
        }
    }
}

fn add_counts(sum: &mut BTreeMap<String, u64>, part: BTreeMap<String, u64>) {
    for (class, count) in part {
        *sum.entry(class).or_default() += count;
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_model::event::TargetTotals;
    use plimsoll_model::outcome::ClientCounts;

    use super::*;

    fn interval(worker: u32, second: u32, done: u64) -> Interval {
        let mut ops = vec![OpTimes::new()];
        ops[0].response.record_n(1_000 * (u64::from(worker) + 1), done as u32).unwrap();
        Interval {
            worker,
            second,
            start: Nanos::from_secs(u64::from(second)),
            end: Nanos::from_secs(u64::from(second) + 1),
            phase: Phase::Measure,
            done,
            errors: 0,
            bytes_read: 10,
            bytes_written: 0,
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
        let view = full[0].view.unwrap();
        assert_eq!((view.ops_per_s, view.generator_busy_ratio), (12.0, 0.5));
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
            phase,
            ..interval(0, (at / 1_000) as u32, 5)
        };
        let mut slices = Slices::new(2);
        let mut views = Vec::new();
        for at in (0..2_000).step_by(250) {
            let phase = if at < 500 { Phase::WarmUp } else { Phase::Measure };
            assert!(slices.add(quarter(at, phase)).is_empty());
            let full = slices.add(Interval { worker: 1, ..quarter(at, phase) });
            assert_eq!(full.len(), 1, "two workers, one slice");
            assert_eq!(full[0].slice.length, Nanos::from_millis(250));
            views.extend(full[0].view);
        }
        let told: Vec<_> = views.iter().map(|view| (view.phase, view.ops_per_s)).collect();
        let expected = [(Phase::WarmUp, 40.0), (Phase::Measure, 40.0), (Phase::Measure, 40.0)];
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

    fn same_server(done_in_window: u64) -> TargetTotals {
        TargetTotals { target: "http://h/".into(), done_in_window, ..TargetTotals::default() }
    }

    fn did(client: u32, ops: u64) -> ClientCounts {
        ClientCounts { client, done: vec![ops] }
    }

    #[test]
    fn totals_of_workers_add_up() {
        let one = WorkerTotals {
            due: 3,
            arrived_stamped: 2,
            arrived_bounded: 1,
            errors: BTreeMap::from([("timeout".into(), 1)]),
            clients_participating: 4,
            per_target: vec![same_server(5), same_server(7)],
            per_client: vec![did(1, 4), did(3, 2)],
            ..WorkerTotals::default()
        };
        let mut sum = WorkerTotals::default();
        add_totals(&mut sum, one.clone());
        let other = WorkerTotals { per_client: vec![did(0, 9)], ..one };
        add_totals(&mut sum, other);
        assert_eq!((sum.arrived_stamped, sum.arrived_bounded), (4, 2));
        assert_eq!((sum.due, sum.errors["timeout"], sum.clients_participating), (6, 2, 8));
        assert_eq!(sum.per_target, [same_server(10), same_server(14)]);
        assert_eq!(sum.per_client, [did(0, 9), did(1, 4), did(3, 2)], "by number");
    }
}
