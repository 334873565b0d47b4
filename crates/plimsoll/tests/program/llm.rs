//! Language model suites for their users: the requests to a server before and under load, and
//! messages of invalid command lines.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::Value;

use plimsoll_testkit::llm_server::{Act, ReceivedRequest, Staged, answer, plain};
use plimsoll_testkit::program::{plimsoll, short};

/// A server that counts two tokens a word and 20 more, and answers in three chunks.
fn server() -> Staged {
    Staged::new(|request| {
        if json(request)["stream"] == true {
            return answer(Duration::from_millis(5), Duration::from_millis(1), 3);
        }
        let word_count: usize =
            contents(request).iter().map(|text| text.split(' ').count() - 1).sum();
        let usage = format!("{{\"usage\":{{\"prompt_tokens\":{}}}}}", 20 + 2 * word_count);
        vec![plain("200 OK", &usage)]
    })
}

fn json(request: &ReceivedRequest) -> Value {
    serde_json::from_str(&request.body).unwrap()
}

fn contents(request: &ReceivedRequest) -> Vec<String> {
    let json = json(request);
    let messages = json["messages"].as_array().unwrap().iter();
    messages.map(|message| message["content"].as_str().unwrap().to_owned()).collect()
}

/// Streaming requests, the first of which is the one before any load.
fn streamed(server: &Staged) -> Vec<ReceivedRequest> {
    let all = server.log().requests.clone();
    all.into_iter().filter(|request| json(request)["stream"] == true).skip(1).collect()
}

/// A run that ends; returns its disclosure.
fn run(suite: &str, server: &Staged, more: &[&str]) -> String {
    let temp_dir = tempfile::tempdir().unwrap();
    let bundle = temp_dir.path().join("b");
    let ended = plimsoll(&short(suite, &server.url, &bundle, more));
    assert!(bundle.join("result.json").exists(), "{ended:?}");
    std::fs::read_to_string(bundle.join("disclosure.json")).unwrap()
}

#[test]
fn agents_ask_nothing_before_the_load_and_no_prompt_begins_like_another() {
    let server = server();
    let temp_dir = tempfile::tempdir().unwrap();
    let more = ["--points", "2,6", "--input-tokens", "64", "--output-tokens", "3"];
    let bundle = temp_dir.path().join("b");
    let arguments = short("llm-chat", &server.url, &bundle, &more);
    // A worker for each of two agents.
    let arguments = arguments.iter().map(|text| if *text == "1" { "2" } else { *text });
    let ended = plimsoll(&arguments.chain(["--agents", "local,local"]).collect::<Vec<_>>());
    assert!(bundle.join("result.json").exists(), "{ended:?}");
    let probes = server.log().requests.iter().filter(|one| json(one)["stream"] == false).count();
    assert_eq!(probes, 5, "of the controller alone");
    let requests = streamed(&server);
    let begins: BTreeSet<String> =
        requests.iter().map(|one| contents(one)[0][..16].into()).collect();
    assert!(requests.len() > 20 && begins.len() == requests.len(), "{}", requests.len());
    for one in &requests {
        assert_eq!(contents(one)[0].split(' ').count(), 1 + (64 - 20) / 2, "{}", one.body);
        assert_eq!(json(one)["max_tokens"], 3);
    }
}

#[test]
fn a_conversation_is_sent_with_the_servers_own_answers() {
    let server = server();
    let conversation = ["--points", "2", "--output-tokens", "3", "--set", "workload.turns=3"];
    let pauses = ["--set", "load.think.mean=0s", "--set", "load.start_delay=0s"];
    run("llm-conversation", &server, &[&conversation[..], &pauses].concat());
    let requests = streamed(&server);
    let third = requests.iter().map(contents).find(|messages| messages.len() == 5).unwrap();
    assert_eq!([&*third[1], &*third[3]], [" word word word"; 2]);
    let first = requests
        .iter()
        .map(contents)
        .find(|messages| messages.len() == 1 && messages[0] == third[0]);
    assert!(first.is_some(), "it began with its first question");
    assert!(requests.iter().all(|one| contents(one).len() <= 5));
}

#[test]
fn a_recorded_load_is_sent_as_it_is_in_its_file() {
    let temp_dir = tempfile::tempdir().unwrap();
    let file = temp_dir.path().join("trace.jsonl");
    let row = |at: u32, tokens: u32| {
        format!("{{\"timestamp\":{at},\"input_length\":60,\"output_length\":{tokens}}}\n")
    };
    let rows = [row(1_000, 7), row(1_100, 8), row(1_300, 9), row(9_000, 1)];
    std::fs::write(&file, rows.concat()).unwrap();
    let server = server();
    let trace = ["--trace", file.to_str().unwrap(), "--speed", "2", "--for", "300ms"];
    run("llm-trace", &server, &trace);
    let mut tokens: Vec<u64> =
        streamed(&server).iter().map(|one| json(one)["max_tokens"].as_u64().unwrap()).collect();
    tokens.sort_unstable();
    assert_eq!(tokens, [7, 8, 9], "the last is due after the end");
    let nothing = plimsoll(&["run", "llm-trace", &server.url, "--no-check"]);
    nothing.check(2, &["write --trace FILE"]);
    std::fs::write(&file, [&rows[..2], &["{}\n".to_owned()]].concat().concat()).unwrap();
    let wrong = plimsoll(&["run", "llm-trace", &server.url, "--trace", file.to_str().unwrap()]);
    wrong.check(2, &["trace.jsonl:3: missing field"]);
}

#[test]
fn prompts_of_a_file_are_each_sent_with_their_own_bound() {
    let temp_dir = tempfile::tempdir().unwrap();
    let file = temp_dir.path().join("mine.jsonl");
    std::fs::write(&file, "{\"prompt\": \"why\"}\n{\"prompt\": \"how\", \"max_tokens\": 2}\n")
        .unwrap();
    let server = server();
    let prompts = ["--prompts", file.to_str().unwrap(), "--output-tokens", "3", "--clients", "2"];
    run("llm-chat", &server, &prompts);
    let sent: BTreeSet<(String, u64)> = streamed(&server)
        .iter()
        .map(|one| (contents(one)[0][17..].to_owned(), json(one)["max_tokens"].as_u64().unwrap()))
        .collect();
    let expected = [("how", 2), ("why", 3)].map(|(text, tokens)| (text.to_owned(), tokens));
    assert_eq!(sent, BTreeSet::from(expected));
}

#[test]
fn fields_that_a_server_refuses_are_left_out_and_the_disclosure_says_so() {
    let server = Staged::new(|request| {
        let refusal = "{\"error\":{\"message\":\"Unrecognized request argument: ignore_eos\"}}";
        match request.body.contains("ignore_eos") {
            true => vec![plain("400 Bad Request", refusal), Act::Close],
            false => answer(Duration::ZERO, Duration::from_millis(1), 3),
        }
    });
    let disclosure = run("llm-chat", &server, &["--clients", "1"]);
    assert!(disclosure.contains("fields that the server refuses"), "{disclosure}");
    let refused =
        server.log().requests.iter().filter(|one| one.body.contains("ignore_eos")).count();
    assert_eq!(refused, 1);
}

#[test]
fn command_lines_that_cannot_be_are_answered_with_what_can() {
    for (flags, message) in [
        ("llm-chat --hold 4", "--hold belongs to suite web-url"),
        ("llm-chat --data a=1", "write --input-tokens and --output-tokens, --prompts FILE"),
        ("llm-chat -n 10", "write --clients N or --rate N beside it"),
        ("llm-chat --api-key sk-c0ffee", "write env:VARIABLE or @FILE"),
        ("llm-chat --api-key env:NO_SUCH_KEY", "NO_SUCH_KEY is not set"),
        ("llm-chat --input-tokens many", "not a number of tokens from 1"),
        ("llm-chat --trace /nowhere", "a load file belongs to"),
        ("web-url --model m", "--model belongs to language model suites"),
        ("web-static --prompts p", "--prompts belongs to language model suites"),
        ("llm-chat --max-concurrency 3", "write --clients N"),
    ] {
        let (suite, flags) = flags.split_once(' ').unwrap_or((flags, ""));
        let mut typed = vec!["run", suite, "http://127.0.0.1:9"];
        typed.extend(flags.split(' ').filter(|flag| !flag.is_empty()));
        let ended = plimsoll(&typed);
        ended.check(2, &[message]);
        assert!(!ended.err.contains("c0ffee"), "{ended:?}");
    }
}
