//! Datagrams, in one thread.

use std::collections::HashMap;
use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::sockopt;

use super::{Direction, lock};
use crate::clock::monotonic_ns;

/// How often the thread checks for a stop.
const LOOK_AGAIN: Timespec = Timespec { tv_sec: 0, tv_nsec: 5_000_000 };
/// While a datagram is held back.
const LOOK_SOON: Timespec = Timespec { tv_sec: 0, tv_nsec: 500_000 };
/// A datagram that nothing overtakes is passed on after this.
const HOLD_NS: u64 = 3_000_000;
/// The proxy itself must not lose what it does not count.
const BUFFER_BYTES: usize = 8 << 20;
const DATAGRAM_BYTES_MAX: usize = 64 << 10;

/// What happens to a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It goes on.
    Pass,
    /// It is gone.
    Lose,
    /// It goes on twice.
    Duplicate,
    /// The next one of the same client and direction goes first.
    HoldBack,
}

/// Decides, and may change the datagram.
pub type Decide = dyn FnMut(Direction, &mut Vec<u8>) -> Fate + Send;

/// What happened in one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Datagrams that came.
    pub received: u64,
    /// Those that were dropped.
    pub lost: u64,
    /// Those that were passed on twice.
    pub duplicated: u64,
    /// Those that were overtaken by a later one.
    pub reordered: u64,
}

/// What happened in both directions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BothCounts {
    /// Calls, for RPC.
    pub to_server: Counts,
    /// Replies, for RPC.
    pub to_client: Counts,
}

impl BothCounts {
    fn direction_mut(&mut self, direction: Direction) -> &mut Counts {
        match direction {
            Direction::ToServer => &mut self.to_server,
            Direction::ToClient => &mut self.to_client,
        }
    }
}

/// A socket whose datagrams are relayed. Stops when dropped.
pub struct UdpRelay {
    address: SocketAddr,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    server: Mutex<SocketAddr>,
    counts: Mutex<BothCounts>,
    /// Everything is lost.
    down: AtomicBool,
    stop: AtomicBool,
}

impl UdpRelay {
    /// Takes datagrams on a free port of 127.0.0.1 for `server`.
    pub fn start(server: SocketAddr, decide: Box<Decide>) -> Self {
        let front = socket();
        let address = front.local_addr().unwrap();
        let shared = Arc::new(Shared {
            server: Mutex::new(server),
            counts: Mutex::default(),
            down: AtomicBool::new(false),
            stop: AtomicBool::new(false),
        });
        let mut passing = Passing {
            front,
            flows: HashMap::new(),
            server,
            decide,
            shared: Arc::clone(&shared),
            buffer: vec![0; DATAGRAM_BYTES_MAX],
        };
        let thread = Some(std::thread::spawn(move || passing.run()));
        Self { address, shared, thread }
    }

    /// Where clients send to.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What happened so far.
    pub fn counts(&self) -> BothCounts {
        *lock(&self.shared.counts)
    }

    /// Loses everything from now on.
    pub fn go_down(&self) {
        self.shared.down.store(true, Ordering::SeqCst);
    }

    /// Passes datagrams on again.
    pub fn come_back(&self) {
        self.shared.down.store(false, Ordering::SeqCst);
    }

    /// Passes datagrams on again, to the server that is at `server` now.
    pub fn come_back_at(&self, server: SocketAddr) {
        *lock(&self.shared.server) = server;
        self.come_back();
    }
}

impl Drop for UdpRelay {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::SeqCst);
        let ended = self.thread.take().unwrap().join();
        if !std::thread::panicking() {
            ended.unwrap();
        }
    }
}

fn socket() -> UdpSocket {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_nonblocking(true).unwrap();
    // Only root may go beyond the system's limit; what it grants is enough for everybody else.
    if sockopt::set_socket_recv_buffer_size_force(&socket, BUFFER_BYTES).is_err() {
        let _ = sockopt::set_socket_recv_buffer_size(&socket, BUFFER_BYTES);
    }
    socket
}

struct Passing {
    front: UdpSocket,
    flows: HashMap<SocketAddr, Flow>,
    /// Where the flows' sockets are connected to.
    server: SocketAddr,
    decide: Box<Decide>,
    shared: Arc<Shared>,
    buffer: Vec<u8>,
}

/// One client.
struct Flow {
    upstream: UdpSocket,
    delayed_to_server: Option<DelayedDatagram>,
    delayed_to_client: Option<DelayedDatagram>,
}

struct DelayedDatagram {
    datagram: Vec<u8>,
    until_ns: u64,
}

impl Flow {
    fn to(server: SocketAddr) -> Self {
        let upstream = socket();
        upstream.connect(server).unwrap();
        Self { upstream, delayed_to_server: None, delayed_to_client: None }
    }

    fn delayed_mut(&mut self, direction: Direction) -> &mut Option<DelayedDatagram> {
        match direction {
            Direction::ToServer => &mut self.delayed_to_server,
            Direction::ToClient => &mut self.delayed_to_client,
        }
    }

    fn holds(&self) -> bool {
        self.delayed_to_server.is_some() || self.delayed_to_client.is_some()
    }
}

impl Passing {
    fn run(&mut self) {
        while !self.shared.stop.load(Ordering::SeqCst) {
            self.wait();
            while let Ok((bytes, client)) = self.front.recv_from(&mut self.buffer) {
                // For each: what comes after an order to change the server goes to the new one.
                self.follow_the_server();
                self.flows.entry(client).or_insert_with(|| Flow::to(self.server));
                self.pass(Direction::ToServer, client, bytes);
            }
            let clients: Vec<SocketAddr> = self.flows.keys().copied().collect();
            for client in clients {
                // A refusal by the server's host comes as an error, like any silence.
                while let Ok(bytes) = self.flows[&client].upstream.recv(&mut self.buffer) {
                    self.pass(Direction::ToClient, client, bytes);
                }
                self.release_the_overdue(client);
            }
        }
    }

    fn wait(&self) {
        let mut watched = vec![PollFd::new(&self.front, PollFlags::IN)];
        watched.extend(self.flows.values().map(|f| PollFd::new(&f.upstream, PollFlags::IN)));
        let holding = self.flows.values().any(Flow::holds);
        let _ = poll(&mut watched, Some(if holding { &LOOK_SOON } else { &LOOK_AGAIN }));
    }

    fn follow_the_server(&mut self) {
        let server = *lock(&self.shared.server);
        if server != self.server {
            self.server = server;
            for flow in self.flows.values() {
                flow.upstream.connect(server).unwrap();
            }
        }
    }

    /// Of the datagram in the first `bytes` of the buffer.
    fn pass(&mut self, direction: Direction, client: SocketAddr, bytes: usize) {
        let mut datagram = self.buffer[..bytes].to_vec();
        let fate = match self.shared.down.load(Ordering::SeqCst) {
            true => Fate::Lose,
            false => (self.decide)(direction, &mut datagram),
        };
        let Some(flow) = self.flows.get_mut(&client) else { return };
        let delayed = flow.delayed_mut(direction).take();
        // One at a time: a second one would be overtaken by the first.
        let fate = if delayed.is_some() && fate == Fate::HoldBack { Fate::Pass } else { fate };
        let shared = Arc::clone(&self.shared);
        let mut counts = lock(&shared.counts);
        let counts = counts.direction_mut(direction);
        counts.received += 1;
        let times = match fate {
            Fate::Pass => 1,
            Fate::Duplicate => 2,
            Fate::Lose | Fate::HoldBack => 0,
        };
        for _ in 0..times {
            self.send(direction, client, &datagram);
        }
        counts.lost += u64::from(fate == Fate::Lose);
        counts.duplicated += u64::from(fate == Fate::Duplicate);
        match delayed {
            Some(delayed) if times > 0 => {
                counts.reordered += 1;
                self.send(direction, client, &delayed.datagram);
            }
            // Nothing went past it.
            Some(delayed) => self.hold(direction, client, delayed),
            None if fate == Fate::HoldBack => {
                let until_ns = monotonic_ns() + HOLD_NS;
                self.hold(direction, client, DelayedDatagram { datagram, until_ns });
            }
            None => {}
        }
    }

    fn hold(&mut self, direction: Direction, client: SocketAddr, delayed: DelayedDatagram) {
        if let Some(flow) = self.flows.get_mut(&client) {
            *flow.delayed_mut(direction) = Some(delayed);
        }
    }

    fn release_the_overdue(&mut self, client: SocketAddr) {
        for direction in [Direction::ToServer, Direction::ToClient] {
            let Some(flow) = self.flows.get_mut(&client) else { return };
            let overdue =
                flow.delayed_mut(direction).take_if(|delayed| delayed.until_ns <= monotonic_ns());
            if let Some(delayed) = overdue {
                self.send(direction, client, &delayed.datagram);
            }
        }
    }

    /// An error counts as a lost datagram, as in any network; mostly the client is gone.
    fn send(&self, direction: Direction, client: SocketAddr, datagram: &[u8]) {
        let _ = match direction {
            Direction::ToServer => self.flows[&client].upstream.send(datagram),
            Direction::ToClient => self.front.send_to(datagram, client),
        };
    }
}
