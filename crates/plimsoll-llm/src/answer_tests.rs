use super::*;
use proptest::prelude::*;

const MS: u64 = 1_000_000;

fn ms(n: u64) -> Nanos {
    Nanos::from_millis(n)
}

fn content(text: &str) -> String {
    format!(r#"{{"choices":[{{"index":0,"delta":{{"content":"{text}"}}}}]}}"#)
}

const FINISH: &str = r#"{"choices":[{"index":0,"delta":{},"finish_reason":"length"}]}"#;

fn usage(tokens: u64) -> String {
    format!(r#"{{"choices":[],"usage":{{"prompt_tokens":9,"completion_tokens":{tokens}}}}}"#)
}

/// An answer from reads: when each came, and its events.
fn answer_from_reads(reads: &[(u64, Vec<String>)]) -> (Answer, Vec<Arrival>) {
    let mut answer = Answer::default();
    let mut arrivals = Vec::new();
    for (at, events) in reads {
        for data in events {
            answer.take(data.as_bytes());
        }
        arrivals.push(answer.read_ended(ms(*at)));
    }
    (answer, arrivals)
}

/// Ends well: finish reason, `tokens`, `[DONE]`, in a read of their own.
fn figures(mut reads: Vec<(u64, Vec<String>)>, tokens: u64) -> Figures {
    reads.push((10_000, vec![FINISH.to_owned(), usage(tokens), "[DONE]".to_owned()]));
    answer_from_reads(&reads).0.end(b"").unwrap()
}

/// One chunk in each of `n` reads, `interval` ms apart.
fn steady(n: u64, interval: u64, text: &str) -> Vec<(u64, Vec<String>)> {
    (0..n).map(|k| (100 + k * interval, vec![content(text)])).collect()
}

#[test]
fn a_token_in_each_chunk_takes_the_gap_between_chunks() {
    let figures = figures(steady(11, 10, "word"), 11);
    assert_eq!(figures.token_time, Some(ms(10)));
    assert_eq!(figures.later_token_time, Some(ms(10)));
    assert!(!figures.is_first_chunk_estimated);
    assert_eq!(figures.output, Output { chunks: 11, characters: 44, visible: 44 });
    assert_eq!((figures.usage.prompt, figures.usage.completion), (Some(9), Some(11)));
}

#[test]
fn a_token_that_ends_the_answer_without_text_makes_no_chunk_of_several() {
    let figures = figures(steady(11, 10, "word"), 12);
    assert_eq!(figures.later_token_time, Some(ms(10)));
    assert!(!figures.is_first_chunk_estimated);
}

#[test]
fn chunks_of_one_read_arrived_together() {
    let reads = vec![
        (100, vec![content("a"), content("b")]),
        (140, vec![content("c"), content("d")]),
        (180, vec![content("e")]),
    ];
    let (_, arrivals) = answer_from_reads(&reads);
    assert_eq!(arrivals[0].interval, None);
    assert_eq!((arrivals[1].interval, arrivals[1].output.chunks), (Some(ms(40)), 2));
    let figures = figures(reads, 5);
    // Two of the five tokens came at the first instant.
    assert_eq!(figures.token_time, Some(ms(20)));
    assert_eq!(figures.later_token_time, Some(Nanos(80 * MS / 3 + 1)));
}

#[test]
fn the_end_of_a_stream_is_no_output() {
    let mut reads = steady(3, 10, "a");
    reads.push((500, vec![FINISH.to_owned()]));
    let (_, arrivals) = answer_from_reads(&reads);
    assert_eq!(arrivals[3], Arrival::default());
    assert_eq!(figures(reads, 3).token_time, Some(ms(10)));
}

#[test]
fn a_count_that_cannot_be_right_gives_no_time() {
    let figures = figures(steady(10, 10, "a"), 9);
    assert_eq!((figures.token_time, figures.later_token_time), (None, None));
    assert_eq!(figures.usage.completion, Some(9));
}

#[test]
fn done_or_a_finish_reason_is_an_end() {
    for end in [FINISH, "[DONE]"] {
        let mut answer = answer_from_reads(&[(1, vec![content("a"), end.to_owned()])]).0;
        assert!(answer.end(b"").is_ok(), "{end}");
    }
    assert!(answer_from_reads(&[(1, vec![content("a")])]).0.end(b"[DONE]").is_ok());
    let truncated = answer_from_reads(&[(1, vec![content("a")])]).0.end(b"[DON");
    assert_eq!(truncated, Err(Failure::Truncated { chunks: 1 }));
}

#[test]
fn the_first_failure_counts() {
    let events = vec![content("a"), "{\"x\"".to_owned(), "{\"error\":\"e\"}".to_owned()];
    let failed = answer_from_reads(&[(1, events)]).0.end(b"");
    let why = Malformed::Syntax { at: 4 };
    assert_eq!(failed, Err(Failure::Malformed { event: 2, why }));
    let aborted = FINISH.replace("length", "abort");
    let failed = answer_from_reads(&[(1, vec![content("a"), aborted])]).0.end(b"");
    assert_eq!(failed, Err(Failure::InBand("finish reason abort".to_owned())));
}

#[test]
fn words_are_one_short_line() {
    assert_eq!(excerpt(" a\n\t b \u{1b}[31m ".chars()), "a b [31m");
    let long = excerpt("é ".chars().cycle().take(10_000));
    assert_eq!(long.chars().count(), MESSAGE_CHARACTERS_MAX + 1);
}

proptest! {
    #[test]
    fn no_token_takes_longer_than_the_answer_and_none_is_free(
        reads in prop::collection::vec((0u64..50, 1usize..4, 1usize..20), 1..20),
        tokens in prop::option::of(0u64..200),
        continuous in any::<bool>(),
    ) {
        let mut answer = Answer::default();
        let (mut at, mut reported) = (0, 0);
        for (pause, chunks, letters) in reads {
            at += pause;
            for _ in 0..chunks {
                answer.take(content(&"x".repeat(letters)).as_bytes());
                reported += 1;
                if continuous {
                    answer.take(usage(reported).as_bytes());
                }
            }
            answer.read_ended(ms(at));
        }
        if let Some(tokens) = tokens {
            answer.take(usage(tokens).as_bytes());
        }
        answer.take(b"[DONE]");
        let span = answer.last_at.saturating_sub(answer.first.unwrap().at);
        let figures = answer.end(b"").unwrap();
        for time in [figures.token_time, figures.later_token_time].into_iter().flatten() {
            prop_assert!(time > Nanos::ZERO);
            prop_assert!(time <= span);
            prop_assert!(figures.usage.completion.is_some());
        }
    }
}
