//! The reply to each type of request, and which clients are admitted.

use std::num::NonZeroU32;
use std::time::Duration;

use plimsoll_app::server::{AppConfig, Durability, SegmentsRoot};
use plimsoll_app::wire::{
    Hello, Refusal, RequestHeader, RequestType, Status, VERSION, checksum, work_block,
    work_checksum,
};

use crate::support::{config, frame, request, serve};
use plimsoll_testkit::program::wait_until;

#[test]
fn every_type_of_request_has_the_answer_of_the_protocol() {
    let server = serve(&config());
    let mut client = server.client(5, 1 << 20);
    let of = request;

    let question = RequestHeader { size: 100, ..of(RequestType::ClientServer) };
    let (header, payload) = client.ask(question, b"a question");
    assert_eq!((header.status, payload.len()), (Status::Ok, 100));
    assert_eq!(header.checksum, checksum(question.seed, b"a question"));
    assert!(header.server_ns > 0);

    let question = RequestHeader { work: 3, ..of(RequestType::Processor) };
    let (header, payload) = client.ask(question, b"");
    assert_eq!((header.checksum, payload.len()), (work_checksum(question.seed, 3), 0));

    for size in [0, 1, 65_536] {
        let question = RequestHeader { size, ..of(RequestType::ServerClient) };
        let (header, payload) = client.ask(question, b"");
        assert_eq!(payload, work_block()[..size as usize]);
        assert_eq!(header.checksum, checksum(question.seed, &payload));
    }

    let data = &work_block()[100..40_100];
    let question = RequestHeader { offset: 1_000_000, ..of(RequestType::Write) };
    let (header, _) = client.ask(question, data);
    assert_eq!((header.status, header.checksum), (Status::Ok, checksum(question.seed, data)));
    let question = RequestHeader { offset: 1_000_000, size: 40_000, ..of(RequestType::Read) };
    let (header, payload) = client.ask(question, b"");
    assert_eq!((header.checksum, payload.len()), (checksum(question.seed, data), 0));

    client.ask(of(RequestType::Append), b"one");
    client.ask(of(RequestType::Append), b"two");
    let (header, _) = client.ask(RequestHeader { size: 6, ..of(RequestType::Read) }, b"");
    assert_eq!(header.checksum, checksum(question.seed, b"onetwo"));
}

#[test]
fn what_is_not_within_the_segment_is_out_of_range_and_the_connection_goes_on() {
    let server = serve(&config());
    let mut client = server.client(1, 4_096);
    for (offset, size) in [(4_096, 1), (0, 4_097), (u64::MAX, 1)] {
        let read = RequestHeader { offset, size, ..request(RequestType::Read) };
        let (header, _) = client.ask(read, b"");
        assert_eq!((header.status, header.checksum), (Status::OutOfRange, 0));
        let write = RequestHeader { offset, ..request(RequestType::Write) };
        assert_eq!(client.ask(write, &vec![0; size as usize]).0.status, Status::OutOfRange);
    }
    let mut without = server.client(2, 0);
    let read = RequestHeader { size: 1, ..request(RequestType::Read) };
    assert_eq!(without.ask(read, b"").0.status, Status::OutOfRange);
    let read = RequestHeader { size: 4_096, ..request(RequestType::Read) };
    assert_eq!(client.ask(read, b"").0.status, Status::Ok);
}

#[test]
fn a_segment_is_shared_by_its_number_and_kept_for_the_next_server() {
    let dir = tempfile::tempdir().unwrap();
    let root = SegmentsRoot::Kept(dir.path().join("segments"));
    let config = AppConfig { root, durability: Durability::Fdatasync, ..config() };
    let server = serve(&config);
    let mut one = server.client(7, 4_096);
    one.ask(RequestHeader { offset: 9, ..request(RequestType::Write) }, b"shared");
    let read = RequestHeader { offset: 9, size: 6, ..request(RequestType::Read) };
    assert_eq!(server.client(7, 4_096).ask(read, b"").0.checksum, checksum(read.seed, b"shared"));
    let mut other_size = server.stranger();
    other_size.send(&Hello { version: VERSION, client: 7, segment_bytes: 8_192 }.encode());
    assert_eq!(other_size.welcome().refusal, Some(Refusal::SegmentSize));
    other_size.check_ended();
    drop(one);
    server.end();

    let server = serve(&config);
    let mut again = server.client(7, 4_096);
    assert_eq!(again.ask(read, b"").0.checksum, checksum(read.seed, b"shared"));
}

#[test]
fn who_asks_for_too_much_is_told_why() {
    let server = serve(&AppConfig { segment_bytes_max: 1 << 50, ..config() });
    let refusal = |version, segment_bytes| {
        let mut client = server.stranger();
        client.send(&Hello { version, client: 1, segment_bytes }.encode());
        let welcome = client.welcome();
        client.check_ended();
        (welcome.version, welcome.refusal)
    };
    assert_eq!(refusal(2, 0), (VERSION, Some(Refusal::Version)));
    assert_eq!(refusal(VERSION, (1 << 50) + 1), (VERSION, Some(Refusal::SegmentSize)));
    assert_eq!(refusal(VERSION, 1 << 43), (VERSION, Some(Refusal::NoRoom)));
}

#[test]
fn requests_sent_ahead_are_answered_one_after_another() {
    let server = serve(&config());
    let mut client = server.stranger();
    let mut all = Hello { version: VERSION, client: 1, segment_bytes: 4_096 }.encode().to_vec();
    for id in 0..2_000 {
        let kind = if id % 100 == 0 { RequestType::Status } else { RequestType::ClientServer };
        let payload = if id % 100 == 0 { &b""[..] } else { b"ahead" };
        all.extend(frame(RequestHeader { id, ..request(kind) }, payload));
    }
    let mut sender = client.stream.try_clone().unwrap();
    let sending = std::thread::spawn(move || {
        use std::io::Write as _;
        sender.write_all(&all).unwrap();
        sender.shutdown(std::net::Shutdown::Write).unwrap();
    });
    client.welcome();
    for id in 0..2_000 {
        let (header, _) = client.reply();
        assert_eq!((header.id, header.status), (id, Status::Ok));
    }
    client.check_ended();
    sending.join().unwrap();
}

#[test]
fn a_client_that_sends_no_more_still_gets_its_reply() {
    let server = serve(&config());
    let mut client = server.client(1, 0);
    client.send(&frame(request(RequestType::Processor), b""));
    client.hang_up();
    assert_eq!(client.reply().0.status, Status::Ok);
    client.check_ended();
}

#[test]
fn a_request_waits_while_all_service_threads_are_busy_and_status_does_not() {
    let threads = NonZeroU32::new(1);
    let server = serve(&AppConfig { threads, ..config() });
    let mut watcher = server.client(3, 0);
    let mut clients = [server.client(1, 0), server.client(2, 0)];
    let long = watcher.long_request(Duration::from_millis(1_500));
    for client in &mut clients {
        client.send(&frame(long, b""));
    }
    wait_until("one is served and one waits", || {
        let status = watcher.status();
        let has_line = |line| status.lines().any(|candidate| candidate == line);
        has_line("plimsoll_app_threads_busy 1") && has_line("plimsoll_app_queue_length 1")
    });
    let ahead = (0..20).map(|id| RequestHeader { id, ..request(RequestType::Status) });
    watcher.send(&ahead.flat_map(|status| frame(status, b"")).collect::<Vec<_>>());
    for id in 0..20 {
        let (header, text) = watcher.reply();
        let text = String::from_utf8(text).unwrap();
        assert_eq!((header.id, header.status), (id, Status::Ok));
        assert!(text.contains("plimsoll_app_queue_length 1\n"), "status {id} waited: {text}");
    }
    let [first, second] = clients.each_mut().map(|client| client.reply().0);
    assert_eq!(first.status, Status::Ok);
    assert!(second.server_ns > first.server_ns, "{second:?} did not wait for {first:?}");
    assert!(server.metric("queue_length_max") >= 1.0);
    assert!(server.metric("queue_wait_seconds_total") > 0.0);
}
