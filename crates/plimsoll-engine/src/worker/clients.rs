//! The clients of one worker: their sessions, their ops in flight, their deadlines, and the [`Io`]
//! that a session sees.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fmt;
use std::ops::Range;

use plimsoll_model::outcome::{OpKind, Outcome};
use plimsoll_model::units::Nanos;

use super::links::Links;
use crate::driver::{Driver, Route};
use crate::interface::{Io, Link, LinkKind, Mark, Session, SessionCounters, Ticket};
use crate::recorder::Flight;

/// All clients of one worker and their sessions, each identified by its index. A session serves one
/// client, or several that share its connection.
pub(super) struct Clients<S> {
    sessions: Vec<Seated<S>>,
    clients: Vec<Client>,
    /// Which session's deadline comes when. Few entries per session.
    deadlines: BinaryHeap<Reverse<(Nanos, u32)>>,
    in_flight: u64,
}

/// A session as the worker keeps it.
struct Seated<S> {
    session: S,
    /// Has left the load, with its clients; it is not called any more.
    gone: bool,
    route: Route,
    /// The clients that it serves.
    clients: Range<u32>,
    /// By ticket: the client, and its op.
    flights: Vec<Option<(u32, Flight)>>,
    /// Tickets that no op has, the one used last on top.
    free_tickets: Vec<Ticket>,
    in_flight: u32,
    /// The client of the op that ended last, and when it was due.
    last_due: (u32, Nanos),
    /// How late its last reply was read, if known.
    read_late: Nanos,
    /// Its earliest entry in the heap.
    deadline: Nanos,
}

/// A simulated client as the worker keeps it.
struct Client {
    /// Over all workers.
    number: u32,
    session: u32,
    endpoint: usize,
    in_flight: u32,
}

impl<S> Clients<S> {
    pub(super) const fn new() -> Self {
        Self {
            sessions: Vec::new(),
            clients: Vec::new(),
            deadlines: BinaryHeap::new(),
            in_flight: 0,
        }
    }

    /// One more session, which serves the clients that are added next.
    pub(super) fn add_session(&mut self, session: S, route: Route) {
        let next = self.clients.len() as u32;
        self.sessions.push(Seated {
            session,
            gone: false,
            route,
            clients: next..next,
            flights: Vec::new(),
            free_tickets: Vec::new(),
            in_flight: 0,
            last_due: (next, Nanos::ZERO),
            read_late: Nanos::ZERO,
            deadline: Nanos::MAX,
        });
    }

    /// One more client of the session that was added last.
    pub(super) fn add(&mut self, number: u32, endpoint: usize) {
        let session = self.sessions.len() as u32 - 1;
        self.clients.push(Client { number, session, endpoint, in_flight: 0 });
        self.seated_mut(session).clients.end = self.clients.len() as u32;
    }

    /// Over all workers.
    pub(super) fn number(&self, client: u32) -> u32 {
        self.client(client).number
    }

    /// Of all clients, over all workers.
    pub(super) fn numbers(&self) -> Vec<u32> {
        self.clients.iter().map(|client| client.number).collect()
    }

    pub(super) fn endpoint(&self, client: u32) -> usize {
        self.client(client).endpoint
    }

    /// The session that serves the client.
    pub(super) fn session_of(&self, client: u32) -> u32 {
        self.client(client).session
    }

    /// The clients that a session serves.
    pub(super) fn clients_of(&self, session: u32) -> Range<u32> {
        self.seated(session).clients.clone()
    }

    pub(super) fn session(&self, session: u32) -> &S {
        &self.seated(session).session
    }

    /// How many there are, whether they have left the load or not.
    pub(super) const fn sessions(&self) -> u32 {
        self.sessions.len() as u32
    }

    pub(super) fn is_gone(&self, session: u32) -> bool {
        self.seated(session).gone
    }

    /// None of the session's ops is in flight.
    pub(super) fn is_idle(&self, session: u32) -> bool {
        self.seated(session).in_flight == 0
    }

    /// The client of the session's op that ended last, and when that op was due.
    pub(super) fn last_due(&self, session: u32) -> (u32, Nanos) {
        self.seated(session).last_due
    }

    /// How late its last reply was read, if known.
    pub(super) fn read_late(&self, session: u32) -> Nanos {
        self.seated(session).read_late
    }

    /// A reply was read, so late.
    pub(super) fn note_read(&mut self, session: u32, late: Nanos) {
        self.seated_mut(session).read_late = late;
    }

    /// Ops in flight of all clients.
    pub(super) const fn in_flight(&self) -> u64 {
        self.in_flight
    }

    /// Ops in flight.
    pub(super) fn flights(&self) -> impl Iterator<Item = Flight> {
        self.sessions.iter().flat_map(|seated| seated.flights.iter().flatten().map(|(_, op)| *op))
    }

    /// The op in flight of that ticket, to be marked.
    pub(super) fn flight_mut(&mut self, session: u32, ticket: Ticket) -> Option<&mut Flight> {
        let flight = self.seated_mut(session).flights.get_mut(ticket.0 as usize)?;
        flight.as_mut().map(|(_, flight)| flight)
    }

    /// An op of the client goes out.
    #[inline]
    pub(super) fn begin(&mut self, client: u32, flight: Flight) -> Ticket {
        self.in_flight += 1;
        let state = self.at_mut(client);
        state.in_flight += 1;
        let session = state.session;
        let seated = self.seated_mut(session);
        seated.in_flight += 1;
        if let Some(ticket) = seated.free_tickets.pop() {
            seated.flights[ticket.0 as usize] = Some((client, flight));
            return ticket;
        }
        seated.flights.push(Some((client, flight)));
        Ticket(seated.flights.len() as u32 - 1)
    }

    /// The op that ended, and its client; `None` if there is no such op.
    #[inline]
    pub(super) fn end(&mut self, session: u32, ticket: Ticket) -> Option<(u32, Flight)> {
        let seated = self.seated_mut(session);
        let (client, flight) = seated.flights.get_mut(ticket.0 as usize)?.take()?;
        seated.free_tickets.push(ticket);
        seated.in_flight -= 1;
        seated.last_due = (client, flight.due);
        self.at_mut(client).in_flight -= 1;
        self.in_flight -= 1;
        Some((client, flight))
    }

    /// The session leaves the load, with its clients; their ops end, the oldest ticket first.
    pub(super) fn leave(&mut self, session: u32) -> Vec<(Ticket, u32, Flight)> {
        self.seated_mut(session).gone = true;
        let tickets = (0..self.seated(session).flights.len() as u32).map(Ticket);
        let end = |ticket| {
            let (client, flight) = self.end(session, ticket)?;
            Some((ticket, client, flight))
        };
        tickets.filter_map(end).collect()
    }

    fn client(&self, client: u32) -> &Client {
        &self.clients[client as usize]
    }

    fn at_mut(&mut self, client: u32) -> &mut Client {
        &mut self.clients[client as usize]
    }

    fn seated(&self, session: u32) -> &Seated<S> {
        &self.sessions[session as usize]
    }

    fn seated_mut(&mut self, session: u32) -> &mut Seated<S> {
        &mut self.sessions[session as usize]
    }
}

impl<S: Session> Clients<S> {
    /// The client takes another op now. One that shares its session has one op in flight at most.
    #[inline]
    pub(super) fn has_room(&self, client: u32) -> bool {
        let state = self.client(client);
        let seated = self.seated(state.session);
        let may_have = state.in_flight == 0 || seated.clients.len() == 1;
        may_have && !seated.gone && seated.session.has_room()
    }

    /// The session takes another op now.
    #[inline]
    pub(super) fn session_has_room(&self, session: u32) -> bool {
        let seated = self.seated(session);
        !seated.gone && seated.session.has_room()
    }

    /// Calls a session. `arrived`: of the bytes that it is handed.
    pub(super) fn call<D: Driver>(
        &mut self,
        session: u32,
        (links, arrived): (&mut Links<D>, Option<Nanos>),
        produced: &mut Produced,
        f: impl FnOnce(&mut S, &mut Port<'_, D>),
    ) {
        let seated = self.seated_mut(session);
        let mut port = Port { links, produced, session, route: &seated.route, arrived };
        f(&mut seated.session, &mut port);
    }

    /// The follow-on of this ticket's op, which has ended.
    #[inline]
    pub(super) fn take_follow_on(&mut self, session: u32, ended: Ticket) -> Option<S::Op> {
        self.seated_mut(session).session.take_follow_on(ended)
    }

    /// What came over the link last ended the reply to an op that nothing followed: no other op is
    /// in flight, or the read left the socket `drained` and its bytes ended a message.
    #[inline]
    pub(super) fn ended_last(&self, session: u32, link: Link, drained: bool) -> bool {
        let seated = self.seated(session);
        seated.in_flight == 0 || (drained && seated.session.at_boundary(link))
    }

    /// The same of a reply whose op is still in flight.
    pub(super) fn is_last(&self, session: u32, link: Link, drained: bool) -> bool {
        let seated = self.seated(session);
        seated.in_flight <= 1 || (drained && seated.session.at_boundary(link))
    }

    /// No session is still to log off.
    pub(super) fn have_logged_off(&self) -> bool {
        self.sessions.iter().all(|seated| seated.gone || seated.session.has_logged_off())
    }

    /// What sessions counted since the last call.
    pub(super) fn take_counters(&mut self) -> SessionCounters {
        let mut sum = SessionCounters::default();
        for seated in &mut self.sessions {
            sum.add(seated.session.take_counters());
        }
        sum
    }

    /// The earliest deadline, or earlier.
    pub(super) fn next_deadline(&self) -> Option<Nanos> {
        self.deadlines.peek().map(|first| first.0.0)
    }

    /// Registers the session's deadline when it is earlier than the one in the heap. A later one is
    /// noticed when the earlier entry fires, so a timeout per op costs no heap entry per op.
    #[inline]
    pub(super) fn note_deadline(&mut self, session: u32) {
        let seated = &mut self.sessions[session as usize];
        if let Some(at) = seated.session.next_deadline().filter(|at| *at < seated.deadline) {
            seated.deadline = at;
            self.deadlines.push(Reverse((at, session)));
        }
    }

    /// Takes the first entry of the heap whose time has come.
    pub(super) fn take_due(&mut self, now: Nanos) -> Option<DueEntry> {
        let Reverse((at, session)) = self.deadlines.peek().copied().filter(|e| e.0.0 <= now)?;
        self.deadlines.pop();
        let seated = &mut self.sessions[session as usize];
        if seated.gone {
            return Some(DueEntry::Stale);
        }
        if seated.deadline == at {
            seated.deadline = Nanos::MAX;
        }
        if seated.session.next_deadline().is_some_and(|deadline| deadline <= now) {
            return Some(DueEntry::Deadline(session));
        }
        self.note_deadline(session);
        Some(DueEntry::Stale)
    }
}

/// What an entry of the heap of deadlines has become.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DueEntry {
    /// The session's deadline has come.
    Deadline(u32),
    /// The session has gone, or its deadline has moved.
    Stale,
}

/// What a session's calls produced, collected until the session returns.
#[derive(Default)]
pub(super) struct Produced {
    completions: Vec<Completion>,
    /// Trailing bytes behind replies of ops that had ended before.
    trailing_bytes: Vec<TrailingBytes>,
    marks: Vec<(Ticket, Mark)>,
    /// Text for the failure that completes next.
    detail: Option<String>,
    /// A further error sample would be kept.
    wants_detail: bool,
}

/// An op that ended.
pub(super) struct Completion {
    pub(super) ticket: Ticket,
    pub(super) outcome: Outcome,
    /// Why it failed, as text.
    pub(super) detail: Option<String>,
}

/// Bytes behind a reply that had been recorded as good.
pub(super) struct TrailingBytes {
    pub(super) kind: OpKind,
    /// What came, as text.
    pub(super) detail: Option<String>,
}

impl Produced {
    /// Whether the session's texts are kept from now on.
    pub(super) const fn keep_details(&mut self, required: bool) {
        self.wants_detail = required;
    }

    /// How many ops have ended.
    pub(super) fn ended(&self) -> usize {
        self.completions.len()
    }

    /// The op that ended as number `nth`; only once for each.
    pub(super) fn take(&mut self, nth: usize) -> Option<Completion> {
        let Completion { ticket, outcome, ref mut detail } = *self.completions.get_mut(nth)?;
        Some(Completion { ticket, outcome, detail: detail.take() })
    }

    /// All that ended have been handled.
    pub(super) fn clear(&mut self) {
        self.completions.clear();
    }

    /// The mark that was made as number `nth`.
    pub(super) fn mark(&self, nth: usize) -> Option<(Ticket, Mark)> {
        self.marks.get(nth).copied()
    }

    /// All marks have been recorded.
    pub(super) fn clear_marks(&mut self) {
        self.marks.clear();
    }

    pub(super) fn take_trailing_bytes(&mut self) -> Option<TrailingBytes> {
        self.trailing_bytes.pop()
    }
}

/// The [`Io`] of one session during one call of it.
pub(super) struct Port<'w, D> {
    links: &'w mut Links<D>,
    produced: &'w mut Produced,
    session: u32,
    route: &'w Route,
    /// When the kernel received what the session is handed.
    arrived: Option<Nanos>,
}

impl<D: Driver> Io for Port<'_, D> {
    fn connect(&mut self, kind: LinkKind) -> Link {
        self.links.connect(self.session, kind, self.route)
    }

    fn send(&mut self, link: Link, bytes: &[u8]) {
        self.links.send(link, bytes);
    }

    fn discard(&mut self, link: Link, n: u64) {
        self.links.discard(link, n);
    }

    fn is_refused(&mut self, link: Link) -> bool {
        self.links.driver().is_refused(link.slot())
    }

    fn close(&mut self, link: Link) {
        self.links.close(link);
    }

    fn explain(&mut self, detail: fmt::Arguments<'_>) {
        if self.produced.wants_detail {
            self.produced.detail = Some(detail.to_string());
        }
    }

    fn complete(&mut self, ticket: Ticket, outcome: Outcome) {
        let detail = self.produced.detail.take();
        self.produced.completions.push(Completion { ticket, outcome, detail });
    }

    fn arrived(&self) -> Option<Nanos> {
        self.arrived
    }

    fn mark(&mut self, ticket: Ticket, mark: Mark) {
        self.produced.marks.push((ticket, mark));
    }

    fn report_trailing_bytes(&mut self, kind: OpKind) {
        let detail = self.produced.detail.take();
        self.produced.trailing_bytes.push(TrailingBytes { kind, detail });
    }
}
