//! The interface between the engine and a protocol: traits and their shared types.
//!
//! A [`Session`] is a protocol's state machine for one client. It is notified of what happens on
//! its links (connections) and reacts by calling [`Io`]. It opens no socket and reads no clock:
//! every call brings `now`. A [`Script`] decides what the client does next. A
//! [`Workload`](crate::workload::Workload) creates both for each client.
//!
//! Protocols are state machines, so a test can feed them bytes and events in any order without a
//! socket, and the same session runs on epoll, on simulated time and behind TLS. A session calls
//! [`Io`] instead of returning a list of actions, because a list would be allocated or bounded for
//! each op.

use std::fmt;

pub use plimsoll_model::event::{SessionCounters, TimeKind};
use plimsoll_model::outcome::{ErrorClass, OpKind, Outcome};
use plimsoll_model::units::Nanos;

/// What carries a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LinkKind {
    /// A TCP connection: bytes in order, without borders.
    Stream,
    /// A connected UDP socket: messages that keep their borders, and may be lost, doubled or out
    /// of order.
    Datagram,
}

/// A connection of a session, from [`Io::connect`] to its close. Never reused within a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Link(pub u64);

/// One op in flight of a session. Handed to [`Session::issue`], handed back to [`Io::complete`].
/// Small and dense, and of one client: another client's op may have the same ticket, and so may a
/// later op of the same client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ticket(pub u32);

/// Why a link could not be opened or broke.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkError {
    /// [`ErrorClass::Transport`] or [`ErrorClass::PortsExhausted`].
    pub class: ErrorClass,
    /// The operating system's error number.
    pub errno: i32,
}

impl fmt::Display for LinkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", std::io::Error::from_raw_os_error(self.errno))
    }
}

/// What a session may ask for. Implemented by the worker, by byte filters (TLS) around a session,
/// and by a recorder in tests.
pub trait Io {
    /// Opens a link to the client's endpoint. [`Session::on_connected`] or [`Session::on_failed`]
    /// follows, never from within this call; that of a datagram link proves nothing about the
    /// server.
    fn connect(&mut self, kind: LinkKind) -> Link;
    /// Queues bytes; what the socket does not take now is kept and sent in order. On a datagram
    /// link each call is one datagram.
    fn send(&mut self, link: Link, bytes: &[u8]);
    /// The next `n` bytes that arrive on the stream link need not be handed over; they are
    /// reported through [`Session::on_discarded`]. The kernel may drop them without a copy.
    fn discard(&mut self, link: Link, n: u64);
    /// The peer has closed its side of the link, and what was sent reached it after that, unread.
    /// Unknown on a link through TLS.
    fn is_refused(&mut self, link: Link) -> bool {
        let _ = link;
        false
    }
    /// Closes the link; nothing more is reported about it.
    fn close(&mut self, link: Link);
    /// Describes why the op that completes next failed, or what [`Io::report_trailing_bytes`]
    /// reports next. Formatted only when a sample is kept.
    fn explain(&mut self, detail: fmt::Arguments<'_>);
    /// The op has ended; its done time is the `now` of the call the session is in.
    fn complete(&mut self, ticket: Ticket, outcome: Outcome);
    /// When the kernel received the bytes that are handed over in the call the session is in, where
    /// it stamped them.
    fn arrived(&self) -> Option<Nanos> {
        None
    }
    /// Something within an op: a milestone reached by the bytes that are handed over in the call
    /// the session is in, or a time or count that the session measured. It counts once the op has
    /// ended, and only if it did not fail.
    fn mark(&mut self, ticket: Ticket, mark: Mark) {
        let _ = (ticket, mark);
    }
    /// Bytes came behind the reply of an op of this kind that has completed as
    /// [`plimsoll_model::outcome::OpStatus::Ok`]. Counts as one error more, of class
    /// [`ErrorClass::TrailingBytes`], with the op that the client completed last; once per op at
    /// most.
    fn report_trailing_bytes(&mut self, kind: OpKind);
}

/// Something within an op: of a reply that comes in a stream, or of what its session does before it
/// and after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// What its session did before the op, under the op's ticket, has ended: an OPEN before a READ,
    /// say. Its time from due is recorded as this kind. The op's own response and service times run
    /// from now. Due and sent still show whether the load was on time. The times of an op
    /// without this mark run from due and sent, also if it fails or is unfinished because of what
    /// precedes it.
    Preceded(TimeKind),
    /// The op waits within its session, for a slot, say: until [`Mark::ServiceBegins`] nothing serves
    /// it, and it has no service time if the drain ends meanwhile.
    ServiceWaits,
    /// What the op waited for within its session has come: a slot, say. Its service time runs from
    /// now, its response time as before.
    ServiceBegins,
    /// A milestone; its time is counted from where the op's response and service times begin.
    First(First),
    /// A time in nanoseconds, or a count, recorded as it is.
    Value(TimeKind, u64),
    /// Output that came.
    Output {
        /// Chunks of it.
        chunks: u64,
        /// Characters in them.
        characters: u64,
    },
    /// The reply is whole, and so ends the op's time; [`Io::complete`] follows when its client may
    /// go on.
    Complete,
}

/// A milestone of a streamed reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum First {
    /// The first byte of its body.
    Byte,
    /// The first output of any kind.
    Output,
    /// The first output that a reader sees.
    Visible,
}

/// A protocol's state machine for one client.
pub trait Session {
    /// What a script requests of this session.
    type Op;

    /// Several [`Io::send`]s of one round of the worker leave in one system call at its end,
    /// instead of each at once. Useful for sessions with many ops in flight. An op's `sent` stays
    /// the instant of its issue, so the round's duration is part of its service time.
    const BATCH_SENDS: bool = false;

    /// Which kind of op this is, for ops that never end.
    fn kind(&self, op: &Self::Op) -> OpKind;
    /// The session takes another op now.
    fn has_room(&self) -> bool;
    /// Starts an op. The engine stamps `sent` with `now`.
    fn issue(&mut self, ticket: Ticket, op: Self::Op, now: Nanos, io: &mut impl Io);
    /// The link is open.
    fn on_connected(&mut self, link: Link, now: Nanos, io: &mut impl Io);
    /// Bytes arrived: some of a stream, or one whole datagram, which may be empty. All are
    /// consumed; a session keeps what it cannot use yet.
    fn on_bytes(&mut self, link: Link, bytes: &[u8], now: Nanos, io: &mut impl Io);
    /// `n` bytes arrived and were dropped, as [`Io::discard`] requested.
    fn on_discarded(&mut self, link: Link, n: u64, now: Nanos, io: &mut impl Io);
    /// The peer closed its side.
    fn on_eof(&mut self, link: Link, now: Nanos, io: &mut impl Io);
    /// The link could not be opened or broke; it is closed already.
    fn on_failed(&mut self, link: Link, error: LinkError, now: Nanos, io: &mut impl Io);
    /// Earliest instant at which [`Session::on_timer`] must be called.
    fn next_deadline(&self) -> Option<Nanos>;
    /// `now` is at or after [`Session::next_deadline`]: time out or retransmit.
    fn on_timer(&mut self, now: Nanos, io: &mut impl Io);
    /// The op that follows from the one of `ended`, which has just ended: a further block of a
    /// read, say. Called once after every [`Io::complete`]. The op is due when the one before it
    /// ended, and is issued at once, even without [`Session::has_room`]: it replaces the op before
    /// it. After the end of the window it is dropped.
    fn take_follow_on(&mut self, ended: Ticket) -> Option<Self::Op> {
        let _ = ended;
        None
    }
    /// Largest read of a stream that makes sense now. A session that will discard a long body
    /// returns a small limit, so that little is copied before the body begins.
    fn read_limit(&self, link: Link) -> usize {
        let _ = link;
        usize::MAX
    }
    /// The bytes handed over last ended a whole message: none of the next has come. If the session
    /// cannot tell, it returns false, and the arrival of its replies is only bounded.
    fn at_boundary(&self, link: Link) -> bool {
        let _ = link;
        false
    }
    /// Why this client cannot continue, as text: its session is gone, or its peer breaks the
    /// protocol. Called after every call in which an op ended, and after every call that leaves it
    /// with neither op nor room. Then the client leaves the load: its links are closed, its ops in
    /// flight end as [`ErrorClass::Transport`], and it is given no more and not called again.
    fn lost(&self) -> Option<String> {
        None
    }
    /// The load point is over and recorded: the session may give up what the server keeps for it.
    /// Nothing of what follows is recorded, ops still in flight included, and no deadline is
    /// watched. Not called if the load point was stopped, or if the clients have left the load.
    fn log_off(&mut self, now: Nanos, io: &mut impl Io) {
        let _ = (now, io);
    }
    /// The engine waits no longer for the end of [`Session::log_off`]. It waits a second at most.
    fn has_logged_off(&self) -> bool {
        true
    }
    /// What the session counted since the last call; the engine adds it up within the window.
    fn take_counters(&mut self) -> SessionCounters {
        SessionCounters::default()
    }
}

/// Decides what a client does.
pub trait Script {
    /// What the session is requested to do.
    type Op;

    /// In closed loads every op is its own piece of work, preceded by think time. A script whose
    /// pieces have several ops sets this to false and returns [`Step::Think`] or [`Step::ThinkFor`]
    /// itself.
    const EVERY_OP_IS_A_PIECE: bool = true;

    /// The next step. Open loads: called once per arrival; `context.index` is the index in the
    /// schedule, and the result should depend on nothing else. Closed loads: called at the start,
    /// after every think, sleep and outcome; `context.index` counts the calls that issued an op.
    /// Loads of sessions: as closed ones, but first when a session arrives, and again after
    /// [`Step::Think`], which ends a session, when the client's next one arrives; `context.index`
    /// is that of the session in the schedule.
    ///
    /// [`Step::WaitForOutcome`] in an open load keeps the arrival first in line: the same
    /// `context.index` is offered again when an op of this script ends. With none in flight the
    /// arrival counts as not sent.
    fn next(&mut self, context: ScriptContext) -> Step<Self::Op>;

    /// The op that [`Script::next`] answered last goes out as `ticket`.
    fn on_issued(&mut self, ticket: Ticket) {
        let _ = ticket;
    }

    /// An op of this script ended. `ticket` identifies it, unless clients share the script.
    fn on_outcome(&mut self, ticket: Ticket, outcome: &Outcome, now: Nanos) {
        let _ = (ticket, outcome, now);
    }

    /// The op that ended as `ended` has a follow-on, which goes out as `ticket` (the two may be
    /// equal). Comes straight after [`Script::on_outcome`] of `ended`, without [`Script::next`].
    fn on_follow_on(&mut self, ended: Ticket, ticket: Ticket) {
        let _ = (ended, ticket);
    }
}

/// What a script may look at when it decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScriptContext {
    /// Index in the schedule (open; of the session where those arrive) or number of ops issued so
    /// far (closed).
    pub index: u64,
    /// When an op of this step is due.
    pub due: Nanos,
    /// The instant.
    pub now: Nanos,
}

/// What a client does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step<Op> {
    /// Send this.
    Issue(Op),
    /// A piece of work begins: think first (closed loads), or wait for the next session that arrives
    /// (loads of sessions), then ask again.
    Think,
    /// The same, with a think time of the script's own.
    ThinkFor(Nanos),
    /// Wait until an op in flight ends.
    WaitForOutcome,
    /// Ask again at this instant.
    SleepUntil(Nanos),
    /// The client has finished.
    Done,
}

/// A client's context in the load point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientContext {
    /// Number of the client, from 0 over all workers and agents.
    pub client: u32,
    /// Index of its endpoint in the assignment.
    pub endpoint: usize,
    /// Seed of the run.
    pub seed: u64,
    /// An op without a reply after this long has failed.
    pub op_timeout: Nanos,
    /// Differs from point to point, also between runs: it makes identifiers that a server might
    /// remember from another point (transaction ids) unique. Decides nothing else.
    pub nonce: u64,
}
