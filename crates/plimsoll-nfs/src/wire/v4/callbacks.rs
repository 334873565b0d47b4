//! What the server calls, over a connection that the client made: CB_COMPOUND with CB_SEQUENCE in
//! front. RFC 8881 §20

use super::{Handle4, MINOR_VERSION, OPAQUE_BYTES_MAX, SessionId, StateId};
use crate::wire::xdr::{Decode, Encode, XdrError, XdrIn};

/// Program number of callbacks, which the client chooses. RFC 8881 §18.36
pub const CALLBACK_PROGRAM: u32 = 0x4000_0000;
/// Version of the callback program. RFC 8881 §20
pub const CALLBACK_VERSION: u32 = 1;
/// Most lists of calls that a CB_SEQUENCE may refer to.
const REFERRING_MAX: u32 = 64;

procedures! {
    /// Procedures of the callback program. RFC 8881 §20
    pub enum CallbackProcedure {
        Null = 0 "CB_NULL",
        Compound = 1 "CB_COMPOUND",
    }
}

procedures! {
    /// Operations of a CB_COMPOUND. RFC 8881 §20
    pub enum CallbackOperation {
        GetAttr = 3 "CB_GETATTR",
        Recall = 4 "CB_RECALL",
        LayoutRecall = 5 "CB_LAYOUTRECALL",
        Notify = 6 "CB_NOTIFY",
        PushDelegation = 7 "CB_PUSH_DELEG",
        RecallAny = 8 "CB_RECALL_ANY",
        RecallableAvailable = 9 "CB_RECALLABLE_OBJ_AVAIL",
        RecallSlot = 10 "CB_RECALL_SLOT",
        Sequence = 11 "CB_SEQUENCE",
        WantsCancelled = 12 "CB_WANTS_CANCELLED",
        NotifyLock = 13 "CB_NOTIFY_LOCK",
        NotifyDevice = 14 "CB_NOTIFY_DEVICEID",
        Illegal = 10_044 "CB_ILLEGAL",
    }
}

xdr_struct! {
    /// Arguments of CB_SEQUENCE. RFC 8881 §20.9
    pub struct CbSequenceArgs {
        /// The session.
        session: SessionId,
        /// Counts the calls of the slot.
        sequence: u32,
        /// The slot.
        slot: u32,
        /// The highest slot in use.
        highest_slot: u32,
        /// The reply is to be kept.
        cache: bool,
        /// Calls of the client that this refers to.
        referring: ReferringCalls,
    }

    /// What CB_SEQUENCE answers.
    pub struct CbSequenceOk {
        /// As in the call.
        session: SessionId,
        /// As in the call.
        sequence: u32,
        /// As in the call.
        slot: u32,
        /// The highest slot the client takes.
        highest_slot: u32,
        /// The highest slot it would like to be used.
        target_highest_slot: u32,
    }

    /// Arguments of CB_RECALL. RFC 8881 §20.2
    pub struct CbRecallArgs<'a> {
        /// Of the delegation.
        state: StateId,
        /// The file is about to be cut.
        truncate: bool,
        /// The file.
        handle: Handle4<'a>,
    }
}

/// The calls that a callback refers to, which the client may still wait for: how many.
/// RFC 8881 §2.10.6.3
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReferringCalls(pub u32);

impl Encode for ReferringCalls {
    /// None are written.
    fn encode(&self, out: &mut Vec<u8>) {
        0_u32.encode(out);
    }
}

impl<'a> Decode<'a> for ReferringCalls {
    fn decode(input: &mut XdrIn<'a>) -> Result<Self, XdrError> {
        let count = |input: &mut XdrIn<'a>| match input.u32()? {
            bytes if bytes > REFERRING_MAX => Err(XdrError::TooLong { bytes, max: REFERRING_MAX }),
            count => Ok(count),
        };
        let mut calls = 0;
        for _ in 0..count(input)? {
            input.fixed::<16>()?;
            let of_list = count(input)?;
            for _ in 0..of_list {
                input.u64()?;
            }
            calls += of_list;
        }
        Ok(Self(calls))
    }
}

/// Head of a CB_COMPOUND; the operations follow. RFC 8881 §20
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallbackHead<'a> {
    /// Any text; the reply has it again.
    pub tag: &'a [u8],
    /// Minor version.
    pub minor_version: u32,
    /// Operations that follow.
    pub operations: u32,
}

impl<'a> Decode<'a> for CallbackHead<'a> {
    fn decode(input: &mut XdrIn<'a>) -> Result<Self, XdrError> {
        let tag = input.opaque(OPAQUE_BYTES_MAX)?;
        let minor_version = input.u32()?;
        // Of NFSv4.0.
        input.u32()?;
        Ok(Self { tag, minor_version, operations: input.u32()? })
    }
}

/// Writes the arguments of a CB_COMPOUND of CB_SEQUENCE and CB_RECALL.
pub fn encode_recall(sequence: &CbSequenceArgs, recall: &CbRecallArgs<'_>, out: &mut Vec<u8>) {
    for word in [0, MINOR_VERSION, 0, 2, CallbackOperation::Sequence.number()] {
        word.encode(out);
    }
    sequence.encode(out);
    CallbackOperation::Recall.number().encode(out);
    recall.encode(out);
}
