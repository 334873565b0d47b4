use plimsoll_model::event::{Bound, JournalRecord};
use plimsoll_model::method::Parameter;
use plimsoll_model::result::OverallResponse;
use plimsoll_model::suite::{Metric, Origin};

use crate::analyse;
use crate::testing::{PointBuilder, RunBuilder};

fn bound(points: impl IntoIterator<Item = PointBuilder>) -> Bound {
    analyse(&RunBuilder::from_points(points).raw()).summary.bound
}

#[test]
fn a_load_that_was_held_to_the_end_is_a_lower_bound_and_one_that_was_not_is_exact() {
    let sustained = [1_000.0, 2_000.0].map(PointBuilder::open);
    assert_eq!(bound(sustained.clone()), Bound::AtLeast);
    let missed = PointBuilder::open(3_000.0).achieved(2_100);
    assert_eq!(bound(sustained.clone().into_iter().chain([missed])), Bound::Exact);
    let generator = PointBuilder::open(3_000.0).worker_busy(0.95);
    assert_eq!(bound(sustained.into_iter().chain([generator])), Bound::AtLeast);
}

#[test]
fn closed_loads_are_exact_where_throughput_stopped_growing() {
    let closed =
        |rates: [(u32, u64); 3]| bound(rates.map(|(n, ops)| PointBuilder::closed(n).achieved(ops)));
    assert_eq!(closed([(8, 8_000), (16, 10_000), (32, 10_100)]), Bound::Exact);
    assert_eq!(closed([(8, 8_000), (16, 10_000), (32, 6_000)]), Bound::Exact);
    assert_eq!(closed([(8, 8_000), (16, 15_000), (32, 29_000)]), Bound::AtLeast);
    assert_eq!(bound([PointBuilder::closed(8)]), Bound::AtLeast, "nothing to compare with");
}

fn searched(bound: Bound, ended_by: Option<&str>) -> RunBuilder {
    let mut run = RunBuilder::open(&[500.0, 1_000.0]);
    run.journal.insert(
        1,
        JournalRecord::PeakFound {
            peak: 1_000.0,
            how: "so".to_owned(),
            bound,
            held_back: ended_by.map(str::to_owned),
        },
    );
    run
}

#[test]
fn a_searched_ladder_that_held_has_the_bound_of_the_search() {
    let run = searched(Bound::Exact, None).with_failed_probe(3_000.0);
    assert_eq!(analyse(&run.raw()).summary.bound, Bound::Exact);
    let text = "limited by room for files: 1 GiB is free";
    let summary = analyse(&searched(Bound::AtLeast, Some(text)).raw()).summary;
    assert_eq!((summary.bound, summary.limit.as_deref()), (Bound::AtLeast, Some(text)));
    assert_eq!(summary.peak_search.as_deref(), Some("so"));
}

#[test]
fn the_value_is_the_highest_valid_point_and_the_peak_counts_all() {
    let points = [
        PointBuilder::open(1_000.0),
        PointBuilder::open(2_000.0),
        PointBuilder::open(3_000.0).achieved(2_400),
    ];
    let summary = analyse(&RunBuilder::from_points(points).raw()).summary;
    assert_eq!(summary.metric, "highest sustained load");
    assert_eq!(summary.value, Some(2_000.0));
    assert_eq!(summary.peak_ops_per_s, Some(2_400.0));
    assert_eq!(summary.peak_bytes_per_s, Some(2_400_000.0));
}

#[test]
fn a_closed_suite_names_the_clients_of_its_peak() {
    let points = [(8, 8_000), (16, 10_000), (32, 9_000)];
    let points = points.map(|(n, ops)| PointBuilder::closed(n).achieved(ops));
    let summary = analyse(&RunBuilder::from_points(points).raw()).summary;
    assert_eq!(summary.metric, "peak throughput, at 16 clients");
    assert_eq!(summary.value, Some(10_000.0));
}

/// Mindcraft's curve of 1998 in thousands of bytes per second, each op a thousand bytes.
const MIDDLE_PEAK: [(u32, u64); 5] = [(1, 490), (8, 3_643), (28, 8_398), (44, 6_029), (60, 5_301)];

fn file_serving() -> RunBuilder {
    let points = MIDDLE_PEAK.map(|(n, ops)| PointBuilder::closed(n).achieved(ops));
    let mut run = RunBuilder::from_points(points);
    run.suite.metric = Metric::Bytes;
    run
}

#[test]
fn a_suite_of_bytes_is_summed_up_in_bytes() {
    let result = analyse(&file_serving().raw());
    assert_eq!(result.points[2].achieved_bytes_per_s, Some(8_398_000.0));
    let summary = result.summary;
    assert_eq!(summary.metric, "peak throughput, at 28 clients");
    assert_eq!((summary.value, summary.unit.as_str()), (Some(8_398_000.0), "bytes/s"));
    let limit = summary.limit.unwrap();
    let begin = "server saturated at about 8.01 MiB/s, reached at 28 clients: past that more \
                 clients brought less, 5.06 MiB/s at 60 clients";
    assert!(limit.starts_with(begin), "{limit}");
}

#[test]
fn the_peak_says_how_many_clients_took_part() {
    let mut run = file_serving();
    run.finished_mut(2).totals.clients_participating = 24;
    let result = analyse(&run.raw());
    assert!(result.points[2].valid, "{:?}", result.points[2].reasons);
    assert_eq!(
        result.summary.metric,
        "peak throughput, at 28 clients (24 of 28 clients took part)"
    );
}

#[test]
fn other_suites_say_nothing_of_the_metric() {
    let result = analyse(&RunBuilder::open(&[500.0]).raw());
    let json = serde_json::to_string(&result).unwrap();
    assert!(!json.contains("achieved_bytes_per_s") && !json.contains("think_s"), "{json}");
    assert!(!json.contains("\"metric\":\"ops\""), "{json}");
}

#[test]
fn logons_are_ops_by_another_name() {
    let mut run = RunBuilder::open(&[500.0]);
    run.suite.metric = Metric::Logons;
    let result = analyse(&run.raw());
    assert_eq!((result.summary.value, result.axis.unit.as_str()), (Some(500.0), "logons/s"));
    assert_eq!(result.summary.unit, "logons/s");
}

#[test]
fn a_ladder_of_think_times_names_the_best_and_of_equals_the_shortest() {
    let result = analyse(&RunBuilder::thinking(&[(90, 280), (25, 500), (20, 500)]).raw());
    assert_eq!(result.axis.name, "think time");
    assert_eq!((result.axis.unit.as_str(), result.points[1].requested), ("s", 25.0));
    assert_eq!(result.summary.metric, "highest throughput, at 20 s think time");
    assert_eq!(result.points[1].think_s, Some(0.0), "what the profile left of it");
    assert!(result.verdict.valid, "{:?}", result.verdict);
}

#[test]
fn a_single_load_point_has_no_overall_response() {
    let summary = analyse(&RunBuilder::open(&[500.0]).raw()).summary;
    assert_eq!(summary.overall_response_ms, OverallResponse::default());
}

#[test]
fn overall_response_rests_on_service_time_and_achieved_throughput() {
    let points = [1_000.0, 1_500.0, 2_000.0].map(PointBuilder::open);
    let summary = analyse(&RunBuilder::from_points(points).raw()).summary;
    let span = summary.overall_response_ms.span.unwrap();
    assert!((span / 0.99 - 1.0).abs() < 0.001, "{span}");
}

/// Ten points of 100 to 1,000 ops/s, the last of which reached `last`.
fn ladder(last: u64, origin: Origin) -> RunBuilder {
    let rates = (1..=10).map(|n| f64::from(n) * 100.0);
    let point = |rate: f64| {
        let achieved = if rate == 1_000.0 { last } else { rate as u64 };
        PointBuilder::open(rate).achieved(achieved)
    };
    let mut run = RunBuilder::from_points(rates.map(point));
    run.started_mut().method = vec![Parameter {
        key: super::RATE_TOLERANCE.to_owned(),
        name: "requested load held within, as a share".to_owned(),
        value: "0.05".to_owned(),
        method: origin.is_the_methods().then(|| "0.05".to_owned()),
        origin,
        said: String::new(),
        departure: None,
    }];
    run
}

#[test]
fn nine_of_ten_points_held_is_a_deviation_where_the_source_wants_all() {
    let result = analyse(&ladder(900, Origin::Source).raw());
    assert!(result.verdict.valid, "{:?}", result.verdict);
    let text = "requested load held within, as a share: 0.05 at 9 of 10 load points, not at \
                10; the method has 0.05 at every load point";
    assert_eq!(result.departures, [text]);
    let row = &result.method[0];
    assert_eq!(row.value, "0.05 at 9 of 10 load points, not at 10");
    assert_eq!(row.method.as_deref(), Some("0.05 at every load point"));
}

#[test]
fn a_ladder_that_was_held_and_a_limit_of_ours_are_no_deviation() {
    for (last, origin) in [(1_000, Origin::Source), (955, Origin::Source), (900, Origin::Ours)] {
        let result = analyse(&ladder(last, origin).raw());
        assert!(result.departures.is_empty(), "{last} {origin:?}: {:?}", result.departures);
    }
}
