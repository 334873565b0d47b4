//! A ladder held against the rules of MLPerf Endpoints (draft v1.0 of the rules). What this says is
//! no MLPerf result: only MLCommons' own client and its checker make one.

use serde::{Deserialize, Serialize};

use crate::named::named;

/// The points of a ladder by the regions of the rules, and what the rules would still want.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Endpoints {
    /// Lowest concurrency.
    pub c_min: u32,
    /// Highest concurrency.
    pub c_max: u32,
    /// From ultra-low to high.
    pub regions: Vec<Region>,
    /// What the rules want and the ladder does not have.
    pub wanting: Vec<Wanting>,
    /// A point each, in the order of the ladder.
    pub points: Vec<EndpointsPoint>,
}

/// A range of concurrencies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Region {
    /// Which.
    pub name: RegionName,
    /// Lowest concurrency in it.
    pub from: u32,
    /// Highest concurrency in it; below `from` where it is empty.
    pub to: u32,
    /// Valid points in it.
    pub points: u32,
}

named! {
    fn as_str;
    /// Which region.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum RegionName {
        /// 1 to 32 streams.
        UltraLow = "ultra-low",
        /// The first third between the lowest and the highest concurrency, by logarithms.
        Low = "low",
        /// The second.
        Medium = "medium",
        /// The third.
        High = "high",
    }
}

/// What the rules want and a ladder does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Wanting {
    /// More points.
    Points {
        /// Valid points of the ladder.
        points: u32,
        /// The least the rules accept.
        points_min: u32,
    },
    /// A point in this region.
    Region {
        /// Which.
        name: RegionName,
    },
    /// A highest concurrency above 32.
    HighestConcurrency,
}

/// A load point by the rules' own figures.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EndpointsPoint {
    /// Position in the ladder.
    pub position: u32,
    /// Streams at a time.
    pub concurrency: u32,
    /// The highest region that it is in.
    pub region: Option<RegionName>,
    /// Output tokens per second.
    pub system_tps: Option<f64>,
    /// 1 / p90 of the time per output token after the first chunk.
    pub tps_per_user: Option<f64>,
    /// p90 of the time to first output.
    pub ttft_p90_ns: Option<u64>,
    /// p90 of the time per output token after the first chunk.
    pub tpot_p90_ns: Option<u64>,
    /// The same by the rules' early-stopping estimate: `null` below 64 samples.
    pub tpot_p90_early_ns: Option<u64>,
    /// Where the point was steady.
    pub steady: SteadyWindow,
}

/// Where the time per output token of a load point was steady.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SteadyWindow {
    /// Was there enough to look for a steady window?
    pub status: SteadyStatus,
    /// What came of the search; `null` where there was not enough.
    pub verdict: Option<SteadyVerdict>,
    /// First pass of the window found, from 0.
    pub first_pass: Option<u32>,
    /// How many passes it has.
    pub passes: Option<u32>,
    /// How long it is.
    pub seconds: Option<f64>,
}

named! {
    /// Was there enough to look for a steady window?
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
    pub enum SteadyStatus {
        /// Yes.
        Windowable = "windowable",
        /// The load point was shorter than the rules want.
        InsufficientDuration = "insufficient_duration",
        /// It had fewer passes than the rules want.
        #[default]
        InsufficientPasses = "insufficient_passes",
        /// Not even one pass over the data set was completed.
        PartialDataset = "partial_dataset",
    }
}

named! {
    /// What came of the search for a steady window.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
    pub enum SteadyVerdict {
        /// There is one.
        Steady = "steady",
        /// The time per output token rose all the time.
        DriftingUp = "drifting_up",
        /// It fell all the time.
        DriftingDown = "drifting_down",
        /// It changed its level at once.
        Anomaly = "anomaly",
        /// None was found, for no such reason.
        NotFound = "not_found",
    }
}
