//! The smallest protocol there is: a request is its number in eight bytes, the reply the same.
//! Stands in for real protocols where the engine itself is under test.

use plimsoll_engine::interface::{
    ClientContext, Io, Link, LinkError, LinkKind, Script, ScriptContext, Session, Step, Ticket,
};
use plimsoll_engine::rng::{Random, Stream};
use plimsoll_engine::worker::WorkerContext;
use plimsoll_engine::workload::Workload;
use plimsoll_model::outcome::{ErrorClass, OpKind, OpNames, OpStatus, Outcome};
use plimsoll_model::units::Nanos;

use crate::sim::MESSAGE_BYTES;

/// One client's connection; one op in flight.
pub struct EchoSession {
    op_timeout: Nanos,
    link: Option<Link>,
    open: bool,
    in_flight: Option<(Ticket, u64, Nanos)>,
    inbox: Vec<u8>,
}

impl EchoSession {
    /// Not connected yet.
    pub fn new(context: ClientContext) -> Self {
        Self {
            op_timeout: context.op_timeout,
            link: None,
            open: false,
            in_flight: None,
            inbox: Vec::new(),
        }
    }

    fn end(&mut self, status: OpStatus, io: &mut impl Io) {
        if let Some((ticket, ..)) = self.in_flight.take() {
            let read = u64::from(status == OpStatus::Ok) * MESSAGE_BYTES as u64;
            let outcome = Outcome {
                kind: OpKind(0),
                status,
                bytes_read: read,
                bytes_written: MESSAGE_BYTES as u64,
                ambiguous: false,
            };
            io.complete(ticket, outcome);
        }
    }

    fn drop_link(&mut self, io: &mut impl Io) {
        if let Some(link) = self.link.take() {
            io.close(link);
        }
        self.open = false;
        self.inbox.clear();
    }
}

impl Session for EchoSession {
    type Op = u64;

    fn kind(&self, _op: &u64) -> OpKind {
        OpKind(0)
    }

    fn has_room(&self) -> bool {
        self.in_flight.is_none()
    }

    fn issue(&mut self, ticket: Ticket, op: u64, now: Nanos, io: &mut impl Io) {
        self.in_flight = Some((ticket, op, now + self.op_timeout));
        let link = *self.link.get_or_insert_with(|| io.connect(LinkKind::Stream));
        if self.open {
            io.send(link, &op.to_be_bytes());
        }
    }

    fn on_connected(&mut self, link: Link, _now: Nanos, io: &mut impl Io) {
        self.open = true;
        if let Some((_, number, _)) = self.in_flight {
            io.send(link, &number.to_be_bytes());
        }
    }

    fn on_bytes(&mut self, _link: Link, bytes: &[u8], _now: Nanos, io: &mut impl Io) {
        if self.in_flight.is_none() {
            self.drop_link(io);
            io.explain(format_args!("{} bytes too many", bytes.len()));
            return io.report_trailing_bytes(OpKind(0));
        }
        self.inbox.extend_from_slice(bytes);
        if self.inbox.len() >= MESSAGE_BYTES {
            let reply: Vec<u8> = self.inbox.drain(..MESSAGE_BYTES).collect();
            let right =
                self.in_flight.is_some_and(|(_, number, _)| number.to_be_bytes()[..] == reply);
            let wrong = OpStatus::Failed(ErrorClass::Corrupt);
            self.end(if right { OpStatus::Ok } else { wrong }, io);
        }
    }

    fn on_discarded(&mut self, _link: Link, _n: u64, _now: Nanos, _io: &mut impl Io) {}

    fn on_eof(&mut self, _link: Link, _now: Nanos, io: &mut impl Io) {
        self.drop_link(io);
        self.end(OpStatus::Failed(ErrorClass::Transport), io);
    }

    fn on_failed(&mut self, _link: Link, error: LinkError, _now: Nanos, io: &mut impl Io) {
        self.link = None;
        self.open = false;
        io.explain(format_args!("{error}"));
        self.end(OpStatus::Failed(error.class), io);
    }

    fn next_deadline(&self) -> Option<Nanos> {
        self.in_flight.map(|(_, _, deadline)| deadline)
    }

    fn on_timer(&mut self, _now: Nanos, io: &mut impl Io) {
        self.drop_link(io);
        self.end(OpStatus::Failed(ErrorClass::Timeout), io);
    }
}

/// Sends numbers that depend on seed, client and index alone.
pub struct EchoScript {
    seed: u64,
    client: u32,
}

impl Script for EchoScript {
    type Op = u64;

    fn next(&mut self, context: ScriptContext) -> Step<u64> {
        let key = u64::from(self.client) << 40 | context.index;
        Step::Issue(Random::new(self.seed, Stream::Script, key).bits())
    }
}

/// The echo workload.
pub struct Echo;

impl Workload for Echo {
    fn op_names(&self) -> OpNames {
        OpNames(vec!["echo".to_owned()])
    }

    fn run_worker(&self, context: WorkerContext<'_>) {
        context.drive(|client| {
            let script = EchoScript { seed: client.seed, client: client.client };
            (EchoSession::new(client), script)
        });
    }
}
