//! GETATTR by a delay law, in version 4.1 a compound that ends with it. Its replies are made at
//! once and wait here for their instants, in a separate thread: a thread that slept through a delay
//! would read the connection's next requests late and stamp them with that time. All other calls
//! are answered as usual, so that writing a file set takes no longer.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::num::NonZeroU64;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::wire::rpc::Call;
use crate::wire::v4::{CompoundHead, Handle4, Operation, SequenceArgs};
use crate::wire::{Decode as _, XdrError, XdrIn};

use plimsoll_servers::Stop;
use plimsoll_servers::delay::{DelayLaw, Passage, now_ns};

/// Program number of NFS.
const NFS: u32 = 100_003;
/// RFC 1094 2.2.2, RFC 1813 3.3.1.
const GETATTR: u32 = 1;
/// The version of which GETATTR is an operation of a compound.
const NFS_4: u32 = 4;
/// The end of each wait is spent awake: a sleeper wakes up to 100 µs late.
const AWAKE_NS: u64 = 150_000;
/// How often to look whether to stop.
const STOP_LOOK: Duration = Duration::from_millis(20);

/// The replies that wait.
pub(super) struct DelayedReplies {
    law: Arc<DelayLaw>,
    waiting: Mutex<Waiting>,
    more: Condvar,
}

#[derive(Default)]
struct Waiting {
    /// By the instant they leave, and in the order in which they came.
    replies: BTreeMap<(u64, u64), DelayedReply>,
    count: u64,
}

struct DelayedReply {
    passage: Passage,
    reply: Vec<u8>,
    to: Recipient,
}

/// Where a reply goes.
pub(super) enum Recipient {
    /// A stream, which others write to as well.
    Stream(Arc<Mutex<TcpStream>>),
    /// An address.
    Datagram(UdpSocket, SocketAddr),
}

impl DelayedReplies {
    pub(super) fn new(law: Arc<DelayLaw>) -> Self {
        Self { law, waiting: Mutex::default(), more: Condvar::new() }
    }

    /// When the reply to this message leaves, if it is one that has to wait.
    pub(super) fn arrive(&self, request: &[u8]) -> Option<Passage> {
        let mut input = XdrIn::new(request);
        let call = Call::decode(&mut input).ok()?;
        let waits = match call.version {
            NFS_4 => ends_with_getattr(input).unwrap_or(false),
            _ => call.procedure == GETATTR,
        };
        (call.program == NFS && waits).then(|| self.law.arrive())
    }

    /// Keeps a reply until its instant.
    pub(super) fn hold(&self, passage: Passage, reply: Vec<u8>, to: Recipient) {
        let mut waiting = self.waiting();
        waiting.count += 1;
        let key = (passage.completion_ns, waiting.count);
        let is_next = waiting.replies.first_key_value().is_none_or(|(next, _)| key < *next);
        waiting.replies.insert(key, DelayedReply { passage, reply, to });
        drop(waiting);
        if is_next {
            self.more.notify_one();
        }
    }

    /// Sends each at its instant, until `stop` is requested.
    pub(super) fn serve(&self, stop: &Stop) {
        // Without it waits are up to 50 µs longer, and later ones spin less.
        let _ = rustix::thread::set_current_timer_slack(Some(NonZeroU64::MIN));
        while !stop.is_requested() {
            let Some(delayed) = self.next_due() else { continue };
            let sent = match &delayed.to {
                Recipient::Stream(stream) => lock(stream).write_all(&delayed.reply).is_ok(),
                Recipient::Datagram(socket, peer) => socket.send_to(&delayed.reply, peer).is_ok(),
            };
            // A client that is gone has no reply.
            if sent {
                self.law.sent(delayed.passage, now_ns());
            }
        }
    }

    /// What leaves now; `None` when it is not time yet, after some of the wait.
    fn next_due(&self) -> Option<DelayedReply> {
        let mut waiting = self.waiting();
        let left_ns = match waiting.replies.first_key_value() {
            Some(((completion_ns, _), _)) => completion_ns.saturating_sub(now_ns()),
            None => u64::MAX,
        };
        match left_ns {
            0 => return waiting.replies.pop_first().map(|(_, delayed)| delayed),
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

/// Whether a compound is SEQUENCE, PUTFH and GETATTR.
fn ends_with_getattr(mut input: XdrIn<'_>) -> Result<bool, XdrError> {
    let CompoundHead { operations, .. } = CompoundHead::decode(&mut input)?;
    let sequence = input.u32()?;
    SequenceArgs::decode(&mut input)?;
    let put = input.u32()?;
    Handle4::decode(&mut input)?;
    let expected = [Operation::Sequence, Operation::PutFh, Operation::GetAttr];
    Ok(operations == 3 && [sequence, put, input.u32()?] == expected.map(Operation::number))
}

/// A stream to write to.
pub(super) fn lock(stream: &Mutex<TcpStream>) -> MutexGuard<'_, TcpStream> {
    stream.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::Encode;
    use crate::wire::rpc::{Credential, encode_call};
    use crate::wire::v4::{Bitmap, CompoundWriter, Opaque};

    fn call(version: u32, arguments: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
        let mut call = Vec::new();
        encode_call(&mut call, 1, (NFS, version), 1, &Credential::none());
        arguments(&mut call);
        call
    }

    #[test]
    fn replies_to_getattr_wait_in_every_version_and_no_others() {
        let spec = "service=exp:1ms,servers=4".parse().unwrap();
        let law = DelayLaw::from_spec(Some(&spec), None).unwrap().unwrap();
        let delayed = DelayedReplies::new(law);
        let waits = |call: Vec<u8>| delayed.arrive(&call).is_some();
        assert!(waits(call(2, |_| ())) && waits(call(3, |_| ())));
        let compound = |last: Operation, arguments: &dyn Fn(&mut Vec<u8>)| {
            let (session, sequence, slot, highest_slot) = ([0; 16], 1, 0, 0);
            let args = SequenceArgs { session, sequence, slot, highest_slot, cache: false };
            call(4, |out| {
                let w = CompoundWriter::request(out).op(Operation::Sequence, &args);
                w.op(Operation::PutFh, &Opaque::<128>(b"file")).op(last, &()).finish();
                arguments(out);
            })
        };
        let requested = |out: &mut Vec<u8>| Bitmap::default().encode(out);
        assert!(waits(compound(Operation::GetAttr, &requested)));
        assert!(!waits(compound(Operation::GetFh, &|_| ())));
        assert!(!waits(call(4, |_| ())));
    }
}
