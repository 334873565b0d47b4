//! Throughput and response time over load: of a group of runs, or of a published system.

use serde::{Deserialize, Serialize};

/// A curve over load.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Curve {
    /// Label of the group, or name of the published system.
    pub label: String,
    /// Where a published curve is from; absent of a group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub published: Option<PublishedSource>,
    /// By load.
    pub points: Vec<CurvePoint>,
}

/// Where a published curve is from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublishedSource {
    /// As typed after `published:`.
    pub name: String,
    /// Of the tests.
    pub year: u32,
    /// Who published it, and when.
    pub source: String,
}

/// A load point of a curve. A figure that no run has, or that the source does not print, is absent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CurvePoint {
    /// On the axis of the comparison.
    pub load: f64,
    /// In bytes per second where the headline counts bytes, else in ops per second.
    pub throughput: Option<CurveFigure>,
    /// Mean response time.
    pub response_mean_ns: Option<CurveFigure>,
    /// 99th percentile of the response time.
    pub response_p99_ns: Option<CurveFigure>,
    /// The point was left out of the result of some run: the server did not hold the load, sent
    /// errors or was beyond the suite's cap.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub not_counted: bool,
}

/// A figure at a load.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CurveFigure {
    /// Geometric mean over the runs, or the printed value.
    pub value: f64,
    /// Lowest and highest of the runs; absent with one run, and of published figures.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub range: Option<[f64; 2]>,
}
