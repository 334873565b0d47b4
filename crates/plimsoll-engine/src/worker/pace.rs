//! What makes a schedule act: arrivals that wait for no reply, or the replies of one client.

use std::collections::VecDeque;
use std::iter::{Peekable, Skip, StepBy};

use plimsoll_model::assignment::{Assignment, Load};
use plimsoll_model::load_shape::LoadShape;
use plimsoll_model::suite::{Arrivals as Sharing, Think};
use plimsoll_model::units::Nanos;

use crate::pacer::{Arrivals, ClientStart, Thinker};
use crate::summed_rate::SummedRate;
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
    /// Number of the client over all workers.
    pub(super) client: u32,
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
    let seed = assignment.seed;
    let recorded = recorded.clone().filter(|_| arrivals == Sharing::Shared);
    let all = match (&assignment.shape, recorded) {
        (Some(shape), _) => {
            let factor = rate.get() / rate_ops_per_s.get().max(f64::MIN_POSITIVE);
            let changing = SummedRate::new(shape, assignment.phases.warm_up_ns, factor);
            Arrivals::changing(changing, inter_arrival, seed, client, clients)
        }
        (None, Some(recorded)) => Arrivals::recorded(recorded, rate),
        (None, None) => Arrivals::new(rate, inter_arrival, seed, client, clients),
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
            client,
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

/// When clients are there, where their number changes.
pub(super) struct Attendance {
    shape: LoadShape,
    warm_up: Nanos,
}

impl Attendance {
    /// Of a closed load that changes.
    pub(super) fn new(assignment: &Assignment) -> Option<Self> {
        let is_closed = matches!(assignment.load, Load::Closed { .. });
        let shape = assignment.shape.clone().filter(|_| is_closed)?;
        Some(Self { shape, warm_up: assignment.phases.warm_up_ns })
    }

    /// The first instant from `now` on at which the client is there.
    pub(super) fn next(&self, client: u32, now: Nanos) -> Option<Nanos> {
        let since = now.saturating_sub(self.warm_up);
        let next = self.shape.next_presence(client, since)?;
        Some(if next == since { now } else { next + self.warm_up })
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
