//! The reference web server over HTTP/2, checked with curl, and with bytes that are none.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use plimsoll_http::h2::frame::{PREFACE, write, write_settings};
use plimsoll_http::server::{TlsSource, WebConfig, WebServer};
use plimsoll_servers::delay::DelayLaw;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng as _, SeedableRng as _};

use crate::web::{Running, memory};

const VERSION: [&str; 2] = ["--write-out", "%{http_version}"];
const PRIOR: &str = "--http2-prior-knowledge";

#[test]
fn the_preface_and_alpn_choose_http2_and_everybody_else_gets_http1() {
    let plain = Running::start(memory(), None, vec![]);
    let secure = Running::start(memory(), Some(TlsSource::SelfSigned), vec![]);
    for (server, version, expected) in [
        (&plain, PRIOR, "the content2"),
        (&plain, "--http2", "the content1.1"),
        (&plain, "--http1.1", "the content1.1"),
        (&secure, "--http2", "the content2"),
        (&secure, "--http1.1", "the content1.1"),
    ] {
        let arguments = [&["--insecure", version][..], &VERSION].concat();
        let Some(reply) = server.curl(&arguments, "dir/file") else { return };
        assert_eq!(String::from_utf8_lossy(&reply.output), expected, "{version}");
    }
}

/// 3 MiB are many times the windows of a stream and of the connection.
#[test]
fn a_body_larger_than_all_windows_arrives_whole_and_a_head_alone() {
    let server = Running::start(memory(), None, vec![]);
    let Some(large) = server.curl(&[PRIOR], "large") else { return };
    assert!(large.output == vec![7; 3 << 20]);
    let head = server.curl(&[PRIOR, "--head"], "dir/file").unwrap();
    let text = String::from_utf8_lossy(&head.output).to_lowercase();
    assert!(head.exit == 0 && text.contains("\r\ncontent-length: 11\r\n"), "{text}");
    let body = "x".repeat(100_000);
    let post = server.curl(&[PRIOR, "--data", &body], "dir/file").unwrap();
    assert_eq!(post.output, b"the content");
}

/// Rows of a log: arrival, completion, sent.
fn rows(text: &str) -> Vec<[u64; 3]> {
    let rows = text.lines().filter(|line| line.starts_with(|c: char| c.is_ascii_digit()));
    rows.map(|row| {
        let mut numbers = row.split(',').flat_map(str::parse);
        std::array::from_fn(|_| numbers.next().unwrap())
    })
    .collect()
}

#[test]
fn streams_of_one_connection_leave_each_at_its_instant_the_head_before() {
    const SERVICE_NS: u64 = 60_000_000;
    for tls in [None, Some(TlsSource::SelfSigned)] {
        let temp_dir = tempfile::tempdir().unwrap();
        let log = temp_dir.path().join("log.csv");
        let law = DelayLaw::new("service=const:60ms,servers=1".parse().unwrap(), Some(log.clone()));
        let law = law.unwrap();
        let listen = "127.0.0.1:0".parse().unwrap();
        let config = WebConfig { listen, content: memory(), cores: vec![], tls };
        let server = WebServer::bind(&config).unwrap().delayed_by(Arc::clone(&law));
        let server = Running::serve(server);
        let times = "%{time_starttransfer} %{time_total}\n";
        // Some versions of curl use a connection for a second request only over TLS.
        let (version, path, count): (&[&str], _, _) = match server.url.starts_with("https") {
            true => (&["--http2", "--insecure", "--parallel"], "bytes/0?[1-4]", 4),
            false => (&[PRIOR], "bytes/9", 1),
        };
        let arguments = [version, &["--output", "/dev/null", "--write-out", times]].concat();
        let Some(reply) = server.curl(&arguments, path) else { return };
        drop(server);
        law.write_log().unwrap();
        let text = std::fs::read_to_string(&log).unwrap();
        let rows = rows(&text);
        assert_eq!(rows.len(), count, "{text}");
        for [arrival_ns, completion_ns, sent_ns] in &rows {
            assert!(completion_ns - arrival_ns >= SERVICE_NS && sent_ns >= completion_ns, "{text}");
        }
        // Heads do not wait.
        let replies = String::from_utf8(reply.output).unwrap();
        let body_after_head_s = replies.lines().map(|line| {
            let mut numbers = line.split(' ').flat_map(str::parse::<f64>);
            let head_s = numbers.next().unwrap();
            numbers.next().unwrap() - head_s
        });
        let longest_s = body_after_head_s.fold(0.0, f64::max);
        assert!(longest_s * 1e9 > 0.5 * SERVICE_NS as f64, "{replies}");
    }
}

#[test]
fn bytes_that_are_no_http2_end_their_connection_alone() {
    let server = Running::start(memory(), None, vec![]);
    let address = server.url.trim_start_matches("http://").trim_end_matches('/').to_owned();
    let mut random = Xoshiro256PlusPlus::seed_from_u64(7);
    for _ in 0..200 {
        let mut bytes = PREFACE.to_vec();
        if random.next_u32() % 4 == 0 {
            bytes.truncate(random.next_u32() as usize % PREFACE.len());
        } else {
            write_settings(&[], &mut bytes);
        }
        for _ in 0..random.next_u32() % 8 {
            let mut payload = vec![0; random.next_u32() as usize % 64];
            random.fill_bytes(&mut payload);
            let (kind, flags) = (random.next_u32() % 11, random.next_u32());
            write(kind as u8, flags as u8, random.next_u32() % 8, &payload, &mut bytes);
        }
        let mut stream = TcpStream::connect(&address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        // The server may have closed the connection already.
        let _ = stream.write_all(&bytes).and_then(|()| stream.shutdown(Shutdown::Write));
        let _ = stream.read_to_end(&mut Vec::new());
    }
    let Some(reply) = server.curl(&[PRIOR], "dir/file") else { return };
    assert_eq!(reply.output, b"the content");
}
