use plimsoll_model::disclosure::{AgentHost, Disclosure, Host, Network, TargetDisclosure};
use plimsoll_model::event::{AgentPoint, ResourceUse};

use crate::testing::{PointBuilder, TestPoint, check_rule};

fn with(resources: &[(&str, f64)]) -> TestPoint {
    let mut point = PointBuilder::open(1_000.0).build();
    let entry = |(name, mean): &(&str, f64)| ResourceUse {
        name: (*name).to_owned(),
        unit: String::new(),
        mean: *mean,
        max: *mean,
        ..ResourceUse::default()
    };
    point.record.resources = resources.iter().map(entry).collect();
    point
}

fn warns(point: &TestPoint, rule: &str) -> bool {
    let verdict = point.verdict();
    assert!(verdict.valid, "{verdict:?}");
    verdict.warnings.iter().any(|warning| warning.rule.name() == rule)
}

fn two_cores(busy: f64, server: f64) -> TestPoint {
    with(&[
        ("host.cpu_busy", busy),
        ("cpu.0.busy", busy),
        ("cpu.1.busy", busy),
        ("process.generator.cpu", 0.3),
        ("process.server.cpu", server),
    ])
}

#[test]
fn work_of_other_programs_is_named_and_our_own_is_not() {
    assert!(warns(&two_cores(0.9, 0.3), "other_work"));
    assert!(!warns(&two_cores(0.9, 1.4), "other_work"));
    assert!(!warns(&with(&[]), "other_work"));
}

#[test]
fn time_the_hypervisor_kept_is_named() {
    assert!(warns(&with(&[("host.cpu_steal", 0.05)]), "stolen"));
    assert!(!warns(&with(&[("host.cpu_steal", 0.01)]), "stolen"));
}

const GIGABIT: Option<u64> = Some(1_000);
/// 1,000 Mbit/s over 30 s.
const FULL: u64 = 3_750_000_000;

fn network(name: &str, speed_mbit_per_s: Option<u64>) -> Network {
    Network { name: name.to_owned(), speed_mbit_per_s, ..Network::default() }
}

/// A load on a target elsewhere, from a host with `lo` and these.
fn remote(bytes: u64, networks: &[Network]) -> TestPoint {
    let mut point = PointBuilder::open(1_000.0).build();
    point.record.totals.wire_bytes_in = bytes;
    let networks = [&[network("lo", None)], networks].concat();
    point.disclosure = Some(Disclosure {
        generator: Host { networks, ..Host::default() },
        targets: vec![TargetDisclosure::default()],
        ..Disclosure::default()
    });
    point
}

fn on_this_host(mut point: TestPoint) -> TestPoint {
    for target in point.disclosure.iter_mut().flat_map(|d| &mut d.targets) {
        target.same_host = true;
    }
    point
}

fn carried(mut point: TestPoint, name: &str) -> TestPoint {
    let (name, mean) = (format!("network.{name}.received"), 125e6);
    let resource = ResourceUse { name, mean, ..ResourceUse::default() };
    point.record.resources.push(resource);
    point
}

#[test]
fn more_bytes_than_the_link_carries_cannot_be() {
    let at = |bytes, speed| remote(bytes, &[network("eth0", speed)]);
    check_rule("link_capacity", &at(FULL + 1, GIGABIT), &at(FULL, GIGABIT));
    let here = on_this_host(at(u64::MAX / 8, GIGABIT));
    check_rule("link_capacity", &at(u64::MAX / 8, GIGABIT), &here);
}

#[test]
fn a_link_of_unknown_speed_is_not_judged() {
    let unknown = [network("ens5", None), network("ens6", GIGABIT)];
    assert_eq!(remote(2 * FULL, &unknown).reasons(), [""; 0]);
    assert_eq!(remote(FULL, &[]).reasons(), [""; 0]);
}

#[test]
fn interfaces_that_carried_nothing_of_the_load_have_no_part_in_it() {
    let two = [network("eth0", GIGABIT), network("eth1", GIGABIT)];
    let (over, held) = (remote(FULL + 1, &two), remote(FULL, &two));
    check_rule("link_capacity", &carried(over, "eth0"), &carried(held, "eth0"));
}

#[test]
fn the_load_of_agents_goes_over_the_links_of_their_hosts() {
    let of_agents = |bytes, hosts: usize| {
        let mut point = remote(bytes, &[network("eth0", Some(10))]);
        point.record.agents = vec![AgentPoint { workers: 1, ..AgentPoint::default() }];
        let networks = vec![network("eth0", GIGABIT), network("lo", None)];
        let host = AgentHost { host: Host { networks, ..Host::default() }, ..AgentHost::default() };
        point.disclosure.as_mut().unwrap().agent_hosts = vec![host; hosts];
        point
    };
    check_rule("link_capacity", &of_agents(2 * FULL + 2, 2), &of_agents(2 * FULL, 2));
}
