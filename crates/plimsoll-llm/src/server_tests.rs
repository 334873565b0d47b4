//! Deviations of servers from OpenAI's, each reproduced from public reports: docs/llm-faults.md
//! names them.

use plimsoll_engine::interface::{First, SessionCounters, TimeKind};
use plimsoll_model::nonconformity::NonconformityKind;
use plimsoll_model::outcome::ErrorClass;

use super::test_client::{Asking, FINISH, ROLE, delta};

/// How often which field of the answers deviated, and how.
fn deviations(counted: &SessionCounters) -> Vec<(Option<String>, NonconformityKind, u64)> {
    let all = counted.nonconformities.iter();
    all.map(|it| (it.field.as_deref().map(str::to_owned), it.kind, it.count)).collect()
}

const END: &[u8] = b"0\r\n\r\n";
const REFUSAL_MESSAGE: &str = "the request exceeds the available context size";

/// A chunk with this finish reason, as it stands in JSON.
fn finished(text: &str, reason: &str) -> String {
    format!(r#"{{"choices":[{{"delta":{{"content":"{text}"}},"finish_reason":{reason}}}]}}"#)
}

/// An answer of `n` words, 10 ms apart from 30 ms on.
fn write_answer(asking: &mut Asking, n: u64) -> &mut Asking {
    (0..n).fold(asking, |asking, word| asking.texts(30 + 10 * word, &[" word"]))
}

/// sglang #3912, ollama #4357; `"null"`: PowerShell/AIShell #350.
#[test]
fn a_stream_that_breaks_off_has_failed_whatever_stands_for_no_finish_reason() {
    for reason in ["null", "\"\"", "\"null\"", "\"None\""] {
        let mut asking = Asking::new();
        let chunk = finished(" word", reason);
        for at in 1..=5 {
            asking.events(10 * at, &[&chunk]);
        }
        asking.bytes(60, END).fails(ErrorClass::Truncated, "after 5 chunks");
        // A whole answer, without [DONE]; a completion.
        let mut asking = Asking::new();
        asking.events(10, &[&chunk, &finished("", "\"stop\"")]).bytes(20, END).succeeds();
        let mut asking = Asking::new();
        let completion = format!(r#"{{"choices":[{{"text":"a","finish_reason":{reason}}}]}}"#);
        asking.events(10, &[&completion]).bytes(20, END).fails(ErrorClass::Truncated, "1 chunks");
    }
}

/// llama.cpp #16104 and #14566, lemonade #2826, FastChat; others by the same rule.
#[test]
fn an_error_before_done_is_a_failure_in_the_servers_words_in_every_form() {
    let object =
        format!(r#"{{"code":400,"message":"{REFUSAL_MESSAGE}","type":"invalid_request_error"}}"#);
    for form in [
        format!("error: {object}\n\n"),
        format!("error:{REFUSAL_MESSAGE}\r\n\r\n"),
        format!("{object}\n\n"),
        format!("event: error\ndata: {object}\n\n"),
        format!("data: {REFUSAL_MESSAGE}\nevent: error\n\n"),
        format!(
            "data: {{\"text\":\"**NETWORK ERROR** {REFUSAL_MESSAGE}\",\"error_code\":50004}}\n\n"
        ),
        format!("data: {{\"error\":{object}}}\n\n"),
        format!("data: {object}\n\n"),
        format!("{{\"detail\":\"{REFUSAL_MESSAGE}\"}}\n"),
    ] {
        for done in ["data: [DONE]\n\n", ""] {
            for output in [0, 5] {
                let mut asking = Asking::new();
                write_answer(asking.events(20, &[ROLE]), output).body(90, &form).body(90, done);
                asking.bytes(90, END).fails(ErrorClass::InBand, REFUSAL_MESSAGE);
            }
        }
        let cut = form.len() / 2;
        let mut asking = Asking::new();
        write_answer(&mut asking, 2).body(90, &form[..cut]).body(91, &form[cut..]).bytes(92, END);
        asking.fails(ErrorClass::InBand, REFUSAL_MESSAGE);
    }
    // The end of the body is the end of the last line.
    let mut asking = Asking::new();
    write_answer(&mut asking, 2)
        .body(90, &object)
        .bytes(90, END)
        .fails(ErrorClass::InBand, REFUSAL_MESSAGE);
}

#[test]
fn other_fields_types_and_lines_are_no_errors() {
    let mut asking = Asking::new();
    asking.body(10, "event: status\ndata: {\"message\":\"queued\"}\n\nerrors: x\n\n{\"id\":1}\n\n");
    write_answer(&mut asking, 5).end(90, 5).succeeds();
}

/// agentscope-java #2073: proxies keep the body open for 60 s.
#[test]
fn an_answer_is_over_at_done_however_long_its_body_stays_open() {
    let done = |at: u64| {
        let mut asking = Asking::new();
        write_answer(&mut asking, 10).events(at, &[FINISH, "[DONE]"]);
        asking
    };
    let mut asking = done(140);
    asking.silent_until(1_640).succeeds();
    assert_eq!((asking.completed_at(), asking.is_closed()), (Some(140), true));
    let expected = [(Some("[DONE]".to_owned()), NonconformityKind::NotEnded, 1)];
    assert_eq!(deviations(&asking.counted()), expected);
    // It ends a moment later: nothing is reported, and the connection is kept.
    let mut asking = done(150);
    asking.bytes(157, END).succeeds();
    assert_eq!((asking.completed_at(), asking.is_closed()), (Some(150), false));
    assert!(asking.counted().nonconformities.is_empty());
    // The connection ends without the end of the body.
    let mut asking = done(150);
    asking.closes(Some(104)).succeeds();
    let expected = [(Some("[DONE]".to_owned()), NonconformityKind::NotEnded, 1)];
    assert_eq!(deviations(&asking.counted()), expected);
}

#[test]
fn what_follows_done_is_no_output_and_no_error_but_counted() {
    let mut asking = Asking::new();
    let late = [
        &delta("content", "late")[..],
        r#"{"error":"too late"}"#,
        r#"{"usage":{"completion_tokens":3}}"#,
    ];
    write_answer(&mut asking, 3).events(80, &[FINISH, "[DONE]"]).events(90, &late).bytes(95, END);
    asking.succeeds();
    assert_eq!((asking.text().as_str(), asking.completed_at()), (" word word word", Some(80)));
    assert_eq!(asking.ms(TimeKind::ChunkGap), [10, 10]);
    assert_eq!(asking.values(TimeKind::OutputTokens), [3]);
    let counted = asking.counted();
    assert_eq!(counted.generation.chunks, 3);
    let deviations = deviations(&counted);
    let of_done = |kind| (Some("[DONE]".to_owned()), kind, 1);
    let expected =
        [of_done(NonconformityKind::TrailingBytes), of_done(NonconformityKind::NotEnded)];
    assert_eq!(deviations, expected);
}

/// litellm #16272, vercel/ai #8072: Mistral's reasoning models.
#[test]
fn content_in_lists_of_parts_is_output_and_thinking_is_not_visible() {
    let part = |part: &str| format!(r#"{{"choices":[{{"delta":{{"content":[{part}]}}}}]}}"#);
    let text = part(r#"{"type":"text","text":" word"}"#);
    let thinking = part(r#"{"type":"thinking","thinking":[{"type":"text","text":" hmm"}]}"#);
    let mut asking = Asking::new();
    asking.events(5, &[ROLE]);
    for at in 0..10 {
        asking.events(50 + 20 * at, &[&thinking]);
    }
    for at in 0..5 {
        asking.texts(250 + 20 * at, &[" word"]);
    }
    asking.end(340, 15).succeeds();
    assert_eq!((asking.first(First::Output), asking.first(First::Visible)), (Some(50), Some(250)));
    assert_eq!(asking.ms(TimeKind::ChunkGap), [20; 14]);
    assert_eq!((asking.counted().generation.chunks, asking.text().len()), (15, 25));
    // Only parts of text; reasoning as a list under its own name.
    let mut asking = Asking::new();
    asking.events(50, &[&text]).events(70, &[&text]).end(80, 2).succeeds();
    assert_eq!((asking.first(First::Visible), asking.text().as_str()), (Some(50), " word word"));
    let mut asking = Asking::new();
    let own = r#"{"choices":[{"delta":{"reasoning_content":[{"type":"text","text":"hm"}]}}]}"#;
    asking.events(50, &[own]).texts(90, &["a"]).end(95, 2).succeeds();
    assert_eq!((asking.first(First::Output), asking.first(First::Visible)), (Some(50), Some(90)));
}

/// vercel/ai #12425, LiveBench #503: xAI counts reasoning outside of completion_tokens.
#[test]
fn reasoning_outside_of_completion_tokens_is_part_of_the_answer_and_named() {
    for (completion, contradictory) in [(10, 1), (50, 0)] {
        let mut asking = Asking::new();
        for at in 1..=5 {
            asking.events(
                80 * at,
                &[&delta("reasoning_content", " one two three four five six seven eight")],
            );
        }
        for (at, text) in
            [(480, " one two three"), (560, " four five six"), (640, " seven eight nine ten")]
        {
            asking.texts(at, &[text]);
        }
        let details = r#""completion_tokens_details":{"reasoning_tokens":40}"#;
        let counts = format!(r#""prompt_tokens":20,"completion_tokens":{completion}"#);
        let usage = format!(r#"{{"usage":{{{counts},"total_tokens":70,{details}}}}}"#);
        asking.events(640, &[FINISH, &usage, "[DONE]"]).bytes(640, END).succeeds();
        assert_eq!(asking.values(TimeKind::OutputTokens), [50]);
        assert_eq!(asking.value(TimeKind::TokenTime), Some(11_428_571), "560 ms / 49");
        let counts = asking.counted().generation;
        assert_eq!((counts.output_tokens, counts.contradictory_requests), (50, contradictory));
    }
}

#[test]
fn answers_that_were_ended_at_a_length_are_told_from_those_that_the_model_ended() {
    for (reason, at_length) in [("length", 1), ("stop", 0), ("content_filter", 0)] {
        let mut asking = Asking::new();
        let finish = FINISH.replace("length", reason);
        let usage = r#"{"usage":{"completion_tokens":3}}"#;
        write_answer(&mut asking, 3)
            .events(70, &[&finish, usage, "[DONE]"])
            .bytes(70, END)
            .succeeds();
        let counts = asking.counted().generation;
        assert_eq!((counts.cut_short_requests, counts.cut_at_length_requests), (1, at_length));
    }
}
