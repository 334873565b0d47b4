//! Streamed answers under arbitrary bytes.

use plimsoll_llm::answer::Answer;
use plimsoll_llm::wire::json::{Json, Malformed, Text};
use plimsoll_llm::wire::picks::{Picks, pick};
use plimsoll_llm::wire::sse::{EVENT_BYTES_MAX, EventReader, Seen};
use plimsoll_model::units::Nanos;
use serde_json::Value;

/// A body in fragments. The first byte says how long they are, the second how many times the rest
/// arrives.
pub fn sse(data: &[u8]) {
    let [fragment, times, input @ ..] = data else { return };
    let input = input.repeat(usize::from(*times % 64).pow(2) / 4 + 1);
    let whole = read(&input, usize::MAX);
    let fragments = read(&input, usize::from(*fragment) + 1);
    assert_eq!(whole, fragments, "how bytes are cut changes what they mean");
}

/// What a body holds, and whether it is a good answer.
fn read(input: &[u8], fragment: usize) -> (Vec<Vec<u8>>, bool) {
    let (mut reader, mut answer, mut seen) = <(EventReader, Answer, Vec<Vec<u8>>)>::default();
    for (at, mut fragment) in input.chunks(fragment.max(1)).enumerate() {
        while let Some(next) = reader.next(&mut fragment) {
            match next {
                Seen::Event(data) => {
                    assert!(data.len() <= EVENT_BYTES_MAX);
                    answer.take(data);
                    seen.push(data.to_vec());
                }
                Seen::Comment => seen.push(b":".to_vec()),
                Seen::TooLong => seen.push(b"too long".to_vec()),
            }
        }
        assert!(fragment.is_empty(), "bytes are left");
        assert!(reader.held_bytes() <= 4 * (input.len() + 1024).min(EVENT_BYTES_MAX + 1));
        let arrival = answer.read_ended(Nanos(at as u64 * 1_000));
        assert!(arrival.output.characters >= arrival.output.visible);
    }
    let figures = answer.end(reader.rest());
    let times = figures.iter().flat_map(|it| [it.token_time, it.later_token_time]).flatten();
    for time in times {
        assert!(time.0 <= input.len() as u64 * 1_000, "a token takes longer than its answer");
    }
    let rest = if reader.is_no_stream() { b"no stream" } else { reader.rest() };
    seen.push(rest.to_vec());
    (seen, figures.is_ok())
}

/// The data of an event, which another reader reads as well.
pub fn picks(data: &[u8]) {
    let ours = pick(data);
    let theirs = serde_json::from_slice::<Value>(data);
    let is_json = Json::new(data).and_then(|mut json| {
        json.skip()?;
        json.end()
    });
    match (&theirs, ours) {
        // That one goes less deep.
        (Ok(value), Ok(picks)) if !has_escaped_names(data) => compare(value, &picks, data),
        (Ok(_), Ok(_)) | (Err(_), Err(_)) => {}
        (Ok(value), Err(_)) => assert!(!value.is_object(), "an object is not read"),
        // It refuses numbers that no float holds, and half pairs of surrogates.
        (Err(_), Ok(_)) => assert_eq!(is_json, Ok(())),
    }
    if theirs.is_ok() {
        assert!(matches!(is_json, Ok(()) | Err(Malformed::Depth)));
    }
}

/// Ours are unknown then; theirs are not. Also where a name may come twice, or a string is no name.
fn has_escaped_names(data: &[u8]) -> bool {
    data.windows(2).any(|two| two == b"\\u")
        || ["content", "text", "choices", "delta", "usage", "tokens", "error", "message", "object"]
            .iter()
            .any(|name| String::from_utf8_lossy(data).matches(name).count() > 1)
}

/// Content, usage and error of a tree.
fn compare(value: &Value, picks: &Picks<'_>, data: &[u8]) {
    let data = String::from_utf8_lossy(data);
    let choice = &value["choices"][0];
    let (chat, completion) = (choice["delta"]["content"].as_str(), choice["text"].as_str());
    let text = chat.or(completion);
    let is_one = value["choices"].as_array().is_none_or(|choices| choices.len() < 2);
    if is_one && (chat.is_none() || completion.is_none()) {
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
