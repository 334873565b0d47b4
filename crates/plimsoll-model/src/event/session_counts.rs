//! What only some protocols count over the window of a load point.

use std::ops::AddAssign;

use serde::{Deserialize, Serialize};

use crate::counters::adds_up;
use crate::units::Nanos;

/// How long a page may take for its users to be content. SPECweb2009: 95 % of the pages *good*, 99 %
/// *tolerable*.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PageLimits {
    /// For a good page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub good: Option<Nanos>,
    /// For a tolerable one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tolerable: Option<Nanos>,
}

adds_up! {
    /// Counts over the window of a load point, made by sessions. *Output* is text of any kind: what
    /// a reader sees, reasoning, calls of tools.
    #[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(default, deny_unknown_fields)]
    pub struct GenerationCounts {
        /// Chunks with output that arrived in the window, of answers that did not fail.
        pub chunks: u64 => sum,
        /// Characters of output in them.
        pub characters: u64 => sum,
        /// Chunks with output that arrived in the window, of answers that failed.
        #[serde(skip_serializing_if = "is_zero")]
        pub failed_chunks: u64 => sum,
        /// Characters of output in them.
        #[serde(skip_serializing_if = "is_zero")]
        pub failed_characters: u64 => sum,
        /// Requests that ended well in the window and whose answer reported its tokens.
        pub counted_requests: u64 => sum,
        /// Output tokens of these, as reported by the server.
        pub output_tokens: u64 => sum,
        /// Their chunks with output.
        pub counted_chunks: u64 => sum,
        /// Characters of their output.
        pub counted_characters: u64 => sum,
        /// Tokens of their prompts, as reported by the server.
        pub prompt_tokens: u64 => sum,
        /// Those of them whose answer reported how much of the prompt was cached.
        pub cached_said_requests: u64 => sum,
        /// Cached tokens of their prompts.
        pub cached_prompt_tokens: u64 => sum,
        /// All tokens of their prompts.
        pub cached_of_prompt_tokens: u64 => sum,
        /// Requests that ended well in the window and whose answer did not report its tokens.
        pub uncounted_requests: u64 => sum,
        /// Of the counted, those with fewer tokens than chunks with output: they cannot be right.
        pub mismatched_requests: u64 => sum,
        /// Of the counted, those with more tokens than chunks: a chunk has several.
        pub several_a_chunk_requests: u64 => sum,
        /// Of the counted, those whose first chunk's tokens are estimated by its characters.
        pub estimated_first_chunks: u64 => sum,
        /// Of the counted, those whose `usage` contradicts itself: prompt and answer are not the
        /// total, or reasoning is more than the answer.
        #[serde(skip_serializing_if = "is_zero")]
        pub contradictory_requests: u64 => sum,
        /// Requests whose answer has fewer tokens than requested.
        pub cut_short_requests: u64 => sum,
        /// Of these, those that the server ended at a length, by their finish reason.
        #[serde(skip_serializing_if = "is_zero")]
        pub cut_at_length_requests: u64 => sum,
        /// Comments in streams that keep a connection alive.
        pub pings: u64 => sum,
    }
}

impl GenerationCounts {
    /// No answer was counted.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

adds_up! {
    /// Counts of journeys over the window of a load point.
    #[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(default, deny_unknown_fields)]
    pub struct JourneyCounts {
        /// Journeys whose first request was sent.
        pub begun: u64 => sum,
        /// Journeys whose last page was complete.
        pub completed: u64 => sum,
        /// Journeys that ended with a request that failed.
        pub failed: u64 => sum,
        /// Journeys that ended with a user who gave up.
        pub abandoned: u64 => sum,
        /// Pages that were complete.
        pub pages: u64 => sum,
        /// Redirects that were followed; each is an op of its own.
        pub redirects: u64 => sum,
        /// Cookies that were not taken, as browsers do not take them.
        pub ignored_cookies: u64 => sum,
    }
}

impl JourneyCounts {
    /// No journey was counted.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Adds a part.
pub(super) fn sum<N: AddAssign>(sum: &mut N, part: N) {
    *sum += part;
}

/// Nothing was counted.
pub(super) fn is_zero(count: &u64) -> bool {
    *count == 0
}
