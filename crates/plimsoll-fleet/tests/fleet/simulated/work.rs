//! Load points of the model, and what an agent counts in them: a function of the load point and of
//! the assignment, so that anyone can add it up.

use plimsoll_fleet::message::PointReport;
use plimsoll_model::assignment::{
    Assignment, Load, Pacing, Phases, PointId, Priority, Purpose, WorkerGroup,
};
use plimsoll_model::bundle::{IntervalSlice, PackedSlice, SlicePacker};
use plimsoll_model::event::{Phase, WorkerTotals};
use plimsoll_model::suite::{OnClientFailure, Think, ThinkDistribution};
use plimsoll_model::units::Nanos;

use super::random::{Random, mix};

#[derive(Clone, Copy)]
pub struct PointPlan {
    pub ordinal: u32,
    pub workers: u32,
    pub seed: u64,
    measure_ns: Nanos,
}

impl PointPlan {
    pub fn any(random: &mut Random, ordinal: u32) -> Self {
        Self {
            ordinal,
            workers: random.between(16, 40) as u32,
            seed: random.bits(),
            measure_ns: Nanos::from_millis(random.between(500, 6_000)),
        }
    }

    /// The share of agent `at` of `agents`; `attempt` distinguishes tries of the same point.
    pub fn share(&self, at: usize, agents: usize, attempt: u64) -> Assignment {
        let border = |at: usize| (at * self.workers as usize / agents) as u32;
        let (first, end) = (border(at), border(at + 1));
        let think = Think { mean: Nanos::ZERO, distribution: ThinkDistribution::Constant };
        Assignment {
            point: PointId { ordinal: self.ordinal, purpose: Purpose::Ladder },
            load: Load::Closed {
                clients: 4 * self.workers,
                think,
                start_delay_ns: Nanos::ZERO,
                starts_thinking: false,
                axis_think_ns: None,
            },
            phases: Phases {
                warm_up_ns: Nanos::from_millis(500),
                measure_ns: self.measure_ns,
                ramp_down_ns: Nanos::ZERO,
                drain_ns: Nanos::from_millis(300),
                ops: None,
            },
            seed: self.seed,
            workers: self.workers,
            files: None,
            crew: Some(WorkerGroup { first, count: end - first, own_endpoints: false }),
            cores: Vec::new(),
            pacing: Pacing::Auto,
            own_cores: false,
            priority: Priority::Auto,
            op_timeout: Nanos::from_secs(1),
            endpoints: Vec::new(),
            sources: Vec::new(),
            reserved_ports: false,
            nonce: attempt,
            on_client_failure: OnClientFailure::default(),
            goodput: None,
            counts_clients: false,
            shape: None,
        }
    }

    /// Ops of the whole point.
    pub fn ops(&self) -> u64 {
        (0..self.workers).map(|worker| ops(self.ordinal, self.seed, worker)).sum()
    }
}

/// Ops of one worker.
fn ops(ordinal: u32, seed: u64, worker: u32) -> u64 {
    mix(seed ^ mix(u64::from(ordinal) << 32 | u64::from(worker))) % 100_000 + 1
}

/// What an agent reports that ran its share whole, times apart.
pub fn totals(assignment: &Assignment) -> WorkerTotals {
    let of = |worker| ops(assignment.point.ordinal, assignment.seed, worker);
    let due = assignment.own_workers().map(of).sum();
    WorkerTotals { due, done_in_window: due, ..WorkerTotals::default() }
}

/// And one that did not.
pub fn partial_totals(assignment: &Assignment) -> WorkerTotals {
    let whole = totals(assignment);
    WorkerTotals { due: whole.due / 2, unfinished: 1, done_in_window: 0, ..whole }
}

pub fn report(started: Nanos, totals: WorkerTotals, clock_step_ns: i64) -> PointReport {
    PointReport { started_ns: started.0, totals, clock_step_ns, ..PointReport::default() }
}

/// A slice for each worker, without histograms: its position in time identifies it.
pub fn slices(assignment: &Assignment) -> Vec<PackedSlice> {
    let mut packer = SlicePacker::default();
    let slice = |worker| IntervalSlice {
        second: worker,
        start: Nanos(ops(assignment.point.ordinal, assignment.seed, worker)),
        length: Nanos(assignment.nonce),
        phase: Phase::Measure,
        ops: Vec::new(),
    };
    assignment.own_workers().map(|w| packer.pack(&slice(w)).expect("an empty slice")).collect()
}
