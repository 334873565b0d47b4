//! What a token is here: a word of the prompt, and a few more that the template adds. Answers are
//! words of a fixed list; the prompt decides with which of them an answer begins.

use super::law::BLOCK_TOKENS;

/// Tokens that begin every prompt.
pub(super) const BEGIN: Special = Special(1);
/// Begins a message; a role is no token of its own.
const MESSAGE: Special = Special(2);
const MESSAGE_END: Special = Special(3);
/// An odd constant that spreads bits well.
const SPREAD: u64 = 0x9E37_79B9_7F4A_7C15;
/// Token ids, as `/tokenize` shows them, are below this.
const VOCABULARY: u64 = 100_000;

/// A token that is no word.
#[derive(Clone, Copy)]
pub(super) struct Special(u64);

/// Words of answers.
const WORD_LIST: [&str; 64] = [
    "the", "harbour", "is", "quiet", "before", "a", "storm", "and", "every", "ship", "has", "its",
    "line", "that", "shows", "how", "much", "it", "may", "carry", "in", "summer", "or", "winter",
    "water", "salt", "fresh", "cold", "warm", "deep", "below", "which", "no", "cargo", "should",
    "press", "hull", "of", "iron", "wood", "when", "clouds", "gather", "over", "open", "sea",
    "men", "load", "grain", "coal", "cotton", "tea", "by", "night", "day", "under", "lamps",
    "while", "clerks", "count", "barrels", "on", "long", "lists",
];

/// A prompt, token after token.
#[derive(Debug, Default)]
pub(super) struct Prompt {
    tokens: u32,
    hash: u64,
    /// Hashes up to the end of each whole block, if needed.
    blocks: Option<Vec<u64>>,
    ids: Option<Vec<u32>>,
}

impl Prompt {
    /// Nothing yet.
    pub(super) fn new() -> Self {
        Self::default()
    }

    /// The same that remembers its blocks.
    pub(super) fn with_blocks(self) -> Self {
        Self { blocks: Some(Vec::new()), ..self }
    }

    /// The same that remembers the ids of its tokens.
    pub(super) fn with_ids(self) -> Self {
        Self { ids: Some(Vec::new()), ..self }
    }

    /// Adds what the template puts at the start.
    pub(super) fn begin(&mut self) {
        self.push(BEGIN.0);
    }

    /// Adds a message of a chat: its words between two tokens of the template.
    pub(super) fn message<'a>(&mut self, role: &str, texts: impl Iterator<Item = &'a str>) {
        self.open_message(role);
        texts.for_each(|text| self.text(text));
        self.push(MESSAGE_END.0);
    }

    /// Adds what comes before a message's words.
    pub(super) fn open_message(&mut self, role: &str) {
        self.push(hash_of(role.as_bytes()) ^ MESSAGE.0);
    }

    /// Adds words.
    pub(super) fn text(&mut self, text: &str) {
        text.split_whitespace().for_each(|word| self.push(hash_of(word.as_bytes())));
    }

    /// Adds a token that was given by its id.
    pub(super) fn id(&mut self, id: u64) {
        self.push(id.wrapping_mul(SPREAD));
    }

    fn push(&mut self, token: u64) {
        self.tokens += 1;
        self.hash = (self.hash ^ token).wrapping_mul(SPREAD).rotate_left(29);
        if let Some(ids) = &mut self.ids {
            ids.push((token % VOCABULARY) as u32);
        }
        if let Some(blocks) =
            self.blocks.as_mut().filter(|_| self.tokens.is_multiple_of(BLOCK_TOKENS))
        {
            blocks.push(self.hash);
        }
    }

    pub(super) fn tokens(&self) -> u32 {
        self.tokens
    }

    pub(super) fn ids(&self) -> &[u32] {
        self.ids.as_deref().unwrap_or_default()
    }

    /// The answer that follows from it.
    pub(super) fn answer(&self) -> Answer {
        Answer { next: (self.hash >> 32) as usize % WORD_LIST.len() }
    }

    /// Adds an answer of `tokens`, and gives the blocks of both.
    pub(super) fn blocks_with_answer(mut self, tokens: u32) -> Vec<u64> {
        if self.blocks.is_some() {
            self.answer().take(tokens as usize).for_each(|word| self.text(word));
        }
        self.blocks.unwrap_or_default()
    }
}

/// The words of an answer, without end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Answer {
    next: usize,
}

impl Iterator for Answer {
    type Item = &'static str;

    fn next(&mut self) -> Option<&'static str> {
        let word = WORD_LIST[self.next];
        self.next = (self.next + 1) % WORD_LIST.len();
        Some(word)
    }
}

/// FNV-1a.
fn hash_of(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xCBF2_9CE4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01B3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chat(messages: &[(&str, &str)]) -> Prompt {
        let mut prompt = Prompt::new().with_blocks();
        prompt.begin();
        messages.iter().for_each(|(role, text)| prompt.message(role, [*text].into_iter()));
        prompt.open_message("assistant");
        prompt
    }

    #[test]
    fn a_word_is_a_token_and_the_template_adds_two_and_two_a_message() {
        assert_eq!(chat(&[("user", "one  two\nthree")]).tokens(), 3 + 2 + 2);
        assert_eq!(chat(&[("system", "one"), ("user", "two")]).tokens(), 2 + 2 + 4);
    }

    #[test]
    fn the_next_turn_of_a_conversation_begins_with_prompt_and_answer() {
        let text = "word ".repeat(40);
        let first = chat(&[("user", &text)]);
        let answer: Vec<&str> = first.answer().take(30).collect();
        let before = first.blocks_with_answer(30);
        let next = chat(&[("user", &text), ("assistant", &answer.join(" ")), ("user", "more")]);
        let now = next.blocks_with_answer(0);
        assert_eq!(before.len(), (40 + 4 + 30) / 16);
        assert_eq!(now[..before.len()], before);
        let other = chat(&[("user", "salt"), ("user", &text)]).blocks_with_answer(0);
        assert_ne!(other[0], before[0]);
    }

    #[test]
    fn the_same_prompt_has_the_same_answer() {
        let answer = |text: &str| chat(&[("user", text)]).answer().take(5).collect::<Vec<_>>();
        assert_eq!(answer("a b"), answer("a b"));
        assert!((0..9).any(|n| answer(&format!("a {n}")) != answer("a b")));
    }
}
