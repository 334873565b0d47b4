//! Which host is named, where several are monitored: figures as exporters and SNMP agents report
//! them, at a low and a saturated load.

use plimsoll_model::disclosure::{AgentHost, Host};
use plimsoll_model::event::AgentPoint;
use plimsoll_model::limit::{Limit, LimitFacts};
use plimsoll_model::monitored::{MonitoredSource, SourceRole};

use super::*;

const WEB: &str = "http://web:9100/metrics";
const DATABASE: &str = "http://db:9100/metrics";
const SWITCH: &str = "snmp://switch";
const CLIENT: &str = "http://gen1:9100/metrics";
const AGENT: &str = "ssh://gen1";

/// A source with its resources at the saturated load; at the lowest four fifths of each.
type Source = (&'static str, &'static [(&'static str, f64)]);

const BUSY: &[(&str, f64)] = &[("cpu.0.busy", 0.99), ("cpu.1.busy", 0.98), ("host.cpu_busy", 0.99)];
const IDLE_HOST: &[(&str, f64)] =
    &[("cpu.0.busy", 0.3), ("cpu.1.busy", 0.2), ("host.cpu_busy", 0.25)];
const BUSY_DISK: &[(&str, f64)] = &[
    ("cpu.0.busy", 0.1),
    ("host.cpu_busy", 0.1),
    ("disk.sda.busy", 0.99),
    ("disk.sda.queue_mean", 9.0),
];
const FULL_PORT: &[(&str, f64)] =
    &[("network.port3.sent_share", 0.2), ("network.port7.sent_share", 0.98)];
const IDLE_PORTS: &[(&str, f64)] =
    &[("network.port3.sent_share", 0.2), ("network.port7.sent_share", 0.3)];

#[derive(Default)]
struct Testbed {
    sources: Vec<Source>,
    roles: Vec<(&'static str, SourceRole)>,
    /// Addresses of a source; the target's is 10.0.0.2.
    addresses: Vec<(&'static str, &'static str)>,
    with_agent: bool,
}

impl Testbed {
    fn new(sources: &[Source]) -> Self {
        let addresses = vec![(WEB, "10.0.0.2"), (CLIENT, "10.0.0.11")];
        Self { sources: sources.to_vec(), addresses, ..Self::default() }
    }

    fn disclosure(&self) -> Disclosure {
        let target = TargetDisclosure {
            target: "http://vip/".to_owned(),
            address: "10.0.0.2:80".to_owned(),
            ..TargetDisclosure::default()
        };
        let listed = |(source, _): &Source| MonitoredSource {
            source: (*source).to_owned(),
            role: self.roles.iter().find(|it| it.0 == *source).map(|it| it.1),
            addresses: self
                .addresses
                .iter()
                .filter(|it| it.0 == *source)
                .map(|it| it.1.to_owned())
                .collect(),
        };
        let of_agent = self.with_agent.then(|| AgentHost {
            agents: vec![AGENT.to_owned()],
            host: Host { addresses: vec!["10.0.0.11".to_owned()], ..Host::default() },
            certificate: None,
        });
        Disclosure {
            targets: vec![target],
            monitored: self.sources.iter().map(listed).collect(),
            agent_hosts: of_agent.into_iter().collect(),
            ..Disclosure::default()
        }
    }

    /// The limit of 32 clients that bring no more than 16.
    fn limit(&self) -> Limit {
        let clients = [4, 16, 32];
        let built = clients.into_iter().zip([800, 990, 1_000]).map(|(clients, ops)| {
            let response_ns = u64::from(clients) * 1_000_000_000 / ops;
            PointBuilder::closed(clients).achieved(ops).response_ns(response_ns)
        });
        let mut run = RunBuilder::from_points(built.collect::<Vec<_>>());
        for (index, factor) in [0.8, 1.0, 1.0].into_iter().enumerate() {
            let record = run.finished_mut(index);
            record.resources =
                self.sources.iter().flat_map(|source| resources(source, factor)).collect();
            if self.with_agent {
                let (name, host) = (AGENT.to_owned(), "gen1".to_owned());
                record.agents =
                    vec![AgentPoint { name, host, workers: 1, ..AgentPoint::default() }];
            }
        }
        let mut raw = run.raw();
        raw.disclosure = Some(self.disclosure());
        analyse(&raw).points.pop().unwrap().limit
    }

    #[track_caller]
    fn names(&self, kind: LimitKind, location: &str, source: Option<&str>) {
        let limit = self.limit();
        let host = limit.host.as_ref().map(|host| host.source.as_deref().unwrap());
        let named = (limit.kind, limit.place.as_deref().unwrap_or_default(), host);
        assert_eq!(named, (kind, location, source), "{limit:?}");
    }

    #[track_caller]
    fn names_nothing(&self) -> LimitFacts {
        let limit = self.limit();
        assert_eq!((limit.kind, &limit.host), (LimitKind::Unknown, &None), "{limit:?}");
        limit.facts
    }
}

fn resources((source, means): &Source, factor: f64) -> Vec<ResourceUse> {
    let resource = |(name, mean): &(&str, f64)| ResourceUse {
        name: (*name).to_owned(),
        mean: *mean * factor,
        max: *mean * factor,
        source: Some((*source).to_owned()),
        ..ResourceUse::default()
    };
    means.iter().map(resource).collect()
}

#[test]
fn the_servers_own_full_resource_is_named_without_its_host() {
    Testbed::new(&[(WEB, BUSY), (DATABASE, IDLE_HOST), (SWITCH, IDLE_PORTS)]).names(
        LimitKind::Processor,
        "2 cores",
        None,
    );
    Testbed::new(&[(DATABASE, IDLE_HOST), (WEB, BUSY_DISK)]).names(LimitKind::Disk, "sda", None);
}

#[test]
fn a_client_is_never_blamed_however_busy_it_is() {
    // By an agent of this run there, by what the user says, and by neither.
    let of_agent =
        Testbed { with_agent: true, ..Testbed::new(&[(CLIENT, BUSY), (WEB, IDLE_HOST)]) };
    of_agent.names_nothing();
    let roles = vec![(CLIENT, SourceRole::Client)];
    Testbed { roles, ..Testbed::new(&[(CLIENT, BUSY), (WEB, IDLE_HOST)]) }.names_nothing();
    Testbed::new(&[(CLIENT, BUSY), (WEB, IDLE_HOST)]).names_nothing();
    // The agent's host is monitored, the server's is not.
    let alone = Testbed { with_agent: true, ..Testbed::new(&[(CLIENT, BUSY)]) };
    assert_eq!(alone.names_nothing(), LimitFacts::NotWatched);
}

#[test]
fn a_busy_database_is_named_if_the_user_says_that_it_is_one() {
    let roles = vec![(DATABASE, SourceRole::Database)];
    let sources = [(WEB, IDLE_HOST), (DATABASE, BUSY)];
    Testbed { roles, ..Testbed::new(&sources) }.names(
        LimitKind::Processor,
        "2 cores",
        Some(DATABASE),
    );
    Testbed::new(&sources).names_nothing();
    let roles = vec![(DATABASE, SourceRole::Database)];
    Testbed { roles, ..Testbed::new(&[(DATABASE, BUSY_DISK)]) }.names(
        LimitKind::Disk,
        "sda",
        Some(DATABASE),
    );
}

#[test]
fn a_full_port_of_a_switch_is_named_by_switch_and_port() {
    Testbed::new(&[(WEB, IDLE_HOST), (SWITCH, FULL_PORT)]).names(
        LimitKind::Network,
        "port7",
        Some(SWITCH),
    );
    // Without a watched server too: a switch is not taken for it.
    Testbed::new(&[(SWITCH, FULL_PORT)]).names(LimitKind::Network, "port7", Some(SWITCH));
    let facts = Testbed::new(&[(SWITCH, IDLE_PORTS)]).names_nothing();
    assert_eq!(facts, LimitFacts::NotWatched);
}

#[test]
fn a_virtual_address_makes_the_only_other_host_the_server() {
    let virtual_address =
        |sources: &[Source]| Testbed { addresses: Vec::new(), ..Testbed::new(sources) };
    virtual_address(&[(DATABASE, BUSY), (SWITCH, IDLE_PORTS)]).names(
        LimitKind::Processor,
        "2 cores",
        None,
    );
    // Of two neither is assumed, and no word is said of either.
    let facts = virtual_address(&[(DATABASE, BUSY), (CLIENT, IDLE_HOST)]).names_nothing();
    assert_eq!(facts, LimitFacts::NotWatched);
}

#[test]
fn of_several_servers_the_full_one_is_named() {
    let roles = vec![(WEB, SourceRole::Server), (DATABASE, SourceRole::Server)];
    Testbed { roles, ..Testbed::new(&[(WEB, IDLE_HOST), (DATABASE, BUSY)]) }.names(
        LimitKind::Processor,
        "2 cores",
        Some(DATABASE),
    );
}
