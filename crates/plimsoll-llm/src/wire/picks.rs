//! What one event of a streamed answer says: OpenAI's chat completion chunks and completions, as
//! vLLM, SGLang, llama.cpp, TGI and others send them. <https://platform.openai.com/docs/api-reference/chat-streaming>
//!
//! Only the fields that a measurement needs are picked; unknown ones are passed over. Names are
//! compared as they stand: one with an escape in it is unknown.

use super::json::{Json, Malformed, Text};

/// What an event says.
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
}

/// Counts of tokens so far, as the server says them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Of the prompt.
    pub prompt: Option<u64>,
    /// Of the answer, reasoning included.
    pub completion: Option<u64>,
    /// Of the prompt, found in a cache.
    pub cached: Option<u64>,
}

impl Picks<'_> {
    /// Characters of output of any kind.
    pub const fn characters(&self) -> u64 {
        self.visible + self.reasoning
    }
}

impl Usage {
    /// Replaces what `later` says.
    pub fn update(&mut self, later: Self) {
        self.prompt = later.prompt.or(self.prompt);
        self.completion = later.completion.or(self.completion);
        self.cached = later.cached.or(self.cached);
    }
}

/// Reads the data of an event.
pub fn pick(data: &[u8]) -> Result<Picks<'_>, Malformed> {
    let mut json = Json::new(data)?;
    let mut picks = Picks::default();
    if json.peek() != b'{' {
        return Err(Malformed::Syntax { at: 0 });
    }
    let mut is_error = false;
    let mut message = None;
    json.object(|json, name| match name.raw() {
        "choices" => json.array(|json| choice(json, &mut picks)),
        "usage" => usage(json, &mut picks.usage),
        "error" => error(json, &mut picks.error),
        // Older servers have the error itself instead of one in an object.
        "object" => {
            is_error = json.text()?.is_some_and(|text| text.raw() == "error");
            Ok(())
        }
        "message" => {
            message = json.text()?;
            Ok(())
        }
        _ => json.skip(),
    })?;
    json.end()?;
    if is_error && picks.error.is_none() {
        picks.error = Some(message.unwrap_or_default());
    }
    Ok(picks)
}

fn choice<'a>(json: &mut Json<'a>, picks: &mut Picks<'a>) -> Result<(), Malformed> {
    json.object(|json, name| match name.raw() {
        "delta" => delta(json, picks),
        "text" => content(json, picks),
        "finish_reason" => {
            picks.finish = json.text()?.or(picks.finish);
            Ok(())
        }
        // Some servers count in the choice.
        "usage" => usage(json, &mut picks.usage),
        _ => json.skip(),
    })
}

fn delta<'a>(json: &mut Json<'a>, picks: &mut Picks<'a>) -> Result<(), Malformed> {
    // A server may send the same text under its old name and its new one.
    let mut reasoning = 0;
    json.object(|json, name| match name.raw() {
        "content" => content(json, picks),
        "reasoning_content" | "reasoning" => {
            reasoning = reasoning.max(characters(json)?);
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

fn content<'a>(json: &mut Json<'a>, picks: &mut Picks<'a>) -> Result<(), Malformed> {
    let text = json.text()?.filter(|text| !text.is_empty());
    picks.visible += text.map_or(0, Text::characters);
    picks.content = text.or(picks.content);
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
    let mut said = Usage::default();
    json.object(|json, name| {
        match name.raw() {
            "prompt_tokens" => said.prompt = json.count()?,
            "completion_tokens" => said.completion = json.count()?,
            "prompt_tokens_details" => said.cached = detail(json, "cached_tokens")?,
            _ => json.skip()?,
        }
        Ok(())
    })?;
    usage.update(said);
    Ok(())
}

fn detail(json: &mut Json<'_>, wanted: &str) -> Result<Option<u64>, Malformed> {
    let mut count = None;
    json.object(|json, name| {
        match name.raw() == wanted {
            true => count = json.count()?,
            false => json.skip()?,
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
