use plimsoll_model::assignment::Load;
use plimsoll_model::disclosure::{AgentHost, Disclosure, Host, Network, TargetDisclosure};
use plimsoll_model::event::{AgentPoint, ClockOffset, CoreUser, ResourceUse, WorkerHealth};
use plimsoll_model::finding::{Finding, Rule};
use plimsoll_model::late::{LateCause, LateOp};
use plimsoll_report::sentences::finding;

use super::*;
use crate::testing::{PointBuilder, TestPoint, check_rule};

/// A point whose workers fared like this.
fn with_health(change: impl Fn(&mut WorkerHealth)) -> TestPoint {
    let mut point = PointBuilder::closed(8).worker_busy(0.47).build();
    point.record.workers.iter_mut().flatten().for_each(change);
    point
}

/// Ready, and another thread had the core for this share of the time.
fn delayed(ratio: f64) -> impl Fn(&mut WorkerHealth) {
    move |health| health.run_delay_ns = Some((health.wall_ns as f64 * ratio) as u64)
}

#[test]
fn a_worker_that_asks_for_more_than_nine_tenths_of_its_core_limits_the_measurement() {
    let at = |busy| PointBuilder::open(1_000.0).worker_busy(busy).build();
    check_rule("generator_cpu", &at(0.91), &at(0.9));
}

#[test]
fn a_starved_worker_is_not_idle() {
    check_rule("generator_cpu", &with_health(delayed(0.48)), &with_health(delayed(0.02)));
    let text = finding::text(&with_health(delayed(0.48)).verdict().reasons[0].rule);
    assert!(text.contains("asked for 95 % of its core (limit 90 %; work up to 47 %"), "{text}");
}

#[test]
fn a_worker_that_its_own_quota_held_back_was_not_disturbed_by_others() {
    let mut point = with_health(delayed(0.48));
    let (name, unit) = ("host.throttled".to_owned(), String::new());
    let quota = ResourceUse { name, unit, mean: 0.4, max: 0.4, ..ResourceUse::default() };
    point.record.resources = vec![quota];
    let verdict = point.verdict();
    assert!(!verdict.warnings.iter().any(|it| matches!(it.rule, Rule::CoreTaken { .. })));
    let text = finding::text(&verdict.reasons[0].rule);
    assert!(text.contains("raise its CPU quota") && !text.contains("other programs"), "{text}");
}

#[test]
fn who_had_the_workers_core_is_told_by_name() {
    let reason_text = |users: Option<Vec<CoreUser>>, steal: f64| {
        let mut point = with_health(delayed(0.48));
        point.record.core_users = users;
        let (name, unit) = ("host.cpu_steal".to_owned(), String::new());
        point.record.resources =
            vec![ResourceUse { name, unit, mean: steal, max: steal, ..ResourceUse::default() }];
        finding::text(&point.verdict().reasons[0].rule)
    };
    let user = |name: &str, own| CoreUser {
        name: name.into(),
        pid: 7,
        cpu_ns: 14_400_000_000,
        own,
        server: false,
        kernel: false,
    };
    let text = reason_text(Some(vec![user("burn", false)]), 0.0);
    assert!(text.contains("burn (process 7) had a worker's core for 48 % of the time"), "{text}");
    // A hundredth of the time: less than half of that is not worth a name.
    let little = |cpu_ns| reason_text(Some(vec![CoreUser { cpu_ns, ..user("burn", false) }]), 0.0);
    assert!(little(160_000_000).contains("burn (process 7)"), "{}", little(160_000_000));
    assert!(little(140_000_000).contains("other programs"), "{}", little(140_000_000));
    let text = reason_text(Some(vec![user("plimsoll", true)]), 0.0);
    assert!(text.contains("other threads of this program had a worker's core for 48 %"), "{text}");
    let text = reason_text(Some(vec![CoreUser { server: true, ..user("nginx", false) }]), 0.0);
    assert!(text.contains("the server itself (nginx, process 7) had a worker's core"), "{text}");
    assert!(!text.contains("end it"), "a server under test is not to be stopped: {text}");
    let text = reason_text(
        Some(vec![CoreUser { kernel: true, ..user("kworker/0:0-events", false) }]),
        0.0,
    );
    assert!(text.contains("kworker/0:0-events, a thread of the kernel, had a worker's"), "{text}");
    assert!(
        text.contains("It cannot be ended. Move interrupts to another")
            && text.contains("smp_affinity"),
        "{text}"
    );
    assert!(!text.contains("end it"), "{text}");
    let text = reason_text(None, 0.0);
    assert!(text.contains("other programs had a worker's core for 48 % of the time"), "{text}");
    let hypervisor = {
        let mut point = PointBuilder::open(1_000.0).worker_busy(0.95).build();
        let (name, unit) = ("host.cpu_steal".to_owned(), String::new());
        point.record.resources =
            vec![ResourceUse { name, unit, mean: 0.05, max: 0.05, ..ResourceUse::default() }];
        finding::text(&point.verdict().reasons[0].rule)
    };
    assert!(hypervisor.contains("the hypervisor kept 5 %"), "{hypervisor}");
}

#[test]
fn gaps_between_polls_that_no_thread_explains_are_the_hypervisors() {
    let mut point = PointBuilder::open(1_000.0).worker_busy(0.95).build();
    for health in point.record.workers.iter_mut().flatten() {
        (health.gap_ns, health.gap_ns_max) = (health.wall_ns / 20, 2_000_000);
    }
    let text = finding::text(&point.verdict().reasons[0].rule);
    assert!(text.contains("paused below the system for 5 % of the time"), "{text}");
    assert!(text.contains("2.00 ms at the longest"), "{text}");
}

#[test]
fn empty_polls_of_a_worker_are_not_work() {
    let mut point = PointBuilder::open(1_000.0).worker_busy(1.0).build();
    for health in point.record.workers.iter_mut().flatten() {
        health.empty_poll_ns = health.wall_ns / 2;
    }
    assert!(point.verdict().valid, "{:?}", point.verdict());
}

#[test]
fn a_point_whose_workers_say_nothing_is_not_valid() {
    let mut silent = PointBuilder::open(1_000.0).build();
    silent.record.workers = vec![Vec::<WorkerHealth>::new()];
    check_rule("missing_evidence", &silent, &PointBuilder::open(1_000.0).build());
    let unknown = with_health(|health| health.run_delay_ns = None);
    check_rule("missing_evidence", &unknown, &with_health(|_| ()));
}

#[test]
fn more_than_half_of_the_median_may_not_be_the_generators() {
    let at = |lag| PointBuilder::open(1_000.0).receive_lag_ns(lag).build();
    // 10 µs of lateness are the generator's too.
    check_rule("generator_error", &at(492_000), &at(488_000));
    let text = finding::text(&at(600_000).verdict().reasons[0].rule);
    assert!(text.contains("may be 61") && text.contains("of response p50"), "{text}");
}

#[test]
fn a_closed_load_that_might_have_done_half_as_much_again_is_not_measured() {
    // Every third op lies unread for 2 ms: the median does not show it.
    let uneven = |lag_ns: u64, low_ns: u64| {
        let mut point = PointBuilder::closed(8).build();
        let times = point.times.as_mut().unwrap();
        let n = times.response.len() as u32;
        for times in [&mut times.response, &mut times.response_low, &mut times.receive_lag] {
            times.reset();
        }
        times.response.record_n(1_000_000, n - n / 3).unwrap();
        times.response.record_n(1_000_000 + lag_ns, n / 3).unwrap();
        times.receive_lag.record_n(1, n - n / 3).unwrap();
        times.receive_lag.record_n(lag_ns, n / 3).unwrap();
        times.response_low.record_n(1_000_000, n / 3 * 2).unwrap();
        times.response_low.record_n(low_ns, n - n / 3 * 2).unwrap();
        point
    };
    let sound = uneven(200_000, 1_000_000);
    check_rule("generator_error", &uneven(2_000_000, 1_000_000), &sound);
    // The possible effect on those after it makes the times less certain, and nothing was lost by
    // it.
    check_rule("generator_error", &uneven(2_000_000, 1_000_000), &uneven(600_000, 1_000));
}

#[test]
fn without_arrivals_the_generators_part_is_unknown() {
    let mut point = PointBuilder::open(1_000.0).build();
    point.times.as_mut().unwrap().response_low.reset();
    check_rule("missing_evidence", &point, &PointBuilder::open(1_000.0).build());
}

#[test]
fn send_lag_over_a_millisecond_is_said_and_in_the_intervals() {
    let at = |lag| PointBuilder::open(1_000.0).response_ns(8_000_000).send_lag_ns(lag).build();
    let late = at(1_010_000).verdict();
    assert!(late.valid, "{late:?}");
    assert_eq!(late.warnings[0].rule.name(), "send_lag");
    assert!(
        finding::text(&late.warnings[0].rule).starts_with("generator late: send lag p99 = 1.01 ms"),
        "{late:?}"
    );
    assert!(at(990_000).verdict().warnings.is_empty());
}

#[test]
fn delays_of_a_closed_load_are_held_against_the_time_that_the_server_took() {
    let lag = |lag_ns: u64, clients: u32| {
        let mut point = PointBuilder::closed(4).receive_lag_ns(lag_ns).build();
        let Load::Closed { clients: load_clients, .. } = &mut point.record.load else {
            panic!("closed")
        };
        *load_clients = clients;
        point
    };
    // Of 1 ms, and 10 µs of lateness besides; 40 clients think for nine tenths of their time.
    for clients in [4, 40] {
        check_rule("generator_error", &lag(330_000, clients), &lag(315_000, clients));
    }
}

#[test]
fn of_few_ops_the_slowest_tenth_is_judged() {
    let late = |ops: u32| {
        let mut point = PointBuilder::open(1_000.0).response_ns(8_000_000).build();
        let times = point.times.as_mut().unwrap();
        for times in [&mut times.send_lag, &mut times.lateness] {
            times.reset();
            times.record_n(10_000, ops - 2).unwrap();
            times.record_n(5_000_000, 2).unwrap();
        }
        point.verdict().warnings.iter().any(|warning| warning.rule.name() == "send_lag")
    };
    assert!(late(100) && !late(99));
}

#[test]
fn a_twentieth_of_the_median_response_is_allowed_when_it_is_more() {
    let at = |lag| PointBuilder::open(1_000.0).response_ns(100_000_000).send_lag_ns(lag).build();
    assert!(at(4_900_000).verdict().warnings.is_empty());
    assert_eq!(at(5_100_000).verdict().warnings[0].rule.name(), "send_lag");
}

#[test]
fn a_wait_for_a_connection_is_not_the_generators_lateness() {
    let at = |own| {
        PointBuilder::open(1_000.0)
            .response_ns(8_000_000)
            .send_lag_ns(4_000_000)
            .lateness_ns(own)
            .build()
    };
    let verdict = at(20_000).verdict();
    assert!(verdict.valid, "{verdict:?}");
    assert_eq!(verdict.warnings[0].rule.name(), "connections");
    assert!(finding::text(&verdict.warnings[0].rule).contains("own is 20.0"), "{verdict:?}");
    let own = at(1_010_000).verdict().warnings;
    assert_eq!(own.iter().map(|w| w.rule.name()).collect::<Vec<_>>(), ["send_lag"]);
}

#[test]
fn monitors_may_use_one_hundredth_of_a_core() {
    let at = |share: f64| {
        let mut point = PointBuilder::open(1_000.0).build();
        point.record.monitor_cpu_ns = (point.record.measured_ns.0 as f64 * share) as u64;
        point
    };
    check_rule("monitors", &at(0.0101), &at(0.01));
}

fn of_two() -> TestPoint {
    let mut point = PointBuilder::open(1_000.0).build();
    let worker = point.record.workers[0].clone();
    point.record.workers.push(worker);
    point.record.agents = ["ssh://a", "ssh://b"]
        .map(|name| AgentPoint {
            name: name.to_owned(),
            host: "host".to_owned(),
            workers: 1,
            ..AgentPoint::default()
        })
        .into();
    point
}

#[test]
fn the_agent_whose_worker_is_starved_is_named() {
    let mut point = of_two();
    assert!(point.verdict().valid, "{:?}", point.verdict());
    for health in &mut point.record.workers[1] {
        health.cpu_ns = health.wall_ns;
    }
    let verdict = point.verdict();
    let rule = &verdict.reasons[0].rule;
    let text = finding::text(rule);
    assert_eq!(rule.name(), "generator_cpu");
    assert!(text.starts_with("agent ssh://b on host: "), "{text}");
}

#[test]
fn agents_share_the_load_by_their_workers_where_the_suite_wants_it() {
    let point = |first: u64, workers: [u32; 2]| {
        let mut point = of_two();
        point.suite.rules.target_share_max_ratio = Some(0.05);
        for (agent, (done, workers)) in
            point.record.agents.iter_mut().zip([first, 30_000 - first].into_iter().zip(workers))
        {
            (agent.done, agent.workers) = (done, workers);
        }
        point
    };
    let uneven = |point: TestPoint| {
        let reasons = point.verdict().reasons;
        let finding = reasons.iter().find(|finding| finding.rule.name() == "agent_shares");
        finding.map(|finding| finding::text(&finding.rule))
    };
    // A twentieth of 15,000 ops is 750.
    assert_eq!(uneven(point(14_260, [1, 1])), None);
    let text = uneven(point(14_240, [1, 1])).unwrap();
    assert!(text.starts_with("agent ssh://a on host (and one more agent): did"), "{text}");
    assert!(text.contains("14,240 ops where its part is 15,000: 5.07 % off (limit 5 %)"), "{text}");
    assert_eq!(uneven(point(10_000, [1, 2])), None);
    assert!(uneven(point(15_000, [1, 2])).is_some());
    let mut unasked = point(1_000, [1, 1]);
    unasked.suite.rules.target_share_max_ratio = None;
    assert_eq!(uneven(unasked), None);
}

#[test]
fn a_clock_that_is_known_too_little_is_a_warning() {
    let mut point = of_two();
    point.record.agents[0].clock =
        ClockOffset { offset_ns: 5, bound: Nanos::from_millis(2), drift_ns: 1_000 };
    let verdict = point.verdict();
    let text = finding::text(&verdict.warnings[0].rule);
    assert!(verdict.valid && verdict.warnings[0].rule.name() == "agent_clock");
    assert!(text.contains("within 2.00 ms only (limit 1.00 ms)"), "{text}");
}

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
    let (above, within) = (remote(FULL + 1, &two), remote(FULL, &two));
    check_rule("link_capacity", &carried(above, "eth0"), &carried(within, "eth0"));
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

#[test]
fn late_requests_of_a_replay_are_named_in_a_warning() {
    let mut point = PointBuilder::open(1_000.0).build();
    let is_late = |finding: &Finding| matches!(finding.rule, Rule::LateOps { .. });
    assert!(!point.verdict().warnings.iter().any(is_late));
    let (line, due_ns, lag_ns) = (9, Nanos::from_secs(1), Nanos::from_millis(3));
    point.record.totals.late.note(LateOp { line, due_ns, lag_ns, cause: LateCause::Generator });
    let verdict = point.verdict();
    assert!(verdict.valid && verdict.warnings.iter().any(is_late), "{verdict:?}");
}
