//! A schedule: a script, the instants at which it acts, and the clients that serve it.
//!
//! A client of a per-client or closed load has a schedule of its own; a shared schedule is one schedule
//! served by a pool.

use std::collections::VecDeque;

use plimsoll_model::assignment::{Assignment, Load};
use plimsoll_model::units::{Nanos, OpsPerSec};

use crate::pacer::{Arrivals, Thinker, start_delay};

/// An op that has come due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Due {
    pub(super) index: u64,
    pub(super) at: Nanos,
}

/// A script and its pace.
pub(super) struct Schedule<C> {
    pub(super) script: C,
    pub(super) pace: Pace,
    /// Clients with room for an op, the longest idle first.
    pub(super) free: VecDeque<u32>,
    /// Clients that serve it and have not left.
    pub(super) clients: u32,
    /// Ops under way, of all its clients.
    pub(super) in_flight: u32,
}

/// What makes a schedule act.
pub(super) enum Pace {
    Open(OpenPace),
    Closed(ClosedPace),
}

/// A schedule that does not wait for replies.
pub(super) struct OpenPace {
    arrivals: Arrivals,
    /// This worker takes every `stride`-th op of the schedule, beginning with `offset`.
    stride: u64,
    offset: u64,
    /// The op that comes due next.
    pub(super) next: Option<Due>,
    /// Due, and waiting for a free client.
    pub(super) backlog: VecDeque<Due>,
    /// The script waits for an op to end before it takes the first of the backlog.
    pub(super) waits: bool,
}

/// A client that waits for its replies.
pub(super) struct ClosedPace {
    pub(super) thinker: Thinker,
    pub(super) start: Nanos,
    pub(super) issued: u64,
    /// The piece of work under way began here.
    pub(super) piece_start: Option<Nanos>,
    /// Pause before that piece.
    pub(super) think: Nanos,
    pub(super) finished: bool,
    /// A timer will wake the schedule.
    pub(super) asleep: bool,
}

impl OpenPace {
    /// Moves on to the next op of the schedule that is this worker's.
    pub(super) fn advance(&mut self) {
        loop {
            let Some((index, at)) = self.arrivals.next_due() else {
                self.next = None;
                return;
            };
            if index % self.stride == self.offset {
                self.next = Some(Due { index, at });
                return;
            }
        }
    }
}

impl<C> Schedule<C> {
    /// The schedule of one client.
    pub(super) fn of_client(
        script: C,
        assignment: &Assignment,
        client: u32,
        ops_per_arrival: f64,
    ) -> Self {
        let pace = match &assignment.load {
            Load::Open { rate_ops_per_s, gaps, clients, .. } => {
                let rate = arrivals_per_s(*rate_ops_per_s, ops_per_arrival);
                let arrivals = Arrivals::new(rate, *gaps, assignment.seed, client, *clients);
                Pace::Open(open_pace(arrivals, 1, 0))
            }
            Load::Closed { think, start_delay_ns, .. } => Pace::Closed(ClosedPace {
                thinker: Thinker::new(think.clone(), assignment.seed, client),
                start: start_delay(*start_delay_ns, assignment.seed, client),
                issued: 0,
                piece_start: None,
                think: Nanos::ZERO,
                finished: false,
                // Until its start.
                asleep: true,
            }),
        };
        Self { script, pace, free: VecDeque::new(), clients: 0, in_flight: 0 }
    }

    /// The schedule of a shared schedule: this worker's part of it.
    pub(super) fn shared(
        script: C,
        assignment: &Assignment,
        worker: u32,
        ops_per_arrival: f64,
    ) -> Self {
        match &assignment.load {
            Load::Open { rate_ops_per_s, gaps, .. } => {
                let rate = arrivals_per_s(*rate_ops_per_s, ops_per_arrival);
                let arrivals = Arrivals::new(rate, *gaps, assignment.seed, 0, 1);
                let stride = u64::from(assignment.workers.max(1));
                let pace = Pace::Open(open_pace(arrivals, stride, u64::from(worker)));
                Self { script, pace, free: VecDeque::new(), clients: 0, in_flight: 0 }
            }
            Load::Closed { .. } => Self::of_client(script, assignment, worker, ops_per_arrival),
        }
    }

    /// An op of the schedule ended; true when its script waited for that.
    pub(super) fn outcome(&mut self) -> bool {
        self.in_flight -= 1;
        match &mut self.pace {
            Pace::Open(open) => std::mem::take(&mut open.waits),
            Pace::Closed(_) => false,
        }
    }

    /// When the schedule acts for the first time.
    pub(super) fn first_wake(&self) -> Option<Nanos> {
        match &self.pace {
            Pace::Open(open) => open.next.map(|due| due.at),
            Pace::Closed(closed) => Some(closed.start),
        }
    }
}

fn open_pace(arrivals: Arrivals, stride: u64, offset: u64) -> OpenPace {
    let backlog = VecDeque::new();
    let mut pace = OpenPace { arrivals, stride, offset, next: None, backlog, waits: false };
    pace.advance();
    pace
}

fn arrivals_per_s(ops_per_s: OpsPerSec, ops_per_arrival: f64) -> OpsPerSec {
    OpsPerSec::new(ops_per_s.get() / ops_per_arrival.max(1.0)).unwrap_or(ops_per_s)
}
