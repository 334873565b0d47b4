use std::io::{Read as _, Write as _};

use super::*;

/// A collector that listens and never answers.
fn silent() -> (std::net::TcpListener, ExportUrl) {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let flag = format!("otlp=http://127.0.0.1:{port}/v1/metrics");
    (listener, ExportUrl::parse_all(&[flag]).unwrap().remove(0))
}

#[test]
fn a_collector_that_hangs_neither_holds_up_nor_fills_memory_and_is_told_once() {
    let (_listener, url) = silent();
    let mut delivery = Delivery::start(url, Vec::new()).unwrap();
    let began = crate::clock::Stopwatch::start();
    for _ in 0..100 {
        delivery.offer(Kind::Point, vec![0; 1_000]);
        delivery.offer(Kind::Second, vec![0; 1_000]);
    }
    assert!(began.elapsed() < Duration::from_secs(1));
    let problem = delivery.end().unwrap();
    assert!(began.elapsed() < END_WAIT + Duration::from_secs(2));
    let all = "100 of 100 load points and 100 of 100 seconds were not delivered: no answer";
    assert!(problem.starts_with(all), "{problem}");
}

#[test]
fn a_message_that_no_collector_takes_is_not_sent() {
    let (listener, url) = silent();
    let mut delivery = Delivery::start(url, Vec::new()).unwrap();
    delivery.offer(Kind::Point, vec![0; MESSAGE_BYTES_MAX + 1]);
    let problem = delivery.end().unwrap();
    assert!(problem.starts_with("1 of 1 load points were not delivered: it has"), "{problem}");
    listener.set_nonblocking(true).unwrap();
    assert!(listener.accept().is_err());
}

#[test]
fn load_points_go_before_seconds() {
    let (listener, url) = silent();
    let mut delivery = Delivery::start(url, Vec::new()).unwrap();
    let answer = |stream: &mut std::net::TcpStream| {
        stream.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").unwrap();
    };
    delivery.offer(Kind::Second, b"1".to_vec());
    let (mut first, body) = next_of(&listener);
    assert_eq!(body, b'1');
    // It is being delivered: later messages wait.
    delivery.offer(Kind::Second, b"2".to_vec());
    delivery.offer(Kind::Point, b"3".to_vec());
    answer(&mut first);
    for expected in [b'3', b'2'] {
        let (mut stream, body) = next_of(&listener);
        assert_eq!(char::from(body), char::from(expected));
        answer(&mut stream);
    }
    assert_eq!(delivery.end(), None);
}

/// The next request, whose body is one byte.
fn next_of(listener: &std::net::TcpListener) -> (std::net::TcpStream, u8) {
    let (mut stream, _) = listener.accept().unwrap();
    let mut request = Vec::new();
    while request.len() < 5 || !request[..request.len() - 1].ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).unwrap();
        request.push(byte[0]);
    }
    (stream, request[request.len() - 1])
}

#[test]
fn nothing_to_deliver_is_nothing_to_tell() {
    let (_listener, url) = silent();
    assert_eq!(Delivery::start(url, Vec::new()).unwrap().end(), None);
}
