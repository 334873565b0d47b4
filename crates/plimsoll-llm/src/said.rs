//! What a server says before any load, read at leisure.

use plimsoll_http::look::{Answer, quoted, words};
use plimsoll_model::outcome::{ErrorClass, OpStatus};
use serde_json::Value as Json;

use super::answer::words as said_words;
use super::wire::picks::pick;
use super::wire::sse::{EventReader, Seen};

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

    /// What the events of the body say, as they are read under load; `None` where it has none.
    pub(crate) fn streamed(&self) -> Option<Streamed> {
        let body = [&self.body[..], b"\n\n"].concat();
        let (mut events, mut rest) = (EventReader::default(), &body[..]);
        let (mut found, mut counted) = (None, 0);
        while let Some(seen) = events.next(&mut rest) {
            let Seen::Event(data) = seen else { continue };
            let Ok(picks) = pick(data) else { continue };
            let has_output = picks.characters() > 0;
            counted += u32::from(has_output && picks.usage.completion.is_some());
            let all: &mut Streamed = found.get_or_insert_default();
            all.error =
                all.error.take().or_else(|| picks.error.map(|said| said_words(said.chars())));
            all.has_output |= has_output;
            all.usage = picks.usage.completion.or(all.usage);
            all.is_continuous = counted > 1;
        }
        found
    }
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
