use super::*;

fn of(data: &str) -> Picks<'_> {
    pick(data.as_bytes()).unwrap()
}

fn content(picks: Picks<'_>) -> String {
    picks.content.map(|text| text.chars().collect()).unwrap_or_default()
}

/// A chunk as vLLM sends it.
fn delta(delta: &str) -> String {
    format!(
        r#"{{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1764000000,"model":"m",
        "choices":[{{"index":0,"delta":{delta},"logprobs":null,"finish_reason":null}}],
        "usage":null}}"#
    )
}

#[test]
fn text_is_found_in_chats_and_completions() {
    let chat = delta(r#"{"content":" caf\u00e9 \ud83d\ude00"}"#);
    let chat = of(&chat);
    assert_eq!((content(chat).as_str(), chat.visible, chat.reasoning), (" café 😀", 7, 0));
    assert_eq!((chat.finish, chat.usage, chat.error), (None, Usage::default(), None));
    let completion = of(r#"{"choices":[{"text":"abc","index":0,"finish_reason":"length"}]}"#);
    assert_eq!((content(completion).as_str(), completion.characters()), ("abc", 3));
    assert_eq!(completion.finish.map(Text::raw), Some("length"));
}

#[test]
fn a_role_and_empty_text_are_no_output() {
    for empty in [
        r#"{"role":"assistant","content":""}"#,
        r#"{"role":"assistant","content":null,"reasoning_content":null,"tool_calls":[]}"#,
        r#"{"role":"assistant","reasoning":"","tool_calls":[{"index":0,"id":"c","function":{}}]}"#,
        "{}",
        "null",
    ] {
        let data = delta(empty);
        assert_eq!(of(&data), Picks::default(), "{empty}");
    }
}

#[test]
fn reasoning_under_two_names_counts_once_and_beside_content() {
    for reasoning in [
        r#"{"reasoning":"abc"}"#,
        r#"{"reasoning_content":"abc"}"#,
        r#"{"reasoning":"abc","reasoning_content":"abc"}"#,
    ] {
        let data = delta(reasoning);
        assert_eq!((of(&data).reasoning, of(&data).visible), (3, 0), "{reasoning}");
    }
    let both = delta(r#"{"reasoning":"abc","content":"de"}"#);
    assert_eq!((of(&both).reasoning, of(&both).visible), (3, 2));
}

#[test]
fn tool_calls_and_refusals_are_visible() {
    let tools = delta(
        r#"{"tool_calls":[{"index":0,"id":"x","type":"function","function":{"name":"look",
        "arguments":"{\"a\":1}"}},{"index":1,"function":{"arguments":"xy"}}]}"#,
    );
    assert_eq!((of(&tools).visible, of(&tools).content), (4 + 7 + 2, None));
    let old = delta(r#"{"function_call":{"name":"f","arguments":"{}"}}"#);
    assert_eq!(of(&old).visible, 3);
    assert_eq!(of(&delta(r#"{"refusal":"no"}"#)).visible, 2);
}

#[test]
fn usage_is_found_wherever_it_stands() {
    let usage = r#""usage":{"prompt_tokens":17,"completion_tokens":6,"total_tokens":23,
        "prompt_tokens_details":{"cached_tokens":16,"audio_tokens":0},
        "completion_tokens_details":{"reasoning_tokens":4}}"#;
    let said = Usage { prompt: Some(17), completion: Some(6), cached: Some(16) };
    for data in [
        format!(r#"{{"choices":[],{usage}}}"#),
        format!(r#"{{{usage}}}"#),
        format!(r#"{{"choices":[{{"delta":{{}},"finish_reason":"stop"}}],{usage}}}"#),
        format!(r#"{{"choices":[{{"delta":{{}},{usage}}}],"usage":null}}"#),
    ] {
        assert_eq!(of(&data).usage, said, "{data}");
    }
    let odd = r#"{"usage":{"prompt_tokens":-1,"completion_tokens":1.5,"total_tokens":"x",
        "prompt_tokens_details":null}}"#;
    assert_eq!(of(odd).usage, Usage::default());
}

#[test]
fn errors_come_as_text_as_objects_and_as_the_whole_event() {
    for (data, message) in [
        (r#"{"error":{"message":"out of memory","type":"x","code":500}}"#, "out of memory"),
        (r#"{"error":"overloaded","error_type":"overloaded"}"#, "overloaded"),
        (r#"{"error":{"code":1}}"#, r#"{"code":1}"#),
        (r#"{"error":true}"#, "true"),
        (r#"{"object":"error","message":"bad","code":400}"#, "bad"),
    ] {
        assert_eq!(of(data).error.map(Text::raw), Some(message), "{data}");
    }
    assert_eq!(of(r#"{"error":null,"message":"x"}"#).error, None);
}

#[test]
fn what_is_no_object_is_malformed() {
    for data in ["", "[DONE]", "[1]", "null", "{\"choices\":[}", "{} {}", "data"] {
        assert!(pick(data.as_bytes()).is_err(), "{data}");
    }
}
