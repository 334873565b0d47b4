//! A language model of random weights, small enough to be made in a moment: llama.cpp's server then
//! does all that it does with a real one, but for sense. Written as GGUF, version 3
//! (<https://github.com/ggml-org/ggml/blob/master/docs/gguf.md>).
//!
//! Its vocabulary has made-up words, each with all its beginnings, so that the merges of a
//! SentencePiece tokenizer arrive at one token a word. The output matrix is zero but for whole
//! words: nothing else is ever sampled, and never the end of the text, so that answers are as long
//! as `max_tokens` allows.

use std::collections::BTreeMap;
use std::io::{self, Write};

/// Width of the embedding.
const WIDTH: usize = 64;
const HEAD_WIDTH: u32 = 32;
const LAYERS: usize = 2;
const FEED_FORWARD: usize = 2 * WIDTH;
/// Tokens that its positions reach to.
const CONTEXT_TOKENS: u32 = 131_072;
/// Where tensors begin.
const ALIGNMENT: usize = 32;
/// Kinds of tokens, as llama.cpp numbers them.
const NORMAL: i32 = 1;
const UNKNOWN: i32 = 2;
const CONTROL: i32 = 3;
const BYTE: i32 = 6;
/// SentencePiece's mark for a space.
const SPACE: char = '\u{2581}';
/// One system or user message after the other, and the role that is to speak.
const TEMPLATE: &str = "{{ bos_token }}{% for m in messages %} {{ m['role'] }} {{ m['content'] }}\
    {% endfor %}{% if add_generation_prompt %} assistant{% endif %}";

/// Writes the model.
pub(super) fn write(out: &mut impl Write) -> io::Result<()> {
    let vocabulary = Vocabulary::new();
    let tensors = tensors(&vocabulary);
    let mut head = Bytes::default();
    head.0.extend_from_slice(b"GGUF");
    head.u32(3);
    head.u64(tensors.len() as u64);
    let (count, facts) = facts(&vocabulary);
    head.u64(count);
    head.0.extend_from_slice(&facts.0);
    let mut offset = 0;
    for Tensor { name, dimensions, values } in &tensors {
        head.text(name);
        head.u32(dimensions.len() as u32);
        dimensions.iter().for_each(|dimension| head.u64(*dimension as u64));
        // Type 0 is f32.
        head.u32(0);
        head.u64(offset as u64);
        offset += (values.len() * 4).next_multiple_of(ALIGNMENT);
    }
    write_aligned(out, &head.0)?;
    for Tensor { values, .. } in &tensors {
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        write_aligned(out, &bytes)?;
    }
    Ok(())
}

fn write_aligned(out: &mut impl Write, bytes: &[u8]) -> io::Result<()> {
    out.write_all(bytes)?;
    let padding = bytes.len().next_multiple_of(ALIGNMENT) - bytes.len();
    out.write_all(&[0; ALIGNMENT][..padding])
}

struct Vocabulary {
    tokens: Vec<Entry>,
}

struct Entry {
    text: String,
    score: f32,
    kind: i32,
    is_word: bool,
}

impl Vocabulary {
    fn new() -> Self {
        let special =
            |text: &str, kind| Entry { text: text.into(), score: 0.0, kind, is_word: false };
        let mut tokens =
            vec![special("<unk>", UNKNOWN), special("<s>", CONTROL), special("</s>", CONTROL)];
        tokens.extend((0..=255).map(|byte: u8| special(&format!("<0x{byte:02X}>"), BYTE)));
        let letter =
            |letter: char| Entry { score: -1_000.0, ..special(&letter.to_string(), NORMAL) };
        tokens.extend([SPACE].into_iter().chain('!'..='~').map(letter));
        // By text, so that a beginning that words share is there once.
        let mut beginnings: BTreeMap<String, bool> = BTreeMap::new();
        for word in word_list() {
            for end in 1..=word.len() {
                *beginnings.entry(word[..end].to_owned()).or_default() |= end == word.len();
            }
        }
        tokens.extend(beginnings.into_iter().map(|(text, is_word)| Entry {
            // The tokenizer merges what has the higher score first: short before long.
            score: -100.0 - text.len() as f32,
            is_word,
            ..special(&format!("{SPACE}{text}"), NORMAL)
        }));
        Self { tokens }
    }
}

/// Words of two syllables.
fn word_list() -> impl Iterator<Item = String> {
    let syllables = || "bdfklmnprstv".chars().flat_map(|a| "aeiou".chars().map(move |b| (a, b)));
    let pairs = syllables().flat_map(move |first| syllables().map(move |second| (first, second)));
    // A few of 3,600, spread over all.
    pairs.step_by(7).map(|((a, b), (c, d))| [a, b, c, d].into_iter().collect())
}

/// The metadata: how many facts, and their bytes.
fn facts(vocabulary: &Vocabulary) -> (u64, Bytes) {
    let mut facts = Facts::default();
    facts.text("general.architecture", "llama");
    facts.text("general.name", "plimsoll-random");
    facts.number("general.file_type", 0);
    facts.number("llama.vocab_size", vocabulary.tokens.len() as u32);
    facts.number("llama.context_length", CONTEXT_TOKENS);
    facts.number("llama.embedding_length", WIDTH as u32);
    facts.number("llama.block_count", LAYERS as u32);
    facts.number("llama.feed_forward_length", FEED_FORWARD as u32);
    facts.number("llama.rope.dimension_count", HEAD_WIDTH);
    facts.number("llama.attention.head_count", WIDTH as u32 / HEAD_WIDTH);
    facts.number("llama.attention.head_count_kv", WIDTH as u32 / HEAD_WIDTH);
    facts.fraction("llama.attention.layer_norm_rms_epsilon", 1e-5);
    facts.text("tokenizer.ggml.model", "llama");
    facts.text("tokenizer.ggml.pre", "default");
    let tokens = &vocabulary.tokens;
    facts.list("tokenizer.ggml.tokens", TEXT, tokens, |bytes, entry| bytes.text(&entry.text));
    facts.list("tokenizer.ggml.scores", FRACTION, tokens, |bytes, entry| bytes.f32(entry.score));
    facts.list("tokenizer.ggml.token_type", SIGNED, tokens, |bytes, entry| {
        bytes.u32(entry.kind.cast_unsigned());
    });
    facts.number("tokenizer.ggml.unknown_token_id", 0);
    facts.number("tokenizer.ggml.bos_token_id", 1);
    facts.number("tokenizer.ggml.eos_token_id", 2);
    facts.text("tokenizer.chat_template", TEMPLATE);
    (facts.count, facts.bytes)
}

struct Tensor {
    name: String,
    /// The first is the one along which values lie side by side.
    dimensions: Vec<usize>,
    values: Vec<f32>,
}

fn tensors(vocabulary: &Vocabulary) -> Vec<Tensor> {
    let mut random = Random(0x0001_05FA_D1E5);
    let vocabulary_len = vocabulary.tokens.len();
    let unit = (WIDTH as f32).sqrt().recip();
    let mut all = Vec::new();
    let mut add = |name: String, dimensions: &[usize], values: Vec<f32>| {
        all.push(Tensor { name, dimensions: dimensions.to_vec(), values });
    };
    let embedding = random.values(WIDTH * vocabulary_len, 1.0);
    add("token_embd.weight".into(), &[WIDTH, vocabulary_len], embedding);
    add("output_norm.weight".into(), &[WIDTH], vec![1.0; WIDTH]);
    let rows = vocabulary.tokens.iter().flat_map(|entry| match entry.is_word {
        true => random.values(WIDTH, 0.6 * unit),
        false => vec![0.0; WIDTH],
    });
    add("output.weight".into(), &[WIDTH, vocabulary_len], rows.collect());
    for layer in 0..LAYERS {
        let name = |part: &str| format!("blk.{layer}.{part}.weight");
        for part in ["attn_norm", "ffn_norm"] {
            add(name(part), &[WIDTH], vec![1.0; WIDTH]);
        }
        for part in ["attn_q", "attn_k", "attn_v", "attn_output"] {
            add(name(part), &[WIDTH, WIDTH], random.values(WIDTH * WIDTH, unit));
        }
        for part in ["ffn_gate", "ffn_up"] {
            let values = random.values(WIDTH * FEED_FORWARD, unit);
            add(name(part), &[WIDTH, FEED_FORWARD], values);
        }
        let values = random.values(WIDTH * FEED_FORWARD, unit / 2.0_f32.sqrt());
        add(name("ffn_down"), &[FEED_FORWARD, WIDTH], values);
    }
    all
}

/// Numbers that are the same every time.
struct Random(u64);

impl Random {
    /// About normal, of this deviation.
    fn values(&mut self, count: usize, deviation: f32) -> Vec<f32> {
        // Four uniform ones have a variance of a third.
        (0..count)
            .map(|_| (0..4).map(|_| self.uniform()).sum::<f32>() * 0.866 * deviation)
            .collect()
    }

    /// From −1 to 1 (xorshift64).
    fn uniform(&mut self) -> f32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 40) as f32 / (1_u32 << 23) as f32 - 1.0
    }
}

/// Types of values.
const UNSIGNED: u32 = 4;
const SIGNED: u32 = 5;
const FRACTION: u32 = 6;
const TEXT: u32 = 8;
const LIST: u32 = 9;

#[derive(Default)]
struct Facts {
    count: u64,
    bytes: Bytes,
}

impl Facts {
    fn key(&mut self, key: &str, kind: u32) -> &mut Bytes {
        self.count += 1;
        self.bytes.text(key);
        self.bytes.u32(kind);
        &mut self.bytes
    }

    fn number(&mut self, key: &str, value: u32) {
        self.key(key, UNSIGNED).u32(value);
    }

    fn fraction(&mut self, key: &str, value: f32) {
        self.key(key, FRACTION).f32(value);
    }

    fn text(&mut self, key: &str, value: &str) {
        self.key(key, TEXT).text(value);
    }

    fn list<T>(&mut self, key: &str, kind: u32, items: &[T], write: impl Fn(&mut Bytes, &T)) {
        let bytes = self.key(key, LIST);
        bytes.u32(kind);
        bytes.u64(items.len() as u64);
        items.iter().for_each(|item| write(bytes, item));
    }
}

/// Little-endian.
#[derive(Default)]
struct Bytes(Vec<u8>);

impl Bytes {
    fn u32(&mut self, value: u32) {
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    fn u64(&mut self, value: u64) {
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    fn f32(&mut self, value: f32) {
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    fn text(&mut self, text: &str) {
        self.u64(text.len() as u64);
        self.0.extend_from_slice(text.as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_is_as_long_as_its_head_says_and_the_same_every_time() {
        let written = || {
            let mut bytes = Vec::new();
            write(&mut bytes).unwrap();
            bytes
        };
        let bytes = written();
        assert_eq!(&bytes[..8], b"GGUF\x03\0\0\0");
        assert_eq!(bytes, written());
        let vocabulary = Vocabulary::new();
        let values: usize = tensors(&vocabulary).iter().map(|tensor| tensor.values.len()).sum();
        assert!(bytes.len() > values * 4 && bytes.len() % ALIGNMENT == 0);
        assert!(bytes.len() < 3 << 20, "{}", bytes.len());
    }

    #[test]
    fn every_beginning_of_a_word_is_a_token_once() {
        let vocabulary = Vocabulary::new();
        let mut texts: Vec<&str> = vocabulary.tokens.iter().map(|one| one.text.as_str()).collect();
        texts.sort_unstable();
        let before = texts.len();
        texts.dedup();
        assert_eq!(texts.len(), before);
        let word_count = vocabulary.tokens.iter().filter(|entry| entry.is_word).count();
        assert_eq!(word_count, expected_word_count());
    }

    fn expected_word_count() -> usize {
        3_600_usize.div_ceil(7)
    }
}
