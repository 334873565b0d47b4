//! Conditions under which a run fails (`--fail-if`): `p99 > 50ms`, `peak_ops_per_s < 20000`,
//! `errors > 0.1%`, `p99@4000 > 20ms`.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::capacity::Figure;
use crate::suite::nearest;
use crate::units::{Nanos, parse_span};

/// A condition under which a run fails.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Gate {
    /// What is looked at.
    pub figure: GateFigure,
    /// Of this load point; `None`: of the worst one, for figures of points.
    pub at: Option<f64>,
    /// Which side of the limit fails.
    pub fails: Side,
    /// In the figure's own unit: nanoseconds, percent, or as the result has it.
    pub limit: f64,
    /// As written.
    expr: String,
}

/// The gates of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Gates {
    /// In the order they were given.
    pub all: Vec<Gate>,
    /// A limit within a figure's uncertainty interval fails the run.
    #[serde(default)]
    pub unsure_fails: bool,
}

impl Gates {
    /// There is none.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }
}

/// A side of a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// `>`
    Above,
    /// `<`
    Below,
}

/// What a gate looks at. Names are those of `result.json`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GateFigure {
    /// Response time of a point, in nanoseconds.
    Response(Figure),
    /// Service time of a point, in nanoseconds.
    Service(Figure),
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
}

/// Begins the names of service times.
const SERVICE: &str = "service_";

impl GateFigure {
    const OTHERS: [(&'static str, Self); 9] = [
        ("errors", Self::Errors),
        ("achieved_ops_per_s", Self::Achieved),
        ("value", Self::Value),
        ("peak_ops_per_s", Self::PeakOps),
        ("peak_bytes_per_s", Self::PeakBytes),
        ("overall_response_ms.origin", Self::OverallOrigin),
        ("overall_response_ms.span", Self::OverallSpan),
        ("score", Self::Score),
        ("capacity", Self::Capacity),
    ];

    fn named(name: &str) -> Option<Self> {
        if let Some(service) = name.strip_prefix(SERVICE) {
            return Figure::named(service).map(Self::Service);
        }
        let other = || Self::OTHERS.iter().find(|(other, _)| *other == name);
        Figure::named(name).map(Self::Response).or_else(|| other().map(|(_, figure)| *figure))
    }

    fn names() -> Vec<&'static str> {
        let times = Figure::ALL.map(Figure::as_str);
        times.into_iter().chain(Self::OTHERS.map(|(name, _)| name)).collect()
    }

    /// It is a time.
    pub const fn is_time(self) -> bool {
        matches!(
            self,
            Self::Response(_) | Self::Service(_) | Self::OverallOrigin | Self::OverallSpan
        )
    }

    /// Every load point has its own.
    pub const fn is_of_point(self) -> bool {
        matches!(self, Self::Response(_) | Self::Service(_) | Self::Errors | Self::Achieved)
    }
}

/// A condition that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct GateError(String);

impl GateError {
    pub(crate) const fn new(what: String) -> Self {
        Self(what)
    }
}

impl FromStr for Gate {
    type Err = GateError;

    fn from_str(text: &str) -> Result<Self, GateError> {
        const EXAMPLE: &str = "write for example 'p99 > 50ms', 'errors > 0.1%', \
                               'peak_ops_per_s < 20000' or 'p99@4000 > 20ms'";
        let wrong = |what: String| Err(GateError(what));
        let Some(at) = text.find(['<', '>']) else {
            return wrong(format!("there is no < or > in it; {EXAMPLE}"));
        };
        let fails = if text[at..].starts_with('>') { Side::Above } else { Side::Below };
        let (left, right) = (text[..at].trim(), text[at + 1..].trim_start_matches('=').trim());
        let (name, point) = match left.split_once('@') {
            Some((name, point)) => (name.trim(), Some(point.trim())),
            None => (left, None),
        };
        let Some(figure) = GateFigure::named(name) else {
            let names = GateFigure::names();
            let help = match nearest(name, names.iter().copied()) {
                Some(near) => format!("did you mean {near}?"),
                None => format!("known are {}, and times with {SERVICE} before", names.join(", ")),
            };
            return wrong(format!("{name:?} is no figure of a result; {help}"));
        };
        let at = match point.map(str::parse::<f64>) {
            None => None,
            Some(Ok(load)) if figure.is_of_point() && load.is_finite() => Some(load),
            Some(Ok(_)) => return wrong(format!("{name} is the run's, and no load point's")),
            Some(Err(_)) => return wrong(format!("what follows @ is no load; {EXAMPLE}")),
        };
        let limit = read_limit(figure, right).map_err(GateError)?;
        let sign = if fails == Side::Above { '>' } else { '<' };
        Ok(Self { figure, at, fails, limit, expr: format!("{left} {sign} {right}") })
    }
}

fn read_limit(figure: GateFigure, text: &str) -> Result<f64, String> {
    if figure.is_time() {
        return match parse_span(text).filter(|span| *span > Nanos::ZERO) {
            Some(span) => Ok(span.0 as f64),
            None => Err(format!("{text:?} is no span of time; write it with its unit, like 50ms")),
        };
    }
    let number = match figure {
        GateFigure::Errors => match text.strip_suffix('%') {
            Some(percent) => percent.trim(),
            None => return Err(format!("{text:?} is no share; write it in percent, like 0.1%")),
        },
        _ => text,
    };
    let number = number.replace(['_', ','], "").parse::<f64>().ok();
    number
        .filter(|number| number.is_finite() && *number >= 0.0)
        .ok_or_else(|| format!("{text:?} is no number from 0 up"))
}

impl fmt::Display for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.expr)
    }
}

impl TryFrom<String> for Gate {
    type Error = GateError;

    fn try_from(text: String) -> Result<Self, GateError> {
        text.parse()
    }
}

impl From<Gate> for String {
    fn from(gate: Gate) -> Self {
        gate.expr
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
    /// Lower end of its uncertainty interval; the figure itself where none is stated.
    pub low: Option<f64>,
    /// Upper end; `null` where the figure is a lower bound.
    pub high: Option<f64>,
    /// Load of the point it is of; absent for figures of the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load: Option<f64>,
}

/// What a gate came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GateState {
    /// The whole interval is on the good side.
    Held,
    /// The whole interval is on the side that fails.
    Failed,
    /// The limit lies within the interval.
    Unsure,
    /// There is no such figure: no point counts, or the sample is too small. The run fails.
    Unknown,
}

impl GateState {
    /// The word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Held => "held",
            Self::Failed => "failed",
            Self::Unsure => "unsure",
            Self::Unknown => "unknown",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gates_read_as_people_write_them_and_are_kept_as_written() {
        let gate: Gate = "p99>50ms".parse().unwrap();
        assert_eq!((gate.figure, gate.limit), (GateFigure::Response(Figure::P99), 50e6));
        assert_eq!(
            (gate.at, gate.fails, gate.to_string()),
            (None, Side::Above, "p99 > 50ms".into())
        );
        let point: Gate = "service_p99.9@4000 >= 20ms".parse().unwrap();
        assert_eq!((point.figure, point.at), (GateFigure::Service(Figure::P999), Some(4_000.0)));
        let peak: Gate = "peak_ops_per_s < 20_000".parse().unwrap();
        assert_eq!((peak.fails, peak.limit), (Side::Below, 20_000.0));
        let errors: Gate = "errors > 0.1%".parse().unwrap();
        assert_eq!((errors.figure, errors.limit), (GateFigure::Errors, 0.1));
        let kept = serde_json::to_string(&point).unwrap();
        assert_eq!(serde_json::from_str::<Gate>(&kept).unwrap(), point);
    }

    #[test]
    fn what_cannot_be_a_gate_says_what_to_write() {
        let said = |text: &str| text.parse::<Gate>().unwrap_err().to_string();
        assert!(said("p99").contains("p99 > 50ms"));
        assert!(said("p98 > 5ms").contains("did you mean p9"));
        assert!(said("p99 > 50").contains("with its unit"));
        assert!(said("errors > 0.1").contains("in percent"));
        assert!(said("peak_ops_per_s@5 < 1").contains("no load point's"));
        assert!(said("p99@x > 5ms").contains("no load;"));
        assert!(said("value < fast").contains("no number"));
    }
}
