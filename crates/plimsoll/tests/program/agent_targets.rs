//! Targets, source addresses and networks of agents.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use plimsoll_http::server::TlsSource;
use plimsoll_http::server::nginx::{self, NginxRequest};
use plimsoll_servers::programs::LOOPBACK;
use plimsoll_testkit::peers::{require_peer, require_root};
use plimsoll_testkit::program::{Ended, Served, broken_rules, command, plimsoll, result, short};
use serde_json::Value;

use crate::web_peers::WebPeer;

/// A file of agents of this host, each with these lines.
fn agents_file(temp_dir: &Path, agents: &[&str]) -> PathBuf {
    let path = temp_dir.join("fleet.toml");
    let text = agents.iter().map(|lines| format!("[[agent]]\nat = \"exec:env\"\n{lines}\n"));
    std::fs::write(&path, text.collect::<String>()).unwrap();
    path
}

/// A run of web-url with these flags, which must be refused before it writes anything.
fn refused(temp_dir: &Path, target: &str, flags: &[&str]) -> Ended {
    let bundle = temp_dir.join("refused");
    let ended = plimsoll(&short("web-url", target, &bundle, flags));
    assert!(!bundle.exists(), "{ended:?}");
    ended
}

#[test]
fn agents_in_a_network_of_their_own_do_not_reach_loopback() {
    let Some(_) = require_peer("unshare").zip(require_root("a network namespace")) else { return };
    let temp_dir = tempfile::tempdir().unwrap();
    let agents = ["--agents", "exec:unshare --net"];
    let started = ["agent exec:unshare --net: it does not reach builtin:", "--listen-on ADDR"];
    refused(temp_dir.path(), "builtin:", &agents).check(2, &started);
    let on_loopback = [&agents[..], &["--listen-on", "127.0.0.2"]].concat();
    refused(temp_dir.path(), "builtin:", &on_loopback).check(2, &["would listen on 127.0.0.2"]);
    let server = Served::with("web", &[]);
    refused(temp_dir.path(), &server.url, &agents).check(2, &["by an address that agents reach"]);
}

#[test]
fn what_would_have_no_effect_or_no_way_is_refused() {
    let temp_dir = tempfile::tempdir().unwrap();
    let refused = |flags: &[&str]| refused(temp_dir.path(), "http://127.0.0.1:9/", flags);
    refused(&["--listen-on", "127.0.0.1"]).check(2, &["this run starts no server", "builtin:"]);
    // RFC 5737: unassigned.
    let source = ["source address 203.0.113.9: clients cannot connect from it", "`ip address`"];
    refused(&["--source", "127.0.0.1,203.0.113.9"]).check(2, &source);
    refused(&["--source", "::1"]).check(2, &["no way from it to 127.0.0.1", "`ip route get"]);
    let file = agents_file(temp_dir.path(), &["targets = [1]", "targets = [2]"]);
    let unknown = ["agent exec:env#2: targets: the run has no target 2", "1 = http://127.0.0.1:9/"];
    refused(&["--agents", file.to_str().unwrap()]).check(2, &unknown);
}

#[test]
fn an_agent_refuses_sources_that_its_host_has_not() {
    let temp_dir = tempfile::tempdir().unwrap();
    let file = agents_file(temp_dir.path(), &["sources = [\"203.0.113.9\"]"]);
    let expected = ["agent exec:env on ", ": source address 203.0.113.9: clients cannot connect"];
    refused(temp_dir.path(), "builtin:", &["--agents", file.to_str().unwrap()]).check(3, &expected);
}

#[test]
fn clients_of_an_agent_use_its_targets_and_find_their_data_there() {
    let temp_dir = tempfile::tempdir().unwrap();
    let agents = ["targets = [2]\nsources = [\"127.0.0.3\"]", "targets = [1]", ""];
    let file = agents_file(temp_dir.path(), &agents);
    for (suite, clients) in [("transactions", "12"), ("disk-mix", "6")] {
        let bundle = temp_dir.path().join(suite);
        let arguments = ["run", suite, "builtin:", "builtin:", "--profile", "quick", "--points"];
        let paths = ["--agents", file.to_str().unwrap(), "--out", bundle.to_str().unwrap()];
        let mut run = command(&[&arguments[..], &[clients, "--workers", "1"], &paths].concat());
        // No certificate of this host is there.
        let ended = run.env("XDG_STATE_HOME", temp_dir.path()).output().unwrap();
        // A busy machine may make it invalid.
        assert!(matches!(ended.status.code(), Some(0 | 1)), "{ended:?}");
        let result = result(&bundle);
        let point = &result["points"][0];
        assert_eq!(point["errors"], Value::Object(serde_json::Map::new()), "{point}");
        let of = |at: usize| point["per_target"][at]["achieved_ops_per_s"].as_f64().unwrap();
        // On a machine that is very busy nothing may have been done at all.
        let is_idle = broken_rules(&result).contains(&"nothing_done".to_owned());
        assert!(is_idle || (of(0) > 0.0 && of(1) > 0.0), "{}", point["per_target"]);
        check_disclosed(&result["disclosure"]);
        let report = std::fs::read_to_string(bundle.join("report.html")).unwrap();
        assert!(report.contains("The agents and their ways to the servers"), "{suite}");
        let hosts = "3 generators on 1 host, the server&#x27;s own among them";
        assert!(report.contains(hosts), "{suite}");
    }
}

/// Not all servers agree on HTTP/2. An agent that checked only its own would use it.
#[test]
fn agents_speak_the_version_of_http_that_the_controller_has_decided_on() {
    let Some(peer) = WebPeer::nginx() else { return };
    let temp_dir = tempfile::tempdir().unwrap();
    std::fs::write(temp_dir.path().join("index.html"), "over HTTP/1.1 alone").unwrap();
    let http1 = nginx::start(&NginxRequest {
        listen_on: LOOPBACK,
        root: temp_dir.path().to_owned(),
        cores: Vec::new(),
        tls: Some(TlsSource::SelfSigned),
        search: None,
        remove_when_killed: None,
        suffix: None,
    });
    let http1 = http1.unwrap();
    let file = agents_file(temp_dir.path(), &["targets = [1]", "targets = [2]"]);
    let run = |name: &str, second: &str| {
        let bundle = temp_dir.path().join(name);
        let fleet = ["--agents", file.to_str().unwrap(), "--http", "auto", "-k"];
        let more = [&[second, "--clients", "2"], &fleet[..]].concat();
        let before = peer.logged_requests(0).len();
        let ended = plimsoll(&short("web-url", &peer.tls_url(""), &bundle, &more));
        assert!(matches!(ended.code, Some(0 | 1)), "{ended:?}");
        let point = &result(&bundle)["points"][0];
        assert_eq!(point["errors"].as_object().unwrap().len(), 0, "{point}");
        // The check of the server and its load, which a very busy machine may not manage.
        let rate = point["per_target"][0]["achieved_ops_per_s"].as_f64().unwrap();
        let least = if rate > 0.0 { 2 } else { 1 };
        let requests = peer.logged_requests(before as u64 + least).split_off(before);
        requests.into_iter().map(|one| one.protocol).collect::<BTreeSet<_>>()
    };
    assert_eq!(run("two", &http1.url()), BTreeSet::from(["HTTP/1.1".to_owned()]));
    assert_eq!(run("one", &peer.tls_url("a")), BTreeSet::from(["HTTP/2.0".to_owned()]));
}

fn check_disclosed(disclosure: &Value) {
    let agents = disclosure["agents"].as_array().unwrap();
    let routes = |at: usize| agents[at]["ways"].as_array().unwrap();
    assert_eq!([0, 1, 2].map(|at| routes(at).len()), [1, 1, 2], "{disclosure}");
    let address = |at: usize| &disclosure["targets"][at]["address"];
    assert_eq!(&routes(0)[0]["address"], address(1));
    assert_eq!(&routes(1)[0]["address"], address(0));
    assert_eq!(routes(0)[0]["interface"], "lo");
    assert_eq!(agents[0]["sources"][0], "127.0.0.3");
    assert_eq!(disclosure["topology"][0]["name"], "coordinator");
    let not_verified = disclosure["not_verified"].to_string();
    assert!(not_verified.contains("plimsoll calibrate --agents WHERE"), "{not_verified}");
}

#[test]
fn source_addresses_that_were_asked_for_are_used_and_disclosed() {
    let temp_dir = tempfile::tempdir().unwrap();
    let bundle = temp_dir.path().join("sources");
    let flags = ["--source", "127.0.0.5,127.0.0.9", "--clients", "4"];
    let ended = plimsoll(&short("web-url", "builtin:", &bundle, &flags));
    assert!(matches!(ended.code, Some(0 | 1)), "{ended:?}");
    let setup = result(&bundle)["disclosure"]["setup"].to_string();
    assert!(setup.contains("127.0.0.5, 127.0.0.9, as asked for"), "{setup}");
}
