//! Prompts of the user's own (`--prompts FILE`): one a line as JSON, or a list of them.
//!
//! A prompt is `{"prompt": "…"}`, `{"messages": [{"role": …, "content": …}, …]}`, or a conversation
//! as ShareGPT has it, whose first question is taken: `{"conversations": [{"from": "human",
//! "value": "…"}, …]}`. `max_tokens` or `output_tokens` limits its answer. A prompt without a
//! question is left out and counted: the usual files have some (SpecForge #482, vllm#28699).

use serde_json::{Map, Value as Json, json};

use super::FileError;
use super::body::write_escaped;
use super::word_sequence::write_salt;
use crate::lengths::TOKENS_MAX;
use crate::parameters::{Endpoint, Salt};

/// Prompts of a file.
const PROMPTS_MAX: usize = 1 << 22;

/// Prompts of a file, ready to be sent.
#[derive(Debug)]
pub(crate) struct UserPrompts {
    prompts: Vec<UserPrompt>,
    /// Entries without a question.
    left_out: usize,
}

/// One of them: bytes of JSON, and where among them a salt goes.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct UserPrompt {
    /// Messages of a chat, or the text of a completion.
    text: Vec<u8>,
    salt_at: usize,
    /// Its own bound on the answer.
    pub(super) output_tokens: Option<u32>,
}

impl UserPrompts {
    /// How many there are; one at least.
    pub(crate) fn count(&self) -> usize {
        self.prompts.len()
    }

    /// The file's line in the report.
    pub(crate) fn fact(&self, file: &str) -> String {
        let left_out = match self.left_out {
            0 => String::new(),
            more => format!("; {more} without a question left out"),
        };
        format!("of {file} ({} prompts{left_out})", self.count())
    }

    pub(super) fn get(&self, index: usize) -> &UserPrompt {
        &self.prompts[index]
    }

    /// Reads a file, named for messages.
    pub(crate) fn read(
        text: &str,
        file: &str,
        endpoint: Endpoint,
        salt: Salt,
    ) -> Result<Self, FileError> {
        let error = |location: String, reason: String| FileError {
            file: file.to_owned(),
            location,
            reason,
        };
        let (mut prompts, mut left_out) = (Vec::new(), 0);
        let mut add = |json: Json, location: &dyn Fn() -> String| {
            let read = UserPrompt::from_json(json, endpoint, salt);
            match read.map_err(|reason| error(location(), reason))? {
                Some(prompt) => prompts.push(prompt),
                None => left_out += 1,
            }
            match prompts.len() > PROMPTS_MAX {
                true => Err(error(location(), format!("more than {PROMPTS_MAX} prompts; cut it"))),
                false => Ok(()),
            }
        };
        let text = text.trim_start_matches('\u{feff}');
        if text.trim_start().starts_with('[') {
            let list = serde_json::from_str::<Vec<Json>>(text);
            let list = list.map_err(|e| error(String::new(), e.to_string()))?;
            for (json, number) in list.into_iter().zip(1..) {
                add(json, &|| format!(", prompt {number}"))?;
            }
        } else {
            for (line, number) in text.lines().zip(1..) {
                if line.trim().is_empty() {
                    continue;
                }
                let location = || format!(":{number}");
                let json =
                    serde_json::from_str(line).map_err(|e| error(location(), e.to_string()))?;
                add(json, &location)?;
            }
        }
        match (prompts.len(), left_out) {
            (0, 0) => Err(error(String::new(), "it holds no prompt".to_owned())),
            (0, all) => Err(error(
                String::new(),
                format!(
                    "none of its {all} entries asks anything; write {{\"prompt\": \"…\"}}, \
                     {{\"messages\": […]}}, or {{\"conversations\": [{{\"from\": \"human\", \
                     \"value\": \"…\"}}, …]}}"
                ),
            )),
            _ => Ok(Self { prompts, left_out }),
        }
    }
}

impl UserPrompt {
    /// `None` if it has no question.
    fn from_json(json: Json, endpoint: Endpoint, salt: Salt) -> Result<Option<Self>, String> {
        let Json::Object(mut fields) = json else {
            return Err("it is no object; write {\"prompt\": \"…\"}".to_owned());
        };
        let output_tokens = ["max_tokens", "output_tokens"].iter().find_map(|key| fields.get(*key));
        let output_tokens = output_tokens.map(output_tokens_of).transpose()?;
        let prompt = match (fields.remove("prompt"), fields.remove("conversations")) {
            (Some(Json::String(prompt)), _) => Some(prompt),
            (None, Some(conversation)) => Some(first_question(&conversation)),
            _ => None,
        };
        let messages_of = fields.remove("messages");
        let asks_nothing = match (&prompt, &messages_of) {
            (Some(prompt), _) => prompt.trim().is_empty(),
            (None, Some(Json::Array(list))) => list.is_empty(),
            (None, _) => false,
        };
        if asks_nothing {
            return Ok(None);
        }
        let (text, salt_at) = match (prompt, messages_of, endpoint) {
            (Some(prompt), _, Endpoint::Chat) => {
                let message = json!({"role": "user", "content": prompt});
                messages(vec![message], salt)?
            }
            (Some(prompt), _, Endpoint::Completions) => {
                let mut text = Vec::new();
                write_escaped(&prompt, &mut text);
                (text, 0)
            }
            (None, Some(Json::Array(list)), Endpoint::Chat) => messages(list, salt)?,
            (None, Some(_), Endpoint::Completions) => {
                return Err("messages go with workload.endpoint = \"chat\"".to_owned());
            }
            (None, _, _) => {
                return Err("it has neither prompt nor messages nor conversations".to_owned());
            }
        };
        Ok(Some(Self { text, salt_at, output_tokens }))
    }

    /// Appends it to a body, with a salt where there is one.
    pub(super) fn write(&self, salt: Option<u64>, into: &mut Vec<u8>) {
        let (before, after) = self.text.split_at(self.salt_at);
        into.extend_from_slice(before);
        if let Some(salt) = salt {
            write_salt(salt, into);
            into.push(b' ');
        }
        into.extend_from_slice(after);
    }
}

fn output_tokens_of(value: &Json) -> Result<u32, String> {
    let tokens = value.as_u64().and_then(|tokens| u32::try_from(tokens).ok());
    let tokens = tokens.filter(|tokens| (1..=TOKENS_MAX).contains(tokens));
    tokens.ok_or_else(|| format!("{value} is no number of tokens of an answer"))
}

/// Empty if there is none.
fn first_question(conversation: &Json) -> String {
    let is_human = |message: &&Json| matches!(message["from"].as_str(), Some("human" | "user"));
    let questions = conversation.as_array().into_iter().flatten().filter(is_human);
    let mut texts = questions.filter_map(|message| message["value"].as_str());
    texts.find(|text| !text.trim().is_empty()).unwrap_or_default().to_owned()
}

/// Messages as they stand within their list, and where among them a salt goes: at the beginning of
/// the first, or of the user's first.
fn messages(list: Vec<Json>, salt: Salt) -> Result<(Vec<u8>, usize), String> {
    let is_users = |message: &Json| message["role"] == "user";
    let salted = match salt {
        Salt::AfterPrefix => list.iter().position(is_users).unwrap_or(0),
        Salt::First | Salt::None => 0,
    };
    let (mut text, mut salt_at) = (Vec::new(), 0);
    for (message, at) in list.into_iter().zip(0..) {
        let Json::Object(mut fields) = message else {
            return Err("a message is no object; write {\"role\": \"user\", …}".to_owned());
        };
        if !fields.get("role").is_some_and(Json::is_string) {
            return Err("a message has no role; write {\"role\": \"user\", …}".to_owned());
        }
        if at > 0 {
            text.push(b',');
        }
        if at != salted {
            text.extend_from_slice(Json::Object(fields).to_string().as_bytes());
            continue;
        }
        // The content that the salt begins comes first, so that its position is known.
        let content = fields.remove("content");
        salt_at = write_content(content, salt, &mut text)?;
        write_fields(&fields, &mut text);
    }
    Ok((text, salt_at))
}

/// Appends the beginning of a message to the end of its content. Answers with where that begins.
fn write_content(content: Option<Json>, salt: Salt, text: &mut Vec<u8>) -> Result<usize, String> {
    text.extend_from_slice(b"{\"content\":");
    let content = content.unwrap_or_default();
    let salt_at = match (&content, salt) {
        (Json::String(_), _) => text.len() + 1,
        (_, Salt::None) => text.len(),
        _ => {
            return Err("the content of a message is no text, which a salt could begin; write \
                 workload.salt = \"none\" to send it as it stands"
                .to_owned());
        }
    };
    text.extend_from_slice(content.to_string().as_bytes());
    Ok(salt_at)
}

fn write_fields(fields: &Map<String, Json>, text: &mut Vec<u8>) {
    for (key, value) in fields {
        text.extend_from_slice(format!(",{}:{value}", Json::from(key.as_str())).as_bytes());
    }
    text.push(b'}');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, salt: Salt) -> Result<UserPrompts, String> {
        UserPrompts::read(text, "p", Endpoint::Chat, salt).map_err(|error| error.to_string())
    }

    /// The messages of each prompt, salted.
    fn sent(text: &str, salt: Salt) -> Vec<Json> {
        let prompts = read(text, salt).unwrap();
        let digits = (salt != Salt::None).then_some(0xabc);
        let written = |prompt: &UserPrompt| {
            let mut bytes = b"[".to_vec();
            prompt.write(digits, &mut bytes);
            bytes.push(b']');
            serde_json::from_slice(&bytes).unwrap()
        };
        prompts.prompts.iter().map(written).collect()
    }

    const MESSAGES: &str = r#"{"messages": [{"role": "system", "content": "be \"kind\""},
        {"content": "hi", "role": "user", "name": "ann"}], "max_tokens": 9}"#;

    #[test]
    fn a_prompt_is_sent_with_its_salt_where_that_is_wanted() {
        let plain = "{\"prompt\": \"what\\nnow\"}\n\n{\"prompt\": \"ä\"}";
        let user = |text: &str| json!([{"role": "user", "content": text}]);
        assert_eq!(sent(plain, Salt::None), [user("what\nnow"), user("ä")]);
        let salted = ["0000000000000abc what\nnow", "0000000000000abc ä"].map(user);
        assert_eq!(sent(plain, Salt::First), salted);
        let list = format!("[{MESSAGES}]");
        let expected = |system: &str, question: &str| {
            json!([
                {"role": "system", "content": system},
                {"role": "user", "content": question, "name": "ann"},
            ])
        };
        assert_eq!(sent(&list, Salt::None), [expected("be \"kind\"", "hi")]);
        assert_eq!(sent(&list, Salt::First), [expected("0000000000000abc be \"kind\"", "hi")]);
        assert_eq!(
            sent(&list, Salt::AfterPrefix),
            [expected("be \"kind\"", "0000000000000abc hi")]
        );
        assert_eq!(read(&list, Salt::First).unwrap().get(0).output_tokens, Some(9));
    }

    #[test]
    fn of_a_shared_conversation_the_first_question_is_sent() {
        let text = r#"[{"id": "a", "conversations": [{"from": "gpt", "value": "hello"},
            {"from": "human", "value": "why"}, {"from": "gpt", "value": "so"}]}]"#;
        assert_eq!(sent(text, Salt::None), [json!([{"role": "user", "content": "why"}])]);
    }

    /// SpecForge #482, aiperf #798: entries without a question are in the usual file.
    #[test]
    fn entries_that_ask_nothing_are_left_out_and_counted() {
        let asks =
            |question: &str| json!({"conversations": [{"from": "human", "value": question}]});
        let answer = json!({"conversations": [{"from": "gpt", "value": "As an AI I cannot"}]});
        let list =
            json!([asks("sky?"), {"conversations": []}, asks("line?"), answer, asks("haiku?")]);
        let read = read(&list.to_string(), Salt::None).unwrap();
        assert_eq!(read.fact("f"), "of f (3 prompts; 2 without a question left out)");
        // As lines; other entries without a question; the first real question.
        let later = json!({"conversations": [{"from": "human", "value": " "},
            {"from": "human", "value": "now?"}]});
        let lines = [
            json!({"conversations": null}),
            asks("\n"),
            later,
            json!({"prompt": ""}),
            json!({"messages": []}),
            json!({"prompt": "why?"}),
        ];
        let lines = lines.map(|line| line.to_string()).join("\n");
        let user = |text: &str| json!([{"role": "user", "content": text}]);
        assert_eq!(sent(&lines, Salt::None), [user("now?"), user("why?")]);
    }

    #[test]
    fn content_that_is_no_text_is_sent_as_it_stands_or_not_at_all() {
        let text =
            r#"{"messages": [{"role": "user", "content": [{"type": "text", "text": "a"}]}]}"#;
        assert!(read(text, Salt::First).unwrap_err().contains("workload.salt = \"none\""));
        let expected = json!([{"role": "user", "content": [{"type": "text", "text": "a"}]}]);
        assert_eq!(sent(text, Salt::None), [expected]);
    }

    #[test]
    fn a_mistake_is_named_with_its_place() {
        for (text, message) in [
            ("", "p: it holds no prompt"),
            ("{\"prompt\": \"a\"}\nhello", "p:2: expected value"),
            ("[{\"prompt\": \"a\"}, 3]", "p, prompt 2: it is no object"),
            ("{\"text\": \"a\"}", "p:1: it has neither prompt nor messages"),
            ("{\"messages\": []}", "p: none of its 1 entries asks anything; write {\"prompt"),
            ("{\"messages\": []}\n{\"prompt\": \" \"}", "p: none of its 2 entries"),
            ("{\"messages\": [{\"content\": \"a\"}]}", "p:1: a message has no role"),
            ("{\"prompt\": \"a\", \"max_tokens\": 0}", "p:1: 0 is no number of tokens"),
            ("[{\"conversations\": []}]", "p: none of its 1 entries asks anything"),
        ] {
            let error = read(text, Salt::First).unwrap_err();
            assert!(error.starts_with(message), "{error}");
        }
        let chat = UserPrompts::read(
            MESSAGES.replace('\n', "").as_str(),
            "p",
            Endpoint::Completions,
            Salt::First,
        );
        assert!(chat.unwrap_err().to_string().contains("workload.endpoint = \"chat\""));
    }
}
