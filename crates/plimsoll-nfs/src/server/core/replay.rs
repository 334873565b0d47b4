//! The duplicate request cache: a call that must not be executed twice and comes again gets the
//! reply of its first execution.

use crate::server::store::now;
use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::net::IpAddr;
use std::sync::{Arc, Condvar, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::wire::rpc::Call;

const SHARDS: usize = 16;
/// Replies kept per shard; with those of creations about 300 bytes each, 20 MB in all.
const REPLIES_MAX: usize = 4096;
/// For how long a reply is given again. Clients give up or have their answer long before.
const AGE_MAX_S: u64 = 120;
/// How long a repeated call waits for the first one to end.
const WAIT_MAX: Duration = Duration::from_secs(10);
/// Bytes of the arguments that the checksum covers.
const CHECKED_BYTES_MAX: usize = 512;

/// Keyed once per process, so that nobody can make calls up that collide.
static HASHER: LazyLock<RandomState> = LazyLock::new(RandomState::new);

/// What makes two calls the same call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Key {
    peer: IpAddr,
    xid: u32,
    program: u32,
    version: u32,
    procedure: u32,
    checksum: u64,
}

impl Key {
    pub(super) fn new(peer: IpAddr, call: &Call<'_>, arguments: &[u8]) -> Self {
        let mut hasher = HASHER.build_hasher();
        hasher.write_usize(arguments.len());
        hasher.write(&arguments[..arguments.len().min(CHECKED_BYTES_MAX)]);
        hasher.write(call.credential.body);
        Self {
            peer,
            xid: call.xid,
            program: call.program,
            version: call.version,
            procedure: call.procedure,
            checksum: hasher.finish(),
        }
    }

    fn shard(&self) -> usize {
        self.checksum as usize % SHARDS
    }
}

/// Replies of the calls that changed something last.
#[derive(Debug)]
pub(super) struct Replays {
    shards: Vec<Shard>,
}

#[derive(Debug, Default)]
struct Shard {
    kept: Mutex<Kept>,
    ended: Condvar,
}

#[derive(Debug, Default)]
struct Kept {
    by_key: HashMap<Key, Entry>,
    /// Keys in the order they came, those being executed included.
    order: VecDeque<Key>,
}

#[derive(Debug)]
struct Entry {
    begun_s: u64,
    /// `None` while the call is being executed.
    reply: Option<Arc<[u8]>>,
}

/// What to do with a call.
pub(super) enum Begun<'a> {
    /// Answer this, and do nothing.
    Cached(Arc<[u8]>),
    /// Execute it and say what came of it.
    First(Execution<'a>),
}

/// A call being executed. Dropped without a reply, it is forgotten.
pub(super) struct Execution<'a> {
    shard: &'a Shard,
    key: Key,
}

impl Replays {
    pub(super) fn new() -> Self {
        Self { shards: (0..SHARDS).map(|_| Shard::default()).collect() }
    }

    pub(super) fn begin(&self, key: Key) -> Begun<'_> {
        let shard = &self.shards[key.shard()];
        let now_s = u64::from(now().seconds);
        let mut kept = shard.lock();
        loop {
            match kept.by_key.get(&key) {
                Some(Entry { reply: None, .. }) => {
                    let waited = shard.ended.wait_timeout(kept, WAIT_MAX);
                    let (again, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
                    kept = again;
                    if timeout.timed_out() {
                        // The first execution hangs; a second would as well.
                        break;
                    }
                }
                Some(Entry { reply: Some(reply), begun_s }) if begun_s + AGE_MAX_S >= now_s => {
                    return Begun::Cached(Arc::clone(reply));
                }
                Some(_) | None => break,
            }
        }
        if kept.by_key.insert(key, Entry { begun_s: now_s, reply: None }).is_none() {
            kept.order.push_back(key);
        }
        if kept.order.len() > REPLIES_MAX
            && let Some(oldest) = kept.order.pop_front()
        {
            kept.by_key.remove(&oldest);
        }
        Begun::First(Execution { shard, key })
    }
}

impl Shard {
    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Execution<'_> {
    pub(super) fn done(self, reply: &[u8]) {
        if let Some(entry) = self.shard.lock().by_key.get_mut(&self.key) {
            entry.reply = Some(reply.into());
        }
    }
}

impl Drop for Execution<'_> {
    fn drop(&mut self) {
        let mut kept = self.shard.lock();
        if kept.by_key.get(&self.key).is_some_and(|entry| entry.reply.is_none()) {
            kept.by_key.remove(&self.key);
            kept.order.retain(|key| *key != self.key);
        }
        drop(kept);
        self.shard.ended.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(xid: u32) -> Key {
        let peer = IpAddr::from([127, 0, 0, 1]);
        // One shard, so that its bound shows.
        Key { peer, xid, program: 1, version: 2, procedure: 3, checksum: 5 }
    }

    #[test]
    fn a_call_is_executed_once_and_its_reply_given_again() {
        let replays = Replays::new();
        let Begun::First(execution) = replays.begin(key(1)) else { panic!("it is new") };
        execution.done(b"reply");
        let Begun::Cached(reply) = replays.begin(key(1)) else { panic!("it is known") };
        assert_eq!(&*reply, b"reply");
        assert!(matches!(replays.begin(key(2)), Begun::First(_)));
    }

    #[test]
    fn a_repetition_waits_for_the_first_to_end() {
        let replays = Replays::new();
        let Begun::First(execution) = replays.begin(key(1)) else { panic!("it is new") };
        std::thread::scope(|scope| {
            let second = scope.spawn(|| matches!(replays.begin(key(1)), Begun::Cached(_)));
            execution.done(b"reply");
            assert!(second.join().unwrap());
        });
    }

    #[test]
    fn memory_is_bounded_and_the_oldest_goes_first() {
        let replays = Replays::new();
        for xid in 0..=REPLIES_MAX as u32 {
            let Begun::First(execution) = replays.begin(key(xid)) else { panic!("it is new") };
            execution.done(&[]);
        }
        assert!(matches!(replays.begin(key(REPLIES_MAX as u32)), Begun::Cached(_)));
        assert!(matches!(replays.begin(key(0)), Begun::First(_)));
        let kept = replays.shards[5].lock();
        assert!(kept.by_key.len() <= REPLIES_MAX && kept.order.len() <= REPLIES_MAX);
    }

    #[test]
    fn an_execution_that_came_to_nothing_is_forgotten() {
        let replays = Replays::new();
        drop(replays.begin(key(1)));
        assert!(matches!(replays.begin(key(1)), Begun::First(_)));
    }
}
