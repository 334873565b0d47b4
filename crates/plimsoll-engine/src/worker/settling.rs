//! Calls into sessions, and what follows from the ops that end in them.

use std::cmp::Reverse;

use plimsoll_model::event::AgentEvent;
use plimsoll_model::outcome::{ErrorClass, ErrorSample, OpKind, OpStatus, Outcome};
use plimsoll_model::units::Nanos;

use super::Worker;
use super::lane::Pace;
use super::links::Port;
use crate::driver::Driver;
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
        self.produced.wants_detail = self.recorder.wants_sample();
        let state = &mut self.clients[client as usize];
        let had_room = state.session.has_room();
        let mut port = Port {
            driver: &mut self.driver,
            links: &mut self.links,
            produced: &mut self.produced,
            client,
            endpoint: self.assignment.endpoints[state.endpoint].address,
            source: state.source,
        };
        f(&mut state.session, &mut port);
        let mut next = 0;
        while let Some((ticket, outcome)) = self.produced.completions.get(next).copied() {
            next += 1;
            self.settle(client, ticket, &outcome, now);
        }
        self.produced.completions.clear();
        if !had_room {
            self.notice_room(client, now);
        }
        self.note_deadline(client);
    }

    /// A session may find room without an op ending: it has logged on, it has connected again.
    fn notice_room(&mut self, client: u32, now: Nanos) {
        let state = &self.clients[client as usize];
        if !state.listed_free && state.session.has_room() {
            let lane = state.lane;
            self.list_free(client);
            self.runnable.push((lane, now));
        }
    }

    /// An op ended at `now`.
    pub(super) fn settle(&mut self, client: u32, ticket: Ticket, outcome: &Outcome, now: Nanos) {
        let state = &mut self.clients[client as usize];
        let Some(flight) = state.flights.get_mut(ticket.0 as usize).and_then(Option::take) else {
            debug_assert!(false, "a session completed a ticket it does not hold");
            return;
        };
        state.in_flight -= 1;
        state.free_since = now;
        self.in_flight -= 1;
        let (lane, endpoint) = (state.lane, state.endpoint);
        if now >= self.recorder.boundary() {
            self.roll_intervals(now);
        }
        self.recorder.record(flight, outcome, endpoint, now);
        let mut pause = None;
        if let OpStatus::Failed(class) = outcome.status {
            self.sample(class, outcome.kind, now);
            pause = no_connection(class).then_some(RECONNECT_PAUSE);
        }
        self.produced.detail = None;
        self.list_free(client);
        let state = &mut self.lanes[lane as usize];
        state.script.on_outcome(outcome, now);
        match &mut state.pace {
            Pace::Open(_) => self.runnable.push((lane, now)),
            Pace::Closed(pace) => match pause {
                Some(pause) => {
                    // Neither the failed piece nor the pause after it is a cycle of the client.
                    pace.piece_start = None;
                    pace.think = Nanos::ZERO;
                    self.wake_at(lane, now + pause);
                }
                None if C::EVERY_OP_IS_A_PIECE => self.think(lane, now),
                None => self.runnable.push((lane, now)),
            },
        }
    }

    pub(super) fn sample(&mut self, class: ErrorClass, kind: OpKind, now: Nanos) {
        if !self.recorder.take_sample(class) {
            return;
        }
        let sample = ErrorSample {
            op: self.recorder.op_name(kind).to_owned(),
            class: class.to_string(),
            detail: self.produced.detail.take().unwrap_or_default(),
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
