//! Counts and histograms of one worker, handed over once a slice (a second, or less in a short
//! window).
//!
//! Two rules decide what counts. *Times* belong to the window in which the op was **due**, so that
//! a stall at the window's end cannot hide; the drain waits for them. *Throughput* counts what
//! **finished** within the window, whenever it was due, so that a backlog cannot pose as capacity.

use std::collections::BTreeMap;

use plimsoll_model::assignment::Phases;
use plimsoll_model::event::{
    Interval, OpCounts, OpTimes, Phase, SecondRecord, TargetTotals, UnexpectedCount, WorkerHealth,
    WorkerTotals,
};
use plimsoll_model::goodput::GoodLimits;
use plimsoll_model::outcome::{ClientCounts, ErrorClass, OpKind, OpNames, OpStatus, Outcome};
use plimsoll_model::units::{NANOS_PER_SECOND, Nanos, keep_least};

use crate::flight::record_times;
use crate::fresh::FreshTimes;
use crate::interface::{First, Mark, TimeKind};
use crate::signs::{KeptTimes, Ticks, slice_at, slices_of_window};

pub use crate::flight::{Flight, Landing};
pub use crate::signs::{Arrived, StreamState};

/// Error samples one worker keeps per class and point: enough to see a pattern.
const SAMPLES_PER_CLASS: u32 = 5;
/// Error samples one worker keeps per point, whatever their classes.
const SAMPLES_MAX: u32 = 64;

/// Counts and histograms of one worker.
pub struct Recorder {
    phases: Phases,
    op_names: OpNames,
    /// The interval that runs.
    current: Interval,
    /// Its end: that of its time slice, or the next border between phases.
    boundary: Nanos,
    fresh: FreshTimes,
    counts: Vec<OpCounts>,
    errors: BTreeMap<ErrorClass, u64>,
    warm_up_errors: BTreeMap<ErrorClass, u64>,
    unexpected: BTreeMap<(OpKind, u32, u32), u64>,
    samples: BTreeMap<ErrorClass, u32>,
    samples_total: u32,
    totals: WorkerTotals,
    ticks: Ticks,
    clients: Clients,
    /// Replies have output, whose first chunk is marked.
    has_output: bool,
    /// What a good op keeps.
    good: Option<GoodLimits>,
    /// Times within ops that have not ended.
    kept: KeptTimes,
    /// Another window comes before this one, so that ops due before it are no warm-up.
    follows: bool,
}

/// What each client completed; empty unless the assignment requests it.
#[derive(Default)]
struct Clients {
    numbers: Vec<u32>,
    /// Of all clients one after the other, each by op kind.
    done: Vec<u64>,
}

impl Recorder {
    /// Nothing recorded yet; the first interval starts at zero.
    pub fn new(
        worker: u32,
        phases: Phases,
        op_names: OpNames,
        targets: &[String],
        fresh: FreshTimes,
    ) -> Self {
        let kinds = op_names.0.len();
        let per_target = targets
            .iter()
            .map(|target| TargetTotals { target: target.clone(), ..TargetTotals::default() })
            .collect();
        let mut recorder = Self {
            ticks: Ticks::new(&phases),
            phases,
            op_names,
            current: interval(worker, Nanos::ZERO, fresh.take()),
            boundary: Nanos::ZERO,
            fresh,
            counts: vec![OpCounts::default(); kinds],
            errors: BTreeMap::new(),
            warm_up_errors: BTreeMap::new(),
            unexpected: BTreeMap::new(),
            samples: BTreeMap::new(),
            samples_total: 0,
            totals: WorkerTotals {
                per_target,
                slices: slices_of_window(&phases),
                ..WorkerTotals::default()
            },
            clients: Clients::default(),
            has_output: false,
            good: None,
            kept: KeptTimes::default(),
            follows: false,
        };
        recorder.begin_interval();
        recorder
    }

    /// The recorder of the next window, which begins where this one ended. Of this one only ops
    /// that end late are still to come.
    pub fn begin_next(&mut self, phases: Phases) -> Self {
        let fresh = std::mem::replace(&mut self.fresh, FreshTimes::on_the_spot(0));
        let ops = std::mem::take(&mut self.current.ops);
        let targets: Vec<String> =
            self.totals.per_target.iter().map(|totals| totals.target.clone()).collect();
        let worker = self.current.worker;
        let mut next = Self::new(worker, phases, self.op_names.clone(), &targets, fresh);
        next.current = interval(worker, phases.warm_up_ns, ops);
        next.begin_interval();
        next.count_good(self.good);
        next.count_clients(self.clients.numbers.clone());
        (next.samples, next.samples_total) = (self.samples.clone(), self.samples_total);
        (next.has_output, next.follows) = (self.has_output, true);
        next
    }

    /// From now on also counts what each of these clients gets done.
    pub fn count_clients(&mut self, numbers: Vec<u32>) {
        let done = vec![0; numbers.len() * self.op_names.0.len()];
        self.clients = Clients { numbers, done };
    }

    /// From now on also counts the ops that end well and keep these limits.
    pub const fn count_good(&mut self, limits: Option<GoodLimits>) {
        self.good = limits;
    }

    /// The instant at which [`Recorder::roll`] is due.
    pub const fn boundary(&self) -> Nanos {
        self.boundary
    }

    /// Phase of the interval that runs.
    pub const fn phase(&self) -> Phase {
        self.current.record.phase
    }

    /// Begin of the window.
    pub const fn window_start(&self) -> Nanos {
        self.phases.warm_up_ns
    }

    /// End of the window.
    pub fn window_end(&self) -> Nanos {
        self.phases.window_end()
    }

    /// `due` lies in the window.
    pub fn in_window(&self, due: Nanos) -> bool {
        in_window(&self.phases, due)
    }

    /// Records the end of an op, which is before [`Recorder::boundary`].
    pub fn record(&mut self, flight: Flight, outcome: &Outcome, target: usize, landing: Landing) {
        self.record_end(&flight, outcome, target, landing.done);
        self.ended(flight, outcome, target, landing);
    }

    /// Records that an op ended at `done`, for the throughput. That is all that is to be recorded
    /// of one that was due in an earlier window.
    pub fn record_end(
        &mut self,
        flight: &Flight,
        outcome: &Outcome,
        target: usize,
        done_at: Nanos,
    ) {
        let failed = outcome.is_failure();
        let good = u64::from(!failed && self.is_good(flight, done_at));
        let due_in_window = self.in_window(flight.due);
        let current = &mut self.current.record;
        current.done += 1;
        current.good += good;
        current.errors += u64::from(failed);
        if !failed {
            current.bytes_read += outcome.bytes_read;
            current.bytes_written += outcome.bytes_written;
        }
        self.totals.good += if due_in_window { good } else { 0 };
        if self.phase() == Phase::Measure {
            self.totals.good_in_window += good;
            self.counts[usize::from(outcome.kind.0)].ended_in_window += 1;
            let done = &mut self.totals.per_target[target];
            if failed {
                self.totals.failed_bytes += outcome.bytes_read + outcome.bytes_written;
            } else {
                self.totals.done_in_window += 1;
                self.totals.bytes_read += outcome.bytes_read;
                self.totals.bytes_written += outcome.bytes_written;
                done.done_in_window += 1;
                done.bytes_read += outcome.bytes_read;
                done.bytes_written += outcome.bytes_written;
            }
        }
        self.ticks.count(flight.sent, done_at);
        if let Some(slice) = slice_at(&self.phases, &mut self.totals.slices, done_at) {
            slice.done += 1;
            slice.errors += u64::from(failed);
            slice.good += good;
        }
    }

    /// An op that ended well at `done` kept the limits of a good one.
    fn is_good(&self, flight: &Flight, done: Nanos) -> bool {
        let response = |at: Nanos| at.saturating_sub(flight.response_from());
        let StreamState { first_output, token_time, .. } = flight.stream;
        let first = first_output.map(response);
        self.good.is_some_and(|limits| limits.are_kept(response(done), first, token_time))
    }

    /// The op just recorded belongs to the client with this index among those that are counted.
    pub fn record_client(&mut self, index: usize, outcome: &Outcome) {
        if self.phase() != Phase::Measure || outcome.is_failure() {
            return;
        }
        let kind = usize::from(outcome.kind.0);
        if let Some(done) = self.clients.done.get_mut(index * self.op_names.0.len() + kind) {
            *done += 1;
        }
    }

    /// An op has ended, with a reply or without: its times and its count.
    fn ended(&mut self, flight: Flight, outcome: &Outcome, target: usize, landing: Landing) {
        let failed = outcome.is_failure();
        let due_in_window = self.in_window(flight.due);
        let phase = self.phase();
        let counts_times = due_in_window || phase == Phase::WarmUp;
        let times = times_of(&mut self.current, &self.op_names, outcome.kind);
        if counts_times {
            record_times(times, &flight, &landing, failed);
        } else if phase == Phase::Measure && !failed {
            TimeKind::FromWarmUp.of_mut(times).saturating_record(flight.service(landing.done).0);
        }
        self.kept.release(flight.stream, (counts_times && !failed).then_some(times));
        let StreamState { chunks, characters, .. } = flight.stream;
        let counts = &mut self.totals.generation;
        let (all_chunks, all_characters) = match failed {
            true => (&mut counts.failed_chunks, &mut counts.failed_characters),
            false => (&mut counts.chunks, &mut counts.characters),
        };
        *all_chunks += chunks;
        *all_characters += characters;
        if due_in_window {
            match landing.arrived {
                Arrived::Stamped(_) => self.totals.arrived_stamped += 1,
                Arrived::Bounded(_) => self.totals.arrived_bounded += 1,
                Arrived::Never => {}
            }
            let counts = &mut self.counts[usize::from(outcome.kind.0)];
            counts.count += 1;
            counts.errors += u64::from(failed);
            counts.expected_failures += u64::from(outcome.status == OpStatus::ExpectedFailure);
            self.totals.ambiguous += u64::from(outcome.ambiguous);
        }
        if failed {
            self.count_failure(outcome, target, due_in_window, flight.due);
        }
    }

    /// Something within an op in flight, before [`Recorder::boundary`]. `arrived`: the kernel's
    /// stamp of the bytes that the session was handed. How the op ends is not known yet, so times
    /// are kept until it has.
    pub fn mark(&mut self, flight: &mut Flight, mark: Mark, arrived: Option<Nanos>, now: Nanos) {
        let is_measured = self.phase() == Phase::Measure;
        let (response_from, service_from) = (flight.response_from(), flight.service_from());
        let (response, service) = (now.saturating_sub(response_from), flight.service(now));
        let reached = arrived.unwrap_or(now).clamp(service_from.min(now), now);
        let low = reached.saturating_sub(response_from).saturating_sub(flight.late_max);
        let stream = &mut flight.stream;
        // If output is marked, a first byte without output is no chunk of it.
        let mut is_chunk = false;
        let mut keep = |kind: TimeKind, ns: u64| self.kept.keep(stream, kind, ns);
        match mark {
            Mark::Preceded(kind) => {
                keep(kind, response.0);
                (stream.response_from, stream.service_from) = (now, now);
            }
            Mark::ServiceWaits => stream.service_from = Nanos::MAX,
            Mark::ServiceBegins => stream.service_from = now,
            Mark::Value(kind, value) => {
                keep(kind, value);
                is_chunk = kind == TimeKind::ChunkGap;
                if kind == TimeKind::TokenTime {
                    stream.token_time = Some(Nanos(value));
                }
            }
            Mark::First(First::Byte) => {
                keep(TimeKind::FirstByte, response.0);
                keep(TimeKind::FirstByteService, service.0);
                is_chunk = !self.has_output;
            }
            Mark::First(First::Output) => {
                keep(TimeKind::FirstOutput, response.0);
                keep(TimeKind::FirstOutputService, service.0);
                keep(TimeKind::FirstOutputLow, low.0);
                stream.first_output = Some(now);
                (is_chunk, self.has_output) = (true, true);
            }
            Mark::First(First::Visible) => {
                keep(TimeKind::FirstVisible, response.0);
                keep(TimeKind::FirstVisibleService, service.0);
            }
            Mark::Output { chunks, characters } if is_measured => {
                stream.chunks += chunks;
                stream.characters += characters;
            }
            Mark::Output { .. } | Mark::Complete => {}
        }
        self.current.record.chunks += u64::from(is_chunk);
        if is_chunk && let Some(slice) = slice_at(&self.phases, &mut self.totals.slices, now) {
            slice.chunks += 1;
        }
    }

    fn count_failure(&mut self, outcome: &Outcome, target: usize, in_window: bool, due: Nanos) {
        let class = match outcome.status {
            OpStatus::Failed(class) => class,
            OpStatus::Unexpected { expected, actual } => {
                if in_window {
                    *self.unexpected.entry((outcome.kind, expected, actual)).or_default() += 1;
                }
                ErrorClass::Status(actual)
            }
            OpStatus::Ok | OpStatus::ExpectedFailure => return,
        };
        self.count_error(class, target, due);
    }

    fn count_error(&mut self, class: ErrorClass, target: usize, due: Nanos) {
        if self.in_window(due) {
            *self.errors.entry(class).or_default() += 1;
            self.totals.per_target[target].errors += 1;
        } else if due < self.phases.warm_up_ns && !self.follows {
            *self.warm_up_errors.entry(class).or_default() += 1;
        }
    }

    /// An op that was due then, and recorded as a success, has failed after all.
    pub fn count_trailing_bytes(&mut self, kind: OpKind, target: usize, due: Nanos) {
        if self.in_window(due) {
            self.counts[usize::from(kind.0)].errors += 1;
        }
        self.count_error(ErrorClass::TrailingBytes, target, due);
    }

    /// Still no reply when the drain ended, at `now`: its times are at least as long as it is old.
    pub fn unfinished(&mut self, flight: Flight, now: Nanos) {
        let StreamState { chunks, characters, first_output, .. } = flight.stream;
        self.totals.generation.chunks += chunks;
        self.totals.generation.characters += characters;
        if !self.in_window(flight.due) {
            return;
        }
        let totals = &mut self.totals;
        totals.unfinished += 1;
        keep_least(&mut totals.response_age_min, now.saturating_sub(flight.response_from()));
        let service_age = now.0.checked_sub(flight.service_from().0).map(Nanos);
        service_age.into_iter().for_each(|age| keep_least(&mut totals.service_age_min, age));
        let landing = Landing { done: now, arrived: Arrived::Never, late_max: flight.late_max };
        let times = times_of(&mut self.current, &self.op_names, flight.kind);
        record_times(times, &flight, &landing, service_age.is_none());
        self.kept.release(flight.stream, Some(times));
        if self.has_output && first_output.is_none() {
            let age = now.saturating_sub(flight.response_from());
            for kind in [TimeKind::FirstOutput, TimeKind::FirstOutputLow] {
                kind.of_mut(times).saturating_record(age.0);
            }
        }
    }

    /// Times of the first kind of op in the interval that runs, which have those of ops that were
    /// never sent.
    pub(crate) fn first_times_mut(&mut self) -> Option<&mut OpTimes> {
        (!self.op_names.0.is_empty())
            .then(|| times_of(&mut self.current, &self.op_names, OpKind(0)))
    }

    /// A sample of an error of this class would be kept.
    pub fn wants_sample(&self) -> bool {
        self.samples_total < SAMPLES_MAX
    }

    /// Takes the right to report one more sample of this class; false when there are enough.
    pub fn take_sample(&mut self, class: ErrorClass) -> bool {
        let reported = self.samples.entry(class).or_default();
        if *reported >= SAMPLES_PER_CLASS || self.samples_total >= SAMPLES_MAX {
            return false;
        }
        *reported += 1;
        self.samples_total += 1;
        true
    }

    /// Name of an op kind.
    pub fn op_name(&self, kind: OpKind) -> &str {
        &self.op_names.0[usize::from(kind.0)]
    }

    /// Ends the interval at `end` and begins the next. The caller adds the worker's health.
    pub fn roll(&mut self, end: Nanos) -> Interval {
        let next = interval(self.current.worker, end, self.fresh.take());
        let mut ended = std::mem::replace(&mut self.current, next);
        ended.end = end;
        ended.record.length_ns = (end - ended.start).0;
        ended.health.wall_ns = ended.record.length_ns;
        self.begin_interval();
        ended
    }

    /// Reports the ops of a window before the current one that have ended since the last call, up
    /// to `end`; `None` without any.
    pub fn roll_late(&mut self, end: Nanos) -> Option<Interval> {
        (!self.current.ops.is_empty()).then(|| self.roll(end))
    }

    /// The totals, once the worker has drained, at `now`.
    pub fn into_totals(self, now: Nanos) -> WorkerTotals {
        let mut totals = self.totals;
        let names = &self.op_names.0;
        (totals.done_by_tick, totals.sent_by_tick) = self.ticks.into_counts(now);
        totals.per_client = self.clients.into_counts(names.len());
        totals.ops = names.iter().cloned().zip(self.counts).collect();
        let text = |(class, n): (ErrorClass, u64)| (class.to_string(), n);
        totals.errors = self.errors.into_iter().map(text).collect();
        totals.warm_up_errors = self.warm_up_errors.into_iter().map(text).collect();
        totals.unexpected = self
            .unexpected
            .into_iter()
            .map(|((kind, expected, actual), count)| UnexpectedCount {
                op: names[usize::from(kind.0)].clone(),
                expected,
                actual,
                count,
                ..UnexpectedCount::default()
            })
            .collect();
        totals
    }

    /// Totals that only the worker can count.
    pub fn totals_mut(&mut self) -> &mut WorkerTotals {
        &mut self.totals
    }

    fn begin_interval(&mut self) {
        let (start, window_end) = (self.current.start, self.phases.window_end());
        let (phase, border) = match start {
            s if s < self.phases.warm_up_ns => (Phase::WarmUp, self.phases.warm_up_ns),
            s if s < window_end => (Phase::Measure, window_end),
            _ => (Phase::Drain, Nanos::MAX),
        };
        self.current.record.phase = phase;
        // Scatter is estimated within the window: of a drain, seconds are enough.
        let end = match phase {
            Phase::Drain => Nanos((start.0 / NANOS_PER_SECOND + 1) * NANOS_PER_SECOND),
            Phase::WarmUp | Phase::Measure => self.phases.slice_end(start),
        };
        self.boundary = end.min(border);
    }
}

/// The times of one kind of op. After the end of a window they are created when an op ends late.
#[inline]
fn times_of<'i>(interval: &'i mut Interval, names: &OpNames, kind: OpKind) -> &'i mut OpTimes {
    if interval.ops.is_empty() {
        interval.ops.resize_with(names.0.len(), OpTimes::new);
    }
    &mut interval.ops[usize::from(kind.0)]
}

/// Nothing has ended in it yet.
fn interval(worker: u32, start: Nanos, ops: Vec<OpTimes>) -> Interval {
    let second = (start.0 / NANOS_PER_SECOND) as u32;
    let record = SecondRecord { second, ..SecondRecord::default() };
    let health = WorkerHealth::default();
    Interval { worker, window: 0, start, end: start, record, ops, health }
}

impl Clients {
    fn into_counts(self, kinds: usize) -> Vec<ClientCounts> {
        let done = self.done.chunks(kinds.max(1)).map(<[u64]>::to_vec);
        let counts = |(client, done)| ClientCounts { client, done };
        self.numbers.into_iter().zip(done).map(counts).collect()
    }
}

pub(crate) fn in_window(phases: &Phases, at: Nanos) -> bool {
    at >= phases.warm_up_ns && at < phases.window_end()
}
