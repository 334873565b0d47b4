//! Once a slice, at each border of a phase, and at the end: what was counted leaves the worker.

use plimsoll_model::event::{AgentEvent, Phase, WorkerHealth};
use plimsoll_model::outcome::ErrorClass;
use plimsoll_model::units::Nanos;

use super::Worker;
use super::schedule::Pace;
use crate::clock;
use crate::driver::Driver;
use crate::recorder::Flight;
use crate::seam::{Script, Session};

impl<S, C, D> Worker<'_, S, C, D>
where
    S: Session,
    C: Script<Op = S::Op>,
    D: Driver,
{
    /// Ends every interval whose border `now` has reached.
    pub(super) fn roll_intervals(&mut self, now: Nanos) {
        while now >= self.recorder.boundary() {
            let end = self.recorder.boundary();
            self.roll(end);
        }
    }

    pub(super) fn roll(&mut self, end: Nanos) {
        for client in &mut self.clients {
            let counted = client.session.take_counters();
            self.counters.retransmissions += counted.retransmissions;
            self.counters.verified += counted.verified;
        }
        let before = self.recorder.phase();
        let mut interval = self.recorder.roll(end);
        let cpu = clock::thread_cpu();
        let spent = self.waiting.take_spent();
        interval.health = WorkerHealth {
            cpu_ns: cpu.saturating_sub(self.round.interval_cpu).0,
            empty_poll_ns: spent.empty_poll_ns,
            sleep_ns: spent.sleep_ns,
            gap_ns: spent.gap_ns,
            gap_ns_max: spent.gap_ns_max,
            wakeups: spent.wakeups,
            backlog_ops: self.backlog_ops,
            run_delay_ns: self.round.run_delay_since_last(),
            clock_step_ns: self.driver.sync_clocks(),
            ..interval.health
        };
        self.round.interval_cpu = cpu;
        self.tell(AgentEvent::Interval(Box::new(interval)));
        if before != self.recorder.phase() {
            self.cross_border(before);
        }
    }

    /// The window began or ended: counters that run all the time are read.
    pub(super) fn cross_border(&mut self, left: Phase) {
        let now = (self.round.bytes_received, self.links.bytes_sent, self.links.connects);
        let counters = std::mem::take(&mut self.counters);
        if left == Phase::Measure {
            let before = self.round.at_window_start;
            let totals = self.recorder.totals_mut();
            totals.wire_bytes_in = now.0 - before.0;
            totals.wire_bytes_out = now.1 - before.1;
            totals.connects = now.2 - before.2;
            totals.retransmissions = counters.retransmissions;
            totals.verified = counters.verified;
        }
        self.round.at_window_start = now;
    }

    pub(super) fn finish(mut self) {
        let now = self.now();
        self.roll_intervals(now);
        for schedule in &mut self.schedules {
            let Pace::Open(open) = &mut schedule.pace else { continue };
            open.backlog.iter().for_each(|due| self.recorder.not_sent(due.at));
            // After an early stop: what came due since the last round.
            while let Some(due) = open.next.filter(|due| due.at <= now) {
                self.recorder.came_due(due.at);
                self.recorder.not_sent(due.at);
                open.advance();
            }
        }
        self.give_up_the_rest(now);
        let left = self.recorder.phase();
        if now > Nanos::ZERO {
            self.roll(now);
        }
        if left == Phase::Measure {
            self.cross_border(left);
        }
        let participating = self.clients.len() as u32 - self.left_in_time;
        self.recorder.totals_mut().clients_participating = participating;
        let events = self.events;
        let totals = self.recorder.into_totals();
        // A listener that has gone away wants nothing more.
        let _ = events.send(AgentEvent::WorkerFinished(Box::new(totals)));
    }

    /// Ops that are still under way when the drain ends have failed.
    fn give_up_the_rest(&mut self, now: Nanos) {
        let rest: Vec<(Flight, usize)> = self
            .clients
            .iter()
            .flat_map(|client| client.flights.iter().flatten().map(|f| (*f, client.endpoint)))
            .collect();
        for (flight, endpoint) in rest {
            self.recorder.unfinished(flight, endpoint, now);
            if self.recorder.in_window(flight.due) {
                let waited = now.saturating_sub(flight.sent);
                let why = format!("no reply until the drain ended, {waited} after it was sent");
                self.sample(ErrorClass::Timeout, flight.kind, Some(why), now);
            }
        }
    }

    pub(super) fn tell(&self, event: AgentEvent) {
        let _ = self.events.send(event);
    }
}
