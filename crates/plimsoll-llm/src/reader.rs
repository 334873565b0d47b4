//! Reads streamed answers for a session of `plimsoll-http`: marks their times, counts their
//! content, and detects which of them failed despite a good status.

use std::rc::Rc;

use plimsoll_engine::interface::{First, Io, Mark, SessionCounters, TimeKind};
use plimsoll_http::excerpt::plain_text;
use plimsoll_http::reader::{At, Reader};
use plimsoll_http::site::HttpOp;
use plimsoll_model::event::GenerationCounts;
use plimsoll_model::nonconformity::{Nonconformities, Nonconformity, NonconformityKind};
use plimsoll_model::outcome::ErrorClass;

use super::answer::{Answer, Failure, Figures, Output, excerpt, holds_several};
use super::wire::picks::pick;
use super::wire::sse::{EventReader, StreamItem};

/// Longest text of an answer that is kept for the next exchange of a conversation.
pub const TEXT_BYTES_MAX: usize = 1024 * 1024;

/// What a reader needs to know of requests, and where it leaves their answers: one of these for
/// all clients of a worker. Requests are named by [`plimsoll_http::site::HttpOp::key`].
pub trait Requests {
    /// The number of tokens that the answer should have, if the request fixes it.
    fn tokens_requested(&self, key: u64) -> Option<u64>;
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

/// A reply in progress.
#[derive(Debug, Default)]
pub struct StreamedReply {
    events: EventReader,
    answer: Answer,
    text: String,
    error_text: String,
    has_grown: bool,
    has_begun: bool,
}

const fn deviation(part: &'static str, kind: NonconformityKind) -> Nonconformity {
    Nonconformity::once("OpenAI's API", "chat streaming", "chat", Some(part), kind)
}

const NO_DONE: Nonconformity = deviation("[DONE]", NonconformityKind::MissingPart);
const NO_FINISH: Nonconformity = deviation("finish_reason", NonconformityKind::MissingPart);
const TRAILING: Nonconformity = deviation("[DONE]", NonconformityKind::TrailingBytes);
const NO_BODY_END: Nonconformity = deviation("[DONE]", NonconformityKind::NotEnded);

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
            (TimeKind::OutputTokens, figures.tokens),
        ] {
            if let Some(value) = value {
                io.mark(at.ticket, Mark::Value(kind, value));
            }
        }
        self.count(figures, self.requests.tokens_requested(at.op.key));
        let deviations = [
            (!figures.is_done, NO_DONE),
            (!figures.is_finished, NO_FINISH),
            (figures.has_trailing, TRAILING),
        ];
        for (_, deviation) in deviations.iter().filter(|(has_occurred, _)| *has_occurred) {
            self.nonconformities.note(deviation);
        }
    }

    fn count(&mut self, figures: &Figures, requested: Option<u64>) {
        let (counts, usage) = (&mut self.counts, figures.usage);
        let Some(tokens) = figures.tokens else {
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
        counts.contradictory_requests += u64::from(usage.disagrees());
        let is_cut_short = requested.is_some_and(|requested| tokens < requested);
        counts.cut_short_requests += u64::from(is_cut_short);
        counts.cut_at_length_requests += u64::from(is_cut_short && figures.is_at_length);
    }
}

impl<Q: Requests + std::fmt::Debug> Reader for AnswerReader<Q> {
    type Reply = StreamedReply;

    fn reads(&self, _op: &HttpOp) -> bool {
        true
    }

    fn take(&mut self, reply: &mut StreamedReply, _op: &HttpOp, payload: &[u8]) {
        reply.has_grown |= !payload.is_empty();
        let mut rest = payload;
        while let Some(item) = reply.events.next(&mut rest) {
            match item {
                // Some servers keep a connection alive with them.
                StreamItem::Event(data) if data.trim_ascii().is_empty() => self.counts.pings += 1,
                StreamItem::Comment => self.counts.pings += 1,
                StreamItem::Event(data) => {
                    let text = reply.answer.take(data);
                    if let Some(text) = text.filter(|_| self.requests.keeps_texts()) {
                        let room = TEXT_BYTES_MAX.saturating_sub(reply.text.len());
                        // A character has four bytes at most.
                        reply.text.extend(text.chars().take(room / 4));
                    }
                }
                StreamItem::Error(data) => reply.answer.fail(Failure::InBand(event_error(data))),
                StreamItem::Bare(line) => {
                    if let Some(error) = bare_error(line) {
                        reply.answer.fail(Failure::InBand(error));
                    }
                }
                StreamItem::TooLong => reply.answer.fail(Failure::TooLong),
            }
        }
    }

    fn read_ended(&mut self, reply: &mut StreamedReply, at: &At<'_>, io: &mut impl Io) {
        if !std::mem::take(&mut reply.has_grown) {
            return;
        }
        if !(200..300).contains(&at.status) {
            let body = reply.events.rest();
            reply.error_text = error_of(body).unwrap_or_else(|| plain_text(body));
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
        if let Some(interval) = arrival.interval {
            io.mark(at.ticket, Mark::Value(TimeKind::ChunkGap, interval.0));
        }
        if arrival.output.chunks > 0 {
            let Output { chunks, characters, .. } = arrival.output;
            io.mark(at.ticket, Mark::Output { chunks, characters });
        }
    }

    fn is_complete(&self, reply: &StreamedReply) -> bool {
        reply.answer.is_complete()
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
        } else if let Some(error) = bare_error(rest) {
            reply.answer.fail(Failure::InBand(error));
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

    fn body_did_not_end(&mut self) {
        self.nonconformities.note(&NO_BODY_END);
    }

    fn error_text<'r>(&'r self, reply: &'r StreamedReply) -> Option<&'r str> {
        (!reply.error_text.is_empty()).then_some(&reply.error_text)
    }

    fn count_into(&mut self, counters: &mut SessionCounters) {
        counters.generation.add(std::mem::take(&mut self.counts));
        counters.nonconformities.add(&std::mem::take(&mut self.nonconformities));
    }
}

/// A body that is no stream: an error, if it contains one.
fn not_a_stream(body: &[u8]) -> Failure {
    match error_of(body) {
        Some(error) => Failure::InBand(error),
        None => Failure::NoStream(excerpt(String::from_utf8_lossy(body).chars())),
    }
}

/// The error in a JSON body.
fn error_of(body: &[u8]) -> Option<String> {
    pick(body).ok()?.error.map(|error| excerpt(error.chars()))
}

/// The error in JSON outside of events.
pub(crate) fn bare_error(line: &[u8]) -> Option<String> {
    let picks = pick(line).ok()?;
    picks.error.or(picks.message).map(|error| excerpt(error.chars()))
}

/// The text of an event that is an error: its message, or all of its data.
pub(crate) fn event_error(data: &[u8]) -> String {
    let all = || excerpt(String::from_utf8_lossy(data).chars());
    bare_error(data).unwrap_or_else(all)
}

#[cfg(test)]
#[path = "reader_tests.rs"]
mod tests;
