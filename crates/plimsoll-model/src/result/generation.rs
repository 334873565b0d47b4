//! What a load point generated, of suites whose replies are streams of tokens. `docs/llm-figures.md`
//! has the instants that each figure is taken from.

use serde::{Deserialize, Serialize};

use super::{ResponseOverTime, SteadyWindow, TimeIntervals, TimeSummary};
use crate::figure::StreamFigure;

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
    /// Uncertainty intervals of the gaps.
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
    pub first_output_over_time: Option<ResponseOverTime>,
    /// Tokens of a prompt, as the server counts them.
    pub prompt_tokens: Option<CountSummary>,
    /// Tokens of an answer, as the server counts them.
    pub output_tokens: Option<CountSummary>,
    /// Chunks with output in the window, per second.
    pub chunks_per_s: Option<f64>,
    /// Characters of output in the window, per second.
    pub characters_per_s: Option<f64>,
    /// Output tokens in the window, per second; MLPerf's `system_tps`. `null` where no answer said
    /// its tokens.
    pub output_tokens_per_s: Option<f64>,
    /// The same as the server's own counter grew, where its `/metrics` has one: a cross-check.
    pub server_output_tokens_per_s: Option<f64>,
    /// Uncertainty interval of `output_tokens_per_s`.
    pub output_tokens_interval_per_s: Option<[f64; 2]>,
    /// What a user gets on average: 1 / mean of the time per output token, vLLM's definition.
    pub tokens_per_s_per_user: Option<f64>,
    /// MLPerf's `tps_per_user`: 1 / p90 of the time per output token, MLPerf's definition.
    pub tps_per_user: Option<f64>,
    /// Cached tokens of all tokens of prompts; `null` where the server does not say.
    pub cached_prompt_ratio: Option<f64>,
    /// Who counted the tokens; `null` where nobody did.
    pub token_source: Option<TokenSource>,
    /// Answers that said their tokens.
    pub counted_requests: u64,
    /// Answers that did not.
    pub uncounted_requests: u64,
    /// Answers that said fewer tokens than they had chunks with text, which cannot be.
    pub mismatched_requests: u64,
    /// Answers that said more tokens than they had chunks: several in one.
    pub several_a_chunk_requests: u64,
    /// Answers whose first chunk has its tokens estimated by its share of the characters, for the
    /// time per output token as MLPerf Endpoints defines it.
    pub estimated_first_chunks: u64,
    /// Answers with fewer tokens than were asked for.
    pub cut_short_requests: u64,
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
