use plimsoll_model::limit::LimitKind;

use crate::analyse;
use crate::testing::{PointBuilder, RunBuilder};

fn limit(points: impl IntoIterator<Item = PointBuilder>) -> String {
    analyse(&RunBuilder::of(points).raw()).summary.limit.unwrap()
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
    // 64 clients and 100 ms an op: 640 ops/s, whatever the server could do.
    let slow = |rate| PointBuilder::open(rate).response_ns(100_000_000);
    check([slow(300.0), slow(1_000.0).achieved(640)], "the clients: all 64 were busy");
    let slower = PointBuilder::open(1_000.0).response_ns(100_000_000).achieved(640);
    check([PointBuilder::open(300.0), slower], "server saturated at about 640");
}

#[test]
fn a_single_load_is_held_against_its_own_first_ops() {
    let single = |first_ms: u64| {
        let slow = PointBuilder::open(1_000.0).response_ns(100_000_000).achieved(640);
        let mut run = RunBuilder::of([slow]);
        let totals = &mut run.finished_mut(0).totals;
        (totals.first_ops, totals.first_service_ns_total) = (16, 16 * first_ms * 1_000_000);
        analyse(&run.raw()).points[0].limit.clone()
    };
    let clients = single(95);
    assert_eq!(clients.kind, LimitKind::Clients);
    assert_eq!((clients.evidence[0].value, clients.evidence[1].low_load_value), (64.0, Some(95e6)));
    assert!(
        clients.to_string().contains("64 clients of 100 ms an op carry no more than 640 ops/s")
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
    let run = RunBuilder::of([PointBuilder::open(500.0), PointBuilder::open(1_000.0)])
        .with_probe(PointBuilder::open(1_100.0).achieved(900));
    let text = analyse(&run.raw()).summary.limit.unwrap();
    assert!(text.starts_with("server saturated at about 1,000 ops/s: in the search"), "{text}");
    assert!(text.contains("were not held and brought 900 ops/s while"), "{text}");
}

#[test]
fn a_search_among_saturated_loads_does_not_take_them_for_low_load() {
    // Low load: 0.1 ms an op. At 600 and 640 ops/s all 64 clients wait 100 ms each.
    let slow = |rate| PointBuilder::open(rate).response_ns(100_000_000);
    let run = RunBuilder::of([PointBuilder::open(300.0).response_ns(100_000)])
        .with_probe(slow(600.0))
        .with_probe(slow(1_000.0).achieved(640));
    let text = analyse(&run.raw()).summary.limit.unwrap();
    assert!(text.starts_with("server saturated at about 640"), "{text}");
}

#[test]
fn a_load_held_above_the_response_cap_names_the_cap() {
    let slow = PointBuilder::open(1_000.0).response_ns(50_000_000);
    let mut run = RunBuilder::of([PointBuilder::open(500.0), slow]);
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
    let mut run = RunBuilder::of(points);
    let text = |run: &RunBuilder| analyse(&run.raw()).points[1].limit.to_string();
    assert!(!text(&run).contains("within a second"), "{}", text(&run));
    let record = run.finished_mut(1);
    let ticks = (0..60).map(|tick| if tick / 2 % 2 == 0 { 100 } else { 20 });
    record.totals.done_by_tick = ticks.collect();
    let told = text(&run);
    assert!(told.contains("between 400 ops/s, in the slowest quarter"), "{told}");
    assert!(told.contains("and 2,000, in the fastest"), "{told}");
}
