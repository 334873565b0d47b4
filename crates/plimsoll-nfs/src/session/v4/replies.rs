//! The reply to a call in a slot: whether the call was executed, and what its status demands.
//! RFC 8881 §2.10.6, §18.46.3

use std::cell::Cell;

use plimsoll_engine::interface::Io;
use plimsoll_model::units::Nanos;

use super::super::failure::Failure;
use super::super::notes::note_flaws;
use super::establish::State;
use super::{DELAY_PAUSE, Session4, Task, Waiting};
use crate::parameters::NfsVersion;
use crate::procedure::{self, Reply};
use crate::wire::rpc::{ReplyHead, ReplyOutcome};
use crate::wire::v4::{CompoundReply, Operation, Procedure, SequenceOk, Status4};
use crate::wire::xdr::{Decode, XdrError, XdrIn};

/// What became of a call.
enum Fate {
    /// SEQUENCE went well, so the call has been executed.
    Executed(SequenceOk),
    /// SEQUENCE failed, so it has not been executed.
    Barred(Status4),
    /// The RPC layer refused it.
    Refused(ReplyOutcome),
}

/// What a reply says first, its results, and of how many operations they are.
fn read_fate(message: &[u8]) -> Result<(Fate, XdrIn<'_>, u32), XdrError> {
    let mut input = XdrIn::tolerant(message);
    let head = ReplyHead::decode(&mut input)?;
    if head.outcome != ReplyOutcome::Success {
        return Ok((Fate::Refused(head.outcome), input, 0));
    }
    let mut reply = CompoundReply::read(input)?;
    let operations = reply.results;
    let fate = match reply.next(Operation::Sequence)? {
        Status4::OK => Fate::Executed(SequenceOk::decode(&mut reply.input)?),
        status => Fate::Barred(status),
    };
    Ok((fate, input, operations))
}

impl Session4 {
    pub(super) fn on_slot_reply(
        &mut self,
        slot: usize,
        message: &[u8],
        now: Nanos,
        io: &mut impl Io,
    ) {
        let (fate, input, operations) = match read_fate(message) {
            Ok(read) => read,
            Err(error) => {
                self.slots.advance(slot);
                return self.fail_slot(slot, Failure::Undecodable(error), now, io);
            }
        };
        self.count_compound(operations);
        match fate {
            Fate::Executed(sequence) if !self.slots.is_reply(slot, &self.session, &sequence) => {
                self.slots.advance(slot);
                let failure = Failure::Nonsense("the reply is that of another call of its slot");
                self.fail_slot(slot, failure, now, io);
            }
            Fate::Executed(sequence) => {
                self.slots.advance(slot);
                self.slots.limit(sequence.target_highest_slot.saturating_add(1) as usize);
                self.renewed = now;
                self.on_results(slot, message, input, now, io);
            }
            Fate::Barred(status) => self.on_barred(slot, status, now, io),
            Fate::Refused(outcome) => {
                self.fail_slot(slot, Failure::Refused(outcome), now, io);
            }
        }
    }

    fn fail_slot(&mut self, slot: usize, failure: Failure<'_>, now: Nanos, io: &mut impl Io) {
        let Some(flying) = self.slots.end(slot) else { return };
        match flying.task {
            Task::Op(op) if self.ops.is_abandoned(op) => self.finish_abandoned(op, now, io),
            Task::Op(op) => self.fail(op, failure, now, io),
            task => self.on_done(task, now, io),
        }
    }

    /// A call that is not an op's has been answered.
    fn on_done(&mut self, task: Task, now: Nanos, io: &mut impl Io) {
        match task {
            Task::Op(_) | Task::Renew => {}
            Task::Close(open) => self.files.forget(open),
            Task::Return(at) => self.returning[at] = None,
            Task::ReclaimComplete => self.on_reclaimed(now, io),
        }
    }

    /// A call has been executed, and its results are not to be had. RFC 8881 §2.10.6.1.3
    fn on_unknown(&mut self, task: Task, now: Nanos, io: &mut impl Io) {
        match task {
            Task::Op(op) if self.ops.is_abandoned(op) => self.finish_abandoned(op, now, io),
            Task::Op(op) => self.end_unknown(op, now, io),
            task => self.on_done(task, now, io),
        }
    }

    /// Counts a COMPOUND that was answered, with results of `operations` operations.
    pub(super) fn count_compound(&mut self, operations: u32) {
        self.counters.compounds += 1;
        self.counters.operations += u64::from(operations);
    }

    /// SEQUENCE failed: the number of the slot is still to be used.
    fn on_barred(&mut self, slot: usize, status: Status4, now: Nanos, io: &mut impl Io) {
        let Some((flying, _)) = self.slots.get(slot) else { return };
        match status {
            Status4::BADSESSION
            | Status4::DEADSESSION
            | Status4::SEQ_MISORDERED
            | Status4::SEQ_FALSE_RETRY
                if !matches!(self.state, State::Leaving) =>
            {
                // This time it was not executed.
                flying.sends = flying.sends.saturating_sub(1);
                self.rebuild(io);
            }
            Status4::BADSLOT if slot > 0 => {
                self.slots.refuse(slot);
                match self.slots.end(slot).map(|flying| flying.task) {
                    Some(Task::Op(op)) if self.ops.is_abandoned(op) => {
                        self.finish_abandoned(op, now, io);
                    }
                    Some(task) => self.waiting.push_front(Waiting { task, for_slot: true }),
                    None => {}
                }
            }
            Status4::CONN_NOT_BOUND_TO_SESSION => {
                if let Some(connection) = flying.connection.take() {
                    flying.sends = flying.sends.saturating_sub(1);
                    self.links.get(connection).wants_bind = true;
                    self.bind_connections(io);
                }
            }
            Status4::DELAY => {
                flying.sends = flying.sends.saturating_sub(1);
                self.pause(slot, now);
            }
            Status4::RETRY_UNCACHED_REP => {
                self.slots.advance(slot);
                if let Some(flying) = self.slots.end(slot) {
                    self.on_unknown(flying.task, now, io);
                }
            }
            status => {
                let failure = Failure::Status { code: status.0, name: status.name() };
                self.fail_slot(slot, failure, now, io);
            }
        }
    }

    /// The server asks for time: the call of a slot is sent when it has passed.
    fn pause(&mut self, slot: usize, now: Nanos) {
        self.counters.delays += 1;
        if let Some((flying, _)) = self.slots.get(slot) {
            let at = now.saturating_add(DELAY_PAUSE);
            flying.again_at = Some(at);
            self.wake = self.wake.min(at);
        }
    }

    fn on_results(
        &mut self,
        slot: usize,
        message: &[u8],
        input: XdrIn<'_>,
        now: Nanos,
        io: &mut impl Io,
    ) {
        let flaws = Cell::new(input.flaws());
        let reply = Reply::new(NfsVersion::V4_1, input.rest(), &flaws);
        let failed_with = |status: Status4| reply.failure() == Some(status.0);
        let is_delayed = failed_with(Status4::DELAY);
        let Some((flying, _)) = self.slots.get(slot) else { return };
        let task = flying.task;
        if is_delayed && !matches!(task, Task::Op(_)) {
            self.slots.renew(slot, &self.session, self.sequence_at());
            return self.pause(slot, now);
        }
        self.slots.end(slot);
        match task {
            // Set-up reads its replies itself.
            Task::Op(op) if self.ops.is_composed(op) => {
                self.on_op_results(op, message, reply, now, io);
            }
            Task::Op(op) if is_delayed => match self.ops.is_abandoned(op) {
                true => self.finish_abandoned(op, now, io),
                false => self.delay(op, now),
            },
            task if failed_with(Status4::RETRY_UNCACHED_REP) => self.on_unknown(task, now, io),
            Task::Op(op) => self.on_op_results(op, message, reply, now, io),
            task => self.on_done(task, now, io),
        }
        if !flaws.get().is_empty() {
            let service = procedure::service(NfsVersion::V4_1);
            let procedure = Procedure::Compound.number();
            note_flaws(&mut self.counters, service, procedure, flaws.get());
        }
    }
}
