//! Figures of the ops and of the worker itself, as events. Once a slice, at each border of a phase,
//! and at the end, what was counted leaves the worker.
//!
//! Late sends bunch and queue at the server, so one op's lateness may be in another's response
//! time. It is bounded by the largest lateness of the ops that were in flight together.

use std::collections::VecDeque;
use std::sync::mpsc::SyncSender;

use plimsoll_model::assignment::Phases;
use plimsoll_model::event::{AgentEvent, Interval, Phase, WorkerHealth, WorkerTotals};
use plimsoll_model::outcome::{ErrorClass, ErrorSample, OpKind, Outcome};
use plimsoll_model::units::Nanos;

use super::connections::Traffic;
use super::due_counts::WindowCounts;
use crate::clock::{self, RunDelay};
use crate::fresh::FreshTimes;
use crate::interface::{Mark, SessionCounters};
use crate::recorder::{Arrived, Flight, Landing, Recorder};
use crate::signs::{Replied, SignCounts};
use crate::workload::WorkerContext;

/// An empty poll takes a microsecond or two. One that took this long was interrupted.
pub(super) const INTERRUPTION_MIN: Nanos = Nanos::from_micros(100);

/// All that one worker records.
pub(super) struct Recording<'a> {
    /// Of the window that runs, or comes next.
    recorder: Recorder,
    /// Of the windows before it, in order: ops that were due in them may end late.
    earlier: Vec<Recorder>,
    /// Those after it, the last first.
    later: Vec<Phases>,
    lateness: LatenessInFlight,
    first: FirstOps,
    signs: SignCounts,
    events: &'a SyncSender<AgentEvent>,
    /// The load changes: how many ops are in flight is recorded.
    counts_in_flight: bool,
    /// End of the last window.
    window_end: Nanos,
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
            // What was sent after the reply, a CLOSE say, was not waited for.
            let sent_at = op.sent.max(op.shape.sent_at);
            let from = if sent_at <= op.done { sent_at } else { op.sent };
            totals.first_ops += 1;
            totals.first_service_ns_total += op.done.saturating_sub(from).0;
        }
    }
}

/// What others count, at the end of an interval.
pub(super) struct Counted {
    /// Since the interval began.
    pub(super) sessions: SessionCounters,
    pub(super) traffic: Traffic,
    pub(super) backlog_ops: u64,
    pub(super) in_flight: u64,
    pub(super) clock_step_ns: i64,
}

impl<'a> Recording<'a> {
    /// Of clients with these numbers.
    pub(super) fn new(context: &WorkerContext<'a>, fresh: FreshTimes, clients: Vec<u32>) -> Self {
        let assignment = context.assignment;
        let targets: Vec<String> = assignment.endpoints.iter().map(|e| e.target.clone()).collect();
        let mut later = assignment.windows();
        later.reverse();
        let mut recorder = Recorder::new(
            context.worker,
            later.pop().unwrap_or(assignment.phases),
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
            earlier: Vec::new(),
            later,
            lateness: LatenessInFlight::default(),
            first: FirstOps::new(clients_participating, assignment.phases.window_end()),
            signs: SignCounts::new(targets.len()),
            events: context.events,
            window_end: assignment.phases.window_end(),
            counts_in_flight: assignment.shape.is_some(),
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

    /// Position of the earlier window in which an op was due.
    #[inline]
    fn earlier_window(&self, due: Nanos) -> Option<usize> {
        if self.earlier.is_empty() || due >= self.recorder.window_start() {
            return None;
        }
        let last = self.earlier.len() - 1;
        Some(self.earlier[..last].partition_point(|it| it.window_end() <= due))
    }

    /// The recorder of the window in which an op was due.
    #[inline]
    fn window_of(&mut self, due: Nanos) -> &mut Recorder {
        match self.earlier_window(due) {
            Some(index) => &mut self.earlier[index],
            None => &mut self.recorder,
        }
    }

    /// Something within an op in flight, before [`Recording::boundary`].
    pub(super) fn mark(
        &mut self,
        flight: &mut Flight,
        mark: Mark,
        arrived: Option<Nanos>,
        now: Nanos,
    ) {
        self.window_of(flight.due).mark(flight, mark, arrived, now);
    }

    /// An op that was due then, and recorded as a success, has failed after all.
    pub(super) fn count_trailing_bytes(&mut self, kind: OpKind, target: usize, due: Nanos) {
        self.window_of(due).count_trailing_bytes(kind, target, due);
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
        let landing = Landing { done, arrived, late_max };
        // Its times belong to the window in which it was due, its end to the one that runs.
        match self.earlier_window(flight.due) {
            None => self.recorder.record(flight, outcome, endpoint, landing),
            Some(index) => {
                self.earlier[index].record(flight, outcome, endpoint, landing);
                self.recorder.record_end(&flight, outcome, endpoint, done);
            }
        }
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
        if self.earlier.is_empty() {
            self.first.replied(op, self.recorder.totals_mut());
        }
        if self.recorder.phase() == Phase::Measure {
            self.signs.note_time(op);
        }
        if self.recorder.in_window(due) {
            self.signs.count(op);
        }
    }

    /// An op is still in flight when the drain ends.
    pub(super) fn unfinished(&mut self, flight: Flight, now: Nanos) {
        self.window_of(flight.due).unfinished(flight, now);
    }

    /// An op failed before its request was sent whole.
    pub(super) fn cut_off(&mut self, class: ErrorClass, due: Nanos) {
        let recorder = self.window_of(due);
        if recorder.in_window(due) {
            recorder.totals_mut().cut_off.count(class);
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
        self.clients_participating -= u32::from(now < self.window_end);
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
            in_flight_ops: self.counts_in_flight.then_some(counted.in_flight),
            ..std::mem::take(&mut self.idle)
        };
        self.cpu_before = cpu;
        self.send_interval(self.earlier.len(), interval);
        self.roll_earlier(end);
        if before != self.recorder.phase() {
            self.cross_border(before, counted.traffic);
            if before == Phase::Measure {
                self.begin_next_window();
            }
        }
    }

    /// Reports the ops of earlier windows that ended late.
    fn roll_earlier(&mut self, end: Nanos) {
        for window in 0..self.earlier.len() {
            if let Some(interval) = self.earlier[window].roll_late(end) {
                self.send_interval(window, interval);
            }
        }
    }

    /// The window has ended; the next one begins, if there is one.
    fn begin_next_window(&mut self) {
        let Some(phases) = self.later.pop() else { return };
        let next = self.recorder.begin_next(phases);
        let mut ended = std::mem::replace(&mut self.recorder, next);
        let targets = ended.totals_mut().per_target.len();
        let signs = std::mem::replace(&mut self.signs, SignCounts::new(targets));
        signs.add_to(ended.totals_mut());
        ended.totals_mut().clients_participating = self.clients_participating;
        self.earlier.push(ended);
    }

    fn send_interval(&self, window: usize, interval: Interval) {
        self.send_event(AgentEvent::Interval(Box::new(Interval { window, ..interval })));
    }

    /// The point has ended at `now`: the last interval and the totals.
    pub(super) fn finish(mut self, now: Nanos, counted: &Counted, due: &WindowCounts) {
        let left = self.recorder.phase();
        let all = self.earlier.iter_mut().chain([&mut self.recorder]);
        for (recorder, due) in all.zip(due.iter()) {
            if due.has_unsent()
                && let Some(times) = recorder.first_times_mut()
            {
                due.record_ages(times, now);
            }
        }
        if now > Nanos::ZERO {
            self.roll(now, counted);
        }
        if left == Phase::Measure && self.recorder.phase() == Phase::Measure {
            self.cross_border(left, counted.traffic);
        }
        let totals = self.recorder.totals_mut();
        totals.clients_participating = self.clients_participating;
        self.signs.add_to(totals);
        let all = self.earlier.into_iter().chain([self.recorder]);
        for (window, (mut recorder, due)) in all.zip(due.iter()).enumerate() {
            due.add_to(recorder.totals_mut(), now);
            let totals = Box::new(recorder.into_totals(now));
            // A listener that has gone away needs nothing more.
            let _ = self.events.send(AgentEvent::WorkerFinished { window, totals });
        }
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

#[cfg(test)]
mod tests;
