//! What the clients have in common: a tokenizer, which most of them want although the server counts
//! the tokens, and prompts.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use xtask::verb::Result;

/// The tokenizer's vocabulary size.
const VOCABULARY_SIZE: u32 = 4_000;
/// Tokens of a prompt.
pub const PROMPT_TOKENS: u32 = 64;
/// Prompts in a file of prompts.
const PROMPTS: u32 = 2_000;
/// The hub's name of a version.
const REVISION: &str = "0000000000000000000000000000000000000000";

/// Writes the tokenizer into a cache of the Hugging Face hub, as `local/tok`, and returns the
/// folder that holds its files.
pub fn tokenizer(cache: &Path) -> Result<PathBuf> {
    let repository = cache.join("models--local--tok");
    let files = repository.join("snapshots").join(REVISION);
    write(&repository.join("refs/main"), REVISION)?;
    write(&files.join("tokenizer.json"), &tokenizer_json().to_string())?;
    let settings = json!({
        "tokenizer_class": "PreTrainedTokenizerFast",
        "unk_token": "[UNK]",
        "bos_token": "<s>",
        "eos_token": "</s>",
        "model_max_length": 100_000,
    });
    write(&files.join("tokenizer_config.json"), &settings.to_string())?;
    let config = json!({ "model_type": "llama", "vocab_size": VOCABULARY_SIZE });
    write(&files.join("config.json"), &config.to_string())?;
    Ok(files)
}

/// Every word is a token.
fn tokenizer_json() -> Value {
    let special = ["[UNK]", "<s>", "</s>"].map(str::to_owned);
    let tokens = special.into_iter().chain((3..VOCABULARY_SIZE).map(|number| format!("w{number}")));
    let vocabulary: BTreeMap<String, usize> = tokens.enumerate().map(|(id, w)| (w, id)).collect();
    json!({
        "version": "1.0",
        "truncation": null,
        "padding": null,
        "added_tokens": [],
        "normalizer": null,
        "pre_tokenizer": { "type": "Whitespace" },
        "post_processor": null,
        "decoder": null,
        "model": { "type": "WordLevel", "vocab": vocabulary, "unk_token": "[UNK]" },
    })
}

/// Writes prompts, each different, one a line: JSON with `prompt`, and how long the answer is to be
/// in the field that GuideLLM looks for.
pub fn prompts(path: &Path, output_tokens: u64) -> Result<()> {
    let word = |prompt: u32, index: u32| {
        format!("w{}", 3 + (prompt * 31 + index * 7) % (VOCABULARY_SIZE - 3))
    };
    let prompt = |number| -> String {
        let tokens: Vec<String> = (0..PROMPT_TOKENS).map(|index| word(number, index)).collect();
        format!("{}\n", json!({ "prompt": tokens.join(" "), "output_tokens_count": output_tokens }))
    };
    write(path, &(0..PROMPTS).map(prompt).collect::<String>())
}

fn write(path: &Path, text: &str) -> Result<()> {
    let folder = path.parent().unwrap_or(path);
    let written = fs::create_dir_all(folder).and_then(|()| fs::write(path, text));
    written.map_err(|e| format!("{}: {e}", path.display()))
}
