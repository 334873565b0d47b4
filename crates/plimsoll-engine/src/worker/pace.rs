//! What makes a schedule act: arrivals that wait for no reply, or the replies of one client.

use std::collections::VecDeque;
use std::iter::{Peekable, Skip, StepBy};

use plimsoll_model::assignment::Load;
use plimsoll_model::suite::{Arrivals as Sharing, Think};
use plimsoll_model::units::Nanos;

use crate::pacer::{Arrivals, ClientStart, Thinker};
use crate::workload::WorkerContext;

/// A worker's part of a schedule: index and due time of each arrival.
pub(super) type WorkerArrivals = Peekable<StepBy<Skip<Arrivals>>>;

/// What makes a schedule act.
pub(super) enum Pace {
    /// A schedule that does not wait for replies.
    Open(OpenPace),
    /// A client that waits for its replies.
    Closed(ClosedPace),
}

/// A schedule that does not wait for replies.
pub(super) struct OpenPace {
    pub(super) arrivals: WorkerArrivals,
    /// Due, and waiting for a free client.
    pub(super) backlog: VecDeque<(u64, Nanos)>,
    /// The script waits for an op to end before it takes the first of the backlog.
    pub(super) waits: bool,
}

/// A client that waits for its replies.
pub(super) struct ClosedPace {
    pub(super) thinker: Thinker,
    pub(super) start: Nanos,
    /// Ops issued; where sessions arrive, the index of the client's session among all.
    pub(super) index: u64,
    /// When the current piece of work began.
    pub(super) piece_start: Option<Nanos>,
    /// Pause before that piece.
    pub(super) think: Nanos,
    pub(super) finished: bool,
    /// A timer will wake the schedule.
    pub(super) asleep: bool,
}

/// The arrivals of an open load: those of one client, or this worker's part of those that all share.
pub(super) fn arrivals(context: &WorkerContext<'_>, client: u32) -> Option<WorkerArrivals> {
    let WorkerContext { assignment, worker, ref recorded, .. } = *context;
    let Load::Open { rate_ops_per_s, gaps: inter_arrival, clients, arrivals, .. } = assignment.load
    else {
        return None;
    };
    let rate = context.arrivals_per_s(rate_ops_per_s);
    // A worker takes every `stride`-th arrival of a shared schedule.
    let (client, clients, offset, stride) = match arrivals {
        Sharing::Shared | Sharing::Sessions => (0, 1, worker, assignment.workers.max(1)),
        Sharing::PerClient => (client, clients, 0, 1),
    };
    let all = match recorded.clone().filter(|_| arrivals == Sharing::Shared) {
        Some(recorded) => Arrivals::recorded(recorded, rate),
        None => Arrivals::new(rate, inter_arrival, assignment.seed, client, clients),
    };
    Some(all.skip(offset as usize).step_by(stride as usize).peekable())
}

impl Pace {
    /// Of the schedule of one client; of a pool, of this worker's part of it.
    pub(super) fn new(context: &WorkerContext<'_>, client: u32) -> Self {
        let load = &context.assignment.load;
        let is_own = !load.is_sessions();
        if let Some(arrivals) = is_own.then(|| arrivals(context, client)).flatten() {
            return Self::Open(OpenPace { arrivals, backlog: VecDeque::new(), waits: false });
        }
        let think = match load {
            Load::Closed { think, .. } => think.clone(),
            Load::Open { .. } => Think::default(),
        };
        let seed = context.assignment.seed;
        let start = ClientStart::draw(load, seed, client);
        Self::Closed(ClosedPace {
            thinker: Thinker::new(think, seed, client),
            start: start.at,
            index: 0,
            piece_start: None,
            think: start.think,
            finished: false,
            // Until its start.
            asleep: true,
        })
    }
}

impl ClosedPace {
    /// The client's next session is the first that no other has taken; when that is due.
    pub(super) fn take_session(&mut self, sessions: &mut WorkerArrivals) -> Option<Nanos> {
        let (index, due) = sessions.next()?;
        self.index = index;
        Some(due)
    }
}
