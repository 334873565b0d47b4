//! The loop of the server: one thread, which waits for bytes and for the instants of the law.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::io;
use std::net::{TcpListener, TcpStream};
use std::os::fd::OwnedFd;

use plimsoll_servers::Stop;
use plimsoll_servers::clock::{monotonic_ns, since_1970};
use rustix::event::{Timespec, epoll};

use super::answer::{Answering, Start};
use super::connection::{Connection, Over, Request};
use super::law::{Asked, Law, Token};
use super::log::{Log, Row};
use super::refusal::Refusal;
use super::reply::write_refusal;
use super::request::Wanted;
use super::routes::{Routed, Routes};

/// Connections at a time; the next ones wait in the kernel's queue.
const CONNECTIONS_MAX: usize = 32_768;
/// Connections one look reports; more wait for the next.
const EVENTS_PER_LOOK: usize = 256;
/// Key of the listening socket among the events; no connection has that place.
const LISTENER: u64 = u64::MAX;
/// How often to see whether to stop, however busy.
const LOOK_UP_NS: u64 = 10_000_000;
/// Without anything happening for this long, sleep all the same.
const IDLE_NS: u64 = 1_000_000_000;
/// Before an instant of the law this much is waited through awake: a sleeper wakes up to 100 µs
/// late.
const AWAKE_NS: u64 = 150_000;
/// How long to leave accepting alone when the process is out of descriptors.
const ACCEPT_PAUSE_NS: u64 = 10_000_000;
/// When to see again whether a stream is silent that has something to send.
const PING_LOOK_NS: u64 = 1_000_000;
/// Bytes read at once.
const ROOM_BYTES: usize = 64 << 10;

/// How to wait for the next instant of the law.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Waiting {
    /// Awake, on a core of its own.
    Spin,
    /// Asleep, until shortly before.
    Sleep,
}

/// A server at work.
pub(super) struct Serving {
    epoll: OwnedFd,
    listener: TcpListener,
    waiting: Waiting,
    law: Law,
    routes: Routes,
    clients: Clients,
    /// When a stream has been silent for too long, if nothing was written in between.
    pings: BinaryHeap<Reverse<(u64, u64)>>,
    ping_ns: Option<u64>,
    log: Log,
    room: Vec<u8>,
    requests: u64,
    busy_ns: u64,
    accept_again_ns: u64,
}

/// Connections by place. An answer's id is its place and a number that no other of that place has.
#[derive(Default)]
struct Clients {
    places: Vec<Option<Connection>>,
    vacant: Vec<usize>,
    /// Places of connections with something to send.
    ready: Vec<usize>,
    /// Places that have been answered and may have sent more. One has its turn between two looks at
    /// the law: nobody's requests may keep this thread.
    again: VecDeque<usize>,
}

impl Clients {
    fn at(&mut self, place: usize) -> Option<&mut Connection> {
        self.places.get_mut(place)?.as_mut()
    }

    /// The answer of that id, with the connection's output.
    fn answering(&mut self, id: u64) -> Option<(usize, &mut Answering, &mut Vec<u8>)> {
        let place = (id & u64::from(u32::MAX)) as usize;
        let Connection { answering, output, .. } = self.at(place)?;
        let answering = answering.as_mut().filter(|answering| answering.id == id)?;
        Some((place, answering, output))
    }
}

impl Serving {
    pub(super) fn new(
        listener: TcpListener,
        (law, routes): (Law, Routes),
        (waiting, ping_ns): (Waiting, Option<u64>),
        log: Log,
    ) -> io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let data = epoll::EventData::new_u64(LISTENER);
        // Level-triggered, as everything here: what is not taken now is reported again.
        epoll::add(&epoll, &listener, data, epoll::EventFlags::IN)?;
        rustix::thread::set_current_timer_slack(Some(std::num::NonZeroU64::MIN))?;
        Ok(Self {
            epoll,
            listener,
            waiting,
            law,
            routes,
            clients: Clients::default(),
            pings: BinaryHeap::new(),
            ping_ns,
            log,
            room: vec![0; ROOM_BYTES],
            requests: 0,
            busy_ns: 0,
            accept_again_ns: 0,
        })
    }

    /// Serves until asked to stop.
    pub(super) fn until(mut self, stop: &Stop) -> Log {
        let mut events = Vec::with_capacity(EVENTS_PER_LOOK);
        let mut look_up_ns = 0;
        loop {
            let now_ns = monotonic_ns();
            if now_ns >= look_up_ns {
                if stop.is_requested() {
                    break;
                }
                look_up_ns = now_ns + LOOK_UP_NS;
            }
            self.give_tokens(now_ns);
            self.ping(now_ns);
            self.look(&mut events, look_up_ns);
            if let Some(place) = self.clients.again.pop_front() {
                self.take_requests(place);
            }
        }
        for connection in self.clients.places.into_iter().flatten() {
            if let Some(answering) = connection.answering {
                self.log.add(answering.row);
            }
        }
        self.log
    }

    /// Writes and sends what the law gives up to now. What one stream has of several steps, because
    /// this thread was late, goes in one write.
    fn give_tokens(&mut self, now_ns: u64) {
        let (clients, manner) = (&mut self.clients, &self.routes.manner);
        self.law.advance(now_ns, &mut |Token { id, at_ns, cached_tokens, .. }| {
            let Some((place, answering, output)) = clients.answering(id) else { return };
            let is_new = output.is_empty();
            answering.row.cached_tokens = cached_tokens;
            answering.take_token(at_ns, manner, output);
            if is_new && !output.is_empty() {
                clients.ready.push(place);
            }
        });
        let mut ready = std::mem::take(&mut self.clients.ready);
        ready.drain(..).for_each(|place| self.send(place));
        self.clients.ready = ready;
    }

    /// Sends what a connection has to send. Where that ends a reply, its next request has a turn.
    fn send(&mut self, place: usize) {
        let Some(connection) = self.clients.at(place) else { return };
        match connection.flush() {
            Err(Over) => return self.remove(place),
            Ok(false) if connection.waits_for_room => return,
            Ok(false) => return self.watch(place, epoll::EventFlags::OUT),
            Ok(true) => {}
        }
        let now_ns = monotonic_ns();
        connection.wrote_ns = now_ns;
        let late_ns = connection.answering.as_mut().and_then(|answering| answering.sent(now_ns));
        let over = connection.answering.take_if(|answering| answering.is_over);
        if let Some(answering) = &over {
            let closes = answering.is_stream() && self.routes.manner.closes_after_stream;
            connection.closes |= closes;
        }
        let closes = connection.closes && connection.answering.is_none();
        let waits_for_room = connection.waits_for_room;
        late_ns.into_iter().for_each(|late_ns| self.log.late(late_ns));
        let has_ended = over.is_some();
        if let Some(Answering { row, .. }) = over {
            self.log.add(Row { is_whole: true, ..row });
        }
        if closes {
            return self.remove(place);
        }
        if waits_for_room {
            self.watch(place, epoll::EventFlags::empty());
        }
        if has_ended {
            self.clients.again.push_back(place);
        }
    }

    /// Comments into streams that were silent for so long.
    fn ping(&mut self, now_ns: u64) {
        let Some(ping_ns) = self.ping_ns else { return };
        while let Some(Reverse((due_ns, id))) = self.pings.peek().copied() {
            if due_ns > now_ns {
                return;
            }
            self.pings.pop();
            let Some((place, ..)) = self.clients.answering(id) else { continue };
            let Some(connection) = self.clients.at(place) else { continue };
            let silent_since_ns = connection.wrote_ns;
            if silent_since_ns + ping_ns <= now_ns && !connection.has_output() {
                let Connection { answering, output, .. } = connection;
                answering.iter().for_each(|answering| answering.write_ping(output));
                self.send(place);
                self.pings.push(Reverse((now_ns + ping_ns, id)));
            } else {
                // Later than now in any case: output that waits does not count as silence.
                self.pings
                    .push(Reverse(((silent_since_ns + ping_ns).max(now_ns + PING_LOOK_NS), id)));
            }
        }
    }

    /// Waits for bytes, no longer than until the law's next instant, and takes them.
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
        let next_ns = self.law.next_event_ns();
        let is_idle = next_ns.is_none() && now_ns.saturating_sub(self.busy_ns) > IDLE_NS;
        if !self.clients.again.is_empty() || self.waiting == Waiting::Spin && !is_idle {
            return 0;
        }
        let next_ns = next_ns.unwrap_or(u64::MAX).saturating_sub(AWAKE_NS);
        let ping_ns = self.pings.peek().map_or(u64::MAX, |Reverse((due_ns, _))| *due_ns);
        next_ns.min(ping_ns).min(look_up_ns).saturating_sub(now_ns)
    }

    fn hear(&mut self, place: usize, flags: epoll::EventFlags) {
        let Some(connection) = self.clients.places.get_mut(place).and_then(Option::as_mut) else {
            return;
        };
        if flags.intersects(epoll::EventFlags::ERR | epoll::EventFlags::HUP) {
            return self.remove(place);
        }
        if flags.contains(epoll::EventFlags::IN) {
            if connection.fill(&mut self.room).is_err() {
                return self.remove(place);
            }
            self.take_requests(place);
        }
        if flags.contains(epoll::EventFlags::OUT) {
            self.send(place);
        }
    }

    /// Takes the next request that the connection has sent, if it is whole.
    fn take_requests(&mut self, place: usize) {
        let Some(connection) = self.clients.at(place) else { return };
        match connection.next_request() {
            Ok(None) if connection.has_output() => self.send(place),
            Ok(None) => {}
            Ok(Some(request)) => {
                connection.closes = request.head.closes;
                self.take_request(place, &request);
            }
            Err(refusal) => {
                // Where the next request begins is not known.
                connection.closes = true;
                self.refuse(place, &refusal);
            }
        }
    }

    fn take_request(&mut self, place: usize, request: &Request) {
        let arrival_ns = monotonic_ns();
        // Whatever the law has given up to now was without this request.
        self.give_tokens(arrival_ns);
        let state = (self.law.counts(), self.log.lateness());
        match self.routes.route(&request.head, &request.body, state) {
            Err(refusal) => self.refuse(place, &refusal),
            Ok(Routed::Reply(reply)) => {
                let Some(connection) = self.clients.at(place) else { return };
                connection.output.extend_from_slice(&reply);
                self.send(place);
                self.clients.again.push_back(place);
            }
            Ok(Routed::Answer(wanted)) => self.start(place, *wanted, arrival_ns),
        }
    }

    fn refuse(&mut self, place: usize, refusal: &Refusal) {
        let Some(connection) = self.clients.at(place) else { return };
        write_refusal(&mut connection.output, refusal);
        self.send(place);
        self.clients.again.push_back(place);
    }

    fn start(&mut self, place: usize, wanted: Wanted, arrival_ns: u64) {
        let Wanted { kind, prompt, output_tokens, finish, stream } = wanted;
        let prompt_tokens = prompt.tokens();
        let words = prompt.answer();
        let blocks = prompt.blocks_with_answer(output_tokens);
        let asked = Asked { prompt_tokens, output_tokens, blocks };
        self.requests += 1;
        let number = self.requests;
        let id = number << 32 | place as u64;
        let row = Row { number, arrival_ns, prompt_tokens, ..Row::default() };
        let created_s = since_1970().as_secs();
        let start = Start { id, kind, stream, words, finish, created_s, output_tokens, row };
        let answering = Answering::new(start, &self.routes.manner);
        let Some(connection) = self.clients.at(place) else { return };
        answering.write_head(&self.routes.manner, &mut connection.output);
        connection.answering = Some(answering);
        self.law.arrive(arrival_ns, id, asked);
        if let Some(ping_ns) = self.ping_ns.filter(|_| stream.is_some()) {
            self.pings.push(Reverse((arrival_ns + ping_ns, id)));
        }
        self.send(place);
    }

    fn accept(&mut self, now_ns: u64) {
        while now_ns >= self.accept_again_ns
            && self.clients.places.len() - self.clients.vacant.len() < CONNECTIONS_MAX
        {
            match self.listener.accept() {
                Ok((stream, _)) => self.admit(stream),
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return,
                Err(e) if e.kind() == io::ErrorKind::ConnectionAborted => {}
                // Out of descriptors: those connected are served, and some will leave.
                Err(_) => self.accept_again_ns = now_ns + ACCEPT_PAUSE_NS,
            }
        }
    }

    fn admit(&mut self, stream: TcpStream) {
        if stream.set_nonblocking(true).and(stream.set_nodelay(true)).is_err() {
            return;
        }
        let clients = &mut self.clients;
        let place = clients.vacant.pop().unwrap_or_else(|| {
            clients.places.push(None);
            clients.places.len() - 1
        });
        let data = epoll::EventData::new_u64(place as u64);
        if epoll::add(&self.epoll, &stream, data, epoll::EventFlags::IN).is_err() {
            return clients.vacant.push(place);
        }
        clients.places[place] = Some(Connection::new(stream));
    }

    /// Asks to be told when there is something to read, and of `more`.
    fn watch(&mut self, place: usize, more: epoll::EventFlags) {
        let Some(connection) = self.clients.at(place) else { return };
        connection.waits_for_room = more.contains(epoll::EventFlags::OUT);
        let wanted = epoll::EventFlags::IN | more;
        let data = epoll::EventData::new_u64(place as u64);
        if epoll::modify(&self.epoll, &connection.stream, data, wanted).is_err() {
            self.remove(place);
        }
    }

    /// Closing the socket takes it out of the event queue.
    fn remove(&mut self, place: usize) {
        let Some(mut connection) = self.clients.places.get_mut(place).and_then(Option::take) else {
            return;
        };
        self.clients.vacant.push(place);
        if let Some(Answering { id, row, .. }) = connection.answering.take() {
            self.law.cancel(id);
            self.log.add(row);
        }
        connection.end();
    }
}

fn timespec(span_ns: u64) -> Timespec {
    const SECOND_NS: u64 = 1_000_000_000;
    Timespec { tv_sec: (span_ns / SECOND_NS) as i64, tv_nsec: (span_ns % SECOND_NS) as _ }
}
