//! curl, a foreign client, reports every fault correctly.

use std::time::Duration;

use plimsoll_testkit::fault_server::{Fault, FaultServer, Ignore};
use plimsoll_testkit::peers::{CurlReply, curl};

const BODY_BYTES: usize = 1_000;

fn fetch_with_curl(fault: Fault, more: &[&str]) -> Option<CurlReply> {
    let server = FaultServer::with_fixed_body(BODY_BYTES, move |_| fault.clone());
    let mut arguments = vec!["--max-time", "2"];
    arguments.extend(more);
    let url = format!("{}some/file", server.url());
    arguments.push(&url);
    curl(&arguments)
}

/// Exit codes of curl(1): 8 strange reply, 18 partial file, 28 timeout, 52 empty reply, 56 failure
/// in receiving.
fn check(fault: Fault, exit: i32) {
    let shown = format!("{fault:?}");
    if let Some(reply) = fetch_with_curl(fault, &[]) {
        assert_eq!(reply.exit, exit, "{shown}");
    }
}

#[test]
fn broken_replies_are_broken_in_their_own_way() {
    check(Fault::Truncated, 18);
    check(Fault::UnfinishedChunks, 18);
    check(Fault::BadChunkSize, 56);
    check(Fault::MalformedLength, 8);
    check(Fault::MalformedStatusLine, 1);
    check(Fault::ResetBeforeReply, 56);
    check(Fault::CloseBeforeReply, 52);
    check(Fault::Silence, 28);
}

#[test]
fn replies_that_are_only_strange_arrive_whole() {
    let right = vec![b'x'; BODY_BYTES];
    for fault in [
        Fault::None,
        Fault::Chunked(7),
        Fault::Late(Duration::from_millis(5)),
        Fault::SlowDrip { bytes: 300, pause: Duration::from_millis(1) },
        Fault::CloseAfterReply,
        Fault::AnnouncedCloseAfterReply,
        Fault::HugeHeader(50_000),
    ] {
        let shown = format!("{fault:?}");
        let Some(reply) = fetch_with_curl(fault, &[]) else { return };
        assert_eq!((reply.exit, &reply.output), (0, &right), "{shown}");
    }
}

#[test]
fn wrong_content_has_the_right_status_and_a_known_difference() {
    let Some(flipped) = fetch_with_curl(Fault::FlippedByte, &[]) else { return };
    assert_eq!(flipped.output.len(), BODY_BYTES);
    assert_eq!(flipped.output.iter().filter(|&&byte| byte != b'x').count(), 1);
    let Some(longer) = fetch_with_curl(Fault::WrongLength(5), &[]) else { return };
    assert_eq!((longer.exit, longer.output.len()), (0, BODY_BYTES + 5));
    let Some(shorter) = fetch_with_curl(Fault::WrongLength(-5), &[]) else { return };
    assert_eq!((shorter.exit, shorter.output.len()), (0, BODY_BYTES - 5));
}

#[test]
fn statuses_and_redirects_are_what_was_asked_for() {
    for (fault, status) in [
        (Fault::Status(404), "404"),
        (Fault::Status(503), "503"),
        (Fault::Redirect("/elsewhere".into()), "301"),
    ] {
        let more = ["--output", "/dev/null", "--write-out", "%{http_code}"];
        let Some(reply) = fetch_with_curl(fault, &more) else { return };
        assert_eq!(String::from_utf8_lossy(&reply.output), status);
    }
}

#[test]
fn a_plan_can_close_idle_connections_after_some_requests() {
    let server = FaultServer::with_fixed_body(10, |request| match request.on_connection {
        1 => Fault::CloseAfterReply,
        _ => Fault::None,
    });
    let url = server.url();
    let Some(reply) = curl(&[&url, &url, &url, &url]) else { return };
    assert_eq!((reply.exit, reply.output.len()), (0, 40));
    assert_eq!((server.requests(), server.accepted()), (4, 2));
}

#[test]
fn a_server_goes_down_and_comes_back_on_its_port() {
    let mut server = FaultServer::with_fixed_body(10, |_| Fault::None);
    let url = server.url();
    let exit = || curl(&["--max-time", "1", &url]).map(|reply| reply.exit);
    let Some(up) = exit() else { return };
    assert_eq!(up, 0);
    server.go_down();
    assert_eq!(exit(), Some(7), "refused");
    server.come_back();
    assert_eq!(exit(), Some(0));
    server.ignore_new_connections(Ignore::Yes);
    assert_eq!(exit(), Some(28), "it opens, and nothing answers");
    server.ignore_new_connections(Ignore::No);
    assert_eq!(exit(), Some(0));
}
