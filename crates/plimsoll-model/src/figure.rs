//! Figures of times, and the times within ops whose replies are streams.

use serde::{Deserialize, Serialize};

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
