//! The headline figures of a run.

use plimsoll_model::result::{PointResult, Summary};
use plimsoll_model::suite::{Ladder, LoadSpec, Suite};

use crate::limit::{bound_of, limit_spans, limit_text, place_text};
use crate::metric::{bytes_per_s, throughput};
use crate::overall::{CurvePoint, overall_response};
use crate::raw::RunView;
use crate::score::score_of_run;
use crate::shape::shape_of_run;
use crate::validity::planned_points;

/// The headline from the ladder's points; the search only tells what limited them.
pub(crate) fn summarise_run(
    suite: &Suite,
    view: &RunView,
    points: &[PointResult],
    probes: &[PointResult],
) -> Summary {
    let best = best_counted(suite, points);
    let (score, score_note) = score_of_run(suite, planned_points(suite, view), points);
    let capped = suite.rules.response_cap_ms.is_some();
    let metric = match (&suite.load, best) {
        (LoadSpec::Open { .. }, _) if capped => "peak throughput".to_owned(),
        (LoadSpec::Open { .. }, _) => "highest sustained load".to_owned(),
        (LoadSpec::Closed { .. }, None) => "peak throughput".to_owned(),
        (LoadSpec::Closed { .. }, Some(best)) => {
            format!("peak throughput, at {}{}", place_text(suite, best), took_part(best))
        }
    };
    let peak = view.peak.as_ref();
    let held_back = peak.and_then(|peak| peak.held_back.as_deref());
    Summary {
        metric,
        value: best.and_then(|point| throughput(suite.metric, point)),
        bound: bound_of(suite, points, probes, peak.map(|peak| peak.bound)),
        unit: suite.metric.unit().to_owned(),
        peak_ops_per_s: points.iter().filter_map(|p| p.achieved_ops_per_s).reduce(f64::max),
        peak_bytes_per_s: points.iter().filter_map(bytes_per_s).reduce(f64::max),
        overall_response_ms: overall_response(&curve(points)),
        score,
        score_note,
        limit: limit_text(suite, points, probes, held_back),
        limits: limit_spans(suite, points, probes),
        peak_search: peak.map(|peak| peak.how.clone()),
        curve: shape_of_run(suite, points),
        ..Summary::default()
    }
}

/// The counted point that achieved most. Of equals the first, or the shortest think time.
fn best_counted<'p>(suite: &Suite, points: &'p [PointResult]) -> Option<&'p PointResult> {
    let thinks = matches!(suite.ladder, Ladder::Think { .. });
    let better = |best: &PointResult, point: &PointResult| {
        let [best_rate, rate] = [best, point].map(|point| throughput(suite.metric, point));
        rate > best_rate || (rate == best_rate && thinks && point.requested < best.requested)
    };
    points.iter().filter(|point| point.counts()).fold(None, |best: Option<&PointResult>, point| {
        match best {
            Some(best) if !better(best, point) => Some(best),
            _ => Some(point),
        }
    })
}

/// Nothing when all did.
fn took_part(point: &PointResult) -> String {
    match (point.clients_requested, point.clients_participating) {
        (Some(asked), Some(stayed)) if stayed < asked => {
            format!(" ({stayed} of {asked} clients took part)")
        }
        _ => String::new(),
    }
}

/// Mean service time over achieved throughput of the counted points, in the ladder's order.
fn curve(points: &[PointResult]) -> Vec<CurvePoint> {
    points
        .iter()
        .filter(|point| point.counts())
        .filter_map(|point| {
            Some(CurvePoint {
                achieved_ops_per_s: point.achieved_ops_per_s?,
                response_ms: point.service_ns?.mean? / 1e6,
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use plimsoll_model::event::{Bound, JournalRecord};
    use plimsoll_model::result::OverallResponse;
    use plimsoll_model::suite::Metric;

    use crate::analyse;
    use crate::testing::{PointBuilder, RunBuilder};

    fn bound(points: impl IntoIterator<Item = PointBuilder>) -> Bound {
        analyse(&RunBuilder::of(points).raw()).summary.bound
    }

    #[test]
    fn a_load_that_was_held_to_the_end_is_a_lower_bound_and_one_that_was_not_is_exact() {
        let held = [1_000.0, 2_000.0].map(PointBuilder::open);
        assert_eq!(bound(held.clone()), Bound::AtLeast);
        let missed = PointBuilder::open(3_000.0).achieved(2_100);
        assert_eq!(bound(held.clone().into_iter().chain([missed])), Bound::Exact);
        let generator = PointBuilder::open(3_000.0).worker_busy(0.95);
        assert_eq!(bound(held.into_iter().chain([generator])), Bound::AtLeast);
    }

    #[test]
    fn closed_loads_are_exact_where_throughput_stopped_growing() {
        let closed = |rates: [(u32, u64); 3]| {
            bound(rates.map(|(n, ops)| PointBuilder::closed(n).achieved(ops)))
        };
        assert_eq!(closed([(8, 8_000), (16, 10_000), (32, 10_100)]), Bound::Exact);
        assert_eq!(closed([(8, 8_000), (16, 10_000), (32, 6_000)]), Bound::Exact);
        assert_eq!(closed([(8, 8_000), (16, 15_000), (32, 29_000)]), Bound::AtLeast);
        assert_eq!(bound([PointBuilder::closed(8)]), Bound::AtLeast, "nothing to compare with");
    }

    fn searched(bound: Bound, held_back: Option<&str>) -> RunBuilder {
        let mut run = RunBuilder::open(&[500.0, 1_000.0]);
        run.journal.insert(
            1,
            JournalRecord::PeakFound {
                peak: 1_000.0,
                how: "so".to_owned(),
                bound,
                held_back: held_back.map(str::to_owned),
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
        let summary = analyse(&RunBuilder::of(points).raw()).summary;
        assert_eq!(summary.metric, "highest sustained load");
        assert_eq!(summary.value, Some(2_000.0));
        assert_eq!(summary.peak_ops_per_s, Some(2_400.0));
        assert_eq!(summary.peak_bytes_per_s, Some(2_400_000.0));
    }

    #[test]
    fn a_closed_suite_names_the_clients_of_its_peak() {
        let points = [(8, 8_000), (16, 10_000), (32, 9_000)];
        let points = points.map(|(n, ops)| PointBuilder::closed(n).achieved(ops));
        let summary = analyse(&RunBuilder::of(points).raw()).summary;
        assert_eq!(summary.metric, "peak throughput, at 16 clients");
        assert_eq!(summary.value, Some(10_000.0));
    }

    /// Mindcraft's curve of 1998 in thousands of bytes per second, each op a thousand bytes.
    const MIDDLE_PEAK: [(u32, u64); 5] =
        [(1, 490), (8, 3_643), (28, 8_398), (44, 6_029), (60, 5_301)];

    fn file_serving() -> RunBuilder {
        let points = MIDDLE_PEAK.map(|(n, ops)| PointBuilder::closed(n).achieved(ops));
        let mut run = RunBuilder::of(points);
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
        assert_eq!(result.summary.metric, "peak throughput, at 20 s think time");
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
        let summary = analyse(&RunBuilder::of(points).raw()).summary;
        let span = summary.overall_response_ms.span.unwrap();
        assert!((span / 0.99 - 1.0).abs() < 0.001, "{span}");
    }
}
