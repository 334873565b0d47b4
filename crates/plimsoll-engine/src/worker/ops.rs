//! The life of an op: it is due and is sent, it ends and is recorded, another follows from it, or
//! its client leaves the load.

use plimsoll_model::outcome::{ErrorClass, OpStatus, Outcome};
use plimsoll_model::units::Nanos;

use super::clients::{Clients, Completion, DueEntry, Port, Produced, TrailingBytes};
use super::connections::Connections;
use super::recording::{Counted, INTERRUPTION_MIN, Recording};
use super::schedule::{End, Outgoing, Schedules};
use crate::driver::Driver;
use crate::interface::{Link, Mark, Script, Session, Ticket};
use crate::recorder::{Arrived, Flight, StreamState};
use crate::signs::Replied;

/// How long an idle server's wakeup may take after its replies lay unread. It cannot be measured
/// here; a wakeup of our own takes half as long on a virtual machine.
const SERVER_WAKEUP: Nanos = Nanos::from_micros(100);

/// The ops of one worker.
pub(super) struct Ops<'a, S, C, D> {
    connections: Connections<D>,
    clients: Clients<S>,
    schedules: Schedules<C>,
    recording: Recording<'a>,
    due_by: DueBy,
    produced: Produced,
}

/// An op's position among those that one read ended.
#[derive(Clone, Copy)]
struct Reply {
    /// The read, or the failure of the link, ended it; no later call.
    of_read: bool,
    /// None of the read came after it.
    last: bool,
}

/// What makes an op due.
#[derive(Clone, Copy, Debug)]
pub(super) enum DueBy {
    Clock,
    Reply,
}

impl<'a, S, C, D> Ops<'a, S, C, D>
where
    S: Session,
    C: Script<Op = S::Op>,
    D: Driver,
{
    pub(super) fn new(
        connections: Connections<D>,
        clients: Clients<S>,
        schedules: Schedules<C>,
        recording: Recording<'a>,
        due_by: DueBy,
    ) -> Self {
        Self { connections, clients, schedules, recording, due_by, produced: Produced::default() }
    }

    pub(super) const fn connections(&mut self) -> &mut Connections<D> {
        &mut self.connections
    }

    pub(super) const fn recording(&mut self) -> &mut Recording<'a> {
        &mut self.recording
    }

    /// Some op comes due by the clock.
    pub(super) fn has_timers(&self) -> bool {
        self.schedules.next_wake().is_some()
    }

    /// When the next schedule or client wakes; [`Nanos::MAX`] for never.
    pub(super) fn next_timer(&self) -> Nanos {
        let wake = self.schedules.next_wake().unwrap_or(Nanos::MAX);
        wake.min(self.clients.next_deadline().unwrap_or(Nanos::MAX))
    }

    /// Replies are outstanding.
    pub(super) const fn in_flight(&self) -> bool {
        self.clients.in_flight() > 0
    }

    /// No op is in flight, and none waits.
    pub(super) const fn are_settled(&self) -> bool {
        self.clients.in_flight() == 0 && self.schedules.backlog_ops() == 0
    }

    /// The requested number of ops in the window, if there is one, has ended.
    pub(super) fn are_all_done(&self) -> bool {
        self.schedules.has_all_ops() && self.are_settled()
    }

    /// None of the session's ops is in flight.
    pub(super) fn is_idle(&self, session: u32) -> bool {
        self.clients.is_idle(session)
    }

    /// Largest read of the link that makes sense to the session.
    pub(super) fn read_limit(&self, session: u32, link: Link) -> usize {
        self.clients.session(session).read_limit(link)
    }

    /// Wakes every schedule and client whose time has come. True when there was one.
    pub(super) fn wake_due(&mut self, now: Nanos) -> bool {
        let mut acted = false;
        while self.schedules.wake_next(now) {
            acted = true;
            self.issue_due();
        }
        while let Some(entry) = self.clients.take_due(now) {
            acted = true;
            if let DueEntry::Deadline(session) = entry {
                let stamp = self.connections.now();
                self.call(session, stamp, |session, port| {
                    session.on_timer(stamp, port);
                });
                self.issue_due();
            }
        }
        acted
    }

    /// Issues what can go out, until nothing can. This ends every round.
    pub(super) fn issue_due(&mut self) {
        while let Some(outgoing) = self
            .schedules
            .next_op(|client| self.clients.has_room(client), || self.connections.now())
        {
            self.issue(outgoing);
        }
        self.connections.links().flush_queued();
    }

    /// Calls a session and settles what it produced.
    pub(super) fn call(
        &mut self,
        session: u32,
        now: Nanos,
        f: impl FnOnce(&mut S, &mut Port<'_, D>),
    ) {
        if self.clients.is_gone(session) {
            return;
        }
        if let Some(arrived) = self.connections.stamp() {
            self.recording.bytes_came(arrived, self.clients.in_flight());
        }
        self.produced.keep_details(self.recording.recorder().wants_sample());
        let had_room = self.clients.session_has_room(session);
        let links_and_stamp = self.connections.links_and_stamp();
        self.clients.call(session, links_and_stamp, &mut self.produced, f);
        self.record_marks(session, now);
        // Replies that a follow-on adds are not of this read.
        let replies = self.produced.ended();
        let mut next = 0;
        // A follow-on may add to them.
        while let Some(completion) = self.produced.take(next) {
            next += 1;
            let reply = Reply { of_read: next <= replies, last: next == replies };
            self.settle(session, completion, reply, now);
        }
        self.produced.clear();
        while let Some(trailing) = self.produced.take_trailing_bytes() {
            self.count_trailing_bytes(session, trailing, now);
        }
        if let Some(reason) = self.lost(session, next > 0) {
            return self.leave(session, &reason, now);
        }
        // A session may find room without an op ending: it has logged on, it has connected again.
        if !had_room && self.clients.session_has_room(session) {
            for client in self.clients.clients_of(session) {
                if self.clients.has_room(client) {
                    self.schedules.note_room(client, now);
                }
            }
        }
        self.clients.note_deadline(session);
    }

    /// Ends every interval whose border `now` has reached.
    pub(super) fn roll_intervals(&mut self, now: Nanos) {
        while now >= self.recording.boundary() {
            let end = self.recording.boundary();
            let counted = self.count();
            self.recording.roll(end, &counted);
        }
    }

    /// The point ends at `now`; ops that are still in flight stay unfinished. Returns what
    /// sessions need to log off.
    pub(super) fn finish(mut self, now: Nanos) -> (Connections<D>, Clients<S>) {
        self.roll_intervals(now);
        for flight in self.clients.flights() {
            self.recording.unfinished(flight, now);
        }
        let counted = self.count();
        self.recording.finish(now, &counted, &self.schedules.finish(now));
        (self.connections, self.clients)
    }

    fn count(&mut self) -> Counted {
        Counted {
            sessions: self.clients.take_counters(),
            traffic: self.connections.traffic(),
            backlog_ops: self.schedules.backlog_ops(),
            in_flight: self.clients.in_flight(),
            clock_step_ns: self.connections.sync_clocks(),
        }
    }

    fn issue(&mut self, outgoing: Outgoing<S::Op>) {
        let Outgoing { client, op, due, now } = outgoing;
        let ticket = self.begin(client, &op, due, now, self.due_by);
        self.schedules.script(client).on_issued(ticket);
        let session = self.clients.session_of(client);
        self.call(session, now, |session, port| session.issue(ticket, op, now, port));
        self.list_free(client);
    }

    /// An op goes out at `sent`.
    fn begin(&mut self, client: u32, op: &S::Op, due: Nanos, sent: Nanos, by: DueBy) -> Ticket {
        let session = self.clients.session_of(client);
        let kind = self.clients.session(session).kind(op);
        let free = self.schedules.op_began(client);
        let server_wakeup = match by {
            // Meanwhile the server had less to do, or nothing, and may have gone to sleep.
            DueBy::Reply if self.clients.read_late(session) >= INTERRUPTION_MIN => SERVER_WAKEUP,
            DueBy::Reply | DueBy::Clock => Nanos::ZERO,
        };
        let mut flight = Flight {
            kind,
            due,
            free,
            sent,
            server_wakeup,
            late_max: Nanos::ZERO,
            stream: StreamState::default(),
        };
        flight.late_max = self.recording.sent(&flight, self.clients.in_flight());
        self.clients.begin(client, flight)
    }

    fn list_free(&mut self, client: u32) {
        self.schedules.list_free(client, || self.clients.has_room(client));
    }

    /// An op ended at `now`.
    fn settle(&mut self, session: u32, completion: Completion, reply: Reply, now: Nanos) {
        let Completion { ticket, ref outcome, detail } = completion;
        let Some((client, flight)) = self.clients.end(session, ticket) else {
            debug_assert!(false, "a session completed a ticket it does not hold");
            return;
        };
        // A follow-on is sent after the `now` of its turn, and may fail at once.
        let now = now.max(flight.sent);
        self.schedules.op_ended(client, now);
        if now >= self.recording.boundary() {
            self.roll_intervals(now);
        }
        let (done, arrived) =
            match flight.stream.completed.filter(|(completed, _)| *completed < now) {
                Some(before) => before,
                None if reply.of_read => {
                    let is_last = |link, drained| {
                        reply.last && self.clients.ended_last(session, link, drained)
                    };
                    (now, self.connections.arrived(&flight, now, is_last))
                }
                None => (now, Arrived::Never),
            };
        self.clients.note_read(
            session,
            match arrived {
                Arrived::Stamped(at) => done.saturating_sub(at),
                Arrived::Bounded(_) | Arrived::Never => Nanos::ZERO,
            },
        );
        self.recording.ended(flight, outcome, self.clients.endpoint(client), arrived, done);
        self.recording.recorder().record_client(client as usize, outcome);
        if reply.of_read {
            self.note_reply(client, &flight, outcome, done);
        }
        let mut end = End::Other;
        if let OpStatus::Failed(class) = outcome.status {
            self.recording.sample(class, outcome.kind, detail, now);
            // With others in flight the bytes may be theirs.
            if self.connections.is_unsent() && self.clients.is_idle(session) {
                self.recording.cut_off(class, flight.due);
            }
            if no_connection(class) {
                end = End::NoConnection;
            }
        }
        self.schedules.script(client).on_outcome(ticket, outcome, now);
        if self.follow_on(client, ticket, now) {
            end = End::GoesOn;
        }
        self.list_free(client);
        self.schedules.go_on(client, end, now);
    }

    /// How the reply came that ended this op.
    #[inline]
    fn note_reply(&mut self, client: u32, flight: &Flight, outcome: &Outcome, now: Nanos) {
        let Some(shape) = self.connections.reply_ended() else { return };
        if !matches!(outcome.status, OpStatus::Ok | OpStatus::ExpectedFailure) {
            return;
        }
        let endpoint = self.clients.endpoint(client);
        let in_flight = self.clients.in_flight() + 1;
        let sent = flight.service_from();
        let reply = Replied { endpoint, sent, done: now, in_flight, shape };
        self.recording.replied(flight.due, &reply);
    }

    /// Issues what follows from the op that ended; false when nothing does.
    fn follow_on(&mut self, client: u32, ended: Ticket, now: Nanos) -> bool {
        let session = self.clients.session_of(client);
        let Some(op) = self.clients.take_follow_on(session, ended) else { return false };
        if self.schedules.has_ended(now) {
            return false;
        }
        let sent = self.connections.now();
        self.schedules.follow_on_came_due(now);
        let ticket = self.begin(client, &op, now, sent, DueBy::Reply);
        self.schedules.script(client).on_follow_on(ended, ticket);
        let links_and_stamp = self.connections.links_and_stamp();
        self.clients.call(session, links_and_stamp, &mut self.produced, |session, port| {
            session.issue(ticket, op, sent, port);
        });
        self.record_marks(session, sent);
        true
    }

    /// Records what the session marked within its ops, in the order in which it did.
    fn record_marks(&mut self, session: u32, now: Nanos) {
        let mut next = 0;
        while let Some((ticket, mark)) = self.produced.mark(next) {
            next += 1;
            if now >= self.recording.boundary() {
                self.roll_intervals(now);
            }
            let stamp = self.connections.stamp();
            let Some(flight) = self.clients.flight_mut(session, ticket) else { continue };
            self.recording.mark(flight, mark, stamp, now);
            if mark == Mark::Complete {
                let flight = *flight;
                let is_last = |link, drained| self.clients.is_last(session, link, drained);
                let arrived = self.connections.arrived(&flight, now, is_last);
                if let Some(flight) = self.clients.flight_mut(session, ticket) {
                    flight.stream.completed = Some((now, arrived));
                }
            }
        }
        if next > 0 {
            self.produced.clear_marks();
        }
    }

    /// An op that was recorded as a success turns out to have failed. Its times and its part of the
    /// throughput stay, since its reply did come.
    fn count_trailing_bytes(&mut self, session: u32, trailing: TrailingBytes, now: Nanos) {
        let TrailingBytes { kind, detail } = trailing;
        let (client, due) = self.clients.last_due(session);
        let endpoint = self.clients.endpoint(client);
        self.recording.count_trailing_bytes(kind, endpoint, due);
        self.recording.sample(ErrorClass::TrailingBytes, kind, detail, now);
    }

    /// Why the session cannot continue. `ended`: an op ended in the call before.
    fn lost(&self, session: u32, ended: bool) -> Option<String> {
        let is_stuck = || self.clients.is_idle(session) && !self.clients.session_has_room(session);
        let may_be = ended || is_stuck();
        may_be.then(|| self.clients.session(session).lost()).flatten()
    }

    /// The others go on without the clients of this session; their ops in flight have failed, as
    /// the replies can no longer come.
    fn leave(&mut self, session: u32, reason: &str, now: Nanos) {
        let flights = self.clients.leave(session);
        self.connections.links().release_all(session);
        for (ticket, client, flight) in flights {
            let now = now.max(flight.sent);
            self.roll_intervals(now);
            let outcome = Outcome {
                kind: flight.kind,
                status: OpStatus::Failed(ErrorClass::Transport),
                bytes_read: 0,
                bytes_written: 0,
                ambiguous: false,
            };
            self.schedules.op_ended(client, now);
            let endpoint = self.clients.endpoint(client);
            self.recording.ended(flight, &outcome, endpoint, Arrived::Never, now);
            self.schedules.script(client).on_outcome(ticket, &outcome, now);
        }
        for client in self.clients.clients_of(session) {
            self.schedules.leave(client, now);
            self.recording.client_lost(self.clients.number(client), reason.to_owned(), now);
        }
    }
}

/// The op failed before or because there was no connection: at once, with nothing to wait for.
const fn no_connection(class: ErrorClass) -> bool {
    matches!(
        class,
        ErrorClass::Transport
            | ErrorClass::Tls
            | ErrorClass::PortsExhausted
            | ErrorClass::DescriptorsExhausted
    )
}
