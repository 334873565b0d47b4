//! Figures of times, and the times within ops whose replies are streams.

use serde::{Deserialize, Serialize};

/// Which figure of a distribution of times.
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
    /// Every one.
    pub const ALL: [Self; 7] =
        [Self::Mean, Self::P50, Self::P90, Self::P95, Self::P99, Self::P999, Self::Max];

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

/// A time within an op.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamFigure {
    /// From due to the first byte of the reply's body.
    FirstByte,
    /// From due to the first chunk with output of any kind.
    FirstOutput,
    /// From due to the first chunk with output that is no reasoning.
    FirstVisible,
    /// From one chunk with output to the next.
    ChunkGap,
    /// Per output token: (last chunk − first) / (tokens − 1).
    Tpot,
    /// Per output token after the first chunk, as MLPerf Endpoints defines it.
    LaterTpot,
}

impl StreamFigure {
    /// Every one.
    pub const ALL: [Self; 6] = [
        Self::FirstByte,
        Self::FirstOutput,
        Self::FirstVisible,
        Self::ChunkGap,
        Self::Tpot,
        Self::LaterTpot,
    ];

    /// The word for it in conditions.
    pub const fn word(self) -> &'static str {
        match self {
            Self::FirstByte => "first_byte",
            Self::FirstOutput => "first_output",
            Self::FirstVisible => "first_visible",
            Self::ChunkGap => "chunk_gap",
            Self::Tpot => "tpot",
            Self::LaterTpot => "later_tpot",
        }
    }

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
            of.is_some_and(|of| Self::ALL.iter().any(|it| it.word() == of))
        };
        let others = names.filter(|name| !is_of_streams(name));
        let words = Self::ALL.map(Self::word).join(", ");
        others.chain([format!("NAME.p90 and the like, with NAME one of {words}")]).collect()
    }

    /// The figures of all of them, as conditions name them: `first_output.p90`.
    pub fn figures() -> impl Iterator<Item = (String, (Self, Figure))> {
        Self::ALL.into_iter().flat_map(|of| {
            Figure::ALL
                .into_iter()
                .map(move |figure| (format!("{}.{}", of.word(), figure.as_str()), (of, figure)))
        })
    }
}
