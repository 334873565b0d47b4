//! A load point that agents make: who does what, and what they say of it.

use std::collections::BTreeMap;

use plimsoll_engine::clock;
use plimsoll_fleet::controller::{AgentId, AgentReport, Command, Failure, News};
use plimsoll_fleet::message::SecondTotals;
use plimsoll_model::assignment::{Assignment, Crew, Deal, Pacing};
use plimsoll_model::event::{AgentPoint, Phase};
use plimsoll_model::outcome::ErrorSample;
use plimsoll_model::units::Nanos;

use super::parts::Part;
use super::placement::{Placement, ServerPlace, place};
use crate::agent::KeptSlices;
use crate::clock::unix_ns;
use crate::fleet::{AgentSeat, Fleet};
use crate::host_inventory::boot_id;

/// What rules on the generator's host look at; more of an agent's host is told on request.
const JUDGED: [&str; 3] = ["host.", "cpu.", "process.generator."];

/// A load point for the agents of a run.
pub(super) struct FleetPoint<'f> {
    pub fleet: &'f mut Fleet,
    /// Of each agent that is there, in order.
    pub crews: Vec<(AgentId, Assignment)>,
    /// What their monitors see is told in full.
    pub watches: bool,
}

/// What the agents have brought in the end.
pub(super) enum Brought {
    /// Everything.
    Parts(Vec<Part>),
    /// Less than that.
    Lost {
        /// Name of the first that was lost, or refused.
        agent: String,
        host: String,
        why: Failure,
    },
}

/// What is heard of the agents.
pub(super) enum FleetHeard {
    Started {
        at_unix_ns: u64,
    },
    /// Of all agents.
    Second(SecondTotals),
    Sample(ErrorSample),
    ClientLost {
        client: u32,
        reason: String,
        at: Nanos,
    },
    End(Brought),
}

/// Where agents make the load: their seats, and what is left to servers and this program.
/// `asked` are workers of each agent, and the pacing.
pub(super) fn place_agents(
    fleet: &mut Fleet,
    cores: &[u32],
    server: &ServerPlace,
    (workers, pacing): (Option<u32>, Pacing),
) -> Placement {
    let own = boot_id();
    let are_here = fleet.living().any(|(_, member)| {
        member.greeting.as_ref().is_some_and(|greeting| greeting.boot_id == own)
    });
    let beside = place(cores, server, None, pacing);
    let taken = match server {
        ServerPlace::Ours => beside.server_cores.clone(),
        ServerPlace::SameHost(Some(listening)) => listening.cores.clone(),
        ServerPlace::SameHost(None) | ServerPlace::Elsewhere => Vec::new(),
    };
    fleet.take_seats(workers, (&own, &taken));
    let seats = fleet.living().map(|(_, member)| member.seat.workers);
    let workers = seats.sum();
    let why = format!("{}; {}", fleet.hosts_text(false), beside.why);
    let all = || cores.to_vec();
    match are_here {
        true => Placement { generator_cores: Vec::new(), own_cores: false, workers, why, ..beside },
        false => Placement {
            server_cores: if *server == ServerPlace::Ours { all() } else { Vec::new() },
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

/// The assignments of agents, from that of all.
pub(super) fn crews(
    whole: &Assignment,
    seats: impl Iterator<Item = (AgentId, AgentSeat)>,
) -> Vec<(AgentId, Assignment)> {
    let mut first = 0;
    let of_agent = |(agent, seat): (AgentId, AgentSeat)| {
        let crew = crew_of(&mut first, &seat);
        let own = seat.targets.iter().filter_map(|at| whole.endpoints.get(*at).cloned());
        let assignment = Assignment {
            crew: Some(crew),
            endpoints: if crew.own_endpoints { own.collect() } else { whole.endpoints.clone() },
            cores: seat.cores,
            own_cores: seat.own_cores,
            sources: if seat.sources.is_empty() { whole.sources.clone() } else { seat.sources },
            ..whole.clone()
        };
        (agent, assignment)
    };
    seats.map(of_agent).collect()
}

/// Which target each client uses, over all agents.
pub(super) fn deal(whole: &Assignment, fleet: Option<&Fleet>) -> Deal {
    let seats = fleet.into_iter().flat_map(Fleet::living).map(|(_, member)| &member.seat);
    let mut first = 0;
    let crews = seats.map(|seat| (crew_of(&mut first, seat), seat.targets.clone()));
    let own = crews.filter(|(crew, _)| crew.own_endpoints).collect();
    Deal::in_turn(whole.endpoints.len()).to_crews(whole.workers, own)
}

/// The next workers, from `first` on.
fn crew_of(first: &mut u32, seat: &AgentSeat) -> Crew {
    let own_endpoints = !seat.targets.is_empty();
    let crew = Crew { first: *first, count: seat.workers, own_endpoints };
    *first += seat.workers;
    crew
}

/// A load point under way.
pub(super) struct FleetListening<'f> {
    fleet: &'f mut Fleet,
    agents: usize,
    watches: bool,
    stopping: bool,
    /// Seconds that not every agent has told yet, with the number of those that have.
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

    /// What has happened; `None` when there was nothing for a while.
    pub(super) fn next(&mut self) -> Option<FleetHeard> {
        Some(match self.fleet.next()? {
            News::Started { at } => {
                let since = clock::monotonic().saturating_sub(at).0;
                let ahead = at.saturating_sub(clock::monotonic()).0;
                FleetHeard::Started { at_unix_ns: unix_ns() + ahead - since }
            }
            News::Second(_, second) => FleetHeard::Second(self.whole_second(*second)?),
            News::Sample(_, sample) => FleetHeard::Sample(sample),
            News::ClientLost { client, reason, at, .. } => {
                FleetHeard::ClientLost { client, reason, at }
            }
            News::PointFinished(reports) => {
                let parts = reports.into_iter().map(|report| self.part(report)).collect();
                FleetHeard::End(Brought::Parts(parts))
            }
            News::PointLost { agent, why } => FleetHeard::End(self.lost(agent, why)),
            // Only after a stop, which has its own reason.
            News::PointStopped => FleetHeard::End(Brought::Parts(Vec::new())),
            News::AgentLost { agent, .. } => {
                self.fleet.lose(agent);
                return None;
            }
            _ => return None,
        })
    }

    /// The second over all agents, once the last of them has told it.
    fn whole_second(&mut self, second: SecondTotals) -> Option<SecondTotals> {
        let key = (second.second, second.phase);
        let told = match self.seconds.get_mut(&key) {
            Some((told, sum)) => {
                sum.add(&second);
                *told += 1;
                *told
            }
            None => {
                self.seconds.insert(key, (1, second));
                1
            }
        };
        if told < self.agents {
            return None;
        }
        self.seconds.remove(&key).map(|(_, sum)| sum)
    }

    fn part(&self, reported: AgentReport) -> Part {
        let member = &self.fleet.members()[reported.agent.0];
        let (name, host) = (member.spec.name.clone(), member.host().to_owned());
        let mut report = reported.report;
        if !self.watches {
            report.resources.retain(|it| JUDGED.iter().any(|judged| it.name.starts_with(judged)));
            report.resources.iter_mut().for_each(|resource| resource.over_time.clear());
        }
        report.resources.iter_mut().for_each(|it| it.source = Some(name.clone()));
        let mut slices = KeptSlices::default();
        slices.extend(reported.slices);
        let (clock, start_skew_ns) = (reported.clock, reported.start_skew.0);
        let agent = AgentPoint { name, host, clock, start_skew_ns, ..AgentPoint::default() };
        Part { report, slices, agent: Some(agent), targets: member.targets.clone() }
    }

    fn lost(&self, agent: AgentId, why: Failure) -> Brought {
        let member = &self.fleet.members()[agent.0];
        Brought::Lost { agent: member.spec.name.clone(), host: member.host().to_owned(), why }
    }
}
