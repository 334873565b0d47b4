//! The calibrated server at work: what it does with its clients and their requests.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::Write as _;
use std::net::TcpStream;

use crate::wire::{Refusal, ReplyHeader, RequestType, Status, Welcome};
use plimsoll_model::calibrated::CalibratedSpec;

use super::connection::{Connection, FRAME_BYTES_MAX, Wanted};
use plimsoll_servers::clock::monotonic_ns;
use plimsoll_servers::log::{Log, Row};
use plimsoll_servers::station::{Passage, Station};
use plimsoll_servers::timed::{Clients, EventFlags, Timed};

/// Connections at a time; the next one is refused.
const CONNECTIONS_MAX: usize = 8_192;
/// How often to see who keeps us waiting.
const SWEEP_NS: u64 = 1_000_000_000;

/// A server at work.
pub(super) struct Serving {
    station: Station,
    servers: u32,
    /// Replies by the instant they leave.
    due: BinaryHeap<Reverse<Due>>,
    log: Option<Log>,
    room: Vec<u8>,
    /// Clients so far; each has its number, so that a reply cannot reach the next one at its place.
    admitted: u64,
    served: u64,
    sweep_ns: u64,
}

/// A reply that waits for its instant. The first field decides the order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Due {
    departure_ns: u64,
    number: u64,
    place: usize,
    /// Its number.
    client: u64,
    arrival_ns: u64,
    id: u32,
    checksum: u32,
    payload_bytes: u32,
    seed: u32,
}

impl Serving {
    pub(super) fn new(spec: &CalibratedSpec, log: Option<Log>) -> Self {
        Self {
            station: Station::new(spec),
            servers: spec.servers,
            due: BinaryHeap::new(),
            log,
            room: vec![0; FRAME_BYTES_MAX],
            admitted: 0,
            served: 0,
            sweep_ns: 0,
        }
    }

    /// What is left when it is over: the log, and from and until when nothing was served.
    pub(super) fn ended(self) -> (Option<Log>, Option<(u64, u64)>) {
        (self.log, self.station.stall())
    }

    /// Sends every reply whose instant has come.
    fn depart(&mut self, clients: &mut Clients<Connection>, now_ns: u64) {
        let mut now_ns = now_ns;
        while let Some(Reverse(due)) = self.due.peek().copied() {
            if due.departure_ns > now_ns {
                return;
            }
            self.due.pop();
            let connection = clients.at(due.place).filter(|client| client.number == due.client);
            let Some(connection) = connection else { continue };
            let sent = connection.reply(due.header(), now_ns);
            now_ns = monotonic_ns();
            if sent.is_err() {
                clients.remove(due.place);
                continue;
            }
            self.served += 1;
            let Due { arrival_ns, departure_ns, seed, .. } = due;
            if let Some(log) = &mut self.log {
                log.add(Row { arrival_ns, departure_ns, sent_ns: now_ns, key: Some(seed) });
            }
            self.turn(clients, due.place);
        }
    }

    /// Sends the figures, and sees to what else the connection has sent when the others had their
    /// turn.
    fn tell(&self, clients: &mut Clients<Connection>, place: usize, asked: (u32, u32)) {
        let Some(connection) = clients.at(place) else { return };
        match connection.send_figures(asked, &self.figures(), monotonic_ns()) {
            Ok(()) => clients.queue_turn(place),
            Err(_) => drop(clients.remove(place)),
        }
    }

    /// The last byte has been read: this is the arrival.
    fn serve(&mut self, (place, client): (usize, u64), reply: ReplyHeader, seed: u32) {
        let Passage { arrival_ns, departure_ns } = self.station.arrive(monotonic_ns());
        self.due.push(Reverse(Due {
            departure_ns,
            number: self.served + self.due.len() as u64,
            place,
            client,
            arrival_ns,
            id: reply.id,
            checksum: reply.checksum,
            payload_bytes: reply.payload_bytes,
            seed,
        }));
    }

    /// As Prometheus reads it.
    fn figures(&self) -> String {
        let inside = self.due.len() as u64;
        let busy = inside.min(u64::from(self.servers));
        let gauge = |name: &str, help: &str, value: u64| {
            format!("# HELP {name} {help}\n# TYPE {name} gauge\n{name} {value}\n")
        };
        [
            gauge("plimsoll_app_threads", "Service threads.", u64::from(self.servers)),
            gauge("plimsoll_app_threads_busy", "Service threads at work.", busy),
            gauge("plimsoll_app_queue_length", "Requests that wait for one.", inside - busy),
        ]
        .concat()
    }
}

impl Timed for Serving {
    type Client = Connection;
    /// All: a refused one is told so.
    const CLIENTS_MAX: usize = usize::MAX;

    fn act(&mut self, clients: &mut Clients<Connection>, now_ns: u64) {
        if now_ns >= self.sweep_ns {
            clients.remove_all(|connection| connection.is_stale(now_ns));
            self.sweep_ns = now_ns + SWEEP_NS;
        }
        self.depart(clients, now_ns);
    }

    fn next_ns(&self) -> Option<u64> {
        self.due.peek().map(|Reverse(due)| due.departure_ns)
    }

    fn admit(&mut self, clients: &mut Clients<Connection>, stream: TcpStream, now_ns: u64) {
        if clients.count() >= CONNECTIONS_MAX {
            // As much as the socket takes; a refused client learns nothing else.
            let _ = (&stream).write(&Welcome::refused(Refusal::Full).encode());
            return;
        }
        self.admitted += 1;
        let connection = Connection::new(stream, (self.admitted, self.servers), now_ns);
        let flags = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
        clients.add(connection, flags);
    }

    fn hear(&mut self, clients: &mut Clients<Connection>, place: usize, flags: EventFlags) {
        let Some(connection) = clients.at(place) else { return };
        let mut is_over = flags.intersects(EventFlags::ERR | EventFlags::HUP);
        if flags.contains(EventFlags::IN) {
            connection.set_readable();
        }
        if flags.contains(EventFlags::RDHUP) {
            connection.set_sends_no_more();
        }
        if flags.contains(EventFlags::OUT) && !is_over {
            is_over = connection.flush(monotonic_ns()).is_err();
        }
        match is_over {
            true => drop(clients.remove(place)),
            false => self.turn(clients, place),
        }
    }

    /// Takes what the connection has sent, up to one request.
    fn turn(&mut self, clients: &mut Clients<Connection>, place: usize) {
        let Some(connection) = clients.at(place) else { return };
        let client = connection.number;
        match connection.advance(&mut self.room, monotonic_ns()) {
            Err(_) => drop(clients.remove(place)),
            Ok(Wanted::Nothing) => {}
            Ok(Wanted::Service { reply, seed }) => self.serve((place, client), reply, seed),
            Ok(Wanted::Figures { id, seed }) => self.tell(clients, place, (id, seed)),
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
            server_ns: self.departure_ns - self.arrival_ns,
        }
    }
}
