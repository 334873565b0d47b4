//! The connections that are open, each at its place.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use super::exchange::{Connection, Exchange};

/// Connections beyond the limit that are told so; still more are closed without a word.
const TURNED_AWAY_MAX: usize = 256;

/// All connections.
#[derive(Debug)]
pub(super) struct Table {
    connections: Vec<Option<Arc<Connection>>>,
    free: Vec<usize>,
    served_max: usize,
    open: usize,
}

impl Table {
    /// With room for `served_max` connections, and some that are turned away.
    pub(super) const fn new(served_max: usize) -> Self {
        Self { connections: Vec::new(), free: Vec::new(), served_max, open: 0 }
    }

    /// Whether the next one is to be turned away.
    pub(super) const fn is_full(&self) -> bool {
        self.open >= self.served_max
    }

    /// `None`: there are too many even to be told so; the socket is closed.
    pub(super) fn enter(&mut self, socket: OwnedFd, exchange: Exchange) -> Option<Arc<Connection>> {
        if self.open >= self.served_max + TURNED_AWAY_MAX {
            return None;
        }
        let slot = self.free.pop().unwrap_or_else(|| {
            self.connections.push(None);
            self.connections.len() - 1
        });
        let connection = Arc::new(Connection::new(socket, slot, exchange));
        self.connections[slot] = Some(Arc::clone(&connection));
        self.open += 1;
        Some(connection)
    }

    pub(super) fn get(&self, slot: usize) -> Option<Arc<Connection>> {
        self.connections.get(slot).cloned().flatten()
    }

    /// Whether this very connection is open.
    pub(super) fn holds(&self, connection: &Arc<Connection>) -> bool {
        let held = self.connections.get(connection.slot).and_then(Option::as_ref);
        held.is_some_and(|held| Arc::ptr_eq(held, connection))
    }

    pub(super) fn leave(&mut self, slot: usize) {
        if self.connections[slot].take().is_some() {
            self.free.push(slot);
            self.open -= 1;
        }
    }

    /// Places, taken or free.
    pub(super) const fn slots(&self) -> usize {
        self.connections.len()
    }

    pub(super) const fn len(&self) -> usize {
        self.open
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.open == 0
    }
}
