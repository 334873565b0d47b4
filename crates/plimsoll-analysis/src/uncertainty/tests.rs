use super::*;
use crate::analyse;
use crate::health::generator_part_of_p50;
use crate::standard_error::StandardError;
use crate::testing::{PointBuilder, RunBuilder};
use crate::validity::load_was_sustained;
use plimsoll_model::assignment::Load;
use plimsoll_model::bundle::IntervalSlice;
use plimsoll_model::event::Phase;
use plimsoll_model::units::Nanos;

fn point_intervals(point: &PointBuilder) -> PointIntervals {
    let times = point.point_times();
    let built = point.build();
    state(&built.suite, &built.record, &times.window_total(), &times)
}

#[test]
fn the_generators_part_lies_below_a_response_time_and_above_a_closed_throughput() {
    // 1 ms of response, of which 0.2 ms lay unread.
    let parts = point_intervals(&PointBuilder::closed(4).receive_lag_ns(200_000));
    let [low, high] = parts.response.unwrap().p50.unwrap();
    assert!((low / 790_000.0 - 1.0).abs() < 0.01, "{low}");
    assert!((high / 1_000_000.0 - 1.0).abs() < 0.002, "{high}");
    // Its own lateness of 10 µs is taken out too: 1 / 0.79.
    let [least, most] = parts.achieved.unwrap();
    assert!((least - 4_000.0).abs() < 1.0, "{least}");
    assert!((most / 4_000.0 - 1.0 / 0.79).abs() < 0.002, "{most}");
    let budget = parts.uncertainty["response_p50_ns"];
    assert!((budget.generator / 210_000.0 - 1.0).abs() < 0.02, "{budget:?}");
}

/// Half of their time the clients think: 8 with 4,000 ops/s of 1 ms, 0.21 of it the generator's.
#[test]
fn where_clients_think_delays_keep_more_of_them_at_work() {
    let point = PointBuilder::closed(4).receive_lag_ns(200_000);
    let times = point.point_times();
    let mut built = point.build();
    let Load::Closed { clients, .. } = &mut built.record.load else { panic!("a closed load") };
    *clients = 8;
    let intervals = state(&built.suite, &built.record, &times.window_total(), &times);
    // 0.79 of 1.79 ms at work, and not one half.
    let factor = 0.79 / 1.79 / 0.5;
    let [low, _] = intervals.response.unwrap().p50.unwrap();
    assert!((low / (790_000.0 * factor) - 1.0).abs() < 0.01, "{low}");
    let [_, most] = intervals.achieved.unwrap();
    assert!((most / (4_000.0 * 2.0 / (1.0 + 0.79 * factor)) - 1.0).abs() < 0.01, "{most}");
}

/// A closed load whose seconds differ, two and two: 900 ops of 51 to 150 µs, 1,100 of 56 to 155.
fn uneven() -> (PointIntervals, PointTimes) {
    let mut built = PointBuilder::closed(4).build();
    let times = PointTimes::from_seconds((0..12).map(|second| {
        let mut ops = OpTimes::new();
        let (count, least) = if second % 4 < 2 { (900, 51_000) } else { (1_100, 56_000) };
        for nth in 0..count {
            let ns = least + nth % 100 * 1_000;
            let all = [&mut ops.response, &mut ops.service];
            all.into_iter().for_each(|times| times.record(ns).unwrap());
            let lows = [&mut ops.response_low, &mut ops.service_low];
            lows.into_iter().for_each(|times| times.record(ns - 10_000).unwrap());
        }
        let start = Nanos::from_secs(1 + u64::from(second));
        IntervalSlice {
            length: Nanos::from_secs(1),
            second,
            start,
            phase: Phase::Measure,
            ops: vec![ops],
        }
    }));
    (built.record.warm_up_ns, built.record.measured_ns) =
        (Nanos::from_secs(1), Nanos::from_secs(12));
    // Twice the number of response times. Without the cycles of clients, as where some left.
    built.record.totals.done_in_window = 24_000;
    built.record.totals.pieces = 0;
    (state(&built.suite, &built.record, &times.window_total(), &times), times)
}

#[test]
fn a_throughput_that_varies_is_known_no_better_than_by_its_seconds() {
    let (intervals, _) = uneven();
    let parts = intervals.uncertainty["achieved_ops_per_s"];
    let seconds: Vec<(f64, f64)> =
        (0..12).map(|second| (if second % 4 < 2 { 900.0 } else { 1_100.0 }, 1.0)).collect();
    // The record has twice the ops of its slices.
    let chance = 2.0 * StandardError::of_ratio(&seconds, f64::INFINITY).unwrap().half_width();
    assert!(chance > 0.0 && (parts.sample_below / chance - 1.0).abs() < 1e-9, "{parts:?}");
    let [least, most] = intervals.achieved.unwrap();
    assert!((least - (2_000.0 - chance)).abs() < 0.1, "{least}");
    assert!((most - (2_000.0 + chance)).abs() < 0.1, "{most}");
}

/// By Imbens and Manski, whose interval is narrower than the sum of the parts.
#[test]
fn the_generators_part_and_the_samples_join() {
    let (intervals, _) = uneven();
    let parts = intervals.uncertainty["response_mean_ns"];
    let [low, high] = intervals.response.unwrap().mean.unwrap();
    let Uncertainty { value, generator, sample_below, sample_above, resolution } = parts;
    assert!((generator - 10_000.0).abs() < 10.0 && sample_below > 0.0, "{parts:?}");
    let lowest = value - generator - sample_below - resolution;
    let highest = value + sample_above + resolution;
    assert!(lowest < low && low < value - generator, "{low} {lowest} {parts:?}");
    assert!(value < high && high < highest, "{high} {highest} {parts:?}");
    // One-sided at the least: with four degrees of freedom 2.132 of 2.776.
    let below = value - generator - resolution - low;
    assert!(below > 0.76 * sample_below * (value - generator) / value, "{low} {parts:?}");
}

/// A millisecond of which half is the generator's is no better known after a longer window.
#[test]
fn a_longer_window_is_advised_only_where_it_would_help() {
    let windows_of_p50 = |receive_lag_ns| {
        let intervals = point_intervals(&PointBuilder::closed(4).receive_lag_ns(receive_lag_ns));
        let p50 = intervals.find(&GateFigure::Response(Figure::P50)).unwrap();
        p50.windows_needed(WIDE_RATIO)
    };
    assert_eq!(windows_of_p50(450_000), None);
    assert_eq!(windows_of_p50(100_000), Some(1.0));
}

#[test]
fn an_open_load_that_was_held_has_an_exact_throughput() {
    assert_eq!(point_intervals(&PointBuilder::open(1_000.0)).achieved, Some([1_000.0, 1_000.0]));
}

#[test]
fn an_open_load_of_which_some_ops_were_not_sent_has_none() {
    let point = PointBuilder::open(1_000.0);
    let mut built = point.build();
    assert!(load_was_sustained(&built.suite, &built.record));
    // Within the suite's limit.
    built.record.totals.not_sent = 1;
    assert!(!load_was_sustained(&built.suite, &built.record));
}

#[test]
fn the_interval_of_a_percentile_lies_nowhere_below_that_of_a_lower_one() {
    let wide = [Some([5.0, 8.0]), None, Some([6.0, 90.0]), Some([1.0, 70.0])];
    let ordered = [Some([5.0, 8.0]), None, Some([6.0, 70.0]), Some([6.0, 70.0])];
    assert_eq!(in_order(wide), ordered);
}

#[test]
fn the_headline_and_the_overall_response_have_intervals_too() {
    let points = [1_000.0, 2_000.0, 3_000.0].map(PointBuilder::open);
    let summary = analyse(&RunBuilder::from_points(points).raw()).summary;
    assert_eq!(summary.value_interval, Some([3_000.0, 3_000.0]));
    let [low, high] = summary.overall_response_interval_ms.unwrap();
    let measured = summary.overall_response_ms;
    assert!(low.span < measured.span && measured.span < high.span, "{low:?} {high:?}");
    assert!(low.origin < measured.origin && measured.origin < high.origin);
}

#[test]
fn the_interval_of_the_headline_is_that_of_the_point_it_speaks_of() {
    let points = [(8, 300_000), (16, 0), (4, 100_000)]
        .map(|(clients, lag_ns)| PointBuilder::closed(clients).receive_lag_ns(lag_ns));
    let result = analyse(&RunBuilder::from_points(points).raw());
    let best = &result.points[1];
    assert_eq!(result.summary.value, best.achieved_ops_per_s);
    let interval = best.achieved_interval_ops_per_s.unwrap();
    let reported = result.summary.value_interval.unwrap();
    assert!(reported.iter().zip(interval).all(|(a, b)| (a / b - 1.0).abs() < 1e-9), "{reported:?}");
}

#[test]
fn an_overall_response_whose_ends_change_places_has_no_interval() {
    // Throughput falls after the first point, so that its time is taken off the span.
    let of = |first_ms: [f64; 2]| {
        let points = [(3_000.0, first_ms), (1_000.0, [1.0; 2]), (4_000.0, [1.0; 2])];
        let points = points.map(|(achieved, mean_ms)| PointResult {
            achieved_ops_per_s: Some(achieved),
            service_interval_ns: Some(TimeIntervals {
                mean: Some(mean_ms.map(|ms| ms * 1e6)),
                ..TimeIntervals::default()
            }),
            ..PointResult::default()
        });
        // By hand, of 1 ms at each point.
        let measured = OverallResponse { origin: Some(0.625), span: Some(1.0) };
        let summary = Summary { overall_response_ms: measured, ..Summary::default() };
        overall_interval(&summary, points.iter())
    };
    let [low, high] = of([1.0, 1.0]).unwrap();
    assert_eq!((low.origin, high.span), (Some(0.625), Some(1.0)));
    // Half a millisecond at the first point makes it 1.5.
    assert_eq!(of([0.5, 1.0]), None);
}

#[test]
fn without_arrivals_nothing_is_stated() {
    let mut times = PointBuilder::open(1_000.0).build().times.unwrap();
    times.response_low.reset();
    assert_eq!(generator_part_of_p50(&times), None);
}

#[test]
fn a_percentile_above_the_age_of_an_op_without_a_reply_has_no_interval() {
    let built = PointBuilder::open(1_000.0).build();
    let times = PointBuilder::open(1_000.0).point_times();
    let response_intervals = |age_ns: u64| {
        let mut record = built.record.clone();
        record.totals.unfinished = 1;
        record.totals.response_age_min = Some(Nanos(age_ns));
        state(&built.suite, &record, &times.window_total(), &times).response.unwrap()
    };
    // Every op took a millisecond.
    let intervals = response_intervals(2_000_000);
    assert!(
        intervals.p50.is_some() && intervals.p99.is_some() && intervals.mean.is_none(),
        "{intervals:?}"
    );
    assert_eq!(response_intervals(900_000), TimeIntervals::default());
}
