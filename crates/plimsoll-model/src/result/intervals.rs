//! What is stated beside a figure.

use serde::{Deserialize, Serialize};

use crate::capacity::Figure;

/// Uncertainty intervals of a distribution of times: `[low, high]` in nanoseconds, 95 %. `null` where
/// the figure itself is, or where nothing is known of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TimeIntervals {
    /// Of the mean.
    pub mean: Option<[f64; 2]>,
    /// Of the median.
    pub p50: Option<[f64; 2]>,
    /// Of the 90th percentile.
    pub p90: Option<[f64; 2]>,
    /// Of the 95th percentile.
    pub p95: Option<[f64; 2]>,
    /// Of the 99th percentile.
    pub p99: Option<[f64; 2]>,
}

/// What an uncertainty interval is made of, for one figure: by how much each part alone moves it, in the
/// figure's unit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Uncertainty {
    /// The figure as measured.
    pub value: f64,
    /// The generator's part: how far its own delays may have moved the figure up (of a closed
    /// load's throughput: down).
    pub generator: f64,
    /// The sample's part below the figure.
    pub sample_below: f64,
    /// The sample's part above it.
    pub sample_above: f64,
    /// What other runs of a closed load may differ by, to either side. Absent: 0, as of open loads.
    #[serde(default)]
    pub other_runs: f64,
    /// Half a step of the histogram, to either side; zero for throughput.
    pub resolution: f64,
}

/// Ops of a point that were due in its window and were not sent, or had no reply, when its drain
/// ended. Each counts with its age at that instant: their response times are right-censored, and
/// figures that depend on them are lower bounds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Censored {
    /// Ops that were never sent.
    pub unsent: u64,
    /// Ops that were sent and had neither a reply nor reached their timeout.
    pub unfinished: u64,
    /// The least age of these ops: percentiles of the response time up to it are exact.
    pub response_exact_to_ns: u64,
    /// The least time since it was sent of an op without a reply: percentiles of the service time
    /// up to it are exact. `null` where every op that was sent has ended.
    pub service_exact_to_ns: Option<u64>,
}

impl Censored {
    /// Is this figure of the response time, in nanoseconds, a lower bound?
    pub fn bounds_response(&self, figure: Figure, ns: f64) -> bool {
        is_bound(Some(self.response_exact_to_ns), figure, ns)
    }

    /// Is this figure of the service time, in nanoseconds, a lower bound?
    pub fn bounds_service(&self, figure: Figure, ns: f64) -> bool {
        is_bound(self.service_exact_to_ns, figure, ns)
    }
}

/// A censored time is longer than any percentile up to `exact_to_ns`, however long it would have
/// been. The mean and the longest depend on every op.
fn is_bound(exact_to_ns: Option<u64>, figure: Figure, ns: f64) -> bool {
    exact_to_ns.is_some_and(|exact_to| match figure {
        Figure::Mean | Figure::Max => true,
        Figure::P50 | Figure::P90 | Figure::P95 | Figure::P99 | Figure::P999 => {
            ns > exact_to as f64
        }
    })
}
