//! The content of the requests of a load point. The body of a request follows from the run's seed,
//! the point's nonce and the request's number, which counts over all clients and agents: bodies are
//! not stored, and no two are alike unless the suite shares them.
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`word_sequence`] | what prompts are made of |
//! | [`fit`] | the relation of words to tokens |
//! | [`body`] | the JSON around them |
//! | [`file`] | prompts of the user's own |
//! | [`trace`] | recorded loads |

pub(crate) mod body;
pub(crate) mod file;
pub(crate) mod trace;
pub(crate) mod word_sequence;

use std::sync::Arc;

use plimsoll_engine::rng;

use crate::lengths::Length;
use crate::parameters::{LlmWorkload, Salt};
use body::{Frame, Role};
use file::UserPrompts;
use trace::{BLOCK_TOKENS, Row, Trace};
use word_sequence::Fit;
use word_sequence::{WordSequence, write_salt};

/// Keeps what follows from a request's number apart.
mod stream {
    pub(super) const INPUT: u64 = 1;
    pub(super) const OUTPUT: u64 = 2;
    pub(super) const SALT: u64 = 3;
    pub(super) const WORD: u64 = 4;
    pub(super) const WHICH_PREFIX: u64 = 5;
    pub(super) const PREFIX: u64 = 6;
    pub(super) const BLOCK: u64 = 7;
    pub(super) const MESSAGE: u64 = 8;
    pub(super) const USER: u64 = 9;
}

/// Number of words that begin a block and distinguish it from all others.
const BLOCK_MARK_WORD_COUNT: u32 = 4;

/// Why a file of the user's cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{file}{location}: {reason}")]
pub(crate) struct FileError {
    pub(crate) file: String,
    /// `:LINE`, or which of a list; empty for the file as a whole.
    pub(crate) location: String,
    pub(crate) reason: String,
}

/// The requests of a run.
#[derive(Debug)]
pub(crate) struct Prompts {
    seed: u64,
    word_sequence: Arc<WordSequence>,
    frame: Frame,
    fit: Fit,
    salt: Salt,
    source: Source,
}

/// Where the prompts come from.
#[derive(Clone, Debug)]
pub(crate) enum Source {
    /// They are made.
    Made(Made),
    /// Lengths are those of a recorded load.
    Trace(Arc<Trace>),
    /// The user's own.
    File { prompts: Arc<UserPrompts>, output: Length },
}

/// Of prompts that are made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Made {
    input: Length,
    output: Length,
    prefix_word_count: u32,
    prefixes: u32,
    message: Length,
}

impl Made {
    /// As a suite requests them.
    pub(crate) fn new(workload: &LlmWorkload, fit: Fit) -> Self {
        Self {
            input: workload.input_tokens,
            output: workload.output_tokens,
            prefix_word_count: fit.part_word_count(workload.prefix_tokens),
            prefixes: workload.prefixes,
            message: workload.turn_tokens,
        }
    }
}

/// A request of a load point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Number {
    /// Differs from point to point, also between runs.
    pub(crate) nonce: u64,
    /// Counts the requests of the point over all clients and agents.
    pub(crate) index: u64,
}

impl Prompts {
    /// Requests in this frame.
    pub(crate) fn new(
        (seed, word_sequence): (u64, Arc<WordSequence>),
        frame: Frame,
        fit: Fit,
        salt: Salt,
        source: Source,
    ) -> Self {
        Self { seed, word_sequence, frame, fit, salt, source }
    }

    /// Tokens that the answer to a request may have.
    pub(crate) fn output_tokens(&self, index: u64) -> u32 {
        let drawn = |length: Length| length.draw(self.own(stream::OUTPUT, index));
        match &self.source {
            Source::Made(made) => drawn(made.output),
            Source::Trace(trace) => row_of(trace, index).output_tokens,
            Source::File { prompts, output } => {
                let own = prompts.get(self.own_index(prompts, index)).output_tokens;
                own.unwrap_or_else(|| drawn(*output))
            }
        }
    }

    /// Appends the body of a request.
    pub(crate) fn write(&self, number: Number, into: &mut Vec<u8>) {
        self.frame.begin(into);
        match &self.source {
            Source::Made(made) => self.write_opening(made, number, into),
            Source::Trace(trace) => self.write_row(trace, number, into),
            Source::File { prompts, .. } => {
                let salt = (self.salt != Salt::None).then(|| salt_of(number));
                prompts.get(self.own_index(prompts, number.index)).write(salt, into);
            }
        }
        self.frame.end(self.output_tokens(number.index), into);
    }

    /// Appends the body of a request that continues a conversation, whose parts so far are in
    /// `history`.
    pub(crate) fn write_exchange(&self, history: &[u8], number: Number, into: &mut Vec<u8>) {
        self.frame.begin(into);
        into.extend_from_slice(history);
        self.frame.end(self.output_tokens(number.index), into);
    }

    /// Appends the first question of a conversation to its history.
    pub(crate) fn begin_history(&self, number: Number, history: &mut Vec<u8>) {
        if let Source::Made(made) = &self.source {
            self.write_opening(made, number, history);
        }
    }

    /// Appends an answer, escaped for JSON, and the next question.
    pub(crate) fn grow_history(&self, answer: &[u8], number: Number, history: &mut Vec<u8>) {
        let Source::Made(made) = &self.source else { return };
        let message_tokens = made.message.draw(self.own(stream::MESSAGE, number.index));
        self.part(Role::Assistant, history, |into| into.extend_from_slice(answer));
        let word_count = self.fit.part_word_count(message_tokens).max(1);
        self.part(Role::User, history, |into| {
            self.word_sequence.write(self.own(stream::WORD, number.index), word_count, into);
        });
    }

    /// A system prompt, where there is one, and a question.
    fn write_opening(&self, made: &Made, number: Number, into: &mut Vec<u8>) {
        let input = made.input.draw(self.own(stream::INPUT, number.index));
        let word_count =
            self.fit.prompt_word_count(input).saturating_sub(made.prefix_word_count).max(1);
        let is_first = self.salt == Salt::First;
        if made.prefix_word_count > 0 {
            let which = rng::key(&[self.seed, stream::WHICH_PREFIX, number.index]);
            let which = rng::below(which, u64::from(made.prefixes));
            let prefix = rng::key(&[number.nonce, stream::PREFIX, which]);
            self.part(Role::System, into, |into| {
                write_salt(if is_first { salt_of(number) } else { prefix }, into);
                self.word_sequence.write(prefix, made.prefix_word_count, into);
            });
        }
        self.part(Role::User, into, |into| {
            if made.prefix_word_count == 0 || !is_first {
                write_salt(salt_of(number), into);
            }
            self.word_sequence.write(self.own(stream::WORD, number.index), word_count, into);
        });
    }

    /// A prompt as long as a recorded one. Where the trace has blocks, prompts whose blocks begin
    /// alike do so too.
    fn write_row(&self, trace: &Trace, number: Number, into: &mut Vec<u8>) {
        let row = row_of(trace, number.index);
        let blocks = trace.blocks(row);
        let word_count = self.fit.prompt_word_count(row.input_tokens);
        self.part(Role::User, into, |into| {
            if blocks.is_empty() {
                write_salt(salt_of(number), into);
                return self.word_sequence.write(
                    self.own(stream::WORD, number.index),
                    word_count,
                    into,
                );
            }
            let round = number.index / trace.rows.len() as u64;
            let mut left = word_count;
            for (at, block) in blocks.iter().enumerate() {
                let share = match at {
                    0 => self.fit.prompt_word_count(BLOCK_TOKENS),
                    _ => self.fit.part_word_count(BLOCK_TOKENS),
                };
                let is_last = at + 1 == blocks.len();
                let count = if is_last { left } else { share.min(left) };
                let key = rng::key(&[number.nonce, stream::BLOCK, round, *block]);
                self.write_block(key, count, into);
                left -= count;
            }
        });
    }

    fn write_block(&self, key: u64, word_count: u32, into: &mut Vec<u8>) {
        let mark = word_count.min(BLOCK_MARK_WORD_COUNT);
        (0..mark).for_each(|word| {
            self.word_sequence.write(rng::key(&[key, u64::from(word)]), 1, into);
        });
        self.word_sequence.write(key, word_count - mark, into);
    }

    fn part(&self, role: Role, into: &mut Vec<u8>, text: impl FnOnce(&mut Vec<u8>)) {
        self.frame.begin_part(role, into);
        text(into);
        self.frame.end_part(into);
    }

    /// What decides a property of a request. The same in every run of a seed.
    fn own(&self, of: u64, index: u64) -> u64 {
        rng::key(&[self.seed, of, index])
    }

    /// Which of the user's prompts a request sends: each once before any comes again.
    fn own_index(&self, prompts: &UserPrompts, index: u64) -> usize {
        let count = prompts.count() as u64;
        let pass = rng::key(&[self.seed, stream::USER, index / count]);
        permuted(index % count, count, pass) as usize
    }
}

fn row_of(trace: &Trace, index: u64) -> &Row {
    &trace.rows[(index % trace.rows.len() as u64) as usize]
}

fn salt_of(number: Number) -> u64 {
    rng::key(&[number.nonce, stream::SALT, number.index])
}

/// Index at position `at` of a permutation of `count` that `key` determines: a step coprime to
/// `count` visits each index once.
fn permuted(at: u64, count: u64, key: u64) -> u64 {
    let mut step = rng::below(key, count).max(1);
    while common_divisor(step, count) > 1 {
        step += 1;
    }
    let start = rng::below(rng::key(&[key]), count);
    ((u128::from(at) * u128::from(step) + u128::from(start)) % u128::from(count)) as u64
}

fn common_divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { common_divisor(b, a % b) }
}

#[cfg(test)]
mod tests;
