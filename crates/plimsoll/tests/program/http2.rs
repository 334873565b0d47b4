//! `--http 2`: requests and connections counted by the logs of nginx and Caddy, and refused flags.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};

use plimsoll_http::fileset::MARKER;
use plimsoll_testkit::capture::Capture;
use plimsoll_testkit::peers::require_peer;
use plimsoll_testkit::program::{Running, plimsoll, result, short, wait_until};
use serde_json::Value;

use crate::counts::{alone, counted, ops};
use crate::web_peers::{CLIENT, LoggedRequest, WebPeer};

/// Servers with the URL and flags to use HTTP/2 with them. Over TLS all, without it Caddy.
fn http2_peers(path: &str) -> Vec<(WebPeer, String, Vec<String>)> {
    let tls_peers = WebPeer::all().into_iter().map(|peer| {
        let flags = vec!["--cacert".to_owned(), peer.file("certificate.pem")];
        (peer.tls_url(path), flags, peer)
    });
    let plain = WebPeer::all().into_iter().filter(|peer| peer.name == "caddy");
    let plain = plain.map(|peer| (peer.url(path), Vec::new(), peer));
    tls_peers.chain(plain).map(|(url, flags, peer)| (peer, url, flags)).collect()
}

/// A run over HTTP/2 of `n` requests, which the server's log has as `line`, and the one before
/// them.
#[track_caller]
fn in_the_log(
    (peer, url, flags): (WebPeer, String, Vec<String>),
    line: &str,
    more: &[&str],
    n: u64,
) -> Vec<LoggedRequest> {
    let n_text = n.to_string();
    let mut all = vec!["--http", "2", "-n", &n_text];
    all.extend(flags.iter().map(String::as_str));
    all.extend(more);
    alone(&peer, &url, line, &all, n);
    let requests = peer.logged_requests(n + 1);
    let protocols: BTreeSet<_> = requests.iter().map(|one| one.protocol.as_str()).collect();
    assert_eq!(protocols, BTreeSet::from(["HTTP/2.0"]), "{}", peer.name);
    requests
}

#[test]
fn requests_of_every_kind_are_counted_alike_by_both_sides() {
    // nginx ends a connection after a thousand requests; the rest goes over the next.
    for variant in http2_peers("a?b=c") {
        in_the_log(variant, "GET /a?b=c 200", &["--streams", "8", "--clients", "16"], 2_345);
    }
    let open = ["--rate", "2000", "--connections", "2", "--streams", "9"];
    let cases: [(&str, &[&str]); 4] = [
        ("PUT /p 200", &["-m", "PUT", "-d", "{\"a\": \"{{uuid}}\"}"]),
        ("HEAD /p 200", &["-m", "HEAD", "--streams", "3"]),
        ("GET /p 200", &["--stream", "--streams", "4"]),
        ("GET /p 200", &open),
    ];
    for ((line, more), at) in cases.iter().zip(0..) {
        let several = http2_peers("p");
        let index = at % several.len().max(1);
        if let Some(variant) = several.into_iter().nth(index) {
            in_the_log(variant, line, more, 200);
        }
    }
}

#[test]
fn bodies_and_header_fields_come_as_they_were_given() {
    let temp_dir = tempfile::tempdir().unwrap();
    let fields_file = temp_dir.path().join("fields");
    fs::write(&fields_file, "X-One: 1\n\nX-Two: two words\n").unwrap();
    let fields = ["--header-file", fields_file.to_str().unwrap(), "-H", "Accept: text/plain"];
    let users = ["-a", "ann:secret", "-b", "s=1", "--cookie", "t=2"];
    for (peer, url, flags) in http2_peers("p") {
        let mut all = vec!["-d", "{{int 1 9}} hello", "--streams", "4", "-H", "X-Three: 3"];
        all.extend(fields.iter().chain(&users));
        // With certificates of clients, Caddy wants the host to be that of the handshake.
        let is_free = peer.name == "nginx" || url.starts_with("http:");
        all.extend(if is_free { &["-H", "Host: other.example"][..] } else { &[] });
        let host = if is_free { "other.example".to_owned() } else { authority(&url) };
        for request in in_the_log((peer, url, flags), "POST /p 200", &all, 20) {
            let expected = [
                ("accept", "text/plain"),
                ("authorization", "Basic YW5uOnNlY3JldA=="),
                ("content-length", "7"),
                ("content-type", "application/x-www-form-urlencoded"),
                ("cookie", "s=1; t=2"),
                ("x-one", "1"),
                ("x-three", "3"),
                ("x-two", "two words"),
            ];
            let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
            assert_eq!((&request.host, &request.fields), (&host, &BTreeMap::from(expected)));
            assert!(request.body.ends_with(" hello") && request.body.len() == 7, "{request:?}");
        }
    }
}

fn authority(url: &str) -> String {
    url.split('/').nth(2).unwrap().to_owned()
}

/// Four at a time are more than a connection's window, which the server opens again.
#[test]
fn a_body_from_a_file_is_sent_as_written_through_windows_and_frames() {
    let temp_dir = tempfile::tempdir().unwrap();
    let file = temp_dir.path().join("body");
    let body = "{{uuid}} ä ".repeat(2_500);
    fs::write(&file, &body).unwrap();
    let at_file = format!("@{}", file.display());
    for variant in http2_peers("b") {
        let more = ["-m", "PATCH", "-d", &at_file, "--clients", "4", "--streams", "4"];
        for request in in_the_log(variant, "PATCH /b 200", &more, 40) {
            assert_eq!(request.fields["content-length"], body.len().to_string());
            assert!(request.body == body, "{} bytes came", request.body.len());
        }
    }
}

#[test]
fn places_certificates_and_statuses_are_those_that_were_asked_for() {
    for peer in WebPeer::all() {
        let at = format!("127.0.0.1:{}", peer.tls_port);
        let (cert, key) = (peer.file("client/certificate.pem"), peer.file("client/key.pem"));
        let more = ["--connect-to", &at, "-k", "--cert", &cert, "--key", &key, "--streams", "4"];
        let expect = ["--set", "workload.expect=[\"404\"]"];
        // Caddy logs requests addressed to its own port.
        let port = if peer.name == "nginx" { 1 } else { peer.tls_port };
        let variant = (peer, format!("https://localhost:{port}/404?a"), Vec::new());
        for request in in_the_log(variant, "GET /404?a 404", &[&more[..], &expect].concat(), 50) {
            assert_eq!(request.host, format!("localhost:{port}"));
            assert!(request.tls && request.client.contains(&format!("CN={CLIENT}")), "{request:?}");
        }
    }
    for peer in WebPeer::all() {
        let socket = peer.h2_socket();
        let variant = (peer, "http://no-such-host.invalid:81/x".to_owned(), Vec::new());
        let more = ["--unix", &socket, "--streams", "4", "--clients", "8"];
        for request in in_the_log(variant, "GET /x 200", &more, 100) {
            assert_eq!(request.host, "no-such-host.invalid:81");
        }
    }
}

#[test]
fn a_window_and_a_warm_up_of_an_open_load_are_as_long_as_was_asked_for() {
    let Some(peer) = WebPeer::nginx() else { return };
    let open = ["--rate", "200", "--arrivals", "uniform", "--connections", "2", "--streams", "8"];
    let spans = ["--warm-up", "200ms", "--for", "300ms", "--timeout", "5s"];
    let (_, result) =
        counted(&peer.tls_url(""), &[&["-k", "--http", "2"][..], &open, &spans].concat());
    let count = ops(&result["points"][0])["GET"];
    assert!(count.abs_diff(60) <= 1, "{count}");
    let requests = peer.logged_requests(count + 1);
    assert!(requests.len().abs_diff(40 + 60 + 1) <= 2, "{}", requests.len());
    // The check before the load has a connection of its own.
    let connections: BTreeSet<_> = requests.iter().map(|one| &one.connection).collect();
    assert!(connections.len() <= 2 + 1, "{connections:?}");
}

/// Ops that have ended in a run's load points.
fn ended(bundle: &Path) -> u64 {
    let journal = fs::read_to_string(bundle.join("journal.jsonl")).unwrap();
    let records = journal.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let finished = records.filter(|record| record["event"] == "point_finished");
    let done = |record: Value| -> u64 {
        let seconds = record["seconds"].as_array().unwrap().iter();
        seconds.map(|second| second["done"].as_u64().unwrap()).sum()
    };
    finished.map(done).sum()
}

#[test]
fn a_file_set_is_verified_and_counted_alike_by_both_sides() {
    let Some(peer) = WebPeer::nginx() else { return };
    let files = peer.file("files");
    plimsoll(&["prepare", "web-static", &files, "--peak", "0.05"]).check(0, &[&files]);
    let temp_dir = tempfile::tempdir().unwrap();
    let (bundle, url) = (temp_dir.path().join("b"), peer.tls_url("files/"));
    let trust = format!("workload.tls_ca_file={}", peer.file("certificate.pem"));
    let more = ["--http", "2", "--streams", "4", "--points", "100", "--set", &trust];
    let verify = ["--set", "workload.verify_one_in=1", "--set", "profiles.quick.drain=10s"];
    let run = plimsoll(&short("web-static", &url, &bundle, &[&more[..], &verify].concat()));
    assert!(matches!(run.code, Some(0 | 1)), "{run:?}");
    let point = &result(&bundle)["points"][0];
    assert_eq!(point["errors"].as_object().unwrap().len(), 0, "{point}");
    assert!(point["verified"].as_u64().unwrap() > 0, "{point}");
    let count = ended(&bundle);
    wait_until("the log has them", || peer.logged_requests(0).len() as u64 > count);
    let mut requests = peer.logged_requests(count);
    requests.retain(|one| !one.target.ends_with(MARKER));
    assert_eq!(requests.len() as u64, count);
    assert!(
        requests.iter().all(|one| (one.status, &*one.protocol) == (200, "HTTP/2.0")),
        "{requests:?}"
    );
}

#[test]
fn a_list_and_its_weights_are_counted_alike_by_both_sides() {
    for (peer, url, flags) in http2_peers("") {
        let temp_dir = tempfile::tempdir().unwrap();
        let list = temp_dir.path().join("list");
        let lines = ["3 GET /a", "{\"url\": \"/b\", \"method\": \"DELETE\", \"weight\": 1}"];
        fs::write(&list, lines.join("\n")).unwrap();
        let mut all = vec!["-n", "400", "--urls", list.to_str().unwrap(), "--no-check"];
        all.extend(["--http", "2", "--streams", "5"]);
        all.extend(flags.iter().map(String::as_str));
        let (_, result) = counted(&url, &all);
        let log = peer.log_of(400);
        let reported = ops(&result["points"][0]);
        let expected = BTreeMap::from([
            ("GET /a 200".to_owned(), reported["GET /a"]),
            ("DELETE /b 200".to_owned(), reported["DELETE /b"]),
        ]);
        assert_eq!((log, reported.values().sum::<u64>()), (expected, 400), "{}", peer.name);
    }
}

#[test]
fn auto_takes_what_the_server_agrees_on_and_says_so() {
    for peer in WebPeer::all() {
        let ca_file = peer.file("certificate.pem");
        let cases = [(peer.tls_url(""), "HTTP/2.0"), (peer.url(""), "HTTP/1.1")];
        for (url, protocol) in cases {
            let before = peer.logged_requests(0).len();
            counted(&url, &["--http", "auto", "--cacert", &ca_file, "-n", "10"]);
            let requests = peer.logged_requests(before as u64 + 11).split_off(before);
            assert!(
                requests.iter().all(|one| one.protocol == protocol),
                "{}: {requests:?}",
                peer.name
            );
        }
    }
}

#[test]
fn what_http2_has_not_is_refused_before_any_load() {
    let run =
        |more: &[&str]| plimsoll(&[&["run", "web-url", "http://127.0.0.1:9/"], more].concat());
    run(&["--http", "2", "--new-connection"]).check(2, &["--new-connection"]);
    run(&["--streams", "4"]).check(2, &["--http"]);
    let suite = ["--set", "workload.streams=4"];
    run(&suite).check(2, &["only HTTP/2 has streams", "http = \"2\""]);
    let per_request = ["--http", "2", "--set", "workload.connections=\"per-request\""];
    run(&per_request).check(2, &["connections of HTTP/2 are kept and shared"]);
    let Some(peer) = WebPeer::nginx() else { return };
    let plain = ["run", "web-url", &peer.url(""), "--http", "2"];
    plimsoll(&plain).check(3, &["the server answers in HTTP/1", "leave out --http 2"]);
    let ca_file = peer.file("certificate.pem");
    let url = peer.tls_url("");
    let more = |flags: &[&str]| {
        let run = ["run", "web-url", &url, "--cacert", &ca_file, "--http", "2"];
        plimsoll(&[&run[..], flags].concat())
    };
    more(&["--streams", "200"])
        .check(2, &["the server allows 128 streams", "--streams 128 or fewer"]);
    more(&["-H", "Connection: close"]).check(2, &["\"connection\"", "leave it out"]);
}

#[test]
fn the_frames_are_judged_by_tshark() {
    let Some(peer) = WebPeer::all().into_iter().find(|peer| peer.name == "caddy") else { return };
    let Some(capture) = Capture::start(peer.port) else { return };
    let more = ["--http", "2", "--streams", "4", "--clients", "8", "-n", "200"];
    let post = ["-d", "n={{int 1 99999}}", "-H", "X-One: 1"];
    let (_, result) = counted(&peer.url("p?q=1"), &[&more[..], &post].concat());
    assert_eq!(ops(&result["points"][0])["POST"], 200);
    let frames = capture.finish_http2();
    assert_eq!((frames.dropped, &frames.faulty[..]), (0, &[][..]));
    assert_eq!(frames.by_path, BTreeMap::from([("/p?q=1".to_owned(), 201)]));
    let [data, headers] = [0, 1].map(|kind| frames.by_type[&kind]);
    assert_eq!((data, headers), (201, 201));
    assert!(frames.by_type.keys().all(|kind| [0, 1, 4, 7, 8].contains(kind)), "{frames:?}");
}

/// nghttpd or h2o on a port without TLS, with the files of a folder. nghttpd sends bodies back, and
/// logs its reads and writes into `log`.
fn started(name: &str, dir: &Path) -> Option<(Running, u16)> {
    let mut command = Command::new(require_peer(name)?);
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let root = dir.display();
    let mut out = Stdio::null();
    match name {
        "nghttpd" => {
            command.args(["--no-tls", "-v", "--echo-upload", "-a", "127.0.0.1", "-d"]);
            command.arg(dir).arg(port.to_string());
            out = fs::File::create(dir.join("log")).unwrap().into();
        }
        _ => {
            let config = dir.join("h2o.conf");
            let text = format!(
                "listen:\n  host: 127.0.0.1\n  port: {port}\nhosts:\n  default:\n    paths:\n      \
                 /:\n        file.dir: {root}\n"
            );
            fs::write(&config, text).unwrap();
            command.arg("-c").arg(config);
        }
    }
    let server = command.stdout(out).stderr(Stdio::null()).spawn().unwrap();
    let server = Running(server);
    wait_until(name, || TcpStream::connect(("127.0.0.1", port)).is_ok());
    Some((server, port))
}

#[test]
fn servers_of_two_more_houses_are_measured_without_an_error() {
    let temp_dir = tempfile::tempdir().unwrap();
    let page = "x".repeat(100_000);
    fs::write(temp_dir.path().join("page"), &page).unwrap();
    for name in ["nghttpd", "h2o"] {
        let Some((_server, port)) = started(name, temp_dir.path()) else { continue };
        let url = format!("http://127.0.0.1:{port}/page");
        let (_, result) = counted(&url, &["--http", "2", "--streams", "16", "-n", "500"]);
        let point = &result["points"][0];
        assert_eq!(ops(point)["GET"], 500, "{name}");
        assert_eq!(point["errors"].as_object().unwrap().len(), 0, "{name}: {point}");
        assert_eq!(point["bytes_read"], 500 * page.len() as u64, "{name}");
    }
}

#[test]
fn nghttpd_reads_every_field_and_every_byte_and_finds_no_frame_wrong() {
    let temp_dir = tempfile::tempdir().unwrap();
    let Some((server, port)) = started("nghttpd", temp_dir.path()) else { return };
    let file = temp_dir.path().join("body");
    fs::write(&file, "x".repeat(50_000)).unwrap();
    let at_file = format!("@{}", file.display());
    let url = format!("http://127.0.0.1:{port}/p?q=1");
    let many = ["--http", "2", "--streams", "4", "--clients", "8", "-n", "200"];
    let put = ["-m", "PUT", "-d", &at_file, "-H", "X-One: 1", "-b", "s=1", "-a", "ann:secret"];
    let (_, result) = counted(&url, &[&many[..], &put].concat());
    let point = &result["points"][0];
    assert_eq!(point["errors"].as_object().unwrap().len(), 0, "{point}");
    assert_eq!(point["bytes_read"], 200 * 50_000);
    drop(server);
    let log = fs::read_to_string(temp_dir.path().join("log")).unwrap();
    let read = |text: &str| log.lines().filter(|line| line.ends_with(text)).count();
    let authority = format!(":authority: 127.0.0.1:{port}");
    let fields = [":method: PUT", ":path: /p?q=1", "x-one: 1", "cookie: s=1", &authority];
    let of_body = ["content-length: 50000", "authorization: Basic YW5uOnNlY3JldA=="];
    for field in fields.iter().chain(&of_body) {
        assert_eq!(read(&format!(") {field}")), 201, "{field}");
    }
    let refusals = ["send RST_STREAM", "send GOAWAY", "error_code"];
    let refused: Vec<_> =
        log.lines().filter(|line| refusals.iter().any(|text| line.contains(text))).collect();
    assert_eq!(refused, Vec::<&str>::new());
}
