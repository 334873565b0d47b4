//! What the coordinator asks of an agent for one load point.

use std::net::{IpAddr, SocketAddr};
use std::ops::Range;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::goodput::GoodLimits;
use crate::named::named;
use crate::suite::{Arrivals, Gaps, OnClientFailure, Think};
use crate::units::{Nanos, OpsPerSec};

/// One load point for one agent. Self-contained: an agent needs nothing else to do it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Assignment {
    /// Which load point, and why it is run.
    pub point: PointId,
    /// The load to hold.
    pub load: Load,
    /// For how long.
    pub phases: Phases,
    /// Schedule, op choice and data all follow from this and the client's number.
    pub seed: u64,
    /// Worker threads of the load point over all agents, one loop each. Clients, schedules and ops
    /// are dealt to workers by their numbers, so the work is the same for any number of agents.
    pub workers: u32,
    /// The workers that this agent runs; all of them where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub crew: Option<Crew>,
    /// Files of the data set on the servers, where the load does not say how many there are.
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
    /// How the workers stand to other programs.
    #[serde(default)]
    pub priority: Priority,
    /// An op without a reply after this long has failed.
    pub op_timeout: Nanos,
    /// Client i uses endpoint i mod n, unless the endpoints are the crew's own.
    pub endpoints: Vec<Endpoint>,
    /// Client i connects from source i mod n; empty leaves it to the kernel. Several sources
    /// multiply the ports that connections per request use up.
    #[serde(default)]
    pub sources: Vec<IpAddr>,
    /// Clients connect from ports below 1024, as servers that trust users by their port demand.
    /// Where that is not permitted, or none is free, any port is taken.
    #[serde(default)]
    pub reserved_ports: bool,
    /// Differs from point to point, also between runs, so that a server cannot take an op of this
    /// one for a repetition of one from before. Decides nothing else.
    #[serde(default)]
    pub nonce: u64,
    /// What a client that can go no further means for the point.
    #[serde(default)]
    pub on_client_failure: OnClientFailure,
    /// Ops that end well and keep these limits are counted apart.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub goodput: Option<GoodLimits>,
    /// What each client got done is counted too ([`crate::event::WorkerTotals::per_client`]).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub counts_clients: bool,
}

/// Some of the workers of a load point: those of one agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Crew {
    /// Number of the first.
    pub first: u32,
    /// How many.
    pub count: u32,
    /// The endpoints are those of this crew, not of all: its clients use them in turn.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub own_endpoints: bool,
}

impl Crew {
    /// Numbers of its workers, of so many over all agents.
    fn workers(self, all: u32) -> Range<u32> {
        self.first.min(all)..self.first.saturating_add(self.count).min(all)
    }

    /// The client's place among those of this crew, 0, 1, 2 …; `None` for a client of another.
    fn place_of(self, client: u32, all: u32) -> Option<usize> {
        let (own, worker) = (self.workers(all), client % all);
        let in_turn = || (client / all) as usize * own.len() + (worker - own.start) as usize;
        own.contains(&worker).then(in_turn)
    }
}

impl Assignment {
    /// Numbers of the workers that this agent runs.
    pub fn own_workers(&self) -> Range<u32> {
        let all = self.workers.max(1);
        self.crew.map_or(0..all, |crew| crew.workers(all))
    }

    /// Index of the endpoint that this agent's client uses.
    pub fn endpoint_of(&self, client: u32) -> usize {
        let own = self.crew.filter(|crew| crew.own_endpoints);
        let place = own.and_then(|crew| crew.place_of(client, self.workers.max(1)));
        place.unwrap_or(client as usize) % self.endpoints.len().max(1)
    }

    /// Clients of the load point that this agent's workers simulate: client i belongs to worker
    /// i mod n.
    pub fn own_clients(&self) -> u32 {
        let (clients, all) = (self.load.clients(), self.workers.max(1));
        self.own_workers().map(|worker| clients / all + u32::from(worker < clients % all)).sum()
    }
}

/// Which target each client of a load point uses, over all agents: what the servers' data is made
/// for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Deal {
    targets: usize,
    workers: u32,
    /// Agents that use some of the targets, and which.
    crews: Vec<(Crew, Vec<usize>)>,
}

impl Deal {
    /// Client i uses target i mod n.
    pub const fn in_turn(targets: usize) -> Self {
        Self { targets, workers: 1, crews: Vec::new() }
    }

    /// The clients of these crews, of so many workers in all, use the targets of these numbers.
    pub fn to_crews(self, workers: u32, crews: Vec<(Crew, Vec<usize>)>) -> Self {
        match crews.is_empty() {
            true => self,
            false => Self { workers: workers.max(1), crews, ..self },
        }
    }

    /// Number of the client's target, from 0.
    pub fn target_of(&self, client: u32) -> usize {
        let own = self.crews.iter().find_map(|(crew, targets)| {
            targets.get(crew.place_of(client, self.workers)? % targets.len().max(1)).copied()
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
        /// Ops per second over all clients.
        rate_ops_per_s: OpsPerSec,
        /// Whose schedule.
        arrivals: Arrivals,
        /// How far apart.
        gaps: Gaps,
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
        /// On a ladder of think times, the point's place on it: the method's think time, before
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

    /// Position on the ladder's axis: ops/s, clients, or seconds of think time.
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
    /// Load held before the window.
    pub warm_up_ns: Nanos,
    /// The measurement window.
    pub measure_ns: Nanos,
    /// Load held after the window, not counted.
    #[serde(default)]
    pub ramp_down_ns: Nanos,
    /// Longest wait after the load for ops under way.
    pub drain_ns: Nanos,
    /// So many ops come due in the window, over all workers; when they have ended it is over, if it
    /// was not before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ops: Option<u64>,
}

impl Phases {
    /// End of the measurement window, from the start of the point.
    pub fn window_end(&self) -> Nanos {
        self.warm_up_ns + self.measure_ns
    }

    /// End of the slice that holds `at`: counts leave a worker once a second, or more often where
    /// the window would have too few slices to tell scatter from the figure. Where ops decide how
    /// long it is, slices grow with it. Seconds hold whole slices.
    pub fn slice_end(&self, at: Nanos) -> Nanos {
        let length = match self.ops {
            Some(_) => at.saturating_sub(self.warm_up_ns),
            None => self.measure_ns,
        };
        let millis = match length.0 / 1_000_000 {
            20_000.. => 1_000,
            3_000.. => 250,
            1_000.. => 100,
            500.. => 50,
            _ => 20,
        };
        let slice = Nanos::from_millis(millis).0;
        Nanos((at.0 / slice + 1) * slice)
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
        /// others want the worker's core; sleeps otherwise.
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

/// How workers stand to the other programs of this host.
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

    /// Targets of each of the three crews, each client's target by the deal, of 24.
    fn dealt(workers: u32, owns: [&[usize]; 3]) -> Vec<usize> {
        let crew = |first: usize| Crew { first: 2 * first as u32, count: 2, own_endpoints: true };
        let crews = owns.iter().enumerate().filter(|(_, own)| !own.is_empty());
        let crews = crews.map(|(at, own)| (crew(at), own.to_vec())).collect();
        let deal = Deal::in_turn(3).to_crews(workers, crews);
        (0..24).map(|client| deal.target_of(client)).collect()
    }

    #[test]
    fn the_clients_of_a_crew_use_its_targets_in_turn() {
        let targets = dealt(6, [&[0], &[1, 2], &[]]);
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
        assert_eq!(dealt(6, [&[]; 3]), (0..24).map(|client| client % 3).collect::<Vec<_>>());
    }

    #[test]
    fn of_fewer_workers_those_that_are_left_share_the_clients() {
        // The second crew has one worker, the third none.
        let targets = dealt(3, [&[0], &[1, 2], &[0]]);
        let second: Vec<usize> = targets.iter().skip(2).step_by(3).copied().collect();
        assert_eq!(second, [1, 2, 1, 2, 1, 2, 1, 2]);
        assert!((0..24).filter(|at| at % 3 < 2).all(|at| targets[at] == 0));
    }
}
