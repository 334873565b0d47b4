//! The coordinator's request to an agent for one load point.

use std::net::{IpAddr, SocketAddr};
use std::ops::Range;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::goodput::GoodLimits;
use crate::load_shape::{LoadPhase, LoadShape};
use crate::named::named;
use crate::suite::{Arrivals, InterArrival, OnClientFailure, Think};
use crate::units::{Nanos, OpsPerSec};

/// One load point for one agent. Self-contained: an agent needs nothing else to do it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Assignment {
    /// Which load point, and why it is run.
    pub point: PointId,
    /// The load to sustain.
    pub load: Load,
    /// For how long.
    pub phases: Phases,
    /// Schedule, op choice and data all follow from this and the client's number.
    pub seed: u64,
    /// Worker threads of the load point over all agents, one loop each. Clients, schedules and ops
    /// are distributed to workers by their numbers, so the work is the same for any number of
    /// agents.
    pub workers: u32,
    /// The workers that this agent runs; all of them where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub crew: Option<WorkerGroup>,
    /// Files of the data set on the servers, where the load does not give their number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files: Option<u32>,
    /// Cores of this agent's workers, its i-th worker on `cores[i % n]`; empty leaves it to the
    /// kernel.
    pub cores: Vec<u32>,
    /// How a worker waits.
    pub pacing: Pacing,
    /// Each worker has its core to itself, as far as this run decides: it may poll without taking
    /// time from the server.
    #[serde(default)]
    pub own_cores: bool,
    /// Scheduling priority of the workers.
    #[serde(default)]
    pub priority: Priority,
    /// An op without a reply after this long has failed.
    pub op_timeout: Nanos,
    /// Client i uses endpoint i mod n, unless the endpoints are the group's own.
    pub endpoints: Vec<Endpoint>,
    /// Client i connects from source i mod n; empty leaves it to the kernel. Several sources
    /// multiply the ports that connections per request use up.
    #[serde(default)]
    pub sources: Vec<IpAddr>,
    /// Clients connect from ports below 1024, as servers that trust users by their port demand.
    /// Where that is not permitted, or none is free, any port is taken.
    #[serde(default)]
    pub reserved_ports: bool,
    /// Differs from point to point, also between runs, so that a server cannot mistake an op of
    /// this point for a repetition of an earlier one. Has no other use.
    #[serde(default)]
    pub nonce: u64,
    /// What happens to the point when a client cannot continue.
    #[serde(default)]
    pub on_client_failure: OnClientFailure,
    /// Ops that end well and keep these limits are counted apart.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub goodput: Option<GoodLimits>,
    /// The work of each client is counted too ([`crate::event::WorkerTotals::per_client`]).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub counts_clients: bool,
    /// How the load changes after the warm-up; `load` has the highest. Each phase is a load point
    /// with a window of its own, and their ordinals follow each other. Absent where the load stays
    /// the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shape: Option<LoadShape>,
}

/// Some of the workers of a load point: those of one agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkerGroup {
    /// Number of the first.
    pub first: u32,
    /// How many.
    pub count: u32,
    /// The endpoints are those of this group alone: its clients use them round-robin.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub own_endpoints: bool,
}

impl WorkerGroup {
    /// Numbers of its workers; `all` counts those of all agents.
    fn workers(self, all: u32) -> Range<u32> {
        self.first.min(all)..self.first.saturating_add(self.count).min(all)
    }

    /// Index of the client in this group, 0, 1, 2 …; `None` for a client of another group.
    fn index_of(self, client: u32, all: u32) -> Option<usize> {
        let (own, worker) = (self.workers(all), client % all);
        let index = || (client / all) as usize * own.len() + (worker - own.start) as usize;
        own.contains(&worker).then(index)
    }
}

impl Assignment {
    /// The window of each phase of the shape, after a warm-up at its first load, or the only one.
    pub fn windows(&self) -> Vec<Phases> {
        let whole = self.phases;
        let Some(shape) = &self.shape else { return vec![whole] };
        let window = |phase: &LoadPhase| Phases {
            warm_up_ns: whole.warm_up_ns + phase.start_ns,
            measure_ns: phase.length_ns,
            ramp_down_ns: Nanos::ZERO,
            ops: None,
            ..whole
        };
        shape.phases.iter().map(window).collect()
    }

    /// The load points of the windows.
    pub fn points(&self) -> impl Iterator<Item = PointId> {
        let count = self.shape.as_ref().map_or(1, |shape| shape.phases.len() as u32);
        let PointId { ordinal, purpose } = self.point;
        (ordinal..ordinal + count).map(move |ordinal| PointId { ordinal, purpose })
    }

    /// Numbers of the workers that this agent runs.
    pub fn own_workers(&self) -> Range<u32> {
        let all = self.workers.max(1);
        self.crew.map_or(0..all, |group| group.workers(all))
    }

    /// Of a number of ops those of this worker: by workers in an open load, whose schedule is
    /// distributed over them; by clients in a closed one.
    pub fn ops_of_worker(&self, worker: u32, ops: u64) -> u64 {
        let workers = u64::from(self.workers.max(1));
        let parts = match self.load {
            Load::Open { arrivals: Arrivals::Shared | Arrivals::Sessions, .. } => workers,
            Load::Open { clients, .. } | Load::Closed { clients, .. } => u64::from(clients.max(1)),
        };
        let of_part = |part: u64| ops / parts + u64::from(part < ops % parts);
        (u64::from(worker)..parts).step_by(workers as usize).map(of_part).sum()
    }

    /// Index of the endpoint that this agent's client uses.
    pub fn endpoint_of(&self, client: u32) -> usize {
        let own = self.crew.filter(|group| group.own_endpoints);
        let index = own.and_then(|group| group.index_of(client, self.workers.max(1)));
        index.unwrap_or(client as usize) % self.endpoints.len().max(1)
    }

    /// Clients of the load point that this agent's workers simulate: client i belongs to worker
    /// i mod n.
    pub fn own_clients(&self) -> u32 {
        let (clients, all) = (self.load.clients(), self.workers.max(1));
        self.own_workers().map(|worker| clients / all + u32::from(worker < clients % all)).sum()
    }
}

/// Which target each client of a load point uses, over all agents. The servers' data is made for
/// it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TargetDistribution {
    targets: usize,
    workers: u32,
    /// Agents that use some of the targets, and which.
    crews: Vec<(WorkerGroup, Vec<usize>)>,
}

impl TargetDistribution {
    /// Client i uses target i mod n.
    pub const fn round_robin(targets: usize) -> Self {
        Self { targets, workers: 1, crews: Vec::new() }
    }

    /// The clients of each group, of `workers` workers in all, use the targets of these numbers.
    pub fn to_crews(self, workers: u32, crews: Vec<(WorkerGroup, Vec<usize>)>) -> Self {
        if crews.is_empty() { self } else { Self { workers: workers.max(1), crews, ..self } }
    }

    /// Number of the client's target, from 0.
    pub fn target_of(&self, client: u32) -> usize {
        let own = self.crews.iter().find_map(|(group, targets)| {
            targets.get(group.index_of(client, self.workers)? % targets.len().max(1)).copied()
        });
        own.unwrap_or(client as usize % self.targets.max(1))
    }
}

/// A server address the clients use.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Endpoint {
    /// As the user named it, without password.
    pub target: String,
    /// Where to connect.
    pub address: SocketAddr,
    /// Unix socket to connect to instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unix: Option<PathBuf>,
}

/// Which load point of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PointId {
    /// 1, 2, 3 … in the order of execution, probes included.
    pub ordinal: u32,
    /// Why the point is run.
    pub purpose: Purpose,
}

/// Why a load point is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    /// A step of the search for the peak; not part of the ladder.
    Probe,
    /// Confirms a load the search claims.
    Verify,
    /// A load point of the ladder.
    Ladder,
    /// Load for a profile of the server; in no figure of the run.
    Profile,
    /// Finds how long the window of the next load point must be; in no figure of the run.
    Pilot,
}

impl PointId {
    /// Stem of the point's files in the bundle: `point-03`.
    pub fn stem(self) -> String {
        format!("point-{:02}", self.ordinal)
    }
}

/// The load of one point.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "mode", rename_all = "snake_case", deny_unknown_fields)]
pub enum Load {
    /// A schedule that does not wait for replies.
    Open {
        /// Ops per second over all clients; sessions per second where those arrive.
        rate_ops_per_s: OpsPerSec,
        /// Whose schedule.
        arrivals: Arrivals,
        /// How far apart.
        gaps: InterArrival,
        /// Simulated clients, or the pool of a shared schedule.
        clients: u32,
        /// Ops that may wait, over all clients.
        backlog_ops_max: u32,
    },
    /// Each client waits for its reply and thinks before the next piece of work.
    Closed {
        /// Simulated clients.
        clients: u32,
        /// Pause before each piece of work.
        think: Think,
        /// Each client starts at a random instant within this span.
        start_delay_ns: Nanos,
        /// Each client starts in the middle of a think time: after the rest of it, instead of
        /// within `start_delay_ns`.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        starts_thinking: bool,
        /// On a ladder of think times, the point's position on it: the method's think time, before
        /// the profile scales it to `think`. Absent where the ladder counts clients.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        axis_think_ns: Option<Nanos>,
    },
}

impl Load {
    /// Simulated clients.
    pub const fn clients(&self) -> u32 {
        match self {
            Self::Open { clients, .. } | Self::Closed { clients, .. } => *clients,
        }
    }

    /// Sessions arrive, and their ops follow from replies and think times.
    pub const fn is_sessions(&self) -> bool {
        matches!(self, Self::Open { arrivals: Arrivals::Sessions, .. })
    }

    /// The same load in a phase of a shape.
    pub fn in_phase(&self, phase: &LoadPhase) -> Self {
        let mut load = self.clone();
        match &mut load {
            Self::Open { rate_ops_per_s, .. } => {
                *rate_ops_per_s = OpsPerSec::new(phase.mean).unwrap_or_default();
            }
            Self::Closed { clients, .. } => *clients = phase.mean.round() as u32,
        }
        load
    }

    /// Position on the ladder's axis: ops/s, sessions/s, clients, or seconds of think time.
    pub fn requested(&self) -> f64 {
        match self {
            Self::Open { rate_ops_per_s, .. } => rate_ops_per_s.get(),
            Self::Closed { axis_think_ns: Some(think), .. } => think.as_secs_f64(),
            Self::Closed { clients, .. } => f64::from(*clients),
        }
    }
}

/// Timings of a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Phases {
    /// Load before the window.
    pub warm_up_ns: Nanos,
    /// The measurement window.
    pub measure_ns: Nanos,
    /// Load after the window, not counted.
    #[serde(default)]
    pub ramp_down_ns: Nanos,
    /// Longest wait after the load for ops under way.
    pub drain_ns: Nanos,
    /// Number of ops that come due in the window, over all workers. The window ends when they have
    /// ended, if not before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ops: Option<u64>,
}

/// Equal slices of a window whose counts are kept.
pub const WINDOW_SLICES: usize = 48;
/// Slices whose times are kept that a window has at the least, if it is no shorter than 360 ms: a
/// third of them limits the degrees of freedom of every standard error, and twelve are enough.
const SLICES_MIN: u64 = 36;

impl Phases {
    /// End of the measurement window, from the start of the point.
    pub fn window_end(&self) -> Nanos {
        self.warm_up_ns + self.measure_ns
    }

    /// End of the slice that contains `at`. A worker reports its counts once per slice: once a
    /// second, or more often where the window would have too few slices to estimate scatter. If the
    /// window is a count of ops, slices grow with it. A second contains whole slices.
    pub fn slice_end(&self, at: Nanos) -> Nanos {
        let length = match self.ops {
            Some(_) => at.saturating_sub(self.warm_up_ns),
            None => self.measure_ns,
        };
        // The longest that divides a second and leaves enough of them.
        let lengths = [1_000, 500, 250, 200, 100, 50, 20];
        let is_enough = |millis: &u64| length.0 / (millis * 1_000_000) >= SLICES_MIN;
        let millis = lengths.into_iter().find(is_enough).unwrap_or(10);
        let slice = Nanos::from_millis(millis).0;
        Nanos((at.0 / slice + 1) * slice)
    }

    /// Which of the [`WINDOW_SLICES`] equal slices of the window contains `at`; `None` outside of
    /// the window, and where that is a number of ops.
    pub fn slice_of_window(&self, at: Nanos) -> Option<usize> {
        let since = at.0.checked_sub(self.warm_up_ns.0).filter(|_| self.ops.is_none())?;
        let slice = since as usize * WINDOW_SLICES / (self.measure_ns.0 as usize).max(1);
        (slice < WINDOW_SLICES).then_some(slice)
    }

    /// No op comes due from here on, from the start of the point.
    pub fn load_end(&self) -> Nanos {
        self.window_end() + self.ramp_down_ns
    }
}

named! {
    /// How a worker waits for its next due time.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
    pub enum Pacing {
        /// Decides at each wait: polls while replies are outstanding or the next op is near, unless
        /// others need the worker's core; sleeps otherwise.
        #[default]
        Auto = "auto",
        /// Polls without sleeping: shortest lag, a whole core.
        Spin = "spin",
        /// Sleeps with a nanosecond timer: lag of one wakeup, some CPU.
        Precise = "precise",
        /// Wakes on a coarse grid and sends what is due together: least CPU, most lag.
        Coalesce = "coalesce",
    }
}

/// Scheduling priority of the worker threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Priority {
    /// Above them, where that is permitted.
    #[default]
    Auto,
    /// As any other.
    Normal,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The target of each of 24 clients, for three worker groups with these targets.
    fn distributed_targets(workers: u32, owns: [&[usize]; 3]) -> Vec<usize> {
        let group =
            |first: usize| WorkerGroup { first: 2 * first as u32, count: 2, own_endpoints: true };
        let crews = owns.iter().enumerate().filter(|(_, own)| !own.is_empty());
        let crews = crews.map(|(at, own)| (group(at), own.to_vec())).collect();
        let distribution = TargetDistribution::round_robin(3).to_crews(workers, crews);
        (0..24).map(|client| distribution.target_of(client)).collect()
    }

    fn phases(warm_up_ns: Nanos, measure_ns: Nanos) -> Phases {
        let (ramp_down_ns, drain_ns) = (Nanos::ZERO, Nanos::ZERO);
        Phases { warm_up_ns, measure_ns, ramp_down_ns, drain_ns, ops: None }
    }

    #[test]
    fn a_window_has_enough_slices_of_times_and_a_second_whole_ones() {
        for (millis, slice, count) in [
            (1_000, 20, 50),
            (3_000, 50, 60),
            (10_000, 250, 40),
            (30_000, 500, 60),
            (60_000, 1_000, 60),
        ] {
            let phases = phases(Nanos::ZERO, Nanos::from_millis(millis));
            assert_eq!(phases.slice_end(Nanos::ZERO), Nanos::from_millis(slice), "{millis} ms");
            assert_eq!(millis / slice, count);
            assert_eq!(1_000 % slice, 0);
        }
    }

    #[test]
    fn every_instant_of_a_window_is_in_one_of_its_slices() {
        let phases = phases(Nanos::from_secs(1), Nanos::from_secs(48));
        let slice = |millis| phases.slice_of_window(Nanos::from_millis(millis));
        assert_eq!([slice(999), slice(1_000), slice(1_999)], [None, Some(0), Some(0)]);
        assert_eq!([slice(2_000), slice(48_999), slice(49_000)], [Some(1), Some(47), None]);
        let counted = Phases { ops: Some(9), ..phases };
        assert_eq!(counted.slice_of_window(Nanos::from_secs(2)), None);
    }

    #[test]
    fn the_clients_of_a_crew_use_its_targets_in_turn() {
        let targets = distributed_targets(6, [&[0], &[1, 2], &[]]);
        for (client, target) in targets.iter().enumerate() {
            match client % 6 {
                0 | 1 => assert_eq!(*target, 0, "{client}"),
                2 | 3 => assert_ne!(*target, 0, "{client}"),
                _ => assert_eq!(*target, client % 3, "those of an agent that uses all"),
            }
        }
        let second: Vec<usize> =
            (0..24).filter(|at| at % 6 / 2 == 1).map(|at| targets[at]).collect();
        assert_eq!(second, [1, 2, 1, 2, 1, 2, 1, 2]);
        assert_eq!(
            distributed_targets(6, [&[]; 3]),
            (0..24).map(|client| client % 3).collect::<Vec<_>>()
        );
    }

    #[test]
    fn of_fewer_workers_those_that_are_left_share_the_clients() {
        // The second group has one worker, the third none.
        let targets = distributed_targets(3, [&[0], &[1, 2], &[0]]);
        let second: Vec<usize> = targets.iter().skip(2).step_by(3).copied().collect();
        assert_eq!(second, [1, 2, 1, 2, 1, 2, 1, 2]);
        assert!((0..24).filter(|at| at % 3 < 2).all(|at| targets[at] == 0));
    }
}
