//! One streamed answer: its events, what each read of the connection adds to it, and the figures at
//! its end.
//!
//! *Output* is text of any kind that is not empty: content, reasoning, calls of tools, refusals. A
//! role, `content:""` and comments are no output. A *chunk* is an event with output.
//!
//! Chunks of one read count as arrived together: the kernel stamps what a read returns once. So a
//! read has one instant, the interval from the previous read with output is recorded once, and its
//! chunks are counted. An interval of zero for each chunk after the first would measure how the
//! network or this program bundled them, and would hide the pause before them among zeros. For the
//! same reason the *first chunk* of a token time is all output of the first read with output.

use plimsoll_http::excerpt::quoted;
use plimsoll_model::outcome::ErrorClass;
use plimsoll_model::units::Nanos;

use super::wire::json::{Malformed, Text};
use super::wire::picks::{Picks, Usage, pick};
use super::wire::sse::EVENT_BYTES_MAX;

/// Characters kept of an error's text.
const MESSAGE_CHARACTERS_MAX: usize = 300;
/// The data of the event that ends a stream.
const DONE: &[u8] = b"[DONE]";
/// Reasons to finish that are failures of the server.
const FAILED_FINISHES: [&str; 2] = ["abort", "error"];
/// The reason of an answer that has as many tokens as the server allows.
const AT_LENGTH: &str = "length";

/// One answer as far as it has come. Without heap unless it fails.
#[derive(Debug, Default)]
pub struct Answer {
    /// Of the current read.
    read: Output,
    has_visible: bool,
    first: Option<First>,
    last_at: Nanos,
    all: Output,
    usage: Usage,
    is_done: bool,
    is_finished: bool,
    is_at_length: bool,
    events: u64,
    /// Of these, after the end.
    trailing: u64,
    failure: Option<Failure>,
}

/// What came with the first output.
#[derive(Clone, Copy, Debug)]
struct First {
    at: Nanos,
    output: Output,
    /// Tokens so far, as the server reported at that instant.
    tokens: Option<u64>,
}

/// Output of some chunks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Output {
    /// How many.
    pub chunks: u64,
    /// Characters in all.
    pub characters: u64,
    /// Those of them that a reader sees.
    pub visible: u64,
}

/// What a read brought.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Arrival {
    /// Its output.
    pub output: Output,
    /// It has the first output of the answer.
    pub is_first: bool,
    /// It has the first that a reader sees.
    pub is_first_visible: bool,
    /// Since the read with output before it.
    pub interval: Option<Nanos>,
}

/// The figures of a complete answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Figures {
    /// All output.
    pub output: Output,
    /// Counts of tokens, as the server reports.
    pub usage: Usage,
    /// Tokens of the answer, of all that `usage` says.
    pub tokens: Option<u64>,
    /// From the first output to the last, for each token after the first: vLLM's time per output
    /// token. Absent without a count of tokens, or if all output came at one instant.
    pub token_time: Option<Nanos>,
    /// The same for each token after the first chunk, as MLPerf has it.
    pub later_token_time: Option<Nanos>,
    /// The tokens of the first chunk are estimated: its share of the characters.
    pub is_first_chunk_estimated: bool,
    /// The stream ended with `[DONE]`.
    pub is_done: bool,
    /// A finish reason has arrived.
    pub is_finished: bool,
    /// It was that the answer is as long as the server allows.
    pub is_at_length: bool,
    /// Events came after `[DONE]`.
    pub has_trailing: bool,
}

/// Why an answer with a good status failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// An event reports an error.
    #[error("the stream has an error in it: {0}")]
    InBand(String),
    /// An event is not what it should be.
    #[error("event {event} of the stream cannot be read: {why}")]
    Malformed {
        /// Its number, from 1.
        event: u64,
        /// What is wrong.
        why: Malformed,
    },
    /// An event is longer than is read.
    #[error("an event of the stream has more than {EVENT_BYTES_MAX} bytes")]
    TooLong,
    /// The body is something else.
    #[error("the answer is no stream of events, it begins with: {0}")]
    NoStream(String),
    /// It ended before its end.
    #[error("the stream ended without [DONE] and finish reason, after {chunks} chunks")]
    Truncated {
        /// Chunks until then.
        chunks: u64,
    },
    /// It was empty.
    #[error("the stream ended without any output")]
    Empty,
}

impl Failure {
    /// As the engine counts it.
    pub const fn class(&self) -> ErrorClass {
        match self {
            Self::InBand(_) => ErrorClass::InBand,
            Self::Malformed { .. } | Self::TooLong | Self::NoStream(_) => ErrorClass::Malformed,
            Self::Truncated { .. } => ErrorClass::Truncated,
            Self::Empty => ErrorClass::Empty,
        }
    }
}

impl Output {
    fn add(&mut self, more: Self) {
        self.chunks += more.chunks;
        self.characters += more.characters;
        self.visible += more.visible;
    }

    /// What came after `first`.
    const fn after(self, first: Self) -> Self {
        Self {
            chunks: self.chunks.saturating_sub(first.chunks),
            characters: self.characters.saturating_sub(first.characters),
            visible: self.visible.saturating_sub(first.visible),
        }
    }
}

impl Answer {
    /// Reads the data of an event: its text for the reader.
    pub fn take<'d>(&mut self, data: &'d [u8]) -> Option<Text<'d>> {
        self.events += 1;
        if self.is_done {
            self.trailing += 1;
            // No output: the answer was over. Some servers count at the very end.
            let usage = pick(data).map(|picks| picks.usage);
            self.usage.update(usage.unwrap_or_default());
            return None;
        }
        if is_done(data) {
            self.is_done = true;
            return None;
        }
        let picks = match pick(data) {
            Ok(picks) => picks,
            Err(why) => {
                self.fail(Failure::Malformed { event: self.events, why });
                return None;
            }
        };
        self.learn(&picks);
        picks.content
    }

    /// Marks the answer as failed; the first reason counts, and none after its end.
    pub fn fail(&mut self, why: Failure) {
        if !self.is_done {
            self.failure.get_or_insert(why);
        }
    }

    /// `[DONE]` has come: whatever follows is no part of the answer.
    pub const fn is_complete(&self) -> bool {
        self.is_done
    }

    /// The current read has ended; the kernel received its bytes at `at`.
    pub fn read_ended(&mut self, at: Nanos) -> Arrival {
        let output = std::mem::take(&mut self.read);
        if output.chunks == 0 {
            return Arrival::default();
        }
        self.all.add(output);
        let is_first = self.first.is_none();
        if is_first {
            let tokens = self.tokens().filter(|tokens| *tokens > 0);
            self.first = Some(First { at, output, tokens });
        }
        let had_visible = std::mem::replace(&mut self.has_visible, self.all.visible > 0);
        let before = std::mem::replace(&mut self.last_at, at);
        Arrival {
            output,
            is_first,
            is_first_visible: self.has_visible && !had_visible,
            interval: (!is_first).then(|| at.saturating_sub(before)),
        }
    }

    /// The body has ended properly by HTTP; `rest` is what was left of it.
    pub fn end(&mut self, rest: &[u8]) -> Result<Figures, Failure> {
        if let Some(failure) = self.failure.take() {
            return Err(failure);
        }
        self.is_done |= is_done(rest);
        if !self.is_done && !self.is_finished {
            return Err(Failure::Truncated { chunks: self.all.chunks });
        }
        let first = self.first.ok_or(Failure::Empty)?;
        Ok(self.figures(first))
    }

    fn learn(&mut self, picks: &Picks<'_>) {
        if let Some(error) = picks.error.filter(|_| self.failure.is_none()) {
            self.fail(Failure::InBand(excerpt(error.chars())));
        }
        if let Some(finish) = picks.finish.map(Text::raw) {
            (self.is_finished, self.is_at_length) = (true, finish == AT_LENGTH);
            if FAILED_FINISHES.contains(&finish) {
                self.fail(Failure::InBand(format!("finish reason {finish}")));
            }
        }
        self.usage.update(picks.usage);
        let characters = picks.characters();
        let chunks = u64::from(characters > 0);
        self.read.add(Output { chunks, characters, visible: picks.visible });
    }

    fn tokens(&self) -> Option<u64> {
        let output = self.all;
        self.usage.output(output.characters.saturating_sub(output.visible))
    }

    fn figures(&self, first: First) -> Figures {
        let tokens = self.tokens();
        let mut figures = Figures {
            output: self.all,
            usage: self.usage,
            tokens,
            token_time: None,
            later_token_time: None,
            is_first_chunk_estimated: false,
            is_done: self.is_done,
            is_finished: self.is_finished,
            is_at_length: self.is_at_length,
            has_trailing: self.trailing > 0,
        };
        let span = self.last_at.saturating_sub(first.at);
        // With fewer tokens than chunks the count cannot be right.
        let Some(tokens) = tokens.filter(|tokens| *tokens >= self.all.chunks) else {
            return figures;
        };
        if span > Nanos::ZERO {
            let later = self.later_tokens(tokens, first);
            figures.token_time = each(span, tokens as f64 - 1.0);
            figures.later_token_time = each(span, later.tokens);
            figures.is_first_chunk_estimated = later.is_estimated;
        }
        figures
    }

    /// How many of all `tokens` came after the first chunk: by the server's report then, by the
    /// chunks if each has one token, by the characters otherwise.
    fn later_tokens(&self, tokens: u64, first: First) -> Later {
        let after = self.all.after(first.output);
        match first.tokens {
            Some(reported) => Later::counted(tokens.saturating_sub(reported)),
            None if !holds_several(tokens, self.all.chunks) => Later::counted(after.chunks),
            None => {
                let share = after.characters as f64 / self.all.characters as f64;
                // A chunk has one token at least.
                let most = tokens.saturating_sub(first.output.chunks).max(after.chunks);
                let tokens = tokens as f64 * share;
                let tokens = tokens.clamp(after.chunks as f64, most as f64);
                Later { tokens, is_estimated: true }
            }
        }
    }
}

/// The data is that of the event that ends a stream.
pub(crate) fn is_done(data: &[u8]) -> bool {
    data.trim_ascii() == DONE
}

/// Tokens after the first chunk.
struct Later {
    tokens: f64,
    is_estimated: bool,
}

impl Later {
    const fn counted(tokens: u64) -> Self {
        Self { tokens: tokens as f64, is_estimated: false }
    }
}

/// Some chunks hold several tokens. The token that ends an answer has no text
/// and may be counted.
pub const fn holds_several(tokens: u64, chunks: u64) -> bool {
    tokens > chunks + 1
}

fn each(span: Nanos, tokens: f64) -> Option<Nanos> {
    (tokens > 0.0).then(|| Nanos((span.0 as f64 / tokens).round() as u64))
}

/// The beginning of a server's text, in one line that a terminal can show.
pub fn excerpt(characters: impl Iterator<Item = char>) -> String {
    quoted(&characters.collect::<String>(), MESSAGE_CHARACTERS_MAX)
}

#[cfg(test)]
#[path = "answer_tests.rs"]
mod tests;
