//! Faults that other programs with users have had, each staged here (docs/users.md, "Faults of other
//! tools"). That rows are shared by agents, and what happens where a value is missing, is in
//! `users.rs`; a stall under sessions that arrive in the engine's tests.

use std::collections::BTreeMap;
use std::path::Path;

use plimsoll_testkit::program::{plimsoll, result, short};
use plimsoll_testkit::shop::{SLOW, Shop};
use serde_json::Value;

use crate::web_peers::{CLIENTS, WebPeer};

/// The point of a run of this journey.
#[track_caller]
fn point(folder: &Path, url: &str, journey: &str, more: &[&str]) -> Value {
    let path = folder.join("journey.toml");
    std::fs::write(&path, journey).unwrap();
    let bundle = folder.join("b");
    let roomy = ["--journey", path.to_str().unwrap(), "--set", "profiles.quick.drain=10s"];
    let ended = plimsoll(&short("web-users", url, &bundle, &[&roomy[..], more].concat()));
    assert!(matches!(ended.code, Some(0 | 1)), "{ended:?}");
    result(&bundle)["points"][0].take()
}

/// gatling #2566: the time of what a redirect leads to is in no group. k6 #479, gatling #1749: a
/// cookie that the redirect set is lost on the way.
#[test]
fn a_page_has_the_time_of_its_redirects_and_their_cookies() {
    let (shop, temp_dir) = (Shop::start(), tempfile::tempdir().unwrap());
    let hop = "[[page]]\nname = \"hop\"\npath = \"/hop\"\nexpect.content = \"landed\"\n";
    let point = point(temp_dir.path(), &shop.url(), hop, &["--users", "2", "-n", "12"]);
    assert_eq!(point["errors"], serde_json::json!({}), "{point}");
    let log = shop.log();
    let logged = |line: &str, status| log.get(&(line.to_owned(), status)).copied().unwrap_or(0);
    let landed = logged("GET /landing", 200);
    assert_eq!(point["ops"]["hop"]["count"], logged("GET /hop", 302) + landed, "{log:?}");
    let slow = SLOW.as_nanos() as u64;
    assert!(point["ops"]["hop"]["page_ns"]["mean"].as_f64() >= Some(slow as f64), "{point}");
}

/// xk6-browser #544: failures, which come at once, are in the times of pages.
#[test]
fn a_page_that_failed_has_no_time() {
    let (shop, temp_dir) = (Shop::start(), tempfile::tempdir().unwrap());
    let journeys = r#"
[[journey]]
name = "patient"
[[journey.page]]
name = "slow"
path = "/slow"

[[journey]]
name = "lost"
weight = 4
[[journey.page]]
name = "nowhere"
path = "/nowhere"
"#;
    let point = point(temp_dir.path(), &shop.url(), journeys, &["--users", "2", "-n", "40"]);
    let (failed, times) = (&point["errors"]["status:404"], &point["journeys"]["time_ns"]);
    assert!(failed.as_u64() > times["n"].as_u64(), "{failed} {times}");
    assert!(times["mean"].as_f64() >= Some(SLOW.as_nanos() as f64), "{times}");
    assert_eq!(point["ops"]["lost.nowhere"]["page_ns"], Value::Null, "{times}");
    assert_eq!(point["journeys"]["failed"], *failed);
}

/// gatling #3560, jmeter-http-plugin #172: users share TLS sessions, or keep them beyond their own.
#[test]
fn the_tls_sessions_of_a_user_are_nobody_elses() {
    let journey = r#"
[[page]]
name = "home"
path = "/home"
parallel = 3

[[page.request]]
path = "/picture"
repeat = "3"
"#;
    for server in WebPeer::all() {
        let temp_dir = tempfile::tempdir().unwrap();
        let trust = format!("workload.tls_ca_file={}", server.file("certificate.pem"));
        let resume = ["--set", &trust, "--set", "workload.tls_resumption=on"];
        let load = ["--users", "2", "-n", "120"];
        let flags = [&resume[..], &load].concat();
        let point = point(temp_dir.path(), &server.tls_url(""), journey, &flags);
        assert_eq!(point["errors"], serde_json::json!({}), "{}: {point}", server.name);
        let log = server.logged_requests(120);
        let homes: Vec<_> = log.iter().filter(|request| request.target == "/home").collect();
        assert_eq!(point["journeys"]["begun"], homes.len(), "{}", server.name);
        assert!(homes.iter().all(|home| !home.is_resumed), "{}: {homes:?}", server.name);
        let connections: BTreeMap<&str, bool> =
            log.iter().map(|request| (&*request.connection, request.is_resumed)).collect();
        assert!(connections.len() > homes.len(), "{}: {connections:?}", server.name);
        assert!(connections.values().any(|is_resumed| *is_resumed), "{}", server.name);
    }
}

/// gatling #2293, #4717: a certificate for each user. Each is in the server's log with the user's
/// own name, over HTTP/1.1 and HTTP/2, with sessions resumed or not.
#[test]
fn each_user_has_their_own_certificate() {
    let pages = "certificate = \"pem\"\n[[page]]\nname = \"own\"\npath = \"/{{user.name}}\"\n";
    let data = "[[data]]\nname = \"user\"\nfile = \"users.csv\"\n";
    for server in WebPeer::all() {
        let temp_dir = tempfile::tempdir().unwrap();
        let row = |(name, folder): (&str, &str)| {
            format!("{name},{}\n", server.file(&format!("{folder}/both.pem")))
        };
        let rows: String = CLIENTS.into_iter().map(row).collect();
        std::fs::write(temp_dir.path().join("users.csv"), format!("name,pem\n{rows}")).unwrap();
        let journey = format!("{data}{pages}");
        let trust = format!("workload.tls_ca_file={}", server.file("certificate.pem"));
        for more in [&["--http", "2"][..], &["--set", "workload.tls_resumption=on"]] {
            let load = ["--set", &trust, "--users", "3", "-n", "30"];
            let flags = [&load[..], more].concat();
            let point = point(temp_dir.path(), &server.tls_url(""), &journey, &flags);
            assert_eq!(point["errors"], serde_json::json!({}), "{}: {point}", server.name);
            std::fs::remove_dir_all(temp_dir.path().join("b")).unwrap();
        }
        let log = server.logged_requests(60);
        for request in &log {
            assert_eq!(request.client, format!("CN={}", &request.target[1..]), "{}", server.name);
        }
        for (name, _) in CLIENTS {
            assert!(log.iter().any(|request| request.target[1..] == *name), "{name}");
        }
        let refused = |url: &str, more: &[&str], parts: &[&str]| {
            let path = temp_dir.path().join("journey.toml");
            let flags = [&["--journey", path.to_str().unwrap(), "--users", "2"], more].concat();
            plimsoll(&short("web-users", url, &temp_dir.path().join("no"), &flags)).check(2, parts);
        };
        refused(&server.url(""), &[], &["have certificates, and a target is not https"]);
        std::fs::write(temp_dir.path().join("users.csv"), "name,pem\nann,no.pem\n").unwrap();
        let parts = ["journey.toml:", "row 1", "no.pem", "it must be a PEM file"];
        refused(&server.tls_url(""), &["--set", &trust], &parts);
    }
}
