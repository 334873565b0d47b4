//! The faults of other clients, each reproduced as reported there: docs/llm-faults.md has the
//! table. Those of loads and schedules are in the tests of the program.

use plimsoll_engine::interface::{First, TimeKind};
use plimsoll_model::outcome::ErrorClass;

use super::test_client::{Asking, FINISH, ROLE, delta, usage};

#[test]
fn fault_05_a_role_and_empty_text_do_not_end_the_time_to_first_output() {
    let mut asking = Asking::new();
    asking.events(5, &[ROLE, &delta("content", "")]).texts(214, &["a"]).end(220, 1).succeeds();
    assert_eq!(asking.first(First::Byte), Some(5));
    assert_eq!(asking.first(First::Output), Some(214));
}

#[test]
fn fault_06_an_answer_without_text_has_failed_and_has_no_first_output() {
    let mut asking = Asking::new();
    asking.events(5, &[ROLE]).end(20, 0);
    asking.fails(ErrorClass::Empty, "without any output");
    assert_eq!(asking.first(First::Output), None);
}

#[test]
fn fault_07_an_error_within_a_stream_fails_the_request() {
    let mut asking = Asking::new();
    let error = r#"{"error":{"message":"CUDA out of memory","type":"InternalServerError"}}"#;
    asking.texts(50, &["a"]).events(60, &[error, "[DONE]"]).bytes(60, b"0\r\n\r\n");
    asking.fails(ErrorClass::InBand, "CUDA out of memory");
}

#[test]
fn fault_08_a_stream_that_breaks_off_has_failed() {
    let begun = |head: Option<&str>| {
        let mut asking = head.map_or_else(Asking::new, Asking::with_head);
        for at in 1..=5 {
            match head {
                None => asking.texts(at * 10, &["a"]),
                Some(_) => {
                    let event = format!("data: {}\n\n", delta("content", "a"));
                    asking.bytes(at * 10, event.as_bytes())
                }
            };
        }
        asking
    };
    begun(None).closes(None).fails(ErrorClass::Truncated, "closed the connection");
    begun(None).closes(Some(104)).fails(ErrorClass::Truncated, "reset");
    // A proxy ends the body for the server that is gone.
    begun(None).bytes(60, b"0\r\n\r\n").fails(ErrorClass::Truncated, "after 5 chunks");
    // Half a chunk of HTTP.
    begun(None).bytes(60, b"100\r\ndata: {").closes(None).fails(ErrorClass::Truncated, "closed");
    // The end of the connection is the end of the body.
    let close = "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n";
    begun(Some(close)).closes(None).fails(ErrorClass::Truncated, "[DONE]");
}

#[test]
fn fault_09_spaces_survive_any_split_of_the_stream() {
    let texts = [" a", "b ", "  ", "\\n\\n", "data: ", " data:x"];
    let events: String =
        texts.iter().map(|text| format!("data: {}\n\n", delta("content", text))).collect();
    let events = events + &format!("data: {}\n\ndata: [DONE]\n\n", usage(6));
    for cut in 1..events.len() {
        let mut asking = Asking::new();
        asking.body(1, &events[..cut]).body(2, &events[cut..]).bytes(3, b"0\r\n\r\n").succeeds();
        assert_eq!(asking.text(), " ab   \n\ndata:  data:x", "cut at {cut}");
        let counts = asking.counted().generation;
        assert_eq!((counts.chunks, counts.characters), (6, 21), "cut at {cut}");
    }
}

#[test]
fn fault_10_a_character_split_between_reads_stays_whole() {
    let body = format!("data: {}\n\ndata: [DONE]\n\n", delta("content", "é😀"));
    let chunk = format!("{:x}\r\n{body}\r\n0\r\n\r\n", body.len());
    for cut in 1..chunk.len() {
        let mut asking = Asking::new();
        asking.bytes(1, &chunk.as_bytes()[..cut]).bytes(2, &chunk.as_bytes()[cut..]).succeeds();
        assert_eq!(asking.text(), "é😀", "cut at {cut}");
        assert_eq!(asking.counted().generation.characters, 2, "cut at {cut}");
    }
}

#[test]
fn fault_11_events_end_where_they_end_whatever_the_line_ends() {
    for (line_end, name) in [("\n", "LF"), ("\r\n", "CRLF"), ("\r", "CR")] {
        let mut asking = Asking::new();
        asking.body(5, &format!(": ping{line_end}{line_end}"));
        for (at, text) in [(80, "a"), (90, "b"), (100, "c")] {
            // Two lines of data are one event.
            let (one, two) = (delta("content", text), "}");
            let one = one.strip_suffix(two).unwrap();
            asking.body(at, &format!("data:{one}{line_end}data: {two}{line_end}{line_end}"));
        }
        let end = format!("data: {FINISH}{line_end}{line_end}data: [DONE]{line_end}{line_end}");
        asking.body(300, &end).bytes(300, b"0\r\n\r\n").succeeds();
        assert_eq!(asking.first(First::Byte), Some(5), "{name}");
        assert_eq!(asking.first(First::Output), Some(80), "{name}");
        assert_eq!(asking.ms(TimeKind::ChunkGap), [10, 10], "{name}");
        assert_eq!(asking.text(), "abc", "{name}");
        assert_eq!(asking.counted().generation.pings, 1, "{name}");
    }
}

#[test]
fn fault_12_four_tokens_in_a_chunk_are_one_gap_and_four_times() {
    let mut asking = Asking::new();
    for chunk in 0..25 {
        asking.texts(100 + 40 * chunk, &["four words in one"]);
    }
    asking.end(1_070, 100).succeeds();
    assert_eq!(asking.ms(TimeKind::ChunkGap), [40; 24]);
    assert_eq!(asking.ms(TimeKind::LaterTokenTime), [10]);
    // vLLM's time takes one token from the first chunk's four: 960 ms / 99.
    assert_eq!(asking.value(TimeKind::TokenTime), Some(9_696_970));
    let counts = asking.counted().generation;
    assert_eq!((counts.several_a_chunk_requests, counts.estimated_first_chunks), (1, 1));
}

#[test]
fn fault_13_a_first_chunk_of_many_tokens_does_not_make_the_later_ones_fast() {
    let mut asking = Asking::new();
    asking.texts(100, &[&"word ".repeat(16)]);
    for token in 1..=20 {
        asking.texts(100 + 10 * token, &["word "]);
    }
    asking.end(310, 36).succeeds();
    assert_eq!(asking.ms(TimeKind::LaterTokenTime), [10]);
    assert_eq!(asking.value(TimeKind::TokenTime), Some(5_714_286));
    assert_eq!(asking.ms(TimeKind::ChunkGap), [10; 20]);
    // The same in one read of sixteen chunks.
    let mut asking = Asking::new();
    asking.texts(100, &["word "; 16]);
    for token in 1..=20 {
        asking.texts(100 + 10 * token, &["word "]);
    }
    asking.end(310, 36).succeeds();
    assert_eq!(asking.ms(TimeKind::LaterTokenTime), [10]);
    assert_eq!(asking.ms(TimeKind::ChunkGap), [10; 20]);
}

#[test]
fn fault_14_tokens_are_counted_by_the_server_and_spread_by_characters_not_by_chunks() {
    let mut asking = Asking::new();
    // 25 chunks within a second, 100 tokens.
    for chunk in 0..25 {
        asking.texts(40 * chunk, &["four words in one"]);
    }
    let within = asking.counted().generation;
    asking.end(1_000, 100).succeeds();
    let whole = asking.counted().generation;
    assert_eq!((within.chunks, whole.output_tokens), (25, 100));
    let tokens_per_character = whole.output_tokens as f64 / whole.counted_characters as f64;
    assert_eq!((within.characters as f64 * tokens_per_character).round(), 100.0);
}

#[test]
fn fault_15_a_hundred_tokens_in_a_hundred_chunks_are_a_hundred() {
    let mut asking = Asking::new();
    for chunk in 0..100 {
        asking.texts(10 * chunk, &[" t"]);
    }
    asking.end(1_000, 100).succeeds();
    assert_eq!(asking.values(TimeKind::OutputTokens), [100]);
    let counts = asking.counted().generation;
    assert_eq!((counts.output_tokens, counts.counted_chunks), (100, 100));
    assert_eq!((counts.mismatched_requests, counts.several_a_chunk_requests), (0, 0));
    assert_eq!(asking.ms(TimeKind::TokenTime), [10]);
}

#[test]
fn fault_16_reasoning_is_output_before_the_first_that_is_visible() {
    for field in ["reasoning", "reasoning_content"] {
        let mut asking = Asking::new();
        asking.events(50, &[&delta(field, "hm")]).events(100, &[&delta(field, "so")]);
        asking.texts(500, &["42"]).end(510, 3).succeeds();
        assert_eq!(asking.first(First::Output), Some(50), "{field}");
        assert_eq!(asking.first(First::Visible), Some(500), "{field}");
        assert_eq!(asking.ms(TimeKind::ChunkGap), [50, 400], "{field}");
        assert_eq!(asking.text(), "42", "reasoning is not sent back in a conversation");
    }
}

#[test]
fn fault_17_no_kind_of_output_hides_another() {
    let mut asking = Asking::new();
    let both = r#"{"choices":[{"delta":{"reasoning_content":"abc","content":"de"}}]}"#;
    asking.events(10, &[both]).end(20, 2).succeeds();
    assert_eq!(asking.counted().generation.characters, 5);
    let call = |function: &str| {
        format!(
            r#"{{"choices":[{{"delta":{{"tool_calls":[{{"index":0,"function":{function}}}]}}}}]}}"#
        )
    };
    let mut asking = Asking::new();
    asking.events(10, &[ROLE, &call(r#"{"name":"look","arguments":""}"#)]);
    asking.events(30, &[&call(r#"{"arguments":"{}"}"#)]).end(40, 2).succeeds();
    assert_eq!(asking.first(First::Visible), Some(10));
    assert_eq!(asking.ms(TimeKind::ChunkGap), [20]);
    assert_eq!(asking.counted().generation.characters, 6);
}

#[test]
fn fault_19_a_refusal_is_no_answer_of_one_token() {
    for (status, body, message) in [
        (429, r#"{"error":{"message":"queue is full","code":429}}"#, "saying queue is full"),
        (503, "upstream gone", "saying upstream gone"),
    ] {
        let head = format!("HTTP/1.1 {status} No\r\nContent-Length: {}\r\n\r\n", body.len());
        let mut asking = Asking::with_head(&head);
        asking.bytes(5, body.as_bytes());
        asking.fails(ErrorClass::Status(status), message);
        assert_eq!(asking.first(First::Byte), None, "the times are of answers");
    }
}

#[test]
fn fault_25_times_are_those_of_the_kernel_however_late_the_client_reads() {
    let mut asking = Asking::new();
    // At exact intervals; what is read late is so marked for the engine, which bounds the
    // milestones.
    for beat in 1..=50 {
        asking.texts(20 * beat, &["a"]);
    }
    asking.end(1_100, 50).succeeds();
    assert_eq!(asking.ms(TimeKind::ChunkGap), [20; 49]);
    assert_eq!(asking.value(TimeKind::TokenTime), Some(20_000_000));
}

#[test]
fn fault_34_an_answer_in_one_write_has_no_time_per_token() {
    let mut asking = Asking::new();
    let texts = ["a "; 64];
    asking.texts(100, &texts).end(100, 64).succeeds();
    assert_eq!(asking.first(First::Output), Some(100));
    for kind in [TimeKind::TokenTime, TimeKind::LaterTokenTime, TimeKind::ChunkGap] {
        assert_eq!(asking.value(kind), None, "{kind:?}");
    }
    assert_eq!(asking.counted().generation.output_tokens, 64, "its tokens count");
}

#[test]
fn fault_36_a_malformed_event_fails_its_request_and_hides_no_other() {
    let mut asking = Asking::new();
    let (good, bad) = (delta("content", "a"), r#"{"choices":[{"delta":{"content":"b}}"#);
    asking.events(10, &[&good, bad, &good]).texts(30, &["c"]).end(40, 3);
    asking.fails(ErrorClass::Malformed, "event 2 of the stream cannot be read");
    assert_eq!(asking.ms(TimeKind::ChunkGap), [20]);
    assert_eq!(asking.first(First::Output), Some(10));
}
