//! `-n N` sends exactly N requests, as the logs of nginx and Caddy show.

use std::collections::BTreeMap;

use crate::web_peers::WebPeer;
use plimsoll_testkit::program::{Ended, plimsoll, result};
use serde_json::Value;

/// A run of web-url with these flags; its bundle's result.
#[track_caller]
pub fn counted(url: &str, more: &[&str]) -> (Ended, Value) {
    let temp_dir = tempfile::tempdir().unwrap();
    let bundle = temp_dir.path().join("b");
    let mut arguments = vec!["run", "web-url", url, "--out", bundle.to_str().unwrap()];
    arguments.extend(["--progress", "none", "--workers", "2"]);
    arguments.extend(more);
    let run = plimsoll(&arguments);
    assert!(matches!(run.code, Some(0 | 1)), "{run:?}");
    (run, result(&bundle))
}

pub fn ops(point: &Value) -> BTreeMap<String, u64> {
    let ops = point["ops"].as_object().unwrap().iter();
    ops.map(|(name, op)| (name.clone(), op["count"].as_u64().unwrap())).collect()
}

/// One more than requested: the check before the load.
#[track_caller]
pub fn alone(peer: &WebPeer, url: &str, line: &str, more: &[&str], n: u64) {
    let (_, result) = counted(url, more);
    let point = &result["points"][0];
    assert_eq!(ops(point).values().sum::<u64>(), n);
    let log = peer.log_of(n + 1);
    let expected = BTreeMap::from([(line.to_owned(), n + 1)]);
    assert_eq!(log, expected, "{} {more:?}", peer.name);
}

#[test]
fn so_many_requests_are_sent_and_one_before_them() {
    for peer in WebPeer::all() {
        alone(&peer, &peer.url("a?b=c"), "GET /a?b=c 200", &["-n", "1234"], 1234);
    }
    for peer in WebPeer::all() {
        let more = ["-n", "500", "-m", "PUT", "-d", "{\"a\": \"{{uuid}}\"}", "--clients", "7"];
        alone(&peer, &peer.url("p"), "PUT /p 200", &more, 500);
    }
    for peer in WebPeer::all() {
        let more = ["-n", "300", "--rate", "3000", "--new-connection", "--connections", "9"];
        alone(&peer, &peer.url(""), "GET / 200", &more, 300);
    }
    // Fewer than the suite's clients.
    for peer in WebPeer::all() {
        alone(&peer, &peer.url(""), "HEAD / 200", &["-n", "5", "-m", "HEAD"], 5);
    }
}

#[test]
fn a_list_and_its_weights_are_counted_alike_by_both_sides() {
    for peer in WebPeer::all() {
        let temp_dir = tempfile::tempdir().unwrap();
        let list = temp_dir.path().join("list");
        let lines = ["3 GET /a", "{\"url\": \"/b\", \"method\": \"DELETE\", \"weight\": 1}"];
        std::fs::write(&list, lines.join("\n")).unwrap();
        let list = list.to_str().unwrap();
        let (_, result) = counted(&peer.url(""), &["-n", "400", "--urls", list, "--no-check"]);
        let log = peer.log_of(400);
        let point = &result["points"][0];
        let reported: u64 = ops(point).values().sum();
        assert_eq!((reported, log.values().sum::<u64>()), (400, 400), "{log:?}");
        let deleted = log["DELETE /b 200"];
        assert_eq!(ops(point)["DELETE /b"], deleted, "{log:?}");
        assert!((60..140).contains(&deleted), "a quarter of 400: {log:?}");
    }
}

#[test]
fn a_warm_up_that_is_asked_for_comes_on_top() {
    let Some(peer) = WebPeer::nginx() else { return };
    let more = ["-n", "200", "--rate", "1000", "--warm-up", "300ms", "--gaps", "uniform"];
    let (_, result) = counted(&peer.url(""), &more);
    assert_eq!(ops(&result["points"][0])["GET"], 200);
    let log = peer.log_of(500);
    assert!(log["GET / 200"].abs_diff(501) <= 2, "{log:?}");
}

#[test]
fn another_place_to_connect_to_is_taken_for_the_urls_host() {
    for peer in WebPeer::all() {
        let endpoint = format!("127.0.0.1:{}", peer.port);
        let url = format!("http://localhost:{}/x", peer.port);
        alone(&peer, &url, "GET /x 200", &["-n", "50", "--connect-to", &endpoint], 50);
    }
    let Some(peer) = WebPeer::nginx() else { return };
    let endpoint = format!("127.0.0.1:{}", peer.port);
    let url = "http://no-such-host.invalid/x";
    alone(&peer, url, "GET /x 200", &["-n", "50", "--connect-to", &endpoint], 50);
}

#[test]
fn a_unix_socket_is_measured_like_any_server() {
    for peer in WebPeer::all() {
        let socket = peer.file("socket");
        let url = format!("http://localhost:{}/x", peer.port);
        let more = ["-n", "2000", "--unix", &socket];
        let (_, result) = counted(&url, &more);
        let point = &result["points"][0];
        assert_eq!(ops(point)["GET"], 2000);
        assert_eq!(point["errors"].as_object().unwrap().len(), 0);
        assert_eq!(point["arrived_stamped_ratio"], 0.0, "such sockets have no stamps");
        let resources = point["resources"].as_array().unwrap();
        // Its CPU time is not known where no sample ends with such a short window.
        let is_of_server = |it: &Value| it["name"].as_str().unwrap().starts_with("process.server.");
        assert!(resources.iter().any(is_of_server), "the server behind it");
        let log = peer.log_of(2001);
        assert_eq!(log, BTreeMap::from([("GET /x 200".to_owned(), 2001)]), "{}", peer.name);
    }
}

#[test]
fn places_where_nobody_listens_are_told_at_once() {
    let absent = ["run", "web-url", "http://localhost/", "--unix", "/no/such.sock"];
    plimsoll(&absent).check(3, &["unix:/no/such.sock", "is not there", "check the path"]);
    let wrong = ["run", "web-url", "http://localhost/", "--connect-to", "a b"];
    plimsoll(&wrong).check(2, &["\"a b\"", "HOST:PORT", "unix:PATH"]);
    let few = ["run", "web-url", "http://localhost/", "-n", "5", "--clients", "9"];
    plimsoll(&few).check(2, &["--clients 5 or fewer"]);
}

#[test]
fn a_time_limit_that_ends_before_the_requests_do_is_a_reason() {
    let Some(peer) = WebPeer::nginx() else { return };
    let (run, result) =
        counted(&peer.url(""), &["-n", "100000", "--rate", "500", "--for", "600ms"]);
    assert_eq!(result["points"][0]["valid"], false);
    run.check(1, &["of 100,000 ops came due within 600 ms", "(--for)"]);
}
