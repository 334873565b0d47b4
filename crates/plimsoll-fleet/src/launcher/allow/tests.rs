use plimsoll_model::assignment::{Endpoint, WorkerGroup};
use plimsoll_model::suite::{Arrivals, InterArrival, Think};
use plimsoll_model::units::{Nanos, OpsPerSec};
use proptest::prelude::*;

use super::*;
use crate::testing;

fn resolve(name: &str) -> io::Result<Vec<IpAddr>> {
    match name {
        "server" => Ok(vec!["10.1.2.3".parse().unwrap(), "fd00::3".parse().unwrap()]),
        _ => Err(io::Error::other("no such name")),
    }
}

fn allowed(text: &str) -> Allowance {
    Allowance::parse(text, &resolve).unwrap()
}

/// The first two of four workers.
fn assignment(load: Load, address: &str) -> Assignment {
    let address = address.parse().unwrap();
    Assignment {
        load,
        workers: 4,
        crew: Some(WorkerGroup { first: 0, count: 2, own_endpoints: false }),
        endpoints: vec![Endpoint { target: "http://server/".to_owned(), address, unix: None }],
        ..testing::assignment(1)
    }
}

fn open(rate: f64) -> Load {
    Load::Open {
        rate_ops_per_s: OpsPerSec::new(rate).unwrap(),
        arrivals: Arrivals::PerClient,
        gaps: InterArrival::Exponential,
        clients: 8,
        backlog_ops_max: 1_000,
    }
}

fn closed() -> Load {
    let (think, start_delay_ns) = (Think::default(), Nanos(0));
    Load::Closed { clients: 8, think, start_delay_ns, starts_thinking: false, axis_think_ns: None }
}

#[test]
fn targets_are_networks_names_and_ports() {
    let allowance = allowed(
        "targets = [\"10.0.0.0/8:80-90\", \"server:2049\", \"192.168.0.7:443\", \
         \"[2001:db8::]/32:445\", \"[2001:db9::1]:1\", \"0.0.0.0/0:7\"]",
    );
    for (address, is_allowed) in [
        ("10.9.9.9:80", true),
        ("10.9.9.9:90", true),
        ("10.9.9.9:91", false),
        ("11.0.0.1:80", false),
        ("[::ffff:10.9.9.9]:85", true),
        ("10.1.2.3:2049", true),
        ("[fd00::3]:2049", true),
        ("[fd00::4]:2049", false),
        ("192.168.0.7:443", true),
        ("192.168.0.8:443", false),
        ("[2001:db8:ffff::1]:445", true),
        ("[2001:db9::1]:445", false),
        ("[2001:db9::1]:1", true),
        ("203.0.113.1:7", true),
        ("[2001:db8::1]:7", false),
    ] {
        let refused = allowance.check_target(address.parse().unwrap());
        assert_eq!(refused.is_ok(), is_allowed, "{address}: {refused:?}");
        let refused = allowance.check(&assignment(open(1.0), address));
        assert_eq!(refused.is_ok(), is_allowed, "{address}: {refused:?}");
    }
    let refusal = allowance.check_target("11.0.0.1:80".parse().unwrap()).unwrap_err().to_string();
    assert!(refusal.contains("11.0.0.1:80") && refusal.contains("server:2049"), "{refusal}");
}

#[test]
fn the_example_of_the_documentation_is_read() {
    let page = include_str!("../../../../../docs/fleet.md");
    let example = page.split("```toml\n").nth(2).unwrap().split("```").next().unwrap();
    assert!(allowed(example).check(&assignment(open(1.0), "10.1.2.3:2049")).is_ok());
    assert!(allowed(example).check(&assignment(open(1.0), "10.1.2.3:22")).is_err());
}

#[test]
fn an_agents_part_of_the_rate_counts() {
    let allowance = allowed("max_ops_per_s = 100");
    let refused = |load| allowance.check(&assignment(load, "10.0.0.1:80")).err();
    assert_eq!(refused(open(200.0)), None);
    assert_eq!(refused(open(201.0)), Some(Refusal::Rate { requested: 100.5, allowed: 100.0 }));
    assert_eq!(refused(closed()), Some(Refusal::ClosedLoad { allowed: 100.0 }));
}

#[test]
fn each_worker_takes_a_core() {
    let with = assignment(closed(), "10.0.0.1:80");
    assert_eq!(allowed("cores = 2").check(&with), Ok(()));
    let refused = allowed("cores = 1").check(&with).unwrap_err();
    assert_eq!(refused, Refusal::Cores { requested: 2, allowed: 1 });
}

#[test]
fn a_unix_socket_is_in_no_list() {
    let mut with = assignment(open(1.0), "10.0.0.1:80");
    with.endpoints[0].unix = Some("/run/server".into());
    assert_eq!(allowed("cores = 9").check(&with), Ok(()));
    let refused = allowed("targets = [\"10.0.0.1:80\"]").check(&with).unwrap_err();
    assert_eq!(refused, Refusal::Unix("/run/server".into()));
}

#[test]
fn an_empty_list_allows_nothing_and_an_empty_file_everything() {
    let with = assignment(closed(), "10.0.0.1:80");
    assert_eq!(allowed("").check(&with), Ok(()));
    let refused = allowed("targets = []").check(&with).unwrap_err().to_string();
    assert!(refused.ends_with("allowed are none"), "{refused}");
    assert_eq!(allowed("").to_string(), "everything");
    let text = "targets = [\"server:1\"]\nmax_ops_per_s = 5.5\ncores = 2";
    assert_eq!(allowed(text).to_string(), "targets server:1; 5.5 ops/s; 2 cores");
}

#[test]
fn a_file_that_cannot_be_used_is_refused() {
    for (text, part) in [
        ("target = []", "unknown field `target`"),
        ("targets = [\"10.0.0.1\"]", "is no target"),
        ("targets = [\"10.0.0.1:0x\"]", "is no target"),
        ("targets = [\"10.0.0.1:9-8\"]", "is no target"),
        ("targets = [\"10.0.0.1/33:9\"]", "is no target"),
        ("targets = [\"server/8:9\"]", "is no target"),
        ("targets = [\"2001:db8::1:445\"]", "is no target"),
        ("targets = [\":80\"]", "is no target"),
        ("targets = [\"nobody:80\"]", "no such name"),
        ("max_ops_per_s = 0", "greater than 0"),
        ("max_ops_per_s = nan", "greater than 0"),
        ("cores = 0", "greater than 0"),
        ("cores = -1", "cores"),
    ] {
        let error = Allowance::parse(text, &resolve).unwrap_err().to_string();
        assert!(error.contains(part), "{text}: {error}");
    }
}

proptest! {
    #[test]
    fn any_target_is_read_or_refused(text in "[ -~]*", address: u32, bits in 0_u32..=32, port: u16) {
        let file = format!("targets = [{text:?}]");
        let _ = Allowance::parse(&file, &resolve);
        let network = std::net::Ipv4Addr::from_bits(address);
        let allowance = allowed(&format!("targets = [\"{network}/{bits}:{port}\"]"));
        let flipped = |bit: u32| SocketAddr::from((std::net::Ipv4Addr::from_bits(address ^ (1 << bit)), port));
        for bit in 0..32 {
            prop_assert_eq!(allowance.check_target(flipped(bit)).is_ok(), bit < 32 - bits);
        }
    }
}
