//! The connections of one worker, and the [`Io`] a session sees.

use std::fmt;

use plimsoll_model::outcome::{OpKind, Outcome};
use plimsoll_model::units::Nanos;

use super::unsent::{Memory, Unsent};
use crate::driver::{Driver, Route, Slot};
use crate::seam::{Io, Link, LinkError, LinkKind, Ticket};

/// Bytes of one link that may wait for the end of a turn; more are sent at once. A turn's worth of
/// requests stays far below, 30 writes of 8 KiB do not.
const BATCH_BYTES_MAX: usize = 256 * 1024;

/// State of one connection.
pub(super) struct LinkState {
    generation: u32,
    /// The client whose session owns it.
    pub(super) client: u32,
    pub(super) stage: Stage,
    pub(super) kind: LinkKind,
    /// Waits for the connection, for the socket, or for the end of the turn.
    unsent: Unsent,
    /// The socket took less than it was given; it will say when it takes more.
    blocked: bool,
    /// Is flushed at the end of the turn.
    queued: bool,
    /// Bytes still to be dropped on arrival.
    pub(super) discard_left: u64,
    /// Nothing lay in the socket then.
    pub(super) empty_since: Nanos,
    /// The last read left nothing: whatever comes will be told of.
    pub(super) drained: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    Free,
    Connecting,
    Open,
    /// Broken; the session hears of it in the next round.
    Broken,
}

/// All connections of one worker.
pub(super) struct Links {
    sending: Sending,
    states: Vec<LinkState>,
    free: Vec<Slot>,
    /// Closed in this round. Reused only in the next: the driver's list of ready connections may
    /// still name the old ones.
    resting: Vec<Slot>,
    /// Broken within a session's own call; reported in the next round.
    pub(super) broken: Vec<(Link, LinkError)>,
    /// To be flushed at the end of the turn.
    queued: Vec<Link>,
    /// Bytes sent since the last [`Links::take_sent`].
    pub(super) bytes_sent: u64,
    /// Connections opened since the start.
    pub(super) connects: u64,
}

/// When bytes leave.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Sending {
    /// With each [`Io::send`].
    AtOnce,
    /// At the end of the worker's turn.
    Batched,
}

impl Links {
    pub(super) const fn new(sending: Sending) -> Self {
        Self {
            sending,
            states: Vec::new(),
            free: Vec::new(),
            resting: Vec::new(),
            broken: Vec::new(),
            queued: Vec::new(),
            bytes_sent: 0,
            connects: 0,
        }
    }

    /// The link in this slot, when it is in use.
    pub(super) fn link(&self, slot: Slot) -> Option<Link> {
        let state = self.states.get(slot as usize)?;
        (state.stage != Stage::Free).then(|| Link::join(state.generation, slot))
    }

    /// State of a link; `None` once it is closed.
    pub(super) fn get(&mut self, link: Link) -> Option<&mut LinkState> {
        let (generation, slot) = link.split();
        let state = self.states.get_mut(slot as usize)?;
        (state.generation == generation && state.stage != Stage::Free).then_some(state)
    }

    /// Closed slots may be used again.
    pub(super) fn end_round(&mut self) {
        self.free.append(&mut self.resting);
    }

    /// The connection opened: what waited is sent.
    pub(super) fn opened<D: Driver>(&mut self, link: Link, driver: &mut D) {
        if let Some(state) = self.get(link) {
            state.stage = Stage::Open;
            self.connects += 1;
        }
        self.flush(link, driver);
    }

    /// The turn is over: what was collected in it is sent.
    pub(super) fn end_turn<D: Driver>(&mut self, driver: &mut D) {
        for at in 0..self.queued.len() {
            let link = self.queued[at];
            if let Some(state) = self.get(link) {
                state.queued = false;
                if !state.blocked {
                    self.flush(link, driver);
                }
            }
        }
        self.queued.clear();
    }

    /// Sends what waits, as far as the socket takes it.
    pub(super) fn flush<D: Driver>(&mut self, link: Link, driver: &mut D) {
        let slot = link.split().1;
        let memory = match self.sending {
            Sending::AtOnce => Memory::Free,
            Sending::Batched => Memory::Keep,
        };
        let Some(state) = self.get(link) else { return };
        if state.stage != Stage::Open || state.unsent.is_empty() {
            return;
        }
        match state.unsent.send(state.kind, slot, driver) {
            Ok(sent) => {
                state.blocked = !state.unsent.is_empty();
                if !state.blocked {
                    state.unsent.clear(memory);
                }
                self.bytes_sent += sent as u64;
            }
            Err(error) => self.broke(link, error),
        }
    }

    /// The session hears of it in the next round.
    fn broke(&mut self, link: Link, error: LinkError) {
        if let Some(state) = self.get(link) {
            state.stage = Stage::Broken;
        }
        self.broken.push((link, error));
    }

    /// Sends, now or at the end of the turn or when the socket takes it.
    fn send<D: Driver>(&mut self, link: Link, bytes: &[u8], driver: &mut D) {
        let batched = self.sending == Sending::Batched;
        let Some(state) = self.get(link) else { return };
        match state.stage {
            Stage::Broken | Stage::Free => {}
            Stage::Open if !batched && state.unsent.is_empty() => {
                match driver.send(link.split().1, bytes) {
                    Ok(sent) => {
                        if sent < bytes.len() {
                            state.unsent.push(state.kind, &bytes[sent..]);
                            state.blocked = true;
                        }
                        self.bytes_sent += sent as u64;
                    }
                    Err(error) => self.broke(link, error),
                }
            }
            Stage::Open | Stage::Connecting => {
                state.unsent.push(state.kind, bytes);
                if state.stage == Stage::Connecting || state.blocked {
                    return;
                }
                let full = state.unsent.len() >= BATCH_BYTES_MAX;
                let fresh = !std::mem::replace(&mut state.queued, true);
                if full {
                    self.flush(link, driver);
                }
                if fresh {
                    self.queued.push(link);
                }
            }
        }
    }

    /// Closes and forgets.
    pub(super) fn release<D: Driver>(&mut self, link: Link, driver: &mut D) {
        let slot = link.split().1;
        let Some(state) = self.get(link) else { return };
        state.stage = Stage::Free;
        state.generation = state.generation.wrapping_add(1);
        state.unsent.clear(Memory::Free);
        (state.blocked, state.queued) = (false, false);
        state.discard_left = 0;
        driver.close(slot);
        self.resting.push(slot);
    }

    /// Closes and forgets all links of a client.
    pub(super) fn release_all<D: Driver>(&mut self, client: u32, driver: &mut D) {
        for slot in 0..self.states.len() {
            let state = &self.states[slot];
            if state.client == client && state.stage != Stage::Free {
                self.release(Link::join(state.generation, slot as Slot), driver);
            }
        }
    }

    fn open_slot(&mut self, client: u32, kind: LinkKind) -> Link {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.states.push(LinkState {
                generation: 0,
                client,
                stage: Stage::Free,
                kind,
                unsent: Unsent::default(),
                blocked: false,
                queued: false,
                discard_left: 0,
                empty_since: Nanos::ZERO,
                drained: true,
            });
            (self.states.len() - 1) as Slot
        });
        let state = &mut self.states[slot as usize];
        state.client = client;
        state.kind = kind;
        state.stage = Stage::Connecting;
        (state.empty_since, state.drained) = (Nanos::ZERO, true);
        Link::join(state.generation, slot)
    }
}

impl Link {
    pub(super) const fn join(generation: u32, slot: Slot) -> Self {
        Self((generation as u64) << 32 | slot as u64)
    }

    pub(super) const fn split(self) -> (u32, Slot) {
        ((self.0 >> 32) as u32, self.0 as Slot)
    }
}

/// What a session's calls produced, collected until the session returns.
#[derive(Default)]
pub(super) struct Produced {
    pub(super) completions: Vec<Completion>,
    /// What came behind replies of ops that had ended before.
    pub(super) surpluses: Vec<Surplus>,
    /// Words for the failure that completes next.
    pub(super) detail: Option<String>,
    /// A further error sample would be kept.
    pub(super) wants_detail: bool,
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

/// The [`Io`] of one client during one call of its session.
pub(super) struct Port<'w, D> {
    pub(super) driver: &'w mut D,
    pub(super) links: &'w mut Links,
    pub(super) produced: &'w mut Produced,
    pub(super) client: u32,
    pub(super) route: Route,
}

impl<D: Driver> Io for Port<'_, D> {
    fn connect(&mut self, kind: LinkKind) -> Link {
        let link = self.links.open_slot(self.client, kind);
        if let Err(error) = self.driver.connect(link.split().1, kind, &self.route) {
            self.links.broke(link, error);
        }
        link
    }

    fn send(&mut self, link: Link, bytes: &[u8]) {
        self.links.send(link, bytes, self.driver);
    }

    fn discard(&mut self, link: Link, n: u64) {
        if let Some(state) = self.links.get(link) {
            state.discard_left = state.discard_left.saturating_add(n);
        }
    }

    fn close(&mut self, link: Link) {
        // What the session sent in this turn still leaves, as it would without batches.
        if self.links.get(link).is_some_and(|state| !state.blocked) {
            self.links.flush(link, self.driver);
        }
        self.links.release(link, self.driver);
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

    fn surplus(&mut self, kind: OpKind) {
        let detail = self.produced.detail.take();
        self.produced.surpluses.push(Surplus { kind, detail });
    }
}
