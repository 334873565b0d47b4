//! Conditions on figures: `p99@4000 < 50ms`, `errors > 0.1%`, `p99 > 1.05x`, `peak_ops_per_s < 20000`.
//!
//! Every flag that takes conditions reads this grammar: a figure, `@` and a load if one load point
//! is meant, `<` or `>`, and a limit with its unit. The flag decides which figures it admits
//! ([`ConditionFigure`]) and what a condition that is true means: `--fail-if` fails, `--within`
//! passes.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::suite::nearest;
use crate::units::{Nanos, parse_span};

/// The figures that a flag's conditions admit.
pub trait ConditionFigure: Copy + fmt::Debug + PartialEq + 'static {
    /// Completes the sentence "it is no figure of …".
    const OF: &'static str;
    /// Completes the sentence "write for example …".
    const EXAMPLES: &'static str;

    /// The figure of that name. Names may contain dots.
    fn named(name: &str) -> Option<Self>;

    /// Every name, for a message.
    fn names() -> Vec<&'static str>;

    /// In what its limit is written.
    fn unit(self) -> LimitUnit;

    /// Each load point has its own, so that a condition may name one.
    fn is_of_point(self) -> bool;
}

/// A figure held against a limit.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String", bound = "F: ConditionFigure")]
pub struct Condition<F> {
    /// What is looked at.
    pub figure: F,
    /// Of this load point; `None`: of the worst one, for figures of points.
    pub at: Option<f64>,
    /// Where the figure must lie for the condition to be true.
    pub side: Side,
    /// Nanoseconds, percent, a ratio or a number, by the figure's unit.
    pub limit: f64,
    /// As written, with one space around the sign.
    text: String,
}

/// A side of a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// `>`
    Above,
    /// `<`
    Below,
}

impl Side {
    /// Whether an interval lies on this side as a whole; `None` if the limit lies within it.
    pub fn holds(self, limit: f64, [low, high]: [f64; 2]) -> Option<bool> {
        let (all, nothing) = match self {
            Self::Above => (low > limit, high <= limit),
            Self::Below => (high < limit, low >= limit),
        };
        (all || nothing).then_some(all)
    }
}

/// In what the limit of a figure is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LimitUnit {
    /// `50ms`, in nanoseconds.
    Time,
    /// `0.1%`, in percent.
    Share,
    /// `1.05x`, a ratio of two runs.
    Ratio,
    /// `20000`, in the figure's own unit.
    Number,
}

impl LimitUnit {
    fn read(self, text: &str) -> Option<f64> {
        let number = |text: &str| text.trim().replace(['_', ','], "").parse::<f64>().ok();
        let limit = match self {
            Self::Time => parse_span(text).filter(|span| *span > Nanos::ZERO)?.0 as f64,
            Self::Share => number(text.strip_suffix('%')?)?,
            Self::Ratio => number(text.strip_suffix(['x', '×'])?).filter(|ratio| *ratio > 0.0)?,
            Self::Number => number(text)?,
        };
        (limit.is_finite() && limit >= 0.0).then_some(limit)
    }

    const fn wanted(self) -> &'static str {
        match self {
            Self::Time => "span of time above zero; write one with its unit, for example 50ms",
            Self::Share => "share; write one in percent, for example 0.1%",
            Self::Ratio => "ratio above zero; write one with an x, for example 1.05x",
            Self::Number => "number from 0 up",
        }
    }
}

/// A condition that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConditionError {
    /// The text compares nothing; conditions that the flag takes.
    #[error("there is no < or > in {0:?}; write for example {1}")]
    NoSign(String, &'static str),
    /// The flag admits no figure of this name.
    #[error("{name:?} is no figure of {of}; {}known are {}", meant(*.near), .known.join(", "))]
    Unknown {
        /// As written.
        name: String,
        /// What the flag takes figures of.
        of: &'static str,
        /// The known name that is most like it.
        near: Option<&'static str>,
        /// Every name that the flag admits.
        known: Vec<&'static str>,
    },
    /// What follows the `@` is no number.
    #[error("{0:?} after @ is no load; write a number, for example @4000")]
    Load(String),
    /// A figure that load points do not have, and a load.
    #[error("{0} is no figure of a load point here; leave out @{1}")]
    NotOfPoint(String, String),
    /// The limit has a wrong unit, or none, or is out of range.
    #[error("{text:?} is no {}", .unit.wanted())]
    Limit {
        /// As written.
        text: String,
        /// What the figure is limited in.
        unit: LimitUnit,
    },
    /// A condition that is no limit of a load; limits that are.
    #[error(
        "a limit is an upper bound, for errors above 0 % and at most 100 %; write for example {0}"
    )]
    NoLimit(&'static str),
    /// A second limit of this figure.
    #[error("{0} has a limit already; write one")]
    Twice(&'static str),
    /// One condition of a list, and what is wrong with it.
    #[error("{0:?}: {1}")]
    Part(String, Box<Self>),
}

fn meant(near: Option<&'static str>) -> String {
    near.map(|near| format!("did you mean {near}? ")).unwrap_or_default()
}

impl<F: ConditionFigure> FromStr for Condition<F> {
    type Err = ConditionError;

    fn from_str(text: &str) -> Result<Self, ConditionError> {
        let no_sign = || ConditionError::NoSign(text.trim().to_owned(), F::EXAMPLES);
        let sign = text.find(['<', '>']).ok_or_else(no_sign)?;
        let (side, symbol) =
            if text[sign..].starts_with('>') { (Side::Above, '>') } else { (Side::Below, '<') };
        let (left, right) = (text[..sign].trim(), text[sign + 1..].trim_start_matches('=').trim());
        let (name, load) = match left.split_once('@') {
            Some((name, load)) => (name.trim(), Some(load.trim())),
            None => (left, None),
        };
        let figure = F::named(name).ok_or_else(|| unknown::<F>(name))?;
        let at = load.map(|load| read_load(figure, name, load)).transpose()?;
        let unit = figure.unit();
        let limit = unit.read(right);
        let limit = limit.ok_or_else(|| ConditionError::Limit { text: right.to_owned(), unit })?;
        Ok(Self { figure, at, side, limit, text: format!("{left} {symbol} {right}") })
    }
}

fn unknown<F: ConditionFigure>(name: &str) -> ConditionError {
    let known = F::names();
    let near = nearest(name, known.iter().copied());
    ConditionError::Unknown { name: name.to_owned(), of: F::OF, near, known }
}

fn read_load<F: ConditionFigure>(figure: F, name: &str, load: &str) -> Result<f64, ConditionError> {
    let number = load.parse::<f64>().ok().filter(|number| number.is_finite());
    let number = number.ok_or_else(|| ConditionError::Load(load.to_owned()))?;
    match figure.is_of_point() {
        true => Ok(number),
        false => Err(ConditionError::NotOfPoint(name.to_owned(), load.to_owned())),
    }
}

/// Two spellings of a condition are equal.
impl<F: PartialEq> PartialEq for Condition<F> {
    fn eq(&self, other: &Self) -> bool {
        (&self.figure, self.at, self.side, self.limit)
            == (&other.figure, other.at, other.side, other.limit)
    }
}

impl<F> fmt::Display for Condition<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl<F: ConditionFigure> TryFrom<String> for Condition<F> {
    type Error = ConditionError;

    fn try_from(text: String) -> Result<Self, ConditionError> {
        text.parse()
    }
}

impl<F> From<Condition<F>> for String {
    fn from(condition: Condition<F>) -> Self {
        condition.text
    }
}

#[cfg(test)]
mod tests;
