//! `--live`: a page with many viewers, one of which reads nothing.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Stdio};
use std::sync::mpsc::{Sender, channel};
use std::thread;

use rustix::process::Signal;
use serde_json::Value;
use socket2::{Domain, Socket, Type};

use crate::listening::Listening;
use plimsoll_testkit::program::{command, plimsoll, short, signal, wait_for};

/// Viewers that read.
const VIEWERS: usize = 7;

/// Address of a run's live page.
struct Page {
    address: String,
    path: String,
}

impl Page {
    /// The page of a run that has just been started; it keeps its standard error.
    fn from_run(run: &mut Child) -> Self {
        let mut line = String::new();
        let errors = run.stderr.as_mut().unwrap();
        // Byte by byte: the rest is read at the end.
        while !line.ends_with('\n') {
            let mut byte = [0];
            assert_eq!(errors.read(&mut byte).unwrap(), 1, "it ended after {line:?}");
            line.push(char::from(byte[0]));
        }
        let url = line.trim().strip_prefix("live: http://").expect(&line);
        let (address, path) = url.split_once('/').unwrap();
        Self { address: address.to_owned(), path: format!("/{path}") }
    }

    fn ask(&self, stream: &mut TcpStream, path: &str, host: &str) {
        let head = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        stream.write_all(head.as_bytes()).unwrap();
    }

    /// The whole answer.
    fn get(&self, path: &str, host: &str) -> String {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        self.ask(&mut stream, path, host);
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        text
    }

    fn events(&self) -> String {
        format!("{}events", self.path)
    }

    /// Reads events until the stream ends.
    fn look_on(&self, heard: &Sender<(String, Value)>) {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        self.ask(&mut stream, &self.events(), "localhost");
        let mut kind = String::new();
        // Chunks end where events do: the lines between are their lengths.
        for line in BufReader::new(stream).lines().map_while(Result::ok) {
            if let Some(name) = line.strip_prefix("event: ") {
                name.clone_into(&mut kind);
            } else if let Some(data) = line.strip_prefix("data: ") {
                heard.send((kind.clone(), serde_json::from_str(data).unwrap())).unwrap();
            }
        }
    }

    /// Requests events and reads none of them, with next to no buffer for them.
    fn stand_still(&self) -> TcpStream {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        socket.set_recv_buffer_size(1).unwrap();
        let address: std::net::SocketAddr = self.address.parse().unwrap();
        socket.connect(&address.into()).unwrap();
        let mut stream = TcpStream::from(socket);
        self.ask(&mut stream, &self.events(), "127.0.0.1");
        stream
    }
}

fn start(arguments: &[&str]) -> Child {
    command(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

#[test]
fn many_look_on_and_see_what_the_result_says() {
    let target = Listening::start();
    let temp_dir = tempfile::tempdir().unwrap();
    let bundle = temp_dir.path().join("b");
    // A viewer that comes in the first point's second second still sees a second of each point.
    let more = ["--rate", "100,200", "--for", "2200ms", "--live"];
    let mut run = start(&short("web-url", &target.url, &bundle, &more));
    let page = Page::from_run(&mut run);
    let still = page.stand_still();

    let shell = page.get(&page.path, &page.address);
    assert!(shell.starts_with("HTTP/1.1 200 ") && shell.contains("new EventSource(\"events\")"));
    for field in ["default-src 'none'", "cache-control: no-store", "referrer-policy: no-referrer"] {
        assert!(shell.contains(field), "{field} is not in {shell}");
    }
    let status = |path: &str, host: &str| page.get(path, host)[9..12].parse::<u16>().unwrap();
    assert_eq!(status("/", "localhost"), 404);
    assert_eq!(status("/events", "localhost"), 404);
    assert_eq!(status(&format!("/{}/", "0".repeat(32)), "localhost"), 404);
    assert_eq!(status(&page.path, "evil.example"), 403);
    assert_eq!(status(&page.events(), "evil.example"), 403);
    assert_eq!(status(page.path.trim_end_matches('/'), "localhost"), 308);

    let (ends, received) = channel();
    thread::scope(|scope| {
        for viewer in 0..VIEWERS {
            let (page, ends) = (&page, ends.clone());
            scope.spawn(move || {
                let (heard, events) = channel();
                page.look_on(&heard);
                drop(heard);
                ends.send((viewer, events.iter().collect::<Vec<_>>())).unwrap();
            });
        }
    });
    let ended = wait_for(run);
    assert!(!ended.err.contains("--live"), "{ended:?}");
    drop((still, ends));

    let report = std::fs::read_to_string(bundle.join("report.html")).unwrap();
    let all: Vec<_> = received.iter().collect();
    assert_eq!(all.len(), VIEWERS);
    for (_, events) in all {
        let of = |kind: &'static str| events.iter().filter(move |(of, _)| of == kind);
        assert!(of("second").count() >= 2, "a second of each point at least");
        let first = of("report").next().unwrap().1["html"].as_str().unwrap();
        assert!(first.contains("Under way: 1 load point has finished"), "{first}");
        // At the end viewers see the report, and so the result.
        let last = of("report").next_back().unwrap().1["html"].as_str().unwrap();
        assert!(report.contains(last), "the last event is not the report");
        assert_eq!(events.last().unwrap().0, "over");
    }
}

#[test]
fn no_more_viewers_are_let_in_than_there_is_room_for_and_who_leaves_makes_room() {
    let target = Listening::start();
    let temp_dir = tempfile::tempdir().unwrap();
    let bundle = temp_dir.path().join("b");
    let more = ["--rate", "20", "--for", "2m", "--live", "localhost:0"];
    let mut run = start(&short("web-url", &target.url, &bundle, &more));
    let page = Page::from_run(&mut run);
    let enter = || {
        let mut stream = TcpStream::connect(&page.address).unwrap();
        page.ask(&mut stream, &page.events(), "localhost");
        let mut status = [0; 12];
        stream.read_exact(&mut status).unwrap();
        (String::from_utf8_lossy(&status[9..]).into_owned(), stream)
    };
    let mut seated: Vec<_> = (0..32).map(|_| enter()).collect();
    assert!(seated.iter().all(|(status, _)| status == "200"));
    assert_eq!(enter().0, "503");
    seated.pop();
    plimsoll_testkit::program::wait_until("a viewer left", || enter().0 == "200");
    drop(seated);
    signal(&run, Signal::INT);
    wait_for(run);
}

#[test]
fn a_page_is_refused_before_any_load() {
    let target = Listening::start();
    let temp_dir = tempfile::tempdir().unwrap();
    let bundle = temp_dir.path().join("b");
    let refused = |address: &str| {
        plimsoll(&short("web-url", &target.url, &bundle, &["--clients", "1", "--live", address]))
    };
    refused("0.0.0.0:0").check(2, &["0.0.0.0 is not an address of loopback", "ssh -L"]);
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    refused(&address).check(3, &["--live", &address, "in use", "name another port"]);
    assert_eq!(target.connections(), 0);
    assert!(!bundle.exists());
}
