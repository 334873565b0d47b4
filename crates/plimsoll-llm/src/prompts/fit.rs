//! How many words make how many tokens: a line through what the server said of a few probes. The
//! tokenizer is the server's own; nothing here knows it.

use serde::{Deserialize, Serialize};

/// Words of the probes.
pub(crate) const PROBE_WORDS: [u32; 5] = [64, 192, 512, 1_024, 2_048];

/// Tokens of a prompt = `base_tokens` + `tokens_a_word` x words.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Fit {
    /// The server's template, its marks, and the salt.
    pub(crate) base_tokens: f64,
    /// Of a word, on average.
    pub(crate) tokens_a_word: f64,
}

/// What a server said of a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Probed {
    /// Sent.
    pub(crate) words: u32,
    /// Counted by the server.
    pub(crate) tokens: u32,
}

impl Fit {
    /// A word is a token: where the server counts none.
    pub(crate) const UNKNOWN: Self = Self { base_tokens: 0.0, tokens_a_word: 1.0 };

    /// The line with the least squares; `None` where the probes cannot lie on one.
    pub(crate) fn through(probes: &[Probed]) -> Option<Self> {
        let n = probes.len() as f64;
        let mean = |of: fn(&Probed) -> f64| probes.iter().map(of).sum::<f64>() / n;
        let (words, tokens) = (mean(|p| f64::from(p.words)), mean(|p| f64::from(p.tokens)));
        let (mut across, mut squares) = (0.0, 0.0);
        for probe in probes {
            let off = f64::from(probe.words) - words;
            across += off * (f64::from(probe.tokens) - tokens);
            squares += off * off;
        }
        let tokens_a_word = across / squares;
        let is_line = tokens_a_word.is_finite() && tokens_a_word > 0.0;
        is_line.then_some(Self { base_tokens: tokens - tokens_a_word * words, tokens_a_word })
    }

    /// Words of a prompt of `tokens`; one at least.
    pub(crate) fn words_of_prompt(self, tokens: u32) -> u32 {
        words((f64::from(tokens) - self.base_tokens) / self.tokens_a_word).max(1)
    }

    /// Words of a part of a prompt, beside which there are others.
    pub(crate) fn words_of_part(self, tokens: u32) -> u32 {
        words(f64::from(tokens) / self.tokens_a_word)
    }

    /// Tokens that `words` are taken for.
    pub(crate) fn tokens_of(self, words: u32) -> f64 {
        self.base_tokens + self.tokens_a_word * f64::from(words)
    }

    /// The probe that is furthest from the line, in tokens.
    pub(crate) fn furthest_tokens(self, probes: &[Probed]) -> f64 {
        let off = |probe: &Probed| (f64::from(probe.tokens) - self.tokens_of(probe.words)).abs();
        probes.iter().map(off).fold(0.0, f64::max)
    }
}

/// Rounded; what is below zero is none.
fn words(exact: f64) -> u32 {
    exact.round().max(0.0) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn probes(of: impl Fn(u32) -> u32) -> Vec<Probed> {
        PROBE_WORDS.map(|words| Probed { words, tokens: of(words) }).to_vec()
    }

    #[test]
    fn a_tokenizer_that_splits_every_word_alike_is_found_exactly() {
        let seen = probes(|words| 17 + 3 * words);
        let fit = Fit::through(&seen).unwrap();
        assert!((fit.base_tokens - 17.0).abs() < 1e-6 && (fit.tokens_a_word - 3.0).abs() < 1e-9);
        assert!(fit.furthest_tokens(&seen) < 1e-6);
        assert_eq!(fit.words_of_prompt(17 + 3 * 165), 165);
        assert_eq!(fit.words_of_part(300), 100);
        assert_eq!(fit.words_of_prompt(5), 1, "the template alone is longer");
    }

    #[test]
    fn scatter_of_the_probes_moves_the_length_little() {
        let seen = probes(|words| (25.0 + 1.13 * f64::from(words)) as u32 + words % 7);
        let fit = Fit::through(&seen).unwrap();
        let words = f64::from(fit.words_of_prompt(512));
        assert!((25.0 + 1.13 * words - 512.0).abs() < 8.0, "{words}");
        assert!(fit.furthest_tokens(&seen) < 8.0);
    }

    #[test]
    fn probes_that_lie_on_no_line_make_no_fit() {
        assert_eq!(Fit::through(&[]), None);
        assert_eq!(Fit::through(&[Probed { words: 64, tokens: 80 }]), None);
        assert_eq!(Fit::through(&probes(|_| 1)), None, "a server that always says the same");
        assert_eq!(Fit::UNKNOWN.words_of_prompt(512), 512);
    }
}
