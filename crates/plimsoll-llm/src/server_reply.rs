//! A server's reply before any load, where parsing may be slow.

use plimsoll_http::excerpt::{plain_text, quoted};
use plimsoll_http::look::Answer;
use plimsoll_model::outcome::{ErrorClass, OpStatus};
use serde_json::Value as Json;

use super::answer::{excerpt as said_words, is_done};
use super::reader::{bare_error, event_error};
use super::wire::picks::{Usage, pick};
use super::wire::sse::{EventReader, StreamItem};

/// Characters that a message quotes.
const QUOTED_CHARS_MAX: usize = 300;

/// An answer.
#[derive(Clone, Debug)]
pub(crate) struct ServerReply {
    status: OpStatus,
    why: String,
    body: Vec<u8>,
}

/// What a stream of events holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Streamed {
    /// In the server's own text.
    pub(crate) error: Option<String>,
    /// Text of any kind.
    pub(crate) has_output: bool,
    /// Tokens of the answer.
    pub(crate) usage: Option<u64>,
    /// They are counted with each chunk.
    pub(crate) is_continuous: bool,
}

impl From<Answer> for ServerReply {
    fn from(answer: Answer) -> Self {
        let why = answer.why().to_owned();
        Self { status: answer.status, why, body: answer.body }
    }
}

impl ServerReply {
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

    /// The text of a bad answer: the message of its JSON, or the text of a page.
    pub(crate) fn message(&self) -> String {
        error_message(&self.json()).unwrap_or_else(|| plain_text(&self.body))
    }

    /// The first of the body.
    pub(crate) fn beginning(&self) -> String {
        let body = &self.body[..self.body.len().min(QUOTED_CHARS_MAX)];
        quoted(&String::from_utf8_lossy(body), QUOTED_CHARS_MAX)
    }

    /// The events of the body, as they are read under load; `None` if it has none.
    pub(crate) fn streamed(&self) -> Option<Streamed> {
        let body = [&self.body[..], b"\n\n"].concat();
        let (mut events, mut rest) = (EventReader::default(), &body[..]);
        let (mut result, mut counted) = (None, 0);
        let (mut usage, mut reasoning) = (Usage::default(), 0);
        while let Some(item) = events.next(&mut rest) {
            let (data, error) = match item {
                StreamItem::Event(data) => (data, None),
                StreamItem::Error(data) => (&[][..], Some(event_error(data))),
                StreamItem::Bare(line) => (&[][..], bare_error(line)),
                StreamItem::Comment | StreamItem::TooLong => continue,
            };
            let picks = pick(data).ok();
            if picks.is_none() && error.is_none() {
                continue;
            }
            let picks = picks.unwrap_or_default();
            let error = error.or_else(|| picks.error.map(|text| said_words(text.chars())));
            let has_output = picks.characters() > 0;
            counted += u32::from(has_output && picks.usage.completion.is_some());
            usage.update(picks.usage);
            reasoning += picks.reasoning;
            let all: &mut Streamed = result.get_or_insert_default();
            all.error = all.error.take().or(error);
            all.has_output |= has_output;
            all.usage = usage.output(reasoning);
            all.is_continuous = counted > 1;
        }
        result
    }
}

/// The body is a stream that has come to its end.
pub(crate) fn has_done(body: &[u8]) -> bool {
    let (mut events, mut rest) = (EventReader::default(), body);
    while let Some(item) = events.next(&mut rest) {
        if matches!(item, StreamItem::Event(data) if is_done(data)) {
            return true;
        }
    }
    false
}

/// `{"error": {"message": "…"}}` as OpenAI has it, and what others make of it.
fn error_message(json: &Json) -> Option<String> {
    let error = json.get("error").filter(|error| !error.is_null());
    let candidates = [
        error.and_then(|error| error.get("message")),
        error,
        json.get("detail"),
        json.get("message"),
    ];
    let value = candidates.into_iter().flatten().next()?;
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    Some(quoted(&text, QUOTED_CHARS_MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_is_whole_with_done_and_errors_in_it_are_quoted_in_any_form() {
        let chunk = "data: {\"choices\":[{\"delta\":{\"content\":\"[DONE]\"}}]}\n\n";
        let whole = format!("{chunk}data: [DONE]\n\n");
        assert!(has_done(whole.as_bytes()) && !has_done(&whole.as_bytes()[..whole.len() - 1]));
        assert!(!has_done(chunk.as_bytes()) && !has_done(b"{\"a\":\"[DONE]\"}"));
        for error in
            ["error: {\"message\":\"bad\"}", "event: error\ndata: bad", "{\"detail\":\"bad\"}"]
        {
            let streamed =
                ServerReply::with(200, &format!("{chunk}{error}\n\n{whole}")).streamed().unwrap();
            assert_eq!(
                (streamed.error.as_deref(), streamed.has_output),
                (Some("bad"), true),
                "{error}"
            );
        }
    }

    #[test]
    fn a_stream_says_whether_it_has_text_and_counts() {
        let usage = "\"usage\":{\"completion_tokens\":2}";
        let role = "data: {\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}";
        let text = "data:{\"choices\":[{\"delta\":{\"content\":\"a\"}}]}";
        let counted =
            format!("data: {{\"choices\":[{{\"delta\":{{\"content\":\"a\"}}}}],{usage}}}");
        let last = format!("data: {{\"choices\":[],{usage}}}");
        let of =
            |lines: &[&str]| ServerReply::with(200, &lines.join("\r\n\r\n")).streamed().unwrap();
        let plain = of(&[role, text, text, &last, "data: [DONE]"]);
        let has_output = true;
        assert_eq!(plain, Streamed { has_output, usage: Some(2), ..Streamed::default() });
        assert!(of(&[role, &counted, &counted, &last]).is_continuous);
        assert_eq!(of(&[role]), Streamed::default());
        let error = of(&["data: {\"error\":{\"message\":\"no memory\"}}"]).error;
        assert_eq!(error.as_deref(), Some("no memory"));
        assert_eq!(ServerReply::with(200, "{\"choices\":[]}").streamed(), None);
    }

    #[test]
    fn a_refusal_is_quoted_in_the_words_of_whatever_server_it_is() {
        for (body, expected) in [
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
            assert_eq!(ServerReply::with(400, body).message(), expected);
        }
    }
}
