use std::collections::BTreeSet;

use serde_json::Value as Json;

use super::*;
use crate::offers::Offers;
use crate::parameters::Endpoint;

const FIT: Fit = Fit { base_tokens: 20.0, tokens_a_word: 1.25 };

fn prompts(workload: &LlmWorkload, seed: u64) -> Prompts {
    with(workload, seed, Source::Made(Made::new(workload, FIT)))
}

fn with(workload: &LlmWorkload, seed: u64, source: Source) -> Prompts {
    let frame = Frame::new("m", workload.endpoint, Offers::ALL, &workload.extra);
    Prompts::new((seed, Arc::new(WordSequence::new(seed))), frame, FIT, workload.salt, source)
}

fn body(prompts: &Prompts, nonce: u64, index: u64) -> String {
    let mut bytes = Vec::new();
    prompts.write(Number { nonce, index }, &mut bytes);
    String::from_utf8(bytes).unwrap()
}

fn messages(body: &str) -> Vec<String> {
    let json: Json = serde_json::from_str(body).unwrap();
    let all = json["messages"].as_array().unwrap();
    all.iter().map(|message| message["content"].as_str().unwrap().to_owned()).collect()
}

fn word_count(text: &str) -> usize {
    text.split_whitespace().count()
}

#[test]
fn a_seed_gives_the_same_requests_and_a_run_of_its_own_another_salt() {
    let workload = LlmWorkload::default();
    let (one, same) = (prompts(&workload, 5), prompts(&workload, 5));
    assert_eq!(body(&one, 1, 9), body(&same, 1, 9));
    let (here, later) = (messages(&body(&one, 1, 9)), messages(&body(&one, 2, 9)));
    assert_ne!(here[0][..16], later[0][..16], "the server's cache knows nothing of it");
    assert_eq!(here[0][16..], later[0][16..], "the words are the seed's");
    assert_ne!(here[0][16..], messages(&body(&prompts(&workload, 6), 1, 9))[0][16..]);
}

#[test]
fn no_prompt_begins_like_another_over_clients_points_and_runs() {
    for endpoint in [Endpoint::Chat, Endpoint::Completions] {
        let workload = LlmWorkload { endpoint, ..LlmWorkload::default() };
        let one = prompts(&workload, 5);
        let begins = |nonce: u64, index: u64| {
            let body = body(&one, nonce, index);
            let at = body.find(" ").unwrap();
            body[..at].to_owned()
        };
        let all: BTreeSet<String> = (0..8)
            .flat_map(|nonce| (0..2_000).map(move |index| (nonce, index)))
            .map(|(nonce, index)| begins(nonce, index))
            .collect();
        assert_eq!(all.len(), 16_000);
    }
}

#[test]
fn a_prompt_has_the_words_that_its_tokens_need() {
    let one = prompts(&LlmWorkload::default(), 1);
    let sent = messages(&body(&one, 1, 1));
    // (512 - 20) / 1.25, the salt before them.
    assert_eq!((sent.len(), word_count(&sent[0])), (1, 394 + 1));
    let json: Json = serde_json::from_str(&body(&one, 1, 1)).unwrap();
    assert_eq!((&json["max_tokens"], &json["min_tokens"]), (&128.into(), &128.into()));
}

#[test]
fn a_shared_system_prompt_is_the_same_for_those_that_have_it_and_new_at_each_point() {
    let salt = Salt::AfterPrefix;
    let workload = LlmWorkload { prefix_tokens: 100, prefixes: 3, salt, ..LlmWorkload::default() };
    let one = prompts(&workload, 1);
    let systems = |nonce: u64| -> BTreeSet<String> {
        (0..200).map(|index| messages(&body(&one, nonce, index)).swap_remove(0)).collect()
    };
    assert_eq!(systems(1).len(), 3);
    assert!(systems(1).is_disjoint(&systems(2)));
    let sent = messages(&body(&one, 1, 1));
    assert_eq!((word_count(&sent[0]), word_count(&sent[1])), (80 + 1, 314 + 1));

    let alone = prompts(&LlmWorkload { salt: Salt::First, ..workload }, 1);
    let systems = (0..200).map(|index| messages(&body(&alone, 1, index)).swap_remove(0));
    assert_eq!(systems.collect::<BTreeSet<_>>().len(), 200, "a salt before it shares nothing");
}

#[test]
fn a_conversation_grows_by_the_answers_and_the_next_questions() {
    for endpoint in [Endpoint::Chat, Endpoint::Completions] {
        let one = prompts(&LlmWorkload { endpoint, ..LlmWorkload::default() }, 1);
        let number = Number { nonce: 1, index: 4 };
        let (mut history, mut first, mut second) = (Vec::new(), Vec::new(), Vec::new());
        one.begin_history(number, &mut history);
        one.write_exchange(&history, number, &mut first);
        assert_eq!(String::from_utf8(first.clone()).unwrap(), body(&one, 1, 4));
        one.grow_history(b"so \\\"it\\\" is", Number { index: 5, ..number }, &mut history);
        one.write_exchange(&history, number, &mut second);
        let json: Json = serde_json::from_slice(&second).unwrap();
        let text = match endpoint {
            Endpoint::Chat => json["messages"][1]["content"].as_str().unwrap(),
            Endpoint::Completions => json["prompt"].as_str().unwrap().lines().nth(1).unwrap(),
        };
        assert_eq!(text, "so \"it\" is");
        if endpoint == Endpoint::Chat {
            let sent = messages(std::str::from_utf8(&second).unwrap());
            assert_eq!((sent.len(), word_count(&sent[2])), (3, 51), "64 tokens");
        }
    }
}

fn recorded(text: &str) -> Prompts {
    let trace = trace::read(&mut text.as_bytes(), "t").unwrap();
    with(&LlmWorkload::default(), 1, Source::Trace(Arc::new(trace)))
}

#[test]
fn prompts_of_a_trace_begin_alike_where_their_blocks_do() {
    let one = recorded(
        "{\"timestamp\":1,\"input_length\":1200,\"output_length\":7,\"hash_ids\":[4,5,6]}\n\
         {\"timestamp\":2,\"input_length\":1300,\"output_length\":8,\"hash_ids\":[4,5,7]}\n\
         {\"timestamp\":3,\"input_length\":300,\"output_length\":9,\"hash_ids\":[8]}\n",
    );
    let sent = |nonce, index| messages(&body(&one, nonce, index)).swap_remove(0);
    let alike = |a: &str, b: &str| {
        a.split_whitespace().zip(b.split_whitespace()).take_while(|(a, b)| a == b).count()
    };
    let (a, b, c) = (sent(1, 0), sent(1, 1), sent(1, 2));
    let of_two_blocks = 394 + 410;
    assert!((of_two_blocks..of_two_blocks + 4).contains(&alike(&a, &b)), "{}", alike(&a, &b));
    assert_eq!([word_count(&a), word_count(&b), word_count(&c)], [944, 1_024, 224]);
    assert!(alike(&a, &c) < 3 && alike(&a, &sent(2, 0)) < 3, "another point begins anew");
    assert!(alike(&a, &sent(1, 3)) < 3, "and so does the trace when it begins again");
    let tokens = (0..4).map(|index| one.output_tokens(index));
    assert_eq!(tokens.collect::<Vec<_>>(), [7, 8, 9, 7]);
}

#[test]
fn prompts_of_a_trace_without_blocks_share_nothing() {
    let one = recorded("Timestamp,Request tokens,Response tokens\n1,200,5\n2,200,5\n");
    let sent: BTreeSet<String> = (0..50).map(|i| body(&one, 1, i)[..60].to_owned()).collect();
    assert_eq!(sent.len(), 50);
}

#[test]
fn each_prompt_of_the_user_is_sent_once_before_any_comes_again() {
    let text: String = (0..30).map(|i| format!("{{\"prompt\": \"p{i}.\"}}\n")).collect();
    let own = UserPrompts::read(&text, "p", Endpoint::Chat, Salt::First).unwrap();
    let source = Source::File { prompts: Arc::new(own), output: Length::Fixed(11) };
    let one = with(&LlmWorkload::default(), 1, source);
    let pass = |first: u64| -> Vec<String> {
        (first..first + 30).map(|i| messages(&body(&one, 1, i))[0][17..].to_owned()).collect()
    };
    for first in [0, 30, 300] {
        assert_eq!(pass(first).into_iter().collect::<BTreeSet<_>>().len(), 30);
    }
    assert_ne!(pass(0), pass(30), "in another order");
    assert_eq!(one.output_tokens(3), 11);
}
