//! Times within ops whose replies are streams: which there are, and what they are called.

use crate::capacity::Figure;

/// A time within an op.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamFigure {
    /// From due to the first byte of the reply's body.
    FirstByte,
    /// From due to the first chunk with output of any kind.
    FirstOutput,
    /// From due to the first chunk with output that a reader sees.
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
