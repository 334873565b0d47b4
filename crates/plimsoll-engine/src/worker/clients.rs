//! The clients of one worker: their sessions, their ops in flight, their deadlines, and the [`Io`]
//! that a session sees.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fmt;

use plimsoll_model::outcome::{OpKind, Outcome};
use plimsoll_model::units::Nanos;

use super::links::Links;
use crate::driver::{Driver, Route};
use crate::recorder::Flight;
use crate::seam::{Io, Link, LinkKind, Piece, Session, SessionCounters, Ticket};

/// All clients of one worker, named by their place among them.
pub(super) struct Clients<S> {
    clients: Vec<Client<S>>,
    /// Whose deadline comes when. Few entries per client.
    deadlines: BinaryHeap<Reverse<(Nanos, u32)>>,
    in_flight: u64,
}

/// A simulated client as the worker keeps it.
struct Client<S> {
    session: S,
    /// Over all workers.
    number: u32,
    /// Has left the load; its session is not called any more.
    gone: bool,
    endpoint: usize,
    route: Route,
    /// By ticket.
    flights: Vec<Option<Flight>>,
    /// Tickets that no op has, the one used last on top.
    free_tickets: Vec<Ticket>,
    in_flight: u32,
    /// When the op that ended last was due.
    last_due: Nanos,
    /// How late its last reply was read, where that is known.
    read_late: Nanos,
    /// Its earliest entry in the heap.
    deadline: Nanos,
}

impl<S> Clients<S> {
    pub(super) const fn new() -> Self {
        Self { clients: Vec::new(), deadlines: BinaryHeap::new(), in_flight: 0 }
    }

    pub(super) fn add(&mut self, session: S, number: u32, endpoint: usize, route: Route) {
        self.clients.push(Client {
            session,
            number,
            gone: false,
            endpoint,
            route,
            flights: Vec::new(),
            free_tickets: Vec::new(),
            in_flight: 0,
            last_due: Nanos::ZERO,
            read_late: Nanos::ZERO,
            deadline: Nanos::MAX,
        });
    }

    /// Over all workers.
    pub(super) fn number(&self, client: u32) -> u32 {
        self.at(client).number
    }

    /// Of all clients, over all workers.
    pub(super) fn numbers(&self) -> Vec<u32> {
        self.clients.iter().map(|client| client.number).collect()
    }

    pub(super) fn endpoint(&self, client: u32) -> usize {
        self.at(client).endpoint
    }

    pub(super) fn session(&self, client: u32) -> &S {
        &self.at(client).session
    }

    pub(super) fn is_gone(&self, client: u32) -> bool {
        self.at(client).gone
    }

    /// None of its ops is in flight.
    pub(super) fn is_idle(&self, client: u32) -> bool {
        self.at(client).in_flight == 0
    }

    /// When the op was due that ended last.
    pub(super) fn last_due(&self, client: u32) -> Nanos {
        self.at(client).last_due
    }

    /// How late its last reply was read, where that is known.
    pub(super) fn read_late(&self, client: u32) -> Nanos {
        self.at(client).read_late
    }

    /// A reply was read, so late.
    pub(super) fn note_read(&mut self, client: u32, late: Nanos) {
        self.at_mut(client).read_late = late;
    }

    /// Ops in flight of all clients.
    pub(super) const fn in_flight(&self) -> u64 {
        self.in_flight
    }

    /// Ops in flight.
    pub(super) fn flights(&self) -> impl Iterator<Item = Flight> {
        self.clients.iter().flat_map(|client| client.flights.iter().flatten().copied())
    }

    /// The op in flight of that ticket.
    pub(super) fn flight(&self, client: u32, ticket: Ticket) -> Option<Flight> {
        self.at(client).flights.get(ticket.0 as usize).copied().flatten()
    }

    /// An op goes out.
    #[inline]
    pub(super) fn begin(&mut self, client: u32, flight: Flight) -> Ticket {
        self.in_flight += 1;
        let state = self.at_mut(client);
        state.in_flight += 1;
        if let Some(ticket) = state.free_tickets.pop() {
            state.flights[ticket.0 as usize] = Some(flight);
            return ticket;
        }
        state.flights.push(Some(flight));
        Ticket(state.flights.len() as u32 - 1)
    }

    /// The op ended; `None` when there is no such op.
    #[inline]
    pub(super) fn end(&mut self, client: u32, ticket: Ticket) -> Option<Flight> {
        let state = self.at_mut(client);
        let flight = state.flights.get_mut(ticket.0 as usize)?.take()?;
        state.free_tickets.push(ticket);
        state.in_flight -= 1;
        state.last_due = flight.due;
        self.in_flight -= 1;
        Some(flight)
    }

    /// The client leaves the load; its ops end, the oldest ticket first.
    pub(super) fn leave(&mut self, client: u32) -> Vec<(Ticket, Flight)> {
        self.at_mut(client).gone = true;
        let tickets = (0..self.at(client).flights.len() as u32).map(Ticket);
        tickets.filter_map(|ticket| Some((ticket, self.end(client, ticket)?))).collect()
    }

    fn at(&self, client: u32) -> &Client<S> {
        &self.clients[client as usize]
    }

    fn at_mut(&mut self, client: u32) -> &mut Client<S> {
        &mut self.clients[client as usize]
    }
}

impl<S: Session> Clients<S> {
    /// Takes another op now.
    #[inline]
    pub(super) fn has_room(&self, client: u32) -> bool {
        let state = self.at(client);
        !state.gone && state.session.has_room()
    }

    /// Calls the client's session.
    pub(super) fn call<D: Driver>(
        &mut self,
        client: u32,
        links: &mut Links<D>,
        produced: &mut Produced,
        f: impl FnOnce(&mut S, &mut Port<'_, D>),
    ) {
        let state = self.at_mut(client);
        let mut port = Port::new(links, produced, client, &state.route);
        f(&mut state.session, &mut port);
    }

    /// What follows from the op of this ticket, which has ended.
    #[inline]
    pub(super) fn take_follow_on(&mut self, client: u32, ended: Ticket) -> Option<S::Op> {
        self.at_mut(client).session.take_follow_on(ended)
    }

    /// What came over the link last ended the reply to an op that nothing followed: no other op is
    /// in flight, or the read left the socket `drained` and its bytes ended a message.
    #[inline]
    pub(super) fn ended_last(&self, client: u32, link: Link, drained: bool) -> bool {
        let state = self.at(client);
        state.in_flight == 0 || (drained && state.session.at_boundary(link))
    }

    /// What sessions counted since the last call.
    pub(super) fn take_counters(&mut self) -> SessionCounters {
        let mut sum = SessionCounters::default();
        for client in &mut self.clients {
            sum.add(client.session.take_counters());
        }
        sum
    }

    /// The earliest deadline, or earlier.
    pub(super) fn next_deadline(&self) -> Option<Nanos> {
        self.deadlines.peek().map(|first| first.0.0)
    }

    /// Registers the session's deadline when it is earlier than the one in the heap. A later one
    /// is found when the earlier entry fires, so a timeout per op costs no heap entry per op.
    #[inline]
    pub(super) fn note_deadline(&mut self, client: u32) {
        let state = &mut self.clients[client as usize];
        if let Some(at) = state.session.next_deadline().filter(|at| *at < state.deadline) {
            state.deadline = at;
            self.deadlines.push(Reverse((at, client)));
        }
    }

    /// Takes the first entry of the heap whose time has come.
    pub(super) fn take_due(&mut self, now: Nanos) -> Option<DueEntry> {
        let Reverse((at, client)) = self.deadlines.peek().copied().filter(|e| e.0.0 <= now)?;
        self.deadlines.pop();
        let state = &mut self.clients[client as usize];
        if state.gone {
            return Some(DueEntry::Stale);
        }
        if state.deadline == at {
            state.deadline = Nanos::MAX;
        }
        if state.session.next_deadline().is_some_and(|deadline| deadline <= now) {
            return Some(DueEntry::Deadline(client));
        }
        self.note_deadline(client);
        Some(DueEntry::Stale)
    }
}

/// What an entry of the heap of deadlines has become.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DueEntry {
    /// The client's deadline has come.
    Deadline(u32),
    /// The client has gone, or its deadline has moved.
    Stale,
}

/// What a session's calls produced, collected until the session returns.
#[derive(Default)]
pub(super) struct Produced {
    completions: Vec<Completion>,
    /// What came behind replies of ops that had ended before.
    surpluses: Vec<Surplus>,
    pieces: Vec<(Ticket, Piece)>,
    /// Words for the failure that completes next.
    detail: Option<String>,
    /// A further error sample would be kept.
    wants_detail: bool,
}

/// An op that ended.
pub(super) struct Completion {
    pub(super) ticket: Ticket,
    pub(super) outcome: Outcome,
    /// Why it failed, in words.
    pub(super) detail: Option<String>,
}

/// Bytes behind a reply that had been recorded as good.
pub(super) struct Surplus {
    pub(super) kind: OpKind,
    /// What came, in words.
    pub(super) detail: Option<String>,
}

impl Produced {
    /// Whether the session's words are kept from now on.
    pub(super) const fn keep_details(&mut self, wanted: bool) {
        self.wants_detail = wanted;
    }

    /// How many ops have ended.
    pub(super) fn ended(&self) -> usize {
        self.completions.len()
    }

    /// The op that ended as number `nth`, for the first time it is asked for.
    pub(super) fn take(&mut self, nth: usize) -> Option<Completion> {
        let Completion { ticket, outcome, ref mut detail } = *self.completions.get_mut(nth)?;
        Some(Completion { ticket, outcome, detail: detail.take() })
    }

    /// All that ended have been dealt with.
    pub(super) fn clear(&mut self) {
        self.completions.clear();
    }

    pub(super) fn take_piece(&mut self) -> Option<(Ticket, Piece)> {
        self.pieces.pop()
    }

    pub(super) fn take_surplus(&mut self) -> Option<Surplus> {
        self.surpluses.pop()
    }
}

/// The [`Io`] of one client during one call of its session.
pub(super) struct Port<'w, D> {
    links: &'w mut Links<D>,
    produced: &'w mut Produced,
    client: u32,
    route: &'w Route,
}

impl<'w, D> Port<'w, D> {
    pub(super) const fn new(
        links: &'w mut Links<D>,
        produced: &'w mut Produced,
        client: u32,
        route: &'w Route,
    ) -> Self {
        Self { links, produced, client, route }
    }
}

impl<D: Driver> Io for Port<'_, D> {
    fn connect(&mut self, kind: LinkKind) -> Link {
        self.links.connect(self.client, kind, self.route)
    }

    fn send(&mut self, link: Link, bytes: &[u8]) {
        self.links.send(link, bytes);
    }

    fn discard(&mut self, link: Link, n: u64) {
        self.links.discard(link, n);
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

    fn piece(&mut self, ticket: Ticket, piece: Piece) {
        self.produced.pieces.push((ticket, piece));
    }

    fn surplus(&mut self, kind: OpKind) {
        let detail = self.produced.detail.take();
        self.produced.surpluses.push(Surplus { kind, detail });
    }
}
