//! Clients that are slow, mad or gone.

use std::io::{ErrorKind, Read as _, Write as _};
use std::time::Duration;

use plimsoll_app::server::AppConfig;
use plimsoll_app::wire::{
    HELLO_BYTES, Hello, PAYLOAD_BYTES_MAX, Refusal, RequestHeader, RequestType, Status, VERSION,
    WORK_MAX,
};

use crate::flood;
use crate::support::{Client, config, frame, request, serve};
use plimsoll_testkit::clock::now;
use plimsoll_testkit::program::wait_until;

/// Of the requests that end too late on purpose.
const TIMEOUT: Duration = Duration::from_millis(700);

fn hello(version: u16) -> [u8; HELLO_BYTES] {
    Hello { version, client: 1, segment_bytes: 0 }.encode()
}

#[track_caller]
fn check_unharmed(client: &mut Client) {
    let begun = now();
    let question = RequestHeader { size: 100, ..request(RequestType::ClientServer) };
    assert_eq!(client.ask(question, b"well").0.status, Status::Ok);
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
}

#[test]
fn frames_that_make_no_sense_get_one_reply_and_the_end() {
    let server = serve(&config());
    let mut other = server.client(2, 0);
    let good = request(RequestType::Write);
    let with = |at: usize, bytes: &[u8]| {
        let mut frame = good.encode();
        frame[at..at + bytes.len()].copy_from_slice(bytes);
        frame
    };
    let too_large = (PAYLOAD_BYTES_MAX + 1).to_be_bytes();
    let frames = [
        with(0, &too_large),
        with(0, &u32::MAX.to_be_bytes()),
        with(4, &[0]),
        with(4, &[99]),
        with(5, &[1]),
        with(12, &too_large),
        with(28, &(WORK_MAX + 1).to_be_bytes()),
        with(39, &[1]),
        // A payload where the type has none.
        RequestHeader { payload_bytes: 1, ..request(RequestType::Read) }.encode(),
    ];
    for frame in frames {
        let mut client = server.client(1, 0);
        client.send(&frame);
        // Much more behind it must not take the reply back.
        let _ = client.stream.write_all(&[0xff; 100_000]);
        let (header, payload) = client.reply();
        assert_eq!((header.status, header.id), (Status::BadRequest, 77), "{frame:?}");
        assert_eq!((header.kind, header.checksum, payload.len()), (frame[4], 0, 0));
        client.check_ended();
        check_unharmed(&mut other);
    }
    assert_eq!(server.metric("connections_malformed_total"), 9.0);
}

#[test]
fn other_protocols_are_not_spoken_to() {
    let server = serve(&config());
    let mut reserved = hello(VERSION);
    reserved[7] = 1;
    let first_bytes: [&[u8]; 5] =
        [b"GET / HTTP/1.1\r\nHost: h\r\n\r\n", b"\0", b"PLMX", &[0xff; 5_000], &reserved];
    for bytes in first_bytes {
        let mut client = server.stranger();
        client.send(bytes);
        client.check_ended();
    }
    let mut client = server.stranger();
    client.send(&hello(0));
    assert_eq!(client.welcome().refusal, Some(Refusal::Version));
    client.check_ended();
}

#[test]
fn a_frame_that_is_never_complete_ends_and_harms_nobody() {
    let server = serve(&AppConfig { request_timeout: TIMEOUT, ..config() });
    let mut victim = server.client(0, 4_096);
    let mut loris: Vec<Client> = (0..100).map(|number| server.client(number + 1, 0)).collect();
    loris.extend((0..100).map(|_| server.stranger()));
    let endless = frame(request(RequestType::Write), &[0; 60_000]);
    let begun = now();
    let mut at = 0;
    while begun.elapsed() < 3 * TIMEOUT {
        for (number, client) in loris.iter_mut().enumerate() {
            let bytes = if number < 100 { &endless } else { &hello(VERSION)[..HELLO_BYTES - 1] };
            // The server may have ended it already.
            let _ = bytes.get(at..=at).map(|byte| client.stream.write_all(byte));
        }
        at += 1;
        check_unharmed(&mut victim);
        std::thread::sleep(Duration::from_millis(20));
    }
    for client in &mut loris {
        client.check_ended();
    }
    assert_eq!(server.metric("connections_timed_out_total"), 200.0);
    check_unharmed(&mut victim);
}

#[test]
fn a_client_that_never_reads_is_ended_and_not_read_for_ever() {
    let server = serve(&AppConfig { request_timeout: TIMEOUT, ..config() });
    let mut victim = server.client(1, 0);
    let mut greedy = server.client(2, 0);
    greedy.stream.set_nonblocking(true).unwrap();
    let question = RequestHeader { size: PAYLOAD_BYTES_MAX, ..request(RequestType::ServerClient) };
    let all = frame(question, b"").repeat(1_000);
    let mut sent = 0_u64;
    wait_until("the server has had enough", || {
        check_unharmed(&mut victim);
        match greedy.stream.write(&all) {
            Ok(bytes) => sent += bytes as u64,
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(_) => return true,
        }
        false
    });
    assert_eq!(server.metric("connections_timed_out_total"), 1.0);
    // What it answered went into the sockets' buffers, a few megabytes.
    assert!(server.metric("sent_bytes_total") < 64e6, "after {sent} bytes of requests");
}

#[test]
fn a_client_that_leaves_in_mid_frame_or_without_its_reply_is_forgotten() {
    let server = serve(&config());
    for cut in [0, 1, HELLO_BYTES - 1] {
        drop({
            let mut client = server.stranger();
            client.send(&hello(VERSION)[..cut]);
            client
        });
    }
    for cut in [1, 39, 40, 20_000] {
        let mut client = server.client(1, 65_536);
        client.send(&frame(request(RequestType::Write), &[0; 30_000])[..cut]);
    }
    let question = RequestHeader { size: PAYLOAD_BYTES_MAX, ..request(RequestType::ServerClient) };
    for _ in 0..10 {
        let mut client = server.client(2, 65_536);
        client.send(&frame(question, b"").repeat(50));
        let mut first = [0; 10];
        client.stream.read_exact(&mut first).unwrap();
    }
    wait_until("all are forgotten but who asks", || {
        server.metric("connections") == 1.0 && server.metric("segments") == 0.0
    });
}

#[test]
fn a_client_that_never_stops_asking_how_it_is_keeps_neither_the_others_waiting_nor_the_end() {
    let server = serve(&config());
    let _flood = flood::of_status_requests(server.client(1, 0).stream);
    let begun = now();
    let mut late = server.client(2, 0);
    check_unharmed(&mut late);
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    let took = server.end();
    assert!(took < Duration::from_secs(20), "{took:?}");
}

#[test]
fn a_timeout_beyond_all_time_is_none() {
    let server = serve(&AppConfig { request_timeout: Duration::MAX, ..config() });
    let mut client = server.client(1, 0);
    let whole = frame(request(RequestType::ClientServer), b"in two parts");
    client.send(&whole[..9]);
    std::thread::sleep(Duration::from_millis(50));
    client.send(&whole[9..]);
    assert_eq!(client.reply().0.status, Status::Ok);
}
