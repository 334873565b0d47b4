//! Replies in pieces: figures of `--stream` for a server whose pauses are known.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use serde_json::Value;

use plimsoll_testkit::program::{CheckOutcome, one_is_right, plimsoll, result, short};

/// Before the first event, and between events.
const PAUSE: Duration = Duration::from_millis(40);
const EVENTS: u32 = 4;

/// Server-sent events to every client, the head at once.
fn events(listener: TcpListener) {
    for stream in listener.incoming().map_while(Result::ok) {
        std::thread::spawn(move || answer(stream));
    }
}

fn answer(mut stream: TcpStream) {
    let mut buffer = [0; 4096];
    while let Ok(1..) = stream.read(&mut buffer) {
        let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\
                    Transfer-Encoding: chunked\r\n\r\n";
        if stream.write_all(head.as_bytes()).is_err() {
            return;
        }
        for event in 0..EVENTS {
            std::thread::sleep(PAUSE);
            let chunk = format!("data: {event}\n\n");
            let last = if event + 1 == EVENTS { "0\r\n\r\n" } else { "" };
            let chunk = format!("{:x}\r\n{chunk}\r\n{last}", chunk.len());
            if stream.write_all(chunk.as_bytes()).is_err() {
                return;
            }
        }
    }
}

/// Sleeps are late, never early; one that began late may end on time.
fn are_the_servers(get: &Value) -> bool {
    let pause = PAUSE.as_secs_f64() * 1e3;
    let p50_ms = |times: &str| get[times]["p50"].as_f64().unwrap() / 1e6;
    get["piece_gap_ns"]["n"] == 40 * u64::from(EVENTS - 1)
        && (pause * 0.9..pause * 2.0).contains(&p50_ms("first_piece_ns"))
        && (pause * 0.9..pause * 2.0).contains(&p50_ms("piece_gap_ns"))
        && p50_ms("response_ns") > pause * f64::from(EVENTS) * 0.95
}

#[test]
fn the_first_piece_and_the_gaps_between_pieces_are_those_of_the_server() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    std::thread::spawn(move || events(listener));
    let temp_dir = tempfile::tempdir().unwrap();
    let bundle = temp_dir.path().join("b");
    let mut run = None;
    // A client that stands still for a pause finds two pieces together.
    one_is_right(3, || {
        let _ = std::fs::remove_dir_all(&bundle);
        let more = ["--clients", "4", "-n", "40", "--stream"];
        let ended = run.insert(plimsoll(&short("web-url", &url, &bundle, &more)));
        ended.check(ended.code.unwrap(), &["GET: first chunk p50 ", ", chunk gap p50 "]);
        let point = &result(&bundle)["points"][0];
        let get = &point["ops"]["GET"];
        assert_eq!(get["first_piece_ns"]["n"], 40);
        CheckOutcome::from_point(point, (!are_the_servers(get)).then(|| get.to_string()))
    });
    let run = run.unwrap();
    let get = &result(&bundle)["points"][0]["ops"]["GET"];
    // Recorded figures survive the bundle.
    let again = plimsoll(&["analyse", bundle.to_str().unwrap()]);
    assert_eq!(again.code, run.code, "{again:?}");
    assert_eq!(&result(&bundle)["points"][0]["ops"]["GET"], get);
    // Without the flag nothing is timed within replies.
    let plain = temp_dir.path().join("plain");
    plimsoll(&short("web-url", &url, &plain, &["--clients", "4", "-n", "8"]));
    assert_eq!(result(&plain)["points"][0]["ops"]["GET"].get("first_piece_ns"), None);
}
