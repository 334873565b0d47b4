//! Signs that point at a known cause: each is staged and found, and servers that are merely slow
//! get none.

use std::path::Path;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use serde_json::Value;

use plimsoll_testkit::fault_server::{Fault, FaultServer, Ignore, RequestFacts, Sockets};

use crate::support::{plimsoll, result};

const MS: fn(u64) -> Duration = Duration::from_millis;

/// A server whose every body is 100 bytes.
fn server(plan: impl Fn(&RequestFacts) -> Fault + Send + Sync + 'static) -> FaultServer {
    FaultServer::with_fixed_body(100, plan)
}

/// `result.json` of 5 s with that load.
fn run(targets: &[&FaultServer], load: &[&str]) -> Value {
    let place = tempfile::tempdir().unwrap();
    let bundle = place.path().join("b");
    let urls: Vec<String> = targets.iter().map(|server| server.url()).collect();
    let urls: Vec<&str> = urls.iter().map(String::as_str).collect();
    run_into(&bundle, &urls, load)
}

fn run_into(bundle: &Path, urls: &[&str], load: &[&str]) -> Value {
    let out = bundle.to_str().unwrap();
    let common = ["--for", "5s", "--out", out, "--progress", "none", "--workers", "1"];
    let ended = plimsoll(&[&["run", "web-url"], urls, &common, load].concat());
    let result = result(bundle);
    for hint in result["hints"].as_array().into_iter().flatten() {
        let kind = hint["hint"]["kind"].as_str().unwrap();
        assert!(ended.out.contains("hint: ") && ended.out.contains("docs/hints.md#"), "{kind}");
    }
    result
}

/// Kinds of the run's hints.
fn kinds(result: &Value) -> Vec<String> {
    let hints = result["hints"].as_array().into_iter().flatten();
    hints.map(|it| it["hint"]["kind"].as_str().unwrap().to_owned()).collect()
}

/// What the hint of this kind says.
#[track_caller]
fn found<'r>(result: &'r Value, kind: &str) -> &'r Value {
    let hints = result["hints"].as_array().into_iter().flatten();
    let found = hints.map(|it| &it["hint"]).find(|it| it["kind"] == kind);
    found.unwrap_or_else(|| panic!("no {kind} in {}; {}", result["hints"], signs(result)))
}

/// What would say why there is none.
fn signs(result: &Value) -> String {
    let point = &result["points"][0];
    let of_tcp = |it: &&Value| it["name"].as_str().is_some_and(|name| name.starts_with("host.tcp"));
    let tcp: Vec<_> = point["resources"].as_array().into_iter().flatten().filter(of_tcp).collect();
    format!("{} {tcp:?}", point["service_ns"])
}

#[test]
fn replies_in_two_writes_without_nodelay_are_told_as_delayed_acknowledgements() {
    let server = server(|_| Fault::TwoWrites(Duration::ZERO));
    server.prepare_sockets(Sockets::WithNagle);
    let result = run(&[&server], &["--clients", "8"]);
    let hint = found(&result, "delayed_ack");
    assert!(hint["share_ratio"].as_f64().unwrap() > 0.5, "{hint}");
    assert_eq!(kinds(&result), ["delayed_ack"]);
}

#[test]
fn lost_segments_are_told_as_retransmissions() {
    let server = server(|_| Fault::None);
    server.prepare_sockets(Sockets::Losing(0.02));
    let result = run(&[&server], &["--rate", "300", "--connections", "64"]);
    let hint = found(&result, "retransmitted");
    assert!(hint["ops"].as_u64().unwrap() >= 10, "{hint}");
}

#[test]
fn a_full_accept_queue_is_told_as_connects_tried_again() {
    let server = std::sync::Arc::new(server(|_| Fault::None));
    let stop = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let accepts = {
        let (server, stop) = (server.clone(), stop.clone());
        std::thread::spawn(move || {
            while !stop.load(std::sync::atomic::Ordering::SeqCst) {
                server.ignore_new_connections(Ignore::Yes);
                std::thread::sleep(MS(400));
                server.ignore_new_connections(Ignore::No);
                std::thread::sleep(MS(200));
            }
        })
    };
    let result = run(&[&server], &["--clients", "400", "--new-connection"]);
    stop.store(true, std::sync::atomic::Ordering::SeqCst);
    accepts.join().unwrap();
    let hint = found(&result, "syn_retransmitted");
    assert!(hint["listen_overflows"].as_u64().unwrap() > 0, "{hint}");
}

#[test]
fn a_server_that_is_slow_after_accepting_is_told_as_slow_on_new_connections() {
    let server = server(|facts| match facts.on_connection {
        0 => Fault::Late(MS(50)),
        19 => Fault::AnnouncedCloseAfterReply,
        _ => Fault::None,
    });
    let result = run(&[&server], &["--clients", "8"]);
    let hint = found(&result, "slow_new_connections");
    assert!(hint["new_p50_ns"].as_u64().unwrap() >= 48_000_000, "{hint}");
    assert_eq!(kinds(&result), ["slow_new_connections"]);
}

#[test]
fn the_slow_one_of_three_targets_is_told() {
    let servers = [1, 1, 12].map(|ms| server(move |_| Fault::Late(MS(ms))));
    let targets: Vec<&FaultServer> = servers.iter().collect();
    let result = run(&targets, &["--clients", "9"]);
    let hint = found(&result, "slow_target");
    assert_eq!(hint["target"], servers[2].url());
    assert_eq!(kinds(&result), ["slow_target"]);
}

#[test]
fn a_server_that_stops_for_a_while_again_and_again_is_told_with_its_period() {
    let started = OnceLock::new();
    let server = server(move |_| {
        let within = started.get_or_init(now).elapsed().as_millis() as u64 % 500;
        if within < 60 { Fault::Late(MS(60 - within)) } else { Fault::None }
    });
    let result = run(&[&server], &["--rate", "1000", "--connections", "32"]);
    let hint = found(&result, "even_pauses");
    let ms = |key: &str| hint[key].as_u64().unwrap() / 1_000_000;
    assert!((450..550).contains(&ms("period_ns")) && ms("length_ns") >= 40, "{hint}");
    assert_eq!(kinds(&result), ["even_pauses"]);
}

#[test]
fn servers_that_are_merely_slow_get_no_hint() {
    let late = [41, 200, 1_000].map(|ms| server(move |_| Fault::Late(MS(ms))));
    for server in &late {
        for load in [&["--clients", "16"][..], &["--clients", "16", "--new-connection"]] {
            let result = run(&[server], load);
            assert!(kinds(&result).is_empty(), "{load:?} {}", result["hints"]);
        }
    }
    let some_late = server(|facts| match facts.index % 50 {
        0 => Fault::Late(MS([41, 204, 1_000][(facts.index / 50 % 3) as usize])),
        _ => Fault::None,
    });
    let result = run(&[&some_late], &["--rate", "500", "--connections", "64"]);
    assert!(kinds(&result).is_empty(), "{}", result["hints"]);
    let in_parts = server(|_| Fault::TwoWrites(MS(41)));
    let result = run(&[&in_parts], &["--clients", "8"]);
    assert!(kinds(&result).is_empty(), "{}", result["hints"]);
}

#[allow(clippy::disallowed_methods, reason = "the server of this test keeps to a real clock")]
fn now() -> Instant {
    Instant::now()
}
