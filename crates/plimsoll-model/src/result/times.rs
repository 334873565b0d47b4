//! Times of a load point: their distribution, and their course over the window.

use serde::{Deserialize, Serialize};

use crate::figure::Figure;
use crate::load_shape::PhaseKind;

/// Summary of a distribution of times. Percentiles are `null` where the sample is too small.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TimeSummary {
    /// Samples.
    pub n: u64,
    /// Mean; `null` without samples.
    pub mean: Option<f64>,
    /// Half-width of the mean's 95 % confidence interval, from the variation between seconds.
    pub mean_error: Option<f64>,
    /// Median.
    pub p50: Option<u64>,
    /// 90th percentile.
    pub p90: Option<u64>,
    /// 95th percentile.
    pub p95: Option<u64>,
    /// 99th percentile.
    pub p99: Option<u64>,
    /// 99.9th percentile.
    pub p999: Option<u64>,
    /// Longest.
    pub max: Option<u64>,
}

impl TimeSummary {
    /// A figure in nanoseconds.
    pub fn figure(&self, figure: Figure) -> Option<f64> {
        let percentile = match figure {
            Figure::Mean => return self.mean,
            Figure::P50 => self.p50,
            Figure::P90 => self.p90,
            Figure::P95 => self.p95,
            Figure::P99 => self.p99,
            Figure::P999 => self.p999,
            Figure::Max => self.max,
        };
        percentile.map(|ns| ns as f64)
    }
}

/// Compound calls of a load point (NFSv4.1, RFC 8881 §16), and the times around its ops.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CompoundCalls {
    /// Compounds that were answered, per second: of ops, and all others.
    pub compounds_per_s: Option<f64>,
    /// Operations in them, per second, with SEQUENCE, PUTFH and GETATTR.
    pub operations_per_s: Option<f64>,
    /// Files opened, per second.
    pub opens_per_s: Option<f64>,
    /// Reply to an OPEN − due of the op that it precedes.
    pub open_ns: Option<TimeSummary>,
    /// Reply to a CLOSE − reply to the op before it.
    pub close_ns: Option<TimeSummary>,
    /// Waits for a slot, of the ops that waited.
    pub slot_wait_ns: Option<TimeSummary>,
}

/// Response times of the ops that ended within the window, counted in spans of time and buckets of
/// length. Of bounded size: long windows have longer spans.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ResponseHeatmap {
    /// Begin of each span, from the begin of the window, and end of the last.
    pub starts_ns: Vec<u64>,
    /// Lower edge of each bucket, from that of the shortest time to that of the longest, and upper
    /// edge of the last.
    pub edges_ns: Vec<u64>,
    /// Ops, by span and then by bucket.
    pub counts: Vec<Vec<u64>>,
}

/// One second of a point.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TimelineSecond {
    /// From the start of the point.
    pub second: u32,
    /// `warm_up`, `measure` or `drain`.
    pub phase: String,
    /// Ops finished without error, per second.
    pub ops_per_s: f64,
    /// Ops failed.
    pub errors: u64,
    /// Median response time of ops finished in it.
    pub response_p50_ns: Option<u64>,
    /// 99th percentile of the same.
    pub response_p99_ns: Option<u64>,
    /// Longest of the same.
    pub response_max_ns: Option<u64>,
    /// Busiest worker in it.
    pub generator_busy_ratio: Option<f64>,
    /// Load that was requested, on the axis, where it changes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requested: Option<f64>,
    /// Ops that were due and had not ended at its end, where the load changes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outstanding_ops: Option<u64>,
}

/// A phase of a load that changes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PhaseResult {
    /// `hold 500`.
    pub name: String,
    /// What it does.
    pub kind: PhaseKind,
    /// Load at its begin.
    pub from: f64,
    /// Load at its end.
    pub to: f64,
    /// Begin in seconds, from the begin of the shape.
    pub start_s: f64,
    /// The rules of a steady state apply: it is a hold, and comes after no pulse.
    pub is_steady: bool,
}
