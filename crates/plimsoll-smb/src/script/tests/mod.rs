//! The scripts against the numbers of the method, and against a share that checks them.

mod applications;
mod mix;
mod share;
mod simple;

use plimsoll_engine::interface::{ClientContext, Script, ScriptContext, Step, Ticket};
use plimsoll_model::outcome::{OpStatus, Outcome};
use plimsoll_model::units::Nanos;

use super::*;
use crate::op::Expected;
use crate::parameters::SmbWorkload;
use share::{Moved, Share};

fn plan(clients: u32, scale: f64, change: impl FnOnce(&mut SmbWorkload)) -> Arc<ScriptPlan> {
    let mut workload = SmbWorkload::default();
    change(&mut workload);
    Arc::new(ScriptPlan::new(7, clients, workload, scale))
}

fn client_context(client: u32) -> ClientContext {
    let op_timeout = Nanos(1_000_000_000);
    ClientContext { client, endpoint: 0, seed: 7, op_timeout, nonce: 1 }
}

/// One client in a closed load, one op after another.
struct Client {
    script: SmbScript,
    ops: u64,
    pieces: u64,
}

impl Client {
    fn new(plan: &Arc<ScriptPlan>, client: u32) -> Self {
        let script = SmbScript::new(Arc::clone(plan), &client_context(client));
        Self { script, ops: 0, pieces: 0 }
    }

    /// The next op, already ended; whether the client thought before it.
    fn next(&mut self) -> (SmbCall, bool) {
        let mut thought = false;
        loop {
            match self.script.next(ScriptContext { index: self.ops, due: Nanos(0), now: Nanos(0) })
            {
                Step::Issue(call) => {
                    self.ops += 1;
                    self.script.on_issued(Ticket(0));
                    self.end(&call);
                    return (call, thought);
                }
                Step::Think => {
                    assert!(!thought, "twice in a row");
                    thought = true;
                    self.pieces += 1;
                }
                other => panic!("{other:?}"),
            }
        }
    }

    fn end(&mut self, call: &SmbCall) {
        let outcome = Outcome {
            kind: call.op.kind().into(),
            status: OpStatus::Ok,
            bytes_read: 0,
            bytes_written: 0,
            ambiguous: false,
        };
        self.script.on_outcome(Ticket(0), &outcome, Nanos(0));
    }

    /// Runs `pieces` pieces on a separate share, which answers as the script expects.
    fn work(&mut self, share: &mut Share, pieces: u64, mut each: impl FnMut(&SmbCall)) -> Moved {
        let (mut call, _) = self.next();
        loop {
            let status = share.answer(&call.op);
            match call.expected {
                Expected::Success => assert_eq!(status, 0, "op {}: {call:?}", self.ops),
                Expected::Failure(expected) => {
                    assert_eq!(status, expected, "op {}: {call:?}", self.ops);
                }
                other => panic!("{other:?}"),
            }
            each(&call);
            let thought;
            (call, thought) = self.next();
            if thought && self.pieces > pieces {
                return share.moved;
            }
        }
    }
}
