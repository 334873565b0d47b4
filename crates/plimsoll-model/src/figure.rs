//! Figures of times, and the times within ops whose replies are streams.

use serde::{Deserialize, Serialize};

use crate::condition::{ConditionFigure, LimitUnit};
use crate::named::named;

named! {
    /// Which figure of a distribution of times.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
    pub enum Figure {
        /// Arithmetic mean.
        Mean = "mean",
        /// Median.
        P50 = "p50",
        /// 90th percentile.
        P90 = "p90",
        /// 95th percentile.
        P95 = "p95",
        /// 99th percentile.
        P99 = "p99",
        /// 99.9th percentile.
        P999 = "p999",
        /// Longest.
        Max = "max",
    }
}

named! {
    /// A time within an op.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
    pub enum StreamFigure {
        /// From due to the first byte of the reply's body.
        FirstByte = "first_byte",
        /// From due to the first chunk with output of any kind.
        FirstOutput = "first_output",
        /// From due to the first chunk with output that is no reasoning.
        FirstVisible = "first_visible",
        /// From one chunk with output to the next.
        ChunkGap = "chunk_gap",
        /// Per output token: (last chunk − first) / (tokens − 1).
        Tpot = "tpot",
        /// Per output token after the first chunk, as MLPerf Endpoints defines it.
        LaterTpot = "later_tpot",
    }
}

impl StreamFigure {
    /// For a person.
    pub const fn title(self) -> &'static str {
        match self {
            Self::FirstByte => "time to first byte",
            Self::FirstOutput => "time to first output",
            Self::FirstVisible => "time to first visible output",
            Self::ChunkGap => "chunk gap",
            Self::Tpot => "time per output token",
            Self::LaterTpot => "time per output token (MLPerf)",
        }
    }

    /// Names of figures for a message, those of these times as one.
    pub fn listed(names: impl Iterator<Item = String>) -> Vec<String> {
        let is_of_streams = |name: &String| {
            let of = name.split_once('.').map(|(of, _)| of);
            of.is_some_and(|of| Self::ALL.iter().any(|it| it.as_str() == of))
        };
        let others = names.filter(|name| !is_of_streams(name));
        let prefixes = Self::ALL.map(Self::as_str).join(", ");
        others.chain([format!("NAME.p90 or similar, with NAME one of {prefixes}")]).collect()
    }

    /// The figures of all of them, as conditions name them: `first_output.p90`.
    pub fn figures() -> impl Iterator<Item = (String, (Self, Figure))> {
        Self::ALL.into_iter().flat_map(|of| {
            Figure::ALL
                .into_iter()
                .map(move |figure| (format!("{}.{}", of.as_str(), figure.as_str()), (of, figure)))
        })
    }
}

/// A figure of users' journeys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JourneyFigure {
    /// Of the time of a page, by its name: `page.login.p95`.
    Page(String, Figure),
    /// Of the time of a completed journey, think times included: `journey.p95`.
    Time(Figure),
    /// Of the journeys that ended, the part that was completed: `journey.completed`.
    Completed,
}

impl JourneyFigure {
    const PAGE: &str = "page.";
    const JOURNEY: &str = "journey.";
    const COMPLETED: &str = "completed";
    const LISTED: &str = "page.NAME.p95, journey.p95 or similar, journey.completed";

    /// The figure of that name among those of a flag, which admits these too.
    pub(crate) fn named_among<F: ConditionFigure>(name: &str, of_flag: fn(Self) -> F) -> Option<F> {
        let others = || F::all_named().into_iter().find(|(its, _)| its == name);
        Self::from_name(name).map(of_flag).or_else(|| others().map(|(_, figure)| figure))
    }

    /// Names of a flag's figures for a message, with those of streams and of journeys as one each.
    pub(crate) fn listed_with<F: ConditionFigure>() -> Vec<String> {
        let mut listed = StreamFigure::listed(F::all_named().into_iter().map(|(name, _)| name));
        listed.push(Self::LISTED.to_owned());
        listed
    }

    /// The figure of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        let figure = |name| Figure::ALL.into_iter().find(|figure| figure.as_str() == name);
        match (name.strip_prefix(Self::PAGE), name.strip_prefix(Self::JOURNEY)) {
            (Some(of_page), _) => {
                let (page, of) = of_page.rsplit_once('.')?;
                Some(Self::Page(page.to_owned(), figure(of)?))
            }
            (_, Some(Self::COMPLETED)) => Some(Self::Completed),
            (_, Some(of)) => figure(of).map(Self::Time),
            (None, None) => None,
        }
    }

    /// As conditions name it.
    pub fn name(&self) -> String {
        match self {
            Self::Page(page, figure) => format!("{}{page}.{}", Self::PAGE, figure.as_str()),
            Self::Time(figure) => format!("{}{}", Self::JOURNEY, figure.as_str()),
            Self::Completed => format!("{}{}", Self::JOURNEY, Self::COMPLETED),
        }
    }

    /// The unit of a limit.
    pub const fn unit(&self) -> LimitUnit {
        match self {
            Self::Page(..) | Self::Time(_) => LimitUnit::Time,
            Self::Completed => LimitUnit::Part,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_of_journeys_have_names() {
        for (name, figure) in [
            ("page.login.p95", JourneyFigure::Page("login".to_owned(), Figure::P95)),
            ("page.buyer.pay-2.mean", JourneyFigure::Page("buyer.pay-2".to_owned(), Figure::Mean)),
            ("journey.p50", JourneyFigure::Time(Figure::P50)),
            ("journey.completed", JourneyFigure::Completed),
        ] {
            assert_eq!(JourneyFigure::from_name(name).as_ref(), Some(&figure));
            assert_eq!(figure.name(), name);
        }
        for name in ["page.login", "page.login.p96", "journey", "journey.begun", "p95"] {
            assert_eq!(JourneyFigure::from_name(name), None, "{name}");
        }
    }
}
