//! A client, as the threads share it.
//!
//! A thread has a client while it has locked its state; a queued client belongs to the thread that
//! takes it from the queue. What the watching thread hears meanwhile is noted, and whoever has had
//! the client looks for such news after it has unlocked the state.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU8, Ordering, fence};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::channel::Channel;
use super::metrics::Metrics;
use super::segments::Segment;
use crate::wire::inbox::Arrived;

/// News of a socket: something to read, or room to write.
const READY: u8 = 1;
/// News of a socket: the client sends no more.
const ENDS: u8 = 2;

/// A client.
#[derive(Debug)]
pub(super) struct Client {
    socket: OwnedFd,
    /// What the watching thread has heard and nobody has acted on.
    news: AtomicU8,
    state: Mutex<ClientState>,
}

/// Its connection and data.
#[derive(Debug)]
pub(super) struct ClientState {
    pub(super) channel: Channel,
    /// It belongs to a service thread, or waits for one.
    pub(super) is_queued: bool,
    /// What a service thread is to do, and when its last byte arrived.
    pub(super) request: Option<(Arrived, u64)>,
    /// Its segment, from its greeting on, if it requested one.
    pub(super) segment: Option<Arc<Segment>>,
    /// Where the connection's next append goes.
    pub(super) append_at: u64,
}

impl AsFd for Client {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Client {
    pub(super) fn new(socket: OwnedFd, channel: Channel) -> Self {
        Self { socket, news: AtomicU8::new(0), state: Mutex::new(ClientState::new(channel)) }
    }

    /// The socket has news.
    pub(super) fn hear(&self, sends_no_more: bool) {
        let news = if sends_no_more { READY | ENDS } else { READY };
        self.news.fetch_or(news, Ordering::SeqCst);
    }

    /// Passes the news on to the channel, which the caller has.
    pub(super) fn take_news(&self, channel: &mut Channel) {
        match self.news.swap(0, Ordering::SeqCst) {
            0 => {}
            news => channel.hear(news & ENDS != 0),
        }
    }

    /// Whether there is news, for a thread that has just unlocked the state: the watching thread
    /// notes them and then tries the lock, so that one of the two succeeds.
    pub(super) fn has_news(&self) -> bool {
        fence(Ordering::SeqCst);
        self.news.load(Ordering::SeqCst) != 0
    }

    /// `None`: another thread has it, and will look for news.
    pub(super) fn try_state(&self) -> Option<MutexGuard<'_, ClientState>> {
        fence(Ordering::SeqCst);
        self.state.try_lock().ok().filter(|state| !state.is_queued)
    }

    /// For the thread that has taken it from the queue.
    pub(super) fn taken_state(&self) -> MutexGuard<'_, ClientState> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.is_queued = false;
        state
    }

    /// Whether its time is up. Gives back idle memory otherwise. Not for one that another thread
    /// has. Whoever calls this looks for news afterwards.
    pub(super) fn is_late(&self, now_ns: u64, metrics: &Metrics) -> bool {
        let Ok(mut state) = self.state.try_lock() else { return false };
        let is_late = state.channel.is_late(now_ns);
        if !is_late {
            state.channel.release_idle();
        } else if !state.channel.has_ended() {
            metrics.timed_out.add(1);
        }
        is_late
    }
}

impl ClientState {
    pub(super) const fn new(channel: Channel) -> Self {
        Self { channel, is_queued: false, request: None, segment: None, append_at: 0 }
    }
}
