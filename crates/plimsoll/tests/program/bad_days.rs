//! Servers that are away, broken or wrong: each with its message and exit code.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use plimsoll_http::fileset::{FileSet, MARKER};
use plimsoll_protocol::marker::Marker as _;
use plimsoll_testkit::fault_server::{Fault, FaultServer, RequestFacts};
use serde_json::{Value, json};

use plimsoll_testkit::program::{
    Ended, broken_rules, command, plimsoll, points_finished, result, short, wait_for, wait_until,
};

fn against(server: &FaultServer, out: &Path, more: &[&str]) -> Ended {
    plimsoll(&short(
        "web-url",
        &server.url(),
        out,
        &[&["--rate", "200", "--no-check"], more].concat(),
    ))
}

/// Runs web-url against a server with that fault and expects errors of `class` over the limit.
fn check_errors(fault: Fault, class: &str) {
    let temp_dir = tempfile::tempdir().unwrap();
    let bundle = temp_dir.path().join("b");
    let server = FaultServer::with_fixed_body(200, move |_| fault.clone());
    against(&server, &bundle, &[]).check(1, &["invalid"]);
    let result = result(&bundle);
    assert!(broken_rules(&result).contains(&"errors".to_owned()), "{result}");
    let errors = result["points"][0]["errors"].as_object().unwrap();
    assert!(errors.contains_key(class), "{class} in {errors:?}");
}

#[test]
fn servers_of_a_run_listen_on_an_address_of_this_host_that_was_asked_for() {
    let temp_dir = tempfile::tempdir().unwrap();
    let bundle = temp_dir.path().join("away");
    let run = |suite: &str, bundle: &Path, ip: &str| {
        plimsoll(&short(suite, "builtin:", bundle, &["--listen-on", ip, "--points", "2"]))
    };
    // RFC 5737: unassigned.
    run("transactions", &bundle, "203.0.113.9")
        .check(3, &["cannot listen on 203.0.113.9: ", "`ip address` shows"]);
    assert!(!bundle.exists());
    for (suite, ip) in [
        ("transactions", "127.0.0.2"),
        ("nfs-v3", "127.0.0.2"),
        ("web-static", "127.0.0.2"),
        ("disk-mix", "::1"),
    ] {
        let bundle = temp_dir.path().join(suite);
        let ended = run(suite, &bundle, ip);
        // A busy machine may make it invalid.
        assert!(matches!(ended.code, Some(0 | 1)), "{ended:?}");
        let topology = result(&bundle)["disclosure"]["topology"].to_string();
        assert!(topology.contains(ip), "{topology}");
    }
}

#[test]
fn a_host_that_cannot_be_resolved_ends_with_3_before_any_bundle() {
    let temp_dir = tempfile::tempdir().unwrap();
    let bundle = temp_dir.path().join("b");
    plimsoll(&short("web-url", "http://no-such-host.invalid/", &bundle, &[]))
        .check(3, &["no-such-host.invalid", "cannot be resolved"]);
    assert!(!bundle.exists());
}

#[test]
fn a_refused_port_ends_with_3_and_the_address() {
    let temp_dir = tempfile::tempdir().unwrap();
    let mut server = FaultServer::with_fixed_body(1, |_| Fault::None);
    server.go_down();
    let address = server.address().to_string();
    against(&server, &temp_dir.path().join("b"), &[])
        .check(3, &[&address, "refuses the connection"]);
}

#[test]
fn a_tls_handshake_without_an_answer_ends_with_3_and_says_what_to_write() {
    let temp_dir = tempfile::tempdir().unwrap();
    let server = FaultServer::with_fixed_body(1, |_| Fault::None);
    let url = server.url().replace("http://", "https://");
    plimsoll(&short("web-url", &url, &temp_dir.path().join("b"), &[]))
        .check(3, &["no answer to the TLS handshake", "write http:// if it does not speak TLS"]);
}

#[test]
fn a_server_without_the_file_set_says_how_to_write_it() {
    let temp_dir = tempfile::tempdir().unwrap();
    let server = FaultServer::start(|_| None, |_| Fault::None);
    let (url, bundle) = (server.url(), temp_dir.path().join("b"));
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

/// A server with a file set, with this fault in each of its files.
fn with_file_set(fault: Fault) -> FaultServer {
    let set = FileSet::new(7, 2);
    let marker = set.marker().to_json();
    let content = move |path: &str| {
        if path.ends_with(MARKER) {
            return Some(marker.clone().into_bytes());
        }
        set.resolve(path).map(|id| set.content(id).to_vec())
    };
    let plan = move |facts: &RequestFacts| match facts.path.ends_with(MARKER) {
        true => Fault::None,
        false => fault.clone(),
    };
    FaultServer::start(content, plan)
}

#[test]
fn wrong_content_makes_a_run_invalid_whatever_the_limit() {
    let temp_dir = tempfile::tempdir().unwrap();
    let bundle = temp_dir.path().join("b");
    let server = with_file_set(Fault::FlippedByte);
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
    let temp_dir = tempfile::tempdir().unwrap();
    let bundle = temp_dir.path().join("b");
    let mut server = FaultServer::with_fixed_body(200, |_| Fault::None);
    let url = server.url();
    let more = [&["--points", "200,201,202", "--set", "load.mode=open"], &ROOMY[..]].concat();
    let mut child = command(&short("web-url", &url, &bundle, &more));
    let child = child.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    let child = child.spawn().unwrap();
    // Not between the points, where the program waits for a server that does not answer.
    wait_until("the second point has begun", || {
        bundle.join("intervals/point-02.hlog.partial").exists()
    });
    server.go_down();
    std::thread::sleep(Duration::from_millis(500));
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
    let temp_dir = tempfile::tempdir().unwrap();
    let bundle = temp_dir.path().join("b");
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
    let gone = format!("the server {url} went away during the load: it takes no connection");
    ended.check(3, &[&gone, "refuses the connection", "plimsoll resume"]);
    assert_eq!(points_finished(&bundle), 1);
    let lost = result(&bundle);
    assert_eq!(lost["points"][0]["not_counted"], "server_lost", "{lost}");
    assert_eq!(lost["points"][0]["limit"]["kind"], "unknown", "{lost}");
    let report = std::fs::read_to_string(bundle.join("report.html")).unwrap();
    let sentence = report.find(r#"<p class="executive">The server http"#);
    assert!(sentence.is_some(), "the first sentence says so: {report}");
    server.come_back();
    let resumed = plimsoll(&["resume", bundle.to_str().unwrap(), "--progress", "none"]);
    assert!(matches!(resumed.code, Some(0 | 1)), "{resumed:?}");
    check_made_again(&result(&bundle));
}

/// No load point has lost its server, and the report says that the first was made again.
fn check_made_again(result: &Value) {
    let points = result["points"].as_array().unwrap();
    let lost = |point: &&Value| point["not_counted"] == "server_lost";
    assert_eq!((points.len(), points.iter().filter(lost).count()), (2, 0), "{result}");
    assert_eq!(points[0]["errors"], json!({}), "{result}");
    let warnings = result["verdict"]["warnings"].as_array().unwrap();
    let lost = warnings.iter().find(|warning| warning["rule"] == "server_lost").unwrap();
    assert!(lost["text"].as_str().unwrap().contains("was made again"), "{lost}");
}

/// Of a run that this program makes, and of one that agents make.
#[test]
fn a_load_point_whose_server_came_back_is_made_again_at_once() {
    for more in [&[][..], &["--agents", "local"]] {
        let temp_dir = tempfile::tempdir().unwrap();
        let bundle = temp_dir.path().join("b");
        let mut server = FaultServer::with_fixed_body(200, |_| Fault::None);
        let url = server.url();
        let more = [&["--points", "200,201", "--set", "load.mode=open"], more, &ROOMY[..]].concat();
        let mut child = command(&short("web-url", &url, &bundle, &more));
        let child = child.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
        let child = child.spawn().unwrap();
        wait_until("the first point has begun", || {
            bundle.join("intervals/point-01.hlog.partial").exists()
        });
        server.go_down();
        wait_until("the first point has ended", || points_finished(&bundle) == 1);
        server.come_back();
        let ended = wait_for(child);
        ended.check(1, &["it is back, and the load point is made again"]);
        check_made_again(&result(&bundle));
    }
}

#[test]
fn a_run_without_a_finished_point_is_begun_again_and_not_resumed() {
    let temp_dir = tempfile::tempdir().unwrap();
    let bundle = temp_dir.path().join("b");
    let server = FaultServer::with_fixed_body(200, |_| Fault::None);
    let url = server.url();
    let more = ["--points", "200,201", "--set", "load.mode=open", "--for", "9s"];
    let mut child = command(&short("web-url", &url, &bundle, &more));
    let child = child.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    let child = child.spawn().unwrap();
    wait_until("the first point has begun", || {
        bundle.join("intervals/point-01.hlog.partial").exists()
    });
    plimsoll_testkit::program::signal(&child, rustix::process::Signal::INT);
    let ended = wait_for(child);
    ended.check(4, &["no load point was finished: begin the run again"]);
    assert_eq!(points_finished(&bundle), 0);
    let page = std::fs::read_to_string(bundle.join("report.html")).unwrap();
    for shown in [&ended.err, &ended.out, &page] {
        assert!(!shown.contains("plimsoll resume"), "{shown}");
    }
}

#[test]
fn an_error_now_and_then_below_the_limit_is_reported_and_allowed() {
    let temp_dir = tempfile::tempdir().unwrap();
    let bundle = temp_dir.path().join("b");
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

/// Runs against a server that sends trailing bytes after every reply, and expects errors of the
/// ops, in the summary, the result and the report. The engine's own tests count each.
#[track_caller]
fn check_trailing_bytes(server: &FaultServer, suite: &str, more: &[&str]) {
    let temp_dir = tempfile::tempdir().unwrap();
    let bundle = temp_dir.path().join("b");
    let ended = plimsoll(&short(suite, &server.url(), &bundle, &[&ROOMY, more].concat()));
    ended.check(
        1,
        &["invalid", concat!("- ", "surplus", ", "), "the server sent 7 bytes behind the reply"],
    );
    let result = result(&bundle);
    assert!(broken_rules(&result).contains(&"errors".to_owned()), "{result}");
    let point = &result["points"][0];
    let sum = |field: &str, of: fn(&Value) -> u64| -> u64 {
        point[field].as_object().unwrap().values().map(of).sum()
    };
    let (due, failed) = (sum("ops", |op| int(&op["count"])), sum("errors", int));
    assert!(failed > 0 && failed <= due, "an op fails once: {failed} of {due}");
    let report = report_of(&bundle);
    assert!(report.contains("the server sent bytes behind the reply"), "{report}");
}

fn int(value: &Value) -> u64 {
    value.as_u64().unwrap()
}

/// The report of a bundle as Markdown.
fn report_of(bundle: &Path) -> String {
    let file = bundle.join("report.md");
    let arguments = ["report", bundle.to_str().unwrap(), "--md", file.to_str().unwrap()];
    plimsoll(&arguments).check(0, &[]);
    std::fs::read_to_string(file).unwrap()
}

fn trailing_bytes(after_ms: u64) -> Fault {
    Fault::TrailingBytes { bytes: b"another".to_vec(), after: Duration::from_millis(after_ms) }
}

#[test]
fn a_surplus_that_comes_with_the_reply_fails_its_op_whether_the_body_is_kept_or_discarded() {
    for body_bytes in [200, 100_000] {
        let server = FaultServer::with_fixed_body(body_bytes, |_| trailing_bytes(0));
        check_trailing_bytes(&server, "web-url", &["--rate", "40", "--no-check"]);
    }
}

#[test]
fn a_surplus_that_comes_20_ms_later_fails_its_op_whether_the_body_is_kept_or_discarded() {
    for body_bytes in [200, 100_000] {
        let server = FaultServer::with_fixed_body(body_bytes, |_| trailing_bytes(20));
        check_trailing_bytes(&server, "web-url", &["--rate", "40", "--no-check"]);
    }
}

#[test]
fn a_surplus_fails_an_op_whose_content_was_verified_and_right() {
    for after_ms in [0, 20] {
        let server = with_file_set(trailing_bytes(after_ms));
        let more = ["--points", "40", "--set", "workload.verify_one_in=1"];
        check_trailing_bytes(&server, "web-static", &more);
    }
}

/// How often `part` begins a line of the summary.
fn lines(ended: &Ended, part: &str) -> usize {
    ended.out.lines().filter(|line| line.trim_start().starts_with(part)).count()
}

#[test]
fn a_server_that_hangs_up_and_then_falls_silent_is_described_so_before_all_else() {
    let temp_dir = tempfile::tempdir().unwrap();
    let bundle = temp_dir.path().join("b");
    // At 200 ops/s: a connection carries one op, and after two seconds none is answered.
    let server = FaultServer::with_fixed_body(20, |facts| match facts.index {
        // The program checks that the server answers.
        0..10 => Fault::None,
        index @ ..400 if index % 4 > 0 => Fault::AnnouncedCloseAfterReply,
        index if index % 8 == 4 => Fault::Silence,
        _ => Fault::CloseBeforeReply,
    });
    let more = ["--set", "profiles.quick.measure=4s", "--timeout", "1s"];
    let ended = against(&server, &bundle, &more);
    ended.check(1, &["  Errors\n  - point 1: the server refused or closed the connections of "]);
    let text = ended.out.split("before replying; from second ").nth(1);
    let text = text.unwrap_or_else(|| panic!("{}", ended.out));
    let (second, rest) = text.split_once(' ').unwrap();
    assert!((1..=4).contains(&second.parse::<u32>().unwrap()), "{}", ended.out);
    assert!(rest.starts_with("on nothing answered; "), "{}", ended.out);
    assert_eq!((lines(&ended, "- transport, "), lines(&ended, "- timeout, ")), (1, 1), "{ended:?}");
    assert!(ended.out.contains("the server closed the connection before the reply began"));
    let report = report_of(&bundle);
    let connections = report.find("Connections were lost:").unwrap();
    assert!(connections < report.find("Why these figures").unwrap(), "{report}");
}
