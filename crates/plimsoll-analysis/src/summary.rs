//! The headline figures of a run.

use plimsoll_model::result::{PointResult, Summary};
use plimsoll_model::suite::{LoadSpec, Suite};
use plimsoll_model::units::grouped;

use crate::limit::limit_text;
use crate::overall::{CurvePoint, overall_response};
use crate::raw::RunView;

/// The headline from the ladder's points; the search only tells what limited them.
pub(crate) fn summarise_run(
    suite: &Suite,
    view: &RunView<'_>,
    points: &[PointResult],
    probes: &[PointResult],
) -> Summary {
    let best = best_counted(points);
    let capped = suite.rules.response_cap_ms.is_some();
    let metric = match (&suite.load, best) {
        (LoadSpec::Open { .. }, _) if capped => "peak throughput".to_owned(),
        (LoadSpec::Open { .. }, _) => "highest sustained load".to_owned(),
        (LoadSpec::Closed { .. }, None) => "peak throughput".to_owned(),
        (LoadSpec::Closed { .. }, Some(best)) => {
            format!("peak throughput, at {} clients", grouped(best.requested))
        }
    };
    Summary {
        metric,
        value: best.and_then(|point| point.achieved_ops_per_s),
        unit: "ops/s".to_owned(),
        peak_ops_per_s: points.iter().filter_map(|p| p.achieved_ops_per_s).reduce(f64::max),
        peak_bytes_per_s: points.iter().filter_map(bytes_per_s).reduce(f64::max),
        overall_response_ms: overall_response(&curve(points)),
        score: None,
        limit: limit_text(suite, points, probes),
        peak_search: view.peak.map(|(_, how)| how.to_owned()),
    }
}

/// The counted point that achieved most; the first of equals.
fn best_counted(points: &[PointResult]) -> Option<&PointResult> {
    points.iter().filter(|point| point.counts()).fold(None, |best: Option<&PointResult>, point| {
        match best {
            Some(best) if point.achieved_ops_per_s <= best.achieved_ops_per_s => Some(best),
            _ => Some(point),
        }
    })
}

fn bytes_per_s(point: &PointResult) -> Option<f64> {
    let bytes = point.bytes_read? + point.bytes_written?;
    point.seconds.filter(|seconds| *seconds > 0.0).map(|seconds| bytes as f64 / seconds)
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
    use crate::analyse;
    use crate::testing::{PointBuilder, RunBuilder};

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

    #[test]
    fn overall_response_rests_on_service_time_and_achieved_throughput() {
        let points = [1_000.0, 2_000.0].map(PointBuilder::open);
        let summary = analyse(&RunBuilder::of(points).raw()).summary;
        let span = summary.overall_response_ms.span.unwrap();
        assert!((span / 0.99 - 1.0).abs() < 0.001, "{span}");
    }
}
