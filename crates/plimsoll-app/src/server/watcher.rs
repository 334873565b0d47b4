//! The one thread that watches all sockets: it accepts, reads, queues complete messages for the
//! service threads, and ends connections whose time is up.
//!
//! Sockets are watched edge-triggered, with one registration for their whole life. A request
//! costs one share of an `epoll_pwait2` and one `readv` here; its reply is sent by the service
//! thread that made it.

use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::wire::inbox::FRAME_BYTES_MAX;
use crate::wire::{Refusal, Welcome};
use rustix::net::sockopt::{
    set_socket_keepalive, set_tcp_keepcnt, set_tcp_keepidle, set_tcp_keepintvl,
};

use super::channel::Channel;
use super::client::Client;
use super::service::{Next, Shared};
use plimsoll_servers::clock::{Deadline, monotonic_ns};
use plimsoll_servers::timed::{Clients, EDGES, EventFlags, Timed};

/// How often deadlines are looked at and idle memory is given back.
const SWEEP_NS: u64 = 250_000_000;
/// Connections beyond the limit that get a refusal; still more are closed without one.
const TURNED_AWAY_MAX: usize = 256;

/// Idle time after which a client gets a keepalive probe.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(60);
/// Interval of the probes, and their number before the connection ends.
const KEEPALIVE_EVERY: Duration = Duration::from_secs(10);
const KEEPALIVE_TRIES: u32 = 3;

/// The thread's state.
pub(super) struct Watcher {
    shared: Arc<Shared>,
    /// What does not fit in a connection's own buffer is received here.
    overflow: Box<[u8]>,
    sweep_ns: u64,
}

impl Watcher {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        Self { shared, overflow: vec![0; FRAME_BYTES_MAX].into(), sweep_ns: 0 }
    }

    /// No more clients are accepted. Those that wait for a service thread are refused, idle ones
    /// are closed, and the others have `wait` until their requests are answered.
    pub(super) fn end(&mut self, mut clients: Vec<Arc<Client>>, wait: Duration) {
        self.shared.is_ending.store(true, Ordering::SeqCst);
        self.shared.refuse_queued();
        let deadline = Deadline::after(wait);
        while !clients.is_empty() {
            clients.retain(|client| {
                // Nobody watches the sockets any more.
                client.hear(false);
                self.is_open(client, monotonic_ns())
            });
            if !deadline.wait_a_step() {
                return;
            }
        }
    }

    /// Looks after one whose socket may have no news.
    fn is_open(&mut self, client: &Arc<Client>, now_ns: u64) -> bool {
        !client.is_late(now_ns, &self.shared.means.metrics) && self.attend(client) != Next::Close
    }

    fn attend(&mut self, client: &Arc<Client>) -> Next {
        self.shared.attend(client, &mut self.overflow)
    }
}

impl Timed for Watcher {
    type Client = Arc<Client>;
    /// All: a refused client gets a reply that says so.
    const CLIENTS_MAX: usize = usize::MAX;

    fn act(&mut self, clients: &mut Clients<Arc<Client>>, now_ns: u64) {
        if now_ns >= self.sweep_ns {
            clients.retain(|client| self.is_open(client, now_ns));
            self.sweep_ns = now_ns + SWEEP_NS;
        }
        self.shared.means.metrics.connections.set(clients.count() as u64);
    }

    fn next_ns(&self) -> Option<u64> {
        None
    }

    fn admit(&mut self, clients: &mut Clients<Arc<Client>>, stream: TcpStream, now_ns: u64) {
        let metrics = &self.shared.means.metrics;
        metrics.accepted.add(1);
        let excess = clients.count().checked_sub(self.shared.connections_max);
        let mut channel = Channel::new(self.shared.transfer_ns_max, now_ns);
        if let Some(excess) = excess {
            metrics.refused.add(1);
            if excess >= TURNED_AWAY_MAX {
                return;
            }
            channel.welcome(&Welcome::refused(Refusal::Full));
        }
        // Errors mean that the client is gone, which shows when its socket is read.
        let _ = set_socket_keepalive(&stream, true)
            .and_then(|()| set_tcp_keepidle(&stream, KEEPALIVE_IDLE))
            .and_then(|()| set_tcp_keepintvl(&stream, KEEPALIVE_EVERY))
            .and_then(|()| set_tcp_keepcnt(&stream, KEEPALIVE_TRIES));
        // What has arrived before makes an event, and so does the room for a refusal.
        clients.add(Arc::new(Client::new(stream.into(), channel)), EDGES);
    }

    fn hear(&mut self, clients: &mut Clients<Arc<Client>>, index: usize, flags: EventFlags) {
        let Some(client) = clients.get_mut(index) else { return };
        client.hear(flags.intersects(EventFlags::RDHUP | EventFlags::HUP | EventFlags::ERR));
        self.resume(clients, index);
    }

    fn resume(&mut self, clients: &mut Clients<Arc<Client>>, index: usize) {
        let Some(client) = clients.get_mut(index) else { return };
        match self.attend(client) {
            Next::Wait | Next::Serve => {}
            Next::Resume => clients.requeue(index),
            Next::Close => drop(clients.remove(index)),
        }
    }
}
