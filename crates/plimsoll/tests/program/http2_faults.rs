//! An HTTP/2 server that misbehaves: the error class and the exit code of each fault.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;

use plimsoll_testkit::fault_server::{Fault, FaultServer};
use plimsoll_testkit::h2_faults::frames::{
    code, data, endless_header, field, flag, frame, head, head_with, kind, long_header, ping,
    reply, reset, setting, settings, window_update,
};
use plimsoll_testkit::h2_faults::{Act, H2FaultServer, Manner, ReceivedRequest, ServerCounts};
use plimsoll_testkit::program::{Ended, plimsoll, result, wait_until};
use serde_json::{Value, json};

use crate::counts::ops;

/// Several requests in flight on one connection.
const SHARED: [&str; 4] = ["--clients", "8", "--streams", "8"];
/// One after the other.
const ALONE: [&str; 2] = ["--clients", "1"];

/// A finished run.
struct Ran {
    ended: Ended,
    point: Value,
}

/// `n` requests over HTTP/2 by one worker, without the request before any load.
fn run(url: &str, n: u64, more: &[&str]) -> Ran {
    let temp_dir = tempfile::tempdir().unwrap();
    let (bundle, n) = (temp_dir.path().join("b"), n.to_string());
    let mut arguments = vec!["run", "web-url", url, "--out", bundle.to_str().unwrap()];
    arguments.extend(["--progress", "none", "--workers", "1", "--http", "2", "--no-check"]);
    arguments.extend(["-n", &n]);
    arguments.extend(more);
    let ended = plimsoll(&arguments);
    assert!(matches!(ended.code, Some(0 | 1)), "{ended:?}");
    let point = result(&bundle)["points"][0].clone();
    Ran { ended, point }
}

impl Ran {
    /// All were measured, and failed as often as this.
    #[track_caller]
    fn failed(&self, count: u64, errors: &Value) {
        let measured = ops(&self.point).values().sum::<u64>();
        assert_eq!((measured, &self.point["errors"]), (count, errors), "{}", self.point);
        if errors != &json!({}) {
            self.ended.check(1, &["invalid"]);
        }
    }

    fn counter(&self, name: &str) -> u64 {
        self.point[name].as_u64().unwrap_or(0)
    }

    /// Text of the samples of errors.
    #[track_caller]
    fn check_samples(&self, text: &str) {
        let samples = self.point["error_samples"].to_string();
        assert!(samples.contains(text), "{text:?} is not in {samples}");
    }
}

/// The server's counts once they match; the client kept to the standard.
#[track_caller]
fn wait_for_counts(
    server: &H2FaultServer,
    what: &str,
    is_true: impl Fn(&ServerCounts) -> bool,
) -> ServerCounts {
    wait_until(what, || is_true(&server.counts()));
    let counts = server.counts();
    assert_eq!(counts.wrong, Vec::<String>::new());
    counts
}

fn good(request: &ReceivedRequest) -> Act {
    Act::Write(reply(request.stream, b"hello"))
}

#[test]
fn requests_above_the_last_stream_of_goaway_go_again_once_and_are_processed_once() {
    let server = H2FaultServer::start(|request| {
        let goes_away = [2, 60, 120].contains(&request.index);
        let away = goes_away.then_some(Act::GoAway(code::NO_ERROR));
        away.into_iter().chain([good(request)]).collect()
    });
    let ran = run(server.url(), 200, &[&SHARED[..], &["-d", "once"]].concat());
    ran.failed(200, &json!({}));
    let (refused, ambiguous) = (ran.counter("refused"), ran.counter("ambiguous"));
    let counts = wait_for_counts(&server, "all have been read", |counts| counts.ignored == refused);
    assert_eq!((counts.requests, counts.connections, ambiguous), (200, 4, 0), "{counts:?}");
    // The first eight go out together, with the preface.
    assert!(refused >= 5, "{refused}");
}

#[test]
fn a_refused_stream_goes_again_once_and_no_more() {
    let refuse =
        |request: &ReceivedRequest| Act::Write(reset(request.stream, code::REFUSED_STREAM));
    let server = H2FaultServer::start(move |request| match request.index {
        3 | 50 | 90 => vec![refuse(request)],
        _ => vec![good(request)],
    });
    let ran = run(server.url(), 100, &[&SHARED[..], &["-d", "once"]].concat());
    ran.failed(100, &json!({}));
    assert_eq!((ran.counter("refused"), ran.counter("ambiguous")), (3, 0));
    assert_eq!(
        wait_for_counts(&server, "all have come", |counts| counts.requests == 103).connections,
        1
    );

    let server = H2FaultServer::start(move |request| vec![refuse(request)]);
    let ran = run(server.url(), 10, &SHARED);
    ran.failed(10, &json!({"transport": 10}));
    ran.check_samples("the server refused the stream again (REFUSED_STREAM)");
    wait_for_counts(&server, "all have come twice", |counts| counts.requests == 20);
}

#[test]
fn a_stream_that_is_reset_fails_with_its_code_and_the_others_go_on() {
    let codes = [code::NO_ERROR, code::INTERNAL_ERROR, code::CANCEL, code::HTTP_1_1_REQUIRED, 99];
    let server = H2FaultServer::start(move |request| match usize::try_from(request.index / 10) {
        Ok(of) if request.index % 10 == 5 => vec![Act::Write(reset(request.stream, codes[of]))],
        _ => vec![good(request)],
    });
    let ran = run(server.url(), 50, &SHARED);
    ran.failed(50, &json!({"transport": 5}));
    for name in ["NO_ERROR", "INTERNAL_ERROR", "CANCEL", "HTTP_1_1_REQUIRED", "error code 99"] {
        ran.check_samples(&format!("the server reset the stream ({name}) before the reply began"));
    }
    let message = "the server reset the streams of 5 of 50 ops before replying";
    ran.ended.check(1, &[message, "see the codes in the error samples"]);
    assert!(!ran.ended.err.contains("limit of connections"), "{:?}", ran.ended);
    // No other request was sent again.
    assert_eq!(
        wait_for_counts(&server, "all have come", |counts| counts.requests == 50).connections,
        1
    );
}

#[test]
fn a_connection_that_closes_under_requests_repeats_those_without_a_reply() {
    let server = H2FaultServer::start(|request| match request.index {
        20 => vec![Act::Close],
        _ => vec![good(request)],
    });
    let ran = run(server.url(), 100, &[&SHARED[..], &["-d", "once"]].concat());
    ran.failed(100, &json!({}));
    // It is unknown which of them were processed.
    let ambiguous = ran.counter("ambiguous");
    assert!((1..=8).contains(&ambiguous), "{}", ran.point);
    assert_eq!(ran.counter("unkept"), 1);
    assert_eq!(
        wait_for_counts(&server, "all have come", |counts| counts.requests == 101).connections,
        2
    );
}

type Wrong = (fn(u32) -> Vec<u8>, &'static str);

/// Answers one request with each of these bytes, all of which must fail as `class`.
#[track_caller]
fn wrong(class: &str, replies: &'static [Wrong]) -> ServerCounts {
    let server = H2FaultServer::start(move |request| {
        let bytes = replies.get(request.index as usize).map(|(bytes, _)| bytes(request.stream));
        bytes.map_or_else(|| vec![good(request)], |bytes| vec![Act::Write(bytes)])
    });
    let count = replies.len() as u64;
    // One more, which gets a good answer.
    let ran = run(server.url(), count + 1, &ALONE);
    ran.failed(count + 1, &json!({class: count}));
    replies.iter().for_each(|(_, text)| ran.check_samples(text));
    wait_for_counts(&server, "all have come once", |counts| counts.requests == count + 1)
}

#[test]
fn header_blocks_without_end_and_lists_over_the_limit_are_malformed() {
    const REPLIES: [Wrong; 4] = [
        (|stream| endless_header(stream, 100_000, 0), "a header block that does not end"),
        (|stream| endless_header(stream, 1_000, 1), "a header block that does not end"),
        (|stream| endless_header(stream, 100, 10_000), "does not end within 65536 bytes"),
        (|stream| long_header(stream, 20), "the reply's header is longer than 65536 bytes"),
    ];
    let counts = wrong("malformed", &REPLIES);
    // A list over the limit is the fault of its stream alone.
    assert_eq!(counts.connections, 4);
}

#[test]
fn what_breaks_a_rule_of_the_connection_is_malformed_and_told_to_the_server() {
    const PUSH: Wrong =
        (|stream| frame(kind::PUSH_PROMISE, flag::END_HEADERS, stream, &[0; 4]), "a push");
    const LONG: Wrong = (|stream| data(stream, flag::NONE, &[0; 16_385]), "16385 bytes");
    const INDEX: Wrong = (
        |stream| frame(kind::HEADERS, flag::END_HEADERS, stream, &[0xff, 0]),
        "refers to a field 127 that is not there",
    );
    const WINDOW: Wrong = (|_| window_update(0, 0x7fff_ffff), "a WINDOW_UPDATE of a wrong size");
    const FLOOD: Wrong = (|_| ping().repeat(5_000), "frames without end that bring no reply");
    let counts = wrong("malformed", &[PUSH, LONG, INDEX, WINDOW, FLOOD]);
    assert_eq!(counts.connections, 6);
}

#[test]
fn what_breaks_a_rule_of_a_reply_fails_that_reply_and_no_other() {
    const BODY: Wrong =
        (|stream| data(stream, flag::END_STREAM, b"hello"), "a body without a head");
    const NAME: Wrong = (
        |stream| head_with(stream, &field("Server", "x")),
        "a field of the reply's header has bytes that none may have",
    );
    const CLOSE: Wrong = (
        |stream| head_with(stream, &field("connection", "close")),
        "the reply's header has a field that HTTP/2 does not allow",
    );
    const TWICE: Wrong = (
        |stream| {
            let more = frame(kind::HEADERS, flag::END_HEADERS, stream, &field("x", "y"));
            [head(stream, 200), more].concat()
        },
        "a second header within the reply",
    );
    const LONGER: Wrong = (
        |stream| {
            let head = head_with(stream, &field("content-length", "3"));
            [head, data(stream, flag::END_STREAM, b"hello")].concat()
        },
        "the reply ended after 5 bytes; its header says 3",
    );
    let counts = wrong("malformed", &[BODY, NAME, CLOSE, TWICE, LONGER]);
    assert_eq!((counts.connections, counts.resets), (1, vec![code::PROTOCOL_ERROR; 4]));
    const SHORTER: Wrong = (
        |stream| {
            let head = head_with(stream, &field("content-length", "9"));
            [head, data(stream, flag::END_STREAM, b"hello")].concat()
        },
        "the reply ended after 5 bytes; its header says 9",
    );
    const BROKEN_OFF: Wrong = (
        |stream| {
            let begun = [head(stream, 200), data(stream, flag::NONE, b"hel")].concat();
            [begun, reset(stream, code::INTERNAL_ERROR)].concat()
        },
        "the server reset the stream (INTERNAL_ERROR) after 3 bytes of the body",
    );
    assert_eq!(wrong("truncated", &[SHORTER, BROKEN_OFF]).connections, 1);
}

#[test]
fn a_status_before_a_reset_is_the_requests_end() {
    let server = H2FaultServer::start(|request| {
        let both = [head(request.stream, 500), reset(request.stream, code::NO_ERROR)];
        vec![Act::Write(both.concat())]
    });
    let ran = run(server.url(), 5, &ALONE);
    ran.failed(5, &json!({"status:500": 5}));
    ran.check_samples("status 500, and then: the server reset the stream (NO_ERROR)");
}

#[test]
fn a_window_that_never_opens_times_a_body_out_with_what_it_let_out() {
    for (window, sent) in [(10, "only 10 of 100 bytes"), (0, "only 0 of 100 bytes")] {
        // The first body is sent before the server has announced how little it accepts.
        let server =
            H2FaultServer::with(Manner::ShutWindows(window), |request| vec![good(request)]);
        let body = "x".repeat(100);
        let ran = run(server.url(), 2, &["--clients", "1", "-d", &body, "--timeout", "500ms"]);
        ran.failed(2, &json!({"timeout": 1}));
        ran.check_samples(&format!("and the server's window let out {sent} of the request's body"));
        let counts =
            wait_for_counts(&server, "one was given up", |counts| counts.resets.len() == 1);
        assert_eq!((counts.requests, counts.body_bytes), (1, 100 + u64::from(window)));
        assert_eq!(counts.resets, [code::CANCEL]);
    }
    // Before any load the message is the same, and does not suggest a web server.
    let server = H2FaultServer::with(Manner::ShutWindows(10), |_| Vec::new());
    let body = "x".repeat(70_000);
    let flags = ["--http", "2", "-n", "1", "--timeout", "1s", "-d", &body];
    let ended = plimsoll(&[&["run", "web-url", server.url()][..], &flags].concat());
    let let_out = "only 65535 of 70000 bytes of the request's body; see what the server's log says";
    ended.check(3, &["the first POST failed: no reply within 1.00 s", let_out]);
}

#[test]
fn a_server_that_takes_no_stream_is_not_asked_without_end() {
    let server = H2FaultServer::with(Manner::NoStreams, |_| Vec::new());
    let ran = run(server.url(), 16, &[&SHARED[..], &["--timeout", "500ms"]].concat());
    ran.failed(16, &json!({"timeout": 16}));
    ran.check_samples("no reply within");
    // The first is sent before the server has announced that it accepts none.
    let ran = run(server.url(), 3, &["--clients", "1", "--timeout", "300ms"]);
    ran.failed(3, &json!({"timeout": 3}));
    ran.check_samples("no reply within");
    ran.check_samples("no free stream within");
    let server = H2FaultServer::with(Manner::GoesAway, |_| Vec::new());
    let ran = run(server.url(), 8, &SHARED);
    ran.failed(8, &json!({"transport": 8}));
    ran.check_samples("the server refused the stream again (ENHANCE_YOUR_CALM)");
    let counts =
        wait_for_counts(&server, "it has gone away twice", |counts| counts.connections > 1);
    assert!(counts.connections <= 16, "{counts:?}");
}

#[test]
fn pings_and_settings_are_answered_each() {
    let server = H2FaultServer::start(|request| {
        let before = [ping(), settings(&[(setting::MAX_CONCURRENT_STREAMS, 50)])].concat();
        let before = (request.index < 50).then_some(Act::Write(before));
        before.into_iter().chain([good(request)]).collect()
    });
    run(server.url(), 100, &SHARED).failed(100, &json!({}));
    // The settings at the start, too.
    let all = |counts: &ServerCounts| (counts.ping_acks, counts.settings_acks) == (50, 51);
    assert_eq!(wait_for_counts(&server, "all are answered", all).connections, 1);
}

/// Answers each connection with these bytes; without any it sends nothing, and keeps it.
fn answering(bytes: &'static [u8]) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            std::thread::spawn(move || {
                // An error means that the client has left.
                let _ = stream.write_all(bytes);
                let _ = stream.read_to_end(&mut Vec::new());
            });
        }
    });
    url
}

#[test]
fn a_server_that_speaks_something_else_is_told_before_any_load_and_counted_within_it() {
    let check = |url: &str, code: i32, parts: &[&str]| {
        let arguments = ["run", "web-url", url, "--http", "2", "--timeout", "1s", "-n", "5"];
        plimsoll(&arguments).check(code, parts);
    };
    let http1 = FaultServer::with_fixed_body(5, |_| Fault::None);
    check(&http1.url(), 3, &["the server answers in HTTP/1", "leave out --http 2"]);
    let ran = run(&http1.url(), 5, &ALONE);
    ran.failed(5, &json!({"malformed": 5}));
    ran.check_samples("the server answers in HTTP/1");

    let ssh = answering(b"SSH-2.0-OpenSSH_9.2p1\r\n");
    check(&ssh, 3, &["first bytes are not HTTP/2 settings", "whether the port speaks HTTP/2"]);
    run(&ssh, 5, &ALONE).failed(5, &json!({"malformed": 5}));

    let silent = answering(b"");
    check(&silent, 3, &["see whether"]);
    let ran = run(&silent, 2, &["--clients", "2", "--streams", "2", "--timeout", "500ms"]);
    ran.failed(2, &json!({"timeout": 2}));
    ran.check_samples("no reply and no settings of the server within");
}
