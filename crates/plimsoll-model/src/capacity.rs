//! How much a server carries within limits: what was asked for, what each try came to, the answer.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::assignment::Purpose;
use crate::condition::{Condition, ConditionError, ConditionFigure, LimitUnit, Side};
pub use crate::figure::Figure;
use crate::figure::StreamFigure;
use crate::finding::Rule;
use crate::limit::Limit;
use crate::named::named;
use crate::units::{Nanos, grouped, percent, span_text};

/// What a load may be limited by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoadFigure {
    /// A figure of the response time.
    Response(Figure),
    /// A figure of a time within ops whose replies are streams.
    Stream(StreamFigure, Figure),
    /// The share of the ops that come due that fails.
    Errors,
    /// The part of them that keeps the limits of a good op.
    Goodput,
}

impl LoadFigure {
    /// Only suites whose replies are streams of output have it.
    pub const fn needs_streams(self) -> bool {
        matches!(self, Self::Stream(..))
    }

    /// `p99`, `first_output.p90`, `errors`.
    pub fn name(self) -> String {
        match self {
            Self::Response(figure) => figure.as_str().to_owned(),
            Self::Stream(of, figure) => format!("{}.{}", of.as_str(), figure.as_str()),
            Self::Errors => "errors".to_owned(),
            Self::Goodput => "goodput".to_owned(),
        }
    }
}

impl ConditionFigure for LoadFigure {
    const OF: &'static str = "a load that can be limited";
    const EXAMPLES: &'static str = "p99<50ms, errors<0.1% or first_output.p90<500ms";

    fn known() -> Vec<(String, Self)> {
        let times = Figure::ALL.map(Self::Response).into_iter();
        let streams = StreamFigure::figures().map(|(_, (of, figure))| Self::Stream(of, figure));
        let all = times.chain([Self::Errors, Self::Goodput]).chain(streams);
        all.map(|figure| (figure.name(), figure)).collect()
    }

    fn listed() -> Vec<String> {
        StreamFigure::listed(Self::known().into_iter().map(|(name, _)| name))
    }

    fn unit(self) -> LimitUnit {
        match self {
            Self::Response(_) | Self::Stream(..) => LimitUnit::Time,
            Self::Errors => LimitUnit::Share,
            Self::Goodput => LimitUnit::Part,
        }
    }
}

/// One limit that a load must stay below.
pub type LoadLimit = Condition<LoadFigure>;

/// The limits within which a load must stay: `p99<50ms,errors<0.1%`. At least one, each figure
/// once. That the load is held is a limit always.
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
    let can_be_kept = match it.figure {
        LoadFigure::Errors => it.side == Side::Below && it.limit > 0.0 && it.limit <= 100.0,
        LoadFigure::Goodput => it.side == Side::Above && it.limit < 1.0,
        LoadFigure::Response(_) | LoadFigure::Stream(..) => it.side == Side::Below,
    };
    can_be_kept.then_some(it).ok_or(ConditionError::NoUpperBound(LoadFigure::EXAMPLES))
}

impl fmt::Display for Within {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let limits = self.limits.iter().map(|it| match it.figure {
            LoadFigure::Response(_) | LoadFigure::Stream(..) => {
                format!("{}<{}", it.figure.name(), span_text(Nanos(it.limit as u64)))
            }
            LoadFigure::Errors => format!("{}<{}%", it.figure.name(), it.limit),
            LoadFigure::Goodput => format!("{}>{}", it.figure.name(), it.limit),
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

/// A search for a capacity, as it was asked for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CapacityAsked {
    /// The limits.
    pub within: Within,
    /// Think time of a user, where one was named: of a closed load its clients', of an open one
    /// what turns ops into users.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub think: Option<Nanos>,
    /// For how many users one client stands.
    pub users_per_client: f64,
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
    /// The limits.
    pub within: Within,
    /// Re-runs of the load that stayed within the limits.
    pub passed: u32,
    /// Re-runs of the load.
    pub tries: u32,
    /// How many users that is; `null` where nothing says what a user is.
    pub users: Option<f64>,
    /// What held the server back at `high`; *none* where no load was too much.
    pub limit: Limit,
}

/// How the capacity was searched.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CapacitySearch {
    /// What was asked for.
    pub asked: CapacityAsked,
    /// What it came to, for a person; `null` while it goes on.
    pub how: Option<String>,
    /// Every load that was tried, in order of time.
    pub tries: Vec<CapacityTry>,
}

/// One load point, held against the limits. JSON has the reason as text too (`why`).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(from = "TryJson", into = "TryJson")]
pub struct CapacityTry {
    /// Position of the load point.
    pub point: u32,
    /// The load.
    pub load: f64,
    /// A step of the search, or a re-run of what it claims.
    pub purpose: Purpose,
    /// What the evidence says.
    pub standing: TryStanding,
    /// The figures as measured are within the limits.
    pub passed: bool,
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

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct TryJson {
    point: u32,
    load: f64,
    purpose: Purpose,
    standing: TryStanding,
    passed: bool,
    why: String,
    reason: TryReason,
    figures: Vec<LimitFigure>,
}

impl From<CapacityTry> for TryJson {
    fn from(attempt: CapacityTry) -> Self {
        let why = attempt.why();
        let CapacityTry { point, load, purpose, standing, passed, reason, figures } = attempt;
        Self { point, load, purpose, standing, passed, why, reason, figures }
    }
}

impl From<TryJson> for CapacityTry {
    fn from(json: TryJson) -> Self {
        let TryJson { point, load, purpose, standing, passed, reason, figures, .. } = json;
        Self { point, load, purpose, standing, passed, reason, figures }
    }
}

impl CapacityTry {
    /// The reason, for a person: of figures the first that is not within its limit, or all.
    pub fn why(&self) -> String {
        match &self.reason {
            TryReason::Rule { rule } => rule.cause(),
            TryReason::NotHeld => "the load was not held".to_owned(),
            TryReason::Growth { from_ops, to_ops } => format!(
                "ops in flight grew from about {} to {} through the window: more came than was \
                 done",
                grouped(from_ops.round()),
                grouped(to_ops.round()),
            ),
            TryReason::Figures => {
                let beyond = self.figures.iter().find(|figure| {
                    self.standing != TryStanding::Within && figure.standing() == self.standing
                });
                let all = || self.figures.iter().map(ToString::to_string).collect::<Vec<_>>();
                beyond.map_or_else(|| all().join(", "), ToString::to_string)
            }
        }
    }
}

named! {
    fn as_str;
    /// What the evidence says of a load.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum TryStanding {
        /// Every figure and its interval lie below the limits.
        Within = "within",
        /// Some figure and its interval lie above, or the load was not held.
        NotWithin = "not within",
        /// A limit lies inside the interval of its figure.
        Undecided = "undecided",
        /// The measurement was at fault, so that nothing is known of the server.
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
    /// Its uncertainty interval; `null` where nothing is known of it.
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

    const fn side(&self) -> Side {
        if self.at_least { Side::Above } else { Side::Below }
    }

    /// A figure is decided where its interval is: blocks of time, not single ops, say how far chance
    /// may have moved it.
    pub fn standing(&self) -> TryStanding {
        match self.interval.and_then(|interval| self.side().holds(self.below, interval)) {
            _ if self.lower_bound => TryStanding::NotWithin,
            Some(true) => TryStanding::Within,
            Some(false) => TryStanding::NotWithin,
            None => TryStanding::Undecided,
        }
    }
}

/// `p99 61.3 ms ≥ 50.0 ms`.
impl fmt::Display for LimitFigure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |value: f64| match self.unit.as_str() {
            "ns" => Nanos(value.round() as u64).to_string(),
            _ => percent(value),
        };
        let (name, below) = (&self.name, text(self.below));
        let Some(value) = self.value.map(text) else { return write!(f, "{name}: no op was done") };
        if self.lower_bound {
            return write!(
                f,
                "{name} is at least {value}: some ops were not sent or not finished (limit \
                 {below})"
            );
        }
        let sign = match (self.side(), self.holds()) {
            (Side::Below, true) => "<",
            (Side::Below, false) => "≥",
            (Side::Above, true) => ">",
            (Side::Above, false) => "≤",
        };
        write!(f, "{name} {value} {sign} {below}")?;
        match (self.standing(), self.interval) {
            (TryStanding::Undecided, Some([low, high])) => {
                write!(f, ", not certain ({} to {})", text(low), text(high))
            }
            (TryStanding::Undecided, None) => f.write_str(", too few ops to be certain"),
            _ => Ok(()),
        }
    }
}
