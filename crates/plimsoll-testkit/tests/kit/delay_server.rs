//! The delay server imposes the given delays and reports them.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use plimsoll_testkit::clock::monotonic_ns;
use plimsoll_testkit::delay_server::{DelayConfig, DelayServer, Waiting, after, one_at_a_time};

const BODY_BYTES: usize = 100;

fn server(completion: Box<plimsoll_testkit::delay_server::CompletionLaw>) -> DelayServer {
    DelayServer::start(DelayConfig {
        completion,
        body_bytes: BODY_BYTES,
        waiting: Waiting::Sleeping,
    })
}

fn request(stream: &mut TcpStream) {
    stream.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
}

fn reply(stream: &mut TcpStream) {
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {BODY_BYTES}\r\n\r\n");
    let mut bytes = vec![0; head.len() + BODY_BYTES];
    stream.read_exact(&mut bytes).unwrap();
    assert!(bytes.starts_with(head.as_bytes()));
}

#[test]
fn replies_leave_after_the_delay_of_their_request_on_one_connection() {
    let server = server(after(|index| Duration::from_millis(4 + index % 3)));
    let mut stream = TcpStream::connect(server.address()).unwrap();
    for _ in 0..6 {
        request(&mut stream);
        reply(&mut stream);
    }
    let exchanges = server.exchanges();
    assert_eq!(exchanges.len(), 6);
    for (index, exchange) in (0..).zip(&exchanges) {
        let planned = Duration::from_nanos(exchange.planned_ns - exchange.arrival_ns);
        assert_eq!(planned, Duration::from_millis(4 + index % 3));
        assert!(exchange.sent_ns >= exchange.planned_ns);
        assert!(exchange.imposed() >= planned);
    }
}

#[test]
fn a_server_that_does_one_thing_at_a_time_queues() {
    let server = server(one_at_a_time(|_| Duration::from_millis(5)));
    let mut streams: Vec<_> =
        (0..4).map(|_| TcpStream::connect(server.address()).unwrap()).collect();
    let start_ns = monotonic_ns();
    streams.iter_mut().for_each(request);
    streams.iter_mut().for_each(reply);
    assert!(monotonic_ns() - start_ns >= 20_000_000, "four services of 5 ms in a row");
}

#[test]
fn a_frozen_server_answers_only_when_it_thaws() {
    let server = server(after(|_| Duration::ZERO));
    let mut stream = TcpStream::connect(server.address()).unwrap();
    request(&mut stream);
    reply(&mut stream);
    let start_ns = monotonic_ns();
    server.freeze(Duration::from_millis(60));
    std::thread::sleep(Duration::from_millis(10));
    request(&mut stream);
    reply(&mut stream);
    assert!(monotonic_ns() - start_ns >= 60_000_000);
}
