//! An HTTP server whose every delay is imposed and known: it answers at an absolute instant that
//! follows from the request's arrival, and records when it did. A client's measurements can then be
//! compared with the truth.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::event::{EventfdFlags, Timespec, epoll, eventfd};
use rustix::fd::OwnedFd;

use crate::clock::{monotonic_ns, nanoseconds};
use crate::fault_server::RequestBuffer;

/// A sleeping server wakes this long before a completion and spins the rest, because kernel timers
/// are late by tens of microseconds.
const SPIN_NS: u64 = 200_000;
/// Exchanges that are written down; later ones are served all the same.
const LOG_EXCHANGES_MAX: usize = 4_000_000;

/// Gives the instant at which request `index` (from 0, in order of arrival) that arrived at
/// `arrival_ns` is answered. Both instants are on `CLOCK_MONOTONIC`.
pub type CompletionLaw = dyn FnMut(u64, u64) -> u64 + Send;

/// Replies `delay(index)` after arrival, whatever else is in progress.
pub fn after(mut delay: impl FnMut(u64) -> Duration + Send + 'static) -> Box<CompletionLaw> {
    Box::new(move |index, arrival_ns| arrival_ns + nanoseconds(delay(index)))
}

/// One server with a queue: each request takes `service(index)` once its predecessors are done.
pub fn one_at_a_time(
    mut service: impl FnMut(u64) -> Duration + Send + 'static,
) -> Box<CompletionLaw> {
    let mut free_at_ns = 0;
    Box::new(move |index, arrival_ns| {
        free_at_ns = arrival_ns.max(free_at_ns) + nanoseconds(service(index));
        free_at_ns
    })
}

/// A front end that retries: it gives each request to one server with a queue, and once more each
/// time when `timeout` has passed without a reply, `tries` times in all. The server does work that
/// has expired all the same. A request that no try answered in time is answered when the last has
/// expired.
pub fn retrying(service: Duration, timeout: Duration, tries: u64) -> Box<CompletionLaw> {
    let [service_ns, timeout_ns] = [service, timeout].map(nanoseconds);
    let mut free_at_ns = 0;
    // When tries are due that follow an expired one, and how many are left after each.
    let mut retries: BinaryHeap<Reverse<(u64, u64)>> = BinaryHeap::new();
    Box::new(move |_, arrival_ns| {
        while let Some(Reverse((due_ns, left))) = retries.peek().copied()
            && due_ns <= arrival_ns
        {
            retries.pop();
            free_at_ns = due_ns.max(free_at_ns) + service_ns;
            if free_at_ns > due_ns + timeout_ns && left > 0 {
                retries.push(Reverse((due_ns + timeout_ns, left - 1)));
            }
        }
        free_at_ns = arrival_ns.max(free_at_ns) + service_ns;
        if free_at_ns <= arrival_ns + timeout_ns {
            return free_at_ns;
        }
        if tries > 1 {
            retries.push(Reverse((arrival_ns + timeout_ns, tries - 2)));
        }
        arrival_ns + tries * timeout_ns
    })
}

/// How the server waits for requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waiting {
    /// Uses a whole core and stamps arrivals within a few microseconds.
    Spinning,
    /// Sleeps; an arrival is stamped late by the machine's wakeup time.
    Sleeping,
}

/// How a server behaves.
pub struct DelayConfig {
    /// When to answer.
    pub completion: Box<CompletionLaw>,
    /// Length of every body.
    pub body_bytes: usize,
    /// How to wait.
    pub waiting: Waiting,
}

/// One request and its reply, as the server saw them. Instants are on `CLOCK_MONOTONIC`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exchange {
    /// When the request was read.
    pub arrival_ns: u64,
    /// When the reply was due.
    pub planned_ns: u64,
    /// When the reply had been handed to the kernel.
    pub sent_ns: u64,
}

impl Exchange {
    /// The delay that was really imposed.
    pub fn imposed(&self) -> Duration {
        Duration::from_nanos(self.sent_ns - self.arrival_ns)
    }
}

/// A running server; stops when dropped.
pub struct DelayServer {
    address: SocketAddr,
    commands: mpsc::Sender<Command>,
    wake: Arc<OwnedFd>,
    log: Arc<Mutex<Vec<Exchange>>>,
    thread: Option<JoinHandle<()>>,
}

enum Command {
    Freeze(Duration, mpsc::Sender<Range<u64>>),
    Stop,
}

impl DelayServer {
    /// Listens on a free port of 127.0.0.1 and serves.
    pub fn start(config: DelayConfig) -> Self {
        Self::start_on(TcpListener::bind("127.0.0.1:0").unwrap(), config)
    }

    /// Serves on this listener.
    pub fn start_on(listener: TcpListener, config: DelayConfig) -> Self {
        rustix::net::listen(&listener, 4096).unwrap();
        let address = listener.local_addr().unwrap();
        let (commands, received) = mpsc::channel();
        let wake = Arc::new(eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC).unwrap());
        let log = Arc::new(Mutex::new(Vec::new()));
        let mut serving =
            Serving::new(config, listener, received, (Arc::clone(&wake), Arc::clone(&log)));
        let thread = std::thread::spawn(move || serving.run());
        Self { address, commands, wake, log, thread: Some(thread) }
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// `http://ADDRESS:PORT/`.
    pub fn url(&self) -> String {
        format!("http://{}/", self.address)
    }

    /// What has been answered so far, in order of completion.
    pub fn exchanges(&self) -> Vec<Exchange> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Does nothing at all for `duration` from about now, like a process under SIGSTOP. Then sends
    /// its start and end on `CLOCK_MONOTONIC`: on a busy machine it begins late and lasts longer.
    pub fn freeze(&self, duration: Duration) -> mpsc::Receiver<Range<u64>> {
        let (stood_still, receiver) = mpsc::channel();
        self.command(Command::Freeze(duration, stood_still));
        receiver
    }

    fn command(&self, command: Command) {
        // An error means that the thread has panicked, which joining it will show.
        let _ = self.commands.send(command);
        rustix::io::write(&*self.wake, &1u64.to_ne_bytes()).unwrap();
    }
}

impl Drop for DelayServer {
    fn drop(&mut self) {
        self.command(Command::Stop);
        let ended = self.thread.take().unwrap().join();
        if !std::thread::panicking() {
            ended.unwrap();
        }
    }
}

const WAKE: u64 = 0;
const LISTENER: u64 = 1;

struct Serving {
    config: DelayConfig,
    reply: Vec<u8>,
    epoll: OwnedFd,
    listener: TcpListener,
    commands: mpsc::Receiver<Command>,
    wake: Arc<OwnedFd>,
    connections: HashMap<u64, Connection>,
    next_connection: u64,
    next_request: u64,
    /// Planned completion, then order of arrival as a tie-break.
    pending: BinaryHeap<Reverse<Pending>>,
    log: Arc<Mutex<Vec<Exchange>>>,
}

struct Connection {
    stream: TcpStream,
    buffer: RequestBuffer,
    /// Part of replies that the socket would not take yet.
    unsent: Vec<u8>,
    /// To be closed once everything is sent.
    closing: bool,
}

#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Pending {
    planned_ns: u64,
    index: u64,
    arrival_ns: u64,
    connection: u64,
    wants_close: bool,
}

impl Serving {
    fn new(
        config: DelayConfig,
        listener: TcpListener,
        commands: mpsc::Receiver<Command>,
        (wake, log): (Arc<OwnedFd>, Arc<Mutex<Vec<Exchange>>>),
    ) -> Self {
        listener.set_nonblocking(true).unwrap();
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).unwrap();
        let readable = epoll::EventFlags::IN;
        epoll::add(&epoll, &*wake, epoll::EventData::new_u64(WAKE), readable).unwrap();
        epoll::add(&epoll, &listener, epoll::EventData::new_u64(LISTENER), readable).unwrap();
        let mut reply = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", config.body_bytes)
            .into_bytes();
        reply.resize(reply.len() + config.body_bytes, b'x');
        Self {
            config,
            reply,
            epoll,
            listener,
            commands,
            wake,
            connections: HashMap::new(),
            next_connection: LISTENER + 1,
            next_request: 0,
            pending: BinaryHeap::new(),
            log,
        }
    }

    fn run(&mut self) {
        let mut events = Vec::with_capacity(256);
        loop {
            let timeout = self.timeout();
            events.clear();
            let spare = rustix::buffer::spare_capacity(&mut events);
            match epoll::wait(&self.epoll, spare, timeout.as_ref()) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => panic!("epoll_wait: {error}"),
            }
            let now_ns = monotonic_ns();
            for event in &events {
                match event.data.u64() {
                    WAKE if self.obey() => return,
                    WAKE => {}
                    LISTENER => self.accept(),
                    connection => self.progress(connection, now_ns),
                }
            }
            self.depart();
        }
    }

    fn timeout(&self) -> Option<Timespec> {
        let wait_ns = match (self.config.waiting, self.pending.peek()) {
            (Waiting::Spinning, _) => 0,
            (Waiting::Sleeping, None) => return None,
            (Waiting::Sleeping, Some(Reverse(next))) => {
                next.planned_ns.saturating_sub(monotonic_ns()).saturating_sub(SPIN_NS)
            }
        };
        Some(Timespec::try_from(Duration::from_nanos(wait_ns)).unwrap())
    }

    /// True when the server is to stop.
    fn obey(&mut self) -> bool {
        let _ = rustix::io::read(&*self.wake, &mut [0; 8]);
        while let Ok(command) = self.commands.try_recv() {
            match command {
                Command::Freeze(duration, stood_still) => {
                    let from_ns = monotonic_ns();
                    std::thread::sleep(duration);
                    // An error means that nobody listens.
                    let _ = stood_still.send(from_ns..monotonic_ns());
                }
                Command::Stop => return true,
            }
        }
        false
    }

    fn accept(&mut self) {
        while let Ok((stream, _)) = self.listener.accept() {
            stream.set_nonblocking(true).unwrap();
            stream.set_nodelay(true).unwrap();
            let id = self.next_connection;
            self.next_connection += 1;
            let interest = epoll::EventFlags::IN | epoll::EventFlags::OUT | epoll::EventFlags::ET;
            epoll::add(&self.epoll, &stream, epoll::EventData::new_u64(id), interest).unwrap();
            let buffer = RequestBuffer::default();
            let connection = Connection { stream, buffer, unsent: Vec::new(), closing: false };
            self.connections.insert(id, connection);
        }
    }

    /// The socket can be read, or written again.
    fn progress(&mut self, id: u64, now_ns: u64) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        let open = connection.flush().is_ok() && connection.receive();
        while let Some(head) = connection.buffer.next() {
            let index = self.next_request;
            self.next_request += 1;
            self.pending.push(Reverse(Pending {
                planned_ns: (self.config.completion)(index, now_ns),
                index,
                arrival_ns: now_ns,
                connection: id,
                wants_close: head.wants_close,
            }));
        }
        if !open || connection.is_done() {
            self.connections.remove(&id);
        }
    }

    fn depart(&mut self) {
        while let Some(Reverse(next)) = self.pending.peek() {
            if next.planned_ns > monotonic_ns() {
                return;
            }
            let Some(Reverse(due)) = self.pending.pop() else { return };
            // The client may have left meanwhile.
            let Some(connection) = self.connections.get_mut(&due.connection) else { continue };
            connection.unsent.extend_from_slice(&self.reply);
            connection.closing = due.wants_close;
            // Locked while sending: a reply that has arrived is in the log.
            let mut log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
            let sent = connection.flush();
            let is_finished = sent.is_err() || connection.is_done();
            let sent_ns = monotonic_ns();
            if log.len() < LOG_EXCHANGES_MAX {
                let Pending { arrival_ns, planned_ns, .. } = due;
                log.push(Exchange { arrival_ns, planned_ns, sent_ns });
            }
            drop(log);
            if is_finished {
                self.connections.remove(&due.connection);
            }
        }
    }
}

impl Connection {
    fn is_done(&self) -> bool {
        self.closing && self.unsent.is_empty()
    }

    /// False once the client has closed.
    fn receive(&mut self) -> bool {
        let mut bytes = [0; 16 * 1024];
        loop {
            match self.stream.read(&mut bytes) {
                Ok(0) => return false,
                Ok(read) => self.buffer.add(&bytes[..read]),
                Err(error) => return error.kind() == ErrorKind::WouldBlock,
            }
        }
    }

    fn flush(&mut self) -> std::io::Result<()> {
        while !self.unsent.is_empty() {
            match self.stream.write(&self.unsent) {
                Ok(sent) => drop(self.unsent.drain(..sent)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}
