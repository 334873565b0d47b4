//! The content of one event of a streamed answer: OpenAI's chat completion chunks and completions,
//! as vLLM, SGLang, llama.cpp, TGI and others send them.
//! <https://platform.openai.com/docs/api-reference/chat-streaming>
//!
//! Only the fields that a measurement needs are picked; unknown ones are passed over. Names are
//! compared as they stand: one with an escape in it is unknown.

use super::json::{Json, Malformed, Text};

/// Lists and parts within each other that hold content; Mistral's are four. A bound, as they are
/// read by recursion.
const CONTENT_LEVELS: u32 = 6;

/// The content of an event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Picks<'a> {
    /// Text for the reader: of the last choice that has any.
    pub content: Option<Text<'a>>,
    /// Characters that a user sees: content, refusals, names and arguments of tool calls.
    pub visible: u64,
    /// Characters of reasoning.
    pub reasoning: u64,
    /// Why the answer ended, if it did.
    pub finish: Option<Text<'a>>,
    /// Counts of tokens, if the event has them.
    pub usage: Usage,
    /// The message of an error, or the whole error where it has none.
    pub error: Option<Text<'a>>,
    /// The event's text, for a caller that finds an error for another reason.
    pub message: Option<Text<'a>>,
}

/// Counts of tokens so far, as the server reports them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Of the prompt.
    pub prompt: Option<u64>,
    /// Of the answer; with some servers (xAI) without its reasoning.
    pub completion: Option<u64>,
    /// Of the prompt, found in a cache.
    pub cached: Option<u64>,
    /// Of prompt and answer.
    pub total: Option<u64>,
    /// Of the answer's reasoning.
    pub reasoning: Option<u64>,
}

impl Picks<'_> {
    /// Characters of output of any kind.
    pub const fn characters(&self) -> u64 {
        self.visible + self.reasoning
    }
}

impl Usage {
    /// Overwrites the counts that `later` has.
    pub fn update(&mut self, later: Self) {
        self.prompt = later.prompt.or(self.prompt);
        self.completion = later.completion.or(self.completion);
        self.cached = later.cached.or(self.cached);
        self.total = later.total.or(self.total);
        self.reasoning = later.reasoning.or(self.reasoning);
    }

    /// Tokens of an answer, those of its reasoning included: if `completion` leaves the reasoning
    /// out, all tokens but the prompt's.
    pub fn output(&self, reasoning_characters: u64) -> Option<u64> {
        let completion = self.completion?;
        let reasoning = self.reasoning.unwrap_or_default();
        let answer = self.total.zip(self.prompt).map(|(all, prompt)| all.saturating_sub(prompt));
        let answer = answer.filter(|answer| *answer > completion);
        let has_reasoning = reasoning > 0 || reasoning_characters > 0;
        let explains = |answer: u64| has_reasoning && answer - completion >= reasoning;
        // A part is not more than the whole.
        let is_outside = reasoning > completion || answer.is_some_and(explains);
        Some(match answer {
            _ if !is_outside => completion,
            Some(answer) => answer,
            None => completion.saturating_add(reasoning),
        })
    }

    /// The counts contradict each other, if `completion` is all of the answer.
    pub fn disagrees(&self) -> bool {
        let Some(completion) = self.completion else { return false };
        let sum = self.prompt.map(|prompt| prompt.saturating_add(completion));
        self.total.zip(sum).is_some_and(|(total, sum)| total != sum)
            || self.reasoning.is_some_and(|reasoning| reasoning > completion)
    }
}

/// Reads the data of an event.
pub fn pick(data: &[u8]) -> Result<Picks<'_>, Malformed> {
    let mut json = Json::new(data)?;
    let mut picks = Picks::default();
    if json.peek() != b'{' {
        return Err(Malformed::Syntax { at: 0 });
    }
    // Some servers send an error itself instead of one in an object.
    let (mut is_error, mut has_code, mut has_choices, mut text) = (false, false, false, None);
    json.object(|json, name| {
        match name.raw() {
            "choices" => {
                has_choices = true;
                json.array(|json| choice(json, &mut picks))?;
            }
            "usage" => usage(json, &mut picks.usage)?,
            "error" => error(json, &mut picks.error)?,
            "object" | "type" | "status" => {
                is_error |= json.text()?.is_some_and(|text| text.raw() == "error");
            }
            // FastChat's.
            "error_code" => is_error |= is_code(json)?,
            "code" => has_code = is_code(json)?,
            "message" | "detail" => picks.message = json.text()?.or(picks.message),
            "text" => text = json.text()?,
            _ => json.skip()?,
        }
        Ok(())
    })?;
    json.end()?;
    picks.message = picks.message.or(text);
    is_error |= has_code && !has_choices && picks.message.is_some();
    if is_error && picks.error.is_none() {
        picks.error = Some(picks.message.unwrap_or_default());
    }
    Ok(picks)
}

/// The code of an error: neither absent nor one of success.
fn is_code(json: &mut Json<'_>) -> Result<bool, Malformed> {
    Ok(!matches!(json.raw(Json::skip)?, "0" | "200" | "null" | "\"\"" | "\"0\"" | "false"))
}

fn choice<'a>(json: &mut Json<'a>, picks: &mut Picks<'a>) -> Result<(), Malformed> {
    json.object(|json, name| match name.raw() {
        "delta" => delta(json, picks),
        "text" => content(json, picks, CONTENT_LEVELS),
        "finish_reason" => {
            picks.finish = json.text()?.filter(|text| !is_no_reason(*text)).or(picks.finish);
            Ok(())
        }
        // OpenRouter's.
        "error" => error(json, &mut picks.error),
        // Some servers count in the choice.
        "usage" => usage(json, &mut picks.usage),
        _ => json.skip(),
    })
}

/// What some servers send instead of `null` until the answer ends.
fn is_no_reason(finish: Text<'_>) -> bool {
    let reason = finish.raw().trim();
    ["", "null", "none"].iter().any(|none| reason.eq_ignore_ascii_case(none))
}

fn delta<'a>(json: &mut Json<'a>, picks: &mut Picks<'a>) -> Result<(), Malformed> {
    // A server may send the same text under its old name and its new one.
    let mut reasoning = 0;
    json.object(|json, name| match name.raw() {
        "content" => content(json, picks, CONTENT_LEVELS),
        "reasoning_content" | "reasoning" | "reasoning_details" => {
            let mut other = Picks::default();
            content(json, &mut other, CONTENT_LEVELS)?;
            reasoning = reasoning.max(other.characters());
            Ok(())
        }
        "refusal" => {
            picks.visible += characters(json)?;
            Ok(())
        }
        "tool_calls" => json.array(|json| {
            json.object(|json, name| match name.raw() {
                "function" => function(json, picks),
                _ => json.skip(),
            })
        }),
        "function_call" => function(json, picks),
        _ => json.skip(),
    })?;
    picks.reasoning += reasoning;
    Ok(())
}

/// Text, or parts with text: a list of them, as Mistral's reasoning models send it, holds another.
fn content<'a>(json: &mut Json<'a>, picks: &mut Picks<'a>, levels: u32) -> Result<(), Malformed> {
    match (json.peek(), levels.checked_sub(1)) {
        (b'[', Some(levels)) => json.array(|json| content(json, picks, levels)),
        (b'{', Some(levels)) => part(json, picks, levels),
        _ => {
            let text = json.text()?.filter(|text| !text.is_empty());
            picks.visible += text.map_or(0, Text::characters);
            picks.content = text.or(picks.content);
            Ok(())
        }
    }
}

/// `{"type":"text","text":"…"}`, `{"type":"thinking","thinking":[{"type":"text","text":"…"}]}`.
fn part<'a>(json: &mut Json<'a>, picks: &mut Picks<'a>, levels: u32) -> Result<(), Malformed> {
    let (mut shown, mut thought) = (Picks::default(), Picks::default());
    let mut is_reasoning = false;
    json.object(|json, name| match name.raw() {
        "type" => {
            let kind = json.text()?.map_or("", Text::raw);
            is_reasoning = kind.starts_with("thinking") || kind.starts_with("reasoning");
            Ok(())
        }
        "text" | "content" | "refusal" => content(json, &mut shown, levels),
        "thinking" | "reasoning" | "summary" => content(json, &mut thought, levels),
        _ => json.skip(),
    })?;
    if is_reasoning {
        picks.reasoning += shown.characters();
    } else {
        picks.visible += shown.visible;
        picks.reasoning += shown.reasoning;
        picks.content = shown.content.or(picks.content);
    }
    picks.reasoning += thought.characters();
    Ok(())
}

fn function(json: &mut Json<'_>, picks: &mut Picks<'_>) -> Result<(), Malformed> {
    json.object(|json, name| match name.raw() {
        "name" | "arguments" => {
            picks.visible += characters(json)?;
            Ok(())
        }
        _ => json.skip(),
    })
}

fn characters(json: &mut Json<'_>) -> Result<u64, Malformed> {
    Ok(json.text()?.map_or(0, Text::characters))
}

fn usage(json: &mut Json<'_>, usage: &mut Usage) -> Result<(), Malformed> {
    let mut reported = Usage::default();
    json.object(|json, name| {
        match name.raw() {
            "prompt_tokens" => reported.prompt = json.count()?,
            "completion_tokens" => reported.completion = json.count()?,
            "total_tokens" => reported.total = json.count()?,
            "prompt_tokens_details" => reported.cached = detail(json, "cached_tokens")?,
            "completion_tokens_details" => reported.reasoning = detail(json, "reasoning_tokens")?,
            _ => json.skip()?,
        }
        Ok(())
    })?;
    usage.update(reported);
    Ok(())
}

fn detail(json: &mut Json<'_>, key: &str) -> Result<Option<u64>, Malformed> {
    let mut count = None;
    json.object(|json, name| {
        if name.raw() == key {
            count = json.count()?
        } else {
            json.skip()?
        }
        Ok(())
    })?;
    Ok(count)
}

/// The error of an event: text, or an object with a message.
fn error<'a>(json: &mut Json<'a>, error: &mut Option<Text<'a>>) -> Result<(), Malformed> {
    match json.peek() {
        b'"' => *error = json.text()?,
        b'{' => {
            let mut message = None;
            let whole = json.raw(|json| {
                json.object(|json, name| match name.raw() {
                    "message" => {
                        message = json.text()?;
                        Ok(())
                    }
                    _ => json.skip(),
                })
            })?;
            *error = Some(message.unwrap_or(Text::plain(whole)));
        }
        b'n' => json.skip()?,
        _ => *error = Some(Text::plain(json.raw(Json::skip)?)),
    }
    Ok(())
}

#[cfg(test)]
#[path = "picks_tests.rs"]
mod tests;
