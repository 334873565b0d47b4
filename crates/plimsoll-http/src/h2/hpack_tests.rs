//! Header blocks: the standard's examples, malformed blocks, and blocks that repeat.

use super::fields::{Fields, HeaderError, LIST_BYTES_MAX};
use super::hpack::{Decoder, HpackError};

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex.bytes().filter(u8::is_ascii_hexdigit).collect();
    digits
        .chunks(2)
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
        .collect()
}

/// RFC 7541 Appendix C.6: three replies on one connection, Huffman-coded.
const REPLIES: [(&str, u16); 3] = [
    (
        "4882 6402 5885 aec3 771a 4b61 96d0 7abe 9410 54d4 44a8 2005 9504 0b81 66e0 82a6 2d1b ff6e \
         919d 29ad 1718 63c7 8f0b 97c8 e9ae 82ae 43d3",
        302,
    ),
    ("4883 640e ffc1 c0bf", 307),
    (
        "88c1 6196 d07a be94 1054 d444 a820 0595 040b 8166 e084 a62d 1bff c05a 839b d9ab 77ad 94e7 \
         821d d7f2 e6c7 b335 dfdf cd5b 3960 d5af 2708 7f36 72c1 ab27 0fb5 291f 9587 3160 65c0 03ed \
         4ee5 b106 3d50 07",
        200,
    ),
];

#[test]
fn the_replies_of_the_standard_are_read() {
    let mut decoder = Decoder::default();
    for (hex, status) in REPLIES {
        let fields = decoder.read(&bytes(hex)).unwrap();
        assert_eq!(fields.reply(), Ok((status, None)));
    }
    // What the third has added, by its indexes.
    let indexed = decoder.read(&bytes("88 be bf c0")).unwrap();
    assert_eq!((indexed.reply(), indexed.count()), (Ok((200, None)), 4));
}

/// A literal field that the table keeps, or not.
fn literal(kept: bool, name: &str, value: &str) -> Vec<u8> {
    let first = if kept { 0x40 } else { 0 };
    let mut field = vec![first, name.len() as u8];
    field.extend(name.bytes());
    field.push(value.len() as u8);
    field.extend(value.bytes());
    field
}

#[test]
fn a_block_is_known_again_until_the_table_changes() {
    let mut decoder = Decoder::default();
    let kept = |value: &str| literal(true, "content-length", value);
    decoder.read(&[&[0x88], &kept("10")[..]].concat()).unwrap();
    for _ in 0..3 {
        assert_eq!(decoder.read(&[0x88, 62 | 0x80]).unwrap().reply(), Ok((200, Some(10))));
    }
    decoder.read(&[&[0x88], &kept("11")[..]].concat()).unwrap();
    assert_eq!(decoder.read(&[0x88, 62 | 0x80]).unwrap().reply(), Ok((200, Some(11))));
    // A smaller table, then one of nothing.
    decoder.read(&[0x20, 0x88]).unwrap();
    assert_eq!(decoder.read(&[0x88, 62 | 0x80]), Err(HpackError::Index(62)));
}

#[test]
fn many_different_blocks_are_read_as_what_they_are() {
    let mut decoder = Decoder::default();
    for round in 0..4 {
        for length in 0..20u64 {
            let block = [&[0x88], &literal(false, "content-length", &length.to_string())[..]];
            let fields = decoder.read(&block.concat()).unwrap();
            assert_eq!(fields.reply(), Ok((200, Some(length))), "round {round}");
        }
    }
}

#[test]
fn fields_beyond_the_table_push_the_oldest_out() {
    let mut decoder = Decoder::default();
    // 100 bytes each, so that 40 fit.
    for number in 0..100u32 {
        let value = format!("{number:0>66}");
        decoder.read(&[&[0x88], &literal(true, "x1", &value)[..]].concat()).unwrap();
    }
    assert!(decoder.read(&[0x88, (62 + 39) | 0x80]).is_ok());
    assert_eq!(decoder.read(&[0x88, (62 + 40) | 0x80]), Err(HpackError::Index(102)));
    // A field larger than the table empties it.
    let large = [&[0x40, 1, b'x', 0x7f, 0x81, 0x1f][..], &[b'y'; 4_096]].concat();
    decoder.read(&large).unwrap();
    assert_eq!(decoder.read(&[0x88, 62 | 0x80]), Err(HpackError::Index(62)));
}

#[test]
fn blocks_that_are_none_are_refused() {
    for (hex, why) in [
        ("80", HpackError::Index(0)),
        ("be", HpackError::Index(62)),
        ("ff", HpackError::Incomplete),
        ("ffffffffffff", HpackError::Number),
        ("48", HpackError::Incomplete),
        ("4882 64", HpackError::Incomplete),
        ("4881 18", HpackError::Huffman),
        ("88 20", HpackError::LateTableSize),
        ("3f e2 1f", HpackError::TableSize(4_097)),
    ] {
        assert_eq!(Decoder::default().read(&bytes(hex)), Err(why), "{hex}");
    }
    assert!(Decoder::default().read(&bytes("3f e1 1f 88")).is_ok(), "4,096 bytes are allowed");
}

#[test]
fn headers_that_no_reply_has_are_named() {
    let read = |fields: &[&[u8]]| Decoder::default().read(&fields.concat()).unwrap();
    let status = &[0x88][..];
    let own = |name: &str, value: &str| literal(false, name, value);
    let cases: [(Fields, HeaderError); 12] = [
        (read(&[]), HeaderError::Status),
        (read(&[status, status]), HeaderError::Status),
        (read(&[&own(":status", "20")]), HeaderError::Status),
        (read(&[&own(":status", "099")]), HeaderError::Status),
        (read(&[&own("a", "b"), status]), HeaderError::Pseudo),
        (read(&[status, &own(":path", "/")]), HeaderError::Pseudo),
        (read(&[status, &own("Server", "x")]), HeaderError::Bytes),
        (read(&[status, &own("a", "b\n")]), HeaderError::Bytes),
        (read(&[status, &own("", "b")]), HeaderError::Bytes),
        (read(&[status, &own("transfer-encoding", "chunked")]), HeaderError::Connection),
        (read(&[status, &own("content-length", "-1")]), HeaderError::Length),
        (
            read(&[status, &own("content-length", "1"), &own("content-length", "1")]),
            HeaderError::Length,
        ),
    ];
    for (fields, why) in cases {
        assert_eq!(fields.reply(), Err(why));
    }
    assert_eq!(read(&[status]).check_trailer(), Err(HeaderError::Pseudo));
    assert_eq!(read(&[&own("a", "b")]).check_trailer(), Ok(()));
}

#[test]
fn a_list_that_indexes_blow_up_is_over_the_limit_and_takes_no_room() {
    let mut decoder = Decoder::default();
    let large = [&[0x40, 1, b'x', 0x7f, 0x81, 0x1e][..], &[b'y'; 3_968]].concat();
    decoder.read(&large).unwrap();
    let bomb = [&[0x88][..], &vec![62 | 0x80; LIST_BYTES_MAX as usize / 4_000 + 1]].concat();
    let fields = decoder.read(&bomb).unwrap();
    assert_eq!(fields.reply(), Err(HeaderError::TooLong));
}
