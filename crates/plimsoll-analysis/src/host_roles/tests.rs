use std::collections::BTreeMap;

use plimsoll_model::disclosure::{AgentHost, Host};

use super::RoleBasis::{Address, Agent, Assumed, Given, NoProcessors, Nothing, Process};
use super::SourceRole::{Client, Database, Network, Other, Server};
use super::*;

/// A testbed: a target, agents on hosts, and sources with their addresses and resources.
#[derive(Default)]
struct Testbed {
    same_host: bool,
    /// Name, host.
    agents: Vec<(&'static str, &'static str)>,
    disclosure: Disclosure,
    resources: Vec<ResourceUse>,
}

const SWITCH: &str = "snmp://switch";

impl Testbed {
    fn new(sources: &[(Option<&str>, &str)]) -> Self {
        let named = |(source, name): &(Option<&str>, &str)| ResourceUse {
            source: source.map(str::to_owned),
            ..ResourceUse::of_window(name, "ratio", 0.5, 0.5)
        };
        Self { resources: sources.iter().map(named).collect(), ..Self::default() }
    }

    /// Each with `host.cpu_busy`; those of SNMP with an interface alone.
    fn with_sources(sources: &[&str]) -> Self {
        let named = |source: &&'static str| match source.starts_with("snmp:") {
            true => (Some(*source), "network.port1.sent"),
            false => (Some(*source), "host.cpu_busy"),
        };
        let sources: Vec<&'static str> = sources.iter().map(|it| &*it.to_string().leak()).collect();
        Self::new(&sources.iter().map(named).collect::<Vec<_>>())
    }

    fn listed(mut self, source: &str, role: Option<SourceRole>, addresses: &[&str]) -> Self {
        let addresses = addresses.iter().map(|it| (*it).to_owned()).collect();
        self.disclosure.monitored.push(MonitoredSource {
            source: source.to_owned(),
            role,
            addresses,
        });
        self
    }

    fn agents(mut self, agents: &[(&'static str, &'static str)]) -> Self {
        self.agents = agents.to_vec();
        self
    }

    fn hosts(mut self) -> Vec<MonitoredHost> {
        let target = TargetDisclosure {
            target: "http://web:80/".to_owned(),
            address: "10.0.0.2:80".to_owned(),
            same_host: self.same_host,
            ..TargetDisclosure::default()
        };
        self.disclosure.targets = vec![target];
        self.disclosure.generator = Host { name: Some("here".to_owned()), ..Host::default() };
        let Self { resources, agents, disclosure, .. } = &self;
        let evidence =
            HostEvidence { resources, agents: agents.clone(), disclosure: Some(disclosure) };
        evidence.hosts()
    }

    #[track_caller]
    fn check(self, expected: &[(Option<&str>, SourceRole, RoleBasis)]) {
        let hosts = self.hosts();
        let roles = hosts.iter().map(|it| (it.source.as_deref(), (it.role, it.basis)));
        let expected = expected.iter().map(|(source, role, basis)| (*source, (*role, *basis)));
        assert_eq!(BTreeMap::from_iter(roles), BTreeMap::from_iter(expected));
    }
}

#[test]
fn this_host_is_what_ran_on_it() {
    let here = |same_host, agents: &[(&'static str, &'static str)]| {
        let testbed = Testbed::new(&[(None, "host.cpu_busy")]).agents(agents);
        let [host] = &Testbed { same_host, ..testbed }.hosts()[..] else { panic!("one") };
        (host.role, host.basis)
    };
    assert_eq!(here(true, &[]), (Server, Address));
    assert_eq!(here(false, &[]), (Client, Agent));
    assert_eq!(here(true, &[("g1", "one")]), (Server, Address));
    assert_eq!(here(false, &[("g1", "here")]), (Client, Agent));
    assert_eq!(here(false, &[("g1", "one")]), (Other, Nothing), "a coordinator");
}

#[test]
fn a_host_that_was_watched_twice_counts_once() {
    let agents = [("g1", "one"), ("g2", "one"), ("g3", "here"), ("g4", "two")];
    let sources = ["g1", "g2", "g3", "g4"];
    Testbed::with_sources(&sources)
        .agents(&agents)
        .check(&[(Some("g1"), Client, Agent), (Some("g4"), Client, Agent)]);
    let same = Testbed { same_host: true, ..Testbed::with_sources(&["ssh://web"]) };
    same.check(&[]);
    let both = [
        (Some("http://web:9100/metrics"), "host.cpu_busy"),
        (Some("ssh://web"), "process.server.cpu"),
    ];
    Testbed::new(&both)
        .listed("http://web:9100/metrics", None, &["10.0.0.2"])
        .listed("ssh://web", None, &["10.0.0.2", "192.168.7.2"])
        .check(&[(Some("ssh://web"), Server, Address)]);
}

#[test]
fn the_server_is_found_by_its_addresses_and_processes() {
    for source in ["ssh://root@web:22", "http://10.0.0.2:9100/metrics"] {
        Testbed::with_sources(&[source, SWITCH])
            .check(&[(Some(source), Server, Address), (Some(SWITCH), Network, NoProcessors)]);
    }
    // By an alias of ssh's configuration, and its own addresses.
    Testbed::with_sources(&["ssh://a", "ssh://nas"])
        .listed("ssh://a", None, &["10.0.0.7"])
        .listed("ssh://nas", None, &["192.168.7.2", "10.0.0.2"])
        .check(&[(Some("ssh://nas"), Server, Address), (Some("ssh://a"), Other, Nothing)]);
    let processes = [(Some("ssh://a"), "host.cpu_busy"), (Some("ssh://b"), "process.server.cpu")];
    Testbed::new(&processes)
        .listed("ssh://a", None, &[])
        .listed("ssh://b", None, &[])
        .check(&[(Some("ssh://b"), Server, Process), (Some("ssh://a"), Other, Nothing)]);
}

#[test]
fn what_the_user_gave_comes_first() {
    Testbed::with_sources(&["ssh://db", "ssh://web", "ssh://x"])
        .listed("ssh://db", Some(Database), &["10.0.0.3"])
        .listed("ssh://web", Some(Client), &["10.0.0.2"])
        .listed("ssh://x", None, &["10.0.0.9"])
        .check(&[
            (Some("ssh://db"), Database, Given),
            (Some("ssh://web"), Client, Given),
            (Some("ssh://x"), Server, Assumed),
        ]);
}

#[test]
fn a_host_with_an_agent_is_a_client_and_never_the_server() {
    let host = Host { addresses: vec!["10.0.0.11".to_owned()], ..Host::default() };
    let disclosure = Disclosure {
        agent_hosts: vec![AgentHost { agents: vec!["g1".to_owned()], host, certificate: None }],
        ..Disclosure::default()
    };
    let sources = Testbed::with_sources(&["ssh://gen1", "ssh://vip"]).agents(&[("g1", "one")]);
    Testbed { disclosure, ..sources }
        .listed("ssh://gen1", None, &["10.0.0.11"])
        .listed("ssh://vip", None, &["10.0.0.20"])
        .check(&[(Some("ssh://gen1"), Client, Agent), (Some("ssh://vip"), Server, Assumed)]);
}

#[test]
fn of_two_hosts_that_may_be_the_server_neither_is_assumed() {
    let sources = ["ssh://a", "ssh://b"];
    Testbed::with_sources(&sources)
        .listed("ssh://a", None, &[])
        .listed("ssh://b", None, &[])
        .check(&[(Some("ssh://a"), Other, Nothing), (Some("ssh://b"), Other, Nothing)]);
    // Bundles of older programs do not list their sources.
    Testbed::with_sources(&sources)
        .check(&[(Some("ssh://a"), Server, Assumed), (Some("ssh://b"), Other, Nothing)]);
}

#[test]
fn a_loopback_address_identifies_no_other_host() {
    Testbed::with_sources(&["ssh://127.0.0.1", "ssh://web"])
        .listed("ssh://127.0.0.1", None, &[])
        .listed("ssh://web", None, &[])
        .check(&[(Some("ssh://web"), Server, Address), (Some("ssh://127.0.0.1"), Other, Nothing)]);
}
