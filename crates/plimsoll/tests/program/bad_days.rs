//! Servers that are away, broken or wrong: each with its message and exit code.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use plimsoll_protocols::http::fileset::{FileSet, MARKER};
use plimsoll_testkit::fault_server::{Fault, FaultServer, RequestFacts};
use serde_json::json;

use crate::support::{
    Ended, broken_rules, command, plimsoll, points_finished, result, short, wait_for, wait_until,
};

fn against(server: &FaultServer, out: &Path, more: &[&str]) -> Ended {
    plimsoll(&short("web-url", &server.url(), out, &[&["--rate", "200"], more].concat()))
}

/// Runs web-url against a server with that fault and expects errors of `class` over the limit.
fn check_errors(fault: Fault, class: &str) {
    let place = tempfile::tempdir().unwrap();
    let bundle = place.path().join("b");
    let server = FaultServer::with_fixed_body(200, move |_| fault.clone());
    against(&server, &bundle, &[]).check(1, &["invalid"]);
    let result = result(&bundle);
    assert!(broken_rules(&result).contains(&"errors".to_owned()), "{result}");
    let errors = result["points"][0]["errors"].as_object().unwrap();
    assert!(errors.contains_key(class), "{class} in {errors:?}");
}

#[test]
fn a_host_that_cannot_be_resolved_ends_with_3_before_any_bundle() {
    let place = tempfile::tempdir().unwrap();
    let bundle = place.path().join("b");
    plimsoll(&short("web-url", "http://no-such-host.invalid/", &bundle, &[]))
        .check(3, &["no-such-host.invalid", "cannot be resolved"]);
    assert!(!bundle.exists());
}

#[test]
fn a_refused_port_ends_with_3_and_the_address() {
    let place = tempfile::tempdir().unwrap();
    let mut server = FaultServer::with_fixed_body(1, |_| Fault::None);
    server.go_down();
    let address = server.address().to_string();
    against(&server, &place.path().join("b"), &[]).check(3, &[&address, "refuses the connection"]);
}

#[test]
fn a_failed_tls_handshake_ends_with_3_and_says_how_to_trust() {
    let place = tempfile::tempdir().unwrap();
    let server = FaultServer::with_fixed_body(1, |_| Fault::None);
    let url = server.url().replace("http://", "https://");
    plimsoll(&short("web-url", &url, &place.path().join("b"), &[]))
        .check(3, &["TLS handshake", "workload.tls_ca_file"]);
}

#[test]
fn a_server_without_the_file_set_says_how_to_write_it() {
    let place = tempfile::tempdir().unwrap();
    let server = FaultServer::start(|_| None, |_| Fault::None);
    let (url, bundle) = (server.url(), place.path().join("b"));
    let arguments = short("web-static", &url, &bundle, &["--points", "50"]);
    let file = format!("{}{MARKER}: 404", server.url());
    plimsoll(&arguments).check(3, &[&file, "plimsoll prepare web-static DIR --peak N"]);
}

#[test]
fn statuses_over_the_limit_make_a_run_invalid() {
    check_errors(Fault::Status(404), "status:404");
    check_errors(Fault::Status(500), "status:500");
}

#[test]
fn truncated_and_malformed_replies_make_a_run_invalid() {
    check_errors(Fault::Truncated, "truncated");
    check_errors(Fault::MalformedStatusLine, "malformed");
    check_errors(Fault::MalformedLength, "malformed");
}

#[test]
fn a_header_of_one_megabyte_is_refused_without_being_kept() {
    check_errors(Fault::HugeHeader(1 << 20), "malformed");
}

#[test]
fn a_reset_connection_is_counted_as_transport() {
    check_errors(Fault::ResetBeforeReply, "transport");
}

#[test]
fn wrong_content_makes_a_run_invalid_whatever_the_limit() {
    let place = tempfile::tempdir().unwrap();
    let bundle = place.path().join("b");
    let set = FileSet::new(7, 2);
    let marker = set.marker().to_json();
    let content = move |path: &str| {
        if path.ends_with(MARKER) {
            return Some(marker.clone().into_bytes());
        }
        set.resolve(path).map(|id| set.content(id).to_vec())
    };
    let plan = |facts: &RequestFacts| match facts.path.ends_with(MARKER) {
        true => Fault::None,
        false => Fault::FlippedByte,
    };
    let server = FaultServer::start(content, plan);
    let more = ["--points", "50", "--set", "workload.verify_one_in=1"];
    plimsoll(&short("web-static", &server.url(), &bundle, &more)).check(1, &["invalid"]);
    let result = result(&bundle);
    assert!(broken_rules(&result).contains(&"corrupt".to_owned()), "{result}");
}

/// Points long enough that an outage lies within one, and a drain that waits for every reply.
const ROOMY: [&str; 4] =
    ["--set", "profiles.quick.measure=1500ms", "--set", "profiles.quick.drain=10s"];

#[test]
fn a_server_that_dies_and_comes_back_costs_errors_and_not_the_run() {
    let place = tempfile::tempdir().unwrap();
    let bundle = place.path().join("b");
    let mut server = FaultServer::with_fixed_body(200, |_| Fault::None);
    let url = server.url();
    let more = [&["--points", "200,201,202", "--set", "load.mode=open"], &ROOMY[..]].concat();
    let mut child = command(&short("web-url", &url, &bundle, &more));
    let child = child.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    let child = child.spawn().unwrap();
    // Not between the points, where the program waits for a server that is away.
    wait_until("the second point has begun", || {
        bundle.join("intervals/point-02.hlog.partial").exists()
    });
    server.go_down();
    std::thread::sleep(std::time::Duration::from_millis(500));
    server.come_back();
    let ended = wait_for(child);
    ended.check(1, &["invalid"]);
    assert_eq!(points_finished(&bundle), 3, "{}", ended.err);
    let result = result(&bundle);
    let errors = |point: usize| &result["points"][point]["errors"];
    assert!(errors(1)["transport"].as_u64().is_some_and(|n| n > 0), "{}", errors(1));
    assert_eq!((errors(0), errors(2)), (&json!({}), &json!({})));
    assert!(result["points"][2]["achieved_ops_per_s"].as_f64().unwrap() > 0.0);
}

#[test]
fn a_server_that_stays_away_ends_with_3_and_a_usable_bundle() {
    let place = tempfile::tempdir().unwrap();
    let bundle = place.path().join("b");
    let mut server = FaultServer::with_fixed_body(200, |_| Fault::None);
    let url = server.url();
    let more = ["--points", "200,201", "--set", "load.mode=open"];
    let mut child = command(&short("web-url", &url, &bundle, &more));
    let child = child.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    let child = child.spawn().unwrap();
    wait_until("the first point has begun", || {
        bundle.join("intervals/point-01.hlog.partial").exists()
    });
    server.go_down();
    let ended = wait_for(child);
    ended.check(3, &["refuses the connection", "plimsoll resume"]);
    assert_eq!(points_finished(&bundle), 1);
    assert!(bundle.join("report.html").exists());
}

#[test]
fn an_error_now_and_then_below_the_limit_is_reported_and_allowed() {
    let place = tempfile::tempdir().unwrap();
    let bundle = place.path().join("b");
    let failed = Arc::new(AtomicBool::new(false));
    let once = Arc::clone(&failed);
    let server = FaultServer::with_fixed_body(20, move |facts| {
        let fail = facts.index > 30 && !once.swap(true, Ordering::SeqCst);
        if fail { Fault::Status(503) } else { Fault::None }
    });
    against(&server, &bundle, &["--set", "rules.errors_max_ratio=0.5"]);
    let result = result(&bundle);
    assert!(!broken_rules(&result).contains(&"errors".to_owned()), "{result}");
    assert_eq!(result["points"][0]["errors"]["status:503"].as_u64(), Some(1), "{result}");
}
