//! What streamed answers of a language model came to.

use serde::{Deserialize, Serialize};

use crate::counters::adds_up;

adds_up! {
    /// Counts over the window of a load point, made by sessions. *Output* is text of any kind: what
    /// a reader sees, reasoning, calls of tools.
    #[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(default, deny_unknown_fields)]
    pub struct GenerationCounts {
        /// Chunks with output that arrived in the window.
        pub chunks: u64 => sum,
        /// Characters of output in them.
        pub characters: u64 => sum,
        /// Requests that ended well in the window and whose answer said its tokens.
        pub counted_requests: u64 => sum,
        /// Output tokens of these, as the server says.
        pub output_tokens: u64 => sum,
        /// Their chunks with output.
        pub counted_chunks: u64 => sum,
        /// Characters of their output.
        pub counted_characters: u64 => sum,
        /// Tokens of their prompts, as the server says.
        pub prompt_tokens: u64 => sum,
        /// Those of them whose answer said how much of the prompt was cached.
        pub cached_said_requests: u64 => sum,
        /// Cached tokens of their prompts.
        pub cached_prompt_tokens: u64 => sum,
        /// All tokens of their prompts.
        pub cached_of_prompt_tokens: u64 => sum,
        /// Requests that ended well in the window and whose answer did not say its tokens.
        pub uncounted_requests: u64 => sum,
        /// Of the counted, those with fewer tokens than chunks with output: they cannot be right.
        pub mismatched_requests: u64 => sum,
        /// Of the counted, those with more tokens than chunks: a chunk holds several.
        pub several_a_chunk_requests: u64 => sum,
        /// Of the counted, those whose first chunk's tokens are estimated by its characters.
        pub estimated_first_chunks: u64 => sum,
        /// Requests whose answer has fewer tokens than were asked for.
        pub cut_short_requests: u64 => sum,
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

fn sum(sum: &mut u64, part: u64) {
    *sum += part;
}
