//! What a load point generated, of suites whose replies are streams of tokens, and a ladder of such
//! load points checked by the rules of MLPerf Endpoints (draft v1.0 of the rules). The outcome is no
//! MLPerf result: only MLCommons' own client and its checker make one.
//!
//! `docs/llm-figures.md` has the instants that each figure is taken from.

use serde::{Deserialize, Serialize};

use super::{ResponseHeatmap, TimeIntervals, TimeSummary};
use crate::figure::StreamFigure;
use crate::named::named;

/// Times within replies, lengths, and rates of output. All over ops due in the window but for the
/// rates, which are of the window.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Generation {
    /// First byte of the reply's body − due.
    pub first_byte_ns: Option<TimeSummary>,
    /// First byte of the reply's body − sent.
    pub first_byte_service_ns: Option<TimeSummary>,
    /// First chunk with output of any kind − due. An op that had none when its drain ended counts
    /// with its age.
    pub first_output_ns: Option<TimeSummary>,
    /// First chunk with output of any kind − sent.
    pub first_output_service_ns: Option<TimeSummary>,
    /// Uncertainty intervals of the time to first output.
    pub first_output_interval_ns: Option<TimeIntervals>,
    /// First chunk with output that is no reasoning − due.
    pub first_visible_ns: Option<TimeSummary>,
    /// First chunk with output that is no reasoning − sent.
    pub first_visible_service_ns: Option<TimeSummary>,
    /// Uncertainty intervals of the time to first visible output.
    pub first_visible_interval_ns: Option<TimeIntervals>,
    /// From one chunk with output to the next.
    pub chunk_gap_ns: Option<TimeSummary>,
    /// Uncertainty intervals of the chunk gaps.
    pub chunk_gap_interval_ns: Option<TimeIntervals>,
    /// Time per output token as vLLM defines it: (last chunk − first) / (tokens − 1).
    pub token_time_ns: Option<TimeSummary>,
    /// Uncertainty intervals of it.
    pub token_time_interval_ns: Option<TimeIntervals>,
    /// Time per output token as MLPerf Endpoints defines it: (last chunk − first) over the tokens
    /// after the first chunk, as the server counts them.
    pub later_token_time_ns: Option<TimeSummary>,
    /// Uncertainty intervals of it.
    pub later_token_time_interval_ns: Option<TimeIntervals>,
    /// 90th percentile of it by MLPerf's early-stopping estimate.
    pub later_token_time_p90_early_ns: Option<u64>,
    /// Times to first output across the window, for a heat map.
    pub first_output_over_time: Option<ResponseHeatmap>,
    /// Tokens of a prompt, as the server counts them.
    pub prompt_tokens: Option<CountSummary>,
    /// Tokens of an answer, as the server counts them.
    pub output_tokens: Option<CountSummary>,
    /// Chunks with output in the window, per second.
    pub chunks_per_s: Option<f64>,
    /// Characters of output in the window, per second.
    pub characters_per_s: Option<f64>,
    /// Chunks with output in the window of answers that failed; no other figure has them.
    pub failed_chunks: u64,
    /// Characters of output in them.
    pub failed_characters: u64,
    /// Output tokens in the window, per second; MLPerf's `system_tps`. `null` where no answer
    /// reported its tokens.
    pub output_tokens_per_s: Option<f64>,
    /// The same as the server's own counter grew, where its `/metrics` has one: a cross-check.
    pub server_output_tokens_per_s: Option<f64>,
    /// Uncertainty interval of `output_tokens_per_s`.
    pub output_tokens_interval_per_s: Option<[f64; 2]>,
    /// What a user gets on average: 1 / mean of the time per output token, vLLM's definition.
    pub tokens_per_s_per_user: Option<f64>,
    /// MLPerf's `tps_per_user`: 1 / p90 of the time per output token, MLPerf's definition.
    pub tps_per_user: Option<f64>,
    /// Cached tokens of all tokens of prompts; `null` where the server does not report them.
    pub cached_prompt_ratio: Option<f64>,
    /// Who counted the tokens; `null` where nobody did.
    pub token_source: Option<TokenSource>,
    /// Answers that reported their tokens.
    pub counted_requests: u64,
    /// Answers that did not.
    pub uncounted_requests: u64,
    /// Answers that reported fewer tokens than they had chunks with text, which cannot be.
    pub mismatched_requests: u64,
    /// Answers that reported more tokens than they had chunks: several in one.
    pub several_a_chunk_requests: u64,
    /// Answers whose first chunk has its tokens estimated by its share of the characters, for the
    /// time per output token as MLPerf Endpoints defines it.
    pub estimated_first_chunks: u64,
    /// Answers whose counts of tokens contradict each other.
    pub contradictory_requests: u64,
    /// Answers with fewer tokens than requested.
    pub cut_short_requests: u64,
    /// Those of them that the server ended at a length.
    pub cut_at_length_requests: u64,
    /// Where the time per output token was steady, of suites that follow MLPerf Endpoints.
    pub steady: Option<SteadyWindow>,
}

/// Who counted the tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TokenSource {
    /// The server, in the `usage` of its answers.
    Usage,
}

/// Summary of a distribution of counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CountSummary {
    /// Samples.
    pub n: u64,
    /// Mean; `null` without samples.
    pub mean: Option<f64>,
    /// Median.
    pub p50: Option<u64>,
    /// 90th percentile.
    pub p90: Option<u64>,
    /// 99th percentile.
    pub p99: Option<u64>,
    /// Largest.
    pub max: Option<u64>,
}

impl Generation {
    /// A time within ops, with its intervals.
    pub const fn times(&self, of: StreamFigure) -> Option<(&TimeSummary, Option<&TimeIntervals>)> {
        let (times, intervals) = match of {
            StreamFigure::FirstByte => (&self.first_byte_ns, &None),
            StreamFigure::FirstOutput => (&self.first_output_ns, &self.first_output_interval_ns),
            StreamFigure::FirstVisible => (&self.first_visible_ns, &self.first_visible_interval_ns),
            StreamFigure::ChunkGap => (&self.chunk_gap_ns, &self.chunk_gap_interval_ns),
            StreamFigure::Tpot => (&self.token_time_ns, &self.token_time_interval_ns),
            StreamFigure::LaterTpot => {
                (&self.later_token_time_ns, &self.later_token_time_interval_ns)
            }
        };
        match times {
            Some(times) => Some((times, intervals.as_ref())),
            None => None,
        }
    }
}

/// The points of a ladder by the regions of the rules, and what the rules still require.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Endpoints {
    /// Lowest concurrency.
    pub c_min: u32,
    /// Highest concurrency.
    pub c_max: u32,
    /// From ultra-low to high.
    pub regions: Vec<Region>,
    /// Requirements of the rules that the ladder does not meet.
    pub wanting: Vec<Wanting>,
    /// A point each, in the order of the ladder.
    pub points: Vec<EndpointsPoint>,
}

/// A range of concurrencies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Region {
    /// Which.
    pub name: RegionName,
    /// Lowest concurrency in it.
    pub from: u32,
    /// Highest concurrency in it; below `from` where it is empty.
    pub to: u32,
    /// Valid points in it.
    pub points: u32,
}

named! {
    fn as_str;
    /// Which region.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum RegionName {
        /// 1 to 32 streams.
        UltraLow = "ultra-low",
        /// The first third between the lowest and the highest concurrency, by logarithms.
        Low = "low",
        /// The second.
        Medium = "medium",
        /// The third.
        High = "high",
    }
}

/// A requirement of the rules that a ladder does not meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Wanting {
    /// More points.
    Points {
        /// Valid points of the ladder.
        points: u32,
        /// The least the rules accept.
        points_min: u32,
    },
    /// A point in this region.
    Region {
        /// Which.
        name: RegionName,
    },
    /// A highest concurrency above 32.
    HighestConcurrency,
}

/// A load point by the rules' own figures.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EndpointsPoint {
    /// Position in the ladder.
    pub position: u32,
    /// Streams at a time.
    pub concurrency: u32,
    /// The highest region that it is in.
    pub region: Option<RegionName>,
    /// Output tokens per second.
    pub system_tps: Option<f64>,
    /// 1 / p90 of the time per output token after the first chunk.
    pub tps_per_user: Option<f64>,
    /// p90 of the time to first output.
    pub ttft_p90_ns: Option<u64>,
    /// p90 of the time per output token after the first chunk.
    pub tpot_p90_ns: Option<u64>,
    /// The same by the rules' early-stopping estimate: `null` below 64 samples.
    pub tpot_p90_early_ns: Option<u64>,
    /// Where the point was steady.
    pub steady: SteadyWindow,
}

/// Where the time per output token of a load point was steady.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SteadyWindow {
    /// Was there enough to look for a steady window?
    pub status: SteadyStatus,
    /// Outcome of the search; `null` where there was not enough.
    pub verdict: Option<SteadyVerdict>,
    /// First pass of the window found, from 0.
    pub first_pass: Option<u32>,
    /// How many passes it has.
    pub passes: Option<u32>,
    /// How long it is.
    pub seconds: Option<f64>,
}

named! {
    /// Was there enough to look for a steady window?
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
    pub enum SteadyStatus {
        /// Yes.
        Windowable = "windowable",
        /// The load point was shorter than the rules require.
        InsufficientDuration = "insufficient_duration",
        /// It had fewer passes than the rules require.
        #[default]
        InsufficientPasses = "insufficient_passes",
        /// Not even one pass over the data set was completed.
        PartialDataset = "partial_dataset",
    }
}

named! {
    /// Outcome of the search for a steady window.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
    pub enum SteadyVerdict {
        /// There is one.
        Steady = "steady",
        /// The time per output token rose all the time.
        DriftingUp = "drifting_up",
        /// It fell all the time.
        DriftingDown = "drifting_down",
        /// It changed its level at once.
        Anomaly = "anomaly",
        /// None was found, for no such reason.
        NotFound = "not_found",
    }
}
