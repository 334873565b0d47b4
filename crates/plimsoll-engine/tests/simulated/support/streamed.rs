//! A protocol whose replies come in two chunks. Simulates streamed ones, on a driver that reports
//! everything twice.

use plimsoll_engine::interface::{
    First, Io, Link, LinkError, LinkKind, Mark, Script, ScriptContext, Session, Step, Ticket,
    TimeKind,
};
use plimsoll_engine::worker::WorkerContext;
use plimsoll_engine::workload::Workload;
use plimsoll_model::outcome::{ErrorClass, OpKind, OpNames, OpStatus, Outcome};
use plimsoll_model::units::Nanos;
use plimsoll_testkit::sim::MESSAGE_BYTES;

/// The workload.
pub struct Streamed {
    /// A client that has sent this many ops cannot continue.
    pub sends_max: u64,
    /// What the second chunk is.
    pub second: Second,
}

/// What the second chunk of a reply is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Second {
    /// Its end.
    End,
    /// Bytes after the end of the reply, which the first chunk completed.
    Rest,
    /// Its end, and an error in every other reply.
    FailsEveryOther,
}

struct StreamedSession {
    sends_left: u64,
    second: Second,
    link: Option<Link>,
    open: bool,
    in_flight: Option<(Ticket, u64)>,
    /// When the first chunk came.
    first: Option<Nanos>,
}

impl StreamedSession {
    fn end(&mut self, status: OpStatus, io: &mut impl Io) {
        self.first = None;
        let Some((ticket, _)) = self.in_flight.take() else { return };
        let (kind, bytes_read) = (OpKind(0), 2 * MESSAGE_BYTES as u64);
        let outcome = Outcome { kind, status, bytes_read, bytes_written: 0, ambiguous: false };
        io.complete(ticket, outcome);
    }
}

impl Session for StreamedSession {
    type Op = u64;

    fn kind(&self, _op: &u64) -> OpKind {
        OpKind(0)
    }

    fn has_room(&self) -> bool {
        self.in_flight.is_none()
    }

    fn issue(&mut self, ticket: Ticket, op: u64, _now: Nanos, io: &mut impl Io) {
        self.sends_left -= 1;
        self.in_flight = Some((ticket, op));
        let link = *self.link.get_or_insert_with(|| io.connect(LinkKind::Stream));
        if self.open {
            io.send(link, &op.to_be_bytes());
        }
    }

    fn on_connected(&mut self, link: Link, _now: Nanos, io: &mut impl Io) {
        self.open = true;
        if let Some((_, number)) = self.in_flight {
            io.send(link, &number.to_be_bytes());
        }
    }

    fn on_bytes(&mut self, _link: Link, bytes: &[u8], now: Nanos, io: &mut impl Io) {
        for _ in bytes.chunks(MESSAGE_BYTES) {
            let Some((ticket, number)) = self.in_flight else { return };
            io.mark(ticket, Mark::Output { chunks: 1, characters: 10 });
            match self.first.replace(now) {
                None => {
                    io.mark(ticket, Mark::First(First::Byte));
                    if self.second == Second::Rest {
                        io.mark(ticket, Mark::Complete);
                    }
                }
                Some(first) => {
                    io.mark(ticket, Mark::Value(TimeKind::ChunkGap, (now - first).0));
                    let fails = self.second == Second::FailsEveryOther && number % 2 == 1;
                    let failed = OpStatus::Failed(ErrorClass::InBand);
                    self.end(if fails { failed } else { OpStatus::Ok }, io);
                }
            }
        }
    }

    fn on_discarded(&mut self, _link: Link, _n: u64, _now: Nanos, _io: &mut impl Io) {}

    fn on_eof(&mut self, _link: Link, _now: Nanos, _io: &mut impl Io) {}

    fn on_failed(&mut self, _link: Link, _error: LinkError, _now: Nanos, io: &mut impl Io) {
        (self.link, self.open) = (None, false);
        self.end(OpStatus::Failed(ErrorClass::Transport), io);
    }

    fn next_deadline(&self) -> Option<Nanos> {
        None
    }

    fn on_timer(&mut self, _now: Nanos, _io: &mut impl Io) {}

    fn lost(&self) -> Option<String> {
        (self.sends_left == 0).then(|| "has sent all it may".to_owned())
    }
}

/// Counts up.
struct Counting;

impl Script for Counting {
    type Op = u64;

    fn next(&mut self, context: ScriptContext) -> Step<u64> {
        Step::Issue(context.index)
    }
}

impl Workload for Streamed {
    fn op_names(&self) -> OpNames {
        OpNames(vec!["streamed".to_owned()])
    }

    fn run_worker(&self, context: WorkerContext<'_>) {
        context.drive(|_| {
            let session = StreamedSession {
                sends_left: self.sends_max,
                second: self.second,
                link: None,
                open: false,
                in_flight: None,
                first: None,
            };
            (session, Counting)
        });
    }
}
