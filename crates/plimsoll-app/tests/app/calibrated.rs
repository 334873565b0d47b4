//! The calibrated server over real sockets.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use plimsoll_app::server::calibrated::{CalibratedConfig, CalibratedServer};
use plimsoll_app::wire::{
    HELLO_BYTES, Hello, MAGIC, REPLY_HEADER_BYTES, Refusal, ReplyHeader, RequestHeader,
    RequestType, Status, VERSION, WELCOME_BYTES, Welcome, checksum,
};
use plimsoll_servers::log::{LOG_STALL, LOG_TITLES};
use plimsoll_testkit::clock::now;
use plimsoll_testkit::program::ServerThread;

use crate::flood;

struct Running {
    address: SocketAddr,
    _serving: ServerThread,
}

fn serve(spec: &str, log: Option<PathBuf>) -> Running {
    serve_on(spec, log, Vec::new())
}

fn serve_on(spec: &str, log: Option<PathBuf>, cores: Vec<u32>) -> Running {
    let listen = SocketAddr::from(([127, 0, 0, 1], 0));
    let config = CalibratedConfig { listen, spec: spec.parse().unwrap(), log, cores };
    let server = CalibratedServer::bind(&config).unwrap();
    let address = server.address();
    Running { address, _serving: ServerThread::new(move |stop| server.serve_until(stop)) }
}

fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    stream.set_nodelay(true).unwrap();
    stream
}

fn welcome(stream: &mut TcpStream) -> Welcome {
    let mut bytes = [0; WELCOME_BYTES];
    stream.read_exact(&mut bytes).unwrap();
    Welcome::decode(&bytes).unwrap()
}

fn greeted(address: SocketAddr) -> TcpStream {
    let mut stream = connect(address);
    let hello = Hello { version: VERSION, client: 1, segment_bytes: 0 };
    stream.write_all(&hello.encode()).unwrap();
    let welcome = welcome(&mut stream);
    assert!(welcome.calibrated && welcome.refusal.is_none(), "{welcome:?}");
    stream
}

fn request(kind: RequestType, id: u32, payload: &[u8]) -> Vec<u8> {
    let payload_bytes = payload.len() as u32;
    let header = RequestHeader { payload_bytes, kind, id, size: 100, offset: 0, seed: 7, work: 0 };
    [&header.encode(), payload].concat()
}

fn reply(stream: &mut TcpStream) -> (ReplyHeader, Vec<u8>) {
    let mut bytes = [0; REPLY_HEADER_BYTES];
    stream.read_exact(&mut bytes).unwrap();
    let header = ReplyHeader::decode(&bytes).unwrap();
    let mut payload = vec![0; header.payload_bytes as usize];
    stream.read_exact(&mut payload).unwrap();
    (header, payload)
}

fn rows(path: &Path) -> Vec<[u64; 3]> {
    let text = std::fs::read_to_string(path).unwrap();
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let mut lines = lines.skip_while(|line| *line != LOG_TITLES);
    assert!(lines.next().is_some(), "{text}");
    let row = |line: &str| -> [u64; 3] {
        let fields: Vec<u64> =
            line.split(',').take(3).map(|field| field.parse().unwrap()).collect();
        fields.try_into().unwrap()
    };
    lines.map(row).collect()
}

#[test]
fn a_request_is_answered_after_its_service_time_and_logged() {
    let temp_dir = tempfile::tempdir().unwrap();
    let log = temp_dir.path().join("log.csv");
    let server = serve("service=const:5ms,servers=1", Some(log.clone()));
    let mut stream = greeted(server.address);
    for id in 0..10 {
        stream.write_all(&request(RequestType::ClientServer, id, b"hello")).unwrap();
        let (header, payload) = reply(&mut stream);
        assert_eq!((header.status, header.id, payload.len()), (Status::Ok, id, 100));
        assert_eq!(header.checksum, checksum(7, b"hello"));
        assert_eq!(header.server_ns, 5_000_000);
    }
    drop(server);
    let rows = rows(&log);
    assert_eq!(rows.len(), 10);
    for [arrival, completion, sent] in rows {
        assert!(completion == arrival + 5_000_000 && sent >= completion);
    }
}

#[test]
fn with_a_core_of_its_own_it_answers_as_without() {
    let core = plimsoll_servers::cores::available().unwrap()[0];
    let server = serve_on("service=const:2ms,servers=1", None, vec![core]);
    let mut stream = greeted(server.address);
    for id in 0..5 {
        stream.write_all(&request(RequestType::ClientServer, id, b"hello")).unwrap();
        assert_eq!(reply(&mut stream).0.server_ns, 2_000_000);
    }
    drop(server);
}

#[test]
fn a_log_that_cannot_be_written_is_refused_before_anybody_connects() {
    let listen = SocketAddr::from(([127, 0, 0, 1], 0));
    let spec = "service=const:0".parse().unwrap();
    let log = Some(PathBuf::from("/dev/null/log.csv"));
    let config = CalibratedConfig { listen, spec, log, cores: Vec::new() };
    let refused = CalibratedServer::bind(&config).map(drop).unwrap_err().to_string();
    assert!(refused.contains("/dev/null/log.csv") && refused.contains("--log"), "{refused}");
}

#[test]
fn requests_of_several_clients_wait_for_the_only_server() {
    let server = serve("service=const:20ms,servers=1", None);
    let mut streams: Vec<TcpStream> = (0..4).map(|_| greeted(server.address)).collect();
    for stream in &mut streams {
        stream.write_all(&request(RequestType::ClientServer, 0, b"")).unwrap();
    }
    let served: Vec<u64> = streams.iter_mut().map(|s| reply(s).0.server_ns).collect();
    assert!(served[0] == 20_000_000 && served[3] > 20_000_000, "{served:?}");
    assert!(served.iter().all(|ns| *ns <= 80_000_000), "{served:?}");
}

#[test]
fn requests_that_come_together_on_one_connection_are_served_one_after_the_other() {
    let server = serve("service=const:1ms,servers=4", None);
    let mut stream = connect(server.address);
    let hello = Hello { version: VERSION, client: 1, segment_bytes: 0 };
    stream.write_all(&hello.encode()).unwrap();
    assert_eq!(welcome(&mut stream).service_threads, 4);
    let both = [0, 1].map(|id| request(RequestType::ClientServer, id, &[id as u8; 300])).concat();
    // In pieces, with a border within a header.
    let (first, rest) = both.split_at(350);
    stream.write_all(first).unwrap();
    std::thread::sleep(Duration::from_millis(5));
    stream.write_all(rest).unwrap();
    for id in 0..2_u32 {
        let (header, _) = reply(&mut stream);
        assert_eq!((header.id, header.checksum), (id, checksum(7, &[id as u8; 300])));
    }
}

#[test]
fn a_stall_holds_what_arrives_in_it_and_the_log_says_when_it_was() {
    let temp_dir = tempfile::tempdir().unwrap();
    let log = temp_dir.path().join("log.csv");
    let server = serve("service=const:1ms,servers=1,stall=1s@20ms", Some(log.clone()));
    let mut stream = greeted(server.address);
    let mut longest_ns = 0;
    for id in 0..60 {
        stream.write_all(&request(RequestType::ClientServer, id, b"x")).unwrap();
        longest_ns = longest_ns.max(reply(&mut stream).0.server_ns);
    }
    drop(server);
    // Less than the whole stall, where this client was paused when the stall began.
    assert!((250_000_000..=1_001_000_000).contains(&longest_ns), "{longest_ns}");
    let text = std::fs::read_to_string(&log).unwrap();
    let stall = text.lines().find_map(|line| line.strip_prefix(LOG_STALL)).unwrap();
    let (from, until) = stall.split_once("..").unwrap();
    let (from, until): (u64, u64) = (from.parse().unwrap(), until.parse().unwrap());
    assert_eq!(until - from, 1_000_000_000);
    let rows = rows(&log);
    assert!(rows.iter().all(|[_, completion, _]| !(from..until).contains(completion)));
    assert_eq!(
        rows.iter().map(|[arrival, completion, _]| completion - arrival).max(),
        Some(longest_ns)
    );
}

#[test]
fn what_the_server_does_not_do_is_refused_and_ends_the_connection() {
    let server = serve("service=const:0", None);
    for kind in [RequestType::Processor, RequestType::Read, RequestType::Append] {
        let mut stream = greeted(server.address);
        stream.write_all(&request(kind, 3, b"")).unwrap();
        let (header, _) = reply(&mut stream);
        assert_eq!((header.status, header.id), (Status::BadRequest, 3));
        assert_eq!(stream.read(&mut [0; 1]).unwrap(), 0);
    }
}

#[test]
fn bytes_that_are_no_request_end_only_their_own_connection() {
    let server = serve("service=const:0", None);
    let mut good = greeted(server.address);
    let mut wrong = greeted(server.address);
    wrong.write_all(&[0xff; 40]).unwrap();
    assert_eq!(reply(&mut wrong).0.status, Status::BadRequest);
    let mut other_protocol = connect(server.address);
    other_protocol.write_all(b"GET / HTTP/1.1\r\nHost: example\r\n\r\n").unwrap();
    // A reset is an end too: it had sent more than was read.
    assert!(matches!(other_protocol.read(&mut [0; 1]), Ok(0) | Err(_)));
    let mut other_version = connect(server.address);
    let mut hello = [0; HELLO_BYTES];
    hello[..4].copy_from_slice(&MAGIC);
    hello[5] = 9;
    other_version.write_all(&hello).unwrap();
    assert_eq!(welcome(&mut other_version).refusal, Some(Refusal::Version));
    good.write_all(&request(RequestType::ClientServer, 1, b"x")).unwrap();
    assert_eq!(reply(&mut good).0.status, Status::Ok);
}

#[test]
fn figures_tell_who_is_served_and_who_waits() {
    let server = serve("service=const:2s,servers=2", None);
    let mut busy: Vec<TcpStream> = (0..3).map(|_| greeted(server.address)).collect();
    for stream in &mut busy {
        stream.write_all(&request(RequestType::ClientServer, 0, b"")).unwrap();
    }
    let mut asking = greeted(server.address);
    let mut text = String::new();
    for _ in 0..100 {
        asking.write_all(&request(RequestType::Status, 9, b"")).unwrap();
        let (header, payload) = reply(&mut asking);
        assert_eq!(header.checksum, checksum(7, &payload));
        text = String::from_utf8(payload).unwrap();
        if text.contains("plimsoll_app_queue_length 1\n") {
            break;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    for line in ["plimsoll_app_threads 2\n", "threads_busy 2\n", "queue_length 1\n"] {
        assert!(text.contains(line), "{line:?} in {text}");
    }
}

#[test]
fn a_client_that_never_stops_asking_for_figures_keeps_neither_the_others_waiting_nor_the_end() {
    let server = serve("service=const:0", None);
    let _flood = flood::of_status_requests(greeted(server.address));
    let begun = now();
    let mut late = greeted(server.address);
    late.write_all(&request(RequestType::ClientServer, 3, b"well")).unwrap();
    assert_eq!(reply(&mut late).0.id, 3);
    drop(server);
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
}

#[test]
fn who_sends_no_more_gets_the_reply_and_then_the_end() {
    let server = serve("service=const:1ms,servers=4", None);
    let hello = Hello { version: VERSION, client: 1, segment_bytes: 0 };
    let question = request(RequestType::ClientServer, 9, b"the last one");
    for _ in 0..50 {
        let mut stream = connect(server.address);
        stream.write_all(&[&hello.encode()[..], &question].concat()).unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        welcome(&mut stream);
        assert_eq!(reply(&mut stream).0.id, 9);
        assert_eq!(stream.read(&mut [0; 1]).unwrap(), 0);
    }
}

#[test]
fn nobody_is_promised_a_segment() {
    let server = serve("service=const:1ms,servers=1", None);
    let mut stream = connect(server.address);
    let hello = Hello { version: VERSION, client: 1, segment_bytes: 16 << 20 };
    stream.write_all(&hello.encode()).unwrap();
    let welcome = welcome(&mut stream);
    assert_eq!((welcome.calibrated, welcome.refusal, welcome.segment_bytes), (true, None, 0));
}
