//! The loop of the calibrated server.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::io::{self, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::fd::OwnedFd;

use crate::wire::{Refusal, ReplyHeader, RequestType, Status, Welcome};
use plimsoll_model::calibrated::CalibratedSpec;
use rustix::event::{Timespec, epoll};

use super::connection::{Connection, FRAME_BYTES_MAX, Wanted};
use plimsoll_servers::Stop;
use plimsoll_servers::clock::monotonic_ns;
use plimsoll_servers::log::{Log, Row};
use plimsoll_servers::station::{Passage, Station};

/// Connections at a time; the next one is refused.
const CONNECTIONS_MAX: usize = 8_192;
/// Connections one look reports; more wait for the next.
const EVENTS_PER_LOOK: usize = 256;
/// Key of the listening socket among the events; no connection has that place.
const LISTENER: u64 = u64::MAX;
/// How often to see whether to stop, however busy.
const LOOK_UP_NS: u64 = 10_000_000;
/// How often to see who keeps us waiting.
const SWEEP_NS: u64 = 1_000_000_000;
/// Without anything happening for this long, sleep all the same.
const IDLE_NS: u64 = 1_000_000_000;
/// Before a departure this much is waited through awake: a sleeper wakes up to 100 µs late.
const AWAKE_NS: u64 = 150_000;
/// How long to leave accepting alone when the process is out of descriptors.
const ACCEPT_PAUSE_NS: u64 = 10_000_000;

/// How to wait for the next departure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Waiting {
    /// Awake, on a core of its own.
    Spin,
    /// Asleep, until shortly before.
    Sleep,
}

/// What is left when it is over.
pub(super) struct Ended {
    pub(super) log: Option<Log>,
    pub(super) stall: Option<(u64, u64)>,
}

/// A server at work.
pub(super) struct Serving {
    epoll: OwnedFd,
    listener: TcpListener,
    waiting: Waiting,
    station: Station,
    servers: u32,
    places: Vec<Place>,
    vacant: Vec<usize>,
    /// Replies by the instant they leave.
    due: BinaryHeap<Reverse<Due>>,
    /// Places that have been answered once and may want more. One has its turn between two looks
    /// at the departures: nobody's requests may keep this thread.
    again: VecDeque<usize>,
    log: Option<Log>,
    room: Vec<u8>,
    busy_ns: u64,
    accept_again_ns: u64,
    served: u64,
}

/// Where a connection is kept.
#[derive(Default)]
struct Place {
    connection: Option<Connection>,
    /// Counts who has been here, so that a reply cannot reach the next one.
    tenant: u64,
    /// It is among those that have another turn.
    is_queued: bool,
}

/// A reply that waits for its instant. The first field decides the order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Due {
    departure_ns: u64,
    number: u64,
    place: usize,
    tenant: u64,
    arrival_ns: u64,
    id: u32,
    checksum: u32,
    payload_bytes: u32,
    seed: u32,
}

impl Serving {
    pub(super) fn new(
        listener: TcpListener,
        spec: &CalibratedSpec,
        waiting: Waiting,
        log: Option<Log>,
    ) -> io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        // Level-triggered: what is not accepted now is reported again.
        let data = epoll::EventData::new_u64(LISTENER);
        epoll::add(&epoll, &listener, data, epoll::EventFlags::IN)?;
        let one_ns = std::num::NonZeroU64::MIN;
        rustix::thread::set_current_timer_slack(Some(one_ns))?;
        Ok(Self {
            epoll,
            listener,
            waiting,
            station: Station::new(spec),
            servers: spec.servers,
            places: Vec::new(),
            vacant: Vec::new(),
            due: BinaryHeap::new(),
            again: VecDeque::new(),
            log,
            room: vec![0; FRAME_BYTES_MAX],
            busy_ns: 0,
            accept_again_ns: 0,
            served: 0,
        })
    }

    /// Serves until asked to stop.
    pub(super) fn until(mut self, stop: &Stop) -> Ended {
        let mut events = Vec::with_capacity(EVENTS_PER_LOOK);
        let (mut look_up_ns, mut sweep_ns) = (0, 0);
        loop {
            let now_ns = monotonic_ns();
            if now_ns >= look_up_ns {
                if stop.is_requested() {
                    break;
                }
                look_up_ns = now_ns + LOOK_UP_NS;
            }
            if now_ns >= sweep_ns {
                self.sweep(now_ns);
                sweep_ns = now_ns + SWEEP_NS;
            }
            self.depart(now_ns);
            self.look(&mut events, look_up_ns);
            if let Some(place) = self.again.pop_front() {
                self.places[place].is_queued = false;
                self.advance(place);
            }
        }
        Ended { log: self.log, stall: self.station.stall() }
    }

    /// Sends every reply whose instant has come.
    fn depart(&mut self, now_ns: u64) {
        let mut now_ns = now_ns;
        while let Some(Reverse(due)) = self.due.peek().copied() {
            if due.departure_ns > now_ns {
                return;
            }
            self.due.pop();
            let Some(connection) = self.tenant(due.place, due.tenant) else { continue };
            let header = due.header();
            let sent = connection.reply(header, now_ns);
            now_ns = monotonic_ns();
            if sent.is_err() {
                self.remove(due.place);
                continue;
            }
            self.served += 1;
            let Due { arrival_ns, departure_ns, seed, .. } = due;
            if let Some(log) = &mut self.log {
                log.add(Row { arrival_ns, departure_ns, sent_ns: now_ns, key: Some(seed) });
            }
            self.advance(due.place);
        }
    }

    /// Waits for bytes, no longer than until the next departure, and takes them.
    fn look(&mut self, events: &mut Vec<epoll::Event>, look_up_ns: u64) {
        let now_ns = monotonic_ns();
        let timeout = timespec(self.wait_ns(now_ns, look_up_ns));
        events.clear();
        // EINTR is as good as nothing ready.
        if epoll::wait(&self.epoll, rustix::buffer::spare_capacity(events), Some(&timeout)).is_err()
        {
            return;
        }
        for event in events.drain(..) {
            self.busy_ns = now_ns;
            match event.data.u64() {
                LISTENER => self.accept(now_ns),
                place => self.hear(place as usize, event.flags),
            }
        }
    }

    /// How long nothing needs to be done.
    fn wait_ns(&self, now_ns: u64, look_up_ns: u64) -> u64 {
        let idle = self.due.is_empty() && now_ns.saturating_sub(self.busy_ns) > IDLE_NS;
        if !self.again.is_empty() || self.waiting == Waiting::Spin && !idle {
            return 0;
        }
        let next_ns = self.due.peek().map_or(u64::MAX, |Reverse(due)| due.departure_ns);
        next_ns.saturating_sub(AWAKE_NS).min(look_up_ns).saturating_sub(now_ns)
    }

    fn hear(&mut self, place: usize, flags: epoll::EventFlags) {
        let Some(connection) = self.places.get_mut(place).and_then(|p| p.connection.as_mut())
        else {
            return;
        };
        if flags.intersects(epoll::EventFlags::ERR | epoll::EventFlags::HUP) {
            return self.remove(place);
        }
        if flags.contains(epoll::EventFlags::IN) {
            connection.set_readable();
        }
        if flags.contains(epoll::EventFlags::RDHUP) {
            connection.set_sends_no_more();
        }
        if flags.contains(epoll::EventFlags::OUT) && connection.flush(monotonic_ns()).is_err() {
            return self.remove(place);
        }
        self.advance(place);
    }

    /// Takes what the connection has sent, up to one request.
    fn advance(&mut self, place: usize) {
        let Some(connection) = self.places.get_mut(place).and_then(|p| p.connection.as_mut())
        else {
            return;
        };
        match connection.advance(&mut self.room, monotonic_ns()) {
            Err(_) => self.remove(place),
            Ok(Wanted::Nothing) => {}
            Ok(Wanted::Service { reply, seed }) => self.serve(place, reply, seed),
            Ok(Wanted::Figures { id, seed }) => self.tell(place, (id, seed)),
        }
    }

    /// Sends the figures, and sees to what else the connection has sent when the others had their
    /// turn.
    fn tell(&mut self, place: usize, asked: (u32, u32)) {
        let text = self.figures();
        let kept = &mut self.places[place];
        let Some(connection) = kept.connection.as_mut() else { return };
        if connection.send_figures(asked, &text, monotonic_ns()).is_err() {
            return self.remove(place);
        }
        if !std::mem::replace(&mut kept.is_queued, true) {
            self.again.push_back(place);
        }
    }

    /// The last byte has been read: this is the arrival.
    fn serve(&mut self, place: usize, reply: ReplyHeader, seed: u32) {
        let Passage { arrival_ns, departure_ns } = self.station.arrive(monotonic_ns());
        self.due.push(Reverse(Due {
            departure_ns,
            number: self.served + self.due.len() as u64,
            place,
            tenant: self.places[place].tenant,
            arrival_ns,
            id: reply.id,
            checksum: reply.checksum,
            payload_bytes: reply.payload_bytes,
            seed,
        }));
    }

    fn accept(&mut self, now_ns: u64) {
        if now_ns < self.accept_again_ns {
            return;
        }
        loop {
            let stream = match self.listener.accept() {
                Ok((stream, _)) => stream,
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return,
                Err(e) if e.kind() == io::ErrorKind::ConnectionAborted => continue,
                // Out of descriptors: those connected are served, and some will leave.
                Err(_) => {
                    self.accept_again_ns = now_ns + ACCEPT_PAUSE_NS;
                    return;
                }
            };
            if stream.set_nonblocking(true).and(stream.set_nodelay(true)).is_err() {
                continue;
            }
            if self.places.len() - self.vacant.len() >= CONNECTIONS_MAX {
                // As much as the socket takes; a refused client learns nothing else.
                let _ = (&stream).write(&Welcome::refused(Refusal::Full).encode());
                continue;
            }
            self.admit(stream, now_ns);
        }
    }

    fn admit(&mut self, stream: TcpStream, now_ns: u64) {
        let place = self.vacant.pop().unwrap_or_else(|| {
            self.places.push(Place::default());
            self.places.len() - 1
        });
        let wanted = epoll::EventFlags::IN
            | epoll::EventFlags::OUT
            | epoll::EventFlags::RDHUP
            | epoll::EventFlags::ET;
        let data = epoll::EventData::new_u64(place as u64);
        if epoll::add(&self.epoll, &stream, data, wanted).is_err() {
            return self.vacant.push(place);
        }
        let kept = &mut self.places[place];
        kept.tenant += 1;
        kept.connection = Some(Connection::new(stream, self.servers, now_ns));
    }

    fn tenant(&mut self, place: usize, tenant: u64) -> Option<&mut Connection> {
        let kept = self.places.get_mut(place)?;
        if kept.tenant == tenant { kept.connection.as_mut() } else { None }
    }

    /// Closing the socket takes it out of the event queue.
    fn remove(&mut self, place: usize) {
        if self.places[place].connection.take().is_some() {
            self.vacant.push(place);
        }
    }

    fn sweep(&mut self, now_ns: u64) {
        for place in 0..self.places.len() {
            let connection = self.places[place].connection.as_ref();
            if connection.is_some_and(|connection| connection.is_stale(now_ns)) {
                self.remove(place);
            }
        }
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

fn timespec(span_ns: u64) -> Timespec {
    const SECOND_NS: u64 = 1_000_000_000;
    Timespec { tv_sec: (span_ns / SECOND_NS) as i64, tv_nsec: (span_ns % SECOND_NS) as _ }
}
