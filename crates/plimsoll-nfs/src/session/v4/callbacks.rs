//! What the server calls: CB_NULL, and CB_COMPOUND with CB_SEQUENCE and CB_RECALL. Anything else is
//! refused as RFC 8881 §20 demands.

use plimsoll_engine::interface::Io;
use plimsoll_model::units::Nanos;

use super::{Delegated, Session4, Task};
use crate::wire::record;
use crate::wire::rpc::{Call, CallError, ReplyOutcome, encode_reply, encode_reply_success};
use crate::wire::v4::*;
use crate::wire::xdr::{Decode, Encode, XdrIn};

/// The one slot for callbacks.
#[derive(Debug, Default)]
pub(super) struct BackChannel {
    /// Of the last call.
    sequence: u32,
    /// Its reply, behind the head of the message.
    reply: Vec<u8>,
}

impl BackChannel {
    /// The session is a new one.
    pub(super) fn reset(&mut self) {
        *self = Self::default();
    }
}

impl Session4 {
    pub(super) fn on_callback(&mut self, at: usize, message: &[u8], now: Nanos, io: &mut impl Io) {
        let mut out = Vec::new();
        let mark = record::begin(&mut out);
        let mut input = XdrIn::new(message);
        match Call::decode(&mut input) {
            Ok(call) => match self.callback_outcome(&call) {
                ReplyOutcome::Success => {
                    encode_reply_success(&mut out, call.xid);
                    if call.procedure == CallbackProcedure::Compound.number() {
                        self.answer_compound(input, &mut out, now, io);
                    }
                }
                outcome => encode_reply(&mut out, call.xid, outcome),
            },
            Err(CallError::Answer { xid, outcome }) => encode_reply(&mut out, xid, outcome),
            Err(CallError::NoCall(_)) => return,
        }
        record::finish(&mut out, mark);
        if let Some(link) = self.links.get(at).connection.up() {
            io.send(link, &out);
        }
    }

    fn callback_outcome(&self, call: &Call<'_>) -> ReplyOutcome {
        match (call.program, call.version, CallbackProcedure::from_number(call.procedure)) {
            (CALLBACK_PROGRAM, CALLBACK_VERSION, Some(_)) => ReplyOutcome::Success,
            (CALLBACK_PROGRAM, CALLBACK_VERSION, None) => ReplyOutcome::ProcedureUnavailable,
            (CALLBACK_PROGRAM, ..) => {
                ReplyOutcome::ProgramMismatch { low: CALLBACK_VERSION, high: CALLBACK_VERSION }
            }
            _ => ReplyOutcome::ProgramUnavailable,
        }
    }

    fn answer_compound(
        &mut self,
        mut input: XdrIn<'_>,
        out: &mut Vec<u8>,
        now: Nanos,
        io: &mut impl Io,
    ) {
        let Ok(head) = CallbackHead::decode(&mut input) else {
            return encode_results(Status4::BADXDR, b"", &[], out);
        };
        if head.minor_version != MINOR_VERSION {
            return encode_results(Status4::MINOR_VERS_MISMATCH, head.tag, &[], out);
        }
        let mut results = Vec::new();
        let mut status = Status4::OK;
        let begin = out.len();
        for number in 0..head.operations {
            let operation = input.u32().ok().and_then(CallbackOperation::from_number);
            let mut value = Vec::new();
            status = match (operation, number) {
                (Some(CallbackOperation::Sequence), 0) => {
                    match CbSequenceArgs::decode(&mut input) {
                        Ok(arguments) if self.is_repeated(&arguments) => {
                            return out.extend_from_slice(&self.back.reply);
                        }
                        Ok(arguments) => self.begin_callback(&arguments, &mut value),
                        Err(_) => Status4::BADXDR,
                    }
                }
                (Some(CallbackOperation::Sequence), _) => Status4::SEQUENCE_POS,
                (_, 0) => Status4::OP_NOT_IN_SESSION,
                (Some(CallbackOperation::Recall), _) => match CbRecallArgs::decode(&mut input) {
                    Ok(arguments) => self.recall(&arguments, now, io),
                    Err(_) => Status4::BADXDR,
                },
                (Some(CallbackOperation::Illegal) | None, _) => Status4::OP_ILLEGAL,
                (Some(_), _) => Status4::NOTSUPP,
            };
            let operation = operation.unwrap_or(CallbackOperation::Illegal).number();
            results.push((operation, status, value));
            if status != Status4::OK {
                break;
            }
        }
        encode_results(status, head.tag, &results, out);
        if results.first().is_some_and(|(_, status, _)| *status == Status4::OK) {
            self.back.reply = out[begin..].to_vec();
        }
    }

    fn is_repeated(&self, arguments: &CbSequenceArgs) -> bool {
        arguments.session == self.session
            && arguments.slot == 0
            && arguments.sequence == self.back.sequence
            && !self.back.reply.is_empty()
    }

    fn begin_callback(&mut self, arguments: &CbSequenceArgs, value: &mut Vec<u8>) -> Status4 {
        let CbSequenceArgs { session, sequence, slot, .. } = *arguments;
        if session != self.session {
            return Status4::BADSESSION;
        }
        if slot != 0 {
            return Status4::BADSLOT;
        }
        if sequence != self.back.sequence.wrapping_add(1) {
            return Status4::SEQ_MISORDERED;
        }
        self.back.sequence = sequence;
        let (highest_slot, target_highest_slot) = (0, 0);
        CbSequenceOk { session, sequence, slot, highest_slot, target_highest_slot }.encode(value);
        Status4::OK
    }

    fn recall(&mut self, arguments: &CbRecallArgs<'_>, now: Nanos, io: &mut impl Io) -> Status4 {
        self.counters.recalls += 1;
        match self.files.recall(arguments.handle.0, &arguments.state) {
            Some(returned) => {
                if let Some(delegated) = returned {
                    self.give_back(delegated, now, io);
                }
                Status4::OK
            }
            // The reply to the OPEN that brought it may still be on its way. RFC 8881 §2.10.6.3
            None if self.ops.are_opening() => Status4::DELAY,
            None => Status4::BAD_STATEID,
        }
    }

    /// Returns a delegation.
    pub(super) fn give_back(&mut self, delegated: Delegated, now: Nanos, io: &mut impl Io) {
        let free = self.returning.iter().position(Option::is_none);
        let at = free.unwrap_or(self.returning.len());
        match self.returning.get_mut(at) {
            Some(unused) => *unused = Some(delegated),
            None => self.returning.push(Some(delegated)),
        }
        self.start(Task::Return(at), now, io);
    }
}

fn encode_results(
    status: Status4,
    tag: &[u8],
    results: &[(u32, Status4, Vec<u8>)],
    out: &mut Vec<u8>,
) {
    status.encode(out);
    Opaque::<OPAQUE_BYTES_MAX>(tag).encode(out);
    (results.len() as u32).encode(out);
    for (operation, status, value) in results {
        operation.encode(out);
        status.encode(out);
        out.extend_from_slice(value);
    }
}
