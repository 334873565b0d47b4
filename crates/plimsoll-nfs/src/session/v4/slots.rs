//! The slots of a session: each carries one call at a time, and numbers its calls. A number and its
//! bytes stay until the reply has come, so that the server can tell a repetition from a new call.
//! RFC 8881 §2.10.6.1

use plimsoll_engine::rng::{Random, Stream};
use plimsoll_model::units::Nanos;

use super::{MARK_BYTES, Task};
use crate::parameters::SLOTS_MAX;
use crate::wire::v4::{SEQUENCE_BYTES, SequenceOk, SessionId};
use crate::wire::xdr::Encode as _;

/// The low bits of an xid are the slot's number, the others count its calls.
const SLOT_BITS: u32 = 11;
/// In an xid, for calls outside the slots.
const CONTROL: u32 = (1 << SLOT_BITS) - 1;
const _: () = assert!(SLOTS_MAX < CONTROL);

/// A call that waits for its reply.
#[derive(Clone, Copy, Debug)]
pub(super) struct Flying {
    pub(super) task: Task,
    /// Times it was sent.
    pub(super) sends: u32,
    /// Index of the connection that it was sent on last.
    pub(super) connection: Option<usize>,
    /// When it is sent again because the server asked for time.
    pub(super) again_at: Option<Nanos>,
}

impl Flying {
    /// No connection carries it, and none is to carry it later.
    pub(super) fn is_unsent(&self) -> bool {
        self.connection.is_none() && self.again_at.is_none()
    }
}

#[derive(Debug)]
struct Slot {
    /// Of the present or the next call.
    sequence: u32,
    xid: u32,
    flying: Option<Flying>,
    /// The present call, or room for the next.
    buffer: Vec<u8>,
}

/// The slots of one session.
#[derive(Debug, Default)]
pub(super) struct Slots {
    slots: Vec<Slot>,
    /// A bit for each slot without a call.
    free: Vec<u64>,
    /// How many the server has not refused.
    accepted: usize,
    /// How many of them the server wants to be used.
    usable: usize,
    /// Calls so far, in the form of an xid.
    calls: u32,
    base: u32,
}

/// What a call is sent with.
#[derive(Clone, Copy, Debug)]
pub(super) struct Numbers {
    pub(super) xid: u32,
    pub(super) sequence: u32,
    pub(super) slot: u32,
    pub(super) highest_slot: u32,
}

impl Numbers {
    /// Fills in the blank SEQUENCE that begins at `at`. Whether the reply is kept is there already.
    pub(super) fn write(self, session: &SessionId, call: &mut [u8], at: usize) {
        let fields = [self.sequence, self.slot, self.highest_slot].map(u32::to_be_bytes);
        let (id, numbers) = call[at..at + SEQUENCE_BYTES - 4].split_at_mut(session.len());
        id.copy_from_slice(session);
        numbers.copy_from_slice(fields.as_flattened());
    }
}

impl Slots {
    /// None yet. Xids begin at a number that depends on `nonce` and `client`.
    pub(super) fn new(nonce: u64, client: u32) -> Self {
        let base = Random::new(nonce, Stream::Data, u64::from(client)).bits() as u32;
        Self { base, ..Self::default() }
    }

    /// A new session has `granted` of them. Answers with the calls that had no reply in the old
    /// one.
    pub(super) fn reset(&mut self, granted: usize) -> Vec<Flying> {
        let lost = self.slots.iter_mut().filter_map(|slot| slot.flying.take()).collect();
        let slot = |_| Slot { sequence: 1, xid: 0, flying: None, buffer: Vec::new() };
        self.slots = (0..granted).map(slot).collect();
        self.free = vec![u64::MAX; granted.div_ceil(64)];
        (self.accepted, self.usable) = (granted, granted);
        lost
    }

    /// Number of slots, for going through all calls while they change.
    pub(super) fn count(&self) -> usize {
        self.slots.len()
    }

    /// No call waits for its reply.
    pub(super) fn are_idle(&self) -> bool {
        self.free.iter().all(|word| *word == u64::MAX)
    }

    fn lowest_free(&self) -> Option<usize> {
        let word = self.free.iter().position(|word| *word != 0)?;
        let at = word * 64 + self.free[word].trailing_zeros() as usize;
        (at < self.usable).then_some(at)
    }

    /// A call has to be sent.
    pub(super) fn has_unsent(&self) -> bool {
        self.slots.iter().filter_map(|slot| slot.flying.as_ref()).any(Flying::is_unsent)
    }

    /// A call could be sent now.
    pub(super) fn has_room(&self) -> bool {
        self.lowest_free().is_some()
    }

    fn highest_in_use(&self) -> u32 {
        let last = self.free.iter().rposition(|word| *word != u64::MAX).unwrap_or_default();
        let used = self.free.get(last).map_or(0, |word| !*word);
        (last as u32 * 64) + used.checked_ilog2().unwrap_or_default()
    }

    /// Takes the lowest free slot for `task`, and has `encode` write its call.
    pub(super) fn start(
        &mut self,
        task: Task,
        encode: impl FnOnce(&mut Vec<u8>, Numbers),
    ) -> Option<usize> {
        let at = self.lowest_free()?;
        self.free[at / 64] &= !(1 << (at % 64));
        let xid = self.next_xid(at as u32);
        let highest_slot = self.highest_in_use().max(at as u32);
        let slot = &mut self.slots[at];
        slot.xid = xid;
        slot.flying = Some(Flying { task, sends: 0, connection: None, again_at: None });
        slot.buffer.clear();
        let numbers = Numbers { xid, sequence: slot.sequence, slot: at as u32, highest_slot };
        encode(&mut slot.buffer, numbers);
        Some(at)
    }

    /// Of a call outside the slots.
    pub(super) fn control_xid(&mut self) -> u32 {
        self.next_xid(CONTROL)
    }

    fn next_xid(&mut self, low: u32) -> u32 {
        self.calls = self.calls.wrapping_add(1 << SLOT_BITS);
        self.base.wrapping_add(self.calls | low)
    }

    /// The slot whose call has this xid.
    pub(super) fn find(&self, xid: u32) -> Option<usize> {
        let at = (xid.wrapping_sub(self.base) & CONTROL) as usize;
        let slot = self.slots.get(at)?;
        (slot.xid == xid && slot.flying.is_some()).then_some(at)
    }

    /// The call of a slot, and its bytes.
    pub(super) fn get(&mut self, at: usize) -> Option<(&mut Flying, &[u8])> {
        let slot = self.slots.get_mut(at)?;
        Some((slot.flying.as_mut()?, &slot.buffer))
    }

    /// The reply is that of the slot's call.
    pub(super) fn is_reply(&self, at: usize, session: &SessionId, reply: &SequenceOk) -> bool {
        let slot = self.slots.get(at).map(|slot| slot.sequence);
        reply.session == *session && reply.slot as usize == at && slot == Some(reply.sequence)
    }

    /// The call has been executed: the next one has the next number.
    pub(super) fn advance(&mut self, at: usize) {
        if let Some(slot) = self.slots.get_mut(at) {
            slot.sequence = slot.sequence.wrapping_add(1);
        }
    }

    /// The call of a slot has been executed in vain, and is to be made again as the next one.
    pub(super) fn renew(&mut self, at: usize, session: &SessionId, sequence_at: usize) {
        let (xid, highest_slot) = (self.next_xid(at as u32), self.highest_in_use());
        let Some(slot) = self.slots.get_mut(at) else { return };
        slot.xid = xid;
        slot.buffer[MARK_BYTES..MARK_BYTES + 4].copy_from_slice(&xid.to_be_bytes());
        let numbers = Numbers { xid, sequence: slot.sequence, slot: at as u32, highest_slot };
        numbers.write(session, &mut slot.buffer, sequence_at);
        if let Some(flying) = &mut slot.flying {
            (flying.sends, flying.connection) = (0, None);
        }
    }

    /// The slot is free again.
    pub(super) fn end(&mut self, at: usize) -> Option<Flying> {
        let flying = self.slots.get_mut(at)?.flying.take()?;
        self.free[at / 64] |= 1 << (at % 64);
        Some(flying)
    }

    /// From now on the server wants only `usable` of them to be used.
    pub(super) fn limit(&mut self, usable: usize) {
        self.usable = usable.clamp(1, self.accepted);
    }

    /// The server has fewer slots than it granted: slot `at`, which is not the first, is none.
    pub(super) fn refuse(&mut self, at: usize) {
        self.accepted = self.accepted.min(at);
        self.limit(self.usable);
    }
}

/// A message with another xid.
pub(super) fn with_xid(xid: u32, message: &[u8], out: &mut Vec<u8>) {
    xid.encode(out);
    out.extend_from_slice(message.get(4..).unwrap_or_default());
}
