//! What is known of the ops and of the worker itself, as events. Once a slice, at each border of a
//! phase, and at the end, what was counted leaves the worker.

use std::sync::mpsc::SyncSender;

use plimsoll_model::assignment::Phases;
use plimsoll_model::event::{AgentEvent, Phase, WorkerHealth, WorkerTotals};
use plimsoll_model::outcome::{ErrorClass, ErrorSample, OpKind, Outcome};
use plimsoll_model::units::Nanos;

use super::connections::Traffic;
use super::lateness::LatenessInFlight;
use super::seat::Seat;
use crate::clock::{self, RunDelay};
use crate::due::DueCounts;
use crate::fresh::FreshTimes;
use crate::recorder::{Arrived, Flight, Landing, Recorder};
use crate::seam::SessionCounters;
use crate::signs::{Replied, SignCounts};

/// A poll that finds nothing takes a microsecond or two. One that took this long was interrupted.
pub(super) const GAP_MIN: Nanos = Nanos::from_micros(100);

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

/// Service time of the first ops of a point, which met a server with little to do: those sent before
/// a quarter of the worker's clients were busy. What it took to make a connection is left out.
struct FirstOps {
    /// Zero where the worker has too few clients to tell.
    few: u64,
    /// Since when at least so many were in flight; the end of the window at the latest.
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
                op.done.saturating_sub(op.sent.max(op.shape.asked_at)).0;
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
    pub(super) fn new(seat: &Seat<'a>, fresh: FreshTimes, clients: Vec<u32>) -> Self {
        let assignment = seat.assignment;
        let targets: Vec<String> = assignment.endpoints.iter().map(|e| e.target.clone()).collect();
        let mut recorder =
            Recorder::new(seat.worker, assignment.phases, seat.op_names.clone(), &targets, fresh);
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
            events: seat.events,
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

    /// An op goes out beside so many; the largest lateness of those in flight, its own included.
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

    /// An op is still under way when the drain ends.
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
        self.tell(AgentEvent::ErrorSample(sample));
    }

    /// A client has left the load.
    pub(super) fn client_lost(&mut self, number: u32, reason: String, now: Nanos) {
        self.clients_participating -= u32::from(now < self.phases.window_end());
        self.tell(AgentEvent::ClientLost { client: number, reason, at: now });
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
        self.tell(AgentEvent::Interval(Box::new(interval)));
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
        // A listener that has gone away wants nothing more.
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

    fn tell(&self, event: AgentEvent) {
        let _ = self.events.send(event);
    }
}

fn add_empty_poll(idle: &mut WorkerHealth, span: Nanos) {
    if span < GAP_MIN {
        idle.empty_poll_ns += span.0;
    } else {
        idle.gap_ns += span.0;
        idle.gap_ns_max = idle.gap_ns_max.max(span.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_poll_that_took_long_is_a_gap_and_no_poll() {
        let mut idle = WorkerHealth::default();
        add_empty_poll(&mut idle, Nanos::from_micros(2));
        add_empty_poll(&mut idle, Nanos::from_micros(700));
        let seen = (idle.empty_poll_ns, idle.gap_ns, idle.gap_ns_max);
        assert_eq!(seen, (2_000, 700_000, 700_000));
    }
}
