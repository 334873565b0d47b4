//! Full links of the hosts that make load: the limit of the clients' side, not of the server.

use plimsoll_model::disclosure::Disclosure;
use plimsoll_model::limit::Limit;
use plimsoll_model::monitored::{MonitoredHost, RoleBasis, SourceRole};
use plimsoll_model::result::{AgentResult, PointResult};

use super::SATURATED_MAX_RATIO;
use super::monitored::{MonitoredPoint, Scene};
use super::resources::full_link;

/// A load whose throughput does not follow, by agents.
pub(super) struct MissedLoad<'a> {
    pub(super) point: &'a PointResult,
    /// The lowest load, where this is not it.
    pub(super) lower: Option<&'a PointResult>,
    /// Of a closed load: its share of the throughput without queueing.
    pub(super) asymptote_ratio: Option<f64>,
    /// Of an open load: an agent whose ops are fewer by more than this share did not follow.
    pub(super) tolerance_ratio: f64,
}

/// Was the point limited by a link of the clients' hosts?
pub(super) fn limited_by_clients(point: &PointResult) -> bool {
    point.limit.host.as_ref().is_some_and(|host| host.role == SourceRole::Client)
}

/// The full links by which every agent that did not follow the load is limited. If another agent
/// did not follow either, its limit is elsewhere, and it may be that of all. Agents of one host see
/// the same interfaces, so only those count that lead to the agent's targets.
pub(super) fn client_links(
    load: &MissedLoad<'_>,
    disclosure: Option<&Disclosure>,
) -> Option<Limit> {
    let agents = load.point.agents.iter().filter(|agent| agent.workers > 0);
    let behind = agents.filter(|agent| !load.followed(agent));
    let mut links: Vec<(&str, Limit)> = Vec::new();
    for agent in behind {
        let link = load.link(agent, disclosure?)?;
        let is_same = |(host, it): &(&str, Limit)| *host == agent.host && it.place == link.place;
        if !links.iter().any(is_same) {
            links.push((&agent.host, link));
        }
    }
    let mut links = links.into_iter().map(|(_, link)| link);
    let first = links.next()?;
    Some(Limit { also: links.collect(), ..first })
}

impl MissedLoad<'_> {
    /// As the saturation of a whole point is found, with the agent's part of it.
    fn followed(&self, agent: &AgentResult) -> bool {
        let workers: u32 = self.point.agents.iter().map(|it| it.workers).sum();
        let part = f64::from(agent.workers) / f64::from(workers.max(1));
        if let Some(offered) = self.point.offered_ops_per_s {
            let due_ops_per_s = offered * part * (1.0 - self.tolerance_ratio);
            return agent.achieved_ops_per_s.is_some_and(|ops| ops >= due_ops_per_s);
        }
        let share =
            |point: &PointResult| point.agents.iter().find(|it| it.name == agent.name)?.share_ratio;
        let low = self.lower.and_then(share).filter(|share| *share > 0.0);
        let ratio = |ratio: f64| Some(ratio * share(self.point)? / low?);
        self.asymptote_ratio.and_then(ratio).is_some_and(|ratio| ratio > SATURATED_MAX_RATIO)
    }

    fn link(&self, agent: &AgentResult, disclosure: &Disclosure) -> Option<Limit> {
        let routes = &disclosure.agents.iter().find(|it| it.agent == agent.name)?.ways;
        let leads_there = |interface: &str| {
            routes.iter().any(|route| route.interface.as_deref() == Some(interface))
        };
        let at = |point| MonitoredPoint::of_host(point, Some(&agent.name), &[]);
        let host = MonitoredHost {
            source: Some(agent.name.clone()),
            role: SourceRole::Client,
            basis: RoleBasis::Agent,
        };
        let low = self.lower.map(at);
        let scene = Scene { host: Some(&host), now: at(self.point), most_running: None, low };
        let link = full_link(&scene, leads_there)?;
        Some(Limit { host: Some(host), ..link })
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_model::disclosure::{AgentDisclosure, RouteDisclosure, TargetDisclosure};
    use plimsoll_model::event::{AgentPoint, Bound, PointRecord, ResourceUse};
    use plimsoll_model::limit::LimitKind;
    use plimsoll_model::result::RunResult;

    use super::*;
    use crate::analyse;
    use crate::testing::{PointBuilder, RunBuilder};

    const FULL: f64 = 0.97;
    const ROOM: f64 = 0.4;
    /// Of a built point.
    const SECONDS: u64 = 30;

    /// Agents `a` and `b`, each alone on its host, with their ops per second and how full eth0 is.
    fn set_agents(record: &mut PointRecord, agents: [(u64, f64); 2]) {
        let worker = record.workers[0].clone();
        record.workers = vec![worker; 2];
        for (name, (ops_per_s, share)) in ["a", "b"].into_iter().zip(agents) {
            record.agents.push(AgentPoint {
                name: name.to_owned(),
                host: format!("host-{name}"),
                workers: 1,
                done: ops_per_s * SECONDS,
                ..AgentPoint::default()
            });
            record.resources.push(ResourceUse {
                source: Some(name.to_owned()),
                ..ResourceUse::of_window("network.eth0.received_share", "ratio", share, share)
            });
        }
    }

    /// The routes of both agents lead by `interface`.
    fn routes(interface: &str) -> Disclosure {
        let route =
            RouteDisclosure { interface: Some(interface.to_owned()), ..RouteDisclosure::default() };
        let agent = |name: &str| AgentDisclosure {
            agent: name.to_owned(),
            ways: vec![route.clone()],
            ..AgentDisclosure::default()
        };
        let target = TargetDisclosure { same_host: true, ..TargetDisclosure::default() };
        let agents = vec![agent("a"), agent("b")];
        Disclosure { targets: vec![target], agents, ..Disclosure::default() }
    }

    fn run(
        points: [PointBuilder; 2],
        agents: [[(u64, f64); 2]; 2],
        server: &[(&str, f64)],
        disclosure: Disclosure,
    ) -> RunResult {
        let mut run = RunBuilder::from_points(points);
        for (index, agents) in agents.into_iter().enumerate() {
            let record = run.finished_mut(index);
            set_agents(record, agents);
            let used =
                server.iter().map(|(name, mean)| ResourceUse::of_window(name, "", *mean, *mean));
            record.resources.extend(used);
        }
        let mut raw = run.raw();
        raw.disclosure = Some(disclosure);
        analyse(&raw)
    }

    /// 4 clients with 800 ops/s, then 8 with the sum of the agents'.
    fn closed(
        agents: [(u64, f64); 2],
        server: &[(&str, f64)],
        disclosure: Disclosure,
    ) -> RunResult {
        let high = agents.iter().map(|(ops, _)| ops).sum();
        let points = [(4, 800), (8, high)].map(|(clients, ops)| {
            let response_ns = u64::from(clients) * 1_000_000_000 / ops;
            PointBuilder::closed(clients).achieved(ops).response_ns(response_ns)
        });
        run(points, [[(400, ROOM); 2], agents], server, disclosure)
    }

    /// Sources of the links that limit the higher load; empty if something else does.
    fn named(result: &RunResult) -> Vec<&str> {
        let limit = &result.points[1].limit;
        let all = std::iter::once(limit).chain(&limit.also);
        all.filter_map(|it| it.host.as_ref()?.source.as_deref()).collect()
    }

    #[test]
    fn full_links_of_the_agents_that_did_not_follow_are_the_limit() {
        let both = closed([(500, FULL); 2], &[], routes("eth0"));
        assert_eq!(named(&both), ["a", "b"]);
        assert_eq!(both.points[1].limit.place.as_deref(), Some("eth0"));
        let stopped = closed([(405, FULL); 2], &[], routes("eth0"));
        assert_eq!((named(&stopped).len(), stopped.summary.bound), (2, Bound::AtLeast));
        let text = both.summary.limit.clone().unwrap();
        let begin = "limited by the clients' side from 8 clients on: on the client a, the network: \
                     eth0 received 97 % of what its link carries; and on the client b, ";
        assert!(text.starts_with(begin), "{text}");
        let unequal = closed([(200, FULL), (800, ROOM)], &[], routes("eth0"));
        assert_eq!(named(&unequal), ["a"], "the other followed");
    }

    #[test]
    fn what_else_may_be_the_limit_comes_before_the_clients_links() {
        let none: [&str; 0] = [];
        let one = closed([(500, FULL), (500, ROOM)], &[], routes("eth0"));
        assert_eq!(named(&one), none, "the other did not follow, with room on its link");
        assert_eq!(named(&closed([(500, FULL); 2], &[], routes("eth1"))), none, "not on the route");
        let disk = [("storage.server:vda.reads", 600.0), ("storage.server:vda.reads_max", 600.0)];
        let disk = closed([(405, FULL); 2], &disk, routes("eth0"));
        assert_eq!(disk.points[1].limit.kind, LimitKind::Disk);
        assert_eq!(disk.summary.bound, Bound::Exact);
    }

    #[test]
    fn of_an_open_load_each_agent_has_the_part_of_its_workers() {
        let open = |agents: [(u64, f64); 2]| {
            let ops = agents.iter().map(|(ops, _)| ops).sum();
            let points = [PointBuilder::open(500.0), PointBuilder::open(1_000.0).achieved(ops)];
            run(points, [[(250, ROOM); 2], agents], &[], routes("eth0"))
        };
        assert_eq!(named(&open([(500, ROOM), (300, FULL)])), ["b"]);
        let none: [&str; 0] = [];
        assert_eq!(named(&open([(460, ROOM), (300, FULL)])), none, "nor did the other follow");
        assert_eq!(named(&open([(500, FULL), (500, FULL)])), none, "both followed");
    }
}
