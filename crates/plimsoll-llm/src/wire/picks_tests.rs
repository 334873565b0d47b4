use super::*;

fn parse_picks(data: &str) -> Picks<'_> {
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
    let chat = parse_picks(&chat);
    assert_eq!((content(chat).as_str(), chat.visible, chat.reasoning), (" café 😀", 7, 0));
    assert_eq!((chat.finish, chat.usage, chat.error), (None, Usage::default(), None));
    let completion =
        parse_picks(r#"{"choices":[{"text":"abc","index":0,"finish_reason":"length"}]}"#);
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
        assert_eq!(parse_picks(&data), Picks::default(), "{empty}");
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
        assert_eq!(
            (parse_picks(&data).reasoning, parse_picks(&data).visible),
            (3, 0),
            "{reasoning}"
        );
    }
    let both = delta(r#"{"reasoning":"abc","content":"de"}"#);
    assert_eq!((parse_picks(&both).reasoning, parse_picks(&both).visible), (3, 2));
}

#[test]
fn tool_calls_and_refusals_are_visible() {
    let tools = delta(
        r#"{"tool_calls":[{"index":0,"id":"x","type":"function","function":{"name":"look",
        "arguments":"{\"a\":1}"}},{"index":1,"function":{"arguments":"xy"}}]}"#,
    );
    assert_eq!((parse_picks(&tools).visible, parse_picks(&tools).content), (4 + 7 + 2, None));
    let old = delta(r#"{"function_call":{"name":"f","arguments":"{}"}}"#);
    assert_eq!(parse_picks(&old).visible, 3);
    assert_eq!(parse_picks(&delta(r#"{"refusal":"no"}"#)).visible, 2);
}

#[test]
fn usage_is_found_wherever_it_stands() {
    let usage = r#""usage":{"prompt_tokens":17,"completion_tokens":6,"total_tokens":23,
        "prompt_tokens_details":{"cached_tokens":16,"audio_tokens":0},
        "completion_tokens_details":{"reasoning_tokens":4}}"#;
    let reported = Usage {
        prompt: Some(17),
        completion: Some(6),
        cached: Some(16),
        total: Some(23),
        reasoning: Some(4),
    };
    assert_eq!((reported.output(9), reported.disagrees()), (Some(6), false));
    for data in [
        format!(r#"{{"choices":[],{usage}}}"#),
        format!(r#"{{{usage}}}"#),
        format!(r#"{{"choices":[{{"delta":{{}},"finish_reason":"stop"}}],{usage}}}"#),
        format!(r#"{{"choices":[{{"delta":{{}},{usage}}}],"usage":null}}"#),
    ] {
        assert_eq!(parse_picks(&data).usage, reported, "{data}");
    }
    let odd = r#"{"usage":{"prompt_tokens":-1,"completion_tokens":1.5,"total_tokens":"x",
        "prompt_tokens_details":null}}"#;
    assert_eq!(parse_picks(odd).usage, Usage::default());
}

/// Mistral's reasoning models (litellm #16272).
#[test]
fn text_in_lists_of_parts_is_output() {
    for (parts, visible, reasoning, text) in [
        (r#"[{"type":"text","text":" word"}]"#, 5, 0, " word"),
        (r#"[{"type":"thinking","thinking":[{"type":"text","text":" hmm"}]}]"#, 0, 4, ""),
        (r#"[{"type":"thinking","thinking":"hm"},{"type":"text","text":"so"}]"#, 2, 2, "so"),
        (r#"[{"text":"ab","type":"reasoning"},"cde",null,7]"#, 3, 2, "cde"),
        (r#"{"type":"output_text","text":"ab"}"#, 2, 0, "ab"),
        (r#"[{"type":"image_url","image_url":{"url":"x"}},[],{}]"#, 0, 0, ""),
    ] {
        let data = delta(&format!(r#"{{"content":{parts}}}"#));
        let picks = parse_picks(&data);
        assert_eq!((picks.visible, picks.reasoning), (visible, reasoning), "{parts}");
        assert_eq!(content(picks), text, "{parts}");
    }
    for field in ["reasoning_content", "reasoning", "reasoning_details"] {
        let data = delta(&format!(r#"{{"{field}":[{{"type":"reasoning.text","text":"abc"}}]}}"#));
        assert_eq!((parse_picks(&data).visible, parse_picks(&data).reasoning), (0, 3), "{field}");
    }
}

/// sglang #3912, ollama #4357, KoboldCpp.
#[test]
fn what_stands_for_null_is_no_reason_to_finish() {
    for (finish, read) in [
        ("\"\"", None),
        ("\"null\"", None),
        ("\"None\"", None),
        ("null", None),
        ("\"stop\"", Some("stop")),
        ("\"length\"", Some("length")),
    ] {
        let data = format!(r#"{{"choices":[{{"delta":{{}},"finish_reason":{finish}}}]}}"#);
        assert_eq!(parse_picks(&data).finish.map(Text::raw), read, "{finish}");
    }
}

/// vercel/ai #12425: prompt, completion, reasoning and total, characters of reasoning, the tokens
/// of the answer.
#[test]
fn reasoning_outside_of_the_completion_is_counted_with_it() {
    for (prompt, completion, reasoning, total, characters, tokens, disagrees) in [
        (20, 10, Some(40), Some(70), 200, 50, true),
        (20, 50, Some(40), Some(70), 200, 50, false),
        // No details, but reasoning came; no total; neither has it.
        (20, 10, None, Some(70), 200, 50, true),
        (20, 10, Some(40), None, 0, 50, true),
        (20, 10, Some(40), Some(30), 0, 50, true),
        // The rest of the total is unexplained.
        (20, 10, None, Some(70), 0, 10, true),
        (20, 30, Some(20), Some(55), 9, 30, true),
        (20, 10, None, Some(25), 9, 10, true),
        (20, 10, None, None, 9, 10, false),
    ] {
        let (prompt, completion) = (Some(prompt), Some(completion));
        let usage = Usage { prompt, completion, cached: None, total, reasoning };
        assert_eq!(usage.output(characters), Some(tokens), "{usage:?}");
        assert_eq!(usage.disagrees(), disagrees, "{usage:?}");
    }
    let all =
        Usage { completion: Some(u64::MAX - 1), reasoning: Some(u64::MAX), ..Usage::default() };
    assert_eq!(all.output(1), Some(u64::MAX));
}

#[test]
fn errors_come_as_text_as_objects_and_as_the_whole_event() {
    for (data, message) in [
        (r#"{"error":{"message":"out of memory","type":"x","code":500}}"#, "out of memory"),
        (r#"{"error":"overloaded","error_type":"overloaded"}"#, "overloaded"),
        (r#"{"error":{"code":1}}"#, r#"{"code":1}"#),
        (r#"{"error":true}"#, "true"),
        (r#"{"object":"error","message":"bad","code":400}"#, "bad"),
        (r#"{"text":"**NETWORK ERROR** bad","error_code":50004}"#, "**NETWORK ERROR** bad"),
        (r#"{"code":500,"message":"bad"}"#, "bad"),
        (r#"{"type":"error","detail":"bad"}"#, "bad"),
        (r#"{"choices":[{"error":{"message":"bad"},"finish_reason":"error"}]}"#, "bad"),
    ] {
        assert_eq!(parse_picks(data).error.map(Text::raw), Some(message), "{data}");
    }
    for good in [
        r#"{"error":null,"message":"x"}"#,
        r#"{"code":0,"message":"success","choices":[]}"#,
        r#"{"code":200,"message":"ok"}"#,
        r#"{"text":"a","error_code":0}"#,
        r#"{"object":"chat.completion.chunk","code":7,"message":"x","choices":[]}"#,
    ] {
        assert_eq!(parse_picks(good).error, None, "{good}");
    }
}

#[test]
fn what_is_no_object_is_malformed() {
    for data in ["", "[DONE]", "[1]", "null", "{\"choices\":[}", "{} {}", "data"] {
        assert!(pick(data.as_bytes()).is_err(), "{data}");
    }
}
