//! Reads streamed answers for a session of `plimsoll-http`: marks their times, counts what they
//! hold, and says which of them failed although their status is good.

use std::rc::Rc;

use plimsoll_engine::seam::{First, Io, Mark, SessionCounters, TimeKind};
use plimsoll_http::look;
use plimsoll_http::reader::{At, Reader};
use plimsoll_model::event::GenerationCounts;
use plimsoll_model::nonconformity::{Nonconformities, Nonconformity, NonconformityKind};
use plimsoll_model::outcome::ErrorClass;

use super::answer::{Answer, Failure, Figures, holds_several, words};
use super::wire::picks::pick;
use super::wire::sse::{EventReader, Seen};

/// Longest text of an answer that is kept for the next turn of a conversation.
pub const TEXT_BYTES_MAX: usize = 1024 * 1024;

/// What a reader needs to know of requests, and where it leaves their answers: one of these for
/// all clients of a worker. Requests are named by [`plimsoll_http::site::HttpOp::key`].
pub trait Requests {
    /// The number of tokens that the answer should have, where the request says it.
    fn tokens_asked(&self, key: u64) -> Option<u64>;
    /// Answers are kept with their texts.
    fn keeps_texts(&self) -> bool;
    /// The request has been answered well: with this content, without reasoning and calls of tools,
    /// where texts are kept; the first [`TEXT_BYTES_MAX`].
    fn answered(&self, key: u64, text: String);
}

/// Reads one client's answers.
#[derive(Debug)]
pub struct AnswerReader<Q> {
    requests: Rc<Q>,
    counts: GenerationCounts,
    nonconformities: Nonconformities,
}

/// A reply that is under way.
#[derive(Debug, Default)]
pub struct StreamedReply {
    events: EventReader,
    answer: Answer,
    text: String,
    words: String,
    has_grown: bool,
    has_begun: bool,
}

const fn missing(part: &'static str) -> Nonconformity {
    let kind = NonconformityKind::MissingPart;
    Nonconformity::once("OpenAI's API", "chat streaming", "chat", Some(part), kind)
}

const NO_DONE: Nonconformity = missing("[DONE]");
const NO_FINISH: Nonconformity = missing("finish_reason");

impl<Q: Requests> AnswerReader<Q> {
    /// A reader of the answers to `requests`.
    pub fn new(requests: Rc<Q>) -> Self {
        let (counts, nonconformities) = <(GenerationCounts, Nonconformities)>::default();
        Self { requests, counts, nonconformities }
    }

    fn record(&mut self, figures: &Figures, at: &At<'_>, io: &mut impl Io) {
        let usage = figures.usage;
        for (kind, value) in [
            (TimeKind::TokenTime, figures.token_time.map(|time| time.0)),
            (TimeKind::LaterTokenTime, figures.later_token_time.map(|time| time.0)),
            (TimeKind::PromptTokens, usage.prompt),
            (TimeKind::OutputTokens, usage.completion),
        ] {
            if let Some(value) = value {
                io.mark(at.ticket, Mark::Value(kind, value));
            }
        }
        self.count(figures, self.requests.tokens_asked(at.op.key));
        if !figures.is_done {
            self.nonconformities.note(&NO_DONE);
        }
        if !figures.is_finished {
            self.nonconformities.note(&NO_FINISH);
        }
    }

    fn count(&mut self, figures: &Figures, asked: Option<u64>) {
        let (counts, usage) = (&mut self.counts, figures.usage);
        let Some(tokens) = usage.completion else {
            counts.uncounted_requests += 1;
            return;
        };
        let prompt = usage.prompt.unwrap_or_default();
        counts.counted_requests += 1;
        counts.output_tokens += tokens;
        counts.counted_chunks += figures.output.chunks;
        counts.counted_characters += figures.output.characters;
        counts.prompt_tokens += prompt;
        if let Some(cached) = usage.cached {
            counts.cached_said_requests += 1;
            counts.cached_prompt_tokens += cached;
            counts.cached_of_prompt_tokens += prompt;
        }
        counts.mismatched_requests += u64::from(tokens < figures.output.chunks);
        counts.several_a_chunk_requests += u64::from(holds_several(tokens, figures.output.chunks));
        counts.estimated_first_chunks += u64::from(figures.is_first_chunk_estimated);
        counts.cut_short_requests += u64::from(asked.is_some_and(|asked| tokens < asked));
    }
}

impl<Q: Requests + std::fmt::Debug> Reader for AnswerReader<Q> {
    type Reply = StreamedReply;

    fn reads(&self) -> bool {
        true
    }

    fn take(&mut self, reply: &mut StreamedReply, payload: &[u8]) {
        reply.has_grown |= !payload.is_empty();
        let mut rest = payload;
        while let Some(seen) = reply.events.next(&mut rest) {
            match seen {
                // Some servers keep a connection alive with them.
                Seen::Event(data) if data.trim_ascii().is_empty() => self.counts.pings += 1,
                Seen::Comment => self.counts.pings += 1,
                Seen::Event(data) => {
                    let text = reply.answer.take(data);
                    if let Some(text) = text.filter(|_| self.requests.keeps_texts()) {
                        let room = TEXT_BYTES_MAX.saturating_sub(reply.text.len());
                        // A character has four bytes at most.
                        reply.text.extend(text.chars().take(room / 4));
                    }
                }
                Seen::TooLong => reply.answer.fail(Failure::TooLong),
            }
        }
    }

    fn read_ended(&mut self, reply: &mut StreamedReply, at: &At<'_>, io: &mut impl Io) {
        if !std::mem::take(&mut reply.has_grown) {
            return;
        }
        if !(200..300).contains(&at.status) {
            let body = reply.events.rest();
            reply.words = error_of(body).unwrap_or_else(|| look::words(body));
            return;
        }
        if !std::mem::replace(&mut reply.has_begun, true) {
            io.mark(at.ticket, Mark::First(First::Byte));
        }
        let arrival = reply.answer.read_ended(io.arrived().unwrap_or(at.now));
        if arrival.is_first {
            io.mark(at.ticket, Mark::First(First::Output));
        }
        if arrival.is_first_visible {
            io.mark(at.ticket, Mark::First(First::Visible));
        }
        if let Some(gap) = arrival.gap {
            io.mark(at.ticket, Mark::Value(TimeKind::ChunkGap, gap.0));
        }
        self.counts.chunks += arrival.output.chunks;
        self.counts.characters += arrival.output.characters;
    }

    fn end(
        &mut self,
        reply: &mut StreamedReply,
        at: &At<'_>,
        io: &mut impl Io,
    ) -> Result<(), ErrorClass> {
        let rest = reply.events.rest();
        if reply.events.is_no_stream() {
            reply.answer.fail(not_a_stream(rest));
        }
        match reply.answer.end(rest) {
            Ok(figures) => {
                self.record(&figures, at, io);
                self.requests.answered(at.op.key, std::mem::take(&mut reply.text));
                Ok(())
            }
            Err(failure) => {
                io.explain(format_args!("{failure}"));
                Err(failure.class())
            }
        }
    }

    fn words<'r>(&'r self, reply: &'r StreamedReply) -> Option<&'r str> {
        (!reply.words.is_empty()).then_some(&reply.words)
    }

    fn count_into(&mut self, counters: &mut SessionCounters) {
        counters.generation.add(std::mem::take(&mut self.counts));
        counters.nonconformities.add(&std::mem::take(&mut self.nonconformities));
    }
}

/// A body that is something else: an error, if it says so.
fn not_a_stream(body: &[u8]) -> Failure {
    match error_of(body) {
        Some(error) => Failure::InBand(error),
        None => Failure::NoStream(words(String::from_utf8_lossy(body).chars())),
    }
}

/// The error that a body in JSON says.
fn error_of(body: &[u8]) -> Option<String> {
    let picks = pick(body).ok()?;
    picks.error.map(|error| words(error.chars()))
}

#[cfg(test)]
#[path = "reader_tests.rs"]
mod tests;
