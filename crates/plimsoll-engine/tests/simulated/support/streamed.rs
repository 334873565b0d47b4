//! A protocol whose replies come in two chunks. Stands in for streamed ones, on a driver that says
//! everything twice.

use plimsoll_engine::seam::{
    First, Io, Link, LinkError, LinkKind, Mark, Script, Session, Step, Ticket, TimeKind, Turn,
};
use plimsoll_engine::worker::Seat;
use plimsoll_engine::workload::Workload;
use plimsoll_model::outcome::{ErrorClass, OpKind, OpNames, OpStatus, Outcome};
use plimsoll_model::units::Nanos;
use plimsoll_testkit::sim::MESSAGE_BYTES;

/// The workload.
pub struct Streamed {
    /// A client that has sent so many can go no further.
    pub sends_max: u64,
}

struct StreamedSession {
    sends_left: u64,
    link: Option<Link>,
    open: bool,
    under_way: Option<(Ticket, u64)>,
    /// When the first chunk came.
    first: Option<Nanos>,
}

impl StreamedSession {
    fn end(&mut self, status: OpStatus, io: &mut impl Io) {
        self.first = None;
        let Some((ticket, _)) = self.under_way.take() else { return };
        let kind = OpKind(0);
        io.complete(
            ticket,
            Outcome { kind, status, bytes_read: 0, bytes_written: 0, ambiguous: false },
        );
    }
}

impl Session for StreamedSession {
    type Op = u64;

    fn kind(&self, _op: &u64) -> OpKind {
        OpKind(0)
    }

    fn has_room(&self) -> bool {
        self.under_way.is_none()
    }

    fn issue(&mut self, ticket: Ticket, op: u64, _now: Nanos, io: &mut impl Io) {
        self.sends_left -= 1;
        self.under_way = Some((ticket, op));
        let link = *self.link.get_or_insert_with(|| io.connect(LinkKind::Stream));
        if self.open {
            io.send(link, &op.to_be_bytes());
        }
    }

    fn on_connected(&mut self, link: Link, _now: Nanos, io: &mut impl Io) {
        self.open = true;
        if let Some((_, number)) = self.under_way {
            io.send(link, &number.to_be_bytes());
        }
    }

    fn on_bytes(&mut self, _link: Link, bytes: &[u8], now: Nanos, io: &mut impl Io) {
        for _ in bytes.chunks(MESSAGE_BYTES) {
            let Some((ticket, _)) = self.under_way else { return };
            match self.first.replace(now) {
                None => io.mark(ticket, Mark::First(First::Byte)),
                Some(first) => {
                    io.mark(ticket, Mark::Value(TimeKind::ChunkGap, (now - first).0));
                    self.end(OpStatus::Ok, io);
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

    fn next(&mut self, turn: Turn) -> Step<u64> {
        Step::Issue(turn.index)
    }
}

impl Workload for Streamed {
    fn op_names(&self) -> OpNames {
        OpNames(vec!["streamed".to_owned()])
    }

    fn run_worker(&self, seat: Seat<'_>) {
        seat.drive(|_| {
            let session = StreamedSession {
                sends_left: self.sends_max,
                link: None,
                open: false,
                under_way: None,
                first: None,
            };
            (session, Counting)
        });
    }
}
