//! One connection, as the multiplexer and the service threads share it.
//!
//! A connection belongs to the multiplexer, except from the moment a complete message is queued
//! until its reply has been sent or handed back: then it belongs to a service thread, and what
//! the multiplexer hears of its socket is only noted.

use std::io::IoSliceMut;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::wire::inbox::{Arrived, Inbox};
use crate::wire::{ReplyHeader, Status};
use rustix::io::Errno;

use super::outbox::{Outbox, Sent};
use super::segments::Segment;

/// A service thread has it.
const SERVING: u8 = 1;
/// There is or may be something to read.
const READABLE: u8 = 2;
/// The client sends no more: a short read does not prove that nothing is left, since the end
/// itself is, and makes no event of its own any more.
const ENDS: u8 = 4;
/// It waits for another turn of the multiplexer.
const QUEUED: u8 = 8;

/// Reads in a row that drop what a client sends after its last reply. One that sends still more is
/// not read again: its time is nearly up.
const READS_MAX: u32 = 16;

/// One connection.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) socket: OwnedFd,
    /// Its place in the multiplexer's table.
    pub(super) slot: usize,
    state: AtomicU8,
    exchange: Mutex<Exchange>,
}

/// What is going on on a connection.
#[derive(Debug)]
pub(super) struct Exchange {
    pub(super) inbox: Inbox,
    pub(super) outbox: Outbox,
    pub(super) phase: Phase,
    /// What a service thread is to do, and when its last byte arrived.
    pub(super) asked: Option<(Arrived, u64)>,
    /// The client's segment, from its greeting on, if it wants one.
    pub(super) segment: Option<Arc<Segment>>,
    /// Where its next append goes.
    pub(super) append_at: u64,
    /// On the monotonic clock; the connection ends then if nothing changes.
    pub(super) deadline_ns: Option<u64>,
    /// Something was received since the last sweep.
    pub(super) is_warm: bool,
    /// Nothing more is read once the reply has left.
    pub(super) is_last: bool,
}

/// Whose turn it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// The client's.
    Receiving,
    /// A service thread's, or of the queue before it.
    Serving,
    /// Ours: a reply does not fit in the socket.
    Replying,
    /// Nobody's: the last reply has left, and the client is to read it before the end.
    Leaving,
}

/// What the multiplexer hears of a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum News {
    /// There may be something to read, or room to write.
    Some,
    /// The same, and the client sends no more.
    Last,
}

/// What is known of a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Socket {
    /// All that had arrived was read.
    Drained,
    /// There may be more.
    MayHoldMore,
}

/// What came of reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Received {
    /// So many; whether there was room for no more.
    Bytes { count: usize, filled_up: bool },
    /// Nothing is there.
    Nothing,
    /// The client has closed, or the connection is broken.
    End,
}

impl Connection {
    pub(super) fn new(socket: OwnedFd, slot: usize, exchange: Exchange) -> Self {
        Self { socket, slot, state: AtomicU8::new(0), exchange: Mutex::new(exchange) }
    }

    /// Never waited for long: whoever owns the connection is the only one to ask.
    pub(super) fn exchange(&self) -> MutexGuard<'_, Exchange> {
        self.exchange.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a service thread has it, or will have it.
    pub(super) fn is_serving(&self) -> bool {
        self.state.load(Ordering::SeqCst) & SERVING != 0
    }

    /// The socket has news. False: they wait until the service thread is done.
    pub(super) fn hear(&self, news: News) -> bool {
        let news = match news {
            News::Some => READABLE,
            News::Last => READABLE | ENDS,
        };
        self.state.fetch_or(news, Ordering::SeqCst) & SERVING == 0
    }

    /// It is to have another turn. False: that was so already.
    pub(super) fn enter_queue(&self) -> bool {
        self.state.fetch_or(QUEUED, Ordering::Relaxed) & QUEUED == 0
    }

    /// It has its turn now.
    pub(super) fn leave_queue(&self) {
        self.state.fetch_and(!QUEUED, Ordering::Relaxed);
    }

    /// Whether the client sends no more.
    pub(super) fn ends(&self) -> bool {
        self.state.load(Ordering::Relaxed) & ENDS != 0
    }

    /// Gives it to a service thread.
    pub(super) fn begin_service(&self, socket: Socket) {
        let readable = match socket {
            Socket::Drained => {
                self.state.fetch_and(!READABLE, Ordering::SeqCst);
                0
            }
            Socket::MayHoldMore => READABLE,
        };
        self.state.fetch_or(SERVING | readable, Ordering::SeqCst);
    }

    /// Gives it back to the multiplexer.
    pub(super) fn end_service(&self) {
        self.state.fetch_and(!SERVING, Ordering::SeqCst);
    }

    /// The same, unless there are news that nobody has seen to. False: they are the caller's now,
    /// and so is the connection still.
    pub(super) fn end_service_unless_news(&self) -> bool {
        let given_up = |state| (state & READABLE == 0).then_some(state & !SERVING);
        let ended = self.state.fetch_update(Ordering::SeqCst, Ordering::SeqCst, given_up).is_ok();
        if !ended {
            self.state.fetch_and(!READABLE, Ordering::SeqCst);
        }
        ended
    }
}

impl Exchange {
    /// Of a connection that has just been accepted.
    pub(super) const fn new(deadline_ns: u64, outbox: Outbox) -> Self {
        Self {
            inbox: Inbox::new(),
            outbox,
            phase: Phase::Receiving,
            asked: None,
            segment: None,
            append_at: 0,
            deadline_ns: Some(deadline_ns),
            is_warm: true,
            is_last: false,
        }
    }

    /// One read, into the connection's own buffer and, beside it, into `overflow`.
    pub(super) fn receive(&mut self, connection: &Connection, overflow: &mut [u8]) -> Received {
        let room = self.inbox.room();
        let space = self.inbox.space();
        let overflow = &mut overflow[..room - space.len()];
        let mut parts = [IoSliceMut::new(space), IoSliceMut::new(overflow)];
        match rustix::io::readv(&connection.socket, &mut parts) {
            Ok(0) => Received::End,
            Ok(count) => {
                self.inbox.arrived(count, overflow);
                self.is_warm = true;
                Received::Bytes { count, filled_up: count == room }
            }
            Err(Errno::AGAIN) => Received::Nothing,
            Err(Errno::INTR) => Received::Bytes { count: 0, filled_up: true },
            Err(_) => Received::End,
        }
    }

    /// Reads and forgets, as far as that goes quickly.
    pub(super) fn drop_what_comes(&self, connection: &Connection, buffer: &mut [u8]) -> Received {
        for _ in 0..READS_MAX {
            match rustix::io::read(&connection.socket, &mut *buffer) {
                Ok(1..) | Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Received::Nothing,
                Ok(0) | Err(_) => return Received::End,
            }
        }
        Received::Bytes { count: 0, filled_up: true }
    }

    /// Makes the reply to a request that got nothing done.
    pub(super) fn refuse(&mut self, kind: u8, id: u32, status: Status) {
        let (payload_bytes, checksum, server_ns) = (0, 0, 0);
        let header = ReplyHeader { payload_bytes, kind, status, id, checksum, server_ns };
        self.outbox.put_reply(&header);
        self.phase = Phase::Replying;
    }

    /// Sends what there is, and goes on to the next phase when all of it has left.
    pub(super) fn send(&mut self, connection: &Connection, stall_deadline_ns: u64) -> Sent {
        let sent = self.outbox.send(&connection.socket);
        match sent {
            Sent::All => {
                self.inbox.finish();
                self.deadline_ns = None;
                self.phase = if self.is_last { Phase::Leaving } else { Phase::Receiving };
            }
            Sent::Blocked => {
                self.phase = Phase::Replying;
                self.deadline_ns.get_or_insert(stall_deadline_ns);
            }
            Sent::Gone => (self.phase, self.deadline_ns) = (Phase::Leaving, None),
        }
        sent
    }
}
