//! What is done with a client, by whichever thread has it: the one that watches the sockets, which
//! reads requests and queues them, or a service thread, which carries out a request, writes the
//! reply directly to the socket, and looks for the next request.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, MutexGuard};

use crate::wire::inbox::{Arrived, FRAME_BYTES_MAX};
use crate::wire::{
    Hello, Refusal, ReplyHeader, RequestHeader, RequestType, Status, VERSION, Welcome,
};

use super::channel::{Channel, Step};
use super::client::{Client, ClientState};
use super::pool::{Business, Pool};
use super::segments::Segments;
use super::work::{Means, perform};
use plimsoll_servers::clock::monotonic_ns;

/// Messages that are answered in one pass over a connection. A client that has sent more waits for
/// the others: no client may monopolise a thread.
const MESSAGES_PER_PASS_MAX: u32 = 8;

/// What follows for a client.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    /// Wait for its socket's next event, or for a service thread that has it.
    Wait,
    /// A service thread must have it.
    Serve,
    /// It may have sent more; the others come first.
    Resume,
    /// It has ended.
    Close,
}

/// What all threads share.
pub(super) struct Shared {
    pub(super) pool: Pool<Arc<Client>>,
    pub(super) means: Means,
    pub(super) segments: Segments,
    /// The greeting of every admitted client.
    pub(super) welcome: Welcome,
    pub(super) connections_max: usize,
    /// How long a request that has begun, or a reply, may take.
    pub(super) transfer_ns_max: u64,
    /// The server is ending.
    pub(super) is_ending: AtomicBool,
}

impl Shared {
    /// The life of service thread number `thread`.
    pub(super) fn serve(&self, thread: usize) {
        let mut scratch = vec![0; FRAME_BYTES_MAX];
        let mut next = None;
        while let Some(client) = next.take().or_else(|| self.pool.take(thread)) {
            let mut state = client.taken_state();
            self.answer(&mut state, &mut scratch);
            // A client's next request is often there before its thread is back from sending.
            match self.advance(&client, state, &mut scratch) {
                Next::Wait => {}
                Next::Serve | Next::Resume => next = self.pool.push_unless_first(client),
                // The watching thread hears of that, and forgets the client.
                Next::Close => _ = rustix::net::shutdown(&client, rustix::net::Shutdown::Both),
            }
        }
    }

    /// Does what a client's news require, unless another thread has it. For the watching thread,
    /// which resumes the client if that is what follows. `buffer` has room for a frame.
    pub(super) fn attend(&self, client: &Arc<Client>, buffer: &mut [u8]) -> Next {
        let Some(state) = client.try_state() else { return Next::Wait };
        match self.advance(client, state, buffer) {
            Next::Serve => {
                self.pool.push(Arc::clone(client));
                Next::Wait
            }
            Next::Resume => {
                // It is not queued for a service thread: a status request never waits for one.
                drop(client.taken_state());
                Next::Resume
            }
            next => next,
        }
    }

    /// The server is ending: refuses what waits for a service thread.
    pub(super) fn refuse_queued(&self) {
        for client in self.pool.clear() {
            let mut state = client.taken_state();
            if let Some((arrived, _)) = state.request.take() {
                self.refuse_at_the_end(arrived, &mut state.channel);
            }
        }
    }

    /// Until there is nothing to do for the client, and no news came meanwhile.
    fn advance<'a>(
        &self,
        client: &'a Client,
        state: MutexGuard<'a, ClientState>,
        buffer: &mut [u8],
    ) -> Next {
        let mut state = Some(state);
        let mut left = MESSAGES_PER_PASS_MAX;
        while let Some(mut locked) = state.take() {
            let next = self.advance_locked(client, &mut locked, buffer, &mut left);
            // The watching thread looks at these, and at their deadline.
            let has_ended = locked.channel.has_ended();
            drop(locked);
            if next != Next::Wait || has_ended {
                return next;
            }
            if client.has_news() {
                state = client.try_state();
            }
        }
        Next::Wait
    }

    /// `left`: messages until others have their turn.
    fn advance_locked(
        &self,
        client: &Client,
        state: &mut ClientState,
        buffer: &mut [u8],
        left: &mut u32,
    ) -> Next {
        let metrics = &self.means.metrics;
        client.take_news(&mut state.channel);
        while *left > 0 {
            *left -= 1;
            let step = state.channel.advance(client, buffer);
            metrics.received_bytes.add_taken(&mut state.channel.received_bytes);
            let is_ending = self.is_ending.load(Ordering::SeqCst);
            match step {
                Step::Wait if !(is_ending && state.channel.is_receiving()) => {
                    if state.channel.has_ended() {
                        state.segment = None;
                    }
                    return Next::Wait;
                }
                Step::Wait | Step::Closed => {
                    state.channel.close();
                    state.segment = None;
                    return Next::Close;
                }
                Step::Malformed(kind) => {
                    metrics.malformed.add(1);
                    if let Some(kind) = kind {
                        metrics.answered(kind, Status::BadRequest);
                    }
                }
                Step::Arrived(Arrived::Request(request)) if request.kind == RequestType::Status => {
                    if is_ending {
                        state.channel.end_with_reply();
                    }
                    metrics.answered(request.kind as u8, Status::Ok);
                    state.channel.reply_with_text(&request, self.status());
                }
                Step::Arrived(arrived) if is_ending => {
                    self.refuse_at_the_end(arrived, &mut state.channel);
                }
                Step::Arrived(arrived) => {
                    state.request = Some((arrived, monotonic_ns()));
                    state.is_queued = true;
                    return Next::Serve;
                }
            }
            metrics.sent_bytes.add_taken(&mut state.channel.sent_bytes);
        }
        state.is_queued = true;
        Next::Resume
    }

    fn refuse_at_the_end(&self, arrived: Arrived, channel: &mut Channel) {
        match arrived {
            Arrived::Hello(_) => channel.welcome(&Welcome::refused(Refusal::Ending)),
            Arrived::Request(RequestHeader { kind, id, .. }) => {
                self.means.metrics.answered(kind as u8, Status::Ending);
                channel.refuse(kind as u8, id, Status::Ending);
            }
        }
    }

    /// Carries out the client's request, if it has one, and prepares the reply.
    fn answer(&self, state: &mut ClientState, scratch: &mut [u8]) {
        let Some((message, arrived_ns)) = state.request.take() else { return };
        let begun_ns = monotonic_ns();
        self.means.metrics.queue_wait_ns.add(begun_ns.saturating_sub(arrived_ns));
        match message {
            Arrived::Hello(hello) => {
                let welcome = self.admit(&hello, state).unwrap_or_else(|refusal| {
                    self.means.metrics.refused.add(1);
                    Welcome::refused(refusal)
                });
                state.channel.welcome(&welcome);
            }
            Arrived::Request(request) => {
                let done = perform(&request, state, &self.means, scratch);
                let ended_ns = monotonic_ns();
                let (status, checksum, payload_bytes) = match done {
                    Ok(done) => (Status::Ok, done.checksum, done.payload_bytes),
                    Err(status) => (status, 0, 0),
                };
                let (kind, id) = (request.kind as u8, request.id);
                let server_ns = ended_ns.saturating_sub(arrived_ns);
                let header = ReplyHeader { payload_bytes, kind, status, id, checksum, server_ns };
                state.channel.reply(&header);
                self.means.metrics.answered(kind, status);
                self.means.metrics.served(request.kind, ended_ns.saturating_sub(begun_ns));
            }
        }
        self.means.metrics.sent_bytes.add_taken(&mut state.channel.sent_bytes);
    }

    fn admit(&self, hello: &Hello, state: &mut ClientState) -> Result<Welcome, Refusal> {
        let Hello { version, client, segment_bytes } = *hello;
        if version != VERSION {
            return Err(Refusal::Version);
        }
        if segment_bytes > 0 {
            state.segment = Some(self.segments.open(client, segment_bytes)?);
        }
        Ok(Welcome { segment_bytes, ..self.welcome })
    }

    /// The metrics in Prometheus' text format.
    pub(super) fn status(&self) -> String {
        let Business { threads, threads_busy, queue_length, queue_length_max } =
            self.pool.business();
        self.means.metrics.text(&[
            ("threads", "Service threads.", threads as u64),
            ("threads_busy", "Service threads at work.", threads_busy as u64),
            ("queue_length", "Requests waiting for a thread.", queue_length as u64),
            ("queue_length_max", "Longest queue so far.", queue_length_max as u64),
            ("connections_max", "Connections taken at a time.", self.connections_max as u64),
            ("segments", "Data segments open.", self.segments.open_count()),
            (
                "memory_limit_bytes",
                "Memory the server may use, segments in the page cache included; 0: not limited.",
                self.welcome.memory_bytes,
            ),
            (
                "durable",
                "1: each write is on stable storage before its reply leaves.",
                u64::from(self.welcome.durable),
            ),
        ])
    }
}
