//! GETATTR by a delay law. Its replies are made at once and wait here for their instants, in a
//! thread of their own: one that slept through a delay would read what its connection sent
//! meanwhile too late, and stamp it as arriving then. All other calls are answered as ever, so that
//! writing a file set takes no longer.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::num::NonZeroU64;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::wire::XdrIn;
use crate::wire::rpc::Call;

use plimsoll_servers::Stop;
use plimsoll_servers::delay::{DelayLaw, Passage, now_ns};

/// Program number of NFS.
const NFS: u32 = 100_003;
/// RFC 1094 2.2.2, RFC 1813 3.3.1.
const GETATTR: u32 = 1;
/// Before a departure this much is waited through awake: a sleeper wakes up to 100 µs late.
const AWAKE_NS: u64 = 150_000;
/// How often to look whether to stop.
const STOP_LOOK: Duration = Duration::from_millis(20);

/// The replies that wait.
pub(super) struct Departures {
    law: Arc<DelayLaw>,
    waiting: Mutex<Waiting>,
    more: Condvar,
}

#[derive(Default)]
struct Waiting {
    /// By the instant they leave, and in the order in which they came.
    replies: BTreeMap<(u64, u64), Held>,
    count: u64,
}

struct Held {
    passage: Passage,
    reply: Vec<u8>,
    to: Whom,
}

/// Whom a reply is for.
pub(super) enum Whom {
    /// A stream, which others write to as well.
    Stream(Arc<Mutex<TcpStream>>),
    /// An address.
    Datagram(UdpSocket, SocketAddr),
}

impl Departures {
    pub(super) fn new(law: Arc<DelayLaw>) -> Self {
        Self { law, waiting: Mutex::default(), more: Condvar::new() }
    }

    /// When the reply to this message leaves, if it is one that has to wait.
    pub(super) fn arrive(&self, request: &[u8]) -> Option<Passage> {
        let call = Call::decode(&mut XdrIn::new(request)).ok()?;
        (call.program == NFS && call.procedure == GETATTR).then(|| self.law.arrive())
    }

    /// Keeps a reply until its instant.
    pub(super) fn hold(&self, passage: Passage, reply: Vec<u8>, to: Whom) {
        let mut waiting = self.waiting();
        waiting.count += 1;
        let place = (passage.departure_ns, waiting.count);
        let is_next = waiting.replies.first_key_value().is_none_or(|(next, _)| place < *next);
        waiting.replies.insert(place, Held { passage, reply, to });
        drop(waiting);
        if is_next {
            self.more.notify_one();
        }
    }

    /// Sends each at its instant, until `stop` is requested.
    pub(super) fn serve(&self, stop: &Stop) {
        // Without it waits are up to 50 µs longer, and later ones spin for less.
        let _ = rustix::thread::set_current_timer_slack(Some(NonZeroU64::MIN));
        while !stop.is_requested() {
            let Some(held) = self.next_due() else { continue };
            let sent = match &held.to {
                Whom::Stream(stream) => lock(stream).write_all(&held.reply).is_ok(),
                Whom::Datagram(socket, peer) => socket.send_to(&held.reply, peer).is_ok(),
            };
            // A client that is gone has no reply.
            if sent {
                self.law.sent(held.passage, now_ns());
            }
        }
    }

    /// What leaves now; `None` when it is not time yet, after some of the wait.
    fn next_due(&self) -> Option<Held> {
        let mut waiting = self.waiting();
        let left_ns = match waiting.replies.first_key_value() {
            Some(((departure_ns, _), _)) => departure_ns.saturating_sub(now_ns()),
            None => u64::MAX,
        };
        match left_ns {
            0 => return waiting.replies.pop_first().map(|(_, held)| held),
            1..=AWAKE_NS => {
                drop(waiting);
                // Readers share this core, perhaps.
                std::thread::yield_now();
            }
            _ => {
                let wait = Duration::from_nanos(left_ns - AWAKE_NS).min(STOP_LOOK);
                drop(self.more.wait_timeout(waiting, wait));
            }
        }
        None
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A stream to write to.
pub(super) fn lock(stream: &Mutex<TcpStream>) -> MutexGuard<'_, TcpStream> {
    stream.lock().unwrap_or_else(PoisonError::into_inner)
}
