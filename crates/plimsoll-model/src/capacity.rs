//! How much load a server can handle within limits: the request, each try, the answer.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::assignment::Purpose;
use crate::condition::{Condition, ConditionError, ConditionFigure, LimitUnit, Side};
pub use crate::figure::Figure;
use crate::figure::{JourneyFigure, StreamFigure};
use crate::finding::Rule;
use crate::limit::Limit;
use crate::named::named;
use crate::open_end::open_interval;
use crate::units::{Nanos, span_text};

/// What a load may be limited by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LoadFigure {
    /// A figure of the response time.
    Response(Figure),
    /// A figure of a time within ops whose replies are streams.
    Stream(StreamFigure, Figure),
    /// The share of the ops that come due that fails.
    Errors,
    /// The part of them that keeps the limits of a good op.
    Goodput,
    /// A figure of users' journeys.
    Journey(JourneyFigure),
}

impl LoadFigure {
    /// Only suites whose replies are streams of output have it.
    pub const fn needs_streams(&self) -> bool {
        matches!(self, Self::Stream(..))
    }

    /// `p99`, `first_output.p90`, `errors`.
    pub fn name(&self) -> String {
        match self {
            Self::Response(figure) => figure.as_str().to_owned(),
            Self::Stream(of, figure) => format!("{}.{}", of.as_str(), figure.as_str()),
            Self::Errors => "errors".to_owned(),
            Self::Goodput => "goodput".to_owned(),
            Self::Journey(figure) => figure.name(),
        }
    }
}

impl ConditionFigure for LoadFigure {
    const OF: &'static str = "a load that can be limited";
    const EXAMPLES: &'static str = "p99<50ms, errors<0.1% or first_output.p90<500ms";

    fn all_named() -> Vec<(String, Self)> {
        let times = Figure::ALL.map(Self::Response).into_iter();
        let streams = StreamFigure::figures().map(|(_, (of, figure))| Self::Stream(of, figure));
        let all = times.chain([Self::Errors, Self::Goodput]).chain(streams);
        all.map(|figure| (figure.name(), figure)).collect()
    }

    fn listed() -> Vec<String> {
        JourneyFigure::listed_with::<Self>()
    }

    fn from_name(name: &str) -> Option<Self> {
        JourneyFigure::named_among(name, Self::Journey)
    }

    fn unit(&self) -> LimitUnit {
        match self {
            Self::Response(_) | Self::Stream(..) => LimitUnit::Time,
            Self::Errors => LimitUnit::Share,
            Self::Goodput => LimitUnit::Part,
            Self::Journey(figure) => figure.unit(),
        }
    }
}

/// One limit that a load must stay below.
pub type LoadLimit = Condition<LoadFigure>;

/// The limits within which a load must stay: `p99<50ms,errors<0.1%`. At least one, each figure
/// once. The load must also be sustained; that limit always applies.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Within {
    limits: Vec<LoadLimit>,
}

impl Within {
    /// In the order they were written.
    pub fn limits(&self) -> &[LoadLimit] {
        &self.limits
    }

    /// Errors are limited by the user, not by the suite.
    pub fn limits_errors(&self) -> bool {
        self.limits.iter().any(|limit| limit.figure == LoadFigure::Errors)
    }
}

impl FromStr for Within {
    type Err = ConditionError;

    fn from_str(text: &str) -> Result<Self, ConditionError> {
        let mut limits: Vec<LoadLimit> = Vec::new();
        for part in text.split(',') {
            let wrong = |error| ConditionError::Part(part.trim().to_owned(), Box::new(error));
            let limit = part.parse().and_then(keepable).map_err(wrong)?;
            if limits.iter().any(|earlier| earlier.figure == limit.figure) {
                return Err(wrong(ConditionError::Twice(limit.figure.name())));
            }
            limits.push(limit);
        }
        Ok(Self { limits })
    }
}

fn keepable(it: LoadLimit) -> Result<LoadLimit, ConditionError> {
    let can_be_kept = match &it.figure {
        LoadFigure::Errors => it.side == Side::Below && it.limit > 0.0 && it.limit <= 100.0,
        LoadFigure::Goodput | LoadFigure::Journey(JourneyFigure::Completed) => {
            it.side == Side::Above && it.limit < 1.0
        }
        LoadFigure::Response(_) | LoadFigure::Stream(..) | LoadFigure::Journey(_) => {
            it.side == Side::Below
        }
    };
    can_be_kept.then_some(it).ok_or(ConditionError::NoUpperBound(LoadFigure::EXAMPLES))
}

impl fmt::Display for Within {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let limits = self.limits.iter().map(|it| match it.figure.unit() {
            LimitUnit::Time => {
                format!("{}<{}", it.figure.name(), span_text(Nanos(it.limit as u64)))
            }
            LimitUnit::Share => format!("{}<{}%", it.figure.name(), it.limit),
            _ if it.figure == LoadFigure::Journey(JourneyFigure::Completed) => {
                // Without the last digits of a division by 100.
                let percent = (it.limit * 1e12).round() / 1e10;
                format!("{}>{percent}%", it.figure.name())
            }
            _ => format!("{}>{}", it.figure.name(), it.limit),
        });
        f.write_str(&limits.collect::<Vec<_>>().join(","))
    }
}

impl TryFrom<String> for Within {
    type Error = ConditionError;

    fn try_from(text: String) -> Result<Self, ConditionError> {
        text.parse()
    }
}

impl From<Within> for String {
    fn from(within: Within) -> Self {
        within.to_string()
    }
}

/// A search for a capacity, as requested.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CapacityRequest {
    /// The limits.
    pub within: Within,
    /// Think time of a user, where one was named: of a closed load its clients', of an open one
    /// the conversion from ops to users.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub think: Option<Nanos>,
    /// Number of users that one client represents; `null`: the user named none.
    pub users_per_client: Option<f64>,
}

/// The highest load that was measured and re-verified within the limits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Capacity {
    /// The load.
    pub value: f64,
    /// `ops/s` or `clients`.
    pub unit: String,
    /// Lower end of the interval: the load whose re-runs all stayed within the limits.
    pub low: f64,
    /// Upper end: the lowest load that did not; `null` where none was seen.
    pub high: Option<f64>,
    /// The highest load between the two of which it stayed undecided whether it is within the
    /// limits; absent where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undecided_to: Option<f64>,
    /// The limits.
    pub within: Within,
    /// Re-runs of the load that stayed within the limits.
    pub passed: u32,
    /// Re-runs of the load.
    pub tries: u32,
    /// How many users that is; `null` where no think time defines a user, or clients are no users.
    pub users: Option<f64>,
    /// What one client stands for in the method, where clients are no users and the user did not
    /// name their number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
    /// What limited the server at `high`; *none* where no load was too much.
    pub limit: Limit,
}

/// How the capacity was searched.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CapacitySearch {
    /// The request.
    pub asked: CapacityRequest,
    /// What it came to, for a person; `null` while it goes on.
    pub how: Option<String>,
    /// Every load that was tried, in order of time.
    pub tries: Vec<CapacityTry>,
}

/// One load point, compared with the limits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CapacityTry {
    /// Position of the load point.
    pub point: u32,
    /// The load.
    pub load: f64,
    /// A step of the search, or a re-run of what it claims.
    pub purpose: Purpose,
    /// What the evidence shows.
    pub standing: TryOutcome,
    /// The figures as measured are within the limits.
    pub passed: bool,
    /// The generator was late, which makes times longer only, and the load was within the limits
    /// all the same: the server can do at least this.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub late: bool,
    /// The reason as a sentence, for people who read the file: empty until `plimsoll-report` fills
    /// it.
    pub why: String,
    /// What decided it.
    pub reason: TryReason,
    /// One for each limit, in their order.
    pub figures: Vec<LimitFigure>,
}

/// What decided a try.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum TryReason {
    /// Its figures.
    Figures,
    /// A rule that the load point broke.
    Rule {
        /// Which, with what it saw.
        rule: Rule,
    },
    /// The load was not sustained.
    NotHeld,
    /// Ops in flight grew through the window.
    Growth {
        /// At its begin.
        from_ops: f64,
        /// At its end.
        to_ops: f64,
    },
}

named! {
    fn as_str;
    /// What the evidence shows of a load.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum TryOutcome {
        /// Every figure and its interval lie below the limits.
        Within = "within",
        /// Some figure and its interval lie above, or the load was not sustained.
        NotWithin = "not within",
        /// A limit lies inside the interval of its figure.
        Undecided = "undecided",
        /// The measurement was at fault, so that it shows nothing about the server.
        NotJudged = "not judged",
    }
}

/// A limited figure of a load point.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LimitFigure {
    /// What is limited: `p99`, `errors`.
    pub name: String,
    /// `ns` or `ratio`.
    pub unit: String,
    /// As measured; `null` without an op.
    pub value: Option<f64>,
    /// Its uncertainty interval; `null` where it is unknown. An upper end that the sample does not
    /// show is infinite, and `null` in JSON.
    #[serde(deserialize_with = "open_interval")]
    pub interval: Option<[f64; 2]>,
    /// The value is a lower bound: ops were not sent or not finished.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub lower_bound: bool,
    /// What it must stay below; above where `at_least` is set.
    pub below: f64,
    /// The limit is a lower bound.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub at_least: bool,
}

impl LimitFigure {
    /// On the good side of the limit, as measured.
    pub fn holds(&self) -> bool {
        let is_good = |value| self.side().holds(self.below, [value, value]) == Some(true);
        !self.lower_bound && self.value.is_some_and(is_good)
    }

    /// The good side of the limit.
    pub const fn side(&self) -> Side {
        if self.at_least { Side::Above } else { Side::Below }
    }

    /// Decides by the interval: it comes from blocks of time, not from single ops, so it covers
    /// chance.
    pub fn outcome(&self) -> TryOutcome {
        match self.interval.and_then(|interval| self.side().holds(self.below, interval)) {
            _ if self.lower_bound => TryOutcome::NotWithin,
            Some(true) => TryOutcome::Within,
            Some(false) => TryOutcome::NotWithin,
            None => TryOutcome::Undecided,
        }
    }
}
