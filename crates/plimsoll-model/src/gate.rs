//! Conditions under which a run fails (`--fail-if`): `p99 > 50ms`, `peak_ops_per_s < 20000`,
//! `errors > 0.1%`, `p99@4000 > 20ms`.

use serde::{Deserialize, Serialize};

use crate::capacity::Figure;
use crate::condition::{Condition, ConditionFigure, LimitUnit};
use crate::cost::CostFigure;
use crate::figure::{JourneyFigure, StreamFigure};
use crate::named::named;

/// A condition under which a run fails. Its times are in nanoseconds, its shares in percent.
pub type Gate = Condition<GateFigure>;

/// The gates of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Gates {
    /// In the order they were given.
    pub all: Vec<Gate>,
    /// A limit within a figure's uncertainty interval fails the run, or passes; `null`: it fails if
    /// the figure itself breaks the limit.
    #[serde(default = "unsure_passes")]
    pub unsure_fails: Option<bool>,
}

/// The value where the journal has none.
const fn unsure_passes() -> Option<bool> {
    Some(false)
}

impl Gates {
    /// There is none.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }
}

/// What a gate looks at. Names are those of `result.json`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GateFigure {
    /// Response time of a point, in nanoseconds.
    Response(Figure),
    /// Service time of a point, in nanoseconds.
    Service(Figure),
    /// A time within ops whose replies are streams, in nanoseconds.
    Stream(StreamFigure, Figure),
    /// The part of a point's ops that were good ones.
    Goodput,
    /// Output tokens of a point per second.
    TokensPerS,
    /// Share of a point's ops that failed, in percent.
    Errors,
    /// Throughput of a point.
    Achieved,
    /// The headline.
    Value,
    /// Highest rate of any point.
    PeakOps,
    /// Highest byte rate of any point.
    PeakBytes,
    /// Overall response time from the origin, in nanoseconds.
    OverallOrigin,
    /// Overall response time between first and last point, in nanoseconds.
    OverallSpan,
    /// Score of suites that have one.
    Score,
    /// The capacity that was searched.
    Capacity,
    /// What the server spent on a point: CPU time in nanoseconds, shares in percent.
    Cost(CostFigure),
    /// A figure of the journeys of a point.
    Journey(JourneyFigure),
}

impl GateFigure {
    const OTHERS: [(&'static str, Self); 11] = [
        ("errors", Self::Errors),
        ("achieved_ops_per_s", Self::Achieved),
        ("goodput", Self::Goodput),
        ("tokens_per_s", Self::TokensPerS),
        ("value", Self::Value),
        ("peak_ops_per_s", Self::PeakOps),
        ("peak_bytes_per_s", Self::PeakBytes),
        ("overall_response_ms.origin", Self::OverallOrigin),
        ("overall_response_ms.span", Self::OverallSpan),
        ("score", Self::Score),
        ("capacity", Self::Capacity),
    ];
}

impl GateFigure {
    /// Only suites whose replies are streams of output have it.
    pub const fn needs_streams(&self) -> bool {
        matches!(self, Self::Stream(..) | Self::TokensPerS)
    }
}

impl ConditionFigure for GateFigure {
    const OF: &'static str = "a result";
    const EXAMPLES: &'static str =
        "'p99 > 50ms', 'errors > 0.1%', 'peak_ops_per_s < 20000' or 'p99@4000 > 20ms'";

    fn all_named() -> Vec<(String, Self)> {
        let response = Figure::ALL.map(|it| (it.as_str().to_owned(), Self::Response(it)));
        let service = Figure::ALL.map(|it| (format!("service_{}", it.as_str()), Self::Service(it)));
        let others = Self::OTHERS.map(|(name, figure)| (name.to_owned(), figure));
        let costs = CostFigure::ALL.map(|it| (it.as_str().to_owned(), Self::Cost(it)));
        let streams = StreamFigure::figures().map(|(name, (of, it))| (name, Self::Stream(of, it)));
        response.into_iter().chain(others).chain(service).chain(costs).chain(streams).collect()
    }

    fn listed() -> Vec<String> {
        JourneyFigure::listed_with::<Self>()
    }

    fn from_name(name: &str) -> Option<Self> {
        JourneyFigure::named_among(name, Self::Journey)
    }

    fn unit(&self) -> LimitUnit {
        match self {
            Self::Response(_) | Self::Service(_) | Self::Stream(..) => LimitUnit::Time,
            Self::OverallOrigin | Self::OverallSpan => LimitUnit::Time,
            Self::Errors => LimitUnit::Share,
            Self::Goodput => LimitUnit::Part,
            Self::Cost(figure) => figure.unit(),
            Self::Journey(figure) => figure.unit(),
            _ => LimitUnit::Number,
        }
    }

    fn is_of_point(&self) -> bool {
        let of_point = matches!(self, Self::Response(_) | Self::Service(_) | Self::Cost(_));
        let of_replies = matches!(self, Self::Stream(..) | Self::TokensPerS | Self::Journey(_));
        of_point || of_replies || matches!(self, Self::Errors | Self::Achieved | Self::Goodput)
    }
}

/// What became of a gate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GateResult {
    /// The gate, as written.
    pub expr: Gate,
    /// What it came to.
    pub state: GateState,
    /// The run fails because of it.
    pub fails: bool,
    /// The figure: times in nanoseconds, errors in percent; `null` where there is none.
    pub value: Option<f64>,
    /// Lower end of its uncertainty interval; the figure itself where it has none.
    pub low: Option<f64>,
    /// Upper end; `null` where the figure is a lower bound.
    pub high: Option<f64>,
    /// Load of the point it is of; absent for figures of the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load: Option<f64>,
}

named! {
    /// What a gate came to.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
    pub enum GateState {
        /// The whole interval is on the good side.
        Held = "held",
        /// The whole interval is on the side that fails.
        Failed = "failed",
        /// The limit lies within the interval.
        Unsure = "unsure",
        /// There is no such figure: no point counts, or the sample is too small. The run fails.
        Unknown = "unknown",
    }
}

impl GateState {
    /// Result for a condition that is true, false or, within its interval, neither.
    pub const fn from_condition(is_true: Option<bool>) -> Self {
        match is_true {
            Some(true) => Self::Failed,
            Some(false) => Self::Held,
            None => Self::Unsure,
        }
    }

    /// The sign before a gate in this state; `fails`: by the rule.
    pub const fn sign(self, fails: bool) -> &'static str {
        match (self, fails) {
            (_, true) => "✗",
            (Self::Unsure, false) => "?",
            _ => "✓",
        }
    }

    /// What follows an unsure gate in a message; nothing for the others. `fails`: by the rule.
    pub const fn unsure_text(self, fails: bool) -> &'static str {
        match (self, fails) {
            (Self::Unsure, true) => "; fails, though the limit lies within the interval",
            (Self::Unsure, false) => {
                "; passes, but the limit lies within the interval: measure longer or repeat"
            }
            _ => "",
        }
    }
}

impl<F> Condition<F> {
    /// A gate in this state fails the command. `value` is its figure, `unsure_fails` as in
    /// [`Gates`].
    pub fn fails(&self, state: GateState, value: Option<f64>, unsure_fails: Option<bool>) -> bool {
        let breaks = |value| self.side.holds(self.limit, [value, value]) == Some(true);
        match state {
            GateState::Held => false,
            GateState::Failed | GateState::Unknown => true,
            GateState::Unsure => unsure_fails.unwrap_or_else(|| value.is_some_and(breaks)),
        }
    }
}
