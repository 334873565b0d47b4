//! What a suite counts.

use plimsoll_model::result::PointResult;
use plimsoll_model::suite::Metric;

/// What the suite's headline counts, of one point.
pub(crate) fn throughput(metric: Metric, point: &PointResult) -> Option<f64> {
    match metric {
        Metric::Ops | Metric::Logons => point.achieved_ops_per_s,
        Metric::Bytes => bytes_per_s(point),
    }
}

/// Application bytes moved per second, both ways.
pub(crate) fn bytes_per_s(point: &PointResult) -> Option<f64> {
    let bytes = point.bytes_read? + point.bytes_written?;
    point.seconds.filter(|seconds| *seconds > 0.0).map(|seconds| bytes as f64 / seconds)
}

/// What an op is called, per second.
pub(crate) const fn ops_unit(metric: Metric) -> &'static str {
    match metric {
        Metric::Ops | Metric::Bytes => Metric::Ops.unit(),
        Metric::Logons => Metric::Logons.unit(),
    }
}
