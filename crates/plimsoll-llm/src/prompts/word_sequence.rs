//! The words that prompts are made of: short common English ones, each after a space, so that a
//! word is about one token for the usual tokenizers. They are kept in a long shuffled sequence: a
//! prompt is a copy of some stretches of it.
//!
//! The relation of words to tokens is a line through the server's counts of a few probes. The
//! tokenizer is the server's own and unknown here.

use plimsoll_engine::rng;
use serde::{Deserialize, Serialize};

/// About two thousand words, none that a content filter would reject.
const LIST: &str = include_str!("words.txt");
/// Times that the list is shuffled anew: a sequence of some 65,000 words, 400 kB for all workers.
const ROUNDS: u64 = 32;
/// Keeps the shuffles apart from what else follows from the seed.
const SHUFFLE: u64 = 0x776f_7264;

/// The sequence of words.
pub(crate) struct WordSequence {
    text: Vec<u8>,
    /// Where each word begins, its space included; the last is the end.
    starts: Vec<u32>,
}

impl WordSequence {
    /// The sequence of a seed.
    pub(crate) fn new(seed: u64) -> Self {
        let mut list: Vec<&str> = LIST.split_whitespace().collect();
        let (mut text, mut starts) = (Vec::new(), vec![0]);
        for round in 0..ROUNDS {
            rng::shuffle(&mut list, rng::key(&[seed, SHUFFLE, round]));
            for word in &list {
                text.push(b' ');
                text.extend_from_slice(word.as_bytes());
                starts.push(text.len() as u32);
            }
        }
        Self { text, starts }
    }

    /// Number of words of the sequence.
    fn count(&self) -> usize {
        self.starts.len() - 1
    }

    /// Appends `word_count` words, starting at a position that `key` determines.
    pub(crate) fn write(&self, key: u64, word_count: u32, into: &mut Vec<u8>) {
        let mut at = rng::below(key, self.count() as u64) as usize;
        let mut left = word_count as usize;
        while left > 0 {
            let taken = left.min(self.count() - at);
            let (start, end) = (self.starts[at] as usize, self.starts[at + taken] as usize);
            into.extend_from_slice(&self.text[start..end]);
            left -= taken;
            at = 0;
        }
    }
}

impl std::fmt::Debug for WordSequence {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Words({})", self.count())
    }
}

/// Characters of a salt.
pub(crate) const SALT_BYTES: usize = 16;

/// Appends `salt` as hexadecimal digits.
pub(crate) fn write_salt(salt: u64, into: &mut Vec<u8>) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |index: usize| DIGITS[(salt >> (60 - 4 * index)) as usize & 0xf];
    into.extend((0..SALT_BYTES).map(digit));
}

/// Numbers of words of the probes.
pub(crate) const PROBE_WORD_COUNTS: [u32; 5] = [64, 192, 512, 1_024, 2_048];

/// Tokens of a prompt = `base_tokens` + `tokens_a_word` x words.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Fit {
    /// The server's template, its marks, and the salt.
    pub(crate) base_tokens: f64,
    /// Of a word, on average.
    pub(crate) tokens_a_word: f64,
}

/// A server's count for a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Probed {
    /// Sent.
    pub(crate) word_count: u32,
    /// Counted by the server.
    pub(crate) tokens: u32,
}

impl Fit {
    /// One token a word: if the server counts none.
    pub(crate) const UNKNOWN: Self = Self { base_tokens: 0.0, tokens_a_word: 1.0 };

    /// The line with the least squares; `None` where the probes cannot lie on one.
    pub(crate) fn through(probes: &[Probed]) -> Option<Self> {
        let n = probes.len() as f64;
        let mean = |of: fn(&Probed) -> f64| probes.iter().map(of).sum::<f64>() / n;
        let (word_count, tokens) =
            (mean(|p| f64::from(p.word_count)), mean(|p| f64::from(p.tokens)));
        let (mut across, mut squares) = (0.0, 0.0);
        for probe in probes {
            let off = f64::from(probe.word_count) - word_count;
            across += off * (f64::from(probe.tokens) - tokens);
            squares += off * off;
        }
        let tokens_a_word = across / squares;
        let is_line = tokens_a_word.is_finite() && tokens_a_word > 0.0;
        is_line.then_some(Self { base_tokens: tokens - tokens_a_word * word_count, tokens_a_word })
    }

    /// Number of words of a prompt of `tokens`; at least one.
    pub(crate) fn prompt_word_count(self, tokens: u32) -> u32 {
        round_word_count((f64::from(tokens) - self.base_tokens) / self.tokens_a_word).max(1)
    }

    /// Number of words of one of several parts of a prompt.
    pub(crate) fn part_word_count(self, tokens: u32) -> u32 {
        round_word_count(f64::from(tokens) / self.tokens_a_word)
    }

    /// Tokens that `word_count` words count as.
    pub(crate) fn tokens_of(self, word_count: u32) -> f64 {
        self.base_tokens + self.tokens_a_word * f64::from(word_count)
    }

    /// The probe that is furthest from the line, in tokens.
    pub(crate) fn furthest_tokens(self, probes: &[Probed]) -> f64 {
        let off =
            |probe: &Probed| (f64::from(probe.tokens) - self.tokens_of(probe.word_count)).abs();
        probes.iter().map(off).fold(0.0, f64::max)
    }
}

/// Rounded; what is below zero is none.
fn round_word_count(exact: f64) -> u32 {
    exact.round().max(0.0) as u32
}

#[cfg(test)]
mod tests;
