//! The words that prompts are made of: short common English ones, each after a space, so that a word
//! is about one token for the usual tokenizers. They lie ready in a long shuffled sequence: a prompt
//! is a copy of some stretches of it.

use plimsoll_engine::rng;

/// About two thousand words, none that a filter of contents would mind.
const LIST: &str = include_str!("words.txt");
/// Times that the list is shuffled anew: a sequence of some 65,000 words, 400 kB for all workers.
const ROUNDS: u64 = 32;
/// Keeps the shuffles apart from what else follows from the seed.
const SHUFFLE: u64 = 0x776f_7264;

/// The sequence of words.
pub(crate) struct Words {
    text: Vec<u8>,
    /// Where each word begins, its space included; the last is the end.
    starts: Vec<u32>,
}

impl Words {
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

    /// Words of the sequence.
    fn count(&self) -> usize {
        self.starts.len() - 1
    }

    /// Appends `words` words, from a place that follows from `key` on.
    pub(crate) fn write(&self, key: u64, words: u32, into: &mut Vec<u8>) {
        let mut at = rng::below(key, self.count() as u64) as usize;
        let mut left = words as usize;
        while left > 0 {
            let taken = left.min(self.count() - at);
            let (start, end) = (self.starts[at] as usize, self.starts[at + taken] as usize);
            into.extend_from_slice(&self.text[start..end]);
            left -= taken;
            at = 0;
        }
    }
}

impl std::fmt::Debug for Words {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Words({})", self.count())
    }
}

/// Characters of a salt.
pub(crate) const SALT_BYTES: usize = 16;

/// Appends `salt` as hexadecimal digits.
pub(crate) fn write_salt(salt: u64, into: &mut Vec<u8>) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |place: usize| DIGITS[(salt >> (60 - 4 * place)) as usize & 0xf];
    into.extend((0..SALT_BYTES).map(digit));
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn written(words: &Words, key: u64, count: u32) -> String {
        let mut text = Vec::new();
        words.write(rng::key(&[key]), count, &mut text);
        String::from_utf8(text).unwrap()
    }

    #[test]
    fn the_list_holds_plain_words_each_once() {
        let words: Vec<&str> = LIST.split_whitespace().collect();
        assert!((1_900..2_100).contains(&words.len()), "{}", words.len());
        assert_eq!(words.iter().collect::<BTreeSet<_>>().len(), words.len());
        assert!(words.iter().all(|word| word.bytes().all(|byte| byte.is_ascii_lowercase())));
    }

    #[test]
    fn a_key_gives_as_many_words_as_are_wanted_and_the_same_ones_again() {
        let words = Words::new(1);
        for count in [0, 1, 512, 65_056, 200_000] {
            let text = written(&words, 9, count);
            assert_eq!(text.split_whitespace().count(), count as usize);
            assert_eq!(text, written(&Words::new(1), 9, count));
        }
        assert_ne!(written(&words, 9, 50), written(&words, 10, 50));
        assert_ne!(written(&words, 9, 50), written(&Words::new(2), 9, 50));
        let mut last = Vec::new();
        words.write(u64::MAX, 3, &mut last);
        assert!(last.starts_with(b" "), "at the end of the sequence");
    }

    #[test]
    fn a_salt_has_sixteen_digits_whatever_its_value() {
        for (salt, text) in [(0, "0000000000000000"), (0xdead_0000_0000_beef, "dead00000000beef")] {
            let mut written = Vec::new();
            write_salt(salt, &mut written);
            assert_eq!(written, text.as_bytes());
        }
    }
}
