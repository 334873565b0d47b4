use plimsoll_model::disclosure::{Disclosure, TargetDisclosure};
use plimsoll_model::event::ResourceUse;

use crate::analyse;
use crate::testing::{PointBuilder, RunBuilder};

/// What the monitors saw at one point: names and means.
type Seen<'a> = &'a [(&'a str, f64)];

/// 4, 16 and 32 clients without think time on a server held to core 1: what is achieved, and what
/// was seen.
fn limit(points: [(u64, Seen<'_>); 3], disclosure: Option<Disclosure>) -> String {
    let clients = [4, 16, 32];
    let built = clients.into_iter().zip(&points).map(|(clients, (ops, _))| {
        let response_ns = u64::from(clients) * 1_000_000_000 / ops;
        PointBuilder::closed(clients).achieved(*ops).response_ns(response_ns)
    });
    let mut run = RunBuilder::of(built.collect::<Vec<_>>());
    for (index, (_, seen)) in points.iter().enumerate() {
        let resource = |(name, mean): &(&str, f64)| ResourceUse {
            name: (*name).to_owned(),
            mean: *mean,
            max: *mean,
            ..ResourceUse::default()
        };
        run.finished_mut(index).resources = seen.iter().map(resource).collect();
    }
    let mut raw = run.raw();
    raw.disclosure = disclosure;
    analyse(&raw).summary.limit.unwrap()
}

fn here() -> Option<Disclosure> {
    let target = TargetDisclosure { same_host: true, cores: vec![1], ..Default::default() };
    Some(Disclosure { targets: vec![target], ..Disclosure::default() })
}

fn check(limit: &str, parts: &[&str]) {
    for part in parts {
        assert!(limit.contains(part), "{part:?} in {limit}");
    }
}

/// Ops of 5 ms by 8 threads that wait for something in them: 1,600 ops/s.
const THREADS: [(u64, Seen<'_>); 3] = [
    (800, &[("server.threads", 8.0), ("server.threads_busy", 3.0), ("server.queue", 0.0)]),
    (1_590, &[("server.threads", 8.0), ("server.threads_busy", 7.9), ("server.queue", 7.0)]),
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
    let text = limit(THREADS, here());
    let whole = "the limit is the service threads: at 32 clients 8.0 of 8 service threads were \
                 busy and 23.9 requests waited for one, while the server's processors were 8 % \
                 busy and the busiest disk (vda) 1 %";
    assert!(text.ends_with(whole), "the generator's core is not the server's: {text}");
    // The server's own count of what an op takes comes before the time of an answer.
    let mut counted = THREADS;
    counted[0].1 =
        &[("server.threads", 8.0), ("server.threads_busy_mean", 4.0), ("server.queue", 0.0)];
    check(&limit(counted, here()), &["the limit is the service threads"]);
}

#[test]
fn threads_whose_demand_does_not_predict_the_plateau_are_not_the_limit() {
    // Alone an op takes a quarter of the time: something else makes the threads wait.
    let mut contended = THREADS;
    contended[0].0 = 3_200;
    contended[1].0 = 1_700;
    let text = limit(contended, here());
    check(&text, &["which resource is not known", "8.0 of 8 service threads were busy"]);
    // The queue was there before.
    let mut before = THREADS;
    before[0].1 = &[("server.threads", 8.0), ("server.threads_busy", 3.0), ("server.queue", 30.0)];
    check(&limit(before, here()), &["which resource is not known"]);
}

#[test]
fn what_was_full_at_every_load_is_named_with_what_is_missing() {
    let mut full = THREADS;
    full[0] = full[1];
    check(&limit(full, here()), &["the limit is the service threads", "could not confirm it"]);
    let mut full = PROCESSOR;
    full[0] = full[1];
    check(&limit(full, here()), &["the limit is the processors", "could not confirm it"]);
}

#[test]
fn nothing_is_named_when_the_hardware_was_busy_or_not_watched() {
    let mut points = THREADS;
    let elsewhere = limit(points, Some(Disclosure::default()));
    check(&elsewhere, &["which resource is not known", "the server's host was not watched"]);
    let busy = [THREADS[2].1, &[("disk.vdb.busy", 0.8)]].concat();
    points[2].1 = &busy;
    let text = limit(points, here());
    check(&text, &["which resource is not known", "the busiest disk (vdb) 80 %"]);
    assert!(!text.contains("the limit is"), "{text}");
}

#[test]
fn threads_that_wait_for_fdatasync_are_not_the_limit() {
    let mut points = THREADS;
    let syncing = [THREADS[2].1, &[("server.threads_in_fdatasync", 7.0)]].concat();
    points[2].1 = &syncing;
    check(&limit(points, here()), &["which resource is not known"]);
}

#[test]
fn threads_that_wait_for_a_disk_that_is_held_back_are_not_the_limit() {
    let mut points = THREADS;
    let stalled = [THREADS[2].1, &[("host.pressure_io_some", 0.9)]].concat();
    points[2].1 = &stalled;
    check(
        &limit(points, here()),
        &["which resource is not known", "with threads waiting for storage 90 % of the time"],
    );
}

/// 0.5 ms of a processor per op: 2,000 ops/s on one core.
const PROCESSOR: [(u64, Seen<'_>); 3] = [
    (1_200, &[("server.threads", 49.0), ("process.server.cpu", 0.6)]),
    (
        1_990,
        &[
            ("server.threads", 49.0),
            ("process.server.cpu", 0.98),
            ("host.runnable", 15.0),
            ("cpu.1.busy", 0.99),
        ],
    ),
    (
        2_000,
        &[
            ("server.threads", 49.0),
            ("server.threads_busy", 31.0),
            ("server.queue", 0.0),
            ("process.server.cpu", 0.97),
            ("host.runnable", 31.0),
            ("cpu.0.busy", 0.3),
            ("cpu.1.busy", 0.99),
        ],
    ),
];

#[test]
fn a_processor_that_the_server_fills_is_the_limit() {
    let text = limit(PROCESSOR, here());
    check(
        &text,
        &["the limit is the processors: at 32 clients those of the server were 99 % busy"],
    );
    check(&text, &["0.97 of 1 by the server itself"]);
}

#[test]
fn a_processor_that_others_fill_or_whose_demand_does_not_predict_the_plateau_is_not_named() {
    let mut others = PROCESSOR;
    let seen: Vec<(&str, f64)> = others[2]
        .1
        .iter()
        .map(|(name, mean)| (*name, if *name == "process.server.cpu" { 0.3 } else { *mean }))
        .collect();
    others[2].1 = &seen;
    let text = limit(others, here());
    check(&text, &["which resource is not known", "the server's processors were 99 % busy"]);
    let mut cheap = PROCESSOR;
    cheap[0].1 = &[("server.threads", 49.0), ("process.server.cpu", 0.3)];
    assert!(limit(cheap, here()).contains("which resource is not known"));
}

#[test]
fn a_disk_without_time_left_whose_queue_grew_is_the_limit() {
    let disk = |busy, queue| {
        [
            ("server.threads", 49.0),
            ("server.threads_busy", 31.0),
            ("server.queue", 0.0),
            ("cpu.1.busy", 0.1),
            ("disk.vdb.busy", busy),
            ("disk.vdb.queue_mean", queue),
        ]
    };
    let [idle, full] = [disk(0.3, 1.0), disk(0.99, 29.0)];
    let text = limit([(30, &idle), (98, &full), (100, &full)], here());
    check(&text, &["the limit is the disk vdb: at 32 clients it was 99 % busy with 29.0 requests"]);
    // A disk that serves many at once is busy long before it is full.
    let text = limit([(10, &idle), (98, &full), (100, &full)], here());
    check(&text, &["which resource is not known", "the busiest disk (vdb) 99 %"]);
}

#[test]
fn of_a_server_that_tells_nothing_no_resource_is_named() {
    let seen: Seen<'_> = &[("cpu.1.busy", 0.99), ("process.server.cpu", 0.99)];
    let text = limit([(1_200, seen), (1_990, seen), (2_000, seen)], here());
    assert!(
        text.ends_with("while the generator had headroom; which resource is not known"),
        "{text}"
    );
}
