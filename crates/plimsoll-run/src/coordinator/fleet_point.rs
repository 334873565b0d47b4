//! A load point that agents make: their assignments and their reports.

use std::collections::BTreeMap;

use plimsoll_engine::clock;
use plimsoll_fleet::controller::{AgentId, AgentReport, Command, Failure, News};
use plimsoll_fleet::message::SecondTotals;
use plimsoll_model::assignment::{Assignment, Pacing, TargetDistribution, WorkerGroup};
use plimsoll_model::event::{AgentPoint, Phase};

use super::parts::Part;
use super::placement::{Placement, ServerLocation, choose_placement};
use crate::agent::{Next, PointEvent};
use crate::clock::unix_ns;
use crate::fleet::{AgentAllocation, Fleet};
use crate::host_inventory::boot_id;

/// Settings that the rules on the generator's host need. More of an agent's host is recorded on
/// request.
const RULE_PREFIXES: [&str; 3] = ["host.", "cpu.", "process.generator."];

/// A load point for the agents of a run.
pub(super) struct FleetPoint<'f> {
    pub fleet: &'f mut Fleet,
    /// The assignment of each connected agent, in order.
    pub crews: Vec<(AgentId, Assignment)>,
    /// Record everything that their monitors observe.
    pub watches: bool,
}

/// What the agents delivered.
pub(super) enum Brought {
    /// Everything.
    Parts(Vec<Part>),
    /// Less than everything.
    Lost {
        /// Name of the first that was lost, or refused.
        agent: String,
        host: String,
        why: Failure,
    },
}

/// Placement of a run with agents: their cores and workers, and what is left to servers and this
/// program. `workers` is the requested number for each agent.
pub(super) fn placement_with_agents(
    fleet: &mut Fleet,
    cores: &[u32],
    server: &ServerLocation,
    (workers, pacing): (Option<u32>, Pacing),
) -> Placement {
    let own = boot_id();
    let are_here = fleet.living().any(|(_, member)| {
        member.greeting.as_ref().is_some_and(|greeting| greeting.boot_id == own)
    });
    let own_placement = choose_placement(cores, server, None, pacing);
    let taken = match server {
        ServerLocation::Ours => own_placement.server_cores.clone(),
        ServerLocation::SameHost(Some(listening)) => listening.cores.clone(),
        ServerLocation::SameHost(None) | ServerLocation::Elsewhere => Vec::new(),
    };
    fleet.allocate_cores(workers, (&own, &taken));
    let workers = fleet.living().map(|(_, member)| member.allocation.workers).sum();
    let why = format!("{}; {}", fleet.hosts_text(false), own_placement.why);
    let all = || cores.to_vec();
    match are_here {
        true => Placement {
            generator_cores: Vec::new(),
            own_cores: false,
            workers,
            why,
            ..own_placement
        },
        false => Placement {
            server_cores: if *server == ServerLocation::Ours { all() } else { Vec::new() },
            generator_cores: Vec::new(),
            rest_cores: all(),
            setup_cores: all(),
            workers,
            pacing,
            own_cores: false,
            why,
        },
    }
}

/// Splits the assignment into one for each agent.
pub(super) fn crews(
    whole: &Assignment,
    allocations: impl Iterator<Item = (AgentId, AgentAllocation)>,
) -> Vec<(AgentId, Assignment)> {
    let mut first = 0;
    let of_agent = |(agent, allocation): (AgentId, AgentAllocation)| {
        let group = next_worker_group(&mut first, &allocation);
        let own = allocation.targets.iter().filter_map(|at| whole.endpoints.get(*at).cloned());
        let assignment = Assignment {
            crew: Some(group),
            endpoints: if group.own_endpoints { own.collect() } else { whole.endpoints.clone() },
            cores: allocation.cores,
            own_cores: allocation.own_cores,
            sources: if allocation.sources.is_empty() {
                whole.sources.clone()
            } else {
                allocation.sources
            },
            ..whole.clone()
        };
        (agent, assignment)
    };
    allocations.map(of_agent).collect()
}

/// Which target each client uses, over all agents.
pub(super) fn distribute_clients(whole: &Assignment, fleet: Option<&Fleet>) -> TargetDistribution {
    let allocations =
        fleet.into_iter().flat_map(Fleet::living).map(|(_, member)| &member.allocation);
    let mut first = 0;
    let crews = allocations
        .map(|allocation| (next_worker_group(&mut first, allocation), allocation.targets.clone()));
    let own = crews.filter(|(group, _)| group.own_endpoints).collect();
    TargetDistribution::round_robin(whole.endpoints.len()).to_crews(whole.workers, own)
}

/// The next group of workers, starting at `first`.
fn next_worker_group(first: &mut u32, allocation: &AgentAllocation) -> WorkerGroup {
    let own_endpoints = !allocation.targets.is_empty();
    let group = WorkerGroup { first: *first, count: allocation.workers, own_endpoints };
    *first += allocation.workers;
    group
}

/// A running load point.
pub(super) struct FleetListening<'f> {
    fleet: &'f mut Fleet,
    agents: usize,
    watches: bool,
    stopping: bool,
    /// Seconds that not every agent has reported yet, with the number of agents that have.
    seconds: BTreeMap<(u32, Phase), (usize, SecondTotals)>,
}

impl<'f> FleetPoint<'f> {
    /// Gives the agents their assignments.
    pub(super) fn begin(self) -> FleetListening<'f> {
        let Self { fleet, crews, watches } = self;
        let agents = crews.len();
        fleet.command(Command::Point(crews));
        FleetListening { fleet, agents, watches, stopping: false, seconds: BTreeMap::new() }
    }
}

impl FleetListening<'_> {
    /// Ends the load early.
    pub(super) fn stop(&mut self) {
        if !self.stopping {
            self.stopping = true;
            self.fleet.command(Command::Stop);
        }
    }

    /// The next event, after a while at most.
    pub(super) fn next(&mut self) -> Next<Brought> {
        let Some(news) = self.fleet.next() else { return Next::Quiet };
        Next::Event(match news {
            News::Started { at } => {
                let since = clock::monotonic().saturating_sub(at).0;
                let ahead = at.saturating_sub(clock::monotonic()).0;
                PointEvent::Started { at_unix_ns: unix_ns() + ahead - since }
            }
            News::Second(_, second) => match self.whole_second(*second) {
                Some(second) => PointEvent::Second(second),
                None => return Next::Quiet,
            },
            News::Sample(_, sample) => PointEvent::Sample(sample),
            News::ClientLost { client, reason, at, .. } => {
                PointEvent::ClientLost { client, reason, at }
            }
            News::PointFinished(reports) => {
                let parts = reports.into_iter().map(|report| self.part(report)).collect();
                return Next::End(Brought::Parts(parts));
            }
            News::PointLost { agent, why } => return Next::End(self.lost(agent, why)),
            // Only after a stop, which has its own reason.
            News::PointStopped => return Next::End(Brought::Parts(Vec::new())),
            News::AgentLost { agent, .. } => {
                self.fleet.lose(agent);
                return Next::Quiet;
            }
            _ => return Next::Quiet,
        })
    }

    /// The second over all agents, once the last of them has reported it.
    fn whole_second(&mut self, second: SecondTotals) -> Option<SecondTotals> {
        let key = (second.second, second.phase);
        let reports = match self.seconds.get_mut(&key) {
            Some((reports, sum)) => {
                sum.add(&second);
                *reports += 1;
                *reports
            }
            None => {
                self.seconds.insert(key, (1, second));
                1
            }
        };
        if reports < self.agents { None } else { self.seconds.remove(&key).map(|(_, sum)| sum) }
    }

    fn part(&self, reported: AgentReport) -> Part {
        let member = &self.fleet.members()[reported.agent.0];
        let (name, host) = (member.spec.name.clone(), member.host().to_owned());
        let mut report = reported.report;
        if !self.watches {
            report
                .resources
                .retain(|it| RULE_PREFIXES.iter().any(|prefix| it.name.starts_with(prefix)));
            report.resources.iter_mut().for_each(|resource| resource.over_time.clear());
        }
        report.resources.iter_mut().for_each(|it| it.source = Some(name.clone()));
        let (clock, start_skew_ns) = (reported.clock, reported.start_skew.0);
        let agent = AgentPoint { name, host, clock, start_skew_ns, ..AgentPoint::default() };
        let slices = reported.slices.into();
        Part { report, slices, agent: Some(agent), targets: member.targets.clone() }
    }

    fn lost(&self, agent: AgentId, why: Failure) -> Brought {
        let member = &self.fleet.members()[agent.0];
        Brought::Lost { agent: member.spec.name.clone(), host: member.host().to_owned(), why }
    }
}
