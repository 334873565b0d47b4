//! How ops end: well, badly, before their last call was answered, or not yet because the server asks
//! for time or has lost the session.

use plimsoll_engine::interface::Io;
use plimsoll_model::outcome::{OpStatus, Outcome};
use plimsoll_model::units::Nanos;

use super::super::check::Checked;
use super::super::failure::Failure;
use super::ops::{Access, Op, OpNo, Step};
use super::slots::Flying;
use super::{DELAY_PAUSE_MAX, Session4, Task, Waiting};
use crate::handles::OwnedHandle;
use crate::op::{NfsCall, NfsOp, OpenNo, Presence};
use crate::procedure::Reply;
use crate::procedure::v4::{self, Opened};

impl Session4 {
    /// The op is over.
    pub(super) fn end(&mut self, number: OpNo, outcome: Outcome, now: Nanos, io: &mut impl Io) {
        let Some(op) = self.ops.remove(number) else { return };
        self.leave_delegation(&op, now, io);
        io.complete(op.ticket, outcome);
    }

    pub(super) fn leave_delegation(&mut self, op: &Op, now: Nanos, io: &mut impl Io) {
        if let Access::Delegated(file, state) = op.access
            && let Some(delegated) = self.files.leave_delegation(file, &state)
        {
            self.give_back(delegated, now, io);
        }
    }

    /// The op has failed. No call of it is under way.
    pub(super) fn fail(
        &mut self,
        number: OpNo,
        failure: Failure<'_>,
        now: Nanos,
        io: &mut impl Io,
    ) {
        let Some(op) = self.ops.get(number).copied() else { return };
        self.report_failure(&op, failure, io);
        self.ops.remove(number);
        self.leave_delegation(&op, now, io);
        self.close_for(&op, now, io);
    }

    pub(super) fn report_failure(&mut self, op: &Op, failure: Failure<'_>, io: &mut impl Io) {
        self.succeeded = None;
        self.follow_ons.keep(op.ticket, None);
        let step = match op.step {
            Step::Open => "OPEN: ",
            Step::Work => "",
            Step::Close => "CLOSE: ",
        };
        match op.op.call {
            NfsCall::Composed => io.explain(format_args!("{failure}")),
            call => io.explain(format_args!("{call}: {step}{failure}")),
        }
        let outcome = Outcome {
            kind: op.op.kind,
            status: failure.status(),
            bytes_read: failure.bytes_read(),
            bytes_written: 0,
            ambiguous: op.ambiguous,
        };
        io.complete(op.ticket, outcome);
    }

    /// A file was opened for an op that will not use a delegation of it.
    pub(super) fn opened_unused(
        &mut self,
        open: OpenNo,
        handle: OwnedHandle,
        opened: &Opened<'_>,
        now: Nanos,
        io: &mut impl Io,
    ) {
        self.files.opened(open, handle, opened.state);
        if let Some(delegated) = self.delegated(handle, &opened.delegation) {
            self.give_back(delegated, now, io);
        }
    }

    /// Closes the file of an op that needs it no more, if it is open.
    pub(super) fn close_for(&mut self, op: &Op, now: Nanos, io: &mut impl Io) {
        match op.access {
            Access::Open(open) if self.files.is_kept_open(open) => {}
            Access::Open(open) if self.files.get(open).is_some() => self.close(open, now, io),
            Access::Open(open) => self.files.forget(open),
            Access::Anonymous | Access::Delegated(..) => {}
        }
    }

    /// Closes a file that no op needs any more, unless that is being done.
    pub(super) fn close(&mut self, open: OpenNo, now: Nanos, io: &mut impl Io) {
        if self.files.begin_close(open) {
            self.start(Task::Close(open), now, io);
        }
    }

    /// The op has failed while a call of it may be under way.
    pub(super) fn fail_early(
        &mut self,
        number: OpNo,
        failure: Failure<'_>,
        now: Nanos,
        io: &mut impl Io,
    ) {
        if let Some(op) = self.ops.get(number).copied() {
            self.report_failure(&op, failure, io);
            self.abandon(number, now, io);
        }
    }

    /// Nobody waits for the op any more; its call may still be answered.
    pub(super) fn abandon(&mut self, number: OpNo, now: Nanos, io: &mut impl Io) {
        if self.mark_abandoned(number) {
            self.finish_abandoned(number, now, io);
        }
    }

    /// The same. True: no call of it is under way, so that it is over.
    pub(super) fn mark_abandoned(&mut self, number: OpNo) -> bool {
        let Some(is_delayed) = self.ops.abandon(number) else { return false };
        let waiting = self.waiting.len();
        self.waiting.retain(|waiting| waiting.task != Task::Op(number));
        is_delayed || self.waiting.len() < waiting
    }

    pub(super) fn on_abandoned_results(
        &mut self,
        number: OpNo,
        op: &Op,
        reply: Reply<'_>,
        now: Nanos,
        io: &mut impl Io,
    ) {
        let creates = matches!(op.op.call, NfsCall::Create(_));
        match (op.step, op.access) {
            (Step::Close, Access::Open(open)) => self.files.forget(open),
            (step, Access::Open(open)) if step == Step::Open || creates => {
                if let Ok(opened) = v4::opened(reply.results())
                    && let Some(handle) = opened.made.handle
                {
                    self.opened_unused(open, handle.into(), &opened, now, io);
                }
            }
            _ => {}
        }
        self.finish_abandoned(number, now, io);
    }

    /// An op that has failed has no call under way any more.
    pub(super) fn finish_abandoned(&mut self, number: OpNo, now: Nanos, io: &mut impl Io) {
        let Some(op) = self.ops.remove(number) else { return };
        self.leave_delegation(&op, now, io);
        self.close_for(&op, now, io);
    }

    pub(super) fn fail_all(&mut self, failure: Failure<'_>, now: Nanos, io: &mut impl Io) {
        for number in self.ops.all() {
            self.fail_early(number, failure, now, io);
        }
    }

    /// The server asks for time: the step's call is made again, as a new one.
    pub(super) fn delay(&mut self, number: OpNo, now: Nanos) {
        self.counters.delays += 1;
        let Some(op) = self.ops.get(number) else { return };
        let at = now.saturating_add(op.pause);
        op.pause = op.pause.saturating_add(op.pause).min(DELAY_PAUSE_MAX);
        op.again_at = Some(at);
        self.wake = self.wake.min(at);
    }

    pub(super) fn time_out_ops(&mut self, now: Nanos, io: &mut impl Io) {
        for number in self.ops.all() {
            let Some(op) = self.ops.get(number).copied() else { continue };
            if op.deadline <= now {
                let (after, lost_by) = (self.op_timeout, self.links.lost_by());
                let sends = u32::from(self.state.has_session());
                self.fail_early(number, Failure::Timeout { after, sends, lost_by }, now, io);
                continue;
            }
            self.wake = self.wake.min(op.deadline);
            match op.again_at {
                Some(at) if at <= now => {
                    self.go_on(number, op.step, now, io);
                }
                Some(at) => self.wake = self.wake.min(at),
                None => {}
            }
        }
    }

    /// A call had no reply when its session was lost.
    pub(super) fn repeat_in_new_session(&mut self, flying: Flying, now: Nanos, io: &mut impl Io) {
        let was_sent = flying.sends > 0;
        match flying.task {
            Task::Op(number) if self.ops.is_abandoned(number) => {
                self.finish_abandoned(number, now, io);
            }
            Task::Op(number)
                if was_sent && let Some((open, outcome)) = self.ops.closing(number) =>
            {
                // It may be closed already, so that nothing follows from a second CLOSE.
                self.close(open, now, io);
                self.end(number, outcome, now, io);
            }
            Task::Op(number) => {
                if let Some(op) = self.ops.get(number) {
                    op.ambiguous |= was_sent && op.op.call.changes_names() && op.step == Step::Work;
                }
                self.waiting.push_front(Waiting { task: flying.task, for_slot: false });
            }
            Task::Close(_) | Task::Return(_) => {
                self.waiting.push_back(Waiting { task: flying.task, for_slot: false });
            }
            Task::ReclaimComplete | Task::Renew => {}
        }
    }

    /// The result of an op that was executed is unknown.
    pub(super) fn end_unknown(&mut self, number: OpNo, now: Nanos, io: &mut impl Io) {
        let Some(op) = self.ops.get(number) else { return };
        let (step, call) = (op.step, op.op.call);
        op.ambiguous |= step == Step::Work && call.changes_names();
        let status = match call {
            NfsCall::Remove(_, Presence::Exists) => OpStatus::Ok,
            NfsCall::Remove(_, Presence::Missing) => OpStatus::ExpectedFailure,
            // A second time it does no harm.
            _ => return self.go_on(number, step, now, io),
        };
        self.succeed(number, Checked { status, ..Checked::OK }, now, io);
    }

    /// The server knows nothing of this client any more: what was open is to be opened again.
    pub(super) fn forget_state(&mut self, now: Nanos, io: &mut impl Io) {
        self.files.forget_all();
        for number in self.ops.all() {
            let Some(op) = self.ops.get(number).copied() else { continue };
            if op.access == Access::Anonymous {
                continue;
            }
            if let Some((_, outcome)) = self.ops.closing(number) {
                // Closed by that.
                self.waiting.retain(|waiting| waiting.task != Task::Op(number));
                self.end(number, outcome, now, io);
                continue;
            }
            let (step, access) = self.first_step(&NfsOp { opened: None, ..op.op });
            self.counters.reopened += u64::from(op.step == Step::Work && step == Step::Open);
            if let Some(op) = self.ops.get(number) {
                (op.step, op.access) = (step, access);
            }
        }
        self.waiting.retain(|waiting| !matches!(waiting.task, Task::Close(_) | Task::Return(_)));
        self.returning.clear();
    }
}
