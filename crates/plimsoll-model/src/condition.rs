//! Conditions on figures: `p99@4000 < 50ms`, `errors > 0.1%`, `p99 > 1.05x`, `peak_ops_per_s <
//! 20000`.
//!
//! Every flag that takes conditions reads this grammar: a figure, `@` and a load if one load point
//! is meant, `<` or `>`, and a limit with its unit. The flag decides which figures it admits
//! ([`ConditionFigure`]) and what a condition that is true means: `--fail-if` fails, `--within`
//! passes.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::goodput::GoodLimits;
use crate::suite::nearest;
use crate::units::{Nanos, parse_span};

/// The figures that a flag's conditions admit.
pub trait ConditionFigure: Clone + fmt::Debug + PartialEq + 'static {
    /// Completes the sentence "it is no figure of …".
    const OF: &'static str;
    /// Completes the sentence "write for example …".
    const EXAMPLES: &'static str;

    /// Every figure with its name, which may contain dots.
    fn all_named() -> Vec<(String, Self)>;

    /// Their names, for a message; those of a family as one.
    fn listed() -> Vec<String> {
        Self::all_named().into_iter().map(|(name, _)| name).collect()
    }

    /// The figure of that name.
    fn from_name(name: &str) -> Option<Self> {
        Self::all_named().into_iter().find(|(its, _)| its == name).map(|(_, figure)| figure)
    }

    /// In what its limit is written.
    fn unit(&self) -> LimitUnit;

    /// Each load point has its own, so that a condition may name one.
    fn is_of_point(&self) -> bool {
        false
    }
}

/// A figure compared with a limit.
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
    /// `0.95` or `95%`, a part of 1.
    Part,
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
            Self::Part => match text.strip_suffix('%') {
                Some(percent) => number(percent)? / 100.0,
                None => number(text).filter(|part| *part <= 1.0)?,
            },
            Self::Ratio => number(text.strip_suffix(['x', '×'])?).filter(|ratio| *ratio > 0.0)?,
            Self::Number => number(text)?,
        };
        (limit.is_finite() && limit >= 0.0).then_some(limit)
    }

    const fn expected(self) -> &'static str {
        match self {
            Self::Time => "span of time above zero; write one with its unit, for example 50ms",
            Self::Share => "share; write one in percent, for example 0.1%",
            Self::Part => "part of 1; write for example 0.95 or 95%",
            Self::Ratio => "ratio above zero; write one with an x, for example 1.05x",
            Self::Number => "number from 0 up",
        }
    }
}

/// A condition that cannot be read: what is wrong, where, and what to write.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConditionError {
    /// The text compares nothing; what the flag takes.
    #[error("there is no < or > in {0:?}; write for example {1}")]
    NoSign(String, &'static str),
    /// The flag has no figure of this name; of what it has figures, and their names.
    #[error("{0:?} is no figure of {1}; {2}")]
    Unknown(String, &'static str, String),
    /// What follows the `@` is no number.
    #[error("{0:?} after @ is no load; write a number, for example @4000")]
    Load(String),
    /// A figure that load points do not have, with a load.
    #[error("{0} is no figure of a load point here; leave out @{1}")]
    NotOfPoint(String, String),
    /// The limit has a wrong unit, or none, or is out of range; what it must be.
    #[error("{0:?} is no {1}")]
    Limit(String, &'static str),
    /// No bound that a load can keep; one that is.
    #[error(
        "a limit is an upper bound (for errors: above 0 %, at most 100 %), of goodput a lower one \
         (below 100 %); write for example {0}"
    )]
    NoUpperBound(&'static str),
    /// A second limit of this figure.
    #[error("{0} has a limit already; write one")]
    Twice(String),
    /// One condition of a list, and what is wrong with it.
    #[error("{0:?}: {1}")]
    Part(String, Box<Self>),
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
        let figure: F = figure_named(name)?;
        let at = load.map(|load| read_load(&figure, name, load)).transpose()?;
        let unit = figure.unit();
        let wrong = || ConditionError::Limit(right.to_owned(), unit.expected());
        let limit = unit.read(right).ok_or_else(wrong)?;
        Ok(Self { figure, at, side, limit, text: format!("{left} {symbol} {right}") })
    }
}

/// What other tools call a figure, and its name here.
const OF_OTHERS: [(&str, &str); 4] =
    [("ttft", "first_output"), ("ttfo", "first_visible"), ("itl", "chunk_gap"), ("e2el.", "")];

/// The figure of that name; `p99.9` is `p999`.
pub(crate) fn figure_named<F: ConditionFigure>(name: &str) -> Result<F, ConditionError> {
    if let Some(figure) = F::from_name(&name.replace("p99.9", "p999")) {
        return Ok(figure);
    }
    let figures = F::all_named();
    let names: Vec<&str> = figures.iter().map(|(name, _)| name.as_str()).collect();
    let ours = OF_OTHERS.iter().fold(name.to_owned(), |name, (of, our)| name.replace(of, our));
    let same = names.iter().copied().find(|name| *name == ours);
    let near = same.or_else(|| nearest(&ours, names.iter().copied()));
    let near = near.map(|near| format!("did you mean {near}? ")).unwrap_or_default();
    let help = format!("{near}known are {}", F::listed().join(", "));
    Err(ConditionError::Unknown(name.to_owned(), F::OF, help))
}

fn read_load<F: ConditionFigure>(
    figure: &F,
    name: &str,
    load: &str,
) -> Result<f64, ConditionError> {
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

/// What a good op is limited by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum GoodFigure {
    FirstOutput,
    Tpot,
    Response,
}

impl ConditionFigure for GoodFigure {
    const OF: &'static str = "a single op";
    const EXAMPLES: &'static str = "first_output<500ms,tpot<50ms,response<10s";

    fn all_named() -> Vec<(String, Self)> {
        [("first_output", Self::FirstOutput), ("tpot", Self::Tpot), ("response", Self::Response)]
            .map(|(name, figure)| (name.to_owned(), figure))
            .into()
    }

    fn unit(&self) -> LimitUnit {
        LimitUnit::Time
    }
}

impl FromStr for GoodLimits {
    type Err = ConditionError;

    fn from_str(text: &str) -> Result<Self, ConditionError> {
        let mut limits = Self::default();
        for part in text.split(',') {
            let wrong = |error| ConditionError::Part(part.trim().to_owned(), Box::new(error));
            let limit: Condition<GoodFigure> = part.parse().map_err(wrong)?;
            if limit.side != Side::Below {
                return Err(wrong(ConditionError::NoUpperBound(GoodFigure::EXAMPLES)));
            }
            let of = match limit.figure {
                GoodFigure::FirstOutput => &mut limits.first_output,
                GoodFigure::Tpot => &mut limits.tpot,
                GoodFigure::Response => &mut limits.response,
            };
            if of.replace(Nanos(limit.limit as u64)).is_some() {
                let name = part.split('<').next().unwrap_or(part).trim().to_owned();
                return Err(wrong(ConditionError::Twice(name)));
            }
        }
        Ok(limits)
    }
}

#[cfg(test)]
mod tests;
