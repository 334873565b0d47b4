//! A service thread: takes a connection from the queue, does what its client asked for, and
//! answers straight into the socket.

use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::wire::inbox::{Arrived, FRAME_BYTES_MAX};
use crate::wire::{
    Hello, PAYLOAD_BYTES_MAX, Refusal, ReplyHeader, RequestHeader, RequestType, Status, VERSION,
    Welcome,
};

use super::exchange::{Connection, Exchange, News, Phase, Received};
use super::metrics::Present;
use super::pool::Pool;
use super::segments::Segments;
use super::work::{Means, Scratch, perform};
use plimsoll_servers::clock::monotonic_ns;

/// What multiplexer and service threads share.
pub(super) struct Shared {
    pub(super) pool: Pool<Arc<Connection>>,
    pub(super) returned: Returned,
    pub(super) means: Means,
    pub(super) segments: Segments,
    /// What every client that may come in is told.
    pub(super) welcome: Welcome,
    pub(super) connections_max: usize,
    /// How long a begun request, or a reply, may take on its way.
    pub(super) transfer_ns_max: u64,
    pub(super) end_ns_max: u64,
    /// Somebody wants the server to end.
    pub(super) is_ending: AtomicBool,
}

/// Connections that are to have a turn of the multiplexer, which is woken for them: those on their
/// way back to it, and those that it has put off itself.
#[derive(Debug)]
pub(super) struct Returned {
    connections: Mutex<Vec<Arc<Connection>>>,
    bell: OwnedFd,
}

impl Returned {
    pub(super) fn new(bell: OwnedFd) -> Self {
        Self { connections: Mutex::default(), bell }
    }

    /// Rings the bell for it.
    pub(super) fn push(&self, connection: Arc<Connection>) {
        let mut connections = self.connections.lock().unwrap_or_else(PoisonError::into_inner);
        connections.push(connection);
        drop(connections);
        self.ring();
    }

    /// All that came back since the last call. Silences the bell.
    pub(super) fn take(&self) -> Vec<Arc<Connection>> {
        let mut count = [0; 8];
        // It has rung, or another call has silenced it.
        let _ = rustix::io::read(&self.bell, &mut count);
        std::mem::take(&mut *self.connections.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Wakes the multiplexer.
    pub(super) fn ring(&self) {
        // It can only fail when the bell has rung 2^64 times unheard.
        let _ = rustix::io::write(&self.bell, &1_u64.to_ne_bytes());
    }

    /// What to watch.
    pub(super) const fn bell(&self) -> &OwnedFd {
        &self.bell
    }
}

impl Shared {
    /// The life of service thread number `thread`.
    pub(super) fn serve(&self, thread: usize) {
        let mut scratch: Scratch = vec![0; FRAME_BYTES_MAX].into();
        let mut next = None;
        while let Some(connection) = next.take().or_else(|| self.pool.take(thread)) {
            match self.serve_one(&connection, &mut scratch) {
                Then::Another => next = self.pool.push_unless_first(connection),
                Then::HandBack => {
                    connection.end_service();
                    self.returned.push(connection);
                }
                Then::Ended => {
                    // Looked at after the connection was given up: whoever begins to end the
                    // server looks the other way round.
                    if self.is_ending.load(Ordering::SeqCst) {
                        self.returned.push(connection);
                    }
                }
            }
        }
    }

    /// Answers, and gives the connection up. A client's next request is often there before its
    /// thread is back from sending; then the multiplexer has only noted that there is something,
    /// and the thread reads it itself instead of waking the multiplexer for it.
    fn serve_one(&self, connection: &Connection, scratch: &mut Scratch) -> Then {
        {
            let mut exchange = connection.exchange();
            self.answer(connection, &mut exchange, scratch);
            if exchange.phase != Phase::Receiving {
                return Then::HandBack;
            }
            if !exchange.inbox.is_empty() {
                return self.take_up(&mut exchange);
            }
        }
        // Unlocked: once it is given up, the multiplexer must not find it locked.
        while !connection.end_service_unless_news() {
            let mut exchange = connection.exchange();
            match exchange.receive(connection, scratch) {
                Received::Bytes { count, filled_up } => {
                    self.means.metrics.received_bytes.add(count as u64);
                    if filled_up || connection.ends() {
                        connection.hear(News::Some);
                    }
                    if !exchange.inbox.is_empty() {
                        return self.take_up(&mut exchange);
                    }
                }
                Received::Nothing => {}
                Received::End => return Then::HandBack,
            }
        }
        Then::Ended
    }

    /// Bytes are there that nobody has looked at. All but complete requests for a service thread
    /// is the multiplexer's business.
    fn take_up(&self, exchange: &mut Exchange) -> Then {
        match exchange.inbox.next_message() {
            Ok(Some(arrived @ Arrived::Request(request)))
                if request.kind != RequestType::Status
                    && !self.is_ending.load(Ordering::SeqCst) =>
            {
                exchange.asked = Some((arrived, monotonic_ns()));
                exchange.phase = Phase::Serving;
                Then::Another
            }
            _ => Then::HandBack,
        }
    }

    fn answer(&self, connection: &Connection, exchange: &mut Exchange, scratch: &mut Scratch) {
        let Some((asked, arrived_ns)) = exchange.asked.take() else { return };
        let begun_ns = monotonic_ns();
        self.means.metrics.queue_wait_ns.add(begun_ns.saturating_sub(arrived_ns));
        let ended_ns = match asked {
            Arrived::Hello(hello) => {
                self.greet(&hello, exchange);
                monotonic_ns()
            }
            Arrived::Request(request) => self.reply(&request, exchange, arrived_ns, scratch),
        };
        if let Arrived::Request(request) = asked {
            self.means.metrics.served(request.kind, ended_ns.saturating_sub(begun_ns));
        }
        self.means.metrics.sent_bytes.add(exchange.outbox.bytes() as u64);
        // What became of it shows in the phase.
        exchange.send(connection, ended_ns.saturating_add(self.transfer_ns_max));
    }

    fn greet(&self, hello: &Hello, exchange: &mut Exchange) {
        match self.admit(hello, exchange) {
            Ok(welcome) => exchange.outbox.put_welcome(&welcome),
            Err(refusal) => {
                self.means.metrics.refused.add(1);
                exchange.outbox.put_welcome(&Welcome::refused(refusal));
                exchange.is_last = true;
            }
        }
    }

    fn admit(&self, hello: &Hello, exchange: &mut Exchange) -> Result<Welcome, Refusal> {
        let Hello { version, client, segment_bytes } = *hello;
        if version != VERSION {
            return Err(Refusal::Version);
        }
        if segment_bytes > 0 {
            let opened = self.segments.open(client, segment_bytes, &self.means.troubles);
            exchange.segment = Some(opened?);
        }
        let segment_bytes = exchange.segment.as_ref().map_or(0, |segment| segment.bytes());
        Ok(Welcome { segment_bytes, ..self.welcome })
    }

    /// Makes the reply; returns when it was made.
    fn reply(
        &self,
        request: &RequestHeader,
        exchange: &mut Exchange,
        arrived_ns: u64,
        scratch: &mut Scratch,
    ) -> u64 {
        let done = perform(request, exchange, &self.means, scratch);
        let ended_ns = monotonic_ns();
        let (status, checksum, payload_bytes) = match done {
            Ok(done) => (Status::Ok, done.checksum, done.payload_bytes),
            Err(status) => (status, 0, 0),
        };
        let (kind, id) = (request.kind as u8, request.id);
        let server_ns = ended_ns.saturating_sub(arrived_ns);
        let header = ReplyHeader { payload_bytes, kind, status, id, checksum, server_ns };
        exchange.outbox.put_reply(&header);
        self.means.metrics.answered(kind, status);
        ended_ns
    }

    /// Makes the reply to a status request: the metrics as text.
    pub(super) fn reply_with_status(&self, request: &RequestHeader, exchange: &mut Exchange) {
        let kind = RequestType::Status as u8;
        self.means.metrics.answered(kind, Status::Ok);
        let mut text = self.status().into_bytes();
        text.truncate(PAYLOAD_BYTES_MAX as usize);
        let header = ReplyHeader {
            payload_bytes: text.len() as u32,
            kind,
            status: Status::Ok,
            id: request.id,
            checksum: crate::wire::checksum(request.seed, &text),
            server_ns: 0,
        };
        exchange.outbox.put_text(&header, text);
        exchange.phase = Phase::Replying;
    }

    /// The metrics in Prometheus' text format.
    pub(super) fn status(&self) -> String {
        let business = self.pool.business();
        self.means.metrics.text(&Present {
            threads: business.threads as u64,
            threads_busy: business.threads_busy as u64,
            queue_length: business.queue_length as u64,
            queue_length_max: business.queue_length_max as u64,
            connections_max: self.connections_max as u64,
            segments: self.segments.open_count(),
            memory_limit_bytes: self.welcome.memory_bytes,
            durable: self.welcome.durable,
        })
    }
}

/// What is next for a connection that was served.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Then {
    /// Another request is complete.
    Another,
    /// The multiplexer must see to it.
    HandBack,
    /// It was given up; its socket will say.
    Ended,
}
