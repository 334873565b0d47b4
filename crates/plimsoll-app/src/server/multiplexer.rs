//! The one thread that watches all sockets: it accepts, reads, queues complete messages for the
//! service threads, and ends connections whose time is up.
//!
//! Sockets are watched edge-triggered, with one registration for their whole life. A request
//! costs one share of an `epoll_pwait2` and one `readv` here; its reply is sent by the service
//! thread that made it.

use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::wire::inbox::{Arrived, FRAME_BYTES_MAX, Malformed};
use crate::wire::{Refusal, RequestType, Status, Welcome};
use rustix::event::{Timespec, epoll};
use rustix::io::Errno;

use super::exchange::{Connection, Exchange, News, Phase, Received, Socket};
use super::outbox::Sent;
use super::service::Shared;
use super::table::{self, Accepted, Table, refusal};
use plimsoll_servers::ServerError;
use plimsoll_servers::clock::monotonic_ns;

/// Events one call reports; more wait for the next.
const EVENTS_MAX: usize = 256;
/// Messages that are answered here in one turn of a connection. Who has sent more ahead waits for
/// the others' turns: nobody's requests may keep this thread.
const MESSAGES_PER_TURN_MAX: u32 = 8;
/// Connections accepted before the others have their turn.
const ACCEPTED_PER_TURN_MAX: u32 = 64;
/// How often deadlines are looked at and idle memory is given back.
const SWEEP_NS: u64 = 250_000_000;
/// The same once the server is ending.
const ENDING_SWEEP_NS: u64 = 10_000_000;
/// How long a client has to read the last reply before the connection is closed.
const LEAVING_NS: u64 = 1_000_000_000;
/// The longest a greeting may take.
const GREETING_NS_MAX: u64 = 10_000_000_000;

const LISTENER: u64 = u64::MAX;
const BELL: u64 = u64::MAX - 1;

/// The thread's state.
pub(super) struct Multiplexer {
    epoll: OwnedFd,
    listener: Option<TcpListener>,
    /// Out of descriptors: nobody is accepted until the next sweep.
    is_pausing: bool,
    table: Table,
    shared: Arc<Shared>,
    /// What does not fit in a connection's own buffer is received here.
    overflow: Box<[u8]>,
    end_ns: Option<u64>,
}

/// What becomes of a connection after its turn.
enum Next {
    /// Its socket will say.
    Wait,
    /// A service thread's turn.
    Serve(Socket),
    /// Another turn, after those of the others.
    Again,
    Close,
}

impl Multiplexer {
    pub(super) fn new(listener: TcpListener, shared: Arc<Shared>) -> Result<Self, ServerError> {
        let failed = |source: Errno| ServerError::System {
            doing: "watch the sockets of the transaction server",
            source: source.into(),
        };
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(failed)?;
        let watch =
            |fd, key| epoll::add(&epoll, fd, epoll::EventData::new_u64(key), epoll::EventFlags::IN);
        watch(rustix::fd::AsFd::as_fd(&listener), LISTENER).map_err(failed)?;
        watch(rustix::fd::AsFd::as_fd(shared.returned.bell()), BELL).map_err(failed)?;
        Ok(Self {
            epoll,
            listener: Some(listener),
            is_pausing: false,
            table: Table::new(shared.connections_max),
            shared,
            overflow: vec![0; FRAME_BYTES_MAX].into(),
            end_ns: None,
        })
    }

    /// Serves until the server is to end, and all requests under way have been answered or have
    /// had their time.
    pub(super) fn run(mut self) -> Result<(), ServerError> {
        let mut events = Vec::with_capacity(EVENTS_MAX);
        let mut sweep_at_ns = monotonic_ns() + SWEEP_NS;
        loop {
            let wait = timespec(sweep_at_ns.saturating_sub(monotonic_ns()));
            let spare = rustix::buffer::spare_capacity(&mut events);
            match epoll::wait(&self.epoll, spare, Some(&wait)) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(errno) => {
                    let doing = "wait for the sockets of the transaction server";
                    return Err(ServerError::System { doing, source: errno.into() });
                }
            }
            for event in events.drain(..) {
                // Copied out: the kernel's struct is packed.
                let (data, flags) = (event.data, event.flags);
                self.on_event(data.u64(), flags);
            }
            let now_ns = monotonic_ns();
            if self.end_ns.is_none() && self.shared.is_ending.load(Ordering::SeqCst) {
                self.begin_to_end(now_ns);
                sweep_at_ns = now_ns;
            }
            if now_ns >= sweep_at_ns {
                self.sweep(now_ns);
                let every = if self.end_ns.is_some() { ENDING_SWEEP_NS } else { SWEEP_NS };
                sweep_at_ns = now_ns + every;
            }
            if self.end_ns.is_some_and(|end_ns| self.table.is_empty() || now_ns >= end_ns) {
                return Ok(());
            }
        }
    }

    fn on_event(&mut self, key: u64, flags: epoll::EventFlags) {
        match key {
            LISTENER => self.accept_some(),
            BELL => {
                for connection in self.shared.returned.take() {
                    connection.leave_queue();
                    if self.table.holds(&connection) {
                        self.turn(&connection);
                    }
                }
            }
            slot => {
                let Some(connection) = self.table.get(slot as usize) else { return };
                let ends =
                    epoll::EventFlags::RDHUP | epoll::EventFlags::HUP | epoll::EventFlags::ERR;
                let news = if flags.intersects(ends) { News::Last } else { News::Some };
                if connection.hear(news) {
                    self.turn(&connection);
                }
            }
        }
    }

    /// Gives a connection that is ours its turn.
    fn turn(&mut self, connection: &Arc<Connection>) {
        if connection.is_serving() {
            return;
        }
        let next = self.advance(connection, &mut connection.exchange());
        match next {
            Next::Wait => {}
            Next::Serve(socket) => {
                connection.begin_service(socket);
                self.shared.pool.push(Arc::clone(connection));
            }
            Next::Again => {
                if connection.enter_queue() {
                    self.shared.returned.push(Arc::clone(connection));
                }
            }
            Next::Close => self.close(connection),
        }
    }

    fn advance(&mut self, connection: &Connection, exchange: &mut Exchange) -> Next {
        let read_on = connection.ends();
        let mut socket = Socket::MayHoldMore;
        let mut answered = 0;
        loop {
            match exchange.phase {
                Phase::Replying => {
                    let stall_ns = monotonic_ns().saturating_add(self.shared.transfer_ns_max);
                    match exchange.send(connection, stall_ns) {
                        Sent::All => {}
                        Sent::Blocked => return Next::Wait,
                        Sent::Gone => return Next::Close,
                    }
                }
                Phase::Leaving => return self.see_off(connection, exchange),
                Phase::Serving => return Next::Close,
                Phase::Receiving if answered == MESSAGES_PER_TURN_MAX => return Next::Again,
                Phase::Receiving => match exchange.inbox.next_message() {
                    Ok(Some(arrived)) => {
                        if let Some(next) = self.take_up(arrived, exchange, socket) {
                            return next;
                        }
                        answered += 1;
                    }
                    Err(malformed) => {
                        self.shared.means.metrics.malformed.add(1);
                        // Nobody who speaks the protocol waits for an answer to that.
                        let Malformed::Request { id, kind, .. } = malformed else {
                            return Next::Close;
                        };
                        self.shared.means.metrics.answered(kind, Status::BadRequest);
                        exchange.is_last = true;
                        exchange.refuse(kind, id, Status::BadRequest);
                        self.count_sent(exchange);
                    }
                    Ok(None) if socket == Socket::Drained => return self.await_more(exchange),
                    Ok(None) => match exchange.receive(connection, &mut self.overflow) {
                        Received::Bytes { count, filled_up } => {
                            self.shared.means.metrics.received_bytes.add(count as u64);
                            if !filled_up && !read_on {
                                socket = Socket::Drained;
                            }
                        }
                        Received::Nothing => socket = Socket::Drained,
                        Received::End => return Next::Close,
                    },
                },
            }
        }
    }

    /// A complete message. `None`: it is answered here, and the reply is to be sent.
    fn take_up(&self, arrived: Arrived, exchange: &mut Exchange, socket: Socket) -> Option<Next> {
        exchange.deadline_ns = None;
        match arrived {
            Arrived::Request(request) if request.kind == RequestType::Status => {
                self.shared.reply_with_status(&request, exchange);
                exchange.is_last = self.end_ns.is_some();
                self.count_sent(exchange);
                None
            }
            _ if self.end_ns.is_some() => {
                self.refuse_at_the_end(arrived, exchange);
                None
            }
            _ => {
                exchange.asked = Some((arrived, monotonic_ns()));
                exchange.phase = Phase::Serving;
                Some(Next::Serve(socket))
            }
        }
    }

    fn refuse_at_the_end(&self, arrived: Arrived, exchange: &mut Exchange) {
        exchange.is_last = true;
        match arrived {
            Arrived::Hello(_) => {
                exchange.outbox.put_welcome(&Welcome::refused(Refusal::Ending));
                exchange.phase = Phase::Replying;
            }
            Arrived::Request(request) => {
                let kind = request.kind as u8;
                self.shared.means.metrics.answered(kind, Status::Ending);
                exchange.refuse(kind, request.id, Status::Ending);
            }
        }
        self.count_sent(exchange);
    }

    /// A reply was made here.
    fn count_sent(&self, exchange: &Exchange) {
        self.shared.means.metrics.sent_bytes.add(exchange.outbox.bytes() as u64);
    }

    /// Nothing complete is there, and nothing to read.
    fn await_more(&self, exchange: &mut Exchange) -> Next {
        if self.end_ns.is_some() {
            return Next::Close;
        }
        if !exchange.inbox.is_empty() {
            // From the first byte on, however slowly the others come.
            let deadline_ns = monotonic_ns().saturating_add(self.shared.transfer_ns_max);
            exchange.deadline_ns.get_or_insert(deadline_ns);
        }
        Next::Wait
    }

    /// The last reply has left: no more is sent, and what still comes is dropped, since a close
    /// with unread bytes would take the reply back.
    fn see_off(&mut self, connection: &Connection, exchange: &mut Exchange) -> Next {
        if exchange.deadline_ns.is_none() {
            exchange.deadline_ns = Some(monotonic_ns() + LEAVING_NS);
            exchange.segment = None;
            // An error means that it is closed already.
            let _ = rustix::net::shutdown(&connection.socket, rustix::net::Shutdown::Write);
        }
        match exchange.drop_what_comes(connection, &mut self.overflow) {
            Received::End => Next::Close,
            _ => Next::Wait,
        }
    }

    /// What is left in the kernel's queue makes another event.
    fn accept_some(&mut self) {
        for _ in 0..ACCEPTED_PER_TURN_MAX {
            let Some(listener) = &self.listener else { return };
            let socket = match table::accept(listener) {
                Accepted::Socket(socket) => socket,
                Accepted::Nobody => return,
                Accepted::OutOfDescriptors => return self.pause_accepting(),
            };
            self.shared.means.metrics.accepted.add(1);
            let is_full = self.table.is_full();
            if is_full {
                self.shared.means.metrics.refused.add(1);
            }
            let (greeting_ns, now_ns) = (self.shared.transfer_ns_max, monotonic_ns());
            let mut exchange =
                Exchange::new(now_ns + greeting_ns.min(GREETING_NS_MAX), Default::default());
            if is_full {
                refusal(&mut exchange, Refusal::Full);
            }
            let Some(connection) = self.table.enter(socket, exchange) else { continue };
            let wanted = epoll::EventFlags::IN
                | epoll::EventFlags::OUT
                | epoll::EventFlags::RDHUP
                | epoll::EventFlags::ET;
            let key = epoll::EventData::new_u64(connection.slot as u64);
            match epoll::add(&self.epoll, &connection.socket, key, wanted) {
                // What had arrived before makes an event of its own now.
                Ok(()) if is_full => self.turn(&connection),
                Ok(()) => {}
                Err(_) => self.close(&connection),
            }
            self.count_connections();
        }
    }

    fn pause_accepting(&mut self) {
        self.watch_listener(epoll::EventFlags::empty());
        self.is_pausing = true;
    }

    fn watch_listener(&self, flags: epoll::EventFlags) {
        if let Some(listener) = &self.listener {
            // It can only fail for a listener that is not watched.
            let _ =
                epoll::modify(&self.epoll, listener, epoll::EventData::new_u64(LISTENER), flags);
        }
    }

    fn close(&mut self, connection: &Connection) {
        self.table.leave(connection.slot);
        self.count_connections();
    }

    fn count_connections(&self) {
        self.shared.means.metrics.connections.set(self.table.len() as u64);
    }

    /// Ends connections whose time is up, and takes back memory from those that are idle.
    fn sweep(&mut self, now_ns: u64) {
        if std::mem::take(&mut self.is_pausing) {
            self.watch_listener(epoll::EventFlags::IN);
        }
        for slot in 0..self.table.slots() {
            let Some(connection) = self.table.get(slot) else { continue };
            if connection.is_serving() {
                continue;
            }
            let mut exchange = connection.exchange();
            if exchange.deadline_ns.is_some_and(|deadline_ns| deadline_ns <= now_ns) {
                if exchange.phase != Phase::Leaving {
                    self.shared.means.metrics.timed_out.add(1);
                }
                drop(exchange);
                self.close(&connection);
            } else if !std::mem::take(&mut exchange.is_warm) {
                exchange.inbox.release();
            }
        }
    }

    /// Nobody is accepted any more, what waits for a thread is refused, and all who wait for
    /// nothing are let go.
    fn begin_to_end(&mut self, now_ns: u64) {
        self.end_ns = Some(now_ns.saturating_add(self.shared.end_ns_max));
        self.listener = None;
        for connection in self.shared.pool.clear() {
            let mut exchange = connection.exchange();
            if let Some((arrived, _)) = exchange.asked.take() {
                self.refuse_at_the_end(arrived, &mut exchange);
            }
            drop(exchange);
            connection.end_service();
        }
        for slot in 0..self.table.slots() {
            if let Some(connection) = self.table.get(slot) {
                self.turn(&connection);
            }
        }
    }
}

fn timespec(ns: u64) -> Timespec {
    const NS_PER_S: u64 = 1_000_000_000;
    Timespec { tv_sec: (ns / NS_PER_S).cast_signed(), tv_nsec: (ns % NS_PER_S).cast_signed() }
}
