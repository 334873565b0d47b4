//! The echo protocol with many ops in flight, follow-ons, retries and either kind of link. Stands
//! in for pipelined protocols where the engine itself is under test.

use std::collections::BTreeMap;

use plimsoll_engine::interface::{
    ClientContext, Io, Link, LinkError, LinkKind, Script, ScriptContext, Session, SessionCounters,
    Step, Ticket,
};
use plimsoll_engine::worker::WorkerContext;
use plimsoll_engine::workload::Workload;
use plimsoll_model::outcome::{ErrorClass, OpKind, OpNames, OpStatus, Outcome};
use plimsoll_model::units::Nanos;

use crate::sim::MESSAGE_BYTES;

/// What a pipeline does.
#[derive(Clone, Copy, Debug)]
pub struct Pipeline {
    /// Streams or datagrams.
    pub kind: LinkKind,
    /// Ops a client may have in flight.
    pub room: usize,
    /// Ops after which the script waits for an outcome.
    pub outstanding_max: usize,
    /// Follow-ons of each op, one after the other.
    pub follow_ons: u64,
    /// Sends again after this long; `None` never does.
    pub retry_after: Option<Nanos>,
    /// The sends of a round leave together.
    pub batch: bool,
    /// In closed loads each op and its follow-ons are a piece of work.
    pub pieces: bool,
    /// The ops per arrival that the workload reports.
    pub ops_per_arrival: f64,
    /// Clients below `.0` cannot continue after `.1` replies; `None`: all continue.
    pub gives_up: Option<(u32, u64)>,
    /// Largest read that a session requests.
    pub read_limit: usize,
    /// Replies are dropped unread; they end ops in the order in which these were sent.
    pub discards: bool,
    /// Clients of a worker that share a session.
    pub clients_per_session: u32,
    /// Sessions send [`FAREWELL`] after the load, and have logged off when it is answered.
    pub logs_off: bool,
}

impl Default for Pipeline {
    fn default() -> Self {
        Self {
            kind: LinkKind::Stream,
            room: 32,
            outstanding_max: usize::MAX,
            follow_ons: 0,
            retry_after: None,
            batch: false,
            pieces: false,
            ops_per_arrival: 1.0,
            gives_up: None,
            read_limit: usize::MAX,
            discards: false,
            clients_per_session: 1,
            logs_off: false,
        }
    }
}

/// What a session sends when it logs off.
pub const FAREWELL: u64 = u64::MAX;
/// Bits of a number that identify the client's op; above them, the remaining follow-ons.
const FOLLOW_ONS_SHIFT: u32 = 56;
const CLIENT_SHIFT: u32 = 32;
/// Kinds of op: those of arrivals, and those that follow.
const FIRST: OpKind = OpKind(0);
const FOLLOW_ON: OpKind = OpKind(1);

/// An op: its number and what it is.
#[derive(Clone, Copy, Debug)]
pub struct PipelineOp {
    number: u64,
    kind: OpKind,
}

struct Pending {
    ticket: Ticket,
    op: PipelineOp,
    times_out: Nanos,
    retry: Nanos,
}

/// One client. `BATCH` is [`Session::BATCH_SENDS`].
pub struct PipelineSession<const BATCH: bool> {
    settings: Pipeline,
    op_timeout: Nanos,
    link: Option<Link>,
    open: bool,
    pending: Vec<Pending>,
    inbox: Vec<u8>,
    followers: Vec<(Ticket, PipelineOp)>,
    /// Replies after which it gives up.
    replies_left: Option<u64>,
    counters: SessionCounters,
    logging_off: bool,
}

impl<const BATCH: bool> PipelineSession<BATCH> {
    fn new(settings: Pipeline, context: ClientContext) -> Self {
        Self {
            settings,
            op_timeout: context.op_timeout,
            link: None,
            open: false,
            pending: Vec::new(),
            inbox: Vec::new(),
            followers: Vec::new(),
            replies_left: settings
                .gives_up
                .filter(|(below, _)| context.client < *below)
                .map(|(_, replies)| replies),
            counters: SessionCounters::default(),
            logging_off: false,
        }
    }

    fn reply(&mut self, number: u64, io: &mut impl Io) {
        self.logging_off &= number != FAREWELL;
        // An unexpected number is the reply to an op that was sent twice, or has timed out.
        let Some(at) = self.pending.iter().position(|p| p.op.number == number) else { return };
        let Pending { ticket, op, .. } = self.pending.remove(at);
        if number >> FOLLOW_ONS_SHIFT > 0 {
            let next = PipelineOp { number: number - (1 << FOLLOW_ONS_SHIFT), kind: FOLLOW_ON };
            self.followers.push((ticket, next));
        }
        if let Some(left) = &mut self.replies_left {
            assert!(*left > 0, "a client that has given up is not called again");
            *left -= 1;
        }
        io.complete(ticket, outcome(op.kind, OpStatus::Ok));
    }

    fn lose_link(&mut self, class: ErrorClass, io: &mut impl Io) {
        (self.link, self.open) = (None, false);
        self.inbox.clear();
        for (at, lost) in self.pending.drain(..).enumerate() {
            io.explain(format_args!("lost with {at} before it"));
            io.complete(lost.ticket, outcome(lost.op.kind, OpStatus::Failed(class)));
        }
    }
}

fn outcome(kind: OpKind, status: OpStatus) -> Outcome {
    Outcome { kind, status, bytes_read: 0, bytes_written: 0, ambiguous: false }
}

impl<const BATCH: bool> Session for PipelineSession<BATCH> {
    type Op = PipelineOp;

    const BATCH_SENDS: bool = BATCH;

    fn kind(&self, op: &PipelineOp) -> OpKind {
        op.kind
    }

    fn has_room(&self) -> bool {
        self.pending.len() + self.followers.len() < self.settings.room
    }

    fn issue(&mut self, ticket: Ticket, op: PipelineOp, now: Nanos, io: &mut impl Io) {
        assert!(op.kind == FOLLOW_ON || self.has_room(), "an op without room");
        assert!(self.pending.iter().all(|p| p.ticket != ticket), "{ticket:?} is in use");
        let retry = self.settings.retry_after.map_or(Nanos::MAX, |after| now + after);
        self.pending.push(Pending { ticket, op, times_out: now + self.op_timeout, retry });
        let kind = self.settings.kind;
        let link = *self.link.get_or_insert_with(|| io.connect(kind));
        if self.settings.discards {
            io.discard(link, MESSAGE_BYTES as u64);
        }
        if self.open {
            io.send(link, &op.number.to_be_bytes());
        }
    }

    fn on_connected(&mut self, link: Link, _now: Nanos, io: &mut impl Io) {
        self.open = true;
        for pending in &self.pending {
            io.send(link, &pending.op.number.to_be_bytes());
        }
    }

    fn on_bytes(&mut self, _link: Link, bytes: &[u8], _now: Nanos, io: &mut impl Io) {
        if self.settings.kind == LinkKind::Datagram {
            assert_eq!(bytes.len(), MESSAGE_BYTES, "a datagram keeps its borders");
        }
        self.inbox.extend_from_slice(bytes);
        let inbox = std::mem::take(&mut self.inbox);
        let (whole, rest) = inbox.as_chunks::<MESSAGE_BYTES>();
        for message in whole {
            self.reply(u64::from_be_bytes(*message), io);
        }
        self.inbox = rest.to_vec();
    }

    fn on_discarded(&mut self, _link: Link, n: u64, _now: Nanos, io: &mut impl Io) {
        assert!(n.is_multiple_of(MESSAGE_BYTES as u64), "{n} bytes dropped");
        for _ in 0..n / MESSAGE_BYTES as u64 {
            let number = self.pending.first().expect("no more is dropped than asked for").op.number;
            self.reply(number, io);
        }
    }

    fn read_limit(&self, _link: Link) -> usize {
        self.settings.read_limit
    }

    fn at_boundary(&self, _link: Link) -> bool {
        // The session cannot tell what is left in a stream.
        self.settings.kind == LinkKind::Datagram
    }

    fn on_eof(&mut self, link: Link, _now: Nanos, io: &mut impl Io) {
        io.close(link);
        self.lose_link(ErrorClass::Transport, io);
    }

    fn on_failed(&mut self, _link: Link, error: LinkError, _now: Nanos, io: &mut impl Io) {
        self.lose_link(error.class, io);
    }

    fn next_deadline(&self) -> Option<Nanos> {
        self.pending.iter().map(|p| p.times_out.min(p.retry)).min()
    }

    fn on_timer(&mut self, now: Nanos, io: &mut impl Io) {
        let all = std::mem::take(&mut self.pending).into_iter();
        let (late, waiting): (Vec<_>, Vec<_>) = all.partition(|p| p.times_out <= now);
        self.pending = waiting;
        for Pending { ticket, op, .. } in late {
            io.complete(ticket, outcome(op.kind, OpStatus::Failed(ErrorClass::Timeout)));
        }
        let (Some(after), Some(link)) = (self.settings.retry_after, self.link) else { return };
        for pending in self.pending.iter_mut().filter(|p| p.retry <= now) {
            pending.retry = now + after;
            self.counters.retransmissions += 1;
            io.send(link, &pending.op.number.to_be_bytes());
        }
    }

    fn take_follow_on(&mut self, ended: Ticket) -> Option<PipelineOp> {
        let at = self.followers.iter().position(|(ticket, _)| *ticket == ended)?;
        Some(self.followers.remove(at).1)
    }

    fn lost(&self) -> Option<String> {
        (self.replies_left == Some(0)).then(|| "gave up".to_owned())
    }

    fn log_off(&mut self, _now: Nanos, io: &mut impl Io) {
        assert_ne!(self.replies_left, Some(0), "a client that has given up is not called again");
        if let Some(link) = self.link.filter(|_| self.settings.logs_off) {
            self.logging_off = true;
            io.send(link, &FAREWELL.to_be_bytes());
        }
    }

    fn has_logged_off(&self) -> bool {
        !self.logging_off
    }

    fn take_counters(&mut self) -> SessionCounters {
        std::mem::take(&mut self.counters)
    }
}

/// Counts up, and checks its outcomes. `PIECES` is [`Script::EVERY_OP_IS_A_PIECE`].
pub struct PipelineScript<const PIECES: bool> {
    settings: Pipeline,
    client: u64,
    /// What was offered last and had to wait.
    offered: Option<u64>,
    /// Numbers of the ops in flight, by ticket.
    in_flight: BTreeMap<u32, u64>,
    /// Ops that have ended since and may have a follow-on.
    last_ended: Option<(u32, u64)>,
    next_number: Option<u64>,
}

impl<const PIECES: bool> PipelineScript<PIECES> {
    fn new(settings: Pipeline, context: ClientContext) -> Self {
        Self {
            settings,
            client: u64::from(context.client),
            offered: None,
            in_flight: BTreeMap::new(),
            last_ended: None,
            next_number: None,
        }
    }
}

impl<const PIECES: bool> Script for PipelineScript<PIECES> {
    type Op = PipelineOp;

    const EVERY_OP_IS_A_PIECE: bool = PIECES;

    fn next(&mut self, context: ScriptContext) -> Step<PipelineOp> {
        if let Some(offered) = self.offered.take() {
            assert_eq!(offered, context.index, "what had to wait comes again first");
        }
        if self.in_flight.len() >= self.settings.outstanding_max {
            self.offered = (!self.in_flight.is_empty()).then_some(context.index);
            return Step::WaitForOutcome;
        }
        let follow_ons = self.settings.follow_ons << FOLLOW_ONS_SHIFT;
        let number = follow_ons | self.client << CLIENT_SHIFT | context.index;
        self.next_number = Some(number);
        Step::Issue(PipelineOp { number, kind: FIRST })
    }

    fn on_issued(&mut self, ticket: Ticket) {
        let number = self.next_number.take().expect("an op was asked for before it is issued");
        assert_eq!(self.in_flight.insert(ticket.0, number), None, "{ticket:?} is in use");
    }

    fn on_outcome(&mut self, ticket: Ticket, _outcome: &Outcome, _now: Nanos) {
        let number = self.in_flight.remove(&ticket.0).expect("an op in flight ended");
        self.last_ended = Some((ticket.0, number));
    }

    fn on_follow_on(&mut self, ended: Ticket, ticket: Ticket) {
        let (last, number) = self.last_ended.take().expect("an op ended");
        assert_eq!(last, ended.0, "a follow-on comes straight after its outcome");
        assert_eq!(self.in_flight.insert(ticket.0, number), None, "{ticket:?} is in use");
    }
}

impl Workload for Pipeline {
    fn op_names(&self) -> OpNames {
        OpNames(vec!["first".to_owned(), "follow_on".to_owned()])
    }

    fn ops_per_arrival(&self) -> f64 {
        self.ops_per_arrival
    }

    fn clients_per_session(&self) -> u32 {
        self.clients_per_session
    }

    fn run_worker(&self, context: WorkerContext<'_>) {
        match (self.batch, self.pieces) {
            (false, false) => drive::<false, false>(*self, context),
            (false, true) => drive::<false, true>(*self, context),
            (true, false) => drive::<true, false>(*self, context),
            (true, true) => drive::<true, true>(*self, context),
        }
    }
}

fn drive<const BATCH: bool, const PIECES: bool>(settings: Pipeline, context: WorkerContext<'_>) {
    context.drive(|client| {
        let script = PipelineScript::<PIECES>::new(settings, client);
        (PipelineSession::<BATCH>::new(settings, client), script)
    });
}

/// Counts up; for pools, whose clients do not keep tickets apart.
struct PoolScript;

impl Script for PoolScript {
    type Op = PipelineOp;

    fn next(&mut self, context: ScriptContext) -> Step<PipelineOp> {
        Step::Issue(PipelineOp { number: context.index, kind: FIRST })
    }
}

impl Pipeline {
    /// As [`Workload::run_worker`], with a script for loads that several clients share.
    pub fn run_shared(&self, context: WorkerContext<'_>) {
        context.drive(|client| (PipelineSession::<false>::new(*self, client), PoolScript));
    }
}
