//! Which monitored host is the server's, a database's, a client's. Pure.
//!
//! The order of evidence: what the user gave; processes or addresses of a target; an agent that
//! runs there; an SNMP agent without processors, which is a switch or a router. If no host is the
//! server's after that and one source is left, it is the server's: a virtual address and an alias
//! of ssh's configuration name no address of the server.

use std::collections::BTreeSet;

use plimsoll_model::disclosure::{Disclosure, TargetDisclosure};
use plimsoll_model::event::{PointRecord, ResourceUse};
use plimsoll_model::monitored::{MonitoredHost, MonitoredSource, RoleBasis, SourceRole};
use plimsoll_model::result::PointResult;
use plimsoll_model::target::TargetUrl;

/// The name under which a run monitors its first server, and the prefix of those of others.
pub(crate) const SERVER: &str = "server";
/// Tables reported by servers and exporters of GPUs, whose source is not the server's host.
const NO_HOST: [&str; 2] = ["model.", "gpu."];

/// What a load point tells about its monitored hosts.
pub(crate) struct HostEvidence<'a> {
    resources: &'a [ResourceUse],
    /// Name and host of each agent.
    agents: Vec<(&'a str, &'a str)>,
    disclosure: Option<&'a Disclosure>,
}

impl<'a> HostEvidence<'a> {
    pub(crate) fn from_result(point: &'a PointResult, disclosure: Option<&'a Disclosure>) -> Self {
        let agents = point.agents.iter().map(|agent| (&*agent.name, &*agent.host)).collect();
        Self { resources: &point.resources, agents, disclosure }
    }

    pub(crate) fn from_record(record: &'a PointRecord, disclosure: Option<&'a Disclosure>) -> Self {
        let agents = record.agents.iter().map(|agent| (&*agent.name, &*agent.host)).collect();
        Self { resources: &record.resources, agents, disclosure }
    }

    /// The hosts with their roles, this one first. A source that watches this host, or the host of
    /// an earlier agent, is none of them.
    pub(crate) fn hosts(&self) -> Vec<MonitoredHost> {
        let of_host = self.resources.iter().filter(|used| is_of_host(used));
        let sources: BTreeSet<_> = of_host.map(|used| used.source.as_deref()).collect();
        let mut unassigned = Vec::new();
        let mut hosts: Vec<MonitoredHost> = Vec::new();
        for source in sources {
            let role = match source {
                None => Identity::Role(self.own_role()),
                Some(source) => self.role_of(source),
            };
            match role {
                Identity::Role((role, basis)) => hosts.push(host(source, role, basis)),
                Identity::Unknown => unassigned.extend(source),
                Identity::Again => {}
            }
        }
        self.keep_each_server_once(&mut hosts);
        let no_server = !hosts.iter().any(|host| host.role == SourceRole::Server);
        let lists_sources = self.disclosure.is_some_and(|it| !it.monitored.is_empty());
        // Bundles of older programs do not list them: the first was the server's.
        let assumed = no_server && (unassigned.len() == 1 || !lists_sources);
        for (at, source) in unassigned.into_iter().enumerate() {
            hosts.push(match assumed && at == 0 {
                true => host(Some(source), SourceRole::Server, RoleBasis::Assumed),
                false => host(Some(source), SourceRole::Other, RoleBasis::Nothing),
            });
        }
        hosts
    }

    /// Of the sources that watch one host of a server, the one with its processes stands for it.
    fn keep_each_server_once(&self, hosts: &mut Vec<MonitoredHost>) {
        let addresses = |host: &MonitoredHost| {
            let listed = host.source.as_deref().and_then(|source| self.listed(source));
            listed.map(|it| it.addresses.as_slice()).unwrap_or_default()
        };
        let share = |host: &MonitoredHost, other: &MonitoredHost| {
            addresses(host).iter().any(|address| addresses(other).contains(address))
        };
        let rank = |host: &MonitoredHost| !self.has_server_process(host.source.as_deref());
        let is_server = |host: &&MonitoredHost| host.role == SourceRole::Server;
        let servers: Vec<MonitoredHost> = hosts.iter().filter(is_server).cloned().collect();
        hosts.retain(|host| {
            let is_better =
                |other: &MonitoredHost| (rank(other), &other.source) < (rank(host), &host.source);
            let mut same = servers.iter().filter(|other| share(host, other));
            !is_server(&host) || !same.any(is_better)
        });
    }

    /// Does this host make load?
    pub(crate) fn generates_here(&self) -> bool {
        let name = self.disclosure.and_then(|it| it.generator.name.as_deref());
        self.agents.is_empty() || self.agents.iter().any(|(_, host)| Some(*host) == name)
    }

    fn own_role(&self) -> (SourceRole, RoleBasis) {
        if self.targets().iter().any(|target| target.same_host) {
            (SourceRole::Server, RoleBasis::Address)
        } else if self.has_server_process(None) {
            (SourceRole::Server, RoleBasis::Process)
        } else if self.generates_here() {
            (SourceRole::Client, RoleBasis::Agent)
        } else {
            (SourceRole::Other, RoleBasis::Nothing)
        }
    }

    fn role_of(&self, source: &str) -> Identity {
        if let Some(at) = self.agents.iter().position(|(name, _)| *name == source) {
            let host = self.agents[at].1;
            let before = self.agents[..at].iter().any(|(_, other)| *other == host);
            let own_host = self.disclosure.and_then(|it| it.generator.name.as_deref());
            return match before || own_host == Some(host) {
                true => Identity::Again,
                false => Identity::Role((SourceRole::Client, RoleBasis::Agent)),
            };
        }
        let listed = self.listed(source);
        if let Some(role) = listed.and_then(|it| it.role) {
            return Identity::Role((role, RoleBasis::Given));
        }
        let name = host_of_url(source);
        let addresses = listed.map(|it| it.addresses.as_slice()).unwrap_or_default();
        let targets = self.targets();
        let mut there = targets.iter().filter(|target| is_on_host(target, name, addresses));
        if let Some(target) = there.next() {
            return match target.same_host {
                true => Identity::Again,
                false => Identity::Role((SourceRole::Server, RoleBasis::Address)),
            };
        }
        if self.has_server_process(Some(source)) {
            // If all are here, its server is the one of this host.
            return match !targets.is_empty() && targets.iter().all(|target| target.same_host) {
                true => Identity::Again,
                false => Identity::Role((SourceRole::Server, RoleBasis::Process)),
            };
        }
        if self.is_of_agents(name, addresses) {
            return Identity::Role((SourceRole::Client, RoleBasis::Agent));
        }
        if source.starts_with("snmp://") && !self.has_processors(source) {
            return Identity::Role((SourceRole::Network, RoleBasis::NoProcessors));
        }
        Identity::Unknown
    }

    fn targets(&self) -> &'a [TargetDisclosure] {
        self.disclosure.map(|it| it.targets.as_slice()).unwrap_or_default()
    }

    fn listed(&self, source: &str) -> Option<&'a MonitoredSource> {
        self.disclosure?.monitored.iter().find(|it| it.source == source)
    }

    fn has_server_process(&self, source: Option<&str>) -> bool {
        let mut own = self.resources.iter().filter(|used| used.source.as_deref() == source);
        own.any(|used| {
            used.name.strip_prefix("process.").is_some_and(|key| key.starts_with(SERVER))
        })
    }

    fn has_processors(&self, source: &str) -> bool {
        let mut own = self.resources.iter().filter(|used| used.source.as_deref() == Some(source));
        own.any(|used| used.name == "host.cpu_busy" || used.key("cpu", "busy").is_some())
    }

    fn is_of_agents(&self, name: &str, addresses: &[String]) -> bool {
        let hosts = self.disclosure.map(|it| it.agent_hosts.as_slice()).unwrap_or_default();
        let mut listed = hosts.iter().flat_map(|it| &it.host.addresses);
        self.agents.iter().any(|(_, host)| *host == name)
            || listed.any(|address| addresses.contains(address))
    }
}

/// The hosts of all points, with the role that each has where it is first; empty if monitors
/// watched this host alone.
pub(crate) fn monitored_hosts(
    points: &[PointResult],
    disclosure: Option<&Disclosure>,
) -> Vec<MonitoredHost> {
    let mut all: Vec<MonitoredHost> = Vec::new();
    for host in points.iter().flat_map(|it| HostEvidence::from_result(it, disclosure).hosts()) {
        if !all.iter().any(|other| other.source == host.source) {
            all.push(host);
        }
    }
    if all.iter().any(|host| host.source.is_some()) { all } else { Vec::new() }
}

/// What is known of a source.
enum Identity {
    Role((SourceRole, RoleBasis)),
    Unknown,
    /// It watches a host that another source stands for.
    Again,
}

fn host(source: Option<&str>, role: SourceRole, basis: RoleBasis) -> MonitoredHost {
    MonitoredHost { source: source.map(str::to_owned), role, basis }
}

/// A resource of a host, not one that only the server itself reports.
pub(crate) fn is_of_host(used: &ResourceUse) -> bool {
    !NO_HOST.iter().any(|table| used.name.starts_with(table))
}

/// Is the target's server on the host of this name and these addresses?
fn is_on_host(target: &TargetDisclosure, name: &str, addresses: &[String]) -> bool {
    let given = TargetUrl::parse(&target.target).ok().map(|url| url.host);
    let address = target.address.rsplit_once(':').map_or(target.address.as_str(), |it| it.0);
    let address = address.trim_matches(['[', ']']);
    given.as_deref() == Some(name) || address == name || addresses.iter().any(|it| it == address)
}

/// The host of a monitor's URL, as the user wrote it: `ssh://root@host:22`.
fn host_of_url(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |it| it.1);
    let authority = rest.split(['/', '?']).next().unwrap_or(rest);
    let host = authority.rsplit_once('@').map_or(authority, |it| it.1);
    match host.strip_prefix('[').and_then(|host| host.split_once(']')) {
        Some((address, _)) => address,
        None => host.split_once(':').map_or(host, |it| it.0),
    }
}

#[cfg(test)]
mod tests;
