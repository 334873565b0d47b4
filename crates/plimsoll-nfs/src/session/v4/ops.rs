//! The steps of an op: it opens its file, does its work, closes the file. Each step is a call, and
//! begins when the one before has been answered. Only the work is the op that is measured; OPEN and
//! CLOSE have times of their own.

use std::collections::HashMap;

use plimsoll_engine::interface::{Io, Mark, Ticket, TimeKind};
use plimsoll_model::outcome::{OpStatus, Outcome};
use plimsoll_model::units::Nanos;

use super::super::check::{Check, Checked};
use super::super::failure::Failure;
use super::super::follow_ons::next_block;
use super::opens::{Delegated, owner};
use super::slots::{Flying, with_xid};
use super::{DELAY_PAUSE, DELAY_PAUSE_MAX, Session4, Task, Waiting};
use crate::handles::OwnedHandle;
use crate::op::{Accessed, NfsCall, NfsOp, OpenNo};
use crate::parameters::{NfsVersion, Opens};
use crate::procedure::results::ReplyError;
use crate::procedure::v4::{self, Context4, Opener, StateCall};
use crate::procedure::{Call, Reply};
use crate::wire::record;
use crate::wire::rpc::CallWriter;
use crate::wire::v4::{Delegation, Operation, StateId, Status4, share};

/// An op under way, by its index.
pub(super) type OpNo = usize;

/// What is asked of the server for an op.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Open,
    Work,
    Close,
}

/// By which right an op reads or writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Access {
    /// None is needed, or the anonymous stateid will do.
    Anonymous,
    /// An open file, or one that is to be opened.
    Open(OpenNo),
    /// A delegation of its file.
    Delegated(Accessed),
}

#[derive(Clone, Copy, Debug)]
struct Op {
    ticket: Ticket,
    op: NfsOp,
    /// Without an end by then it has failed.
    deadline: Nanos,
    step: Step,
    access: Access,
    /// When the call of this step was to be sent.
    asked: Nanos,
    /// When it is sent again because the server asked for time.
    again_at: Option<Nanos>,
    pause: Nanos,
    /// A second execution may have had another result than the first.
    ambiguous: bool,
    /// The server has once not known its file to be open.
    reopened: bool,
    /// The work is done, with this outcome, at this time.
    done: Option<(Outcome, Nanos)>,
    /// It has failed, and its last call has no reply yet.
    abandoned: bool,
}

/// The ops of one client.
#[derive(Debug, Default)]
pub(super) struct Ops {
    ops: Vec<Option<Op>>,
    /// Of set-up: the messages of those under way.
    composed: HashMap<OpNo, Vec<u8>>,
    free: Vec<OpNo>,
    under_way: usize,
}

impl Ops {
    fn add(&mut self, op: Op) -> OpNo {
        self.under_way += 1;
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

    fn get(&mut self, number: OpNo) -> Option<&mut Op> {
        self.ops.get_mut(number)?.as_mut()
    }

    fn remove(&mut self, number: OpNo) -> Option<Op> {
        let op = self.ops.get_mut(number)?.take()?;
        if op.op.call == NfsCall::Composed {
            self.composed.remove(&number);
        }
        self.under_way -= usize::from(!op.abandoned);
        self.free.push(number);
        Some(op)
    }

    /// Those that have not ended.
    pub(super) fn under_way(&self) -> usize {
        self.under_way
    }

    pub(super) fn all(&self) -> Vec<OpNo> {
        let is_under_way = |number: &OpNo| self.ops[*number].is_some_and(|op| !op.abandoned);
        (0..self.ops.len()).filter(is_under_way).collect()
    }

    pub(super) fn is_abandoned(&self, number: OpNo) -> bool {
        self.ops.get(number).copied().flatten().is_none_or(|op| op.abandoned)
    }

    /// When an op asked for the call of its work, if that is what it waits for.
    pub(super) fn asked(&self, number: OpNo) -> Option<(Ticket, Nanos)> {
        let op = self.ops.get(number).copied().flatten()?;
        (op.step == Step::Work).then_some((op.ticket, op.asked))
    }

    /// A reply may be on its way that brings a delegation.
    pub(super) fn are_opening(&self) -> bool {
        self.ops.iter().flatten().any(|op| op.step == Step::Open)
    }
}

/// File of an op that reads or writes, and whether it writes.
fn data_of(call: NfsCall) -> Option<(Accessed, bool)> {
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
            asked: now,
            again_at: None,
            pause: DELAY_PAUSE,
            ambiguous: false,
            reopened: false,
            done: None,
            abandoned: false,
        });
        if op.call == NfsCall::Composed {
            self.ops.composed.insert(number, std::mem::take(&mut self.composed));
        }
        self.start(Task::Op(number), now, io);
    }

    fn first_step(&mut self, op: &NfsOp) -> (Step, Access) {
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
            return (Step::Work, Access::Delegated(file));
        }
        if let Some(held) = self.files.held(file, to_write) {
            return (Step::Work, Access::Open(held));
        }
        (Step::Open, Access::Open(self.files.begin(*self.site.file(file))))
    }

    /// Appends the message of a call, with its record mark and a blank SEQUENCE.
    pub(super) fn encode(&self, task: Task, xid: u32, out: &mut Vec<u8>) {
        let mark = record::begin(out);
        let to = CallWriter { xid, credential: &self.site.credential, out };
        let context = Context4::new(self.site.attributes);
        let of_open = |open, to| {
            let (handle, state) = self.files.get(open).unwrap_or_default();
            let context = Context4 { state: state.newest(), ..context };
            v4::encode_state(StateCall::Close(&handle), self.no_opener(), context, to);
        };
        match task {
            Task::Op(number) => match self.ops.ops.get(number).copied().flatten() {
                Some(op) => match (op.step, op.access) {
                    (Step::Open, Access::Open(open)) => self.encode_open(&op, open, context, to),
                    (Step::Close, Access::Open(open)) => of_open(open, to),
                    _ => self.encode_work(number, &op, context, to),
                },
                None => Call::Null.encode(self.site.dialect(), to),
            },
            Task::ReclaimComplete => {
                v4::encode_behind_sequence(Operation::ReclaimComplete, &false, to);
            }
            Task::Renew => Call::Null.encode(self.site.dialect(), to),
            Task::Close(open) => of_open(open, to),
            Task::Return(at) => {
                let (handle, state) = match self.returning.get(at).copied().flatten() {
                    Some(Delegated { handle, state, .. }) => (handle, state),
                    None => Default::default(),
                };
                let context = Context4 { state, ..context };
                let call = StateCall::ReturnDelegation(&handle);
                v4::encode_state(call, self.no_opener(), context, to);
            }
        }
        record::finish(out, mark);
    }

    fn encode_open(&self, op: &Op, open: OpenNo, context: Context4, to: CallWriter<'_>) {
        let Some((file, to_write)) = data_of(op.op.call) else { return };
        let access = if to_write { share::WRITE } else { share::READ };
        let want = if self.site.session.delegations { share::WANT_ANY } else { share::WANT_NONE };
        let name = owner(open);
        let opener = Opener { client_id: self.client_id, owner: &name, access: access | want };
        match self.opens_by_name {
            false => {
                v4::encode_state(StateCall::Open(self.site.file(file)), opener, context, to);
            }
            true => {
                let (dir, name) = (self.site.dir(file.file().directory()), file.file().name());
                let call = StateCall::OpenByName(dir, name.as_bytes());
                v4::encode_state(call, opener, context, to);
            }
        }
    }

    fn encode_work(&self, number: OpNo, op: &Op, context: Context4, to: CallWriter<'_>) {
        let state = match op.access {
            Access::Anonymous => StateId::ANONYMOUS,
            Access::Open(open) => {
                self.files.get(open).map_or(StateId::ANONYMOUS, |(_, state)| state.newest())
            }
            Access::Delegated(file) => self.files.delegation_state(file).unwrap_or_default(),
        };
        match op.op.call {
            NfsCall::Composed => {
                let message = self.ops.composed.get(&number).map_or(&[][..], |message| message);
                with_xid(to.xid, message, to.out);
            }
            NfsCall::Create(slot) => {
                let name = match op.access {
                    Access::Open(open) => owner(open),
                    _ => [0; 8],
                };
                let access = share::WRITE | share::WANT_NONE;
                let opener = Opener { client_id: self.client_id, owner: &name, access };
                let (dir, name) = (self.site.dir(slot.directory()), slot.name());
                let call = StateCall::OpenNew(dir, name.as_bytes());
                v4::encode_state(call, opener, context, to);
            }
            call => {
                let dialect = crate::procedure::Dialect {
                    version: NfsVersion::V4_1,
                    context: Context4 { state, ..context },
                };
                self.site.with_call(call, |call| call.encode(dialect, to));
            }
        }
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
            Step::Work => self.on_worked(number, &op, message, reply, now, io),
            Step::Close => self.on_closed(number, reply, now, io),
        }
    }

    fn on_opened(&mut self, number: OpNo, op: &Op, reply: Reply<'_>, now: Nanos, io: &mut impl Io) {
        let (Access::Open(open), Some((file, to_write))) = (op.access, data_of(op.op.call)) else {
            return;
        };
        let opened = match v4::opened(reply.results()) {
            Ok(opened) => opened,
            Err(ReplyError::Status { code, .. })
                if code == Status4::INVAL.0 && !self.opens_by_name =>
            {
                self.opens_by_name = true;
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
        self.keep_delegation(file, handle, &opened.delegation, now, io);
        io.mark(op.ticket, Mark::Preceded(TimeKind::Open));
        self.go_on(number, Step::Work, now, io);
    }

    fn keep_delegation(
        &mut self,
        file: Accessed,
        handle: OwnedHandle,
        delegation: &Delegation<'_>,
        now: Nanos,
        io: &mut impl Io,
    ) {
        let (state, to_write, is_recalled) = match delegation {
            Delegation::Read(read) => (read.state, false, read.recall),
            Delegation::Write(write) => (write.state, true, write.recall),
            Delegation::None | Delegation::Refused { .. } => return,
        };
        self.counters.delegations += 1;
        let delegated = Delegated { handle, state, to_write, users: 0, is_recalled };
        // Some servers give what nobody wanted.
        if is_recalled || !self.site.session.delegations || self.files.is_delegated(file) {
            return self.give_back(delegated, now, io);
        }
        self.files.delegate(file, delegated);
    }

    /// Sends the call of a step.
    fn go_on(&mut self, number: OpNo, step: Step, now: Nanos, io: &mut impl Io) {
        let Some(op) = self.ops.get(number) else { return };
        (op.step, op.asked, op.again_at) = (step, now, None);
        self.start(Task::Op(number), now, io);
    }

    fn on_worked(
        &mut self,
        number: OpNo,
        op: &Op,
        message: &[u8],
        reply: Reply<'_>,
        now: Nanos,
        io: &mut impl Io,
    ) {
        if op.op.call == NfsCall::Composed {
            self.answers.push_back(message.to_vec());
            return self.succeed(number, Checked::OK, now, io);
        }
        if let Err(ReplyError::Status { code, .. }) = reply.status()
            && is_lost_state(Status4(code))
            && matches!(op.access, Access::Open(_) | Access::Delegated(_))
            && !op.reopened
        {
            return self.reopen(number, op, now, io);
        }
        if let (NfsCall::Create(_), Access::Open(open)) = (op.op.call, op.access)
            && let Ok(opened) = v4::opened(reply.results())
            && let Some(handle) = opened.made.handle
        {
            self.counters.opens += 1;
            self.files.opened(open, handle.into(), opened.state);
        }
        let check = Check { site: &self.site, call: op.op.call, resent: op.ambiguous };
        match check.evaluate_results(reply, &mut self.run) {
            Ok(checked) => self.succeed(number, checked, now, io),
            Err(failure) => self.fail(number, failure, now, io),
        }
    }

    /// The server does not know the file to be open, or has taken the delegation away.
    fn reopen(&mut self, number: OpNo, op: &Op, now: Nanos, io: &mut impl Io) {
        let Some((file, _)) = data_of(op.op.call) else { return };
        self.counters.reopened += 1;
        match op.access {
            Access::Open(open) => self.files.forget(open),
            Access::Delegated(file) => self.files.forget_delegation(file),
            Access::Anonymous => {}
        }
        let open = self.files.begin(*self.site.file(file));
        if let Some(op) = self.ops.get(number) {
            (op.access, op.reopened) = (Access::Open(open), true);
        }
        self.go_on(number, Step::Open, now, io);
    }

    fn succeed(&mut self, number: OpNo, checked: Checked, now: Nanos, io: &mut impl Io) {
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
            && !self.files.is_held(open)
        {
            io.mark(op.ticket, Mark::Complete);
            if let Some(op) = self.ops.get(number) {
                op.done = Some((outcome, now));
            }
            return self.go_on(number, Step::Close, now, io);
        }
        let opened = match op.access {
            Access::Open(open) if !self.files.is_held(open) => Some(open),
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

    /// The op is over.
    fn end(&mut self, number: OpNo, outcome: Outcome, now: Nanos, io: &mut impl Io) {
        let Some(op) = self.ops.remove(number) else { return };
        self.leave_delegation(&op, now, io);
        io.complete(op.ticket, outcome);
    }

    fn leave_delegation(&mut self, op: &Op, now: Nanos, io: &mut impl Io) {
        if let Access::Delegated(file) = op.access
            && let Some(delegated) = self.files.leave_delegation(file)
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

    fn report_failure(&mut self, op: &Op, failure: Failure<'_>, io: &mut impl Io) {
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

    /// Closes the file of an op that needs it no more, if it is open.
    fn close_for(&mut self, op: &Op, now: Nanos, io: &mut impl Io) {
        let Access::Open(open) = op.access else { return };
        if self.files.is_held(open) {
            return;
        }
        match self.files.get(open) {
            Some(_) if op.step != Step::Close => self.start(Task::Close(open), now, io),
            _ => self.files.forget(open),
        }
    }

    /// The op has failed while a call of it may be under way.
    fn fail_early(&mut self, number: OpNo, failure: Failure<'_>, io: &mut impl Io) {
        if let Some(op) = self.ops.get(number).copied() {
            self.report_failure(&op, failure, io);
            self.abandon(number);
        }
    }

    /// Nobody waits for the op any more; its call may still be answered.
    pub(super) fn abandon(&mut self, number: OpNo) {
        if let Some(op) = self.ops.get(number).filter(|op| !op.abandoned) {
            op.abandoned = true;
            self.ops.under_way -= 1;
        }
    }

    fn on_abandoned_results(
        &mut self,
        number: OpNo,
        op: &Op,
        reply: Reply<'_>,
        now: Nanos,
        io: &mut impl Io,
    ) {
        let is_open = op.step == Step::Open || matches!(op.op.call, NfsCall::Create(_));
        if let (true, Access::Open(open)) = (is_open && op.step != Step::Close, op.access)
            && let Ok(opened) = v4::opened(reply.results())
            && let Some(handle) = opened.made.handle
        {
            self.files.opened(open, handle.into(), opened.state);
        }
        self.finish_abandoned(number, now, io);
    }

    /// An op that has failed has no call under way any more.
    pub(super) fn finish_abandoned(&mut self, number: OpNo, now: Nanos, io: &mut impl Io) {
        let Some(op) = self.ops.remove(number) else { return };
        self.leave_delegation(&op, now, io);
        self.close_for(&op, now, io);
    }

    pub(super) fn fail_all(&mut self, failure: Failure<'_>, io: &mut impl Io) {
        for number in self.ops.all() {
            self.fail_early(number, failure, io);
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
                self.fail_early(number, Failure::Timeout { after, sends, lost_by }, io);
                if op.again_at.is_some() {
                    self.finish_abandoned(number, now, io);
                }
                continue;
            }
            self.wake = self.wake.min(op.deadline);
            match op.again_at {
                Some(at) if at <= now => {
                    if let Some(op) = self.ops.get(number) {
                        op.again_at = None;
                    }
                    self.start(Task::Op(number), now, io);
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
            Task::Op(number) => {
                if let Some(op) = self.ops.get(number) {
                    let modifies = matches!(op.op.call, NfsCall::Create(_) | NfsCall::Remove(..));
                    op.ambiguous |= was_sent && modifies && op.step == Step::Work;
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
        if matches!(op.op.call, NfsCall::Create(_) | NfsCall::Remove(..)) {
            op.ambiguous = true;
            let status = OpStatus::Ok;
            return self.succeed(number, Checked { status, ..Checked::OK }, now, io);
        }
        let step = op.step;
        self.go_on(number, step, now, io);
    }

    /// The server knows nothing of this client any more: what was open is to be opened again.
    pub(super) fn forget_state(&mut self, now: Nanos, io: &mut impl Io) {
        self.files.forget_all();
        for number in 0..self.ops.ops.len() {
            let Some(op) = self.ops.get(number).copied() else { continue };
            if op.access == Access::Anonymous {
                continue;
            }
            if let (Step::Close, Some((outcome, _))) = (op.step, op.done) {
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
    }

    /// Of calls that open nothing.
    fn no_opener(&self) -> Opener<'static> {
        Opener { client_id: self.client_id, owner: &[], access: 0 }
    }

    /// The op is a call of set-up, which reads its own replies.
    pub(super) fn is_composed(&self, number: OpNo) -> bool {
        let op = self.ops.ops.get(number).copied().flatten();
        op.is_some_and(|op| op.op.call == NfsCall::Composed)
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
