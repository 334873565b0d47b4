//! The calibrated server: answers after times drawn from a known law, as a queue with a known
//! number of servers would, so that an instrument can be checked against it. It does no work.
//!
//! One thread. The last byte of a request is its arrival; [`plimsoll_servers::queue`] computes its
//! completion in virtual time, and the reply leaves at that instant. A thread that slept through
//! each service would oversleep, and 50 µs at 90 % utilisation turn a mean of 3 ms into one of 5.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::Write as _;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::PathBuf;

use plimsoll_model::calibrated::CalibratedSpec;
use plimsoll_servers::clock::monotonic_ns;
use plimsoll_servers::log::{Log, ROWS_MAX, Row};
use plimsoll_servers::queue::{Passage, ServiceQueue};
use plimsoll_servers::timed::{self, Clients, EDGES, EventFlags, Timed};
use plimsoll_servers::{ServerError, Stop};

use super::channel::{Channel, Step};
use super::metrics::Text;
use super::{CONNECTIONS_MAX, REQUEST_TIMEOUT, whole_ns};
use crate::wire::inbox::{Arrived, FRAME_BYTES_MAX};
use crate::wire::{
    Hello, Refusal, ReplyHeader, RequestHeader, RequestType, Status, VERSION, Welcome, checksum,
};

/// How often to check for stale clients.
const SWEEP_NS: u64 = 1_000_000_000;

/// What to be, and where.
#[derive(Clone, Debug)]
pub struct CalibratedConfig {
    /// Address to listen on; port 0 takes a free one.
    pub listen: SocketAddr,
    /// The queue to be.
    pub spec: CalibratedSpec,
    /// Where to write what happened to each request, at the end; the file is replaced.
    pub log: Option<PathBuf>,
    /// Cores for itself, on which it looks without sleeping; empty: anywhere, asleep until shortly
    /// before a reply is due.
    pub cores: Vec<u32>,
}

/// A calibrated server that listens and does not serve yet.
pub struct CalibratedServer {
    listener: TcpListener,
    address: SocketAddr,
    config: CalibratedConfig,
}

impl CalibratedServer {
    /// Listens. Opens the log now, so that an unwritable one fails early.
    pub fn bind(config: &CalibratedConfig) -> Result<Self, ServerError> {
        let (listener, address) = timed::bind(config.listen, config.log.as_deref())?;
        // Made now, so that no reply waits for it.
        let _ = crate::wire::work_block();
        Ok(Self { listener, address, config: config.clone() })
    }

    /// Where it listens, with the port the system chose.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// `app://ADDRESS:PORT/`.
    pub fn url(&self) -> String {
        format!("app://{}/", self.address)
    }

    /// Serves on the calling thread until `stop` is requested; what is in progress then is dropped.
    /// Writes the log.
    pub fn serve_until(self, stop: &Stop) -> Result<(), ServerError> {
        let Self { listener, config, .. } = self;
        let CalibratedConfig { spec, log, cores, .. } = config;
        let clients = Clients::new(listener, &cores)?;
        let mut serving = Serving {
            queue: ServiceQueue::new(&spec),
            servers: spec.servers,
            due: BinaryHeap::new(),
            log: log.as_ref().map(|_| Log::new(ROWS_MAX)),
            buffer: vec![0; FRAME_BYTES_MAX],
            admitted: 0,
            served: 0,
            sweep_ns: 0,
        };
        clients.serve(&mut serving, stop)?;
        if let (Some(path), Some(kept)) = (log, serving.log) {
            kept.write(&path, &spec, serving.queue.stall())
                .map_err(|source| ServerError::Log { path, source })?;
        }
        Ok(())
    }
}

/// A server at work.
struct Serving {
    queue: ServiceQueue,
    servers: u32,
    /// Replies by the instant they leave.
    due: BinaryHeap<Reverse<Due>>,
    log: Option<Log>,
    buffer: Vec<u8>,
    /// Clients so far; each has its number, so that a reply cannot reach the next client in its
    /// slot.
    admitted: u64,
    served: u64,
    sweep_ns: u64,
}

struct Client {
    number: u64,
    stream: TcpStream,
    channel: Channel,
}

/// A reply that waits for its instant. The first field decides the order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Due {
    completion_ns: u64,
    number: u64,
    index: usize,
    /// Its number.
    client: u64,
    arrival_ns: u64,
    id: u32,
    checksum: u32,
    payload_bytes: u32,
    seed: u32,
}

impl AsFd for Client {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

impl Serving {
    /// Sends every reply that is due.
    fn depart(&mut self, clients: &mut Clients<Client>, mut now_ns: u64) {
        while let Some(Reverse(due)) = self.due.peek().copied() {
            if due.completion_ns > now_ns {
                return;
            }
            self.due.pop();
            let client = clients.get_mut(due.index).filter(|client| client.number == due.client);
            let Some(client) = client else { continue };
            client.channel.reply(&due.header());
            client.channel.send(&client.stream);
            now_ns = monotonic_ns();
            if !client.channel.has_ended() {
                self.served += 1;
                let Due { arrival_ns, completion_ns, seed, .. } = due;
                if let Some(log) = &mut self.log {
                    log.add(Row { arrival_ns, completion_ns, sent_ns: now_ns, key: Some(seed) });
                }
            }
            self.resume(clients, due.index);
        }
    }

    /// The last byte has been read: this is the arrival.
    fn serve(&mut self, index: usize, client: u64, request: &RequestHeader, checksum: u32) {
        let Passage { arrival_ns, completion_ns } = self.queue.arrive(monotonic_ns());
        self.due.push(Reverse(Due {
            completion_ns,
            number: self.served + self.due.len() as u64,
            index,
            client,
            arrival_ns,
            id: request.id,
            checksum,
            payload_bytes: request.size,
            seed: request.seed,
        }));
    }

    fn welcome(&self, hello: &Hello) -> Welcome {
        if hello.version != VERSION {
            return Welcome::refused(Refusal::Version);
        }
        Welcome {
            version: VERSION,
            refusal: None,
            service_threads: self.servers,
            durable: false,
            calibrated: true,
            segment_bytes: 0,
            memory_bytes: 0,
        }
    }

    /// As Prometheus reads it.
    fn figures(&self) -> String {
        let inside = self.due.len() as u64;
        let busy = inside.min(u64::from(self.servers));
        let mut text = Text::default();
        text.gauge("threads", "Service threads.", u64::from(self.servers));
        text.gauge("threads_busy", "Service threads at work.", busy);
        text.gauge("queue_length", "Requests that wait for one.", inside - busy);
        text.0
    }
}

impl Timed for Serving {
    type Client = Client;
    /// All: a refused client gets a reply that says so.
    const CLIENTS_MAX: usize = usize::MAX;

    fn act(&mut self, clients: &mut Clients<Client>, now_ns: u64) {
        if now_ns >= self.sweep_ns {
            clients.retain(|client| !client.channel.is_late(now_ns));
            self.sweep_ns = now_ns + SWEEP_NS;
        }
        self.depart(clients, now_ns);
    }

    fn next_ns(&self) -> Option<u64> {
        self.due.peek().map(|Reverse(due)| due.completion_ns)
    }

    fn admit(&mut self, clients: &mut Clients<Client>, stream: TcpStream, now_ns: u64) {
        if clients.count() >= CONNECTIONS_MAX as usize {
            // As much as the socket takes; a refused client gets nothing else.
            let _ = (&stream).write(&Welcome::refused(Refusal::Full).encode());
            return;
        }
        self.admitted += 1;
        let channel = Channel::new(whole_ns(REQUEST_TIMEOUT), now_ns);
        clients.add(Client { number: self.admitted, stream, channel }, EDGES);
    }

    fn hear(&mut self, clients: &mut Clients<Client>, index: usize, flags: EventFlags) {
        let Some(client) = clients.get_mut(index) else { return };
        let ends = EventFlags::RDHUP | EventFlags::HUP | EventFlags::ERR;
        client.channel.hear(flags.intersects(ends));
        self.resume(clients, index);
    }

    /// Takes what the client has sent, up to one request.
    fn resume(&mut self, clients: &mut Clients<Client>, index: usize) {
        loop {
            let Some(client) = clients.get_mut(index) else { return };
            let Client { number, stream, channel } = client;
            match channel.advance(&*stream, &mut self.buffer) {
                Step::Wait => return,
                Step::Closed => return drop(clients.remove(index)),
                Step::Malformed(_) => {}
                Step::Arrived(Arrived::Hello(hello)) => channel.welcome(&self.welcome(&hello)),
                Step::Arrived(Arrived::Request(request)) => match request.kind {
                    RequestType::ClientServer => {
                        let sum = checksum(request.seed, channel.payload());
                        let number = *number;
                        return self.serve(index, number, &request, sum);
                    }
                    RequestType::Status => {
                        channel.reply_with_text(&request, self.figures());
                        channel.send(&*stream);
                        // What else it has sent comes after the others were served.
                        return clients.requeue(index);
                    }
                    other => channel.refuse(other as u8, request.id, Status::BadRequest),
                },
            }
        }
    }
}

impl Due {
    fn header(&self) -> ReplyHeader {
        ReplyHeader {
            payload_bytes: self.payload_bytes,
            kind: RequestType::ClientServer as u8,
            status: Status::Ok,
            id: self.id,
            checksum: self.checksum,
            server_ns: self.completion_ns - self.arrival_ns,
        }
    }
}
