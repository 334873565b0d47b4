//! Conditions on ratios: `p99 > 1.05x`, `peak < 0.97x`, `p50@4000 > 1.1x`.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::gate::{GateError, GateState, Side};
use crate::suite::nearest;

/// A figure that groups are compared by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
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
}

impl RatioFigure {
    /// Those of the run, then those of load points.
    pub const ALL: [Self; 10] = [
        Self::Peak,
        Self::PeakOpsPerS,
        Self::Score,
        Self::Capacity,
        Self::OverallResponse,
        Self::AchievedOpsPerS,
        Self::P50,
        Self::P90,
        Self::P95,
        Self::P99,
    ];

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
        }
    }

    /// What a run is made for; the others stand beside it.
    pub const fn is_headline(self) -> bool {
        matches!(self, Self::Peak | Self::Score | Self::Capacity)
    }

    /// It is a time: less is better.
    pub const fn is_time(self) -> bool {
        matches!(self, Self::OverallResponse | Self::P50 | Self::P90 | Self::P95 | Self::P99)
    }

    /// Every load point has its own.
    pub const fn is_of_point(self) -> bool {
        matches!(self, Self::AchievedOpsPerS | Self::P50 | Self::P90 | Self::P95 | Self::P99)
    }

    fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|figure| figure.as_str() == name)
    }
}

/// A condition under which a comparison fails.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct RatioGate {
    /// What is looked at.
    pub figure: RatioFigure,
    /// At this load; `None`: at the worst one, for figures of points.
    pub at: Option<f64>,
    /// Which side of the limit fails.
    pub fails: Side,
    /// The ratio to the first group.
    pub limit: f64,
    /// As written.
    expr: String,
}

impl FromStr for RatioGate {
    type Err = GateError;

    fn from_str(text: &str) -> Result<Self, GateError> {
        const EXAMPLE: &str =
            "write for example 'p99 > 1.05x', 'peak < 0.97x' or 'p50@4000 > 1.1x'";
        let wrong = |what: String| Err(GateError::new(what));
        let Some(at) = text.find(['<', '>']) else {
            return wrong(format!("there is no < or > in it; {EXAMPLE}"));
        };
        let fails = if text[at..].starts_with('>') { Side::Above } else { Side::Below };
        let (left, right) = (text[..at].trim(), text[at + 1..].trim_start_matches('=').trim());
        let (name, load) = match left.split_once('@') {
            Some((name, load)) => (name.trim(), Some(load.trim())),
            None => (left, None),
        };
        let Some(figure) = RatioFigure::named(name) else {
            let names = RatioFigure::ALL.map(RatioFigure::as_str);
            let help = match nearest(name, names.into_iter()) {
                Some(near) => format!("did you mean {near}?"),
                None => format!("known are {}", names.join(", ")),
            };
            return wrong(format!("{name:?} is no figure of a comparison; {help}"));
        };
        let at = match load.map(str::parse::<f64>) {
            None => None,
            Some(Ok(load)) if figure.is_of_point() && load.is_finite() => Some(load),
            Some(Ok(_)) => return wrong(format!("{name} is the run's, and no load point's")),
            Some(Err(_)) => return wrong(format!("what follows @ is no load; {EXAMPLE}")),
        };
        let number = right.strip_suffix(['x', '×']).and_then(|text| text.trim().parse().ok());
        let Some(limit) = number.filter(|limit: &f64| limit.is_finite() && *limit > 0.0) else {
            return wrong(format!("{right:?} is no ratio; {EXAMPLE}"));
        };
        let sign = if fails == Side::Above { '>' } else { '<' };
        Ok(Self { figure, at, fails, limit, expr: format!("{left} {sign} {right}") })
    }
}

impl fmt::Display for RatioGate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.expr)
    }
}

impl TryFrom<String> for RatioGate {
    type Error = GateError;

    fn try_from(text: String) -> Result<Self, GateError> {
        text.parse()
    }
}

impl From<RatioGate> for String {
    fn from(gate: RatioGate) -> Self {
        gate.expr
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_on_ratios_read_as_people_write_them() {
        let gate: RatioGate = "p99@4000>1.05x".parse().unwrap();
        assert_eq!((gate.figure, gate.at, gate.limit), (RatioFigure::P99, Some(4_000.0), 1.05));
        assert_eq!((gate.fails, gate.to_string()), (Side::Above, "p99@4000 > 1.05x".into()));
        let kept = serde_json::to_string(&gate).unwrap();
        assert_eq!(serde_json::from_str::<RatioGate>(&kept).unwrap(), gate);
        assert_eq!("peak <= 0.97 x".parse::<RatioGate>().unwrap().fails, Side::Below);
    }

    #[test]
    fn what_cannot_be_one_says_what_to_write() {
        let said = |text: &str| text.parse::<RatioGate>().unwrap_err().to_string();
        assert!(said("p99").contains("p99 > 1.05x"));
        assert!(said("p98 > 1.1x").contains("did you mean p9"));
        assert!(said("p99 > 50ms").contains("no ratio"));
        assert!(said("p99 > 0x").contains("no ratio"));
        assert!(said("peak@5 < 1x").contains("no load point's"));
    }
}
