//! The links of one worker: which slot each has, what waits to be sent, what was read.

use plimsoll_model::units::Nanos;

use crate::driver::{Driver, Route, Slot};
use crate::interface::{Link, LinkError, LinkKind};
use crate::signs::{Parts, ReplyShape};

/// Bytes of one link that may wait for the end of a round; more are sent at once. The requests of a
/// round stay far below, 30 writes of 8 KiB do not.
const BATCH_BYTES_MAX: usize = 256 * 1024;

/// A buffer this large is not kept for the next time.
const KEPT_BYTES_MAX: usize = 1 << 20;

/// State of one connection.
pub(super) struct LinkState {
    generation: u32,
    /// The client whose session owns it.
    client: u32,
    phase: LinkPhase,
    kind: LinkKind,
    /// Waits for the connection, for the socket, or for the end of the round.
    outbox: Outbox,
    /// The socket took less than it was given; an event follows when it takes more, unless it
    /// broke.
    blocked: bool,
    /// Is flushed at the end of the round.
    queued: bool,
    /// Bytes still to be dropped on arrival.
    discard_left: u64,
    /// The socket was empty then.
    empty_since: Nanos,
    /// The last read left nothing: whatever comes will be reported.
    drained: bool,
    /// Of the reply that is read.
    parts: Parts,
}

impl LinkState {
    /// The socket has not taken all that it was given.
    pub(super) const fn is_unsent(&self) -> bool {
        self.blocked
    }

    /// Bytes still to be dropped on arrival.
    pub(super) const fn discard_left(&self) -> u64 {
        self.discard_left
    }

    pub(super) const fn discarded(&mut self, bytes: u64) {
        self.discard_left = self.discard_left.saturating_sub(bytes);
    }

    /// A read has come to an end at `now`, with the socket's end or not. `looked`: every socket
    /// that had something then was named. Since when, before the read, the socket was empty.
    pub(super) fn was_read(&mut self, drained: bool, looked: Nanos, now: Nanos) -> Nanos {
        // A drained socket that a look at all of them did not name was empty then, too.
        let empty_since = match self.drained {
            true => self.empty_since.max(looked),
            false => self.empty_since,
        };
        self.drained = drained;
        if drained {
            self.empty_since = now;
        }
        empty_since
    }

    /// A part of a reply was read, with the kernel's stamp.
    #[inline]
    pub(super) fn part_came(&mut self, stamp: Option<Nanos>) {
        self.parts.came(stamp);
    }

    /// A reply is complete; `None` where there are no connections.
    #[inline]
    pub(super) fn reply_ended(&mut self) -> Option<ReplyShape> {
        (self.kind == LinkKind::Stream).then(|| self.parts.ended())
    }

    /// Nothing lies in the socket.
    pub(super) const fn note_empty(&mut self, now: Nanos) {
        (self.empty_since, self.drained) = (now, true);
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum LinkPhase {
    Free,
    Connecting,
    Open,
    /// Broken; the session hears of it in the next round.
    Broken,
}

/// All links of one worker, and the driver below them.
pub(super) struct Links<D> {
    driver: D,
    sending: Sending,
    states: Vec<LinkState>,
    free: Vec<Slot>,
    /// Closed in this round. Reused only in the next: the driver's list of ready connections may
    /// still name the old ones.
    resting: Vec<Slot>,
    /// Broken within a session's own call; reported in the next round.
    broken: Vec<(Link, LinkError)>,
    /// To be flushed at the end of the round.
    queued: Vec<Link>,
    bytes_sent: u64,
    /// Connections opened since the start.
    connects: u64,
    /// The last reading of the clock.
    now: Nanos,
}

/// When bytes leave.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Sending {
    /// With each [`Io::send`].
    AtOnce,
    /// At the end of the worker's round.
    Batched,
}

impl<D: Driver> Links<D> {
    pub(super) const fn new(driver: D, sending: Sending) -> Self {
        Self {
            driver,
            sending,
            states: Vec::new(),
            free: Vec::new(),
            resting: Vec::new(),
            broken: Vec::new(),
            queued: Vec::new(),
            bytes_sent: 0,
            connects: 0,
            now: Nanos::ZERO,
        }
    }

    /// The link in this slot, if it is in use, its client, and what carries it.
    pub(super) fn find(&self, slot: Slot) -> Option<(Link, u32, LinkKind)> {
        let state =
            self.states.get(slot as usize).filter(|state| state.phase != LinkPhase::Free)?;
        Some((Link::join(state.generation, slot), state.client, state.kind))
    }

    pub(super) const fn driver(&mut self) -> &mut D {
        &mut self.driver
    }

    /// State of a link; `None` once it is closed.
    pub(super) fn get(&mut self, link: Link) -> Option<&mut LinkState> {
        state_of(&mut self.states, link)
    }

    /// The same of a link that is open.
    pub(super) fn get_open(&mut self, link: Link) -> Option<&mut LinkState> {
        self.get(link).filter(|state| state.phase == LinkPhase::Open)
    }

    /// Bytes sent since the start.
    pub(super) const fn bytes_sent(&self) -> u64 {
        self.bytes_sent
    }

    /// Connections opened since the start.
    pub(super) const fn connects(&self) -> u64 {
        self.connects
    }

    /// Broken links whose sessions have not been notified yet.
    pub(super) fn broken(&self) -> usize {
        self.broken.len()
    }

    /// The first of them with its client, if it has not been closed.
    pub(super) fn take_broken(&mut self) -> Option<(Link, u32, LinkError)> {
        let (link, error) = self.broken.swap_remove(0);
        self.get(link).map(|state| (link, state.client, error))
    }

    /// Closed slots may be used again.
    pub(super) fn end_round(&mut self) {
        self.free.append(&mut self.resting);
    }

    /// Reads the clock.
    pub(super) fn look_at_clock(&mut self) -> Nanos {
        self.now = self.driver.now();
        self.now
    }

    /// The last reading of the clock.
    pub(super) const fn last_now(&self) -> Nanos {
        self.now
    }

    /// The socket is writable: sends what waits. Fails if the socket did not connect; true if it
    /// just did.
    pub(super) fn writable(&mut self, link: Link) -> Result<bool, LinkError> {
        let state = state_of(&mut self.states, link);
        let opens = state.filter(|state| state.phase == LinkPhase::Connecting);
        let opened = opens.is_some();
        if let Some(state) = opens {
            self.driver.connected(link.slot())?;
            state.phase = LinkPhase::Open;
            state.parts.note_sent(self.now);
            self.connects += 1;
        }
        self.flush(link);
        Ok(opened)
    }

    /// The round is over: sends what was collected in it.
    pub(super) fn flush_queued(&mut self) {
        for at in 0..self.queued.len() {
            let link = self.queued[at];
            if let Some(state) = self.get(link) {
                state.queued = false;
                if !state.blocked {
                    self.flush(link);
                }
            }
        }
        self.queued.clear();
    }

    /// Sends what waits, as far as the socket takes it.
    fn flush(&mut self, link: Link) {
        let slot = link.slot();
        let memory = match self.sending {
            Sending::AtOnce => Memory::Free,
            Sending::Batched => Memory::Keep,
        };
        let Some(state) = state_of(&mut self.states, link) else { return };
        if state.phase != LinkPhase::Open || state.outbox.is_empty() {
            return;
        }
        match state.outbox.send(state.kind, slot, &mut self.driver) {
            Ok(sent) => {
                state.blocked = !state.outbox.is_empty();
                if !state.blocked {
                    state.outbox.clear(memory);
                }
                self.bytes_sent += sent as u64;
            }
            Err(error) => self.broke_in_sending(link, error),
        }
    }

    fn broke_in_sending(&mut self, link: Link, error: LinkError) {
        if let Some(state) = self.get(link) {
            state.blocked = true;
        }
        self.broke(link, error);
    }

    /// The session hears of it in the next round.
    fn broke(&mut self, link: Link, error: LinkError) {
        if let Some(state) = self.get(link) {
            state.phase = LinkPhase::Broken;
        }
        self.broken.push((link, error));
    }

    /// Sends now, at the end of the round, or when the socket takes it.
    pub(super) fn send(&mut self, link: Link, bytes: &[u8]) {
        let batched = self.sending == Sending::Batched;
        let Some(state) = state_of(&mut self.states, link) else { return };
        state.parts.note_sent(self.now);
        match state.phase {
            LinkPhase::Broken | LinkPhase::Free => {}
            LinkPhase::Open if !batched && state.outbox.is_empty() => {
                match self.driver.send(link.slot(), bytes) {
                    Ok(sent) => {
                        if sent < bytes.len() {
                            state.outbox.push(state.kind, &bytes[sent..]);
                            state.blocked = true;
                        }
                        self.bytes_sent += sent as u64;
                    }
                    Err(error) => self.broke_in_sending(link, error),
                }
            }
            LinkPhase::Open | LinkPhase::Connecting => {
                state.outbox.push(state.kind, bytes);
                if state.phase == LinkPhase::Connecting || state.blocked {
                    return;
                }
                let full = state.outbox.len() >= BATCH_BYTES_MAX;
                let fresh = !std::mem::replace(&mut state.queued, true);
                if full {
                    self.flush(link);
                }
                if fresh {
                    self.queued.push(link);
                }
            }
        }
    }

    /// Opens a link for this client.
    pub(super) fn connect(&mut self, client: u32, kind: LinkKind, route: &Route) -> Link {
        let link = self.open(client, kind);
        if let Err(error) = self.driver.connect(link.slot(), kind, route) {
            self.broke(link, error);
        }
        link
    }

    /// The next `bytes` that arrive are to be discarded.
    pub(super) fn discard(&mut self, link: Link, bytes: u64) {
        if let Some(state) = self.get(link) {
            state.discard_left = state.discard_left.saturating_add(bytes);
        }
    }

    /// Closes. What was queued for the end of the round is still sent, as it would be without
    /// batches.
    pub(super) fn close(&mut self, link: Link) {
        if self.get(link).is_some_and(|state| !state.blocked) {
            self.flush(link);
        }
        self.release(link);
    }

    /// Closes and forgets.
    pub(super) fn release(&mut self, link: Link) {
        let slot = link.slot();
        let Some(state) = state_of(&mut self.states, link) else { return };
        state.phase = LinkPhase::Free;
        state.generation = state.generation.wrapping_add(1);
        state.outbox.clear(Memory::Free);
        (state.blocked, state.queued) = (false, false);
        state.discard_left = 0;
        self.driver.close(slot);
        self.resting.push(slot);
    }

    /// Closes and forgets all links of a client.
    pub(super) fn release_all(&mut self, client: u32) {
        for slot in 0..self.states.len() {
            let state = &self.states[slot];
            if state.client == client && state.phase != LinkPhase::Free {
                self.release(Link::join(state.generation, slot as Slot));
            }
        }
    }

    fn open(&mut self, client: u32, kind: LinkKind) -> Link {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.states.push(LinkState {
                generation: 0,
                client,
                phase: LinkPhase::Free,
                kind,
                outbox: Outbox::default(),
                blocked: false,
                queued: false,
                discard_left: 0,
                empty_since: Nanos::ZERO,
                drained: true,
                parts: Parts::default(),
            });
            (self.states.len() - 1) as Slot
        });
        let state = &mut self.states[slot as usize];
        state.client = client;
        state.kind = kind;
        state.phase = LinkPhase::Connecting;
        (state.empty_since, state.drained) = (Nanos::ZERO, true);
        state.parts = Parts::default();
        Link::join(state.generation, slot)
    }
}

fn state_of(states: &mut [LinkState], link: Link) -> Option<&mut LinkState> {
    let (generation, slot) = link.split();
    let state = states.get_mut(slot as usize)?;
    (state.generation == generation && state.phase != LinkPhase::Free).then_some(state)
}

impl Link {
    const fn join(generation: u32, slot: Slot) -> Self {
        Self((generation as u64) << 32 | slot as u64)
    }

    pub(super) const fn slot(self) -> Slot {
        self.split().1
    }

    const fn split(self) -> (u32, Slot) {
        ((self.0 >> 32) as u32, self.0 as Slot)
    }
}

/// Bytes of a link that its socket has not been given, or has not taken, yet: in order; of
/// datagrams, with their borders.
#[derive(Default)]
struct Outbox {
    bytes: Vec<u8>,
    /// Of each datagram; empty for a stream.
    lengths: Vec<usize>,
}

impl Outbox {
    fn is_empty(&self) -> bool {
        self.bytes.is_empty() && self.lengths.is_empty()
    }

    fn len(&self) -> usize {
        self.bytes.len()
    }

    fn push(&mut self, kind: LinkKind, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        if kind == LinkKind::Datagram {
            self.lengths.push(bytes.len());
        }
    }

    /// Sends what the socket takes; how many bytes that was.
    fn send<D: Driver>(
        &mut self,
        kind: LinkKind,
        slot: Slot,
        driver: &mut D,
    ) -> Result<usize, LinkError> {
        let sent = match kind {
            LinkKind::Stream => driver.send(slot, &self.bytes)?,
            LinkKind::Datagram => {
                let taken = driver.send_datagrams(slot, &self.bytes, &self.lengths)?;
                self.lengths.drain(..taken).sum()
            }
        };
        self.bytes.drain(..sent);
        Ok(sent)
    }

    /// Forgets everything. `Keep` keeps the memory for the next time, unless it has grown large.
    fn clear(&mut self, memory: Memory) {
        if memory == Memory::Free || self.bytes.capacity() > KEPT_BYTES_MAX {
            *self = Self::default();
        } else {
            self.bytes.clear();
            self.lengths.clear();
        }
    }
}

/// What becomes of a buffer that is empty.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Memory {
    /// Needed again soon.
    Keep,
    /// Seldom needed.
    Free,
}

#[cfg(test)]
mod tests;
