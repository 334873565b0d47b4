//! The messages of a session's calls.

use super::opens::{Delegated, owner};
use super::ops::{Access, Op, OpNo, Step, data_of};
use super::slots::with_xid;
use super::{Session4, Task};
use crate::op::{NfsCall, OpenNo};
use crate::parameters::NfsVersion;
use crate::procedure::v4::{self, Context4, Opener, StateCall};
use crate::procedure::{Call, Dialect};
use crate::wire::record;
use crate::wire::rpc::CallWriter;
use crate::wire::v4::{Operation, StateId, share};

impl Session4 {
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
            Task::Op(number) => match self.ops.find(number) {
                Some(op) => match (op.step, op.access) {
                    (Step::Open, Access::Open(open)) => self.encode_open(op, open, context, to),
                    (Step::Close, Access::Open(open)) => of_open(open, to),
                    _ => self.encode_work(number, op, context, to),
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
        match op.by_name {
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
            Access::Delegated(_, state) => state,
        };
        match op.op.call {
            NfsCall::Composed => {
                let message = self.ops.composed(number);
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
                let dialect =
                    Dialect { version: NfsVersion::V4_1, context: Context4 { state, ..context } };
                self.site.with_call(call, |call| call.encode(dialect, to));
            }
        }
    }

    /// Of calls that open nothing.
    fn no_opener(&self) -> Opener<'static> {
        Opener { client_id: self.client_id, owner: &[], access: 0 }
    }
}
