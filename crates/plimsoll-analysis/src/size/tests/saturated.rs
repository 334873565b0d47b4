//! Whole ladders, with a load that saturates the server.

use plimsoll_model::limit::{Limit, LimitFacts};
use plimsoll_model::result::PointResult;

use super::*;

/// nginx of docs/sizing.md: an op costs twice as much at low loads as at the peak.
fn nginx(cores: f64, peak: f64) -> Vec<Measured> {
    let asleep = Law::plain(cores, 2e6 * cores / peak);
    let mut points = [0.1, 0.2, 0.3, 0.4].map(|share| asleep.point(share * peak / 2.0)).to_vec();
    points.push(overload(cores, peak, 0.97));
    points
}

/// Throughput varies by 3 %; an op took longer than the law of a queue can explain.
fn overload(cores: f64, ops_per_s: f64, busy_ratio: f64) -> Measured {
    let cpu_ns = busy_ratio * cores * 1e9 / ops_per_s;
    let mean = Some(2e9);
    Measured {
        ops_per_s,
        cores: Some(cores),
        cpu_ns: Some(Cost { value: cpu_ns, interval: None }),
        response: TimeSummary { mean, ..TimeSummary::default() },
        response_low_ns: 2e9,
        saturated: true,
        ops_error_ratio: 0.03,
        ..Measured::default()
    }
}

#[test]
fn twice_the_quota_carries_twice_what_saturated_the_server() {
    let points = nginx(0.3, 27_000.0);
    let sizing = size_of(&points, request_for(15_000.0, None));
    let [peak, twice] = &sizing.peaks[..] else { panic!("{:?}", sizing.peaks) };
    assert_eq!((peak.bound, twice.bound), (PeakBound::Exact, PeakBound::Exact));
    assert!(near(peak.ops_per_s.value, 27_000.0, 1e-9), "{peak:?}");
    assert!(near(twice.ops_per_s.value, 54_000.0, 1e-9), "{twice:?}");
    // 15 % of the quota and 3 % of the throughput are independent.
    let half_width = 0.15_f64.hypot(0.03);
    assert!(near(twice.ops_per_s.high.unwrap(), 54_000.0 * (1.0 + half_width), 0.01), "{twice:?}");
    assert!(near(twice.ops_per_s.low, 54_000.0 / (1.0 + half_width), 0.01), "{twice:?}");
    assert!(peak.ops_per_s.low > 0.89 * 27_000.0, "{peak:?}");
    let doubt = |it: &Unknown| is_doubt(it) || matches!(it, Unknown::Asleep { .. });
    assert!(!sizing.unknown.iter().any(doubt), "{:?}", sizing.unknown);
    assert!(sizing.response[0].ns.value < 1e7, "the queue of an overload is no response time");
}

#[test]
fn without_its_saturated_load_the_same_ladder_shows_no_peak() {
    let points = nginx(0.3, 27_000.0);
    let sizing = size_of(&points[..4], request_for(5_000.0, None));
    for (peak, truth) in sizing.peaks.iter().zip([27_000.0, 54_000.0]) {
        assert_eq!((peak.bound, peak.ops_per_s.high), (PeakBound::AtLeast, None));
        assert!(peak.ops_per_s.low < truth, "{peak:?}");
    }
    assert!(sizing.unknown.iter().any(|it| matches!(it, Unknown::Asleep { .. })));
}

/// nginx at 0.3 of a core next to other programs: 10,057 ops/s used all of the quota, and the
/// overloaded server did 25,147.
#[test]
fn a_server_that_sleeps_between_ops_may_use_up_its_quota() {
    let law = Law::plain(0.3, 30.0);
    let throttled_cores = 0.1;
    let points = [0.25, 0.5, 0.75, 0.99].map(|share| law.point(share * law.peak()));
    let points = points.map(|point| Measured { throttled_cores, ..point });
    let sizing = size_of(&points, request_for(5_000.0, None));
    assert!(sizing.peaks.iter().all(|peak| peak.bound == PeakBound::AtLeast), "{sizing:?}");
}

#[test]
fn two_saturated_sizes_tell_what_a_further_processor_costs() {
    let points = [nginx(1.0, 50_000.0), nginx(2.0, 90_000.0)].concat();
    let sizing = size_of(&points, request_for(30_000.0, None));
    let four = sizing.peaks.last().unwrap();
    // 20 µs, and 2.22 µs for each further processor.
    assert!(near(four.ops_per_s.value, 4e6 / (20.0 + 3.0 * 2.222), 0.001), "{four:?}");
    assert_eq!(four.bound, PeakBound::Exact);
}

#[test]
fn a_saturated_server_with_idle_processors_is_limited_by_something_else() {
    // A lock of 500 µs: 1,300 ops/s use half of the core.
    let mut points = Law::plain(1.0, 385.0).low_points();
    points.push(overload(1.0, 1_300.0, 0.5));
    let limited = |points: &[Measured]| {
        let sizing = size_of(points, request_for(1_000.0, None));
        let limit = LimitKind::Unknown;
        let expected = Unknown::HeldBack { limit, at_ops_per_s: 1_300.0 };
        let is_open = sizing.peaks.iter().all(|peak| peak.bound == PeakBound::Open);
        let is_limited = sizing.unknown.contains(&expected);
        assert_eq!(is_limited, is_open, "{sizing:?}");
        assert!(
            !is_limited || !sizing.unknown.iter().any(|it| matches!(it, Unknown::Asleep { .. }))
        );
        is_limited
    };
    assert!(limited(&points));
    points[4] = overload(1.0, 2_500.0, 0.85);
    assert!(!limited(&points), "the processors were full");
    // One client and one more: whether four would bring more is open.
    let closed = |ops_per_s, busy| Measured { closed: true, ..overload(1.0, ops_per_s, busy) };
    points[4] = closed(1_300.0, 0.5);
    assert!(!limited(&points));
    points.push(closed(1_320.0, 0.51));
    assert!(limited(&points));
    points.push(closed(2_400.0, 0.9));
    assert!(!limited(&points));
}

#[test]
fn a_load_point_is_saturated_where_processors_or_nothing_were_named() {
    let quota = LimitFacts::Quota { used_cores: 0.3, quota_cores: 0.3, throttled_cores: 0.7 };
    let saturated = |facts: LimitFacts, only_load: bool| {
        let limit = Limit { only_load, ..Limit::new(facts, Vec::new()) };
        let response_ns = Some(TimeSummary::default());
        let achieved_ops_per_s = Some(100.0);
        let point = PointResult {
            valid: true,
            achieved_ops_per_s,
            response_ns,
            limit,
            ..Default::default()
        };
        let run = plimsoll_model::result::RunResult { points: vec![point], ..Default::default() };
        Measured::of_run(&run)[0].saturated
    };
    assert!(saturated(quota.clone(), false) && !saturated(quota, true));
    assert!(saturated(LimitFacts::NothingFull { nearest: None }, false));
    for facts in [LimitFacts::Unsaid, LimitFacts::NoneFull, LimitFacts::Followed] {
        assert!(!saturated(facts, false));
    }
}
