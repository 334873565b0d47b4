//! Conditions on ratios: `p99 > 1.05x`, `peak < 0.97x`, `p50@4000 > 1.1x`.

use serde::{Deserialize, Serialize};

use crate::condition::{Condition, ConditionError, ConditionFigure, LimitUnit, figure_named};
use crate::cost::CostFigure;
use crate::gate::GateState;

/// A condition under which a comparison fails. Its limit is the ratio to the first group.
pub type RatioGate = Condition<RatioFigure>;

/// A figure that groups are compared by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum RatioFigure {
    /// The headline of the run.
    Peak,
    /// Highest rate of any point, where it is not the headline.
    PeakOpsPerS,
    /// Score of suites that have one.
    Score,
    /// The capacity that was searched.
    Capacity,
    /// Overall response time from the origin.
    OverallResponse,
    /// Throughput of a load point.
    AchievedOpsPerS,
    /// Median response time of a load point.
    P50,
    /// 90th percentile.
    P90,
    /// 95th percentile.
    P95,
    /// 99th percentile.
    P99,
    /// 90th percentile of the time to first output.
    FirstOutputP90,
    /// 90th percentile of the time per output token, vLLM's definition.
    TpotP90,
    /// Output tokens of a load point per second.
    TokensPerS,
    /// The part of a load point's ops that were good ones.
    Goodput,
    /// What the server spent on a load point.
    Cost(CostFigure),
}

/// A figure of speed or time, and none of cost.
const SPEED: [RatioFigure; 14] = [
    RatioFigure::Peak,
    RatioFigure::PeakOpsPerS,
    RatioFigure::Score,
    RatioFigure::Capacity,
    RatioFigure::OverallResponse,
    RatioFigure::AchievedOpsPerS,
    RatioFigure::P50,
    RatioFigure::P90,
    RatioFigure::P95,
    RatioFigure::P99,
    RatioFigure::FirstOutputP90,
    RatioFigure::TpotP90,
    RatioFigure::TokensPerS,
    RatioFigure::Goodput,
];

impl RatioFigure {
    /// Those of the run, then those of load points, costs last.
    pub fn all() -> impl Iterator<Item = Self> {
        SPEED.into_iter().chain(CostFigure::ALL.map(Self::Cost))
    }

    /// As files and conditions write it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Peak => "peak",
            Self::PeakOpsPerS => "peak_ops_per_s",
            Self::Score => "score",
            Self::Capacity => "capacity",
            Self::OverallResponse => "overall_response",
            Self::AchievedOpsPerS => "achieved_ops_per_s",
            Self::P50 => "p50",
            Self::P90 => "p90",
            Self::P95 => "p95",
            Self::P99 => "p99",
            Self::FirstOutputP90 => "first_output.p90",
            Self::TpotP90 => "tpot.p90",
            Self::TokensPerS => "tokens_per_s",
            Self::Goodput => "goodput",
            Self::Cost(figure) => figure.as_str(),
        }
    }

    /// What a run is made for; the others stand beside it.
    pub const fn is_headline(self) -> bool {
        matches!(self, Self::Peak | Self::Score | Self::Capacity)
    }

    /// It is what the server spent: less is better.
    pub const fn is_cost(self) -> bool {
        matches!(self, Self::Cost(_))
    }

    /// Only suites whose replies are streams of output have it.
    pub const fn is_of_streams(self) -> bool {
        matches!(self, Self::FirstOutputP90 | Self::TpotP90 | Self::TokensPerS)
    }

    /// It is a time: less is better.
    pub const fn is_time(self) -> bool {
        let of_streams = matches!(self, Self::FirstOutputP90 | Self::TpotP90);
        let of_response = matches!(self, Self::P50 | Self::P90 | Self::P95 | Self::P99);
        of_streams || of_response || matches!(self, Self::OverallResponse)
    }

    /// Less of it is better.
    pub const fn is_less_better(self) -> bool {
        self.is_time() || self.is_cost()
    }
}

impl ConditionFigure for RatioFigure {
    const OF: &'static str = "a comparison";
    const EXAMPLES: &'static str =
        "'p99 > 1.05x', 'peak < 0.97x', 'p50@4000 > 1.1x' or 'cpu_per_op > 1.05x'";

    fn known() -> Vec<(String, Self)> {
        Self::all().map(|figure| (figure.as_str().to_owned(), figure)).collect()
    }

    fn unit(self) -> LimitUnit {
        LimitUnit::Ratio
    }

    fn is_of_point(self) -> bool {
        let of_run =
            [Self::Peak, Self::PeakOpsPerS, Self::Score, Self::Capacity, Self::OverallResponse];
        !of_run.contains(&self)
    }
}

impl From<RatioFigure> for String {
    fn from(figure: RatioFigure) -> Self {
        figure.as_str().to_owned()
    }
}

impl TryFrom<String> for RatioFigure {
    type Error = ConditionError;

    fn try_from(name: String) -> Result<Self, ConditionError> {
        figure_named(&name)
    }
}

/// What became of a condition in one of the groups.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RatioGateResult {
    /// The condition, as written.
    pub expr: RatioGate,
    /// Label of the group that was held against the first.
    pub group: String,
    /// What it came to.
    pub state: GateState,
    /// The comparison fails because of it.
    pub fails: bool,
    /// The ratio; `null` where there is none.
    pub ratio: Option<f64>,
    /// Its interval; `null` with fewer than three runs a side.
    pub interval: Option<[f64; 2]>,
    /// The load point it is of; `null` for figures of the run.
    pub load: Option<f64>,
}
