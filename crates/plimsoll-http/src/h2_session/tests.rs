//! Sessions under frames of a server: what becomes of each op.

use std::rc::Rc;

use plimsoll_engine::interface::{Link, LinkError, Session, Ticket};
use plimsoll_model::outcome::{ErrorClass, OpStatus, Outcome};
use plimsoll_model::units::Nanos;

use super::H2Session;
use crate::h2::frame::{self, FrameHeader, HEADER_BYTES, PREFACE, flag, kind, setting};
use crate::h2::windows::{H2Settings, ReceiveWindows};
use crate::parameters::Connections;
use crate::reader::Plain;
use crate::site::{HttpOp, Version, WorkerSite};
use crate::test_io::{
    LARGE, OP_TIMEOUT, Recorder, SMALL, body_site, file_op, file_set, file_site_of, url_op,
};
use crate::wire::request::{Method, RequestText};
use crate::wire::template::Template;

mod rest;

const WINDOWS: ReceiveWindows = ReceiveWindows { stream_bytes: 1 << 20, connection_bytes: 1 << 20 };
const OK: &[u8] = &[0x88];

/// A session and its recorder.
struct Peer {
    session: H2Session,
    io: Recorder,
    now: Nanos,
    read: usize,
}

impl Peer {
    fn from_site(site: Rc<WorkerSite>, streams: u32) -> Self {
        let settings = H2Settings { streams, windows: WINDOWS };
        let session = H2Session::new(site, settings, Plain::Unread, OP_TIMEOUT);
        Self { session, io: Recorder::default(), now: Nanos::ZERO, read: 0 }
    }

    fn files(streams: u32) -> Self {
        Self::from_site(file_site_of(Version::Http2, Connections::KeepAlive), streams)
    }

    fn posts(body_bytes: usize) -> Self {
        let text = RequestText {
            body: Template::fixed(&vec![b'x'; body_bytes]),
            ..RequestText::plain(Method::POST, "/page")
        };
        Self::from_site(body_site(&text), 4)
    }

    /// POSTs of ten bytes to a server whose settings are known from an earlier one.
    fn with_settings(settings: &[(u16, u32)]) -> Self {
        let mut peer = Self::posts(10);
        peer.issue(0, url_op(Method::POST));
        peer.open(settings);
        peer.send_frames(&[head(1, flag::END_STREAM, OK)]);
        peer.sent();
        peer
    }

    fn issue(&mut self, ticket: u32, op: HttpOp) {
        assert!(self.session.has_room());
        self.session.issue(Ticket(ticket), op, self.now, &mut self.io);
    }

    fn link(&self) -> Link {
        Link(self.io.links)
    }

    /// The newest link opens, and its server sends its settings.
    fn open(&mut self, settings: &[(u16, u32)]) {
        let link = self.link();
        self.session.on_connected(link, self.now, &mut self.io);
        self.bytes(link, &self::settings(settings));
    }

    fn bytes(&mut self, link: Link, bytes: &[u8]) {
        self.session.on_bytes(link, bytes, self.now, &mut self.io);
    }

    fn send_frames(&mut self, frames: &[Vec<u8>]) {
        self.bytes(self.link(), &frames.concat());
    }

    /// Streams whose requests were sent since the last call.
    fn requests(&mut self) -> Vec<u32> {
        let requests = self.sent().into_iter().filter(|(kind, _)| *kind == kind::HEADERS);
        requests.map(|(_, stream)| stream).collect()
    }

    fn eof(&mut self) {
        self.session.on_eof(self.link(), self.now, &mut self.io);
    }

    /// Headers of the frames that went out since the last look, without the preface.
    fn frames(&mut self) -> Vec<FrameHeader> {
        let sent = self.io.sent[self.read..].iter().map(|(_, bytes)| &bytes[..]);
        let bytes = sent.collect::<Vec<_>>().concat();
        self.read = self.io.sent.len();
        let mut rest = bytes.strip_prefix(PREFACE).unwrap_or(&bytes);
        let mut frames = Vec::new();
        while let Some((header, after)) = rest.split_first_chunk::<HEADER_BYTES>() {
            let header = FrameHeader::read(*header);
            rest = &after[header.length as usize..];
            frames.push(header);
        }
        frames
    }

    /// The same: type and stream of each.
    fn sent(&mut self) -> Vec<(u8, u32)> {
        self.frames().iter().map(|frame| (frame.kind, frame.stream)).collect()
    }

    fn last(&self) -> (Outcome, &str) {
        (*self.io.done.last().expect("an op has ended"), &self.io.detail)
    }

    #[track_caller]
    fn failed(&self, class: ErrorClass, expected: &str) {
        let (outcome, detail) = self.last();
        assert_eq!(outcome.status, OpStatus::Failed(class), "{detail}");
        assert!(detail.ends_with(expected), "{detail}");
    }
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    frame::write(kind, flags, stream, payload, &mut out);
    out
}

fn head(stream: u32, flags: u8, block: &[u8]) -> Vec<u8> {
    frame(kind::HEADERS, flag::END_HEADERS | flags, stream, block)
}

fn data(stream: u32, payload: &[u8]) -> Vec<Vec<u8>> {
    let chunks = payload.chunks(16_384).map(|chunk| frame(kind::DATA, 0, stream, chunk));
    chunks.chain([frame(kind::DATA, flag::END_STREAM, stream, &[])]).collect()
}

fn reply(stream: u32, payload: &[u8]) -> Vec<u8> {
    [head(stream, 0, OK), data(stream, payload).concat()].concat()
}

fn reset(stream: u32, code: u8) -> Vec<u8> {
    frame(kind::RST_STREAM, 0, stream, &[0, 0, 0, code])
}

fn settings(settings: &[(u16, u32)]) -> Vec<u8> {
    let mut out = Vec::new();
    frame::write_settings(settings, &mut out);
    out
}

fn goaway(last: u8) -> Vec<u8> {
    frame(kind::GOAWAY, 0, 0, &[0, 0, 0, last, 0, 0, 0, 0])
}

/// RFC 9113 §3.4; cmux #22, grpc-java #2862: some servers send their settings only then.
#[test]
fn ops_go_out_with_the_preface_and_end_in_any_order() {
    let mut peer = Peer::files(2);
    peer.issue(0, file_op(SMALL));
    peer.issue(1, file_op(LARGE));
    assert!(!peer.session.has_room());
    assert_eq!((peer.io.links, peer.io.sent.len()), (1, 0));
    peer.session.on_connected(peer.link(), peer.now, &mut peer.io);
    let preface_and_requests = [(kind::SETTINGS, 0), (kind::WINDOW_UPDATE, 0), (1, 1), (1, 3)];
    assert_eq!((peer.io.sent.len(), peer.sent()), (1, preface_and_requests.to_vec()));
    peer.send_frames(&[frame(kind::SETTINGS, 0, 0, &[])]);
    assert_eq!(peer.sent(), [(kind::SETTINGS, 0)]);
    let (small, large) = (file_set(), file_set());
    peer.send_frames(&[reply(3, large.content(LARGE)), reply(1, small.content(SMALL))]);
    assert_eq!(peer.io.tickets, [Ticket(1), Ticket(0)]);
    assert!(peer.io.done.iter().all(|done| done.status == OpStatus::Ok));
    assert_eq!(peer.session.take_counters().verified, 2);
    assert_eq!(peer.session.next_deadline(), None);
}

#[test]
fn replies_are_judged_as_those_of_http1_are() {
    let replied = |bytes: &[Vec<u8>]| {
        let mut peer = Peer::files(1);
        peer.issue(0, file_op(SMALL));
        peer.open(&[]);
        peer.send_frames(bytes);
        peer
    };
    let mut wrong = file_set().content(SMALL).to_vec();
    wrong[100] ^= 1;
    replied(&[reply(1, &wrong)]).failed(ErrorClass::Corrupt, "first wrong byte at offset 100");
    let short = replied(&[reply(1, b"abc")]);
    short.failed(ErrorClass::Length, "the reply has 3 bytes, the file has 1024");
    let missing = replied(&[head(1, flag::END_STREAM, &[0x8d])]);
    missing.failed(ErrorClass::Status(404), "status 404");
    let announced = [0x88, 0x0f, 0x0d, 1, b'9'];
    let cut = replied(&[head(1, 0, &announced), data(1, b"abc").concat()]);
    cut.failed(ErrorClass::Truncated, "the reply ended after 3 bytes; its header says 9");
    let long = replied(&[head(1, 0, &announced), data(1, b"0123456789").concat()]);
    long.failed(ErrorClass::Malformed, "the reply ended after 10 bytes; its header says 9");
    let wrong = replied(&[head(1, 0, &[0x82])]);
    wrong.failed(ErrorClass::Malformed, "the reply's header has a field that only requests have");
}

#[test]
fn ops_beyond_what_the_server_allows_wait_and_are_counted() {
    let mut peer = Peer::files(3);
    peer.issue(0, file_op(SMALL));
    peer.open(&[(setting::MAX_CONCURRENT_STREAMS, 1)]);
    peer.issue(1, file_op(SMALL));
    peer.issue(2, file_op(SMALL));
    assert_eq!(peer.session.take_counters().stream_waits, 2);
    for stream in [1, 3, 5] {
        assert_eq!(peer.requests(), [stream]);
        peer.send_frames(&[reply(stream, file_set().content(SMALL))]);
    }
    assert_eq!(peer.io.done.len(), 3);
}

#[test]
fn a_refused_stream_goes_out_again_once_and_is_not_ambiguous() {
    let mut peer = Peer::posts(3);
    peer.issue(0, url_op(Method::POST));
    peer.open(&[]);
    peer.send_frames(&[reset(1, 7)]);
    assert_eq!(peer.session.take_counters().refused, 1);
    peer.send_frames(&[head(3, flag::END_STREAM, OK)]);
    let (outcome, _) = peer.last();
    assert_eq!((outcome.status, outcome.ambiguous), (OpStatus::Ok, false));
    assert_eq!(outcome.bytes_written, 3);
    peer.issue(0, url_op(Method::POST));
    peer.send_frames(&[reset(5, 7)]);
    peer.send_frames(&[reset(7, 7)]);
    peer.failed(ErrorClass::Transport, "the server refused the stream again (REFUSED_STREAM)");
}

#[test]
fn other_resets_fail_their_op_with_their_code() {
    let mut peer = Peer::files(2);
    peer.issue(0, file_op(SMALL));
    peer.issue(1, file_op(SMALL));
    peer.open(&[]);
    peer.send_frames(&[reset(1, 11)]);
    let why = "the server reset the stream (ENHANCE_YOUR_CALM) before the reply began";
    peer.failed(ErrorClass::Transport, why);
    peer.send_frames(&[head(3, 0, OK), frame(kind::DATA, 0, 3, b"abc"), reset(3, 2)]);
    let why = "the server reset the stream (INTERNAL_ERROR) after 3 bytes of the body";
    peer.failed(ErrorClass::Truncated, why);
}

#[test]
fn a_server_that_goes_away_finishes_what_it_has_and_the_rest_goes_elsewhere() {
    let mut peer = Peer::files(3);
    (0..3).for_each(|ticket| peer.issue(ticket, file_op(SMALL)));
    peer.open(&[]);
    let old = peer.link();
    peer.send_frames(&[goaway(1)]);
    assert_eq!(peer.io.links, 2);
    peer.bytes(old, &reply(1, file_set().content(SMALL)));
    peer.sent();
    peer.open(&[]);
    assert_eq!(peer.requests(), [1, 3]);
    peer.send_frames(&[reply(1, file_set().content(SMALL)), reply(3, file_set().content(SMALL))]);
    assert_eq!(peer.io.tickets, [Ticket(0), Ticket(1), Ticket(2)]);
    assert!(peer.io.done.iter().all(|done| done.status == OpStatus::Ok && !done.ambiguous));
    assert_eq!(peer.session.take_counters().refused, 2);
    peer.session.on_eof(old, peer.now, &mut peer.io);
    assert_eq!(peer.io.closed, [old]);
}

#[test]
fn a_server_that_goes_away_before_any_stream_is_connected_to_once_more() {
    let mut peer = Peer::files(2);
    peer.issue(0, file_op(SMALL));
    peer.issue(1, file_op(SMALL));
    for _ in 0..2 {
        peer.session.on_connected(peer.link(), peer.now, &mut peer.io);
        // In two steps, as servers end gracefully.
        peer.send_frames(&[settings(&[]), goaway(255), goaway(0)]);
        assert_eq!(peer.io.links, 2);
    }
    assert_eq!(peer.io.done.len(), 2);
    peer.failed(ErrorClass::Transport, "the server refused the stream again (NO_ERROR)");
    assert_eq!(peer.session.take_counters().refused, 2);
}

#[test]
fn ops_on_a_kept_connection_that_ends_go_out_once_more() {
    let mut peer = Peer::posts(1);
    peer.issue(0, url_op(Method::POST));
    peer.open(&[]);
    peer.send_frames(&[head(1, flag::END_STREAM, OK)]);
    peer.issue(0, url_op(Method::POST));
    peer.eof();
    assert_eq!(peer.io.links, 2);
    peer.open(&[]);
    peer.send_frames(&[head(1, flag::END_STREAM, OK)]);
    let (outcome, _) = peer.last();
    assert_eq!((outcome.status, outcome.ambiguous), (OpStatus::Ok, true));
    assert_eq!(peer.session.take_counters().unkept, 1);
}

#[test]
fn a_connection_that_never_carried_a_reply_fails_all_that_wait_for_it() {
    let mut peer = Peer::files(3);
    (0..3).for_each(|ticket| peer.issue(ticket, file_op(SMALL)));
    let refused = LinkError { class: ErrorClass::Transport, errno: 111 };
    peer.session.on_failed(peer.link(), refused, peer.now, &mut peer.io);
    assert_eq!((peer.io.done.len(), peer.io.links), (3, 1));
    peer.failed(ErrorClass::Transport, "before the reply began");
    peer.issue(0, file_op(SMALL));
    peer.open(&[]);
    peer.eof();
    peer.failed(ErrorClass::Transport, "the server closed the connection before the reply began");
    assert_eq!(peer.io.links, 2);
}

#[test]
fn a_fault_of_the_connection_ends_its_ops_and_says_which() {
    let mut peer = Peer::files(2);
    peer.issue(0, file_op(SMALL));
    peer.open(&[]);
    peer.sent();
    peer.send_frames(&[frame(kind::PUSH_PROMISE, 4, 1, &[0, 0, 0, 2])]);
    let why = "a push, which the client does not allow before the reply began";
    peer.failed(ErrorClass::Malformed, why);
    assert_eq!(peer.sent(), [(kind::GOAWAY, 0)]);
    assert_eq!(peer.io.closed, [peer.link()]);
    peer.issue(0, file_op(SMALL));
    assert_eq!(peer.io.links, 2);
}

#[test]
fn a_body_waits_for_the_window_and_its_timeout_says_so() {
    let mut peer = Peer::with_settings(&[(setting::INITIAL_WINDOW_SIZE, 4)]);
    peer.issue(0, url_op(Method::POST));
    peer.issue(1, url_op(Method::POST));
    assert_eq!(peer.sent(), [(1, 3), (0, 3), (1, 5), (0, 5)]);
    peer.send_frames(&[frame(kind::WINDOW_UPDATE, 0, 5, &[0, 0, 0, 6])]);
    let rest = peer.frames();
    assert_eq!(rest, [FrameHeader { length: 6, kind: 0, flags: flag::END_STREAM, stream: 5 }]);
    peer.now = OP_TIMEOUT;
    peer.session.on_timer(peer.now, &mut peer.io);
    assert_eq!(peer.io.tickets[1..], [Ticket(0), Ticket(1)]);
    peer.failed(ErrorClass::Timeout, "no reply within 10.0 s");
    assert_eq!(peer.sent(), [(kind::RST_STREAM, 3), (kind::RST_STREAM, 5)]);
    // Nothing came for too long: the connection is given up.
    assert_eq!(peer.io.closed, [peer.link()]);
    peer.issue(0, url_op(Method::POST));
    assert_eq!(peer.io.links, 2);
}

#[test]
fn late_frames_of_an_op_that_timed_out_are_ignored_and_its_connection_goes_on() {
    let mut peer = Peer::files(2);
    peer.issue(0, file_op(SMALL));
    peer.open(&[]);
    peer.now = Nanos::from_secs(1);
    peer.issue(1, file_op(SMALL));
    peer.send_frames(&[reply(3, file_set().content(SMALL))]);
    peer.now = OP_TIMEOUT;
    peer.session.on_timer(peer.now, &mut peer.io);
    peer.failed(ErrorClass::Timeout, "no reply within 10.0 s");
    peer.send_frames(&[reply(1, b"late"), reset(1, 0)]);
    peer.issue(0, file_op(SMALL));
    peer.send_frames(&[reply(5, file_set().content(SMALL))]);
    assert_eq!((peer.last().0.status, peer.io.links), (OpStatus::Ok, 1));
}

#[test]
fn timeouts_say_what_was_waited_for() {
    let settings = [(setting::INITIAL_WINDOW_SIZE, 4), (setting::MAX_CONCURRENT_STREAMS, 1)];
    let mut peer = Peer::with_settings(&settings);
    peer.issue(0, url_op(Method::POST));
    peer.now = OP_TIMEOUT;
    peer.session.on_timer(peer.now, &mut peer.io);
    let why = "the server's window let out only 4 of 10 bytes of the request's body";
    peer.failed(ErrorClass::Timeout, why);

    let mut peer = Peer::files(2);
    peer.issue(0, file_op(SMALL));
    let link = peer.link();
    peer.session.on_connected(link, peer.now, &mut peer.io);
    peer.now = OP_TIMEOUT;
    peer.session.on_timer(peer.now, &mut peer.io);
    peer.failed(ErrorClass::Timeout, "no reply and no settings of the server within 10.0 s");
    assert_eq!(peer.io.closed, [link]);
}

#[test]
fn before_the_settings_no_more_than_a_hundred_streams_and_the_default_window_are_used() {
    let mut peer = Peer::posts(70_000);
    peer.issue(0, url_op(Method::POST));
    peer.session.on_connected(peer.link(), peer.now, &mut peer.io);
    let sent =
        |frames: Vec<FrameHeader>| frames.iter().map(|f| f.length * u32::from(f.kind == 0)).sum();
    let body: u32 = sent(peer.frames());
    assert_eq!(body, 65_535);
    peer.send_frames(&[settings(&[(setting::INITIAL_WINDOW_SIZE, 80_000)])]);
    peer.send_frames(&[frame(kind::WINDOW_UPDATE, 0, 0, &[0, 0, 0x40, 0])]);
    let rest: u32 = sent(peer.frames());
    assert_eq!(rest, 70_000 - 65_535);

    let mut peer = Peer::files(150);
    (0..150).for_each(|ticket| peer.issue(ticket, file_op(SMALL)));
    peer.session.on_connected(peer.link(), peer.now, &mut peer.io);
    let requests = |sent: Vec<(u8, u32)>| sent.iter().filter(|(kind, _)| *kind == 1).count();
    assert_eq!(requests(peer.sent()), 100);
    peer.send_frames(&[settings(&[(setting::MAX_CONCURRENT_STREAMS, 120)])]);
    assert_eq!(requests(peer.sent()), 20);
}

/// The server has begun to answer, so it has processed the request, whatever its code.
#[test]
fn a_stream_that_had_begun_and_is_refused_broke_off() {
    for (last, why) in [
        (reset(1, 7), "the server reset the stream (REFUSED_STREAM) after 3 bytes of the body"),
        (goaway(0), "the server went away from the stream (NO_ERROR) after 3 bytes of the body"),
    ] {
        let mut peer = Peer::files(1);
        peer.issue(0, file_op(SMALL));
        peer.open(&[]);
        peer.send_frames(&[head(1, 0, OK), frame(kind::DATA, 0, 1, b"abc"), last]);
        peer.failed(ErrorClass::Truncated, why);
        assert_eq!(peer.session.take_counters().refused, 0);
    }
    let mut peer = Peer::files(1);
    peer.issue(0, file_op(SMALL));
    peer.open(&[]);
    peer.send_frames(&[head(1, 0, &[0x8e]), reset(1, 7)]);
    let why = "status 500, and then: the server reset the stream (REFUSED_STREAM)";
    peer.failed(ErrorClass::Status(500), why);
}

#[test]
fn streams_that_are_reset_are_counted_apart_from_lost_connections() {
    let mut peer = Peer::files(3);
    (0..3).for_each(|ticket| peer.issue(ticket, file_op(SMALL)));
    peer.open(&[]);
    peer.send_frames(&[reset(1, 8), head(3, 0, OK), reset(3, 2), head(5, 0, &[0x8e]), reset(5, 8)]);
    assert_eq!((peer.io.done.len(), peer.session.take_counters().stream_resets), (3, 2));
}

/// `name` and `value` as a literal without indexing.
fn field(name: &str, value: &str) -> Vec<u8> {
    let text = |text: &str| [&[text.len() as u8], text.as_bytes()].concat();
    [vec![0], text(name), text(value)].concat()
}

#[test]
fn a_grpc_status_in_the_trailers_fails_the_call_by_its_name() {
    let ended = |frames: &[Vec<u8>]| {
        let mut peer = Peer::posts(3);
        peer.issue(0, url_op(Method::POST));
        peer.open(&[]);
        peer.send_frames(frames);
        peer
    };
    let trailers = |code: &str| head(1, flag::END_STREAM, &field("grpc-status", code));
    let body = || frame(kind::DATA, 0, 1, b"abc");
    let failed = ended(&[head(1, 0, OK), body(), trailers("13")]);
    failed.failed(ErrorClass::InBand, "grpc-status 13 (INTERNAL)");
    let only = [OK, &field("grpc-status", "12")].concat();
    ended(&[head(1, flag::END_STREAM, &only)])
        .failed(ErrorClass::InBand, "grpc-status 12 (UNIMPLEMENTED)");
    ended(&[head(1, 0, OK), trailers("99")])
        .failed(ErrorClass::InBand, "grpc-status 99 (not defined)");
    assert_eq!(ended(&[head(1, 0, OK), body(), trailers("0")]).last().0.status, OpStatus::Ok);
    // A status of HTTP that is not expected comes first.
    let refused = [&[0x8e][..], &field("grpc-status", "14")].concat();
    ended(&[head(1, flag::END_STREAM, &refused)]).failed(ErrorClass::Status(500), "status 500");
}
