use plimsoll_model::capacity::CapacityRequest;
use plimsoll_model::disclosure::{Disclosure, TargetDisclosure};
use plimsoll_model::event::{
    AgentPoint, Bound, CoreUser, LostSign, ResourceUse, ServerLost, TimeKind,
};
use plimsoll_model::limit::{LimitFacts, LimitKind};
use plimsoll_model::result::{NotCounted, RunResult};
use plimsoll_report::sentences::limit;

use crate::analyse;
use crate::raw::PointTimes;
use crate::testing::{PointBuilder, RunBuilder};

fn limit(points: impl IntoIterator<Item = PointBuilder>) -> String {
    analyse(&RunBuilder::from_points(points).raw()).summary.limit.unwrap()
}

fn check(points: impl IntoIterator<Item = PointBuilder>, start: &str) {
    let text = limit(points);
    assert!(text.starts_with(start), "{text}");
}

#[test]
fn a_ladder_that_was_held_is_not_saturated() {
    check([500.0, 1_000.0].map(PointBuilder::open), "not saturated");
}

#[test]
fn a_plateau_with_headroom_is_the_servers() {
    let plateau = [
        PointBuilder::open(1_000.0),
        PointBuilder::open(2_000.0).achieved(1_300),
        PointBuilder::open(3_000.0).achieved(1_290),
    ];
    let text = limit(plateau);
    assert!(text.starts_with("server saturated at about 1,300 ops/s: from 2,000"), "{text}");
    assert!(text.contains("which resource is not known"), "{text}");
}

#[test]
fn clients_that_are_all_busy_on_a_server_that_is_not_slower_are_the_limit() {
    // 64 clients and 100 ms an op: 640 ops/s, whatever the server's capacity.
    let slow = |rate| PointBuilder::open(rate).response_ns(100_000_000);
    check([slow(300.0), slow(1_000.0).achieved(640)], "the clients: all 64 were busy");
    let slower = PointBuilder::open(1_000.0).response_ns(100_000_000).achieved(640);
    check([PointBuilder::open(300.0), slower], "server saturated at about 640");
}

#[test]
fn a_single_load_is_held_against_its_own_first_ops() {
    let single = |first_ms: u64| {
        let slow = PointBuilder::open(1_000.0).response_ns(100_000_000).achieved(640);
        let mut run = RunBuilder::from_points([slow]);
        let totals = &mut run.finished_mut(0).totals;
        (totals.first_ops, totals.first_service_ns_total) = (16, 16 * first_ms * 1_000_000);
        analyse(&run.raw()).points[0].limit.clone()
    };
    let clients = single(95);
    assert_eq!(clients.kind, LimitKind::Clients);
    assert_eq!((clients.evidence[0].value, clients.evidence[1].low_load_value), (64.0, Some(95e6)));
    assert!(
        limit::text(&clients).contains("64 clients of 100 ms an op carry no more than 640 ops/s")
    );
    assert_ne!(single(10).kind, LimitKind::Clients, "ten times slower than at first");
}

#[test]
fn a_missed_load_that_still_grew_is_not_called_saturation() {
    let points = [PointBuilder::open(1_000.0), PointBuilder::open(2_000.0).achieved(1_800)];
    check(points, "the requested load was missed from 2,000 ops/s requested on, but");
}

#[test]
fn a_searched_ladder_ends_below_the_limit_and_the_search_tells_of_it() {
    let run = RunBuilder::open(&[500.0, 1_000.0]).with_failed_probe(3_000.0);
    let text = analyse(&run.raw()).summary.limit.unwrap();
    assert!(text.starts_with("server saturated at about 1,500 ops/s: in the search"), "{text}");
    assert!(text.contains("3,000 ops/s requested were not held while"), "{text}");
}

#[test]
fn a_load_that_was_held_when_it_was_tried_again_was_not_too_much() {
    let run = RunBuilder::open(&[500.0, 1_000.0])
        .with_probe(PointBuilder::open(1_100.0).achieved(900))
        .with_probe(PointBuilder::open(1_100.0))
        .with_failed_probe(3_000.0);
    let text = analyse(&run.raw()).summary.limit.unwrap();
    assert!(text.contains("3,000 ops/s requested were not held"), "{text}");
}

#[test]
fn too_much_load_that_brings_less_than_the_peak_does_not_lower_it() {
    let run = RunBuilder::from_points([PointBuilder::open(500.0), PointBuilder::open(1_000.0)])
        .with_probe(PointBuilder::open(1_100.0).achieved(900));
    let text = analyse(&run.raw()).summary.limit.unwrap();
    assert!(text.starts_with("server saturated at about 1,000 ops/s: in the search"), "{text}");
    assert!(text.contains("were not held and brought 900 ops/s while"), "{text}");
}

#[test]
fn a_search_among_saturated_loads_does_not_take_them_for_low_load() {
    // Low load: 0.1 ms an op. At 600 and 640 ops/s all 64 clients wait 100 ms each.
    let slow = |rate| PointBuilder::open(rate).response_ns(100_000_000);
    let run = RunBuilder::from_points([PointBuilder::open(300.0).response_ns(100_000)])
        .with_probe(slow(600.0))
        .with_probe(slow(1_000.0).achieved(640));
    let text = analyse(&run.raw()).summary.limit.unwrap();
    assert!(text.starts_with("server saturated at about 640"), "{text}");
}

#[test]
fn a_load_held_above_the_response_cap_names_the_cap() {
    let slow = PointBuilder::open(1_000.0).response_ns(50_000_000);
    let mut run = RunBuilder::from_points([PointBuilder::open(500.0), slow]);
    run.suite.rules.response_cap_ms = Some(40.0);
    let text = analyse(&run.raw()).summary.limit.unwrap();
    assert!(text.contains("from 1,000 ops/s requested on the mean service time"), "{text}");
}

#[test]
fn a_search_that_ended_at_the_response_cap_says_so() {
    let mut run = RunBuilder::open(&[500.0, 1_000.0])
        .with_probe(PointBuilder::open(1_200.0).response_ns(50_000_000));
    run.suite.rules.response_cap_ms = Some(40.0);
    let result = analyse(&run.raw());
    assert!(result.verdict.valid, "{:?}", result.verdict);
    let text = result.summary.limit.unwrap();
    assert!(text.contains("1,200 ops/s requested were held, but with a mean"), "{text}");
}

#[test]
fn a_busy_generator_is_named_before_the_server() {
    let points = [
        PointBuilder::open(1_000.0),
        PointBuilder::open(2_000.0).achieved(1_300).worker_busy(0.99),
    ];
    check(points, "generator-limited from 2,000 ops/s requested on");
}

#[test]
fn a_ladder_of_think_times_climbs_as_they_shrink() {
    let sweep = |points: &[(u64, u64)]| {
        let limit = analyse(&RunBuilder::thinking(points).raw()).summary.limit;
        limit.unwrap_or_default()
    };
    let fell = sweep(&[(15, 300), (25, 500), (60, 420), (90, 280)]);
    let begin = "server saturated at about 500 ops/s, reached at 25 s think time: past that \
                 shorter think times brought less, 300 ops/s at 15 s think time";
    assert!(fell.starts_with(begin), "{fell}");
    let rising = sweep(&[(90, 100), (45, 190), (15, 500)]);
    let grew = "not saturated: throughput still grew from 45 s think time to 15 s think time";
    assert!(rising.starts_with(grew), "{rising}");
    let flat = sweep(&[(90, 490), (45, 500), (15, 498)]);
    assert!(flat.contains("shorter think times brought no more throughput"), "{flat}");
    assert!(sweep(&[(20, 90), (15, 100)]).contains("does not halve its think time"));
}

#[test]
fn closed_loads_are_judged_over_a_doubling_of_clients() {
    let flat = [(8, 8_000), (16, 10_000), (32, 10_100)];
    check(
        flat.map(|(n, ops)| PointBuilder::closed(n).achieved(ops)),
        "server saturated at about 10,100 ops/s",
    );
    let rising = [(8, 8_000), (16, 15_000)];
    check(rising.map(|(n, ops)| PointBuilder::closed(n).achieved(ops)), "not saturated");
    // A search runs loads again.
    let again = [(16, 16_000), (32, 36_000), (32, 31_000)];
    check(again.map(|(n, ops)| PointBuilder::closed(n).achieved(ops)), "not saturated");
    let fell = [(8, 8_000), (16, 10_000), (32, 6_000)];
    check(
        fell.map(|(n, ops)| PointBuilder::closed(n).achieved(ops)),
        "server saturated at about 10,000 ops/s, reached at 16 clients: past that more clients \
         brought less, 6,000 ops/s at 32 clients, while",
    );
    let close = [(8, 8_000), (9, 8_100)];
    check(close.map(|(n, ops)| PointBuilder::closed(n).achieved(ops)), "unknown");
}

#[test]
fn throughput_that_changes_within_a_second_is_said_where_nothing_else_is_known() {
    let points = [
        PointBuilder::closed(1),
        PointBuilder::closed(8).achieved(1_000),
        PointBuilder::closed(16),
    ];
    let mut run = RunBuilder::from_points(points);
    let text = |run: &RunBuilder| limit::text(&analyse(&run.raw()).points[1].limit);
    assert!(!text(&run).contains("within a second"), "{}", text(&run));
    let record = run.finished_mut(1);
    let ticks = (0..60).map(|tick| if tick / 2 % 2 == 0 { 100 } else { 20 });
    record.totals.done_by_tick = ticks.collect();
    let message = text(&run);
    assert!(message.contains("between 400 ops/s, in the slowest quarter"), "{message}");
    assert!(message.contains("and 2,000, in the fastest"), "{message}");
}

/// Review of 0.2.0: an NFS ladder was "generator-limited from 6,550 ops/s requested on" above four
/// valid points.
#[test]
fn the_generator_is_not_the_headline_where_higher_loads_were_measured() {
    let busy = |rate| PointBuilder::open(rate).worker_busy(0.99);
    let sustained = PointBuilder::open;
    check(
        [sustained(5_000.0), busy(6_550.0), sustained(7_860.0), sustained(13_100.0)],
        "not saturated",
    );
    let missed = PointBuilder::open(9_000.0).achieved(8_100);
    check([busy(6_550.0), sustained(7_860.0), missed], "server saturated at about 8,100");
    check([sustained(5_000.0), busy(6_550.0), busy(7_860.0)], "generator-limited from 6,550");
}

#[test]
fn a_program_that_took_the_generators_core_is_the_headline_in_place_of_the_generator() {
    let disturbed = |waiting_ratio: f64, kind: &str| {
        let points = [500.0, 1_000.0].map(PointBuilder::open);
        let mut run = RunBuilder::from_points(points);
        let record = run.finished_mut(1);
        let waiting = (waiting_ratio * 1e9) as u64;
        record.workers.iter_mut().flatten().for_each(|it| it.run_delay_ns = Some(waiting));
        let cpu_ns = (waiting_ratio * record.measured_ns.0 as f64) as u64;
        let (name, pid, server) = (kind.to_owned(), 77, kind == "nginx");
        let user = CoreUser { name, pid, cpu_ns, own: false, server, kernel: false };
        record.core_users = Some(vec![user]);
        analyse(&run.raw())
    };
    let rustc = disturbed(0.9, "rustc");
    assert!(matches!(rustc.points[1].limit.facts, LimitFacts::Disturbed { .. }));
    let text = rustc.summary.limit.unwrap();
    let begin = "from 1,000 ops/s requested on the generator was disturbed";
    assert!(text.starts_with(begin) && text.contains("rustc (process 77) had"), "{text}");
    assert_eq!(disturbed(0.85, "make").points[1].limit.kind, LimitKind::Unknown);
    // The server on the worker's core is part of what is measured.
    let server = disturbed(0.9, "nginx").summary.limit.unwrap();
    assert!(server.starts_with("generator-limited"), "{server}");
}

fn watched(means: &[(&str, f64)]) -> Vec<ResourceUse> {
    means.iter().map(|(name, mean)| ResourceUse::of_window(name, "", *mean, *mean)).collect()
}

/// nginx on core 1, monitored by agents that share its host: they report the host and not nginx.
#[test]
fn what_agents_tell_of_their_hosts_is_no_limit_of_the_server() {
    for agents in [&["local"][..], &["local", "local#2"], &["ssh://a"]] {
        let missed = PointBuilder::open(3_000.0).achieved(2_100);
        let mut run = RunBuilder::from_points([PointBuilder::open(1_000.0), missed]);
        for (index, busy) in [(0, 0.3), (1, 0.99)] {
            let record = run.finished_mut(index);
            for name in agents {
                let agent = AgentPoint { name: (*name).to_owned(), ..AgentPoint::default() };
                record.agents.push(agent);
                let means = [("cpu.0.busy", busy), ("cpu.1.busy", busy), ("host.runnable", 9.0)];
                let source = Some((*name).to_owned());
                let uses = watched(&means).into_iter();
                record
                    .resources
                    .extend(uses.map(|it| ResourceUse { source: source.clone(), ..it }));
            }
        }
        let target = TargetDisclosure { same_host: true, ..TargetDisclosure::default() };
        let mut raw = run.raw();
        raw.disclosure = Some(Disclosure { targets: vec![target], ..Disclosure::default() });
        let limit = analyse(&raw).points[1].limit.clone();
        assert_eq!(limit.facts, LimitFacts::NotWatched, "{agents:?}: {limit:?}");
    }
}

/// A killed nginx was "limited by its threads or processes" at a point of which 70 % had failed.
#[test]
fn no_limit_is_named_from_a_load_point_most_of_whose_ops_failed() {
    let limit = |failed_ratio: f64| {
        let mut run = RunBuilder::from_points([1_000.0, 3_000.0].map(PointBuilder::open));
        let totals = &mut run.finished_mut(1).totals;
        let failed = (totals.due as f64 * failed_ratio) as u64;
        totals.done_in_window -= failed;
        totals.errors.insert("transport".to_owned(), failed);
        totals.ops.get_mut("get").unwrap().errors = failed;
        for (index, unread) in [(0, 0.0), (1, 38.0)] {
            run.finished_mut(index).resources = watched(&[
                ("process.server.cores_allowed", 1.0),
                ("process.server.cores_busy", 0.1),
                ("process.server.cpu", 0.1),
                ("socket.server.receive_queue", unread),
            ]);
        }
        analyse(&run.raw()).points[1].limit.clone()
    };
    for failed_ratio in [0.7, 0.55, 1.0] {
        assert_eq!(limit(failed_ratio).facts, LimitFacts::ServerFailed, "{failed_ratio}");
    }
    assert_eq!(limit(0.3).kind, LimitKind::Pool, "most were done");
}

#[test]
fn a_limit_holds_from_a_load_above_which_nothing_contradicts_it() {
    let missed = |rate: f64| PointBuilder::open(rate).achieved((rate * 0.7) as u64);
    let sustained = PointBuilder::open;
    let mut run = RunBuilder::from_points([
        sustained(500.0),
        missed(1_000.0),
        sustained(2_000.0),
        missed(3_000.0),
    ]);
    for (index, busy) in [0.2, 0.99, 0.7, 0.99].into_iter().enumerate() {
        run.finished_mut(index).resources = watched(&[
            ("process.server.cores_allowed", 1.0),
            ("process.server.cores_busy", busy),
            ("process.server.cpu", busy),
            ("process.server.run_delay", 3.0 * (busy - 0.2)),
        ]);
    }
    let result = analyse(&run.raw());
    let text = result.summary.limit.unwrap();
    let begin = "server saturated at about 2,100 ops/s: from 3,000 ops/s requested on";
    assert!(text.starts_with(begin) && text.ends_with("from 3,000 ops/s on"), "{text}");
    let spans: Vec<f64> = result.summary.limits.iter().map(|span| span.from).collect();
    assert_eq!(spans, [3_000.0]);
}

fn lose_server(run: &mut RunBuilder, index: usize) {
    let sign = LostSign::Unreachable;
    let lost = ServerLost { target: "http://h/".to_owned(), sign };
    run.finished_mut(index).server_lost = Some(lost);
}

#[test]
fn a_load_whose_server_went_away_is_neither_held_nor_a_limit() {
    let mut run = RunBuilder::from_points([
        PointBuilder::open(1_000.0),
        PointBuilder::open(2_000.0),
        PointBuilder::open(3_000.0).achieved(900),
    ]);
    lose_server(&mut run, 2);
    let result = analyse(&run.raw());
    let point = &result.points[2];
    assert_eq!(
        (point.not_counted, point.limit.kind),
        (Some(NotCounted::ServerLost), LimitKind::Unknown)
    );
    assert!(result.summary.limit.unwrap().starts_with("not saturated"));
    assert_eq!(result.summary.value, Some(2_000.0));
}

#[test]
fn a_search_for_a_capacity_does_not_count_a_load_whose_server_went_away() {
    let mut run = RunBuilder::from_points([])
        .with_probe(PointBuilder::closed(16))
        .with_probe(PointBuilder::closed(8));
    run.suite = PointBuilder::closed(1).build().suite;
    let within = "p99<50ms".parse().unwrap();
    run.started_mut().capacity =
        Some(CapacityRequest { within, think: None, users_per_client: Some(1.0) });
    let tries = |run: &RunBuilder| analyse(&run.raw()).summary.capacity_search.unwrap().tries.len();
    assert_eq!(tries(&run), 2);
    lose_server(&mut run, 1);
    assert_eq!(tries(&run), 1);
}

/// One closed load with a full core: 112,610 and 19,448 ops/s of 32 clients were both "at least".
#[test]
fn a_single_closed_load_with_a_full_resource_is_a_peak() {
    use plimsoll_model::event::Bound;
    use plimsoll_model::limit::{Limit, LimitFacts};
    let bound = |clients: &[u32], facts: LimitFacts| {
        let run =
            RunBuilder::from_points(clients.iter().map(|clients| PointBuilder::closed(*clients)));
        let mut points = analyse(&run.raw()).points;
        if let Some(last) = points.last_mut() {
            last.limit = Limit { only_load: clients.len() == 1, ..Limit::new(facts, Vec::new()) };
        }
        super::bound_of(&run.suite, &points, &[], None)
    };
    let threads = LimitFacts::ServiceThreads { threads: 2.0, busy: 2.0, queued: 30.0 };
    let disk = LimitFacts::BusyDisk { disk: "sda".to_owned(), busy_ratio: 0.99, queued: 4.0 };
    assert_eq!(bound(&[32], threads.clone()), Bound::Exact);
    assert_eq!(bound(&[24, 32], disk), Bound::Exact, "nor was the load doubled");
    assert_eq!(bound(&[32], LimitFacts::NoneFull), Bound::AtLeast);
    assert_eq!(bound(&[32], LimitFacts::Generator), Bound::AtLeast);
    assert_eq!(bound(&[8, 32], threads), Bound::AtLeast, "throughput grew with the load");
}

#[test]
fn ops_that_wait_for_slots_of_a_server_that_is_not_slower_are_limited_by_the_slots() {
    // 100 ms an op from the slot on; without waits the clients would be the limit.
    let limited = |waited_ms: u64, low_ms: u64| {
        let of = |rate, ms: u64| PointBuilder::open(rate).response_ns(ms * 1_000_000);
        let (low, high) = (of(300.0, low_ms), of(1_000.0, 100).achieved(640));
        let mut slices = high.slices();
        for slice in &mut slices {
            let waits = TimeKind::SlotWait.of_mut(&mut slice.ops[0]);
            waits.record_n(waited_ms * 1_000_000, 1_000).unwrap();
        }
        let mut run = RunBuilder::from_points([low, high]);
        let finished = run.finished_mut(1);
        (finished.totals.compounds, finished.totals.opens) = (60_000, 3_000);
        let stem = finished.point.stem();
        run.histograms.insert(stem, PointTimes::from_seconds(slices));
        analyse(&run.raw())
    };
    let kind = |waited_ms, low_ms| limited(waited_ms, low_ms).points[1].limit.kind;
    let RunResult { points, summary, .. } = limited(300, 100);
    let calls = points[1].compound_calls.unwrap();
    assert_eq!((calls.compounds_per_s, calls.opens_per_s), (Some(2_000.0), Some(100.0)));
    assert_eq!((calls.slot_wait_ns.unwrap().n, calls.open_ns), (30_000, None));
    assert_eq!(points[0].compound_calls, None);
    let text = limit::text(&points[1].limit);
    assert!(text.starts_with("the sessions' slots: ops waited 300 ms of 400 ms"), "{text}");
    assert!(summary.limit.unwrap().starts_with("the sessions' slots"));
    assert_eq!(summary.bound, Bound::AtLeast, "more slots might bring more");
    assert_eq!(kind(20, 100), LimitKind::Clients, "a sixth of the time");
    assert_eq!(kind(300, 1), LimitKind::Unknown, "the server is slower than before");
}
