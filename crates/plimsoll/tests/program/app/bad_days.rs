//! Servers that are no transaction servers, refuse, die, come back or fall silent: message, exit
//! code, counts.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Stdio};
use std::thread;

use plimsoll_app::wire::{HELLO_BYTES, Refusal, Welcome};
use rustix::process::Signal;
use serde_json::Value;

use plimsoll_testkit::program::{
    Ended, Served, command, plimsoll, points_finished, result, short, signal, wait_for, wait_until,
};

/// The reference server with its segments in `root`, so that nothing is left when it is killed.
pub fn serve_below(root: &Path) -> Served {
    Served::with("app", &["--root", root.to_str().unwrap()])
}

/// A server that gives every client this greeting and waits for its end.
fn greeter(greeting: Vec<u8>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    // Ends with the process: it sleeps in accept.
    thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let greeting = greeting.clone();
            thread::spawn(move || greet(client, &greeting));
        }
    });
    address
}

fn greet(mut client: TcpStream, greeting: &[u8]) {
    let mut hello = [0; HELLO_BYTES];
    let _ = client.read_exact(&mut hello).and_then(|()| client.write_all(greeting));
    let _ = client.read(&mut hello);
}

#[track_caller]
fn refused(url: &str, more: &[&str], code: i32, parts: &[&str]) {
    let temp_dir = tempfile::tempdir().unwrap();
    let bundle = temp_dir.path().join("b");
    let more = [&["--points", "2"], more].concat();
    plimsoll(&short("transactions", url, &bundle, &more)).check(code, parts);
    assert!(!bundle.exists(), "nothing is left of a run that never began");
}

#[test]
fn dead_ports_and_other_protocols_are_named() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    refused(&format!("app://{free}"), &[], 3, &["see whether the server runs there"]);
    let web = greeter(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n".to_vec());
    let parts = ["begins with [48, 54, 54, 50]", "a transaction server listens on that port"];
    refused(&format!("app://{web}"), &[], 3, &parts);
    refused("http://127.0.0.1:1/", &[], 2, &["app"]);
}

#[test]
fn servers_that_refuse_are_told_with_the_next_move() {
    let mut other = Welcome::refused(Refusal::Version).encode();
    other[5] = 9;
    let at = format!("app://{}", greeter(other.to_vec()));
    refused(&at, &[], 3, &["speaks version 9", "of the same version"]);
    let full = Welcome::refused(Refusal::Full).encode();
    let at = format!("app://{}", greeter(full.to_vec()));
    refused(&at, &[], 3, &["no more connections", "--connections-max"]);
}

#[test]
fn a_calibrated_server_is_asked_for_client_server_transactions_only() {
    let server = Served::with("app", &["--calibrated", "service=const:1ms,servers=4"]);
    refused(&server.url, &[], 2, &["is calibrated", "client_server"]);
    let temp_dir = tempfile::tempdir().unwrap();
    let bundle = temp_dir.path().join("b");
    let mix = ["processor", "server_client", "random_read", "random_write"]
        .map(|kind| format!("workload.mix.{kind}=0"));
    let set: Vec<&str> = mix.iter().flat_map(|set| ["--set", set]).collect();
    let more = [&["--points", "2", "--set", "profiles.quick.drain=20s"], &set[..]].concat();
    let ended = plimsoll(&short("transactions", &server.url, &bundle, &more));
    assert!(matches!(ended.code, Some(0 | 1)), "{ended:?}");
    assert_eq!(result(&bundle)["points"][0]["errors"], serde_json::json!({}), "{ended:?}");
    let text = std::fs::read_to_string(bundle.join("journal.jsonl")).unwrap();
    assert!(text.contains("calibrated: replies leave after times"), "the deviation is named");
}

/// Starts a run with one long point; returns once its load has begun.
fn begin(url: &str, bundle: &Path, more: &[&str]) -> Child {
    let patient = ["--points", "4", "--set", "profiles.quick.measure=3s"];
    let more = [&patient[..], more].concat();
    let mut run = command(&short("transactions", url, bundle, &more));
    let child = run.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let journal = bundle.join("journal.jsonl");
    let begun = || {
        let text = std::fs::read_to_string(&journal).unwrap_or_default();
        text.contains("point_started")
    };
    wait_until("the load has begun", begun);
    thread::sleep(std::time::Duration::from_millis(500));
    child
}

fn point(bundle: &Path) -> Value {
    result(bundle)["points"][0].clone()
}

#[test]
fn a_server_that_is_killed_ends_the_run_and_hides_nothing() {
    let (temp_dir, root) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let server = serve_below(&root.path().join("segments"));
    let bundle = temp_dir.path().join("b");
    let run = begin(&server.url, &bundle, &[]);
    drop(server);
    let ended: Ended = wait_for(run);
    ended.check(3, &["went away during the load", "plimsoll resume"]);
    assert_eq!(point(&bundle)["not_counted"], "server_lost");
    let errors = point(&bundle)["errors"].clone();
    let failed = errors["transport"].as_u64().unwrap();
    // Four clients, ten tries a second each for two and a half seconds.
    assert!((1..1_000).contains(&failed), "a dead server is tried with pauses: {errors}");
}

#[test]
fn clients_go_on_when_the_server_comes_back() {
    let (temp_dir, root) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let segments = root.path().join("segments");
    let server = serve_below(&segments);
    let listen = server.address().to_string();
    let bundle = temp_dir.path().join("b");
    let run = begin(&server.url, &bundle, &["--set", "profiles.quick.measure=6s"]);
    drop(server);
    let earlier_flags = ["--listen", &listen, "--root", segments.to_str().unwrap()];
    let again = Served::start(command(
        &[&["serve", "app", "--stop-with-stdin"], &earlier_flags[..]].concat(),
    ));
    let ended: Ended = wait_for(run);
    assert!(matches!(ended.code, Some(0 | 1)), "{ended:?}");
    let point = point(&bundle);
    assert_eq!(point["clients_participating"], 4, "{ended:?}");
    assert!(point["errors"].get("corrupt").is_none(), "segments outlive the server: {point}");
    drop(again);
}

#[test]
fn a_server_that_falls_silent_costs_each_client_one_timeout() {
    let (temp_dir, root) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let server = serve_below(&root.path().join("segments"));
    let bundle = temp_dir.path().join("b");
    // Room for a timeout, however late the server is stopped.
    let long = ["--set", "op_timeout=2s", "--set", "profiles.quick.measure=6s"];
    let run = begin(&server.url, &bundle, &long);
    signal(server.child(), Signal::STOP);
    let ended: Ended = wait_for(run);
    signal(server.child(), Signal::CONT);
    ended.check(1, &["invalid"]);
    let timeouts = point(&bundle)["errors"]["timeout"].as_u64().unwrap();
    assert!((4..=12).contains(&timeouts), "{timeouts}");
}

#[test]
fn ctrl_c_while_segments_are_filled_ends_with_4() {
    let root = tempfile::tempdir().unwrap();
    let segments = root.path().join("segments");
    let server = serve_below(&segments);
    let mut fill = command(&["prepare", "transactions", &server.url, "--peak", "60"]);
    let fill = fill.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    wait_until("segments are filled", || segments.join("client-000001.segment").exists());
    signal(&fill, Signal::INT);
    wait_for(fill).check(4, &["is used again"]);
}

#[test]
fn ctrl_c_within_a_point_keeps_those_before_it() {
    let (temp_dir, root) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let server = serve_below(&root.path().join("segments"));
    let bundle = temp_dir.path().join("b");
    let more = ["--points", "1,2,3", "--set", "profiles.quick.measure=1s"];
    let mut run = command(&short("transactions", &server.url, &bundle, &more));
    let run = run.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    wait_until("a point has ended", || points_finished(&bundle) > 0);
    signal(&run, Signal::INT);
    wait_for(run).check(4, &["plimsoll resume"]);
    let resumed = plimsoll(&["resume", bundle.to_str().unwrap(), "--progress", "none"]);
    assert!(matches!(resumed.code, Some(0 | 1)), "{resumed:?}");
    assert_eq!(result(&bundle)["points"].as_array().unwrap().len(), 3);
}
