//! One connection under frames of a server, in one piece and in many.

use proptest::prelude::*;

use super::connection::Connection;
use super::event::{Event, Fault, Tag, Wrong};
use super::fields::HeaderError;
use super::frame::{self, Code, PREFACE, flag, kind, setting};
use super::windows::ReceiveWindows;

const WINDOWS: ReceiveWindows =
    ReceiveWindows { stream_bytes: 100_000, connection_bytes: 1_000_000 };
/// `:status: 200`
const OK: &[u8] = &[0x88];

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    frame::write(kind, flags, stream, payload, &mut out);
    out
}

fn settings(list: &[(u16, u32)]) -> Vec<u8> {
    let mut out = Vec::new();
    frame::write_settings(list, &mut out);
    out
}

fn head(stream: u32, flags: u8, block: &[u8]) -> Vec<u8> {
    frame(kind::HEADERS, flag::END_HEADERS | flags, stream, block)
}

fn data(stream: u32, flags: u8, payload: &[u8]) -> Vec<u8> {
    frame(kind::DATA, flags, stream, payload)
}

/// A connection whose server has sent its settings, with some streams open.
fn ready(list: &[(u16, u32)], streams: u32) -> Connection {
    let mut connection = Connection::new(WINDOWS);
    assert!(connection.out.starts_with(PREFACE));
    connection.out.clear();
    assert_eq!(events(&mut connection, &settings(list), 1_000).unwrap(), ["Settings"]);
    for at in 0..streams {
        connection.open(Tag(at), false, |_, out| out.push(0x82));
    }
    connection.out.clear();
    connection
}

/// The events of bytes that come in parts; consecutive data are one event.
fn events(
    connection: &mut Connection,
    bytes: &[u8],
    part_bytes: usize,
) -> Result<Vec<String>, Fault> {
    let mut described: Vec<String> = Vec::new();
    let mut body = 0;
    for mut part in bytes.chunks(part_bytes) {
        while let Some(event) = connection.next(&mut part)? {
            match event {
                Event::Data { payload, ends: false, .. } => body += payload.len(),
                Event::Data { tag, payload, ends } => {
                    described.push(format!("{tag:?} {} {ends}", body + payload.len()));
                    body = 0;
                }
                other => described.push(format!("{other:?}")),
            }
        }
        assert!(part.is_empty());
    }
    Ok(described)
}

fn fault(bytes: &[u8]) -> Fault {
    events(&mut ready(&[], 2), bytes, 3).unwrap_err()
}

#[test]
fn a_reply_is_its_head_its_body_and_its_end() {
    let mut connection = ready(&[], 1);
    let bytes = [head(1, 0, OK), data(1, 0, b"abc"), data(1, flag::END_STREAM, b"d")].concat();
    let head = "Head { tag: Tag(0), status: 200, length: None, ends: false }";
    assert_eq!(events(&mut connection, &bytes, 7).unwrap(), [head, "Tag(0) 4 true"]);
    assert_eq!(connection.streams(), 0);
    assert!(connection.out.is_empty());
}

#[test]
fn padding_priority_trailers_and_interim_heads_belong_to_no_body() {
    let mut connection = ready(&[], 1);
    let padded = [&[3, 0, 0, 0, 1, 9][..], OK, &[0; 3]].concat();
    let flags = flag::PADDED | flag::PRIORITY | flag::END_HEADERS;
    let bytes = [
        head(1, 0, &[0x48, 3, b'1', b'0', b'3']),
        frame(kind::HEADERS, flags, 1, &padded),
        data(1, flag::PADDED, &[2, b'x', b'y', 0, 0]),
        head(1, flag::END_STREAM, &[0, 1, b'a', 1, b'b']),
    ];
    let described = events(&mut connection, &bytes.concat(), 1).unwrap();
    assert_eq!(described[1..], ["Tag(0) 2 true"]);
}

#[test]
fn pings_and_settings_are_answered_and_what_is_unknown_is_not() {
    let mut connection = ready(&[], 0);
    let bytes = [
        frame(kind::PING, 0, 0, b"12345678"),
        frame(0x0c, 1, 0, b"http://example.org"),
        frame(kind::PRIORITY, 0, 1, &[0; 5]),
        settings(&[]),
        frame(kind::SETTINGS, flag::ACK, 0, &[]),
    ];
    assert_eq!(events(&mut connection, &bytes.concat(), 4).unwrap(), ["Settings"]);
    let pong = frame(kind::PING, flag::ACK, 0, b"12345678");
    assert_eq!(connection.out, [pong, frame(kind::SETTINGS, flag::ACK, 0, &[])].concat());
}

#[test]
fn windows_are_opened_again_by_half_and_what_goes_beyond_them_is_a_fault() {
    let mut connection = ready(&[], 1);
    let chunk = vec![0; 16_384];
    let mut bytes = head(1, 0, OK);
    (0..4).for_each(|_| bytes.extend(data(1, 0, &chunk)));
    events(&mut connection, &bytes, 50_000).unwrap();
    let mut update = Vec::new();
    frame::write_window_update(1, 4 * 16_384, &mut update);
    assert_eq!(connection.out, update, "of the stream; the connection's window is larger");

    let mut small = Connection::new(ReceiveWindows { stream_bytes: 10, ..WINDOWS });
    events(&mut small, &settings(&[]), 100).unwrap();
    small.open(Tag(0), false, |_, _| ());
    let beyond = [head(1, 0, OK), data(1, 0, &[0; 11])].concat();
    assert_eq!(events(&mut small, &beyond, 100), Err(Fault::Window));
}

#[test]
fn a_body_goes_out_as_far_as_both_windows_allow() {
    let mut connection = ready(&[(setting::INITIAL_WINDOW_SIZE, 5)], 0);
    let stream = connection.open(Tag(0), true, |_, _| ());
    connection.out.clear();
    assert_eq!(connection.send_body(stream, b"12345678"), 5);
    assert_eq!(connection.out, data(1, 0, b"12345"));
    let mut update = Vec::new();
    frame::write_window_update(1, 2, &mut update);
    assert_eq!(events(&mut connection, &update, 2).unwrap(), ["Window"]);
    connection.out.clear();
    assert_eq!(connection.send_body(stream, b"678"), 2);
    // Settings that open the windows of all streams.
    events(&mut connection, &settings(&[(setting::INITIAL_WINDOW_SIZE, 6)]), 99).unwrap();
    connection.out.clear();
    assert_eq!(connection.send_body(stream, b"8"), 1);
    assert_eq!(connection.out, data(1, flag::END_STREAM, b"8"));
}

#[test]
fn a_reply_before_the_end_of_the_request_ends_the_request() {
    let mut connection = ready(&[(setting::INITIAL_WINDOW_SIZE, 0)], 0);
    let stream = connection.open(Tag(0), true, |_, _| ());
    connection.out.clear();
    assert_eq!(connection.send_body(stream, b"x"), 0);
    events(&mut connection, &head(1, flag::END_STREAM, OK), 99).unwrap();
    assert_eq!(connection.out, frame(kind::RST_STREAM, 0, 1, &[0, 0, 0, 8]));
}

#[test]
fn streams_that_the_server_did_not_process_are_told_from_those_it_will_finish() {
    let mut connection = ready(&[], 3);
    let goaway = frame(kind::GOAWAY, 0, 0, &[0, 0, 0, 3, 0, 0, 0, 0]);
    assert_eq!(events(&mut connection, &goaway, 5).unwrap(), ["GoAway"]);
    assert!(!connection.has_room() && !connection.takes_more());
    assert_eq!(connection.take_unprocessed(), Some(Tag(2)));
    assert_eq!(connection.take_unprocessed(), None);
    assert_eq!(connection.streams(), 2);
}

#[test]
fn frames_of_closed_streams_are_ignored_but_their_blocks_are_read() {
    let mut connection = ready(&[], 2);
    connection.cancel(1);
    let kept = [OK, &[0x40, 14][..], b"content-length", &[1, b'7']].concat();
    let bytes = [
        head(1, 0, &kept),
        data(1, flag::END_STREAM, b"late"),
        frame(kind::RST_STREAM, 0, 1, &[0, 0, 0, 5]),
        frame(kind::WINDOW_UPDATE, 0, 1, &[0, 0, 0, 5]),
        head(3, flag::END_STREAM, &[0x88, 62 | 0x80]),
    ];
    let described = events(&mut connection, &bytes.concat(), 6).unwrap();
    assert_eq!(described, ["Head { tag: Tag(1), status: 200, length: Some(7), ends: true }"]);
}

#[test]
fn what_is_wrong_with_one_reply_leaves_the_others() {
    for (bytes, why) in [
        (head(1, 0, &[0x82]), Wrong::Header(HeaderError::Pseudo)),
        (head(1, 0, &[0x48, 3, b'1', b'0', b'1']), Wrong::Upgrade),
        (head(1, flag::END_STREAM, &[0x48, 3, b'1', b'0', b'0']), Wrong::Interim),
        (data(1, 0, b"x"), Wrong::NoHead),
        ([head(1, 0, OK), head(1, 0, &[])].concat(), Wrong::Trailer),
    ] {
        let mut connection = ready(&[], 2);
        let described = events(&mut connection, &bytes, 4).unwrap();
        assert_eq!(described.last().unwrap(), &format!("{:?}", Event::Wrong(Tag(0), why)));
        assert_eq!(connection.streams(), 1);
        assert_eq!(connection.out, frame(kind::RST_STREAM, 0, 1, &[0, 0, 0, 1]));
    }
}

#[test]
fn what_is_wrong_with_the_connection_is_named() {
    let continued = |stream, flags| frame(kind::CONTINUATION, flags, stream, &[0; 100]);
    let open_block = frame(kind::HEADERS, 0, 1, &[]);
    let flood: Vec<u8> = (0..200).flat_map(|_| continued(1, 0)).collect();
    let pings = frame(kind::PING, 0, 0, &[0; 8]).repeat(5_000);
    for (bytes, why) in [
        (vec![0x00, 0x40, 0x01, 0, 0, 0, 0, 0, 1], Fault::FrameTooLong { bytes: 16_385 }),
        (frame(kind::PING, 0, 0, &[0; 7]), Fault::FrameLength(kind::PING)),
        (frame(kind::PING, 0, 1, &[0; 8]), Fault::FrameStream(kind::PING)),
        (frame(kind::RST_STREAM, 0, 1, &[0; 5]), Fault::FrameLength(kind::RST_STREAM)),
        (frame(kind::RST_STREAM, 0, 5, &[0; 4]), Fault::FrameStream(kind::RST_STREAM)),
        (frame(kind::GOAWAY, 0, 0, &[0; 7]), Fault::FrameLength(kind::GOAWAY)),
        (frame(kind::WINDOW_UPDATE, 0, 0, &[0; 4]), Fault::WindowUpdate),
        (frame(kind::WINDOW_UPDATE, 0, 0, &[0x7f, 255, 255, 255]), Fault::WindowUpdate),
        (frame(kind::PUSH_PROMISE, 4, 1, &[0, 0, 0, 2]), Fault::Push),
        (head(2, 0, OK), Fault::FrameStream(kind::HEADERS)),
        (data(7, 0, b"x"), Fault::FrameStream(kind::DATA)),
        (data(1, flag::PADDED, &[1]), Fault::Padding),
        (data(1, flag::PADDED, &[]), Fault::Padding),
        (frame(kind::HEADERS, flag::PADDED, 1, &[2, 0]), Fault::Padding),
        (continued(1, 0), Fault::Continuation),
        ([&open_block[..], &data(1, 0, b"x")].concat(), Fault::Continuation),
        ([&open_block[..], &continued(3, 4)].concat(), Fault::Continuation),
        ([&open_block[..], &flood].concat(), Fault::BlockTooLong),
        (pings, Fault::Flood),
        (settings(&[(setting::ENABLE_PUSH, 1)]), Fault::Setting(setting::ENABLE_PUSH)),
    ] {
        assert_eq!(fault(&bytes), why);
    }
}

#[test]
fn bytes_that_are_no_http2_are_told_from_http1() {
    let first = |bytes: &[u8]| events(&mut Connection::new(WINDOWS), bytes, 2).unwrap_err();
    assert_eq!(first(b"HTTP/1.1 400 Bad Request\r\n"), Fault::Http1);
    assert_eq!(first(b"SSH-2.0-OpenSSH_9.2\r\n"), Fault::NotHttp2);
    assert_eq!(first(&frame(kind::PING, 0, 0, &[0; 8])), Fault::NotHttp2);
    assert_eq!(first(&frame(kind::SETTINGS, flag::ACK, 0, &[])), Fault::NotHttp2);
}

/// Frames as a server might send them, many of them right.
fn frames() -> impl Strategy<Value = Vec<u8>> {
    let stream = prop_oneof![Just(0u32), Just(1), Just(3), Just(5), 0u32..9];
    let block = prop_oneof![
        Just(OK.to_vec()),
        Just(vec![0x88, 0x0f, 0x0d, 1, b'3']),
        prop::collection::vec(any::<u8>(), 0..12),
    ];
    let right = (stream.clone(), block, any::<bool>()).prop_map(|(stream, block, ends)| {
        head(stream, if ends { flag::END_STREAM } else { 0 }, &block)
    });
    let any_frame = (0u8..11, any::<u8>(), stream, prop::collection::vec(any::<u8>(), 0..40));
    let any_frame =
        any_frame.prop_map(|(kind, flags, stream, load)| frame(kind, flags, stream, &load));
    prop::collection::vec(prop_oneof![2 => right, 3 => any_frame], 0..12).prop_map(|f| f.concat())
}

proptest! {
    #[test]
    fn how_bytes_are_cut_changes_nothing(bytes in frames(), part_bytes in 1usize..30) {
        let (mut whole, mut parts) = (ready(&[], 3), ready(&[], 3));
        let described = events(&mut whole, &bytes, bytes.len().max(1));
        prop_assert_eq!(events(&mut parts, &bytes, part_bytes), described);
        prop_assert_eq!(whole.streams(), parts.streams());
        prop_assert!(parts.heap_bytes() < 100_000);
    }
}

#[test]
fn codes_of_faults_are_those_of_the_standard() {
    assert_eq!(Fault::Flood.code(), Code::ENHANCE_YOUR_CALM);
    assert_eq!(Fault::Window.code(), Code::FLOW_CONTROL_ERROR);
    assert_eq!(Fault::Push.code(), Code::PROTOCOL_ERROR);
}
