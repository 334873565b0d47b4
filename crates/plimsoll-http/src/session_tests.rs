//! Sessions driven by hand: the calls of the driver, and the outcome of each op.

use plimsoll_engine::interface::{Link, Session};
use plimsoll_model::nonconformity::{Nonconformity, NonconformityKind};
use plimsoll_model::outcome::{ErrorClass, OpStatus, Outcome};
use plimsoll_model::units::Nanos;
use proptest::prelude::*;

use super::parameters::Connections::{KeepAlive, PerRequest};
use super::reader::CAPTURE_BYTES_MAX;
use super::session::{DISCARD_BYTES_MIN, HEAD_READ_BYTES, HttpSession};
use super::test_io::*;
use super::wire::head::HEAD_BYTES_MAX;
use super::wire::request::Method;

fn failed(class: ErrorClass) -> OpStatus {
    OpStatus::Failed(class)
}

/// Outcome and explanation when a new client of one URL gets `reply` and then the end.
fn outcome_of(reply: &[u8]) -> (Outcome, String) {
    let mut bench = Bench::new(url_site(Method::GET));
    let link = bench.issue_and_connect(url_op(Method::GET));
    bench.bytes(link, reply);
    if bench.io.done.is_empty() {
        bench.eof(link);
    }
    (bench.last(), bench.io.detail)
}

#[test]
fn a_kept_connection_is_opened_once_and_carries_every_op() {
    let mut bench = Bench::new(file_site(KeepAlive));
    let link = bench.issue_and_connect(file_op(SMALL));
    let content = file_set().content(SMALL).to_vec();
    bench.bytes(link, &reply(&content));
    bench.issue(file_op(SMALL));
    bench.bytes(link, &reply(&content));
    assert_eq!((bench.io.links, bench.io.done.len(), bench.io.closed.len()), (1, 2, 0));
    let expected = Outcome {
        kind: file_op(SMALL).kind,
        status: OpStatus::Ok,
        bytes_read: 1024,
        bytes_written: 0,
        ambiguous: false,
    };
    assert_eq!(bench.io.done, [expected, expected]);
    assert_eq!(bench.session.take_counters().verified, 2);
    assert_eq!(bench.session.take_counters().verified, 0);
    let request = String::from_utf8(bench.io.sent[0].1.clone()).unwrap();
    assert!(request.starts_with("GET /dir00001/class1_1 HTTP/1.1\r\nHost: h\r\n"), "{request}");
}

#[test]
fn per_request_leaves_the_closing_to_the_server() {
    let mut bench = Bench::new(file_site(PerRequest));
    let first = bench.issue_and_connect(file_op(SMALL));
    assert!(bench.io.sent[0].1.ends_with(b"Connection: close\r\n\r\n"));
    let content = file_set().content(SMALL).to_vec();
    bench.bytes(first, &reply(&content));
    assert_eq!(bench.last().status, OpStatus::Ok);
    assert!(bench.io.closed.is_empty());
    let second = bench.issue_and_connect(file_op(SMALL));
    assert_ne!(first, second);
    bench.eof(first);
    assert_eq!(bench.io.closed, [first]);
    assert!(!bench.session.has_room());
    bench.bytes(second, &reply(&content));
    assert_eq!(bench.io.done.len(), 2);
}

#[test]
fn a_kept_connection_that_ends_before_the_reply_is_tried_again_once() {
    let mut bench = Bench::new(url_site(Method::GET));
    let first = bench.issue_and_connect(url_op(Method::GET));
    bench.bytes(first, &reply(b"x"));
    bench.issue(url_op(Method::GET));
    bench.reset(first);
    let second = Link(bench.io.links);
    bench.session.on_connected(second, bench.now, &mut bench.io);
    bench.bytes(second, &reply(b"x"));
    // A GET changes nothing, whichever try it was that worked.
    assert_eq!((bench.last().status, bench.last().ambiguous), (OpStatus::Ok, false));
    bench.issue(url_op(Method::GET));
    bench.eof(second);
    bench.reset(Link(bench.io.links));
    assert_eq!(bench.last().status, failed(ErrorClass::Transport));
    assert_eq!((bench.io.links, bench.io.done.len()), (3, 3));
}

#[test]
fn a_new_connection_that_ends_early_is_an_error() {
    let mut bench = Bench::new(url_site(Method::GET));
    bench.issue(url_op(Method::GET));
    bench.reset(Link(1));
    assert_eq!(bench.last().status, failed(ErrorClass::Transport));
    assert!(
        bench.io.detail.starts_with("GET http://h/page: Connection reset"),
        "{}",
        bench.io.detail
    );
    assert_eq!(outcome_of(b"").0.status, failed(ErrorClass::Transport));
    assert_eq!(outcome_of(b"HTTP/1.1 2").0.status, failed(ErrorClass::Truncated));
    let (outcome, detail) = outcome_of(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc");
    assert_eq!((outcome.status, outcome.bytes_read), (failed(ErrorClass::Truncated), 3));
    assert!(detail.contains("closed the connection after 3 bytes"), "{detail}");
}

#[test]
fn a_refusal_keeps_its_status_whatever_cuts_off_its_body() {
    let heads = ["HTTP/1.1 413 Too Large\r\nContent-Length: 9\r\n", "HTTP/1.0 401 No\r\n"];
    for (head, status) in heads.into_iter().zip([413, 401]) {
        let mut bench = Bench::new(url_site(Method::POST));
        let link = bench.issue_and_connect(url_op(Method::POST));
        bench.bytes(link, format!("{head}\r\nno").as_bytes());
        bench.reset(link);
        assert_eq!(bench.last().status, failed(ErrorClass::Status(status)));
        let detail = &bench.io.detail;
        assert!(
            detail.contains(&format!("status {status}, and then: Connection reset")),
            "{detail}"
        );
    }
    // Half of a good reply is no reply.
    let mut bench = Bench::new(url_site(Method::POST));
    let link = bench.issue_and_connect(url_op(Method::POST));
    bench.bytes(link, b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nok");
    bench.reset(link);
    assert_eq!(bench.last().status, failed(ErrorClass::Truncated));
}

#[test]
fn an_idle_connection_that_the_server_closes_is_replaced() {
    let mut bench = Bench::new(url_site(Method::GET));
    let first = bench.issue_and_connect(url_op(Method::GET));
    bench.bytes(first, &reply(b"x"));
    bench.eof(first);
    assert_eq!(bench.io.closed, [first]);
    let second = bench.issue_and_connect(url_op(Method::GET));
    bench.bytes(second, b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
    bench.issue(url_op(Method::GET));
    assert_eq!(bench.io.links, 3);
    assert!(bench.io.done.iter().all(|o| o.status == OpStatus::Ok && !o.ambiguous));
}

#[test]
fn bodies_end_where_the_reply_says() {
    let ok = |text: &str| {
        let (outcome, detail) = outcome_of(text.as_bytes());
        assert_eq!(outcome.status, OpStatus::Ok, "{text:?}: {detail}");
        outcome.bytes_read
    };
    assert_eq!(ok("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"), 0);
    assert_eq!(ok("HTTP/1.1 204 No Content\r\n\r\n"), 0);
    assert_eq!(ok("HTTP/1.1 304 Not Modified\r\nContent-Length: 99\r\n\r\n"), 0);
    assert_eq!(ok("HTTP/1.0 200 OK\r\n\r\nuntil the end"), 13);
    assert_eq!(ok("HTTP/1.1 200 OK\r\n\r\nuntil the end"), 13);
    assert_eq!(ok("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"), 3);
    assert_eq!(
        ok("HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n\
            HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"),
        2
    );
}

#[test]
fn a_head_reply_has_no_body() {
    let mut bench = Bench::new(url_site(Method::HEAD));
    let link = bench.issue_and_connect(url_op(Method::HEAD));
    bench.bytes(link, b"HTTP/1.1 200 OK\r\nContent-Length: 500000\r\n\r\n");
    assert_eq!((bench.last().status, bench.last().bytes_read), (OpStatus::Ok, 0));
    assert!(bench.io.discards.is_empty());
}

#[test]
fn replies_that_are_not_http_are_malformed_and_end_the_connection() {
    let long = format!("HTTP/1.1 200 OK\r\nA: {}\r\n\r\n", "x".repeat(1 << 20));
    for text in [
        "SSH-2.0-OpenSSH",
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        "HTTP/1.1 101 Switching\r\n\r\n",
        &long,
    ] {
        let (outcome, detail) = outcome_of(text.as_bytes());
        assert_eq!(outcome.status, failed(ErrorClass::Malformed), "{detail}");
    }
    let mut bench = Bench::new(url_site(Method::GET));
    let link = bench.issue_and_connect(url_op(Method::GET));
    for piece in long.as_bytes().chunks(1000) {
        if bench.io.done.is_empty() {
            bench.bytes(link, piece);
        }
    }
    assert_eq!(bench.last().status, failed(ErrorClass::Malformed));
    assert!(bench.io.detail.contains(&HEAD_BYTES_MAX.to_string()), "{}", bench.io.detail);
    assert_eq!(bench.io.closed, [link]);
}

#[test]
fn statuses_are_judged_and_redirects_are_not_followed() {
    let status = |code: u16| {
        outcome_of(format!("HTTP/1.1 {code} X\r\nContent-Length: 1\r\n\r\nx").as_bytes()).0.status
    };
    assert_eq!((status(200), status(301)), (OpStatus::Ok, OpStatus::Ok));
    assert_eq!(status(404), failed(ErrorClass::Status(404)));
    assert_eq!(status(503), failed(ErrorClass::Status(503)));
    let mut bench = Bench::new(file_site(KeepAlive));
    let link = bench.issue_and_connect(file_op(SMALL));
    bench.bytes(link, b"HTTP/1.1 301 Moved\r\nLocation: /\r\nContent-Length: 0\r\n\r\n");
    assert_eq!(bench.last().status, failed(ErrorClass::Status(301)));
    assert!(bench.io.closed.is_empty());
}

#[test]
fn length_and_content_are_checked_against_the_file() {
    let mut bench = Bench::new(file_site(KeepAlive));
    let link = bench.issue_and_connect(file_op(SMALL));
    bench.bytes(link, &reply(&file_set().content(SMALL)[..1000]));
    assert_eq!(bench.last().status, failed(ErrorClass::Length));
    assert!(bench.io.detail.contains("has 1000 bytes, the file has 1024"), "{}", bench.io.detail);
    let mut wrong = file_set().content(SMALL).to_vec();
    wrong[777] ^= 1;
    let wrong = reply(&wrong);
    bench.issue(file_op(SMALL));
    bench.bytes(link, &wrong[..500]);
    bench.bytes(link, &wrong[500..]);
    assert_eq!(bench.last().status, failed(ErrorClass::Corrupt));
    assert_eq!(bench.io.detail, "GET http://h/dir00001/class1_1: first wrong byte at offset 777");
    assert_eq!(bench.session.take_counters().verified, 0);
}

#[test]
fn a_long_body_that_nobody_reads_is_discarded() {
    let mut bench = Bench::new(file_site(KeepAlive));
    let op = super::site::HttpOp { verify: false, ..file_op(LARGE) };
    let link = bench.issue_and_connect(op);
    assert_eq!(bench.session.read_limit(link), HEAD_READ_BYTES);
    let whole = reply(file_set().content(LARGE));
    bench.bytes(link, &whole[..HEAD_READ_BYTES]);
    let left = (whole.len() - HEAD_READ_BYTES) as u64;
    assert!(left > DISCARD_BYTES_MIN);
    assert_eq!(bench.io.discards, [(link, left - 1)]);
    bench.session.on_discarded(link, left - 11, bench.now, &mut bench.io);
    bench.session.on_discarded(link, 10, bench.now, &mut bench.io);
    assert!(bench.io.done.is_empty());
    bench.bytes(link, &whole[whole.len() - 1..]);
    assert_eq!((bench.last().status, bench.last().bytes_read), (OpStatus::Ok, 102_400));
    bench.issue(file_op(LARGE));
    assert_eq!(bench.session.read_limit(link), usize::MAX);
    bench.bytes(link, &whole);
    assert_eq!((bench.last().status, bench.io.discards.len()), (OpStatus::Ok, 1));
}

#[test]
fn a_second_reply_behind_a_body_that_was_dropped_fails_the_op_it_belongs_to() {
    let mut bench = Bench::new(file_site(KeepAlive));
    let op = super::site::HttpOp { verify: false, ..file_op(LARGE) };
    let link = bench.issue_and_connect(op);
    let whole = reply(file_set().content(LARGE));
    bench.bytes(link, &whole[..HEAD_READ_BYTES]);
    let (_, discard_bytes) = bench.io.discards[0];
    bench.session.on_discarded(link, discard_bytes, bench.now, &mut bench.io);
    assert!(bench.io.done.is_empty());
    // The next read takes the last byte and what follows it.
    let next = [&whole[HEAD_READ_BYTES + discard_bytes as usize..], &whole].concat();
    bench.bytes(link, &next);
    assert_eq!(bench.last().status, failed(ErrorClass::TrailingBytes));
    let message = format!("the server sent {} bytes behind the reply", whole.len());
    assert!(bench.io.detail.ends_with(&message), "{}", bench.io.detail);
    assert_eq!(bench.io.closed, [link]);
    bench.issue(op);
    assert_eq!(bench.io.links, 2, "the next op goes out on a new connection");
}

#[test]
fn a_surplus_that_comes_with_the_reply_fails_its_op_whatever_ends_the_body() {
    for text in [
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nxy",
        "HTTP/1.1 204 No Content\r\n\r\ny",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\ny",
        "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\ny",
    ] {
        let mut bench = Bench::new(url_site(Method::GET));
        let link = bench.issue_and_connect(url_op(Method::GET));
        bench.bytes(link, text.as_bytes());
        assert_eq!(bench.last().status, failed(ErrorClass::TrailingBytes), "{text:?}");
        assert_eq!(bench.io.detail, "GET http://h/page: the server sent 1 byte behind the reply");
        assert_eq!((bench.io.trailing_bytes.len(), &bench.io.closed[..]), (0, &[link][..]));
    }
}

#[test]
fn a_surplus_that_comes_later_is_told_once_and_ends_the_connection() {
    let mut bench = Bench::new(file_site(KeepAlive));
    let link = bench.issue_and_connect(file_op(SMALL));
    bench.bytes(link, &reply(file_set().content(SMALL)));
    bench.bytes(link, b"");
    assert!(bench.io.trailing_bytes.is_empty() && bench.io.closed.is_empty());
    bench.bytes(link, b"another");
    assert_eq!(bench.last().status, OpStatus::Ok, "it has been recorded so");
    assert_eq!(bench.io.trailing_bytes, [file_op(SMALL).kind]);
    let message = "GET http://h/dir00001/class1_1: the server sent 7 bytes behind the reply";
    assert_eq!(bench.io.detail, message);
    assert_eq!(bench.io.closed, [link]);
    bench.bytes(link, b"more");
    assert_eq!(bench.io.trailing_bytes.len(), 1);
    bench.issue(file_op(SMALL));
    assert_eq!(bench.io.links, 2, "the next op goes out on a new connection");
}

#[test]
fn a_surplus_behind_the_reply_of_a_connection_that_will_close_belongs_to_its_own_op() {
    let mut bench = Bench::new(file_site(PerRequest));
    let first = bench.issue_and_connect(file_op(SMALL));
    bench.bytes(first, &reply(file_set().content(SMALL)));
    let large = super::site::HttpOp { verify: false, ..file_op(LARGE) };
    let second = bench.issue_and_connect(large);
    bench.bytes(first, b"another");
    assert_eq!(bench.io.trailing_bytes, [file_op(SMALL).kind]);
    assert_eq!(bench.io.closed, [first]);
    bench.bytes(second, &reply(file_set().content(LARGE)));
    assert_eq!((bench.last().status, bench.io.done.len()), (OpStatus::Ok, 2));
}

#[test]
fn an_op_that_has_failed_does_not_fail_again_for_what_comes_behind_its_reply() {
    let mut bench = Bench::new(url_site(Method::GET));
    let link = bench.issue_and_connect(url_op(Method::GET));
    bench.bytes(link, b"HTTP/1.1 404 X\r\nContent-Length: 1\r\n\r\nx");
    bench.bytes(link, b"another");
    assert_eq!((bench.io.trailing_bytes.len(), &bench.io.closed[..]), (0, &[link][..]));
}

#[test]
fn a_server_that_says_408_to_an_idle_connection_sends_no_surplus() {
    let mut bench = Bench::new(url_site(Method::GET));
    let link = bench.issue_and_connect(url_op(Method::GET));
    bench.bytes(link, &reply(b"x"));
    let goodbye = "HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
    bench.bytes(link, goodbye.as_bytes());
    assert_eq!((bench.io.trailing_bytes.len(), &bench.io.closed[..]), (0, &[link][..]));
}

#[test]
fn the_length_of_a_url_is_learnt() {
    let mut bench = Bench::new(url_site(Method::GET));
    let link = bench.issue_and_connect(url_op(Method::GET));
    assert_eq!(bench.session.read_limit(link), usize::MAX);
    bench.bytes(link, &reply(&[0; 50_000]));
    bench.issue(url_op(Method::GET));
    assert_eq!(bench.session.read_limit(link), HEAD_READ_BYTES);
}

#[test]
fn an_op_without_a_reply_times_out_and_the_next_one_reconnects() {
    let mut bench = Bench::new(url_site(Method::GET));
    bench.now = Nanos::from_secs(3);
    let link = bench.issue_and_connect(url_op(Method::GET));
    let deadline = Nanos::from_secs(3) + OP_TIMEOUT;
    assert_eq!(bench.session.next_deadline(), Some(deadline));
    bench.session.on_timer(Nanos(deadline.0 - 1), &mut bench.io);
    assert!(bench.io.done.is_empty());
    bench.session.on_timer(deadline, &mut bench.io);
    assert_eq!(bench.last().status, failed(ErrorClass::Timeout));
    assert_eq!(bench.io.detail, "GET http://h/page: no reply within 10.0 s");
    assert_eq!(
        (bench.io.closed.as_slice(), bench.session.next_deadline()),
        ([link].as_slice(), None)
    );
    bench.issue(url_op(Method::GET));
    assert_eq!(bench.io.links, 2);
}

#[test]
fn a_capturing_session_keeps_a_bounded_body() {
    let mut bench =
        Bench::from_session(HttpSession::capturing(url_site(Method::GET), |_| false, OP_TIMEOUT));
    let link = bench.issue_and_connect(url_op(Method::GET));
    bench.bytes(link, &reply(b"{\"a\": 1}"));
    assert_eq!(bench.session.take_body(), b"{\"a\": 1}");
    bench.issue(url_op(Method::GET));
    bench.bytes(link, &reply(&vec![7; CAPTURE_BYTES_MAX + 5]));
    assert_eq!(bench.session.take_body().len(), CAPTURE_BYTES_MAX);
    assert_eq!(bench.last().status, OpStatus::Ok);
}

#[test]
fn an_idle_client_is_small() {
    let mut bench = Bench::new(url_site(Method::GET));
    let link = bench.issue_and_connect(url_op(Method::GET));
    let reply = reply(b"body");
    bench.bytes(link, &reply[..20]);
    assert!(bench.session.heap_bytes() > 0);
    bench.bytes(link, &reply[20..]);
    assert_eq!(bench.session.heap_bytes(), 0);
    let bytes = size_of::<HttpSession>() + size_of::<super::script::FileScript>();
    assert!(bytes < 600, "{bytes}");
}

fn any_reply() -> impl Strategy<Value = Vec<u8>> {
    let good = reply(file_set().content(SMALL));
    let content = file_set().content(SMALL).to_vec();
    let chunked = move |sizes: Vec<usize>| {
        let mut text = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec();
        let mut rest = content.as_slice();
        for size in sizes {
            let (chunk, after) = rest.split_at(size.min(rest.len()));
            rest = after;
            if !chunk.is_empty() {
                text.extend(format!("{:x};e\r\n", chunk.len()).bytes());
                text.extend_from_slice(chunk);
                text.extend_from_slice(b"\r\n");
            }
        }
        text.extend_from_slice(b"0\r\nT: r\r\n\r\n");
        text
    };
    let interim = [b"HTTP/1.1 100 Continue\r\n\r\n".as_slice(), &good].concat();
    let changed = (Just(good.clone()), any::<prop::sample::Index>(), any::<u8>()).prop_map(
        |(mut bytes, index, byte)| {
            let at = index.index(bytes.len());
            bytes[at] = byte;
            bytes
        },
    );
    prop_oneof![
        Just(good),
        Just(interim),
        changed,
        prop::collection::vec(1usize..500, 1..8).prop_map(chunked),
        Just(b"HTTP/1.1 200 OK\r\nContent-Length: 1024\r\n\r\nshort".to_vec()),
        Just(b"HTTP/1.0 404 Not Found\r\n\r\nnothing here".to_vec()),
    ]
}

/// The outcome when `reply` arrives in pieces of these sizes, the last repeated, and then ends.
fn outcome_in_pieces(reply: &[u8], sizes: &[usize]) -> Outcome {
    let mut bench = Bench::new(file_site(KeepAlive));
    let link = bench.issue_and_connect(file_op(SMALL));
    let mut rest = reply;
    let mut sizes = sizes.iter().copied().chain(std::iter::repeat(sizes[sizes.len() - 1]));
    while !rest.is_empty() && bench.io.done.is_empty() {
        let (piece, after) = rest.split_at(sizes.next().unwrap_or(1).min(rest.len()));
        rest = after;
        bench.bytes(link, piece);
    }
    if bench.io.done.is_empty() {
        bench.eof(link);
    }
    bench.last()
}

proptest! {
    #[test]
    fn any_split_of_a_reply_gives_the_same_outcome(
        reply in any_reply(),
        sizes in prop::collection::vec(1usize..400, 1..6),
    ) {
        let whole = outcome_in_pieces(&reply, &[reply.len()]);
        let pieces = outcome_in_pieces(&reply, &sizes);
        // How much of a body a broken reply has depends on when it is found out, and bytes after
        // the end are seen only when they arrive with it.
        let same = whole.status == pieces.status
            || whole.status == OpStatus::Failed(ErrorClass::Malformed);
        prop_assert!(same, "{:?} and {:?}", whole, pieces);
        if whole.status == OpStatus::Ok {
            prop_assert_eq!(whole, pieces);
        }
    }
}

/// httparse #68: every tolerant client reads it.
#[test]
fn a_folded_field_is_a_good_reply_and_counted_as_a_nonconformity() {
    for reply in [
        "HTTP/1.1 200 OK\r\nPolicy: a;\r\n  b\r\nContent-Length: 2\r\n\r\nok",
        "HTTP/1.1 200 OK\r\nA:\r\n\tb\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    ] {
        let mut bench = Bench::new(url_site(Method::GET));
        let link = bench.issue_and_connect(url_op(Method::GET));
        // In two parts, as it may come.
        let (start, rest) = reply.as_bytes().split_at(30);
        bench.bytes(link, start);
        bench.bytes(link, rest);
        assert_eq!(bench.last().status, OpStatus::Ok, "{}", bench.io.detail);
        let kind = NonconformityKind::FoldedField;
        let expected = Nonconformity::once("RFC 9112", "5.2", "GET", None, kind);
        let reported = bench.session.take_counters().nonconformities;
        assert_eq!(reported.iter().collect::<Vec<_>>(), [&expected]);
        assert!(bench.session.take_counters().nonconformities.is_empty());
    }
}
