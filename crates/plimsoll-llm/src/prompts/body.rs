//! Bodies of requests as bytes: what is the same for all is written once.

use plimsoll_http::wire::template::write_decimal;
use serde_json::Value as Json;

use crate::offers::{Limit, Offers};
use crate::parameters::Endpoint;

/// What all requests to a server have in common.
#[derive(Clone, Debug)]
pub(crate) struct Frame {
    endpoint: Endpoint,
    /// To where the prompt begins.
    head: Vec<u8>,
    /// From its end to the numbers of tokens.
    tail: Vec<u8>,
    /// Fields whose value is the length of the answer, each with all before its value.
    counted: Vec<&'static [u8]>,
}

/// Who speaks in a part of a prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    System,
    User,
    Assistant,
}

impl Frame {
    /// Requests for `model`, with these further fields.
    pub(crate) fn new(
        model: &str,
        endpoint: Endpoint,
        offers: Offers,
        extra: &toml::Table,
    ) -> Self {
        let opening = match endpoint {
            Endpoint::Chat => "\"messages\":[",
            Endpoint::Completions => "\"prompt\":\"",
        };
        let head = format!("{{\"model\":{},{opening}", Json::from(model)).into_bytes();
        let closing = match endpoint {
            Endpoint::Chat => "]",
            Endpoint::Completions => "\"",
        };
        let mut tail = closing.as_bytes().to_vec();
        let extra = extra.iter().map(|(key, value)| (key.as_str(), json_of(value)));
        for (key, value) in offers.fields().into_iter().chain(extra) {
            tail.extend_from_slice(format!(",{}:{value}", Json::from(key)).as_bytes());
        }
        let limit: &[u8] = match offers.limit {
            Limit::MaxTokens => b",\"max_tokens\":",
            Limit::MaxCompletionTokens => b",\"max_completion_tokens\":",
        };
        let least = offers.min_tokens.then_some(b",\"min_tokens\":".as_slice());
        Self { endpoint, head, tail, counted: std::iter::once(limit).chain(least).collect() }
    }

    /// Begins a body.
    pub(crate) fn begin(&self, into: &mut Vec<u8>) {
        into.extend_from_slice(&self.head);
    }

    /// Begins a part of its prompt: what follows is text, escaped for JSON.
    pub(crate) fn begin_part(&self, role: Role, into: &mut Vec<u8>) {
        let opening: &[u8] = match (self.endpoint, role) {
            (Endpoint::Completions, _) => b"",
            (Endpoint::Chat, Role::System) => b"{\"role\":\"system\",\"content\":\"",
            (Endpoint::Chat, Role::User) => b"{\"role\":\"user\",\"content\":\"",
            (Endpoint::Chat, Role::Assistant) => b"{\"role\":\"assistant\",\"content\":\"",
        };
        match self.endpoint {
            Endpoint::Chat if into.last() == Some(&b'}') => into.push(b','),
            Endpoint::Completions if !into.is_empty() && !into.ends_with(b":\"") => {
                into.extend_from_slice(b"\\n");
            }
            _ => {}
        }
        into.extend_from_slice(opening);
    }

    /// Ends it.
    pub(crate) fn end_part(&self, into: &mut Vec<u8>) {
        if self.endpoint == Endpoint::Chat {
            into.extend_from_slice(b"\"}");
        }
    }

    /// Ends the body of a request for an answer of `output_tokens`.
    pub(crate) fn end(&self, output_tokens: u32, into: &mut Vec<u8>) {
        into.extend_from_slice(&self.tail);
        for field in &self.counted {
            into.extend_from_slice(field);
            write_decimal(u64::from(output_tokens), into);
        }
        into.push(b'}');
    }
}

fn json_of(value: &toml::Value) -> Json {
    serde_json::to_value(value).unwrap_or(Json::Null)
}

/// Appends `text` as it stands within a string of JSON.
pub(crate) fn write_escaped(text: &str, into: &mut Vec<u8>) {
    let quoted = Json::from(text).to_string();
    into.extend_from_slice(&quoted.as_bytes()[1..quoted.len() - 1]);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn body(endpoint: Endpoint, offers: Offers) -> Json {
        let extra = toml::toml! { temperature = 0.5 };
        let frame = Frame::new("a \"model\"", endpoint, offers, &extra);
        let mut bytes = Vec::new();
        frame.begin(&mut bytes);
        for (role, text) in [(Role::System, "one"), (Role::User, "two \"2\"\n")] {
            frame.begin_part(role, &mut bytes);
            write_escaped(text, &mut bytes);
            frame.end_part(&mut bytes);
        }
        frame.end(120, &mut bytes);
        serde_json::from_slice(&bytes).unwrap()
    }

    #[test]
    fn a_chat_has_its_parts_as_messages() {
        let expected = json!({
            "model": "a \"model\"",
            "messages": [
                {"role": "system", "content": "one"},
                {"role": "user", "content": "two \"2\"\n"},
            ],
            "stream": true,
            "stream_options": {"include_usage": true, "continuous_usage_stats": true},
            "ignore_eos": true,
            "temperature": 0.5,
            "max_tokens": 120,
            "min_tokens": 120,
        });
        assert_eq!(body(Endpoint::Chat, Offers::ALL), expected);
    }

    #[test]
    fn a_completion_has_them_as_one_text_and_only_what_the_server_takes() {
        let limit = Limit::MaxCompletionTokens;
        let expected = json!({
            "model": "a \"model\"",
            "prompt": "one\ntwo \"2\"\n",
            "stream": true,
            "temperature": 0.5,
            "max_completion_tokens": 120,
        });
        assert_eq!(body(Endpoint::Completions, Offers { limit, ..Offers::NONE }), expected);
    }
}
