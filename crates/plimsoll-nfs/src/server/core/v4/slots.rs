//! Sessions and their slots, of which each executes one call after the other, and each once.
//! RFC 8881 §2.10.6

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use plimsoll_servers::clock::monotonic_ns;

use super::callbacks::CallbackSlot;
use super::clients::Client;
use super::{Counts, FewerSlots, Nfs4};
use crate::wire::v4::{
    ChannelLimits, SequenceArgs, SequenceOk, SessionId, Status4, sequence_flags,
};

/// Locks over which the sessions are spread, so that cores seldom contend for one.
const SHARDS: usize = 16;
/// Sessions of a shard; with 64 slots and what they keep 300 KB each, if they are used to the full.
const SESSIONS_MAX: usize = 4_096;
/// A reply of this length is kept although the client does not ask for it.
const KEPT_BYTES: usize = 512;

/// All sessions, by id.
#[derive(Debug, Default)]
pub(super) struct Sessions {
    shards: [Shard; SHARDS],
    last_number: AtomicU64,
    executed_twice: AtomicU64,
}

#[derive(Debug, Default)]
struct Shard {
    sessions: RwLock<HashMap<SessionId, Arc<Session>>>,
    compounds: AtomicU64,
    operations: AtomicU64,
}

impl Shard {
    fn read(&self) -> RwLockReadGuard<'_, HashMap<SessionId, Arc<Session>>> {
        self.sessions.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, HashMap<SessionId, Arc<Session>>> {
        self.sessions.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Sessions {
    /// Adds a session of `client`.
    pub(super) fn add(
        &self,
        client: Arc<Client>,
        limits: ChannelLimits,
        callbacks: Option<CallbackSlot>,
    ) -> Result<Arc<Session>, Status4> {
        let number = self.last_number.fetch_add(1, Ordering::Relaxed) + 1;
        let mut id = [0; 16];
        id[..8].copy_from_slice(&client.id.to_be_bytes());
        id[8..].copy_from_slice(&number.to_be_bytes());
        let slots = (0..limits.slots).map(|_| Mutex::default()).collect();
        let (compounds, callbacks) = (AtomicU64::new(0), Mutex::new(callbacks));
        let session = Arc::new(Session { id, client, limits, slots, compounds, callbacks });
        let mut sessions = self.shard(number).write();
        if sessions.len() >= SESSIONS_MAX {
            return Err(Status4::NOSPC);
        }
        sessions.insert(id, Arc::clone(&session));
        Ok(session)
    }

    pub(super) fn get(&self, id: SessionId) -> Result<Arc<Session>, Status4> {
        let shard = self.shard(number_in(id));
        shard.read().get(&id).cloned().ok_or(Status4::BADSESSION)
    }

    pub(super) fn remove(&self, id: SessionId) -> Result<(), Status4> {
        let shard = self.shard(number_in(id));
        shard.write().remove(&id).map(drop).ok_or(Status4::BADSESSION)
    }

    /// Removes those of a client.
    pub(super) fn remove_of(&self, client_id: u64) {
        for shard in &self.shards {
            shard.write().retain(|_, session| session.client.id != client_id);
        }
    }

    /// One that `is_it` selects.
    pub(super) fn find(&self, is_it: impl Fn(&Session) -> bool) -> Option<Arc<Session>> {
        let in_shard =
            |shard: &Shard| shard.read().values().find(|session| is_it(session)).cloned();
        self.shards.iter().find_map(in_shard)
    }

    pub(super) fn forget_all(&self) {
        self.shards.iter().for_each(|shard| shard.write().clear());
    }

    fn shard(&self, number: u64) -> &Shard {
        &self.shards[number as usize % SHARDS]
    }

    /// Counts a compound of the session with this number, or of none.
    pub(super) fn count(&self, number: u64, operations: u64) {
        let shard = self.shard(number);
        shard.compounds.fetch_add(1, Ordering::Relaxed);
        shard.operations.fetch_add(operations, Ordering::Relaxed);
    }

    pub(super) fn counts(&self) -> Counts {
        let sum = |of: fn(&Shard) -> &AtomicU64| {
            self.shards.iter().map(|shard| of(shard).load(Ordering::Relaxed)).sum()
        };
        Counts {
            compounds: sum(|shard| &shard.compounds),
            operations: sum(|shard| &shard.operations),
        }
    }

    /// Counts executions that were not the first of their sequence.
    pub(super) fn count_again(&self, again: u64) {
        if again > 0 {
            self.executed_twice.fetch_add(again, Ordering::Relaxed);
        }
    }

    pub(super) fn executed_twice(&self) -> u64 {
        self.executed_twice.load(Ordering::Relaxed)
    }
}

/// The number in an id, which chooses the shard.
fn number_in(id: SessionId) -> u64 {
    let (halves, _) = id.as_chunks::<8>();
    u64::from_be_bytes(halves[1])
}

/// A session.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) id: SessionId,
    pub(super) client: Arc<Client>,
    limits: ChannelLimits,
    slots: Vec<Mutex<Slot>>,
    compounds: AtomicU64,
    /// `None`: the client takes no callbacks.
    callbacks: Mutex<Option<CallbackSlot>>,
}

impl Session {
    pub(super) fn number(&self) -> u64 {
        number_in(self.id)
    }

    /// A call must fit the session. RFC 8881 §2.10.6.4
    pub(super) fn check_request(
        &self,
        bytes: usize,
        operations: u32,
        args: &SequenceArgs,
    ) -> Result<(), Status4> {
        if args.slot >= self.limits.slots {
            return Err(Status4::BADSLOT);
        }
        if args.highest_slot >= self.limits.slots {
            return Err(Status4::BAD_HIGH_SLOT);
        }
        if operations > self.limits.operations_max {
            return Err(Status4::TOO_MANY_OPS);
        }
        if bytes > self.limits.call_bytes_max as usize {
            return Err(Status4::REQ_TOO_BIG);
        }
        Ok(())
    }

    /// Longest reply, and the status of one that is longer.
    pub(super) fn reply_bytes_max(&self, is_kept: bool) -> (usize, Status4) {
        let ChannelLimits { reply_bytes_max, cached_bytes_max, .. } = self.limits;
        if is_kept && cached_bytes_max < reply_bytes_max {
            (cached_bytes_max as usize, Status4::REP_TOO_BIG_TO_CACHE)
        } else {
            (reply_bytes_max as usize, Status4::REP_TOO_BIG)
        }
    }

    /// A slot that the session has. A second call of the slot waits here for the first.
    pub(super) fn slot(&self, slot: u32) -> MutexGuard<'_, Slot> {
        self.slots[slot as usize].lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn callbacks(&self) -> MutexGuard<'_, Option<CallbackSlot>> {
        self.callbacks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// There is a connection for callbacks.
    pub(super) fn can_call_back(&self) -> bool {
        self.callbacks().as_ref().is_some_and(CallbackSlot::is_up)
    }

    /// Counts a compound.
    pub(super) fn count(&self) {
        self.compounds.fetch_add(1, Ordering::Relaxed);
    }

    /// The highest slot that the client is to use.
    fn target_highest_slot(&self, fewer: Option<FewerSlots>) -> u32 {
        let compounds = self.compounds.load(Ordering::Relaxed);
        let slots = match fewer {
            Some(fewer) if compounds >= fewer.after_compounds => fewer.slots.max(1),
            _ => u32::MAX,
        };
        slots.min(self.limits.slots) - 1
    }
}

/// A slot with its last call.
#[derive(Debug, Default)]
pub(super) struct Slot {
    /// Of the last call.
    sequence: u32,
    /// The sequence that was executed last.
    executed: Option<u32>,
    /// Its reply, if it was kept.
    reply: Vec<u8>,
}

/// What to do with a call.
pub(super) enum Admission<'s> {
    /// Execute it; `again` is 1 if that was done before.
    Execute { again: u64 },
    /// It is a repetition: answer this, if the reply was kept.
    Repeated(Option<&'s [u8]>),
    /// SEQ_MISORDERED
    Misordered,
}

impl Slot {
    pub(super) fn begin(&mut self, sequence: u32) -> Admission<'_> {
        if sequence == self.sequence.wrapping_add(1) {
            let again = u64::from(self.executed == Some(sequence));
            (self.sequence, self.executed) = (sequence, Some(sequence));
            self.reply.clear();
            Admission::Execute { again }
        } else if self.executed == Some(sequence) {
            Admission::Repeated(Some(&self.reply[..]).filter(|reply| !reply.is_empty()))
        } else {
            Admission::Misordered
        }
    }

    /// Keeps the reply of the call, if `is_requested` or if it is short.
    pub(super) fn end(&mut self, is_requested: bool, reply: &[u8]) {
        if is_requested || reply.len() <= KEPT_BYTES {
            self.reply.extend_from_slice(reply);
        }
    }
}

impl Nfs4 {
    /// The session of a call, whose lease this renews.
    pub(super) fn admit(&self, args: &SequenceArgs) -> Result<Arc<Session>, Status4> {
        let session = self.sessions.get(args.session)?;
        let now_ns = monotonic_ns();
        if session.client.renew(now_ns, self.lease_ns()).is_err() {
            self.forget(session.client.id);
            return Err(Status4::BADSESSION);
        }
        Ok(session)
    }

    pub(super) fn sequence_ok(&self, session: &Session, args: &SequenceArgs) -> SequenceOk {
        let needs_reclaim = !session.client.has_reclaimed() && self.is_in_grace();
        // Without delegations there is nothing to call for.
        let is_cut_off = self.delegations.is_some()
            && session.callbacks().as_ref().is_some_and(|callbacks| !callbacks.is_up());
        let flags = [
            (needs_reclaim, sequence_flags::RESTART_RECLAIM_NEEDED),
            (is_cut_off, sequence_flags::CB_PATH_DOWN),
        ];
        SequenceOk {
            session: session.id,
            sequence: args.sequence,
            slot: args.slot,
            highest_slot: session.limits.slots - 1,
            target_highest_slot: session.target_highest_slot(self.config.fewer_slots),
            status_flags: flags.iter().filter(|(is_set, _)| *is_set).map(|(_, flag)| flag).sum(),
        }
    }
}
