//! A simulated clock, network and target behind the engine's [`Driver`], so that a whole load point
//! runs in microseconds and its times are known to the nanosecond.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use plimsoll_engine::driver::{Driver, Ready, Received, Route, Slot, Wait};
use plimsoll_engine::interface::{LinkError, LinkKind};
use plimsoll_model::outcome::ErrorClass;
use plimsoll_model::units::Nanos;

/// Cost of an empty poll on the simulated clock.
const POLL_COST: Nanos = Nanos(1_000);

/// A simulated server: answers each request of a fixed size at an instant it chooses.
pub trait Target {
    /// A whole request arrived at `now`. `None` never answers.
    fn completion(&mut self, now: Nanos) -> Option<Nanos>;
    /// Refuses a connection made at `now`.
    fn refuses(&mut self, now: Nanos) -> bool {
        let _ = now;
        false
    }
}

impl<F: FnMut(Nanos) -> Option<Nanos>> Target for F {
    fn completion(&mut self, now: Nanos) -> Option<Nanos> {
        self(now)
    }
}

/// Bytes of a simulated request and of its reply.
pub const MESSAGE_BYTES: usize = 8;

/// The simulated clock, network and target.
pub struct SimDriver<T> {
    now: Nanos,
    target: T,
    connections: Vec<Connection>,
    events: BinaryHeap<Reverse<(Nanos, u64, Event)>>,
    sequence: u64,
    /// Time that sending one request takes the generator.
    pub send_cost: Nanos,
    /// Spans in which the generator itself stands still, in order.
    pub stalls: Vec<(Nanos, Nanos)>,
    /// Sockets are small: they take some bytes, then none until the pause is over.
    pub congestion: Option<Congestion>,
    /// Each reply comes once more, so long after the first time.
    pub doubled_after: Option<Nanos>,
    /// Requests in the order of their arrival, by their bytes.
    pub requests: Vec<u64>,
    /// Sends that moved bytes; several datagrams given together are one.
    pub sends: u64,
    /// Replies come with the instant of their arrival; of a stream, the last that lies there.
    pub stamps: bool,
    /// Sockets break when they are given something from `.0` on and before `.1`.
    pub breaks: Option<(Nanos, Nanos)>,
    /// Connections closed from this side.
    pub closes: u64,
    /// Waits for the start of a point.
    pub begins: u64,
    /// What the wall clock is stepped by, each time that it is looked at.
    pub clock_step_ns: i64,
    /// Of each connection, in the order in which they were opened.
    pub routes: Vec<Route>,
}

/// Sockets that take only so much.
#[derive(Clone, Copy, Debug)]
pub struct Congestion {
    /// Bytes a socket takes before it is full.
    pub room_bytes: usize,
    /// How long it then stays full.
    pub pause: Nanos,
}

struct Connection {
    generation: u32,
    kind: LinkKind,
    partial: Vec<u8>,
    inbox: VecDeque<u8>,
    /// Of the replies in it.
    arrivals: VecDeque<Nanos>,
    refused: bool,
    /// Bytes it has taken since it was last empty.
    taken: usize,
    /// An event follows when it takes bytes again.
    full: bool,
}

impl Connection {
    fn new(generation: u32, kind: LinkKind, refused: bool) -> Self {
        let (partial, inbox, arrivals) = (Vec::new(), VecDeque::new(), VecDeque::new());
        Self { generation, kind, partial, inbox, arrivals, refused, taken: 0, full: false }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Connected(Slot, u32),
    Emptied(Slot, u32),
    Reply(Slot, u32, u64),
}

impl<T: Target> SimDriver<T> {
    /// Time zero, nothing connected.
    pub fn new(target: T) -> Self {
        Self {
            now: Nanos::ZERO,
            target,
            connections: Vec::new(),
            events: BinaryHeap::new(),
            sequence: 0,
            send_cost: Nanos::ZERO,
            stalls: Vec::new(),
            congestion: None,
            doubled_after: None,
            requests: Vec::new(),
            sends: 0,
            stamps: false,
            breaks: None,
            closes: 0,
            begins: 0,
            clock_step_ns: 0,
            routes: Vec::new(),
        }
    }

    fn schedule(&mut self, at: Nanos, event: Event) {
        self.sequence += 1;
        self.events.push(Reverse((at, self.sequence, event)));
    }

    fn deliver_until(&mut self, until: Nanos, ready: &mut Vec<Ready>) {
        while let Some(Reverse((at, _, event))) = self.events.peek().copied() {
            if at > until {
                return;
            }
            self.events.pop();
            let (Event::Connected(slot, generation)
            | Event::Emptied(slot, generation)
            | Event::Reply(slot, generation, _)) = event;
            let connection = &mut self.connections[slot as usize];
            if connection.generation != generation {
                continue;
            }
            let is_reply = matches!(event, Event::Reply(..));
            if let Event::Reply(_, _, number) = event {
                connection.inbox.extend(number.to_be_bytes());
                connection.arrivals.push_back(at);
            } else {
                (connection.taken, connection.full) = (0, false);
            }
            let hung_up = connection.refused;
            // Reported once, whatever came.
            if let Some(existing) = ready.iter_mut().find(|existing| existing.slot == slot) {
                existing.readable |= is_reply;
                existing.writable |= !is_reply;
            } else {
                ready.push(Ready { slot, readable: is_reply, writable: !is_reply, hung_up });
            }
        }
    }

    /// What the socket takes of `bytes`: of a datagram, all or none.
    fn take(&mut self, slot: Slot, bytes: usize) -> usize {
        let Some(Congestion { room_bytes, pause }) = self.congestion else { return bytes };
        let connection = &mut self.connections[slot as usize];
        let fits = (room_bytes - connection.taken).min(bytes);
        let taken = match connection.kind {
            LinkKind::Datagram if fits < bytes => 0,
            LinkKind::Datagram | LinkKind::Stream => fits,
        };
        connection.taken += taken;
        if taken < bytes && !std::mem::replace(&mut connection.full, true) {
            let generation = connection.generation;
            self.schedule(self.now + pause, Event::Emptied(slot, generation));
        }
        taken
    }

    fn give(&mut self, slot: Slot, bytes: &[u8]) -> usize {
        self.now += self.send_cost;
        let taken = self.take(slot, bytes.len());
        let connection = &mut self.connections[slot as usize];
        connection.partial.extend_from_slice(&bytes[..taken]);
        let generation = connection.generation;
        let whole = connection.partial.len() / MESSAGE_BYTES * MESSAGE_BYTES;
        let messages: Vec<u8> = connection.partial.drain(..whole).collect();
        for message in messages.chunks_exact(MESSAGE_BYTES) {
            let number = u64::from_be_bytes(message.try_into().unwrap());
            self.requests.push(number);
            if let Some(at) = self.target.completion(self.now) {
                self.schedule(at, Event::Reply(slot, generation, number));
                if let Some(after) = self.doubled_after {
                    self.schedule(at + after, Event::Reply(slot, generation, number));
                }
            }
        }
        taken
    }
}

impl<T: Target> Driver for SimDriver<T> {
    fn begin(&mut self) {
        self.begins += 1;
    }

    fn sync_clocks(&mut self) -> i64 {
        self.clock_step_ns
    }

    fn now(&mut self) -> Nanos {
        self.now
    }

    fn connect(&mut self, slot: Slot, kind: LinkKind, route: &Route) -> Result<(), LinkError> {
        self.routes.push(route.clone());
        let index = slot as usize;
        if self.connections.len() <= index {
            self.connections.resize_with(index + 1, || Connection::new(0, kind, false));
        }
        let refused = self.target.refuses(self.now);
        let generation = self.connections[index].generation + 1;
        self.connections[index] = Connection::new(generation, kind, refused);
        self.schedule(self.now, Event::Connected(slot, generation));
        Ok(())
    }

    fn connected(&mut self, slot: Slot) -> Result<(), LinkError> {
        const CONNECTION_REFUSED: i32 = 111;
        if self.connections[slot as usize].refused {
            return Err(LinkError { class: ErrorClass::Transport, errno: CONNECTION_REFUSED });
        }
        Ok(())
    }

    fn send(&mut self, slot: Slot, bytes: &[u8]) -> Result<usize, LinkError> {
        const BROKEN_PIPE: i32 = 32;
        if self.breaks.is_some_and(|(from, to)| self.now >= from && self.now < to) {
            return Err(LinkError { class: ErrorClass::Transport, errno: BROKEN_PIPE });
        }
        let taken = self.give(slot, bytes);
        self.sends += u64::from(taken > 0);
        Ok(taken)
    }

    fn send_datagrams(
        &mut self,
        slot: Slot,
        bytes: &[u8],
        lengths: &[usize],
    ) -> Result<usize, LinkError> {
        assert!(lengths.iter().all(|length| *length == MESSAGE_BYTES), "{lengths:?}");
        assert_eq!(bytes.len(), lengths.len() * MESSAGE_BYTES);
        let datagrams = bytes.chunks_exact(MESSAGE_BYTES);
        let taken = datagrams.take_while(|datagram| self.give(slot, datagram) > 0).count();
        self.sends += u64::from(taken > 0);
        Ok(taken)
    }

    fn recv(&mut self, slot: Slot, buffer: &mut [u8]) -> Result<Received, LinkError> {
        let Connection { inbox, arrivals, kind, .. } = &mut self.connections[slot as usize];
        let most = if *kind == LinkKind::Datagram { MESSAGE_BYTES } else { buffer.len() };
        let length = inbox.len().min(most);
        if length == 0 {
            return Ok(Received::Nothing);
        }
        for (to, from) in buffer.iter_mut().zip(inbox.drain(..length)) {
            *to = from;
        }
        let arrived = match *kind {
            LinkKind::Datagram => arrivals.pop_front(),
            LinkKind::Stream => arrivals.back().copied(),
        };
        if inbox.is_empty() {
            arrivals.clear();
        }
        Ok(Received::Bytes { length, arrived: arrived.filter(|_| self.stamps) })
    }

    fn discard(&mut self, slot: Slot, limit: usize) -> Result<Received, LinkError> {
        let mut dropped = vec![0; limit.min(1 << 20)];
        self.recv(slot, &mut dropped)
    }

    fn close(&mut self, slot: Slot) {
        if let Some(connection) = self.connections.get_mut(slot as usize) {
            connection.generation += 1;
            self.closes += 1;
        }
    }

    fn wait(&mut self, wait: Wait, ready: &mut Vec<Ready>) {
        match wait {
            Wait::Poll | Wait::Yield => self.now += POLL_COST,
            Wait::SleepUntil(until) => self.now = self.now.max(until),
            Wait::Until(until) => {
                let next = self.events.peek().map_or(until, |event| event.0.0);
                self.now = self.now.max(next.min(until));
            }
        }
        if let Some((_, to)) = self.stalls.first().copied().filter(|(from, _)| *from <= self.now) {
            self.now = self.now.max(to);
            self.stalls.remove(0);
        }
        self.deliver_until(self.now, ready);
    }
}
