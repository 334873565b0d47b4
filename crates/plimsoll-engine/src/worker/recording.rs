//! Figures of the ops and of the worker itself, as events. Once a slice, at each border of a phase,
//! and at the end, what was counted leaves the worker.
//!
//! Late sends bunch and queue at the server, so one op's lateness may be in another's response
//! time. It is bounded by the largest lateness of the ops that were in flight together.

use std::collections::VecDeque;
use std::sync::mpsc::SyncSender;

use plimsoll_model::assignment::Phases;
use plimsoll_model::event::{
    AgentEvent, OpTimes, Phase, Times, WorkerHealth, WorkerTotals, growing_times,
};
use plimsoll_model::late::{LateCause, LateOp};
use plimsoll_model::outcome::{ErrorClass, ErrorSample, OpKind, Outcome};
use plimsoll_model::units::{Nanos, keep_least};

use super::connections::Traffic;
use crate::clock::{self, RunDelay};
use crate::fresh::FreshTimes;
use crate::interface::SessionCounters;
use crate::recorder::{Arrived, Flight, Landing, Recorder, in_window};
use crate::signs::{Replied, SignCounts, slice_at, slices_of_window};
use crate::workload::WorkerContext;

/// An empty poll takes a microsecond or two. One that took this long was interrupted.
pub(super) const INTERRUPTION_MIN: Nanos = Nanos::from_micros(100);

/// All that one worker records.
pub(super) struct Recording<'a> {
    recorder: Recorder,
    lateness: LatenessInFlight,
    first: FirstOps,
    signs: SignCounts,
    events: &'a SyncSender<AgentEvent>,
    phases: Phases,
    clients_participating: u32,
    /// Since the last border of a phase.
    counters: SessionCounters,
    /// When the window began.
    traffic_before: Traffic,
    /// Of the interval that runs, where the time between rounds went.
    idle: WorkerHealth,
    /// When the interval began.
    cpu_before: Nanos,
    run_delay: RunDelay,
}

/// Service time of the first ops of a point, which met a server with little to do: those sent
/// before a quarter of the worker's clients were busy. What it took to make a connection is left
/// out.
struct FirstOps {
    /// Zero where the worker has too few clients to tell.
    few: u64,
    /// When `few` ops were first in flight; the end of the window at the latest.
    until: Nanos,
}

impl FirstOps {
    fn new(clients: u32, window_end: Nanos) -> Self {
        Self { few: u64::from(clients / 4), until: window_end }
    }

    #[inline]
    fn sent(&mut self, now: Nanos, in_flight: u64) {
        if in_flight >= self.few {
            self.until = self.until.min(now);
        }
    }

    #[inline]
    fn replied(&self, op: &Replied, totals: &mut WorkerTotals) {
        if op.sent < self.until {
            totals.first_ops += 1;
            totals.first_service_ns_total +=
                op.done.saturating_sub(op.sent.max(op.shape.sent_at)).0;
        }
    }
}

/// What others count, at the end of an interval.
pub(super) struct Counted {
    /// Since the interval began.
    pub(super) sessions: SessionCounters,
    pub(super) traffic: Traffic,
    pub(super) backlog_ops: u64,
    pub(super) clock_step_ns: i64,
}

impl<'a> Recording<'a> {
    /// Of clients with these numbers.
    pub(super) fn new(context: &WorkerContext<'a>, fresh: FreshTimes, clients: Vec<u32>) -> Self {
        let assignment = context.assignment;
        let targets: Vec<String> = assignment.endpoints.iter().map(|e| e.target.clone()).collect();
        let mut recorder = Recorder::new(
            context.worker,
            assignment.phases,
            context.op_names.clone(),
            &targets,
            fresh,
        );
        let clients_participating = clients.len() as u32;
        recorder.count_good(assignment.goodput);
        if assignment.counts_clients {
            recorder.count_clients(clients);
        }
        Self {
            recorder,
            lateness: LatenessInFlight::default(),
            first: FirstOps::new(clients_participating, assignment.phases.window_end()),
            signs: SignCounts::new(targets.len()),
            events: context.events,
            phases: assignment.phases,
            clients_participating,
            counters: SessionCounters::default(),
            traffic_before: Traffic::default(),
            idle: WorkerHealth::default(),
            cpu_before: Nanos::ZERO,
            run_delay: RunDelay::default(),
        }
    }

    /// The point begins, on this thread.
    pub(super) fn begin(&mut self) {
        self.cpu_before = clock::thread_cpu();
        self.run_delay = RunDelay::of_this_thread();
    }

    pub(super) const fn recorder(&mut self) -> &mut Recorder {
        &mut self.recorder
    }

    /// The interval that runs ends here.
    pub(super) const fn boundary(&self) -> Nanos {
        self.recorder.boundary()
    }

    /// An op is sent while `in_flight` ops are in flight; the largest lateness of those in flight,
    /// its own included.
    #[inline]
    pub(super) fn sent(&mut self, flight: &Flight, in_flight: u64) -> Nanos {
        self.first.sent(flight.sent, in_flight);
        self.lateness.sent(flight.sent, flight.late_for_others())
    }

    /// An op ended at `done`, before the [`Recording::boundary`].
    #[inline]
    pub(super) fn ended(
        &mut self,
        flight: Flight,
        outcome: &Outcome,
        endpoint: usize,
        arrived: Arrived,
        done: Nanos,
    ) {
        let late_max = self.lateness.ended(flight.sent, flight.late_for_others(), flight.late_max);
        self.recorder.record(flight, outcome, endpoint, Landing { done, arrived, late_max });
    }

    /// Bytes of a reply came, which the kernel received then.
    #[inline]
    pub(super) fn bytes_came(&mut self, arrived: Nanos, in_flight: u64) {
        if self.recorder.phase() == Phase::Measure {
            self.signs.bytes_came(arrived, in_flight);
        }
    }

    /// An op that has just ended went well; it was due then.
    #[inline]
    pub(super) fn replied(&mut self, due: Nanos, op: &Replied) {
        self.first.replied(op, self.recorder.totals_mut());
        if self.recorder.phase() == Phase::Measure {
            self.signs.note_time(op);
        }
        if self.recorder.in_window(due) {
            self.signs.count(op);
        }
    }

    /// An op is still in flight when the drain ends.
    pub(super) fn unfinished(&mut self, flight: Flight, now: Nanos) {
        self.recorder.unfinished(flight, now);
    }

    /// An op failed before its request was sent whole.
    pub(super) fn cut_off(&mut self, class: ErrorClass, due: Nanos) {
        if self.recorder.in_window(due) {
            self.recorder.totals_mut().cut_off.count(class);
        }
    }

    /// An error, if it is one of the first of its class.
    pub(super) fn sample(
        &mut self,
        class: ErrorClass,
        kind: OpKind,
        detail: Option<String>,
        now: Nanos,
    ) {
        if !self.recorder.take_sample(class) {
            return;
        }
        let sample = ErrorSample {
            op: self.recorder.op_name(kind).to_owned(),
            class: class.to_string(),
            detail: detail.unwrap_or_default(),
            at_ns: now.0,
        };
        self.send_event(AgentEvent::ErrorSample(sample));
    }

    /// A client has left the load.
    pub(super) fn client_lost(&mut self, number: u32, reason: String, now: Nanos) {
        self.clients_participating -= u32::from(now < self.phases.window_end());
        self.send_event(AgentEvent::ClientLost { client: number, reason, at: now });
    }

    /// The worker slept.
    pub(super) const fn slept(&mut self, span: Nanos) {
        self.idle.sleep_ns += span.0;
        self.idle.wakeups += 1;
    }

    /// A round in which nothing happened, with a poll in it, took this long.
    #[inline]
    pub(super) fn polled_empty(&mut self, span: Nanos) {
        add_empty_poll(&mut self.idle, span);
    }

    /// Ends the interval.
    pub(super) fn roll(&mut self, end: Nanos, counted: &Counted) {
        self.counters.add(counted.sessions.clone());
        let before = self.recorder.phase();
        let mut interval = self.recorder.roll(end);
        let cpu = clock::thread_cpu();
        interval.health = WorkerHealth {
            cpu_ns: cpu.saturating_sub(self.cpu_before).0,
            wall_ns: interval.health.wall_ns,
            backlog_ops: counted.backlog_ops,
            run_delay_ns: self.run_delay.since_last().map(|delay| delay.0),
            clock_step_ns: counted.clock_step_ns,
            ..std::mem::take(&mut self.idle)
        };
        self.cpu_before = cpu;
        self.send_event(AgentEvent::Interval(Box::new(interval)));
        if before != self.recorder.phase() {
            self.cross_border(before, counted.traffic);
        }
    }

    /// The point has ended at `now`: the last interval and the totals.
    pub(super) fn finish(mut self, now: Nanos, counted: &Counted, due: &DueCounts) {
        let left = self.recorder.phase();
        if let Some(times) = self.recorder.first_times_mut() {
            due.record_ages(times, now);
        }
        if now > Nanos::ZERO {
            self.roll(now, counted);
        }
        if left == Phase::Measure {
            self.cross_border(left, counted.traffic);
        }
        let totals = self.recorder.totals_mut();
        totals.clients_participating = self.clients_participating;
        due.add_to(totals, now);
        self.signs.add_to(totals);
        let events = self.events;
        let totals = self.recorder.into_totals(now);
        // A listener that has gone away needs nothing more.
        let _ = events.send(AgentEvent::WorkerFinished(Box::new(totals)));
    }

    /// The window began or ended: counters that run all the time are read.
    fn cross_border(&mut self, left: Phase, now: Traffic) {
        let counters = std::mem::take(&mut self.counters);
        let before = std::mem::replace(&mut self.traffic_before, now);
        if left == Phase::Measure {
            let totals = self.recorder.totals_mut();
            totals.wire_bytes_in = now.bytes_received - before.bytes_received;
            totals.wire_bytes_out = now.bytes_sent - before.bytes_sent;
            totals.connects = now.connects - before.connects;
            totals.add_sessions(&counters);
        }
    }

    fn send_event(&self, event: AgentEvent) {
        let _ = self.events.send(event);
    }
}

fn add_empty_poll(idle: &mut WorkerHealth, span: Nanos) {
    if span < INTERRUPTION_MIN {
        idle.empty_poll_ns += span.0;
    } else {
        idle.gap_ns += span.0;
        idle.gap_ns_max = idle.gap_ns_max.max(span.0);
    }
}

/// Steps per doubling: a lateness is rounded up by an eighth at most.
const STEPS: u32 = 8;
const BUCKETS: usize = 64 * STEPS as usize;
const BITMAP_LEN: usize = BUCKETS / 64;

/// The lateness of ops in flight.
#[derive(Debug)]
struct LatenessInFlight {
    /// Ops in flight by their lateness.
    in_flight: Box<[u32; BUCKETS]>,
    /// Which of these hold any.
    occupied: [u64; BITMAP_LEN],
    ops: u64,
    /// Sends whose lateness no later one has reached: instants rise, lateness falls. As many as
    /// there are buckets at most.
    recent: VecDeque<(Nanos, usize)>,
}

impl Default for LatenessInFlight {
    fn default() -> Self {
        let in_flight = Box::new([0; BUCKETS]);
        Self { in_flight, occupied: [0; BITMAP_LEN], ops: 0, recent: VecDeque::new() }
    }
}

impl LatenessInFlight {
    /// An op goes out at `sent`, late by `late`; the largest lateness in flight with it so far.
    fn sent(&mut self, sent: Nanos, late: Nanos) -> Nanos {
        let bucket = bucket_of(late);
        self.in_flight[bucket] += 1;
        self.occupied[bucket / 64] |= 1 << (bucket % 64);
        self.ops += 1;
        while self.recent.back().is_some_and(|(_, before)| *before <= bucket) {
            self.recent.pop_back();
        }
        self.recent.push_back((sent, bucket));
        top_of(self.highest())
    }

    /// The op sent at `sent`, late by `late`, has ended; the largest lateness of any op that was
    /// in flight with it. `met` is what [`LatenessInFlight::sent`] answered.
    fn ended(&mut self, sent: Nanos, late: Nanos, met: Nanos) -> Nanos {
        let since = self.recent.partition_point(|(at, _)| *at < sent);
        let later = self.recent.get(since).map_or(Nanos::ZERO, |(_, bucket)| top_of(*bucket));
        let bucket = bucket_of(late);
        self.in_flight[bucket] = self.in_flight[bucket].saturating_sub(1);
        if self.in_flight[bucket] == 0 {
            self.occupied[bucket / 64] &= !(1 << (bucket % 64));
        }
        self.ops = self.ops.saturating_sub(1);
        if self.ops == 0 {
            self.recent.clear();
        }
        met.max(later)
    }

    fn highest(&self) -> usize {
        let top = self.occupied.iter().rposition(|word| *word != 0).unwrap_or(0);
        top * 64 + (63 - self.occupied[top].max(1).leading_zeros() as usize)
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

/// What came due in the window, and which pieces of work ended in it.
pub(crate) struct DueCounts {
    phases: Phases,
    /// The part of a worker's totals that is counted here.
    counted: WorkerTotals,
    /// When the ops came due that were never sent, from the begin of the window.
    unsent: Option<Box<Times>>,
    /// Line of its file that has the first op of a recording, whose late ops are named.
    first_line: Option<u64>,
}

impl DueCounts {
    /// Nothing has come due yet; `phases` has this worker's share of the ops.
    pub(crate) fn new(phases: Phases) -> Self {
        let slices = slices_of_window(&phases);
        let counted = WorkerTotals { slices, ..WorkerTotals::default() };
        Self { phases, counted, unsent: None, first_line: None }
    }

    /// The same; late ops of a recording are named by the lines of its file, whose first op is on
    /// this one.
    pub(crate) fn naming_late_ops(self, first_line: Option<u64>) -> Self {
        Self { first_line, ..self }
    }

    /// An op came due.
    pub(crate) fn came_due(&mut self, due: Nanos) {
        self.counted.due += u64::from(in_window(&self.phases, due));
    }

    /// The op of this index in a schedule goes out; its client is free since then.
    pub(crate) fn sent(&mut self, (index, due): (u64, Nanos), now: Nanos, free: Nanos) {
        if !in_window(&self.phases, due) {
            return;
        }
        (self.counted.last_due, self.counted.last_sent) = (due, now);
        if let Some(first_line) = self.first_line {
            let lag_ns = now.saturating_sub(due);
            let waited = free.saturating_sub(due);
            let cause =
                if waited.0 > lag_ns.0 / 2 { LateCause::NoClient } else { LateCause::Generator };
            self.counted.late.note(LateOp { line: first_line + index, due_ns: due, lag_ns, cause });
        }
    }

    /// The requested number of ops in the window has come due.
    pub(crate) fn has_all_ops(&self) -> bool {
        self.phases.ops.is_some_and(|ops| self.counted.due >= ops)
    }

    /// An op that came due will never be sent.
    pub(crate) fn not_sent(&mut self, due: Nanos) {
        if !in_window(&self.phases, due) {
            return;
        }
        self.counted.not_sent += 1;
        let unsent = self.unsent.get_or_insert_with(|| Box::new(growing_times()));
        // It grows with the window; what no histogram holds would be centuries.
        let _ = unsent.record(due.saturating_sub(self.phases.warm_up_ns).0);
    }

    /// Records how old the ops that were never sent are when the drain ends, at `now`. An age is
    /// rounded down, so that a response time cannot be less.
    pub(crate) fn record_ages(&self, times: &mut OpTimes, now: Nanos) {
        let Some(unsent) = &self.unsent else { return };
        let ages = times.unsent_mut();
        for due in unsent.iter_recorded() {
            let age = self.least_age(due.value_iterated_to(), now);
            ages.saturating_record_n(age.0, due.count_at_value());
        }
    }

    /// Of an op that came due this long after the begin of the window.
    fn least_age(&self, due_ns: u64, now: Nanos) -> Nanos {
        now.saturating_sub(self.phases.warm_up_ns).saturating_sub(Nanos(due_ns))
    }

    /// A piece of work of a closed client ended at `now`.
    pub(crate) fn piece_done(&mut self, started: Nanos, think: Nanos, now: Nanos) {
        if in_window(&self.phases, now) {
            self.counted.pieces += 1;
            self.counted.piece_ns_total += (now - started).0;
            self.counted.think_ns_total += think.0;
            self.counted.cycle_ns_squares += ((now - started + think).0 as f64).powi(2);
        }
        if let Some(slice) = slice_at(&self.phases, &mut self.counted.slices, now) {
            slice.pieces += 1;
            slice.cycle_ns_total += (now - started + think).0;
        } else if now >= self.phases.window_end() {
            self.piece_outlasted(started, think);
        }
    }

    /// A piece of work goes on after the window. If it began before, its client ended none in it:
    /// the wait is time that this client took all the same.
    pub(crate) fn piece_outlasted(&mut self, started: Nanos, think: Nanos) {
        if let Some(last) = self.counted.slices.last_mut()
            && started < self.phases.warm_up_ns
        {
            last.cycle_ns_total += (self.phases.window_end() - started + think).0;
        }
    }

    /// Adds them to a worker's totals when the drain ends, at `now`.
    pub(crate) fn add_to(&self, totals: &mut WorkerTotals, now: Nanos) {
        if let Some(unsent) = &self.unsent {
            keep_least(&mut totals.response_age_min, self.least_age(unsent.max(), now));
        }
        totals.add(self.counted.clone());
    }
}

#[cfg(test)]
mod tests;
