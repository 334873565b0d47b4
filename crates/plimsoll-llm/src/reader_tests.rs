use plimsoll_model::event::GenerationCounts;

use super::super::test_client::{Asking, FINISH, ROLE, delta, usage};
use super::*;

#[test]
fn a_good_answer_is_timed_counted_and_kept() {
    let mut asking = Asking::new();
    asking.events(5, &[ROLE]).texts(80, &["Grüß "]).texts(90, &["Gott"]).body(95, ": ping\n\n");
    asking.end(200, 2).succeeds();
    assert_eq!(asking.first(First::Byte), Some(5));
    assert_eq!(asking.first(First::Output), Some(80));
    assert_eq!(asking.first(First::Visible), Some(80));
    assert_eq!(asking.ms(TimeKind::ChunkGap), [10]);
    assert_eq!(asking.ms(TimeKind::TokenTime), [10]);
    assert_eq!(asking.ms(TimeKind::LaterTokenTime), [10]);
    assert_eq!(asking.values(TimeKind::PromptTokens), [17]);
    assert_eq!(asking.values(TimeKind::OutputTokens), [2]);
    assert_eq!(asking.text(), "Grüß Gott");
    let counters = asking.counted();
    let expected = GenerationCounts {
        chunks: 2,
        characters: 9,
        counted_requests: 1,
        output_tokens: 2,
        counted_chunks: 2,
        counted_characters: 9,
        prompt_tokens: 17,
        cached_said_requests: 1,
        cached_prompt_tokens: 16,
        cached_of_prompt_tokens: 17,
        // Ten were requested.
        cut_short_requests: 1,
        cut_at_length_requests: 1,
        pings: 1,
        ..GenerationCounts::default()
    };
    assert_eq!(counters.generation, expected);
    assert!(counters.nonconformities.is_empty());
    assert_eq!(asking.counted(), SessionCounters::default(), "each is counted once");
}

#[test]
fn an_answer_without_usage_is_counted_as_such() {
    let mut asking = Asking::new();
    asking.texts(1, &["a"]).texts(2, &["b"]).events(3, &[FINISH]).bytes(3, b"0\r\n\r\n");
    asking.succeeds();
    assert_eq!(asking.value(TimeKind::OutputTokens), None);
    assert_eq!(asking.value(TimeKind::TokenTime), None);
    let counters = asking.counted();
    assert_eq!(counters.generation.uncounted_requests, 1);
    let kind = NonconformityKind::MissingPart;
    let expected =
        Nonconformity::once("OpenAI's API", "chat streaming", "chat", Some("[DONE]"), kind);
    assert_eq!(counters.nonconformities.iter().collect::<Vec<_>>(), [&expected]);
}

#[test]
fn usage_in_every_chunk_says_the_tokens_of_the_first() {
    let mut asking = Asking::new();
    for (at, tokens) in [(100, 7), (130, 8), (160, 9), (190, 10)] {
        asking.events(at, &[&delta("content", "word"), &usage(tokens)]);
    }
    asking.end(200, 10).succeeds();
    assert_eq!(asking.ms(TimeKind::TokenTime), [10]);
    assert_eq!(asking.ms(TimeKind::LaterTokenTime), [30]);
    let counts = asking.counted().generation;
    assert_eq!((counts.several_a_chunk_requests, counts.estimated_first_chunks), (1, 0));
    assert_eq!((counts.cut_short_requests, counts.mismatched_requests), (0, 0));
}

#[test]
fn a_count_below_the_chunks_is_a_mismatch() {
    let mut asking = Asking::new();
    asking.texts(1, &["a", "b"]).texts(9, &["c"]).end(9, 2).succeeds();
    let counts = asking.counted().generation;
    assert_eq!((counts.mismatched_requests, counts.counted_requests), (1, 1));
    assert_eq!(asking.value(TimeKind::TokenTime), None);
}

#[test]
fn a_body_that_is_no_stream_is_quoted() {
    let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 42\r\n\r\n";
    let mut asking = Asking::with_head(head);
    asking.bytes(5, br#"{"choices":[{"message":{"content":"hi"}}]}"#);
    asking.fails(ErrorClass::Malformed, r#"no stream of events, it begins with: {"choices":["#);
    let mut asking = Asking::with_head(head);
    asking.bytes(5, b"{\"error\":{\"message\":\"no memory\",\"code\":5}}");
    asking.fails(ErrorClass::InBand, "error in it: no memory");
}

#[test]
fn an_event_that_never_ends_fails_its_request() {
    let mut asking = Asking::new();
    let part = "x".repeat(100_000);
    asking.body(1, "data: ");
    for at in 0..20 {
        asking.body(at, &part);
    }
    asking.bytes(30, b"0\r\n\r\n");
    asking.fails(ErrorClass::Malformed, "more than 1048576 bytes");
}
