//! Header blocks as bytes: what is written in full, what by index, and over how many frames.

use super::frame::{FrameHeader, HEADER_BYTES, flag, kind};
use super::request::{Encoded, EncoderTable, encode, foreign_field, write_headers};
use crate::wire::request::{Frame, Method, RequestText};
use crate::wire::template::{NoVariables, Template};

fn frame(headers: &[String]) -> Frame<'_> {
    Frame { host: "h:1", headers, close: false }
}

fn headers() -> [String; 2] {
    ["User-Agent: me".to_owned(), "X-A: b c".to_owned()]
}

fn block(encoded: &Encoded, at: usize, table: &mut EncoderTable) -> Vec<u8> {
    let mut out = Vec::new();
    encoded.heads[at].write(
        (7, 12, &NoVariables),
        (&encoded.shared, table),
        &mut Vec::new(),
        &mut out,
    );
    out
}

#[test]
fn what_all_requests_share_is_sent_once_and_then_by_its_index() {
    let mut post = RequestText::plain(Method::POST, "/b");
    post.headers = vec!["X-Own: 1".to_owned()];
    let texts = [RequestText::plain(Method::GET, "/"), post];
    let headers = headers();
    let encoded = encode(frame(&headers), "http", texts.iter());
    let mut table = EncoderTable::default();
    let kept = b"\x41\x03h:1\x7a\x02me\x40\x03x-a\x03b c";
    let get = [&b"\x82\x86\x04\x01/"[..], kept].concat();
    assert_eq!(block(&encoded, 0, &mut table), get);
    // The first of three has the highest index. A POST has a length.
    let post = b"\x83\x86\x04\x02/b\xc0\xbf\xbe\x00\x05x-own\x011\x0f\x0d\x0212";
    assert_eq!(block(&encoded, 1, &mut table), post);
    assert_eq!(block(&encoded, 0, &mut table), b"\x82\x86\x04\x01/\xc0\xbf\xbe");
}

#[test]
fn a_server_without_room_for_them_gets_all_fields_in_full() {
    let headers = headers();
    let text = RequestText::plain(Method::GET, "/");
    let encoded = encode(frame(&headers), "https", std::iter::once(&text));
    let mut table = EncoderTable::default();
    block(&encoded, 0, &mut table);
    table.allow(20);
    table.allow(4_096);
    let plain = b"\x82\x87\x04\x01/\x01\x03h:1\x0f\x2b\x02me\x00\x03x-a\x03b c";
    assert_eq!(block(&encoded, 0, &mut table), [&[0x20 | 20], &plain[..]].concat());
    assert_eq!(block(&encoded, 0, &mut table), plain);
}

#[test]
fn random_parts_of_a_path_are_written_for_each_request() {
    let target = Template::parse("/{{int,5,5}}").unwrap();
    let text = RequestText { target, ..RequestText::plain(Method::GET, "/") };
    let encoded = encode(frame(&[]), "http", std::iter::once(&text));
    let drawn = block(&encoded, 0, &mut EncoderTable::default());
    assert!(drawn.starts_with(b"\x82\x86\x04\x02/5\x41\x03h:1"), "{drawn:?}");
}

#[test]
fn a_host_field_is_the_authority_and_fields_of_connections_are_refused() {
    let headers = ["Host: other".to_owned()];
    let mut text = RequestText::plain(Method::GET, "/");
    let encoded = encode(frame(&headers), "http", std::iter::once(&text));
    let written = block(&encoded, 0, &mut EncoderTable::default());
    assert!(written.starts_with(b"\x82\x86\x04\x01/\x41\x05other"), "{written:?}");
    assert_eq!(foreign_field(frame(&headers), &text), None);
    text.headers = vec!["Transfer-Encoding: chunked".to_owned()];
    let refused = foreign_field(frame(&headers), &text);
    assert_eq!(refused.as_deref(), Some("transfer-encoding"));
}

#[test]
fn a_block_longer_than_a_frame_is_continued() {
    let written: Vec<u8> = (0..50).collect();
    let mut out = vec![9];
    write_headers((3, flag::END_STREAM), 20, |out| out.extend_from_slice(&written), &mut out);
    let (mut rest, mut block, mut frames) = (&out[1..], Vec::new(), Vec::new());
    while let Some((header, after)) = rest.split_first_chunk::<HEADER_BYTES>() {
        let header = FrameHeader::read(*header);
        let (part, after) = after.split_at(header.length as usize);
        block.extend_from_slice(part);
        frames.push((header.kind, header.flags, header.stream, header.length));
        rest = after;
    }
    assert_eq!(block, written);
    let continued = kind::CONTINUATION;
    let expected = [
        (kind::HEADERS, flag::END_STREAM, 3, 20),
        (continued, 0, 3, 20),
        (continued, flag::END_HEADERS, 3, 10),
    ];
    assert_eq!(frames, expected);
}
