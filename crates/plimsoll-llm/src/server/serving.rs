//! The server at work: what it does with its clients, their requests and the tokens of the law.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::net::TcpStream;

use plimsoll_engine::driver::epoll::Stamps;
use plimsoll_model::units::{NANOS_PER_SECOND, Nanos};
use plimsoll_servers::clock::{monotonic_ns, since_1970};
use plimsoll_servers::timed::{Clients, EventFlags, Timed};
use plimsoll_servers::web::{Closed, Reply, Request};

use super::LlmConfig;
use super::answer::{Answering, Start};
use super::connection::Connection;
use super::law::{Law, Token, TokenRequest};
use super::log::{Log, Row};
use super::reply::Refusal;
use super::request::GenerationRequest;
use super::routes::{Routed, Routes};

/// When to check again whether a stream with something to send is silent.
const PING_LOOK_NS: u64 = 1_000_000;
/// Bytes read at once.
const ROOM_BYTES: usize = 64 << 10;

/// A server at work.
pub(super) struct Serving {
    law: Law,
    routes: Routes,
    /// Slots of connections with something to send.
    ready: Vec<usize>,
    /// When a stream has been silent for too long, if nothing was written in between.
    pings: BinaryHeap<Reverse<(u64, u64)>>,
    ping_ns: Option<u64>,
    log: Log,
    room: Vec<u8>,
    stamps: Stamps,
    /// When to read the clocks of the stamps again.
    sync_ns: u64,
    requests: u64,
}

type All = Clients<Connection>;

/// The answer of that id, with its slot and the connection's output. An id is a slot and a number
/// that no other answer has.
fn answering(clients: &mut All, id: u64) -> Option<(usize, &mut Answering, &mut Vec<u8>)> {
    let index = (id & u64::from(u32::MAX)) as usize;
    let Connection { answering, web, .. } = clients.get_mut(index)?;
    let answering = answering.as_mut().filter(|answering| answering.id == id)?;
    Some((index, answering, &mut web.output))
}

impl Serving {
    pub(super) fn new(config: &LlmConfig, log: Log) -> Self {
        Self {
            law: Law::new(&config.law),
            routes: Routes::new(config),
            ready: Vec::new(),
            pings: BinaryHeap::new(),
            ping_ns: config.ping.map(|ping| ping.0),
            log,
            room: vec![0; ROOM_BYTES],
            stamps: Stamps::new(Nanos::ZERO),
            sync_ns: 0,
            requests: 0,
        }
    }

    /// The log, when it is over and these are still there.
    pub(super) fn ended(mut self, left: Vec<Connection>) -> Log {
        let answers = left.into_iter().filter_map(|connection| connection.answering);
        answers.for_each(|answering| self.log.add(answering.row));
        self.log
    }

    /// Writes and sends what the law gives up to now. What one stream has of several steps, because
    /// this thread was late, goes in one write.
    fn give_tokens(&mut self, clients: &mut All, now_ns: u64) {
        let (config, ready) = (&self.routes.config, &mut self.ready);
        self.law.advance(now_ns, &mut |Token { id, at_ns, cached_tokens, .. }| {
            let Some((index, answering, output)) = answering(clients, id) else { return };
            let is_new = output.is_empty();
            answering.row.cached_tokens = cached_tokens;
            answering.take_token(at_ns, config, output);
            if is_new && !output.is_empty() {
                ready.push(index);
            }
        });
        let mut ready = std::mem::take(&mut self.ready);
        ready.drain(..).for_each(|index| self.send(clients, index));
        self.ready = ready;
    }

    /// Sends what a connection has to send. If that ends a reply, its next request is handled.
    fn send(&mut self, clients: &mut All, index: usize) {
        let Some(connection) = clients.get_mut(index) else { return };
        match connection.web.flush() {
            Err(Closed) => return self.remove(clients, index),
            Ok(false) if connection.waits_for_room => return,
            Ok(false) => return self.watch(clients, index, EventFlags::OUT),
            Ok(true) => {}
        }
        let now_ns = monotonic_ns();
        connection.wrote_ns = now_ns;
        let late_ns = connection.answering.as_mut().and_then(|answering| answering.sent(now_ns));
        let finished = connection.answering.take_if(|answering| answering.is_finished);
        if let Some(answering) = &finished {
            let closes = answering.is_stream() && self.routes.config.closes_after_stream;
            connection.web.closes |= closes;
        }
        let closes = connection.web.closes && connection.answering.is_none();
        let waits_for_room = connection.waits_for_room;
        late_ns.into_iter().for_each(|late_ns| self.log.late(late_ns));
        let has_ended = finished.is_some();
        if let Some(Answering { row, .. }) = finished {
            self.log.add(Row { is_whole: true, ..row });
        }
        if closes {
            return self.remove(clients, index);
        }
        if waits_for_room {
            self.watch(clients, index, EventFlags::empty());
        }
        if has_ended {
            clients.requeue(index);
        }
    }

    /// Comments into streams that were silent for so long.
    fn ping(&mut self, clients: &mut All, now_ns: u64) {
        let Some(ping_ns) = self.ping_ns else { return };
        while let Some(Reverse((due_ns, id))) = self.pings.peek().copied() {
            if due_ns > now_ns {
                return;
            }
            self.pings.pop();
            let Some((index, ..)) = answering(clients, id) else { continue };
            let Some(connection) = clients.get_mut(index) else { continue };
            let silent_since_ns = connection.wrote_ns;
            if silent_since_ns + ping_ns <= now_ns && !connection.web.has_output() {
                let Connection { answering, web, .. } = connection;
                answering.iter().for_each(|answering| answering.write_ping(&mut web.output));
                self.send(clients, index);
                self.pings.push(Reverse((now_ns + ping_ns, id)));
            } else {
                // Later than now in any case: output that waits does not count as silence.
                self.pings
                    .push(Reverse(((silent_since_ns + ping_ns).max(now_ns + PING_LOOK_NS), id)));
            }
        }
    }

    fn take_request(&mut self, clients: &mut All, index: usize, request: &Request) {
        let now_ns = monotonic_ns();
        // Whatever the law has given up to now was without this request.
        self.give_tokens(clients, now_ns);
        let state = (self.law.counts(), self.log.lateness());
        match self.routes.route(&request.head, &request.body, state) {
            Err(refusal) => self.reply(clients, index, &refusal.reply()),
            Ok(Routed::Reply(reply)) => self.reply(clients, index, &reply),
            Ok(Routed::Answer(generation)) => self.start(clients, index, *generation, now_ns),
        }
    }

    fn reply(&mut self, clients: &mut All, index: usize, reply: &Reply<'_>) {
        let Some(connection) = clients.get_mut(index) else { return };
        reply.write(&mut connection.web.output);
        self.send(clients, index);
        clients.requeue(index);
    }

    fn start(
        &mut self,
        clients: &mut All,
        index: usize,
        generation: GenerationRequest,
        now_ns: u64,
    ) {
        let GenerationRequest { kind, prompt, output_tokens, finish, stream } = generation;
        let prompt_tokens = prompt.tokens();
        let answer = prompt.answer();
        let blocks = prompt.blocks_with_answer(output_tokens);
        let token_request = TokenRequest { prompt_tokens, output_tokens, blocks };
        self.requests += 1;
        let number = self.requests;
        let id = number << 32 | index as u64;
        let Some(connection) = clients.get_mut(index) else { return };
        let arrival_ns = connection.arrived_ns.min(now_ns);
        let row = Row { number, arrival_ns, prompt_tokens, ..Row::default() };
        let created_s = since_1970().as_secs();
        let start = Start { id, kind, stream, answer, finish, created_s, output_tokens, row };
        let answering = Answering::new(start, &self.routes.config);
        answering.write_head(&self.routes.config, &mut connection.web.output);
        connection.answering = Some(answering);
        self.law.arrive(self.law.arrival_ns(arrival_ns, now_ns), id, token_request);
        if let Some(ping_ns) = self.ping_ns.filter(|_| stream.is_some()) {
            self.pings.push(Reverse((now_ns + ping_ns, id)));
        }
        self.send(clients, index);
    }

    /// Requests events for something to read, and for `more`.
    fn watch(&mut self, clients: &mut All, index: usize, more: EventFlags) {
        let Some(connection) = clients.get_mut(index) else { return };
        connection.waits_for_room = more.contains(EventFlags::OUT);
        if !clients.watch(index, EventFlags::IN | more) {
            self.remove(clients, index);
        }
    }

    fn remove(&mut self, clients: &mut All, index: usize) {
        let Some(mut connection) = clients.remove(index) else { return };
        if let Some(Answering { id, row, .. }) = connection.answering.take() {
            self.law.cancel(id);
            self.log.add(row);
        }
        connection.web.end();
    }
}

impl Timed for Serving {
    type Client = Connection;
    const CLIENTS_MAX: usize = 32_768;

    fn act(&mut self, clients: &mut All, now_ns: u64) {
        self.give_tokens(clients, now_ns);
        self.ping(clients, now_ns);
        if now_ns >= self.sync_ns {
            self.stamps.sync();
            self.sync_ns = now_ns + NANOS_PER_SECOND;
        }
    }

    fn next_ns(&self) -> Option<u64> {
        self.law.next_event_ns()
    }

    fn wake_ns(&self) -> u64 {
        self.pings.peek().map_or(u64::MAX, |Reverse((due_ns, _))| *due_ns)
    }

    fn admit(&mut self, clients: &mut All, stream: TcpStream, now_ns: u64) {
        // Level-triggered: what is not read now is reported again.
        clients.add(Connection::new(stream, now_ns), EventFlags::IN);
    }

    fn hear(&mut self, clients: &mut All, index: usize, flags: EventFlags) {
        let Some(connection) = clients.get_mut(index) else { return };
        if flags.intersects(EventFlags::ERR | EventFlags::HUP) {
            return self.remove(clients, index);
        }
        if flags.contains(EventFlags::IN) {
            if connection.fill(&mut self.room, &mut self.stamps).is_err() {
                return self.remove(clients, index);
            }
            self.resume(clients, index);
        }
        if flags.contains(EventFlags::OUT) {
            self.send(clients, index);
        }
    }

    /// Takes the next request that the connection has sent, if it is whole.
    fn resume(&mut self, clients: &mut All, index: usize) {
        let Some(connection) = clients.get_mut(index) else { return };
        match connection.next_request() {
            Ok(None) if connection.web.has_output() => self.send(clients, index),
            Ok(None) => {}
            Ok(Some(request)) => {
                connection.web.closes = request.head.closes;
                self.take_request(clients, index, &request);
            }
            Err(bad_request) => {
                // Where the next request begins is not known.
                connection.web.closes = true;
                self.reply(clients, index, &Refusal::from(bad_request).reply());
            }
        }
    }
}
