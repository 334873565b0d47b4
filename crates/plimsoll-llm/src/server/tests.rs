//! The server over real sockets.

use std::io::{BufRead as _, BufReader, Read, Write as _};
use std::net::TcpStream;
use std::thread::JoinHandle;
use std::time::Duration;

use plimsoll_model::units::Nanos;
use serde_json::Value;

use super::law::BatchSpec;
use super::*;

pub(super) fn config() -> LlmConfig {
    LlmConfig {
        listen: "127.0.0.1:0".parse().unwrap(),
        law: LawSpec::Batch(BatchSpec {
            slots: 8,
            prefill_tokens_per_s: 1e6,
            step: Nanos::from_millis(1),
            step_per_slot: Nanos::from_micros(10),
            chunk_tokens: 512,
            kv_tokens: 20_000,
            has_prefix_cache: true,
        }),
        model: "m".to_owned(),
        context_tokens: 10_000,
        ends_after_tokens: None,
        tokens_per_chunk: 1,
        reasoning_tokens: 0,
        usage: UsageStyle::Continuous,
        closes_after_stream: false,
        ping: None,
        api_key: None,
        log: None,
        cores: Vec::new(),
    }
}

/// A server that runs until it is dropped.
struct Running {
    address: SocketAddr,
    stop: Stop,
    thread: Option<JoinHandle<Option<String>>>,
}

impl Running {
    fn start(config: &LlmConfig) -> Self {
        let server = LlmServer::bind(config).unwrap();
        let (address, stop) = (server.address(), Stop::new());
        let stopped = stop.clone();
        let thread = std::thread::spawn(move || server.serve_until(&stopped).unwrap());
        Self { address, stop, thread: Some(thread) }
    }

    fn connect(&self) -> Client {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        Client(BufReader::new(stream))
    }

    /// Its report of its lateness.
    fn end(mut self) -> Option<String> {
        self.stop.request();
        self.thread.take().and_then(|thread| thread.join().unwrap())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.request();
    }
}

struct Client(BufReader<TcpStream>);

impl Client {
    fn send(&mut self, method: &str, path: &str, rest: &str) {
        let head = format!("{method} {path} HTTP/1.1\r\nhost: h\r\n{rest}");
        self.0.get_mut().write_all(head.as_bytes()).unwrap();
    }

    fn post(&mut self, path: &str, body: &str) {
        self.send("POST", path, &format!("content-length: {}\r\n\r\n{body}", body.len()));
    }

    /// Head and body of a reply.
    fn reply(&mut self) -> (String, String) {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            assert!(self.0.read_line(&mut head).unwrap() > 0, "it ended after {head:?}");
        }
        let mut body = String::new();
        match head.split("content-length: ").nth(1) {
            Some(length) => {
                let length = length.lines().next().unwrap().parse().unwrap();
                self.0.by_ref().take(length).read_to_string(&mut body).unwrap();
            }
            None => while self.chunk(&mut body) {},
        }
        (head, body)
    }

    /// Reads a chunk; is it not the last?
    fn chunk(&mut self, body: &mut String) -> bool {
        let mut line = String::new();
        self.0.read_line(&mut line).unwrap();
        let length = u64::from_str_radix(line.trim(), 16).unwrap();
        self.0.by_ref().take(length).read_to_string(body).unwrap();
        self.0.read_line(&mut line).unwrap();
        length > 0
    }

    fn get(&mut self, path: &str) -> String {
        self.send("GET", path, "\r\n");
        self.reply().1
    }
}

const CHAT: &str = "/v1/chat/completions";
const STREAM: &str = r#""stream":true,"stream_options":{"include_usage":true}"#;

fn chat(word_count: usize, rest: &str) -> String {
    let text = "word ".repeat(word_count);
    format!(r#"{{"messages":[{{"role":"user","content":"{text}"}}],{rest}}}"#)
}

/// The events of a stream, up to `[DONE]`.
fn events(body: &str) -> Vec<Value> {
    let mut data: Vec<&str> = body.lines().filter_map(|line| line.strip_prefix("data: ")).collect();
    assert_eq!(data.pop(), Some("[DONE]"), "{body}");
    data.into_iter().map(|json| serde_json::from_str(json).unwrap()).collect()
}

fn text_of(events: &[Value], key: &str) -> String {
    let texts = events.iter().filter_map(|it| it.pointer(&format!("/choices/0/delta/{key}")));
    texts.filter_map(Value::as_str).collect()
}

fn metric(text: &str, name: &str) -> f64 {
    let line = text.lines().find(|line| line.starts_with(name)).unwrap();
    line.rsplit(' ').next().unwrap().parse().unwrap()
}

#[test]
fn an_answer_is_the_same_as_a_stream_and_in_one() {
    let server = Running::start(&config());
    let mut client = server.connect();
    client.post(CHAT, &chat(20, &format!(r#""max_tokens":9,{STREAM}"#)));
    let (head, body) = client.reply();
    assert!(head.contains("text/event-stream"), "{head}");
    let events = events(&body);
    // The role, nine tokens, the end, the usage.
    assert_eq!(events.len(), 12);
    assert_eq!(events[10].pointer("/choices/0/finish_reason"), Some(&"length".into()));
    let usage = events[11].get("usage").unwrap();
    assert_eq!((&usage["prompt_tokens"], &usage["completion_tokens"]), (&24.into(), &9.into()));
    client.post(CHAT, &chat(20, r#""max_tokens":9"#));
    let whole: Value = serde_json::from_str(&client.reply().1).unwrap();
    let content = whole.pointer("/choices/0/message/content").unwrap();
    assert_eq!(content.as_str().unwrap(), text_of(&events, "content"));
    assert_eq!(content.as_str().unwrap().split(' ').count(), 9);
    // The second time a block of 16 of its 24 tokens was cached.
    assert_eq!(whole.pointer("/usage/prompt_tokens_details/cached_tokens"), Some(&16.into()));
    let metrics = client.get("/metrics");
    assert_eq!(metric(&metrics, "vllm:generation_tokens_total{model_name=\"m\"}"), 18.0);
    assert_eq!(metric(&metrics, "vllm:prompt_tokens_total{"), 48.0);
    assert_eq!(metric(&metrics, "vllm:prefix_cache_hits_total{"), 16.0);
    assert!(server.end().unwrap().contains("handed to the kernel"));
}

#[test]
fn tokens_come_several_in_a_chunk_and_reasoning_first_where_that_is_wanted() {
    let server =
        Running::start(&LlmConfig { tokens_per_chunk: 4, reasoning_tokens: 6, ..config() });
    let mut client = server.connect();
    client.post(CHAT, &chat(3, r#""max_tokens":11,"stream":true"#));
    let events = events(&client.reply().1);
    let word_count = |event: &Value, key: &str| {
        let text = event.pointer(&format!("/choices/0/delta/{key}")).and_then(Value::as_str);
        text.map(|text| text.split_whitespace().count())
    };
    let reasoning: Vec<_> =
        events.iter().filter_map(|it| word_count(it, "reasoning_content")).collect();
    assert_eq!(reasoning, [4, 2]);
    // The first is the role's.
    let content: Vec<_> = events.iter().filter_map(|it| word_count(it, "content")).collect();
    assert_eq!(content, [0, 4, 1]);
    assert!(events.iter().all(|event| event.get("usage").is_none()), "nobody asked for it");
}

#[test]
fn many_streams_at_once_all_come_to_their_end_and_the_log_has_each() {
    let temp_dir = tempfile::tempdir().unwrap();
    let log = temp_dir.path().join("log.csv");
    let server = Running::start(&LlmConfig { log: Some(log.clone()), ..config() });
    let mut clients: Vec<Client> = (0..40).map(|_| server.connect()).collect();
    let body = chat(10, &format!(r#""max_tokens":7,{STREAM}"#));
    clients.iter_mut().for_each(|client| client.post(CHAT, &body));
    for client in &mut clients {
        assert_eq!(text_of(&events(&client.reply().1), "content").split(' ').count(), 7);
    }
    server.end();
    let text = std::fs::read_to_string(log).unwrap();
    let rows: Vec<Vec<&str>> = text
        .lines()
        .filter(|line| line.starts_with(|c: char| c.is_ascii_digit()))
        .map(|line| line.split(',').collect())
        .collect();
    assert_eq!(rows.len(), 40);
    for row in rows {
        let ns = |column: usize| row[column].parse::<u64>().unwrap();
        assert!(ns(1) < ns(2) && ns(2) <= ns(3) && ns(3) <= ns(5) && ns(4) <= ns(5), "{row:?}");
        assert_eq!(row[8..], ["7", "7", "whole"]);
    }
}

#[test]
fn a_stream_may_end_the_connection_although_it_was_to_be_kept() {
    let server = Running::start(&LlmConfig { closes_after_stream: true, ..config() });
    let mut client = server.connect();
    client.post(CHAT, &chat(1, r#""max_tokens":2"#));
    client.reply();
    client.post(CHAT, &chat(1, r#""max_tokens":2,"stream":true"#));
    let (head, _) = client.reply();
    assert!(head.contains("keep-alive:") && !head.contains("close"), "{head}");
    assert_eq!(client.0.read(&mut [0; 8]).unwrap(), 0);
}

#[test]
fn a_silent_stream_has_comments() {
    let law = LawSpec::Alone(First::After(Nanos::from_millis(300)), Nanos::from_millis(1));
    let ping = Some(Nanos::from_millis(50));
    let server = Running::start(&LlmConfig { law, ping, ..config() });
    let mut client = server.connect();
    client.post(CHAT, &chat(1, r#""max_tokens":2,"stream":true"#));
    let (_, body) = client.reply();
    assert!(body.starts_with(": ping\n\n: ping\n\n"), "{body}");
    assert_eq!(events(&body).len(), 4);
}

#[test]
fn what_is_not_served_is_refused_and_the_connection_goes_on() {
    let server = Running::start(&LlmConfig { api_key: Some("k".into()), ..config() });
    let mut client = server.connect();
    client.post(CHAT, "{}");
    assert!(client.reply().0.starts_with("HTTP/1.1 401 "));
    let with_key = |body: &str| {
        format!("authorization: Bearer k\r\ncontent-length: {}\r\n\r\n{body}", body.len())
    };
    let mut refused = |body: &str, status: &str| {
        client.send("POST", CHAT, &with_key(body));
        let (head, body) = client.reply();
        assert!(head.starts_with(&format!("HTTP/1.1 {status} ")), "{head}");
        serde_json::from_str::<Value>(&body).unwrap()["error"]["message"].clone()
    };
    let long = refused(&chat(9_990, r#""max_tokens":9"#), "400");
    assert!(long.as_str().unwrap().contains("maximum context length"), "{long}");
    refused(&chat(1, r#""model":"other""#), "404");
    refused("{", "400");
    assert_eq!(client.get("/health"), "");
    let version: Value = serde_json::from_str(&client.get("/version")).unwrap();
    assert_eq!(version["version"], env!("CARGO_PKG_VERSION"));
    assert!(client.get("/nowhere").contains("Not Found"));
}

#[test]
fn requests_that_come_together_are_answered_in_turn_and_who_leaves_frees_the_slot() {
    let server = Running::start(&config());
    let mut client = server.connect();
    let body = chat(1, r#""max_tokens":2"#);
    let one = format!("POST {CHAT} HTTP/1.1\r\ncontent-length: {}\r\n\r\n{body}", body.len());
    let all = format!("{one}GET /health HTTP/1.1\r\n\r\n{one}");
    client.0.get_mut().write_all(all.as_bytes()).unwrap();
    let bodies = [client.reply().1, client.reply().1, client.reply().1];
    assert!(bodies[0].contains("chatcmpl-1") && bodies[1].is_empty());
    assert!(bodies[2].contains("chatcmpl-2"), "{bodies:?}");
    let mut leaving = server.connect();
    leaving.post(CHAT, &chat(1, r#""max_tokens":9000,"stream":true"#));
    let mut line = String::new();
    leaving.0.read_line(&mut line).unwrap();
    drop(leaving);
    let is_idle = || metric(&server.connect().get("/metrics"), "vllm:num_requests_running{") == 0.0;
    assert!((0..400).any(|_| {
        std::thread::sleep(Duration::from_millis(5));
        is_idle()
    }));
}
