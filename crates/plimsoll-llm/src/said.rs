//! What a server says before any load, read at leisure.

use plimsoll_http::look::{Answer, quoted, words};
use plimsoll_model::outcome::{ErrorClass, OpStatus};
use serde_json::Value as Json;

/// Characters that a message quotes.
const QUOTED_CHARS_MAX: usize = 300;

/// An answer.
#[derive(Clone, Debug)]
pub(crate) struct Said {
    status: OpStatus,
    why: String,
    body: Vec<u8>,
}

/// What a stream of events holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Streamed {
    /// In the server's words.
    pub(crate) error: Option<String>,
    /// Text of any kind.
    pub(crate) has_output: bool,
    /// Tokens of the answer.
    pub(crate) usage: Option<u64>,
    /// They are counted with each chunk.
    pub(crate) is_continuous: bool,
}

impl From<Answer> for Said {
    fn from(answer: Answer) -> Self {
        let why = answer.why().to_owned();
        Self { status: answer.status, why, body: answer.body }
    }
}

impl Said {
    /// Of a status, as a test has it.
    #[cfg(test)]
    pub(crate) fn with(status: u32, body: &str) -> Self {
        let is_good = (200..300).contains(&status);
        let failed = OpStatus::Failed(ErrorClass::Status(status));
        Self {
            status: if is_good { OpStatus::Ok } else { failed },
            why: format!("status {status}"),
            body: body.as_bytes().to_vec(),
        }
    }

    pub(crate) fn is_good(&self) -> bool {
        self.status == OpStatus::Ok
    }

    /// Of a bad answer, where there is one.
    pub(crate) fn status(&self) -> Option<u32> {
        match self.status {
            OpStatus::Failed(ErrorClass::Status(status)) => Some(status),
            _ => None,
        }
    }

    /// How it ended, for a message.
    pub(crate) fn outcome(&self) -> &str {
        if self.is_good() { "no such list" } else { &self.why }
    }

    /// Statuses by which servers refuse a field.
    pub(crate) fn refuses_fields(&self) -> bool {
        matches!(self.status(), Some(400 | 422))
    }

    /// The body as JSON; null where it is none.
    pub(crate) fn json(&self) -> Json {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    /// What a bad answer says: the message of its JSON, or the words of a page.
    pub(crate) fn words(&self) -> String {
        error_words(&self.json()).unwrap_or_else(|| words(&self.body))
    }

    /// The first of the body.
    pub(crate) fn beginning(&self) -> String {
        let body = &self.body[..self.body.len().min(QUOTED_CHARS_MAX)];
        quoted(&String::from_utf8_lossy(body), QUOTED_CHARS_MAX)
    }

    /// The events of the body; `None` where it has none.
    pub(crate) fn streamed(&self) -> Option<Streamed> {
        let text = String::from_utf8_lossy(&self.body);
        let lines = text.split(['\n', '\r']);
        let data = lines.filter_map(|line| line.strip_prefix("data:")).map(str::trim);
        let events: Vec<Json> = data.filter_map(|data| serde_json::from_str(data).ok()).collect();
        if events.is_empty() {
            return None;
        }
        let counted = |event: &&Json| !event["usage"]["completion_tokens"].is_null();
        let with_text = events.iter().filter(|event| has_output(event));
        Some(Streamed {
            error: events.iter().find_map(error_words),
            has_output: events.iter().any(has_output),
            usage: events.iter().rev().find_map(|e| e["usage"]["completion_tokens"].as_u64()),
            is_continuous: with_text.filter(counted).count() > 1,
        })
    }
}

fn has_output(event: &Json) -> bool {
    let is_text = |value: &Json| value.as_str().is_some_and(|text| !text.is_empty());
    event["choices"].as_array().into_iter().flatten().any(|choice| {
        let delta = &choice["delta"];
        let texts = ["content", "reasoning_content", "reasoning", "refusal"];
        is_text(&choice["text"])
            || texts.iter().any(|key| is_text(&delta[*key]))
            || delta["tool_calls"].as_array().is_some_and(|calls| !calls.is_empty())
    })
}

/// `{"error": {"message": "…"}}` as OpenAI has it, and what others make of it.
fn error_words(json: &Json) -> Option<String> {
    let error = json.get("error").filter(|error| !error.is_null());
    let said = [
        error.and_then(|error| error.get("message")),
        error,
        json.get("detail"),
        json.get("message"),
    ];
    let said = said.into_iter().flatten().next()?;
    let said = said.as_str().map_or_else(|| said.to_string(), str::to_owned);
    Some(quoted(&said, QUOTED_CHARS_MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_says_whether_it_has_text_and_counts() {
        let usage = "\"usage\":{\"completion_tokens\":2}";
        let role = "data: {\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}";
        let text = "data:{\"choices\":[{\"delta\":{\"content\":\"a\"}}]}";
        let counted =
            format!("data: {{\"choices\":[{{\"delta\":{{\"content\":\"a\"}}}}],{usage}}}");
        let last = format!("data: {{\"choices\":[],{usage}}}");
        let of = |lines: &[&str]| Said::with(200, &lines.join("\r\n\r\n")).streamed().unwrap();
        let plain = of(&[role, text, text, &last, "data: [DONE]"]);
        let has_output = true;
        assert_eq!(plain, Streamed { has_output, usage: Some(2), ..Streamed::default() });
        assert!(of(&[role, &counted, &counted, &last]).is_continuous);
        assert_eq!(of(&[role]), Streamed::default());
        let error = of(&["data: {\"error\":{\"message\":\"no memory\"}}"]).error;
        assert_eq!(error.as_deref(), Some("no memory"));
        assert_eq!(Said::with(200, "{\"choices\":[]}").streamed(), None);
    }

    #[test]
    fn a_refusal_is_quoted_in_the_words_of_whatever_server_it_is() {
        for (body, said) in [
            (
                "{\"error\":{\"message\":\"The model `x` does not exist.\"}}",
                "The model `x` does not exist.",
            ),
            ("{\"error\":\"bad\"}", "bad"),
            (
                "{\"detail\":[{\"loc\":[\"body\",\"ignore_eos\"]}]}",
                "[{\"loc\":[\"body\",\"ignore_eos\"]}]",
            ),
            ("<html><body>502 Bad\nGateway</body></html>", "502 Bad Gateway"),
        ] {
            assert_eq!(Said::with(400, body).words(), said);
        }
    }
}
