//! How much a server carries within limits: what was asked for, what each try came to, the answer.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::assignment::Purpose;
use crate::limit::Limit;
use crate::units::{Nanos, parse_span, span_text};

/// Which figure of the response time is limited.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Figure {
    /// Arithmetic mean.
    Mean,
    /// Median.
    P50,
    /// 90th percentile.
    P90,
    /// 95th percentile.
    P95,
    /// 99th percentile.
    P99,
    /// 99.9th percentile.
    P999,
    /// Longest.
    Max,
}

impl Figure {
    pub(crate) const ALL: [Self; 7] =
        [Self::Mean, Self::P50, Self::P90, Self::P95, Self::P99, Self::P999, Self::Max];

    /// The figure of that name; `p99.9` is `p999`.
    pub(crate) fn named(name: &str) -> Option<Self> {
        let name = if name == "p99.9" { "p999" } else { name };
        Self::ALL.into_iter().find(|figure| figure.as_str() == name)
    }

    /// As users write it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Mean => "mean",
            Self::P50 => "p50",
            Self::P90 => "p90",
            Self::P95 => "p95",
            Self::P99 => "p99",
            Self::P999 => "p999",
            Self::Max => "max",
        }
    }
}

/// One limit that a load must stay below.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LoadLimit {
    /// Of the response time.
    Response {
        /// Which figure of it.
        figure: Figure,
        /// What it must stay below.
        below: Nanos,
    },
    /// Of the ops that fail.
    Errors {
        /// Percent of the ops that come due.
        below_percent: f64,
    },
}

impl LoadLimit {
    /// What is limited: `p99`, `errors`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Response { figure, .. } => figure.as_str(),
            Self::Errors { .. } => ERRORS,
        }
    }
}

impl fmt::Display for LoadLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Response { figure, below } => {
                write!(f, "{}<{}", figure.as_str(), span_text(*below))
            }
            Self::Errors { below_percent } => write!(f, "{ERRORS}<{below_percent}%"),
        }
    }
}

/// The limits within which a load must stay: `p99<50ms,errors<0.1%`. At least one, each figure
/// once. That the load is held is a limit always.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Within {
    limits: Vec<LoadLimit>,
}

/// Name of the share of failed ops.
const ERRORS: &str = "errors";

/// Limits that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{part:?}: {what}")]
pub struct WithinError {
    /// The limit that is wrong, as written.
    pub part: String,
    /// What is wrong with it, and what to write.
    pub what: String,
}

impl Within {
    /// In the order they were written.
    pub fn limits(&self) -> &[LoadLimit] {
        &self.limits
    }

    /// Errors are limited by the user, not by the suite.
    pub fn limits_errors(&self) -> bool {
        self.limits.iter().any(|limit| matches!(limit, LoadLimit::Errors { .. }))
    }
}

impl FromStr for Within {
    type Err = WithinError;

    fn from_str(text: &str) -> Result<Self, WithinError> {
        let mut limits: Vec<LoadLimit> = Vec::new();
        for part in text.split(',') {
            let wrong = |what| WithinError { part: part.trim().to_owned(), what };
            let limit = limit(part).map_err(wrong)?;
            if limits.iter().any(|earlier| earlier.name() == limit.name()) {
                return Err(wrong(format!("{} has a limit already; write one", limit.name())));
            }
            limits.push(limit);
        }
        Ok(Self { limits })
    }
}

fn limit(part: &str) -> Result<LoadLimit, String> {
    let (name, value) = part
        .split_once('<')
        .ok_or("write a figure, < and its limit, for example p99<50ms or errors<0.1%")?;
    let (name, value) = (name.trim(), value.trim());
    if name == ERRORS {
        return errors(value);
    }
    let figure = Figure::named(name).ok_or_else(|| {
        let known = Figure::ALL.map(Figure::as_str).join(", ");
        format!("{name:?} cannot be limited; write one of {known}, {ERRORS}")
    })?;
    match parse_span(value).filter(|below| *below > Nanos::ZERO) {
        Some(below) => Ok(LoadLimit::Response { figure, below }),
        None => Err(format!(
            "{value:?} is no span of time above zero; write one with its unit, for example \
             {name}<50ms"
        )),
    }
}

fn errors(value: &str) -> Result<LoadLimit, String> {
    let percent = value.strip_suffix('%').and_then(|number| number.trim().parse::<f64>().ok());
    match percent.filter(|percent| *percent > 0.0 && *percent <= 100.0) {
        Some(below_percent) => Ok(LoadLimit::Errors { below_percent }),
        None => Err(format!(
            "{value:?} is no share above 0 %, up to 100 %; write it in percent, for example \
             {ERRORS}<0.1%"
        )),
    }
}

impl fmt::Display for Within {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let limits: Vec<String> = self.limits.iter().map(ToString::to_string).collect();
        f.write_str(&limits.join(","))
    }
}

impl TryFrom<String> for Within {
    type Error = WithinError;

    fn try_from(text: String) -> Result<Self, WithinError> {
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

/// One load point, held against the limits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
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
    /// Why, for a person.
    pub why: String,
    /// One for each limit, in their order.
    pub figures: Vec<LimitFigure>,
}

/// What the evidence says of a load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TryStanding {
    /// Every figure and its interval lie below the limits.
    Within,
    /// Some figure and its interval lie above, or the load was not held.
    NotWithin,
    /// A limit lies inside the interval of its figure.
    Undecided,
    /// The measurement was at fault, so that nothing is known of the server.
    NotJudged,
}

impl TryStanding {
    /// For a person.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Within => "within",
            Self::NotWithin => "not within",
            Self::Undecided => "undecided",
            Self::NotJudged => "not judged",
        }
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
    /// What it must stay below.
    pub below: f64,
}

impl LimitFigure {
    /// Below the limit, as measured.
    pub fn holds(&self) -> bool {
        !self.lower_bound && self.value.is_some_and(|value| value < self.below)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn wrong(text: &str, parts: &[&str]) {
        let error = text.parse::<Within>().unwrap_err().to_string();
        for part in parts {
            assert!(error.contains(part), "{part:?} in {error}");
        }
    }

    #[test]
    fn limits_read_as_people_write_them() {
        let within: Within = " p99 < 50 ms, errors<0.1 %,mean<1.5ms,p99.9<2s".parse().unwrap();
        assert_eq!(within.to_string(), "p99<50ms,errors<0.1%,mean<1500us,p999<2s");
        assert_eq!(within.limits().len(), 4);
        assert!(within.limits_errors());
        let errors = within.limits()[1];
        assert_eq!(errors, LoadLimit::Errors { below_percent: 0.1 });
    }

    #[test]
    fn a_mistake_is_told_with_its_place_and_what_to_write() {
        wrong("", &["\"\"", "for example p99<50ms"]);
        wrong("p99<50", &["\"p99<50\"", "\"50\" is no span of time", "p99<50ms"]);
        wrong("p99<50ms,p98<1s", &["\"p98<1s\"", "p50, p90, p95, p99, p999, max, errors"]);
        wrong("errors<0.001", &["write it in percent", "errors<0.1%"]);
        wrong("errors<0%", &["above 0 %"]);
        wrong("p99<0ms", &["above zero"]);
        wrong("p99<1s,p99<2s", &["p99 has a limit already"]);
        wrong("p99>50ms", &["for example p99<50ms"]);
    }

    proptest! {
        #[test]
        fn limits_read_back_as_they_are_written(
            spans in prop::collection::vec(1u64..1 << 50, 1..7), percent in 1e-9f64..100.0,
        ) {
            let figures = Figure::ALL.into_iter().zip(spans);
            let mut limits: Vec<LoadLimit> = figures
                .map(|(figure, n)| LoadLimit::Response { figure, below: Nanos(n) })
                .collect();
            limits.push(LoadLimit::Errors { below_percent: percent });
            let within = Within { limits };
            prop_assert_eq!(within.to_string().parse::<Within>().unwrap(), within);
        }
    }
}
