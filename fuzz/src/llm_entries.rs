//! Streamed answers under arbitrary bytes.

use plimsoll_llm::answer::Answer;
use plimsoll_llm::wire::json::{Json, Malformed, Text};
use plimsoll_llm::wire::picks::{Picks, pick};
use plimsoll_llm::wire::sse::{EVENT_BYTES_MAX, EventReader, StreamItem};
use plimsoll_model::units::Nanos;
use serde_json::Value;

/// A body in fragments. The first byte sets their length, the second how many times the rest is
/// repeated.
pub fn sse(data: &[u8]) {
    let [fragment, times, input @ ..] = data else { return };
    let input = input.repeat(usize::from(*times % 64).pow(2) / 4 + 1);
    let whole = read(&input, usize::MAX);
    let fragments = read(&input, usize::from(*fragment) + 1);
    assert_eq!(whole, fragments, "how bytes are cut changes what they mean");
}

/// The events of a body, and whether it is a valid answer.
fn read(input: &[u8], fragment: usize) -> (Vec<Vec<u8>>, bool) {
    let (mut reader, mut answer, mut events) = <(EventReader, Answer, Vec<Vec<u8>>)>::default();
    for (at, mut fragment) in input.chunks(fragment.max(1)).enumerate() {
        while let Some(next) = reader.next(&mut fragment) {
            match next {
                StreamItem::Event(data) => {
                    assert!(data.len() <= EVENT_BYTES_MAX);
                    answer.take(data);
                    events.push(data.to_vec());
                }
                StreamItem::Error(data) => events.push([b"error ", data].concat()),
                StreamItem::Bare(line) => events.push([b"bare ", line].concat()),
                StreamItem::Comment => events.push(b":".to_vec()),
                StreamItem::TooLong => events.push(b"too long".to_vec()),
            }
        }
        assert!(fragment.is_empty(), "bytes are left");
        assert!(reader.heap_bytes() <= 4 * (input.len() + 1024).min(EVENT_BYTES_MAX + 1));
        let arrival = answer.read_ended(Nanos(at as u64 * 1_000));
        assert!(arrival.output.characters >= arrival.output.visible);
    }
    let figures = answer.end(reader.rest());
    let times = figures.iter().flat_map(|it| [it.token_time, it.later_token_time]).flatten();
    for time in times {
        assert!(time.0 <= input.len() as u64 * 1_000, "a token takes longer than its answer");
    }
    let rest = if reader.is_no_stream() { b"no stream" } else { reader.rest() };
    events.push(rest.to_vec());
    (events, figures.is_ok())
}

/// The data of an event, compared with `serde_json`.
pub fn picks(data: &[u8]) {
    let ours = pick(data);
    let theirs = serde_json::from_slice::<Value>(data);
    let is_json = Json::new(data).and_then(|mut json| {
        json.skip()?;
        json.end()
    });
    match (&theirs, ours) {
        // Its limit of nesting is lower.
        (Ok(value), Ok(picks)) if !has_escaped_names(data) => compare(value, &picks, data),
        (Ok(_), Ok(_)) | (Err(_), Err(_)) => {}
        (Ok(value), Err(_)) => assert!(!value.is_object(), "an object is not read"),
        // serde_json refuses numbers that overflow a float, and unpaired surrogates.
        (Err(_), Ok(_)) => assert_eq!(is_json, Ok(())),
    }
    if theirs.is_ok() {
        assert!(matches!(is_json, Ok(()) | Err(Malformed::Depth)));
    }
}

/// Escaped names are unknown to our reader, but not to serde_json. Also true if a name may occur
/// twice, or as a string.
fn has_escaped_names(data: &[u8]) -> bool {
    data.windows(2).any(|two| two == b"\\u")
        || ["content", "text", "choices", "delta", "usage", "tokens", "error", "message", "object"]
            .iter()
            .any(|name| String::from_utf8_lossy(data).matches(name).count() > 1)
}

/// Compares content, usage and error with a tree.
fn compare(value: &Value, picks: &Picks<'_>, data: &[u8]) {
    let data = String::from_utf8_lossy(data);
    let choice = &value["choices"][0];
    let (chat, completion) = (choice["delta"]["content"].as_str(), choice["text"].as_str());
    let text = chat.or(completion);
    let is_one = value["choices"].as_array().is_none_or(|choices| choices.len() < 2);
    // Our reader accepts lists of parts, too.
    let is_text = [&choice["delta"]["content"], &choice["text"]]
        .iter()
        .all(|text| !text.is_array() && !text.is_object());
    if is_one && is_text && (chat.is_none() || completion.is_none()) {
        let ours: Option<String> = picks.content.map(|text| text.chars().collect());
        assert_eq!(ours.as_deref(), text.filter(|text| !text.is_empty()), "{data}");
        assert!(picks.visible >= picks.content.map_or(0, Text::characters));
    }
    if value["error"].is_string() || value["error"]["message"].is_string() {
        assert!(picks.error.is_some(), "{data}");
    }
    if let Some(tokens) = value["usage"]["completion_tokens"].as_u64() {
        assert_eq!(picks.usage.completion, Some(tokens), "{data}");
    }
}
