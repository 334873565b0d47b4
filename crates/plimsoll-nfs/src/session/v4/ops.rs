//! The steps of an op: it opens its file, does its work, closes the file. Each step is a call, and
//! begins when the one before has been answered. Only the work is the op that is measured; OPEN and
//! CLOSE have times of their own.

use std::collections::HashMap;

use plimsoll_engine::interface::{Io, Mark, Ticket, TimeKind};
use plimsoll_model::outcome::Outcome;
use plimsoll_model::units::Nanos;

use super::super::check::{Check, Checked};
use super::super::follow_ons::next_block;
use super::opens::Delegated;
use super::{DELAY_PAUSE, Session4, Task};
use crate::handles::OwnedHandle;
use crate::op::{Accessed, NfsCall, NfsOp, OpenNo};
use crate::parameters::Opens;
use crate::procedure::results::ReplyError;
use crate::procedure::{Reply, v4};
use crate::wire::v4::{Delegation, StateId, Status4};

/// An op under way, by its index.
pub(super) type OpNo = usize;

/// What is asked of the server for an op.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Open,
    Work,
    Close,
}

/// By which right an op reads or writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    /// None is needed, or the anonymous stateid will do.
    Anonymous,
    /// An open file, or one that is to be opened.
    Open(OpenNo),
    /// A delegation of its file, with this state.
    Delegated(Accessed, StateId),
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Op {
    pub(super) ticket: Ticket,
    pub(super) op: NfsOp,
    /// Without an end by then it has failed.
    pub(super) deadline: Nanos,
    pub(super) step: Step,
    pub(super) access: Access,
    /// When the call of this step was to be sent.
    pub(super) requested_at: Nanos,
    /// When it is sent again because the server asked for time.
    pub(super) again_at: Option<Nanos>,
    pub(super) pause: Nanos,
    /// A second execution may have had another result than the first.
    pub(super) ambiguous: bool,
    /// The server has once not known its file to be open.
    pub(super) reopened: bool,
    /// Its work has been requested once. An OPEN after that is part of its time.
    pub(super) has_begun: bool,
    /// Its file is opened by its name.
    pub(super) by_name: bool,
    /// The work is done, with this outcome, at this time.
    pub(super) done: Option<(Outcome, Nanos)>,
    /// It has failed, and its last call has no reply yet.
    pub(super) abandoned: bool,
}

/// The ops of one client.
#[derive(Debug, Default)]
pub(super) struct Ops {
    ops: Vec<Option<Op>>,
    /// Of set-up: the messages of those under way.
    composed: HashMap<OpNo, Vec<u8>>,
    free: Vec<OpNo>,
    in_progress: usize,
}

impl Ops {
    fn add(&mut self, op: Op) -> OpNo {
        self.in_progress += 1;
        match self.free.pop() {
            Some(number) => {
                self.ops[number] = Some(op);
                number
            }
            None => {
                self.ops.push(Some(op));
                self.ops.len() - 1
            }
        }
    }

    pub(super) fn get(&mut self, number: OpNo) -> Option<&mut Op> {
        self.ops.get_mut(number)?.as_mut()
    }

    /// The op of an index, while there is one.
    pub(super) fn find(&self, number: OpNo) -> Option<&Op> {
        self.ops.get(number)?.as_ref()
    }

    /// Message of a call of set-up.
    pub(super) fn composed(&self, number: OpNo) -> &[u8] {
        self.composed.get(&number).map_or(&[], Vec::as_slice)
    }

    pub(super) fn remove(&mut self, number: OpNo) -> Option<Op> {
        let op = self.ops.get_mut(number)?.take()?;
        if op.op.call == NfsCall::Composed {
            self.composed.remove(&number);
        }
        self.in_progress -= usize::from(!op.abandoned);
        self.free.push(number);
        Some(op)
    }

    /// Nobody waits for the end of an op any more. Answers with whether the server asked for time.
    pub(super) fn abandon(&mut self, number: OpNo) -> Option<bool> {
        let op = self.get(number).filter(|op| !op.abandoned)?;
        op.abandoned = true;
        let is_delayed = op.again_at.is_some();
        self.in_progress -= 1;
        Some(is_delayed)
    }

    /// Those that have not ended.
    pub(super) fn in_progress(&self) -> usize {
        self.in_progress
    }

    pub(super) fn all(&self) -> Vec<OpNo> {
        let is_in_progress = |number: &OpNo| self.ops[*number].is_some_and(|op| !op.abandoned);
        (0..self.ops.len()).filter(is_in_progress).collect()
    }

    pub(super) fn is_abandoned(&self, number: OpNo) -> bool {
        self.find(number).is_none_or(|op| op.abandoned)
    }

    /// When an op asked for the call of its work, if that is what it waits for.
    pub(super) fn requested_at(&self, number: OpNo) -> Option<(Ticket, Nanos)> {
        let op = self.find(number)?;
        (op.step == Step::Work).then_some((op.ticket, op.requested_at))
    }

    /// An op reads or writes the open file.
    pub(super) fn use_file(&self, open: OpenNo) -> bool {
        self.ops.iter().flatten().any(|op| op.access == Access::Open(open))
    }

    /// The outcome of an op whose work is done, and the file that it closes.
    pub(super) fn closing(&self, number: OpNo) -> Option<(OpenNo, Outcome)> {
        match self.find(number)? {
            Op {
                step: Step::Close, access: Access::Open(open), done: Some((outcome, _)), ..
            } => Some((*open, *outcome)),
            _ => None,
        }
    }

    /// It is a call of set-up, which reads its own replies.
    pub(super) fn is_composed(&self, number: OpNo) -> bool {
        self.find(number).is_some_and(|op| op.op.call == NfsCall::Composed)
    }

    /// A reply may be on its way that brings a delegation.
    pub(super) fn are_opening(&self) -> bool {
        self.ops.iter().flatten().any(|op| op.step == Step::Open)
    }
}

/// File of an op that reads or writes, and whether it writes.
pub(super) fn data_of(call: NfsCall) -> Option<(Accessed, bool)> {
    match call {
        NfsCall::Read(span, _) => Some((span.file, false)),
        NfsCall::Write(span, _) => Some((span.file, true)),
        _ => None,
    }
}

impl Session4 {
    /// An op begins.
    pub(super) fn begin(&mut self, ticket: Ticket, op: NfsOp, now: Nanos, io: &mut impl Io) {
        let (step, access) = self.first_step(&op);
        let deadline = now.saturating_add(self.op_timeout);
        self.wake = self.wake.min(deadline);
        let number = self.ops.add(Op {
            ticket,
            op,
            deadline,
            step,
            access,
            requested_at: now,
            again_at: None,
            pause: DELAY_PAUSE,
            ambiguous: false,
            reopened: false,
            has_begun: step == Step::Work,
            by_name: self.opens_by_name,
            done: None,
            abandoned: false,
        });
        if op.call == NfsCall::Composed {
            self.ops.composed.insert(number, std::mem::take(&mut self.composed));
        }
        self.start(Task::Op(number), now, io);
    }

    pub(super) fn first_step(&mut self, op: &NfsOp) -> (Step, Access) {
        if let NfsCall::Create(slot) = op.call {
            let dir = *self.site.dir(slot.directory());
            return (Step::Work, Access::Open(self.files.begin(dir)));
        }
        let opens = self.site.session.opens;
        let Some((file, to_write)) = data_of(op.call).filter(|_| opens != Opens::Anonymous) else {
            return (Step::Work, Access::Anonymous);
        };
        if let Some(open) = op.opened {
            return (Step::Work, Access::Open(open));
        }
        if let Some(delegated) = self.files.delegation(file, to_write) {
            delegated.users += 1;
            return (Step::Work, Access::Delegated(file, delegated.state));
        }
        if let Some(kept_open) = self.files.kept_open(file, to_write) {
            return (Step::Work, Access::Open(kept_open));
        }
        (Step::Open, Access::Open(self.files.begin(*self.site.file(file))))
    }

    /// The results of an op's call; the server did not ask for time.
    pub(super) fn on_op_results(
        &mut self,
        number: OpNo,
        message: &[u8],
        reply: Reply<'_>,
        now: Nanos,
        io: &mut impl Io,
    ) {
        let Some(op) = self.ops.get(number).copied() else { return };
        if op.abandoned {
            return self.on_abandoned_results(number, &op, reply, now, io);
        }
        match op.step {
            Step::Open => self.on_opened(number, &op, reply, now, io),
            Step::Work => self.on_worked(number, message, reply, now, io),
            Step::Close => self.on_closed(number, reply, now, io),
        }
    }

    fn on_opened(&mut self, number: OpNo, op: &Op, reply: Reply<'_>, now: Nanos, io: &mut impl Io) {
        let (Access::Open(open), Some((file, to_write))) = (op.access, data_of(op.op.call)) else {
            return;
        };
        let opened = match v4::opened(reply.results()) {
            Ok(opened) => opened,
            Err(ReplyError::Status { code, .. }) if code == Status4::INVAL.0 && !op.by_name => {
                self.opens_by_name = true;
                if let Some(op) = self.ops.get(number) {
                    op.by_name = true;
                }
                return self.go_on(number, Step::Open, now, io);
            }
            Err(error) => return self.fail(number, error.into(), now, io),
        };
        self.counters.opens += 1;
        let handle = *self.site.file(file);
        self.files.opened(open, handle, opened.state);
        if self.site.session.opens == Opens::Held {
            self.files.hold(file, to_write, open);
        }
        if let Some(delegated) = self.delegated(handle, &opened.delegation) {
            self.keep_delegation(file, delegated, now, io);
        }
        if !op.has_begun {
            io.mark(op.ticket, Mark::Preceded(TimeKind::Open));
        }
        if let Some(op) = self.ops.get(number) {
            op.has_begun = true;
        }
        self.go_on(number, Step::Work, now, io);
    }

    /// What an OPEN brought.
    pub(super) fn delegated(
        &mut self,
        handle: OwnedHandle,
        delegation: &Delegation<'_>,
    ) -> Option<Delegated> {
        let (state, to_write, is_recalled) = match delegation {
            Delegation::Read(read) => (read.state, false, read.recall),
            Delegation::Write(write) => (write.state, true, write.recall),
            Delegation::None | Delegation::Refused { .. } => return None,
        };
        self.counters.delegations += 1;
        Some(Delegated { handle, state, to_write, users: 0, is_recalled })
    }

    fn keep_delegation(
        &mut self,
        file: Accessed,
        delegated: Delegated,
        now: Nanos,
        io: &mut impl Io,
    ) {
        // Some servers give what nobody wanted.
        if delegated.is_recalled || !self.site.session.delegations || self.files.is_delegated(file)
        {
            return self.give_back(delegated, now, io);
        }
        self.files.delegate(file, delegated);
    }

    /// Sends the call of a step.
    pub(super) fn go_on(&mut self, number: OpNo, step: Step, now: Nanos, io: &mut impl Io) {
        let Some(op) = self.ops.get(number) else { return };
        (op.step, op.requested_at, op.again_at) = (step, now, None);
        self.start(Task::Op(number), now, io);
    }

    fn on_worked(
        &mut self,
        number: OpNo,
        message: &[u8],
        reply: Reply<'_>,
        now: Nanos,
        io: &mut impl Io,
    ) {
        let Some(op) = self.ops.find(number).copied() else { return };
        if op.op.call == NfsCall::Composed {
            self.answers.push_back(message.to_vec());
            return self.succeed(number, Checked::OK, now, io);
        }
        if reply.failure().is_some_and(|code| is_lost_state(Status4(code)))
            && op.access != Access::Anonymous
            && !op.reopened
            && let Some((file, to_write)) = data_of(op.op.call)
        {
            return self.reopen(number, (file, to_write), op.access, now, io);
        }
        if let (NfsCall::Create(_), Access::Open(open)) = (op.op.call, op.access)
            && let Ok(opened) = v4::opened(reply.results())
            && let Some(handle) = opened.made.handle
        {
            self.counters.opens += 1;
            self.opened_unused(open, handle.into(), &opened, now, io);
        }
        let check = Check { site: &self.site, call: op.op.call, resent: op.ambiguous };
        match check.evaluate_results(reply, &mut self.run) {
            Ok(checked) => self.succeed(number, checked, now, io),
            Err(failure) => self.fail(number, failure, now, io),
        }
    }

    /// An open file that is to stay open is no longer the one of its file.
    fn is_stale(&self, open: OpenNo, file: Accessed, to_write: bool) -> bool {
        let stays_open = self.site.session.opens == Opens::Held;
        stays_open && self.files.kept_open(file, to_write) != Some(open)
    }

    /// The server does not know the file to be open, or has taken the delegation away.
    fn reopen(
        &mut self,
        number: OpNo,
        (file, to_write): (Accessed, bool),
        access: Access,
        now: Nanos,
        io: &mut impl Io,
    ) {
        self.counters.reopened += 1;
        match access {
            // Another op that used it may have found that out before.
            Access::Open(open) if self.is_stale(open, file, to_write) => {}
            Access::Open(open) => self.files.forget(open),
            Access::Delegated(file, state) => self.files.forget_delegation(file, &state),
            Access::Anonymous => {}
        }
        let open = self.files.begin(*self.site.file(file));
        if let Some(op) = self.ops.get(number) {
            (op.access, op.reopened) = (Access::Open(open), true);
        }
        self.go_on(number, Step::Open, now, io);
    }

    pub(super) fn succeed(&mut self, number: OpNo, checked: Checked, now: Nanos, io: &mut impl Io) {
        let Some(op) = self.ops.get(number).copied() else { return };
        self.counters.verified += u64::from(checked.verified);
        self.succeeded = Some(op.op.kind);
        let outcome = Outcome {
            kind: op.op.kind,
            status: checked.status,
            bytes_read: checked.bytes_read,
            bytes_written: checked.bytes_written,
            ambiguous: op.ambiguous,
        };
        let next = next_block(op.op);
        if let Access::Open(open) = op.access
            && next.is_none()
            && !self.files.is_kept_open(open)
        {
            io.mark(op.ticket, Mark::Complete);
            if let Some(op) = self.ops.get(number) {
                op.done = Some((outcome, now));
            }
            return self.go_on(number, Step::Close, now, io);
        }
        let opened = match op.access {
            Access::Open(open) if !self.files.is_kept_open(open) => Some(open),
            _ => None,
        };
        self.follow_ons.keep(op.ticket, next.map(|next| NfsOp { opened, ..next }));
        self.end(number, outcome, now, io);
    }

    fn on_closed(&mut self, number: OpNo, reply: Reply<'_>, now: Nanos, io: &mut impl Io) {
        let Some(op) = self.ops.get(number).copied() else { return };
        let (Access::Open(open), Some((outcome, done_at))) = (op.access, op.done) else { return };
        self.files.forget(open);
        match v4::closed(reply.results()) {
            Ok(()) => {
                let took = now.saturating_sub(done_at).0;
                io.mark(op.ticket, Mark::Value(TimeKind::Close, took));
                self.follow_ons.keep(op.ticket, None);
                self.end(number, outcome, now, io);
            }
            Err(error) => self.fail(number, error.into(), now, io),
        }
    }
}

/// The server does not know the state, or has newer state of the same file.
fn is_lost_state(status: Status4) -> bool {
    matches!(
        status,
        Status4::BAD_STATEID
            | Status4::OLD_STATEID
            | Status4::STALE_STATEID
            | Status4::EXPIRED
            | Status4::ADMIN_REVOKED
            | Status4::DELEG_REVOKED
    )
}
