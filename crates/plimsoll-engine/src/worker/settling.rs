//! Calls into sessions, and what follows from the ops that end in them.

use std::cmp::Reverse;

use plimsoll_model::event::AgentEvent;
use plimsoll_model::outcome::{ErrorClass, ErrorSample, OpKind, OpStatus};
use plimsoll_model::units::Nanos;

use super::Worker;
use super::links::{Completion, Port, Surplus};
use super::schedule::Pace;
use crate::driver::Driver;
use crate::recorder::{Arrived, Flight, Landing};
use crate::seam::{Script, Session, Ticket};

/// A closed client whose connection failed waits this long, so that a dead server is not flooded.
const RECONNECT_PAUSE: Nanos = Nanos::from_millis(10);

impl<S, C, D> Worker<'_, S, C, D>
where
    S: Session,
    C: Script<Op = S::Op>,
    D: Driver,
{
    /// Calls a session and settles what it produced.
    pub(super) fn call(
        &mut self,
        client: u32,
        now: Nanos,
        f: impl FnOnce(&mut S, &mut Port<'_, D>),
    ) {
        if self.clients[client as usize].gone {
            return;
        }
        self.produced.wants_detail = self.recorder.wants_sample();
        let had_room = self.clients[client as usize].session.has_room();
        self.visit(client, f);
        // What a follow-on adds is no reply of this read.
        let replies = self.produced.completions.len();
        let mut next = 0;
        // A follow-on may add to them.
        while let Some(completion) = self.produced.completions.get_mut(next) {
            let Completion { ticket, outcome, .. } = *completion;
            let detail = completion.detail.take();
            next += 1;
            let reply = Reply { of_read: next <= replies, last: next == replies };
            self.settle(client, Completion { ticket, outcome, detail }, reply, now);
        }
        self.produced.completions.clear();
        while let Some(surplus) = self.produced.surpluses.pop() {
            self.count_surplus(client, surplus, now);
        }
        self.look_after(client, next > 0, now);
        if self.clients[client as usize].gone {
            return;
        }
        if !had_room {
            self.notice_room(client, now);
        }
        self.note_deadline(client);
    }

    fn visit(&mut self, client: u32, f: impl FnOnce(&mut S, &mut Port<'_, D>)) {
        let state = &mut self.clients[client as usize];
        let mut port = Port {
            driver: &mut self.driver,
            links: &mut self.links,
            produced: &mut self.produced,
            client,
            route: state.route,
        };
        f(&mut state.session, &mut port);
    }

    /// A session may find room without an op ending: it has logged on, it has connected again.
    fn notice_room(&mut self, client: u32, now: Nanos) {
        let state = &mut self.clients[client as usize];
        if !state.listed_free && state.session.has_room() {
            let schedule = state.schedule;
            state.free_since = now;
            self.list_free(client);
            self.runnable.push((schedule, now));
        }
    }

    /// An op ended at `now`.
    fn settle(&mut self, client: u32, completion: Completion, reply: Reply, now: Nanos) {
        let Completion { ticket, ref outcome, detail } = completion;
        let state = &mut self.clients[client as usize];
        let Some(flight) = state.end(ticket) else {
            debug_assert!(false, "a session completed a ticket it does not hold");
            return;
        };
        state.last_due = flight.due;
        // A follow-on is sent after the `now` of its turn, and may fail at once.
        let now = now.max(flight.sent);
        self.in_flight -= 1;
        let (schedule, endpoint) = (state.schedule, state.endpoint);
        let waited = self.schedules[schedule as usize].outcome();
        let state = &mut self.clients[client as usize];
        if waited || !state.listed_free {
            state.free_since = now;
        }
        if now >= self.recorder.boundary() {
            self.roll_intervals(now);
        }
        let arrived = self.arrived(client, &flight, reply, now);
        let late_max = self.lates.ended(flight.sent, flight.lateness(), flight.late_max);
        let landing = Landing { done: now, arrived, late_max };
        self.recorder.record(flight, outcome, endpoint, landing);
        self.recorder.record_client(client as usize, outcome);
        let mut pause = None;
        if let OpStatus::Failed(class) = outcome.status {
            self.sample(class, outcome.kind, detail, now);
            pause = no_connection(class).then_some(RECONNECT_PAUSE);
        }
        self.schedules[schedule as usize].script.on_outcome(ticket, outcome, now);
        let goes_on = self.follow_on(client, ticket, now);
        self.list_free(client);
        match &mut self.schedules[schedule as usize].pace {
            Pace::Open(_) => self.runnable.push((schedule, now)),
            Pace::Closed(_) if goes_on && C::EVERY_OP_IS_A_PIECE => {}
            Pace::Closed(_) if goes_on => self.runnable.push((schedule, now)),
            Pace::Closed(pace) => match pause {
                Some(pause) => {
                    // Neither the failed piece nor the pause after it is a cycle of the client.
                    pace.piece_start = None;
                    pace.think = Nanos::ZERO;
                    self.wake_at(schedule, now + pause);
                }
                None if C::EVERY_OP_IS_A_PIECE => self.think(schedule, now),
                None => self.runnable.push((schedule, now)),
            },
        }
    }

    /// An op that was recorded as a success turns out to have failed. Its times and its part of the
    /// throughput stay: its reply did come.
    fn count_surplus(&mut self, client: u32, surplus: Surplus, now: Nanos) {
        let state = &self.clients[client as usize];
        self.recorder.surplus(surplus.kind, state.endpoint, state.last_due);
        self.sample(ErrorClass::Surplus, surplus.kind, surplus.detail, now);
    }

    /// When the reply that ended this op reached the host. The stamp of a read is that of the last
    /// bytes that lay in the socket: it belongs to the last reply in it, and only if nothing of
    /// another lay behind. Any other reply came after the socket had been found empty.
    fn arrived(&self, client: u32, flight: &Flight, reply: Reply, now: Nanos) -> Arrived {
        let Some(reading) = self.reading.filter(|_| reply.of_read) else { return Arrived::Never };
        let state = &self.clients[client as usize];
        let alone =
            state.in_flight == 0 || (reading.drained && state.session.at_boundary(reading.link));
        match reading.stamp.filter(|_| reply.last && alone) {
            Some(stamp) => Arrived::Stamped(stamp.clamp(flight.sent, now)),
            None => Arrived::Bounded(reading.empty_since.clamp(flight.sent, now)),
        }
    }

    /// Issues what follows from the op that ended; false when nothing does.
    fn follow_on(&mut self, client: u32, ended: Ticket, now: Nanos) -> bool {
        let state = &mut self.clients[client as usize];
        let Some(op) = state.session.take_follow_on(ended) else { return false };
        if now >= self.assignment.phases.load_end() {
            return false;
        }
        let schedule = state.schedule;
        let sent = self.now();
        self.recorder.came_due(now);
        let ticket = self.begin(client, &op, now, sent);
        self.schedules[schedule as usize].script.on_follow_on(ended, ticket);
        self.visit(client, |session, port| session.issue(ticket, op, sent, port));
        true
    }

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

    /// Registers the session's deadline when it is earlier than the one in the heap. A later one
    /// is found when the earlier entry fires, so a timeout per op costs no heap entry per op.
    pub(super) fn note_deadline(&mut self, client: u32) {
        let state = &mut self.clients[client as usize];
        if let Some(at) = state.session.next_deadline().filter(|at| *at < state.deadline) {
            state.deadline = at;
            self.timers.clients.push(Reverse((at, client)));
        }
    }
}

/// An op's place among those that one read ended.
#[derive(Clone, Copy)]
struct Reply {
    /// The read, or the failure of the link, ended it; no later call.
    of_read: bool,
    /// None of the read came after it.
    last: bool,
}

/// The op failed before or because there was no connection: at once, with nothing to wait for.
fn no_connection(class: ErrorClass) -> bool {
    matches!(
        class,
        ErrorClass::Transport
            | ErrorClass::Tls
            | ErrorClass::PortsExhausted
            | ErrorClass::DescriptorsExhausted
    )
}
