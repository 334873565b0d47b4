//! The calls in flight, by slot, and their bytes. A call's xid names its slot, so a reply finds its
//! call without a search; a generation in the xid shows late and repeated replies.

use plimsoll_engine::interface::{LinkKind, Ticket};
use plimsoll_engine::rng::{Random, Stream};
use plimsoll_model::outcome::{OpStatus, Outcome};
use plimsoll_model::units::Nanos;

use super::NfsSite;
use crate::fileset::BLOCK_BYTES;
use crate::handles::OwnedHandle;
use crate::op::{Accessed, DirNo, NfsCall, NfsOp, Span};
use crate::procedure::{Call, Context4, Cookie, Dialect, FILE_MODE};
use crate::wire::rpc::CallWriter;
use crate::wire::{record, v3};

/// Most calls one session may have in flight: 24 bits of the xid are left for generations, so an
/// xid comes back after 16 million calls on its slot.
pub const CALLS_MAX: u32 = 256;

/// A message begins with its xid. RFC 5531 §9
const XID_BYTES: usize = 4;

/// A call in flight.
#[derive(Clone, Copy, Debug)]
pub(super) struct InFlight {
    pub(super) ticket: Ticket,
    pub(super) op: NfsOp,
    /// Without a reply by then it has failed.
    pub(super) deadline: Nanos,
    /// Next retransmission of a datagram; [`Nanos::MAX`] on streams and before the first send.
    pub(super) retry_at: Nanos,
    /// Times it was sent.
    pub(super) sends: u32,
}

impl InFlight {
    /// It was sent again, and its second execution may have another result.
    fn is_ambiguous(&self) -> bool {
        self.sends > 1 && self.op.call.changes_names()
    }

    /// It ended so; without bytes of data.
    pub(super) fn outcome(&self, status: OpStatus) -> Outcome {
        let ambiguous = self.is_ambiguous();
        Outcome { kind: self.op.kind, status, bytes_read: 0, bytes_written: 0, ambiguous }
    }
}

/// Room for one call.
#[derive(Debug, Default)]
struct Slot {
    generation: u32,
    call: Option<InFlight>,
    /// The encoded call, kept to be sent again. Reused by the next call of this slot.
    buffer: Vec<u8>,
}

/// All calls of one session.
#[derive(Debug)]
pub(super) struct Calls {
    slots: Vec<Slot>,
    /// The one used last is used first: its buffer is in the cache.
    free: Vec<usize>,
    slot_bits: u32,
    /// The first xid.
    pub(super) base: u32,
}

impl Calls {
    /// Room for `outstanding_max` calls (1 to [`CALLS_MAX`]). Xids begin at a number that depends
    /// on `nonce` and `client`, so that those of two load points do not meet in a server's cache.
    pub(super) fn new(outstanding_max: u32, nonce: u64, client: u32) -> Self {
        let room = outstanding_max.clamp(1, CALLS_MAX);
        let slots = (0..room).map(|_| Slot::default()).collect();
        Self {
            slots,
            free: (0..room as usize).rev().collect(),
            slot_bits: room.next_power_of_two().trailing_zeros(),
            base: Random::new(nonce, Stream::Data, u64::from(client)).bits() as u32,
        }
    }

    pub(super) fn in_flight(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Takes a slot for `call` and has `encode` write it, given its xid. `None` when all are taken.
    pub(super) fn start(
        &mut self,
        call: InFlight,
        encode: impl FnOnce(&mut Vec<u8>, u32),
    ) -> Option<usize> {
        let at = self.free.pop()?;
        let xid = self.xid(at);
        let slot = &mut self.slots[at];
        slot.call = Some(call);
        slot.buffer.clear();
        encode(&mut slot.buffer, xid);
        Some(at)
    }

    /// The call with this xid.
    pub(super) fn find(&self, xid: u32) -> Option<(usize, &InFlight)> {
        let id = xid.wrapping_sub(self.base);
        let at = (id & ((1 << self.slot_bits) - 1)) as usize;
        let slot = self.slots.get(at)?;
        let same = slot.generation == id >> self.slot_bits;
        slot.call.as_ref().filter(|_| same).map(|call| (at, call))
    }

    /// The call of a slot and its bytes.
    pub(super) fn get(&mut self, at: usize) -> Option<(&mut InFlight, &[u8])> {
        let slot = self.slots.get_mut(at)?;
        Some((slot.call.as_mut()?, &slot.buffer))
    }

    /// The call has ended; later replies with its xid are ignored.
    pub(super) fn end(&mut self, at: usize) -> Option<InFlight> {
        let slot = self.slots.get_mut(at)?;
        let call = slot.call.take()?;
        slot.generation = slot.generation.wrapping_add(1) & (u32::MAX >> self.slot_bits);
        self.free.push(at);
        Some(call)
    }

    /// Number of slots, for going through all calls while they change.
    pub(super) fn slots(&self) -> usize {
        self.slots.len()
    }

    fn xid(&self, at: usize) -> u32 {
        // A slot number needs `slot_bits` bits and a generation the rest.
        let id = self.slots[at].generation << self.slot_bits | at as u32;
        self.base.wrapping_add(id)
    }
}

/// What ACCESS queries: everything that can be done with a file.
pub(super) const RIGHTS: u32 =
    v3::access::READ | v3::access::MODIFY | v3::access::EXTEND | v3::access::EXECUTE;

impl NfsSite {
    /// Appends the message of a call, with its record mark where the link needs one.
    pub(super) fn encode(&self, call: NfsCall, xid: u32, composed: &[u8], out: &mut Vec<u8>) {
        match self.link {
            LinkKind::Datagram => self.encode_message(call, xid, composed, out),
            LinkKind::Stream => {
                let at = record::begin(out);
                self.encode_message(call, xid, composed, out);
                record::finish(out, at);
            }
        }
    }

    fn encode_message(&self, call: NfsCall, xid: u32, composed: &[u8], out: &mut Vec<u8>) {
        if call == NfsCall::Composed {
            out.extend_from_slice(&xid.to_be_bytes());
            return out.extend_from_slice(composed.get(XID_BYTES..).unwrap_or_default());
        }
        let to = CallWriter { xid, credential: &self.credential, out };
        self.with_call(call, |call| call.encode(self.dialect(), to));
    }

    /// The form of calls that need no open file.
    pub(crate) fn dialect(&self) -> Dialect {
        Dialect { version: self.version, context: Context4::new(self.attributes) }
    }

    /// Hands on the call with its handles and names; any but those of set-up.
    #[inline]
    pub(super) fn with_call(&self, call: NfsCall, hand_on: impl FnOnce(Call<'_>)) {
        let name;
        let begin = Cookie::default();
        let call = match call {
            NfsCall::GetAttr(of) => Call::GetAttr(self.file(of)),
            // To what the files of the set have anyway.
            NfsCall::SetAttr(of) => Call::SetMode(self.file(of), FILE_MODE),
            NfsCall::Lookup(of) => {
                name = of.file().name();
                Call::LookUp(self.dir(of.file().directory()), name.as_bytes())
            }
            NfsCall::Access(of) => Call::Access(self.file(of), RIGHTS),
            NfsCall::ReadLink(link) => Call::ReadLink(handle_or_none(self.handles.link(link))),
            NfsCall::Read(span, _) => Call::Read(self.file(span.file), span.offset, span.bytes),
            NfsCall::Write(span, stability) => {
                Call::Write(self.file(span.file), span.offset, self.content_of(span), stability)
            }
            NfsCall::Create(slot) => {
                name = slot.name();
                Call::Create(self.dir(slot.directory()), name.as_bytes())
            }
            NfsCall::Remove(slot, _) => {
                name = slot.name();
                Call::Remove(self.dir(slot.directory()), name.as_bytes())
            }
            NfsCall::ReadDir(of) => Call::ReadDir(self.dir(of), begin, BLOCK_BYTES),
            NfsCall::ReadDirPlus(of) => Call::ReadDirPlus(self.dir(of), begin, BLOCK_BYTES),
            NfsCall::FsStat => Call::FsStat(&self.handles.root),
            NfsCall::Commit(of) => Call::Commit(self.file(of)),
            NfsCall::Composed => Call::Null,
        };
        hand_on(call);
    }

    /// The content of a part of a file, as it is or will be.
    pub(super) fn content_of(&self, span: Span) -> &[u8] {
        self.content.slice(span.file.file(), span.offset, span.bytes as usize)
    }

    pub(super) fn file(&self, file: Accessed) -> &OwnedHandle {
        handle_or_none(self.handles.file(file))
    }

    pub(super) fn dir(&self, dir: DirNo) -> &OwnedHandle {
        handle_or_none(self.handles.dir(dir))
    }
}

/// A set without the object, which no plan makes, shows as `NFSERR_STALE` or `BADHANDLE`.
fn handle_or_none(handle: Option<&OwnedHandle>) -> &OwnedHandle {
    handle.unwrap_or(&OwnedHandle::NONE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_model::outcome::OpKind;
    use std::collections::HashSet;

    fn call(number: u32) -> InFlight {
        InFlight {
            ticket: Ticket(number),
            op: NfsOp::first(OpKind(0), NfsCall::FsStat),
            deadline: Nanos::MAX,
            retry_at: Nanos::MAX,
            sends: 0,
        }
    }

    fn start(calls: &mut Calls, number: u32) -> Option<u32> {
        let mut xid = 0;
        calls.start(call(number), |_, given| xid = given).map(|_| xid)
    }

    #[test]
    fn every_call_is_found_by_its_xid_until_it_ends() {
        for room in [1, 2, 3, 32, 33, CALLS_MAX] {
            let mut calls = Calls::new(room, 7, 1);
            let mut used_xids = HashSet::new();
            for _ in 0..3 {
                let xids: Vec<u32> =
                    (0..room).map(|n| start(&mut calls, n).expect("there is room")).collect();
                assert_eq!(start(&mut calls, 0), None);
                for (number, xid) in xids.iter().enumerate() {
                    assert!(used_xids.insert(*xid));
                    let (at, call) = calls.find(*xid).expect("it is in flight");
                    assert_eq!(call.ticket, Ticket(number as u32));
                    assert!(calls.end(at).is_some());
                    assert!(calls.find(*xid).is_none());
                    assert!(calls.end(at).is_none());
                }
            }
        }
    }

    #[test]
    fn a_generation_wraps_without_touching_the_slot() {
        let mut calls = Calls::new(CALLS_MAX, 7, 1);
        calls.slots[255].generation = u32::MAX >> 8;
        calls.free = vec![255];
        let last = start(&mut calls, 1).expect("there is room");
        let at = calls.find(last).expect("it is in flight").0;
        calls.end(at);
        let first = start(&mut calls, 2).expect("there is room");
        assert_eq!(calls.find(first).map(|entry| entry.0), Some(255));
        assert!(calls.find(last).is_none());
    }

    #[test]
    fn xids_of_two_points_and_of_two_clients_begin_apart() {
        let first = |nonce, client| start(&mut Calls::new(32, nonce, client), 0);
        assert_ne!(first(1, 0), first(2, 0));
        assert_ne!(first(1, 0), first(1, 1));
        assert_eq!(first(1, 0), first(1, 0));
    }
}
