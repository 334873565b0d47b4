//! The JSON of a request, with the fields of OpenAI's interface that this server supports.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::Value;

use super::reply::Refusal;
use super::tokens::Prompt;
use super::{LlmConfig, UsageStyle};

/// Tokens of an answer when the request has no limit.
const CHAT_TOKENS: u64 = 256;
/// OpenAI's default for completions.
const COMPLETION_TOKENS: u64 = 16;

/// Which of the two interfaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// `/v1/chat/completions`.
    Chat,
    /// `/v1/completions`.
    Completion,
}

/// Why an answer ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Finish {
    Stop,
    Length,
}

impl Finish {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Stop => "stop",
            Self::Length => "length",
        }
    }
}

/// A request.
#[derive(Debug)]
pub(super) struct GenerationRequest {
    pub(super) kind: Kind,
    pub(super) prompt: Prompt,
    pub(super) output_tokens: u32,
    pub(super) finish: Finish,
    /// As a stream, with this usage; or in one.
    pub(super) stream: Option<UsageStyle>,
}

#[derive(Deserialize)]
struct Body<'a> {
    #[serde(borrow)]
    model: Option<Cow<'a, str>>,
    #[serde(borrow)]
    messages: Option<Vec<Message<'a>>>,
    prompt: Option<Value>,
    content: Option<Value>,
    max_tokens: Option<u64>,
    max_completion_tokens: Option<u64>,
    min_tokens: Option<u64>,
    ignore_eos: Option<bool>,
    n: Option<u64>,
    stream: Option<bool>,
    stream_options: Option<StreamOptions>,
    add_special_tokens: Option<bool>,
    add_special: Option<bool>,
}

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow)]
    role: Cow<'a, str>,
    content: Option<Value>,
}

#[derive(Deserialize)]
struct StreamOptions {
    include_usage: Option<bool>,
    continuous_usage_stats: Option<bool>,
}

/// Reads the body of a request for an answer.
pub(super) fn read(
    kind: Kind,
    body: &[u8],
    config: &LlmConfig,
) -> Result<GenerationRequest, Refusal> {
    let body = parse(body, config)?;
    if body.n.is_some_and(|n| n != 1) {
        return Err(Refusal::bad("n: this server gives one answer to a request"));
    }
    let prompt = match config.law.has_prefix_cache() {
        true => Prompt::new().with_blocks(),
        false => Prompt::new(),
    };
    let prompt = fill(kind, &body, prompt)?;
    let (output_tokens, finish) = output(kind, &body, (prompt.tokens(), config))?;
    let stream = body.stream.unwrap_or(false).then(|| usage_style(body.stream_options.as_ref()));
    Ok(GenerationRequest { kind, prompt, output_tokens, finish, stream })
}

/// Reads the body of a request to `/tokenize`: its tokens, and whether they go by vLLM's shape
/// (with a count) or by llama.cpp's.
pub(super) fn read_tokenize(body: &[u8], config: &LlmConfig) -> Result<(Vec<u32>, bool), Refusal> {
    let body = parse(body, config)?;
    let mut prompt = Prompt::new().with_ids();
    if let Some(content) = &body.content {
        if body.add_special.unwrap_or(false) {
            prompt.begin();
        }
        texts(content).for_each(|text| prompt.text(text));
        return Ok((prompt.ids().to_vec(), false));
    }
    let prompt = match (&body.messages, &body.prompt) {
        (Some(_), _) => fill(Kind::Chat, &body, prompt)?,
        (None, Some(text)) => {
            if body.add_special_tokens.unwrap_or(true) {
                prompt.begin();
            }
            texts(text).for_each(|text| prompt.text(text));
            prompt
        }
        (None, None) => return Err(Refusal::bad("prompt, messages or content: one is needed")),
    };
    Ok((prompt.ids().to_vec(), true))
}

fn parse<'a>(body: &'a [u8], config: &LlmConfig) -> Result<Body<'a>, Refusal> {
    let body: Body<'a> = serde_json::from_slice(body)
        .map_err(|e| Refusal::bad(&format!("the body is not what is expected: {e}")))?;
    match &body.model {
        Some(name) if *name != config.model => Err(Refusal::no_model(name)),
        _ => Ok(body),
    }
}

fn fill(kind: Kind, body: &Body<'_>, mut prompt: Prompt) -> Result<Prompt, Refusal> {
    prompt.begin();
    match (kind, &body.messages, &body.prompt) {
        (Kind::Chat, Some(messages), _) => {
            for Message { role, content } in messages {
                prompt.message(role, content.iter().flat_map(texts));
            }
            prompt.open_message("assistant");
        }
        (Kind::Completion, _, Some(Value::Array(ids))) if ids.iter().all(Value::is_u64) => {
            ids.iter().filter_map(Value::as_u64).for_each(|id| prompt.id(id));
        }
        (Kind::Completion, _, Some(Value::Array(several))) if several.len() != 1 => {
            return Err(Refusal::bad("prompt: this server takes one prompt a request"));
        }
        (Kind::Completion, _, Some(text)) => texts(text).for_each(|text| prompt.text(text)),
        (Kind::Chat, None, _) => return Err(Refusal::bad("messages: field required")),
        (Kind::Completion, _, None) => return Err(Refusal::bad("prompt: field required")),
    }
    Ok(prompt)
}

/// A text, or those of an array of texts or of content parts.
fn texts(value: &Value) -> Box<dyn Iterator<Item = &str> + '_> {
    match value {
        Value::String(text) => Box::new(std::iter::once(text.as_str())),
        Value::Array(parts) => Box::new(
            parts.iter().filter_map(|part| part.as_str().or_else(|| part.get("text")?.as_str())),
        ),
        _ => Box::new(std::iter::empty()),
    }
}

/// How long the answer is, and why it ends there.
fn output(
    kind: Kind,
    body: &Body<'_>,
    (prompt_tokens, config): (u32, &LlmConfig),
) -> Result<(u32, Finish), Refusal> {
    let room = u64::from(config.context_tokens.saturating_sub(prompt_tokens));
    let requested = body.max_completion_tokens.or(body.max_tokens);
    if room == 0 || requested.is_some_and(|requested| requested > room) {
        let requested = requested.unwrap_or(1);
        return Err(Refusal::too_long(config.context_tokens, prompt_tokens, requested));
    }
    let default = if kind == Kind::Chat { CHAT_TOKENS } else { COMPLETION_TOKENS };
    let length = requested.unwrap_or(default.min(room));
    if length == 0 {
        return Err(Refusal::bad("max_tokens must be at least 1"));
    }
    let own = config.ends_after_tokens.filter(|_| !body.ignore_eos.unwrap_or(false));
    let own = own.map_or(u64::MAX, |own| u64::from(own).max(body.min_tokens.unwrap_or(0)));
    let finish = if own <= length { Finish::Stop } else { Finish::Length };
    // No more than the context, which is a u32.
    Ok((own.min(length) as u32, finish))
}

fn usage_style(options: Option<&StreamOptions>) -> UsageStyle {
    let is_set = |of: fn(&StreamOptions) -> Option<bool>| options.and_then(of).unwrap_or(false);
    match is_set(|options| options.include_usage) {
        false => UsageStyle::None,
        true if is_set(|options| options.continuous_usage_stats) => UsageStyle::Continuous,
        true => UsageStyle::Final,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config() -> LlmConfig {
        let config = super::super::tests::config();
        LlmConfig { context_tokens: 100, ends_after_tokens: Some(20), ..config }
    }

    fn chat(rest: &str) -> Result<GenerationRequest, Refusal> {
        let body = format!(r#"{{"messages":[{{"role":"user","content":"a b c"}}]{rest}}}"#);
        read(Kind::Chat, body.as_bytes(), &config())
    }

    #[test]
    fn an_answer_is_as_long_as_the_limit_or_ends_by_itself() {
        let length = |rest: &str| chat(rest).map(|w| (w.output_tokens, w.finish)).unwrap();
        assert_eq!(length(""), (20, Finish::Stop));
        assert_eq!(length(r#","max_tokens":5"#), (5, Finish::Length));
        assert_eq!(length(r#","max_tokens":9,"max_completion_tokens":6"#), (6, Finish::Length));
        assert_eq!(length(r#","max_tokens":50"#), (20, Finish::Stop));
        assert_eq!(length(r#","max_tokens":50,"ignore_eos":true"#), (50, Finish::Length));
        assert_eq!(length(r#","max_tokens":50,"min_tokens":30"#), (30, Finish::Stop));
        assert_eq!(length(r#","ignore_eos":true"#), (93, Finish::Length), "to the context's end");
    }

    #[test]
    fn what_is_refused_says_why() {
        let why = |rest: &str| chat(rest).unwrap_err().to_string();
        let long = why(r#","max_tokens":94"#);
        assert!(long.contains("maximum context length is 100 tokens"), "{long}");
        assert!(why(r#","model":"x""#).contains("model `x` does not exist"));
        assert!(why(r#","n":2"#).contains("one answer"));
        assert!(why(r#","max_tokens":0"#).contains("at least 1"));
        assert!(read(Kind::Completion, b"{}", &config()).is_err());
        assert!(read(Kind::Chat, b"{", &config()).is_err());
    }

    #[test]
    fn usage_comes_as_it_is_asked_for() {
        let style = |rest: &str| chat(rest).unwrap().stream;
        assert_eq!(style(""), None);
        assert_eq!(style(r#","stream":true"#), Some(UsageStyle::None));
        let with = |options: &str| style(&format!(r#","stream":true,"stream_options":{options}"#));
        assert_eq!(with(r#"{"include_usage":true}"#), Some(UsageStyle::Final));
        let both = r#"{"include_usage":true,"continuous_usage_stats":true}"#;
        assert_eq!(with(both), Some(UsageStyle::Continuous));
    }

    #[test]
    fn prompts_come_as_text_parts_or_ids() {
        let tokens = |body: &str| {
            read(Kind::Completion, body.as_bytes(), &config()).unwrap().prompt.tokens()
        };
        assert_eq!(tokens(r#"{"prompt":"a b"}"#), 3);
        assert_eq!(tokens(r#"{"prompt":["a b"]}"#), 3);
        assert_eq!(tokens(r#"{"prompt":[5,6,7]}"#), 4);
        let parts =
            br#"{"messages":[{"role":"user","content":[{"type":"text","text":"a \" b"}]}]}"#;
        assert_eq!(read(Kind::Chat, parts, &config()).unwrap().prompt.tokens(), 3 + 4);
    }

    #[test]
    fn tokenize_answers_in_the_shape_of_who_asks() {
        let ask = |body: &str| read_tokenize(body.as_bytes(), &config()).unwrap();
        assert_eq!(ask(r#"{"content":"a b"}"#).0.len(), 2);
        assert!(ask(r#"{"prompt":"a b","add_special_tokens":false}"#).1);
        assert_eq!(ask(r#"{"prompt":"a b"}"#).0.len(), 3);
        assert_eq!(ask(r#"{"messages":[{"role":"user","content":"a"}]}"#).0.len(), 5);
    }
}
