//! The server's own figures, by request and over HTTP, checked with curl.

use std::collections::HashSet;
use std::net::SocketAddr;

use plimsoll_app::server::{AppConfig, AppServer};
use plimsoll_app::wire::{RequestHeader, RequestType};
use plimsoll_servers::ServerError;
use plimsoll_testkit::peers::curl;

use crate::support::{Running, config, request, serve};

fn with_metrics() -> Running {
    serve(&AppConfig { metrics: Some(SocketAddr::from(([127, 0, 0, 1], 0))), ..config() })
}

/// Prometheus' text format 0.0.4: every sample belongs to the family announced last, and is a
/// number.
fn check_exposition(text: &str) {
    let (mut family, mut samples) = (String::new(), HashSet::new());
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').unwrap();
            assert!(["counter", "gauge"].contains(&kind), "{line}");
            assert_eq!(kind == "counter", name.ends_with("_total"), "{line}");
            family = name.to_owned();
            continue;
        }
        if line.starts_with("# HELP ") {
            continue;
        }
        let (name, value) = line.rsplit_once(' ').unwrap();
        assert_eq!(name.split('{').next().unwrap(), family, "{line}");
        assert!(value.parse::<f64>().unwrap() >= 0.0, "{line}");
        assert!(samples.insert(name.to_owned()), "{line} comes twice");
    }
    assert!(text.ends_with('\n') && samples.len() > 30, "{text}");
}

#[test]
fn the_figures_count_what_was_done() {
    let server = serve(&config());
    let mut client = server.client(1, 65_536);
    for _ in 0..3 {
        client.ask(request(RequestType::Write), &[7; 1_000]);
    }
    client.ask(RequestHeader { size: 500, ..request(RequestType::Read) }, b"");
    client.ask(RequestHeader { offset: 1 << 40, ..request(RequestType::Write) }, b"x");
    check_exposition(&client.status());
    for (name, value) in [
        ("requests_total{type=\"write\",status=\"ok\"}", 3.0),
        ("requests_total{type=\"write\",status=\"out_of_range\"}", 1.0),
        ("requests_total{type=\"read\",status=\"ok\"}", 1.0),
        ("segment_written_bytes_total", 3_000.0),
        ("segment_read_bytes_total", 500.0),
        ("fdatasyncs_total", 0.0),
        ("segments", 1.0),
        ("queue_length", 0.0),
    ] {
        assert_eq!(server.metric(name), value, "{name}");
    }
    assert!(server.metric("service_seconds_total{type=\"write\"}") > 0.0);
    assert!(server.metric("received_bytes_total") > 3_000.0);
    assert!(server.metric("threads") > 47.0);
}

#[test]
fn curl_reads_the_same_over_http() {
    let server = with_metrics();
    let url = server.metrics_url.clone().unwrap();
    server.client(1, 0).ask(request(RequestType::ServerClient), b"");
    let Some(reply) = curl(&["--include", &url]) else { return };
    let text = String::from_utf8(reply.output).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200 OK"), "{head}");
    assert!(head.to_lowercase().contains("content-type: text/plain; version=0.0.4"), "{head}");
    check_exposition(body);
    let line = "plimsoll_app_requests_total{type=\"server_client\",status=\"ok\"} 1";
    assert!(body.lines().any(|candidate| candidate == line), "{body}");
    let code = |arguments: &[&str]| {
        let out = ["--output", "/dev/null", "--write-out", "%{http_code}"];
        String::from_utf8(curl(&[&out[..], arguments].concat()).unwrap().output).unwrap()
    };
    assert_eq!(code(&["--head", &url]), "200");
    assert_eq!(code(&["--data", "x", &url]), "405");
    assert_eq!(code(&[&url.replace("/metrics", "/")]), "404");
}

#[test]
fn an_address_for_metrics_that_is_taken_is_named() {
    let server = with_metrics();
    let taken = server.metrics_url.clone().unwrap();
    let address: SocketAddr =
        taken["http://".len()..].trim_end_matches("/metrics").parse().unwrap();
    let error = AppServer::bind(&AppConfig { metrics: Some(address), ..config() }).unwrap_err();
    assert!(error.to_string().starts_with("cannot serve metrics on "), "{error}");
    let error = AppServer::bind(&AppConfig { listen: server.address, ..config() }).unwrap_err();
    assert!(matches!(error, ServerError::Listen { .. }), "{error}");
}
