//! `--http 2`: requests and connections counted by the logs of nginx and Caddy, and what is refused.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};

use plimsoll_testkit::capture::Capture;
use plimsoll_testkit::peers::require_peer;
use plimsoll_testkit::program::{Running, plimsoll, wait_until};

use crate::counts::{alone, counted, ops};
use crate::web_peers::WebPeer;

/// Servers with a way to speak HTTP/2 to them: URL and flags. Over TLS all, without it Caddy.
fn ways(path: &str) -> Vec<(WebPeer, String, Vec<String>)> {
    let over_tls = WebPeer::all().into_iter().map(|peer| {
        let flags = vec!["--cacert".to_owned(), peer.file("certificate.pem")];
        (peer.tls_url(path), flags, peer)
    });
    let plain = WebPeer::all().into_iter().filter(|peer| peer.name == "caddy");
    let plain = plain.map(|peer| (peer.url(path), Vec::new(), peer));
    over_tls.chain(plain).map(|(url, flags, peer)| (peer, url, flags)).collect()
}

/// A run over HTTP/2 of `n` requests, which the server's log has as `line`.
#[track_caller]
fn in_the_log(
    (peer, url, flags): (WebPeer, String, Vec<String>),
    line: &str,
    more: &[&str],
    n: u64,
) {
    let n_text = n.to_string();
    let mut all = vec!["--http", "2", "-n", &n_text];
    all.extend(flags.iter().map(String::as_str));
    all.extend(more);
    alone(&peer, &url, line, &all, n);
    let seen = peer.seen(n + 1);
    let protocols: BTreeSet<_> = seen.iter().map(|one| one.protocol.as_str()).collect();
    assert_eq!(protocols, BTreeSet::from(["HTTP/2.0"]), "{}", peer.name);
}

#[test]
fn requests_of_every_kind_are_counted_alike_by_both_sides() {
    // nginx ends a connection after a thousand requests; the rest goes over the next.
    for way in ways("a?b=c") {
        in_the_log(way, "GET /a?b=c 200", &["--streams", "8", "--clients", "16"], 2_345);
    }
    let open = ["--rate", "2000", "--connections", "2", "--streams", "9"];
    let cases: [(&str, &[&str]); 4] = [
        ("PUT /p 200", &["-m", "PUT", "-d", "{\"a\": \"{{uuid}}\"}"]),
        ("HEAD /p 200", &["-m", "HEAD", "--streams", "3"]),
        ("GET /p 200", &["--stream", "--streams", "4"]),
        ("GET /p 200", &open),
    ];
    for ((line, more), at) in cases.iter().zip(0..) {
        let several = ways("p");
        let way = at % several.len().max(1);
        several.into_iter().nth(way).into_iter().for_each(|way| in_the_log(way, line, more, 200));
    }
}

#[test]
fn bodies_and_header_fields_come_as_they_were_given() {
    for (peer, url, flags) in ways("p") {
        let mut all = vec!["--http", "2", "-n", "20", "--streams", "4", "-d", "{{int 1 9}} hello"];
        all.extend(["-H", "X-One: 1", "-H", "Accept: text/plain", "--cookie", "a=b"]);
        all.extend(flags.iter().map(String::as_str));
        alone(&peer, &url, "POST /p 200", &all, 20);
        for seen in peer.seen(21) {
            let field = |name: &str| seen.fields.get(name).map(String::as_str);
            assert_eq!(field("x-one"), Some("1"), "{}: {seen:?}", peer.name);
            assert_eq!(field("accept"), Some("text/plain"));
            assert_eq!(field("cookie"), Some("a=b"));
            assert_eq!(field("content-length"), Some("7"));
            assert!(seen.body.ends_with(" hello") && seen.body.len() == 7, "{seen:?}");
        }
    }
}

#[test]
fn a_list_and_its_weights_are_counted_alike_by_both_sides() {
    for (peer, url, flags) in ways("") {
        let place = tempfile::tempdir().unwrap();
        let list = place.path().join("list");
        let lines = ["3 GET /a", "{\"url\": \"/b\", \"method\": \"DELETE\", \"weight\": 1}"];
        fs::write(&list, lines.join("\n")).unwrap();
        let mut all = vec!["-n", "400", "--urls", list.to_str().unwrap(), "--no-check"];
        all.extend(["--http", "2", "--streams", "5"]);
        all.extend(flags.iter().map(String::as_str));
        let (_, result) = counted(&url, &all);
        let log = peer.log_of(400);
        let told = ops(&result["points"][0]);
        let wanted = BTreeMap::from([
            ("GET /a 200".to_owned(), told["GET /a"]),
            ("DELETE /b 200".to_owned(), told["DELETE /b"]),
        ]);
        assert_eq!((log, told.values().sum::<u64>()), (wanted, 400), "{}", peer.name);
    }
}

#[test]
fn auto_takes_what_the_server_agrees_on_and_says_so() {
    for peer in WebPeer::all() {
        let ca_file = peer.file("certificate.pem");
        let cases = [(peer.tls_url(""), "HTTP/2.0"), (peer.url(""), "HTTP/1.1")];
        for (url, protocol) in cases {
            let before = peer.seen(0).len();
            counted(&url, &["--http", "auto", "--cacert", &ca_file, "-n", "10"]);
            let seen = peer.seen(before as u64 + 11).split_off(before);
            assert!(seen.iter().all(|one| one.protocol == protocol), "{}: {seen:?}", peer.name);
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
    let held = ["--http", "2", "--set", "workload.connections=\"per-request\""];
    run(&held).check(2, &["connections of HTTP/2 are kept and shared"]);
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

#[test]
fn servers_of_two_more_houses_are_measured_without_an_error() {
    let place = tempfile::tempdir().unwrap();
    let page = "x".repeat(100_000);
    fs::write(place.path().join("page"), &page).unwrap();
    let root = place.path().display().to_string();
    for name in ["nghttpd", "h2o"] {
        let Some(program) = require_peer(name) else { continue };
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut command = Command::new(program);
        match name {
            "nghttpd" => {
                command.args(["--no-tls", "-a", "127.0.0.1", "-d", &root, &port.to_string()]);
            }
            _ => {
                let config = place.path().join("h2o.conf");
                let text = format!(
                    "listen:\n  host: 127.0.0.1\n  port: {port}\nhosts:\n  default:\n    paths:\n      \
                     /:\n        file.dir: {root}\n"
                );
                fs::write(&config, text).unwrap();
                command.args(["-c", config.to_str().unwrap()]);
            }
        }
        let server = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let _server = Running(server);
        wait_until(name, || TcpStream::connect(("127.0.0.1", port)).is_ok());
        let url = format!("http://127.0.0.1:{port}/page");
        let (_, result) = counted(&url, &["--http", "2", "--streams", "16", "-n", "500"]);
        let point = &result["points"][0];
        assert_eq!(ops(point)["GET"], 500, "{name}");
        assert_eq!(point["errors"].as_object().unwrap().len(), 0, "{name}: {point}");
        assert_eq!(point["bytes_read"], 500 * page.len() as u64, "{name}");
    }
}
