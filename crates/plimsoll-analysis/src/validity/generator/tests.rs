use crate::testing::{PointBuilder, TestPoint, check_rule};
use plimsoll_model::assignment::Load;
use plimsoll_model::event::{CoreUser, ResourceUse, WorkerHealth};

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
    let text = with_health(delayed(0.48)).verdict().reasons[0].rule.to_string();
    assert!(text.contains("asked for 95 % of its core (limit 90 %; work up to 47 %"), "{text}");
}

#[test]
fn who_had_the_workers_core_is_told_by_name() {
    let told = |users: Option<Vec<CoreUser>>, steal: f64| {
        let mut point = with_health(delayed(0.48));
        point.record.core_users = users;
        let (name, unit) = ("host.cpu_steal".to_owned(), String::new());
        point.record.resources =
            vec![ResourceUse { name, unit, mean: steal, max: steal, ..ResourceUse::default() }];
        point.verdict().reasons[0].rule.to_string()
    };
    let user = |name: &str, own| CoreUser {
        name: name.into(),
        pid: 7,
        cpu_ns: 14_400_000_000,
        own,
        server: false,
        kernel: false,
    };
    let text = told(Some(vec![user("burn", false)]), 0.0);
    assert!(text.contains("burn (process 7) had a worker's core for 48 % of the time"), "{text}");
    // A hundredth of the time: less than half of that is not worth a name.
    let little = |cpu_ns| told(Some(vec![CoreUser { cpu_ns, ..user("burn", false) }]), 0.0);
    assert!(little(160_000_000).contains("burn (process 7)"), "{}", little(160_000_000));
    assert!(little(140_000_000).contains("other programs"), "{}", little(140_000_000));
    let text = told(Some(vec![user("plimsoll", true)]), 0.0);
    assert!(text.contains("other threads of this program had a worker's core for 48 %"), "{text}");
    let text = told(Some(vec![CoreUser { server: true, ..user("nginx", false) }]), 0.0);
    assert!(text.contains("the server itself (nginx, process 7) had a worker's core"), "{text}");
    assert!(!text.contains("end it"), "a server under test is not to be stopped: {text}");
    let text =
        told(Some(vec![CoreUser { kernel: true, ..user("kworker/0:0-events", false) }]), 0.0);
    assert!(text.contains("kworker/0:0-events, a thread of the kernel, had a worker's"), "{text}");
    assert!(
        text.contains("It cannot be ended. Move interrupts to another")
            && text.contains("smp_affinity"),
        "{text}"
    );
    assert!(!text.contains("end it"), "{text}");
    let text = told(None, 0.0);
    assert!(text.contains("other programs had a worker's core for 48 % of the time"), "{text}");
    let hypervisor = {
        let mut point = PointBuilder::open(1_000.0).worker_busy(0.95).build();
        let (name, unit) = ("host.cpu_steal".to_owned(), String::new());
        point.record.resources =
            vec![ResourceUse { name, unit, mean: 0.05, max: 0.05, ..ResourceUse::default() }];
        point.verdict().reasons[0].rule.to_string()
    };
    assert!(hypervisor.contains("the hypervisor kept 5 %"), "{hypervisor}");
}

#[test]
fn gaps_between_polls_that_no_thread_explains_are_the_hypervisors() {
    let mut point = PointBuilder::open(1_000.0).worker_busy(0.95).build();
    for health in point.record.workers.iter_mut().flatten() {
        (health.gap_ns, health.gap_ns_max) = (health.wall_ns / 20, 2_000_000);
    }
    let text = point.verdict().reasons[0].rule.to_string();
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
    let text = at(600_000).verdict().reasons[0].rule.to_string();
    assert!(text.contains("may be 61") && text.contains("of response p50"), "{text}");
}

#[test]
fn a_closed_load_that_might_have_done_half_as_much_again_is_not_measured() {
    // Every third op lies unread for 2 ms: the median knows nothing of it.
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
    // What those after it may have met makes the times less certain, and nothing was lost by it.
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
        late.warnings[0].rule.to_string().starts_with("generator late: send lag p99 = 1.01 ms"),
        "{late:?}"
    );
    assert!(at(990_000).verdict().warnings.is_empty());
}

#[test]
fn delays_of_a_closed_load_are_held_against_the_time_that_the_server_took() {
    let lag = |lag_ns: u64, clients: u32| {
        let mut point = PointBuilder::closed(4).receive_lag_ns(lag_ns).build();
        let Load::Closed { clients: asked, .. } = &mut point.record.load else { panic!("closed") };
        *asked = clients;
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
    assert!(verdict.warnings[0].rule.to_string().contains("own is 20.0"), "{verdict:?}");
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
