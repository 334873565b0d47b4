//! What is stated beside a figure.

use serde::{Deserialize, Serialize};

/// Stated intervals of a distribution of times: `[low, high]` in nanoseconds, 95 %. `null` where
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

/// What a stated interval is made of, for one figure: by how much each part alone moves it, in the
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
