mod competing;
mod hosts;
mod models;
mod swings;

use plimsoll_model::disclosure::{Disclosure, TargetDisclosure};
use plimsoll_model::event::ResourceUse;
use plimsoll_model::limit::LimitKind;
use plimsoll_model::result::RunResult;
use plimsoll_report::sentences::limit;

use crate::analyse;
use crate::testing::{PointBuilder, RunBuilder};

/// Resources of one point: names and means.
type ResourceMeans<'a> = &'a [(&'a str, f64)];

/// 4, 16 and 32 clients without think time on a server pinned to core 1: the achieved throughput,
/// and the resources.
fn run(
    points: &[(u64, ResourceMeans<'_>)],
    disclosure: Option<Disclosure>,
    source: Option<&str>,
) -> RunResult {
    let clients = [4, 16, 32];
    let built = clients.into_iter().zip(points).map(|(clients, (ops, _))| {
        let response_ns = u64::from(clients) * 1_000_000_000 / ops;
        PointBuilder::closed(clients).achieved(*ops).response_ns(response_ns)
    });
    let mut run = RunBuilder::from_points(built.collect::<Vec<_>>());
    for (index, (_, means)) in points.iter().enumerate() {
        set_resources(&mut run, index, means, source);
    }
    let mut raw = run.raw();
    raw.disclosure = disclosure;
    analyse(&raw)
}

/// Sets the resources of a point.
fn set_resources(
    run: &mut RunBuilder,
    index: usize,
    means: ResourceMeans<'_>,
    source: Option<&str>,
) {
    let resource = |(name, mean): &(&str, f64)| ResourceUse {
        name: (*name).to_owned(),
        mean: *mean,
        max: *mean,
        source: source.map(str::to_owned),
        ..ResourceUse::default()
    };
    run.finished_mut(index).resources = means.iter().map(resource).collect();
}

fn here() -> Option<Disclosure> {
    let target = TargetDisclosure { same_host: true, cores: vec![1], ..Default::default() };
    Some(Disclosure { targets: vec![target], ..Disclosure::default() })
}

fn limits(points: &[(u64, ResourceMeans<'_>)]) -> Vec<(LimitKind, Option<String>)> {
    let result = run(points, here(), None);
    result.points.into_iter().map(|point| (point.limit.kind, point.limit.place)).collect()
}

/// The limit of the highest of three loads, with the same resources at the lowest except for `low`.
fn last(low: ResourceMeans<'_>, high: ResourceMeans<'_>) -> (LimitKind, Option<String>) {
    limits(&[(800, low), (990, high), (1_000, high)]).pop().unwrap()
}

fn sentence(points: &[(u64, ResourceMeans<'_>)]) -> String {
    run(points, here(), None).summary.limit.unwrap()
}

fn limit_at(kind: LimitKind, location: &str) -> (LimitKind, Option<String>) {
    (kind, Some(location.to_owned()))
}

/// A server with two cores and spare capacity on them.
const IDLE: [(&str, f64); 3] = [
    ("process.server.cores_allowed", 2.0),
    ("process.server.cores_busy", 0.5),
    ("process.server.cpu", 0.4),
];

fn idle_and(more: &[(&'static str, f64)]) -> Vec<(&'static str, f64)> {
    [&IDLE, more].concat()
}

/// Ops of 5 ms by 8 threads that wait in them: 1,600 ops/s.
const THREADS: [(u64, ResourceMeans<'_>); 3] = [
    (800, &[("server.threads", 8.0), ("server.threads_busy", 3.0), ("server.queue", 0.0)]),
    (
        1_590,
        &[
            ("server.threads", 8.0),
            ("server.threads_busy", 7.9),
            ("server.queue", 7.0),
            ("cpu.1.busy", 0.08),
        ],
    ),
    (
        1_600,
        &[
            ("server.threads", 8.0),
            ("server.threads_busy", 8.0),
            ("server.threads_busy_mean", 7.97),
            ("server.queue", 24.0),
            ("server.queue_mean", 23.9),
            ("cpu.0.busy", 0.99),
            ("cpu.1.busy", 0.08),
            ("disk.vda.busy", 0.01),
        ],
    ),
];

#[test]
fn busy_threads_with_a_queue_on_idle_hardware_are_the_limit() {
    let pool = limit_at(LimitKind::Pool, "service threads");
    assert_eq!(limits(&THREADS), [(LimitKind::None, None), pool.clone(), pool]);
    let text = sentence(&THREADS);
    let part = "the limit is the service threads: 7.9 of 8 were busy and 7.0 requests waited";
    assert!(text.contains(part) && text.ends_with("from 16 clients on"), "{text}");
}

#[test]
fn threads_that_wait_for_something_that_is_seen_are_not_the_limit() {
    for other in [
        ("disk.vdb.busy", 0.8),
        ("server.threads_in_fdatasync", 7.0),
        ("host.pressure_io_some", 0.9),
    ] {
        let mut points = THREADS;
        let busy = [THREADS[2].1, &[other]].concat();
        points[2].1 = &busy;
        let (kind, _) = limits(&points).pop().unwrap();
        assert_ne!(kind, LimitKind::Pool, "{other:?}");
    }
    // The queue was there before.
    let mut before = THREADS;
    before[0].1 = &[("server.threads", 8.0), ("server.threads_busy", 3.0), ("server.queue", 30.0)];
    assert_eq!(limits(&before).pop().unwrap().0, LimitKind::Unknown);
}

#[test]
fn nothing_is_named_where_the_servers_host_was_not_watched() {
    let result = run(&THREADS, Some(Disclosure::default()), None);
    let text = result.summary.limit.unwrap();
    assert!(
        text.ends_with("which resource is not known: the server's host was not watched"),
        "{text}"
    );
    // The same figures from the server's own host.
    let elsewhere = run(&THREADS, Some(Disclosure::default()), Some("ssh://server"));
    assert_eq!(elsewhere.points[2].limit.kind, LimitKind::Pool);
}

#[test]
fn behind_a_cap_on_response_time_stands_the_resource_that_was_full() {
    let mut run = RunBuilder::from_points([
        PointBuilder::open(500.0).response_ns(1_000_000),
        PointBuilder::open(900.0).response_ns(50_000_000),
    ]);
    run.suite.rules.response_cap_ms = Some(40.0);
    set_resources(&mut run, 0, &[("process.server.cpu", 0.5), ("cpu.1.busy", 0.5)], None);
    set_resources(&mut run, 1, &[("process.server.cpu", 0.97), ("cpu.1.busy", 0.99)], None);
    let mut raw = run.raw();
    raw.disclosure = here();
    let result = analyse(&raw);
    let limit = &result.points[1].limit;
    assert_eq!(limit.kind, LimitKind::Cap, "{limit:?}");
    assert!(
        limit::text(limit).contains("above 40 ms; behind it one core of the server (core 1"),
        "{limit:?}"
    );
    assert!(!limit.evidence.is_empty(), "{limit:?}");
    let text = result.summary.limit.unwrap();
    let begin = "the suite's cap on response time: from 900 ops/s requested on";
    assert!(text.starts_with(begin) && text.contains("; behind it one core"), "{text}");
}

/// 0.5 ms of a processor per op: 2,000 ops/s on one core.
const PROCESSOR: [(u64, ResourceMeans<'_>); 3] = [
    (1_200, &[("process.server.cpu", 0.6), ("cpu.1.busy", 0.61)]),
    (1_990, &[("process.server.cpu", 0.98), ("cpu.1.busy", 0.99)]),
    (2_000, &[("process.server.cpu", 0.97), ("cpu.0.busy", 0.3), ("cpu.1.busy", 0.99)]),
];

#[test]
fn a_core_that_the_server_fills_while_services_take_longer_is_the_limit() {
    let core = limit_at(LimitKind::Core, "core 1");
    assert_eq!(limits(&PROCESSOR), [(LimitKind::None, None), core.clone(), core]);
    let result = run(&PROCESSOR, here(), None);
    let evidence = &result.points[2].limit.evidence[0];
    assert_eq!(
        (evidence.value, evidence.ceiling, evidence.low_load_value),
        (0.97, Some(1.0), Some(0.6))
    );
}

#[test]
fn a_core_that_others_fill_is_not_the_servers_limit() {
    let mut others = PROCESSOR;
    others[2].1 = &[("process.server.cpu", 0.3), ("cpu.1.busy", 0.99)];
    assert_eq!(limits(&others).pop().unwrap().0, LimitKind::Unknown);
}

#[test]
fn a_full_core_without_any_queue_is_not_the_limit() {
    // 3.3 ms an op at 4 clients, and no more at 32: they are not under way all the time.
    let points = [(1_200, PROCESSOR[0].1), (2_000, PROCESSOR[1].1)];
    let mut run = RunBuilder::from_points([
        PointBuilder::closed(4).achieved(points[0].0).response_ns(3_000_000),
        PointBuilder::closed(32).achieved(points[1].0).response_ns(3_000_000),
    ]);
    for (index, (_, means)) in points.iter().enumerate() {
        set_resources(&mut run, index, means, None);
    }
    let mut raw = run.raw();
    raw.disclosure = here();
    assert_eq!(analyse(&raw).points[1].limit.kind, LimitKind::Unknown);
}

#[test]
fn all_cores_and_the_only_busy_thread_are_told_apart() {
    let of = |busy: f64, cpu: f64, thread: f64| {
        [
            ("process.server.cores_allowed", 4.0),
            ("process.server.cores_busy", busy),
            ("process.server.cpu", cpu),
            ("process.server.busiest_thread", thread),
        ]
    };
    let low = of(0.5, 0.4, 0.4);
    assert_eq!(last(&low, &of(3.9, 3.5, 0.97)), limit_at(LimitKind::Processor, "4 cores"));
    assert_eq!(
        last(&low, &of(1.2, 1.0, 0.99)),
        limit_at(LimitKind::Core, "one thread of the server")
    );
    assert_eq!(last(&low, &of(1.2, 1.0, 0.5)).0, LimitKind::Unknown);
}

#[test]
fn a_quota_that_is_used_up_is_named_and_the_cores_are_not() {
    let of = |cpu: f64, throttled: f64| {
        [
            ("process.server.cores_allowed", 1.0),
            ("process.server.cores_busy", 0.98),
            ("process.server.cpu", cpu),
            ("cgroup.server.quota", 0.25),
            ("cgroup.server.throttled", throttled),
        ]
    };
    assert_eq!(last(&of(0.1, 0.0), &of(0.25, 0.7)), limit_at(LimitKind::Quota, "0.25 cores"));
    assert_eq!(last(&of(0.1, 0.0), &of(0.15, 0.0)).0, LimitKind::Unknown);
}

#[test]
fn the_hypervisor_is_named_where_it_kept_the_servers_core() {
    let of = |busy: f64, steal: f64| {
        [
            ("process.server.cores_allowed", 1.0),
            ("process.server.cores_busy", busy),
            ("process.server.cores_steal", steal),
            ("process.server.cpu", busy),
        ]
    };
    assert_eq!(last(&of(0.3, 0.0), &of(0.7, 0.29)), (LimitKind::Hypervisor, None));
}

#[test]
fn a_disk_is_named_by_its_queue_or_by_the_rate_it_is_held_to() {
    let disk = |busy, queue| idle_and(&[("disk.vdb.busy", busy), ("disk.vdb.queue_mean", queue)]);
    let [idle, full] = [disk(0.3, 1.0), disk(0.99, 29.0)];
    let of = |low: u64| limits(&[(low, &idle), (98, &full), (100, &full)]).pop().unwrap();
    assert_eq!(of(30), limit_at(LimitKind::Disk, "vdb"));
    assert_eq!(of(20).0, LimitKind::Unknown, "one that serves many at once is not full");
    let throttled = |reads| {
        idle_and(&[("storage.server:vda.reads", reads), ("storage.server:vda.reads_max", 800.0)])
    };
    assert_eq!(last(&throttled(200.0), &throttled(798.0)), limit_at(LimitKind::Disk, "vda"));
    assert_eq!(last(&throttled(200.0), &throttled(500.0)).0, LimitKind::Unknown);
}

#[test]
fn a_disk_of_which_no_ceiling_is_known_is_named_where_threads_wait_for_it() {
    let of = |waiting, stalled| {
        idle_and(&[
            ("process.server.threads_waiting_for_disk", waiting),
            ("host.pressure_io_some", stalled),
            ("disk.vda.busy", 0.4),
        ])
    };
    assert_eq!(last(&of(0.2, 0.1), &of(6.0, 0.9)), limit_at(LimitKind::Disk, "vda"));
    assert_eq!(last(&of(0.2, 0.1), &of(0.5, 0.9)).0, LimitKind::Unknown);
}

#[test]
fn memory_is_named_where_pages_without_room_are_read_again() {
    let of = |memory, refaults| {
        idle_and(&[
            ("cgroup.server.memory", memory),
            ("cgroup.server.memory_max", 100.0),
            ("cgroup.server.refaults", refaults),
            ("process.server.threads_waiting_for_disk", 3.0),
            ("host.pressure_io_some", 0.9),
            ("disk.vda.busy", 0.4),
        ])
    };
    assert_eq!(last(&of(60.0, 0.0), &of(99.0, 5_000.0)).0, LimitKind::Memory);
    assert_ne!(last(&of(60.0, 0.0), &of(99.0, 5.0)).0, LimitKind::Memory);
}

#[test]
fn memory_is_the_cause_where_pages_that_are_read_again_fill_the_core_or_a_disk() {
    let of = |cpu: f64, refaults: f64, more: &[(&'static str, f64)]| {
        let own = [
            ("process.server.cores_allowed", 1.0),
            ("process.server.cores_busy", cpu),
            ("process.server.cpu", cpu),
            ("process.server.run_delay", 9.0 * cpu),
            ("cgroup.server.memory", 99.0),
            ("cgroup.server.memory_max", 100.0),
            ("cgroup.server.refaults", refaults),
        ];
        [&own, more].concat()
    };
    let none: &[(&'static str, f64)] = &[];
    // Four fifths of a core for 800 ops/s are 1 ms an op, as at the full core: nothing was caused.
    let core = limit_at(LimitKind::Core, "core 1");
    assert_eq!(last(&of(0.8, 0.0, none), &of(0.99, 5_000.0, none)), core);
    let memory = (LimitKind::Memory, None);
    assert_eq!(last(&of(0.3, 0.0, none), &of(0.99, 5_000.0, none)), memory);
    let full = of(0.99, 5_000.0, none);
    let text = sentence(&[(800, &of(0.3, 0.0, none)), (990, &full), (1_000, &full)]);
    assert!(text.contains("which fills one core of the server (core 1"), "{text}");
    // As many pages an op at low load: they did not come with the load.
    assert_eq!(last(&of(0.3, 5_000.0, none), &of(0.99, 5_000.0, none)), core);
    assert_eq!(last(&of(0.3, 0.0, none), &of(0.99, 50.0, none)), core, "few pages");
    let disk = |busy, queue| [("disk.vda.busy", busy), ("disk.vda.queue_mean", queue)];
    let read = last(&of(0.3, 0.0, &disk(0.8, 1.0)), &of(0.4, 5_000.0, &disk(0.99, 20.0)));
    assert_eq!(read, memory);
    let throttled =
        |reads| [("storage.server:vda.reads", reads), ("storage.server:vda.reads_max", 6e2)];
    let read = last(&of(0.3, 0.0, &throttled(0.0)), &of(0.4, 5_000.0, &throttled(599.0)));
    assert_eq!(read, limit_at(LimitKind::Disk, "vda"), "a rate that is set is a limit of its own");
}

#[test]
fn the_network_is_named_by_its_link_or_by_what_waits_to_be_sent() {
    let link = |share| idle_and(&[("network.eth0.sent_share", share)]);
    assert_eq!(last(&link(0.2), &link(0.98)), limit_at(LimitKind::Network, "eth0"));
    let drops = [&link(0.98)[..], &[("network.eth0.send_drops", 40.0)]].concat();
    let text = sentence(&[(800, &link(0.2)), (990, &drops), (1_000, &drops)]);
    assert!(text.contains("98 % of what its link carries and dropped 40.0 packets"), "{text}");
    let unsent = |bytes| {
        idle_and(&[
            ("socket.server.send_queue", bytes),
            ("network.lo.sent", 9e9),
            ("network.server:veth1.sent", 5e6),
        ])
    };
    assert_eq!(last(&unsent(0.0), &unsent(4e6)), limit_at(LimitKind::Network, "veth1"));
    assert_eq!(last(&unsent(0.0), &unsent(4e3)).0, LimitKind::Unknown);
}

#[test]
fn a_lock_and_a_pool_that_tells_nothing_are_told_apart() {
    let of = |locked, unread| {
        idle_and(&[
            ("process.server.threads", 16.0),
            ("process.server.threads_waiting_for_lock", locked),
            ("socket.server.receive_queue", unread),
        ])
    };
    // With 4 ops under way 12 threads of 16 are idle.
    assert_eq!(last(&of(12.0, 0.0), &of(15.0, 900.0)), (LimitKind::Lock, None));
    let pool = limit_at(LimitKind::Pool, "threads or processes of the server");
    assert_eq!(last(&of(12.0, 0.0), &of(0.0, 900.0)), pool);
    assert_eq!(last(&of(12.0, 0.0), &of(2.0, 0.0)).0, LimitKind::Unknown);
}

#[test]
fn two_that_are_full_at_once_are_both_named() {
    let of = |busy: f64, reads: f64| {
        [
            ("process.server.cores_allowed", 1.0),
            ("process.server.cores_busy", busy),
            ("process.server.cpu", busy),
            ("storage.server:vda.reads", reads),
            ("storage.server:vda.reads_max", 800.0),
        ]
    };
    let points: [(u64, ResourceMeans<'_>); 3] =
        [(800, &of(0.3, 100.0)), (990, &of(0.99, 500.0)), (1_000, &of(0.99, 799.0))];
    let result = run(&points, here(), None);
    let limit = &result.points[2].limit;
    assert_eq!((limit.kind, limit.also.len()), (LimitKind::Core, 1));
    assert_eq!(limit.also[0].kind, LimitKind::Disk);
    let text = result.summary.limit.unwrap();
    assert!(
        text.contains("from 16 clients on; then one core") && text.contains("and the disk vda"),
        "{text}"
    );
}

#[test]
fn the_limit_moves_with_the_load_and_contention_is_a_finding_of_its_own() {
    let of = |cpu: f64, queue: f64, busy: f64| {
        [
            ("process.server.cores_allowed", 1.0),
            ("process.server.cores_busy", cpu),
            ("process.server.cpu", cpu),
            ("storage.server:vda.reads", busy * 100.0),
            ("storage.server:vda.reads_max", 100.0),
            ("disk.vda.queue_mean", queue),
        ]
    };
    let points: [(u64, ResourceMeans<'_>); 3] =
        [(800, &of(0.2, 0.1, 0.1)), (990, &of(0.99, 0.5, 0.4)), (1_000, &of(0.6, 20.0, 1.0))];
    let text = sentence(&points);
    let moved = "from 16 clients on; then the disk vda: 100 reads a second, of 100 that the \
                 server's control group is held to, from 32 clients on";
    assert!(text.contains(moved), "{text}");
    let grown = "CPU time per op grows 2.4 x from 4 clients to 32 clients: contention";
    assert!(text.ends_with(grown), "{text}");
}

#[test]
fn what_limited_the_loads_below_the_generators_limit_is_told() {
    let of = |busy: f64| {
        [
            ("process.server.cores_allowed", 1.0),
            ("process.server.cores_busy", busy),
            ("process.server.cpu", busy),
        ]
    };
    let (low, full) = (of(0.4), of(0.99));
    let built = [(4, 800), (16, 990), (32, 1_000)].map(|(clients, ops)| {
        let response_ns = u64::from(clients) * 1_000_000_000 / ops;
        PointBuilder::closed(clients).achieved(ops).response_ns(response_ns)
    });
    let [first, second, third] = built;
    let mut run = RunBuilder::from_points([first, second, third.worker_busy(0.99)]);
    for (index, means) in [&low, &full, &full].into_iter().enumerate() {
        set_resources(&mut run, index, means, None);
    }
    let mut raw = run.raw();
    raw.disclosure = here();
    let text = analyse(&raw).summary.limit.unwrap();
    assert!(text.starts_with("generator-limited from 32 clients on"), "{text}");
    assert!(text.contains("below that the limit is one core of the server"), "{text}");
    assert!(text.contains("from 16 clients on"), "{text}");
}

#[test]
fn a_full_core_is_not_called_unsaturated_because_of_scatter_at_the_end() {
    let of = |busy: f64| {
        [
            ("process.server.cores_allowed", 1.0),
            ("process.server.cores_busy", busy),
            ("process.server.cpu", busy),
            ("process.server.run_delay", 3.0 * busy),
        ]
    };
    let (low, full, half) = (of(0.4), of(0.99), of(0.5));
    let text = sentence(&[(800, &low), (990, &full), (1_040, &full)]);
    let only = "server saturated at about 1,040 ops/s: more clients brought only 5 % more at the \
                last doubling";
    assert!(text.starts_with(only), "{text}");
    let text = sentence(&[(800, &low), (990, &half), (1_040, &half)]);
    let grew = "throughput still grew from 16 clients to 32 clients, though no longer in step";
    assert!(text.starts_with(grew) && text.contains("from 16 clients on"), "{text}");
}

#[test]
fn one_load_names_what_is_full_with_a_queue_and_says_that_it_is_one() {
    let of = |delay| {
        [
            ("process.server.cores_allowed", 1.0),
            ("process.server.cores_busy", 0.99),
            ("process.server.cpu", 0.97),
            ("process.server.run_delay", delay),
        ]
    };
    let result = run(&[(1_000, &of(2.0))], here(), None);
    assert_eq!(result.points[0].limit.kind, LimitKind::Core);
    assert!(result.summary.limit.unwrap().ends_with("at this one load"));
    let result = run(&[(1_000, &of(0.0))], here(), None);
    assert_eq!(result.points[0].limit.kind, LimitKind::None);
}
