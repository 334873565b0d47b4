//! Connections: those that are open, each at its place, and new ones.

use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::sockopt::{
    set_socket_keepalive, set_tcp_keepcnt, set_tcp_keepidle, set_tcp_keepintvl, set_tcp_nodelay,
};
use rustix::net::{SocketFlags, accept_with};

use super::exchange::{Connection, Exchange, Phase};
use crate::wire::{Refusal, Welcome};

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

/// A client that is silent for so long is asked whether it is still there.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(60);
/// How often it is asked, and how many times before its connection ends.
const KEEPALIVE_EVERY: Duration = Duration::from_secs(10);
const KEEPALIVE_TRIES: u32 = 3;

/// What came of asking for the next connection.
pub(super) enum Accepted {
    Socket(OwnedFd),
    Nobody,
    OutOfDescriptors,
}

/// The next connection that waits.
pub(super) fn accept(listener: &TcpListener) -> Accepted {
    loop {
        match accept_with(listener, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC) {
            Ok(socket) => {
                prepare(&socket);
                return Accepted::Socket(socket);
            }
            Err(Errno::AGAIN) => return Accepted::Nobody,
            Err(Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM) => {
                return Accepted::OutOfDescriptors;
            }
            // A client that left while it waited is not the end of the others.
            Err(_) => {}
        }
    }
}

/// Errors mean that the client is gone, which shows when its socket is read.
fn prepare(socket: &OwnedFd) {
    // Without it the second part of a reply waits for the client's delayed ACK.
    let _ = set_tcp_nodelay(socket, true)
        .and_then(|()| set_socket_keepalive(socket, true))
        .and_then(|()| set_tcp_keepidle(socket, KEEPALIVE_IDLE))
        .and_then(|()| set_tcp_keepintvl(socket, KEEPALIVE_EVERY))
        .and_then(|()| set_tcp_keepcnt(socket, KEEPALIVE_TRIES));
}

/// Makes the refusal the first and last thing that is sent.
pub(super) fn refusal(exchange: &mut Exchange, why: Refusal) {
    exchange.outbox.put_welcome(&Welcome::refused(why));
    exchange.is_last = true;
    exchange.phase = Phase::Replying;
}
