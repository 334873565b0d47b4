use super::*;
use crate::offers::Offers;
use crate::parameters::LlmWorkload;
use crate::prompts::body::Frame;
use crate::prompts::word_sequence::{Fit, WordSequence};
use crate::prompts::{Made, Source};

fn requests(exchanges: u32) -> WorkerRequests {
    let workload = LlmWorkload { turns: exchanges, ..LlmWorkload::default() };
    let frame = Frame::new("m", workload.endpoint, Offers::ALL, &workload.extra);
    let source = Source::Made(Made::new(&workload, Fit::UNKNOWN));
    let word_source = (1, Arc::new(WordSequence::new(1)));
    let prompts = Prompts::new(word_source, frame, Fit::UNKNOWN, workload.salt, source);
    WorkerRequests::new(Arc::new(prompts), 7, exchanges)
}

fn messages(requests: &WorkerRequests, op: HttpOp) -> Vec<String> {
    let mut body = Vec::new();
    requests.write(op.key, &mut body);
    let json: serde_json::Value = serde_json::from_slice(&body).unwrap();
    let all = json["messages"].as_array().unwrap();
    all.iter().map(|one| one["content"].as_str().unwrap().to_owned()).collect()
}

fn answer(requests: &WorkerRequests, op: HttpOp, text: &str) {
    requests.answered(op.key, text.to_owned());
}

#[test]
fn a_conversation_grows_until_it_has_all_its_turns_and_then_begins_anew() {
    let requests = requests(2);
    let (ann, ben) = (requests.add_client(), requests.add_client());
    let first = requests.op(ann, 0);
    let of_ben = messages(&requests, requests.op(ben, 1));
    let begun = messages(&requests, first);
    assert_eq!(begun.len(), 1);
    assert_ne!(begun, of_ben);
    answer(&requests, first, "so \"it\" is\n");
    let second = requests.op(ann, 2);
    let grown = messages(&requests, second);
    assert_eq!((grown.len(), &grown[..1], &*grown[1]), (3, &begun[..], "so \"it\" is\n"));
    assert_eq!(messages(&requests, second), grown, "sent again it is the same");
    answer(&requests, second, "yes");
    let anew = messages(&requests, requests.op(ann, 4));
    assert!(anew.len() == 1 && anew != begun);
}

#[test]
fn a_question_that_was_not_answered_ends_its_conversation() {
    let requests = requests(3);
    let slot = requests.add_client();
    let begun = messages(&requests, requests.op(slot, 0));
    let anew = messages(&requests, requests.op(slot, 1));
    assert!(anew.len() == 1 && anew != begun);
}

#[test]
fn without_conversations_a_request_is_its_number() {
    let requests = requests(1);
    let slot = requests.add_client();
    assert_eq!(requests.op(slot, 9).key, 9);
    assert_eq!(requests.tokens_requested(9), Some(128));
    assert!(!requests.keeps_texts());
    answer(&requests, requests.op(slot, 9), "ignored");
}
