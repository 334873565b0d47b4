//! llama.cpp's own server, as `managed:llama` starts it, with its model of random weights.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use plimsoll_llm::server::llama::{self, LlamaRequest};
use plimsoll_servers::programs::LOOPBACK;
use plimsoll_testkit::peers::llama_python;
use serde_json::Value;

/// A whole reply, read until the server closes.
fn ask(address: SocketAddr, request: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    let length = body.len();
    let head = format!("{request} HTTP/1.1\r\nhost: h\r\nconnection: close\r\n");
    let head = format!("{head}content-type: application/json\r\ncontent-length: {length}\r\n\r\n");
    stream.write_all((head + body).as_bytes()).unwrap();
    let mut reply = String::new();
    stream.read_to_string(&mut reply).unwrap();
    reply
}

#[test]
fn a_real_server_answers_with_a_model_made_here() {
    let Some(python) = llama_python() else { return };
    let request = LlamaRequest {
        listen_on: LOOPBACK,
        cores: Vec::new(),
        model: None,
        python: Some(python),
        arguments: Vec::new(),
        search: None,
    };
    let server = llama::start(&request).unwrap();
    assert!(server.software.to_string().starts_with("llama.cpp of xllamacpp "));
    let models = ask(server.address, "GET /v1/models", "");
    assert!(models.contains("\"owned_by\""), "{models}");
    let body = r#"{"stream":true,"stream_options":{"include_usage":true},"max_tokens":6,
        "messages":[{"role":"user","content":"baba bade"}]}"#;
    let reply = ask(server.address, "POST /v1/chat/completions", body);
    let events: Vec<Value> = reply
        .lines()
        .filter_map(|line| line.strip_prefix("data: {"))
        .map(|rest| serde_json::from_str(&format!("{{{rest}")).unwrap())
        .collect();
    let contents = events.iter().filter_map(|event| event.pointer("/choices/0/delta/content"));
    assert_eq!(
        contents.filter(|text| text.as_str().is_some_and(|text| !text.is_empty())).count(),
        6
    );
    let usage = events.iter().find_map(|event| event.get("usage").filter(|it| it.is_object()));
    assert_eq!(usage.unwrap()["completion_tokens"], 6, "{reply}");
    assert!(reply.contains("data: [DONE]"));
    server.stop().unwrap();
}
