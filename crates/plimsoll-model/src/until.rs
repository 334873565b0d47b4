//! The precision that load points are measured to (`--until`): `p99±5%`.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::assignment::Purpose;
use crate::condition::{ConditionError, ConditionFigure, LimitUnit, figure_named};
use crate::figure::Figure;
use crate::gate::GateFigure;
use crate::units::Nanos;

/// How long a load point is measured: until its figure is as precise as this.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Until {
    /// What it is measured to.
    pub precision: Precision,
    /// Pilots and window of a load point together last no longer than this; absent: ten usual
    /// windows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_most_ns: Option<Nanos>,
}

/// Usual windows that pilots and window of a load point may take where the user sets no limit.
const WINDOWS_MAX: u64 = 10;

impl Until {
    /// How long pilots and window of a load point may last together.
    pub fn at_most(&self, usual: Nanos) -> Nanos {
        self.at_most_ns.unwrap_or(Nanos(usual.0 * WINDOWS_MAX))
    }
}

/// Whether a load point of this purpose is measured until its figure is precise: those of a ladder,
/// or the tries of a search for a capacity.
pub const fn applies(purpose: Purpose, searches_capacity: bool) -> bool {
    match purpose {
        Purpose::Ladder | Purpose::Pilot => true,
        Purpose::Probe | Purpose::Verify => searches_capacity,
        Purpose::Profile => false,
    }
}

/// A figure, and half the width of its uncertainty interval as a share of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Precision {
    /// Which figure of a load point.
    pub figure: GateFigure,
    /// The share, between 0 and 1.
    pub ratio: f64,
}

/// Figures of a load point that have an uncertainty interval.
#[derive(Clone, Debug, PartialEq)]
struct PreciseFigure(GateFigure);

impl ConditionFigure for PreciseFigure {
    const OF: &'static str = "a load point with an interval";
    const EXAMPLES: &'static str = "'p99±5%', 'mean±2%' or 'achieved_ops_per_s±1%'";

    fn all_named() -> Vec<(String, Self)> {
        use GateFigure::{Achieved, Goodput, Response, Service, Stream, TokensPerS};
        let has_interval = |figure: &GateFigure| match figure {
            Response(of) | Service(of) | Stream(_, of) => *of != Figure::Max,
            figure => matches!(figure, Goodput | TokensPerS | Achieved),
        };
        let all = GateFigure::all_named().into_iter();
        all.filter(|(_, it)| has_interval(it)).map(|(name, it)| (name, Self(it))).collect()
    }

    fn unit(&self) -> LimitUnit {
        LimitUnit::Share
    }
}

impl FromStr for Precision {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        const EXAMPLES: &str = PreciseFigure::EXAMPLES;
        let parts = ["±", "+-", "+/-"].iter().find_map(|sign| text.split_once(sign));
        let Some((name, share)) = parts else {
            return Err(format!("there is no ± (or +-) in {text:?}; write for example {EXAMPLES}"));
        };
        let PreciseFigure(figure) =
            figure_named(name.trim()).map_err(|e: ConditionError| e.to_string())?;
        let percent = share.trim().strip_suffix('%').and_then(|it| it.trim().parse::<f64>().ok());
        match percent {
            Some(percent) if percent > 0.0 && percent < 100.0 => {
                Ok(Self { figure, ratio: percent / 100.0 })
            }
            _ => Err(format!(
                "{:?} is no share above 0 % and below 100 %; write for example {EXAMPLES}",
                share.trim()
            )),
        }
    }
}

impl fmt::Display for Precision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named = PreciseFigure::all_named().into_iter().find(|(_, it)| it.0 == self.figure);
        let name = named.map(|(name, _)| name).unwrap_or_default();
        // A hundredth of a percent is no matter of rounding.
        let percent = (self.ratio * 1e6).round() / 1e4;
        write!(f, "{name}±{percent}%")
    }
}

impl TryFrom<String> for Precision {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<Precision> for String {
    fn from(precision: Precision) -> Self {
        precision.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figure::StreamFigure;

    #[test]
    fn a_precision_is_read_in_its_spellings_and_written_in_one() {
        let p99 = Precision { figure: GateFigure::Response(Figure::P99), ratio: 0.05 };
        for text in ["p99±5%", "p99+-5%", " p99 +/- 5 %"] {
            assert_eq!(text.parse(), Ok(p99.clone()), "{text}");
        }
        assert_eq!(p99.to_string(), "p99±5%");
        let precisions = ["p99.9±2.5%", "achieved_ops_per_s±0.3%", "first_output.p90±10%"];
        let figures = precisions.map(|text| text.parse::<Precision>().unwrap());
        assert_eq!(figures[0].figure, GateFigure::Response(Figure::P999));
        assert_eq!(figures[1].to_string(), precisions[1]);
        let first_output = GateFigure::Stream(StreamFigure::FirstOutput, Figure::P90);
        assert_eq!(figures[2].figure, first_output);
    }

    #[test]
    fn what_is_no_precision_is_refused_with_an_example() {
        let error = |text: &str| text.parse::<Precision>().unwrap_err();
        for text in ["p99±0%", "p99±100%", "p99±5", "p99±", "p99±-1%", "p99±nan%"] {
            assert!(error(text).contains("is no share above 0 %"), "{text}: {}", error(text));
        }
        assert!(error("p99 5%").contains("there is no ±"));
        for text in ["errors±5%", "max±5%", "p98±5%", "peak_ops_per_s±1%"] {
            let error = error(text);
            assert!(error.contains("no figure of a load point with an interval"), "{error}");
        }
    }
}
