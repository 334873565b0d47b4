//! The connections of one worker, and the [`Io`] a session sees.

use std::fmt;
use std::net::SocketAddr;

use plimsoll_model::outcome::Outcome;

use crate::driver::{Driver, Slot};
use crate::seam::{Io, Link, LinkError, Ticket};

/// State of one connection.
pub(super) struct LinkState {
    generation: u32,
    /// The client whose session owns it.
    pub(super) client: u32,
    pub(super) stage: Stage,
    /// Bytes the socket has not taken yet. Allocated only while there are any.
    unsent: Vec<u8>,
    /// Bytes still to be dropped on arrival.
    pub(super) discard_left: u64,
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
#[derive(Default)]
pub(super) struct Links {
    states: Vec<LinkState>,
    free: Vec<Slot>,
    /// Closed in this round. Reused only in the next: the driver's list of ready connections may
    /// still name the old ones.
    resting: Vec<Slot>,
    /// Broken within a session's own call; reported in the next round.
    pub(super) broken: Vec<(Link, LinkError)>,
    /// Bytes sent since the last [`Links::take_sent`].
    pub(super) bytes_sent: u64,
    /// Connections opened since the start.
    pub(super) connects: u64,
}

impl Links {
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

    /// Sends what waits, as far as the socket takes it.
    pub(super) fn flush<D: Driver>(&mut self, link: Link, driver: &mut D) {
        let slot = link.split().1;
        let Some(state) = self.get(link) else { return };
        if state.stage != Stage::Open || state.unsent.is_empty() {
            return;
        }
        match driver.send(slot, &state.unsent) {
            Ok(sent) if sent == state.unsent.len() => {
                state.unsent = Vec::new();
                self.bytes_sent += sent as u64;
            }
            Ok(sent) => {
                state.unsent.drain(..sent);
                self.bytes_sent += sent as u64;
            }
            Err(error) => {
                state.stage = Stage::Broken;
                self.broken.push((link, error));
            }
        }
    }

    /// Closes and forgets.
    pub(super) fn release<D: Driver>(&mut self, link: Link, driver: &mut D) {
        let slot = link.split().1;
        let Some(state) = self.get(link) else { return };
        state.stage = Stage::Free;
        state.generation = state.generation.wrapping_add(1);
        state.unsent = Vec::new();
        state.discard_left = 0;
        driver.close(slot);
        self.resting.push(slot);
    }

    fn open_slot(&mut self, client: u32) -> Link {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.states.push(LinkState {
                generation: 0,
                client,
                stage: Stage::Free,
                unsent: Vec::new(),
                discard_left: 0,
            });
            (self.states.len() - 1) as Slot
        });
        let state = &mut self.states[slot as usize];
        state.client = client;
        state.stage = Stage::Connecting;
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
    pub(super) completions: Vec<(Ticket, Outcome)>,
    /// Words for the failure that completes next.
    pub(super) detail: Option<String>,
    /// A further error sample would be kept.
    pub(super) wants_detail: bool,
}

/// The [`Io`] of one client during one call of its session.
pub(super) struct Port<'w, D> {
    pub(super) driver: &'w mut D,
    pub(super) links: &'w mut Links,
    pub(super) produced: &'w mut Produced,
    pub(super) client: u32,
    pub(super) endpoint: SocketAddr,
    pub(super) source: Option<SocketAddr>,
}

impl<D: Driver> Io for Port<'_, D> {
    fn connect(&mut self) -> Link {
        let link = self.links.open_slot(self.client);
        if let Err(error) = self.driver.connect(link.split().1, self.endpoint, self.source) {
            if let Some(state) = self.links.get(link) {
                state.stage = Stage::Broken;
            }
            self.links.broken.push((link, error));
        }
        link
    }

    fn send(&mut self, link: Link, bytes: &[u8]) {
        let slot = link.split().1;
        let Some(state) = self.links.get(link) else { return };
        let waits = state.stage == Stage::Connecting || !state.unsent.is_empty();
        match state.stage {
            _ if waits => state.unsent.extend_from_slice(bytes),
            Stage::Open => match self.driver.send(slot, bytes) {
                Ok(sent) => {
                    state.unsent.extend_from_slice(&bytes[sent..]);
                    self.links.bytes_sent += sent as u64;
                }
                Err(error) => {
                    state.stage = Stage::Broken;
                    self.links.broken.push((link, error));
                }
            },
            Stage::Connecting | Stage::Broken | Stage::Free => {}
        }
    }

    fn discard(&mut self, link: Link, n: u64) {
        if let Some(state) = self.links.get(link) {
            state.discard_left = state.discard_left.saturating_add(n);
        }
    }

    fn close(&mut self, link: Link) {
        self.links.release(link, self.driver);
    }

    fn explain(&mut self, detail: fmt::Arguments<'_>) {
        if self.produced.wants_detail {
            self.produced.detail = Some(detail.to_string());
        }
    }

    fn complete(&mut self, ticket: Ticket, outcome: Outcome) {
        self.produced.completions.push((ticket, outcome));
    }
}
