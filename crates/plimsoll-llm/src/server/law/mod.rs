//! How long a served language model takes, as a law that is known exactly: continuous batching with
//! prompts in parts, in virtual time. Nothing sleeps here and no clock is read, so the same
//! arrivals give the same instants, and a test or a calibration can compute them again.
//!
//! Time goes in *steps*. A step that starts at *t* with *p* prompt tokens to compute and *b*
//! requests to give a token to ends at
//!
//! ```text
//! t + step + step_per_slot · b + p / prefill
//! ```
//!
//! and at its end each of the *b* requests has its next token. Before a step starts:
//!
//! 1. Each request that has its prompt needs room for one more token. Where there is none, the
//!    newest request is preempted: it loses its tokens and waits again, at the head of the queue.
//! 2. If no request was preempted, requests are admitted in order of arrival while a slot is free
//!    and the prompt and one token have room.
//! 3. Up to `chunk` prompt tokens are taken, oldest request first. A request whose prompt ends in
//!    this step has its first token at the step's end.
//!
//! An idle server starts a step at the arrival. A request that comes during a step waits for its
//! end. From this follow, for *n* prompt tokens (those not in the prefix cache) and *m* output
//! tokens:
//!
//! ```text
//! alone:  first output = ceil(n/chunk)·step + step_per_slot + n/prefill
//!         time per output token = step + step_per_slot
//! N clients in a closed loop, N ≤ slots, and room for all:
//!         response = (m+1)·step + N·(m·step_per_slot + n/prefill)
//!         (one step more than tokens: who asks again has just missed the start of a step)
//! more clients than slots S:
//!         throughput = S / (m·step + S·(m·step_per_slot + n/prefill))
//! ```

mod alone;
mod batch;

use plimsoll_model::calibrated::CalibratedSpec;
use plimsoll_model::units::Nanos;

use alone::Alone;
use batch::Batch;
pub use batch::{BLOCK_TOKENS, Counts};

/// The law to follow.
#[derive(Clone, Debug, PartialEq)]
pub enum LawSpec {
    /// Continuous batching.
    Batch(BatchSpec),
    /// Every request by itself: its first token at an instant of its own, each further one a step
    /// later.
    Alone(First, Nanos),
}

/// Figures of a batch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BatchSpec {
    /// Most requests at work at a time.
    pub slots: u32,
    /// Prompt tokens computed in a second.
    pub prefill_tokens_per_s: f64,
    /// Time of a step.
    pub step: Nanos,
    /// Time more for each request that gets a token in it.
    pub step_per_slot: Nanos,
    /// Most prompt tokens in a step.
    pub chunk_tokens: u32,
    /// Tokens of all requests at work that memory has room for.
    pub kv_tokens: u64,
    /// Prompts that begin alike are computed once.
    pub has_prefix_cache: bool,
}

/// When a request that is by itself has its first token.
#[derive(Clone, Debug, PartialEq)]
pub enum First {
    /// So long after its arrival.
    After(Nanos),
    /// When a queue of known law has served it.
    Queue(CalibratedSpec),
}

impl LawSpec {
    /// Tokens that memory has room for.
    pub(super) fn kv_tokens(&self) -> u64 {
        match self {
            Self::Batch(batch) => batch.kv_tokens,
            Self::Alone(..) => u64::MAX,
        }
    }

    /// Prompts that begin alike are computed once.
    pub(super) fn has_prefix_cache(&self) -> bool {
        matches!(self, Self::Batch(BatchSpec { has_prefix_cache: true, .. }))
    }
}

/// A request for tokens.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TokenRequest {
    /// Tokens of its prompt, one at least.
    pub prompt_tokens: u32,
    /// Tokens to answer with, one at least.
    pub output_tokens: u32,
    /// Of each whole block of prompt and answer, in order: a hash of all tokens up to its end.
    /// Unused without a prefix cache.
    pub blocks: Vec<u64>,
}

/// A token that a request was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token {
    /// Of the request.
    pub id: u64,
    /// When.
    pub at_ns: u64,
    /// 1 for the first.
    pub number: u32,
    /// Tokens of its prompt that were in the prefix cache.
    pub cached_tokens: u32,
}

/// The state of the law.
pub struct Law(State);

enum State {
    Batch(Batch),
    Alone(Alone),
}

impl Law {
    /// A server without requests.
    pub fn new(spec: &LawSpec) -> Self {
        Self(match spec {
            LawSpec::Batch(spec) => State::Batch(Batch::new(*spec)),
            LawSpec::Alone(first, step) => State::Alone(Alone::new(first, *step)),
        })
    }

    /// A request arrives, whose prompt and answer have room together if no other request is
    /// present. Everything up to `now_ns` has been taken with [`Law::advance`].
    pub fn arrive(&mut self, now_ns: u64, id: u64, request: TokenRequest) {
        match &mut self.0 {
            State::Batch(batch) => batch.arrive(now_ns, id, request),
            State::Alone(alone) => alone.arrive(now_ns, id, &request),
        }
    }

    /// When a request counts as arrived that reached the kernel at `stamp_ns` and is read at
    /// `now_ns`. Where requests affect each other, the law has gone on to now.
    pub const fn arrival_ns(&self, stamp_ns: u64, now_ns: u64) -> u64 {
        match &self.0 {
            State::Alone(alone) if alone.has_no_queue() => stamp_ns,
            State::Alone(_) | State::Batch(_) => now_ns,
        }
    }

    /// The client of the request has gone.
    pub fn cancel(&mut self, id: u64) {
        match &mut self.0 {
            State::Batch(batch) => batch.cancel(id),
            State::Alone(alone) => alone.cancel(id),
        }
    }

    /// When something happens next; `None` while there are no requests.
    pub fn next_event_ns(&self) -> Option<u64> {
        match &self.0 {
            State::Batch(batch) => batch.next_event_ns(),
            State::Alone(alone) => alone.next_event_ns(),
        }
    }

    /// Hands over the tokens up to `now_ns`, in order of time.
    pub fn advance(&mut self, now_ns: u64, give: &mut impl FnMut(Token)) {
        match &mut self.0 {
            State::Batch(batch) => batch.advance(now_ns, give),
            State::Alone(alone) => alone.advance(now_ns, give),
        }
    }

    /// Current and total counts.
    pub fn counts(&self) -> Counts {
        match &self.0 {
            State::Batch(batch) => batch.counts(),
            State::Alone(alone) => alone.counts(),
        }
    }
}

#[cfg(test)]
mod tests;
