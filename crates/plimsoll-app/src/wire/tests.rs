use proptest::prelude::*;

use super::*;

#[test]
fn a_hello_has_its_golden_bytes() {
    let hello = Hello { version: 1, client: 7, segment_bytes: 16 << 20 };
    let golden =
        *b"PLMS\x00\x01\x00\x00\x00\x00\x00\x07\x00\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00";
    assert_eq!(hello.encode(), golden);
    assert_eq!(Hello::decode(&golden), Ok(hello));
}

#[test]
fn a_request_has_its_golden_bytes() {
    let request = RequestHeader {
        payload_bytes: 0,
        kind: RequestType::Read,
        id: 0x0102_0304,
        size: 8_192,
        offset: 0x10_0000,
        seed: 0xdead_beef,
        work: 0,
    };
    let mut golden = [0; REQUEST_HEADER_BYTES];
    golden[4] = 4;
    golden[8..12].copy_from_slice(&[1, 2, 3, 4]);
    golden[14] = 0x20;
    golden[21] = 0x10;
    golden[24..28].copy_from_slice(&[0xde, 0xad, 0xbe, 0xef]);
    assert_eq!(request.encode(), golden);
    assert_eq!(RequestHeader::decode(&golden), Ok(request));
}

#[test]
fn the_checksum_is_that_of_zlib() {
    assert_eq!(checksum(0, b"123456789"), 0xcbf4_3926);
    assert_eq!(checksum(checksum(0, b"1234"), b"56789"), 0xcbf4_3926);
    assert_eq!(checksum(5, b""), 5);
    assert_eq!(work_checksum(9, 0), 9);
    assert_eq!(work_checksum(9, 2), checksum(checksum(9, work_block()), work_block()));
}

#[test]
fn a_client_of_another_protocol_is_recognised() {
    let mut bytes = [0; HELLO_BYTES];
    bytes[..4].copy_from_slice(b"GET ");
    assert_eq!(Hello::decode(&bytes), Err(WireError::Magic(*b"GET ")));
}

#[test]
fn a_server_of_another_version_is_a_refusal_that_names_it() {
    let mut bytes = Welcome::refused(Refusal::Full).encode();
    bytes[5] = 9;
    let welcome = Welcome::decode(&bytes).unwrap();
    assert_eq!((welcome.version, welcome.refusal), (9, Some(Refusal::Version)));
}

#[test]
fn lengths_above_the_limits_are_refused() {
    let good = RequestHeader {
        payload_bytes: PAYLOAD_BYTES_MAX,
        kind: RequestType::Write,
        id: 0,
        size: PAYLOAD_BYTES_MAX,
        offset: u64::MAX,
        seed: 0,
        work: WORK_MAX,
    };
    let check = |request: RequestHeader| RequestHeader::decode(&request.encode());
    assert_eq!(check(good), Ok(good));
    let too_large = PAYLOAD_BYTES_MAX + 1;
    assert_eq!(
        check(RequestHeader { payload_bytes: too_large, ..good }),
        Err(WireError::Payload(too_large))
    );
    assert_eq!(check(RequestHeader { size: too_large, ..good }), Err(WireError::Size(too_large)));
    let work = WORK_MAX + 1;
    assert_eq!(check(RequestHeader { work, ..good }), Err(WireError::Work(work)));
}

proptest! {
    #[test]
    fn whatever_decodes_encodes_to_the_same_bytes(
        hello: [u8; HELLO_BYTES],
        welcome: [u8; WELCOME_BYTES],
        request: [u8; REQUEST_HEADER_BYTES],
        reply: [u8; REPLY_HEADER_BYTES],
        // Random bytes seldom pass for a message; these are made to.
        kind in 0_u8..9,
        status in 0_u8..7,
    ) {
        let (mut hello, mut welcome, mut request, mut reply) = (hello, welcome, request, reply);
        hello[..8].copy_from_slice(b"PLMS\0\x01\0\0");
        hello[12..16].fill(0);
        welcome[..8].copy_from_slice(&[b'P', b'L', b'M', b'S', 0, 1, 0, status]);
        welcome[12] &= 3;
        welcome[13..16].fill(0);
        request[..2].fill(0);
        request[4] = kind;
        request[5..8].fill(0);
        request[12..14].fill(0);
        request[28..30].fill(0);
        request[32..].fill(0);
        reply[..2].fill(0);
        reply[5] = status;
        reply[6..8].fill(0);
        prop_assert_eq!(Hello::decode(&hello).unwrap().encode(), hello);
        if let Ok(decoded) = Welcome::decode(&welcome) {
            prop_assert_eq!(decoded.encode(), welcome);
        }
        if let Ok(decoded) = RequestHeader::decode(&request) {
            prop_assert_eq!(decoded.encode(), request);
        }
        if let Ok(decoded) = ReplyHeader::decode(&reply) {
            prop_assert_eq!(decoded.encode(), reply);
        }
    }

    #[test]
    fn any_bytes_are_decoded_or_refused(
        hello: [u8; HELLO_BYTES],
        welcome: [u8; WELCOME_BYTES],
        request: [u8; REQUEST_HEADER_BYTES],
        reply: [u8; REPLY_HEADER_BYTES],
    ) {
        let _ = Hello::decode(&hello);
        let _ = Welcome::decode(&welcome);
        let _ = RequestHeader::decode(&request);
        let _ = ReplyHeader::decode(&reply);
    }
}

/// The specification, whose test vectors are checked below.
const DOCUMENT: &str = include_str!("../../../../docs/app-protocol.md");

/// The lines of hexadecimal, without spaces.
fn messages() -> Vec<String> {
    let block = DOCUMENT.split("```").nth(1).unwrap();
    let lines = block.lines().filter_map(|line| line.strip_prefix("  "));
    lines.map(|line| line.replace(' ', "")).collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn the_messages_of_the_document_are_ours() {
    let hello = Hello { version: 1, client: 7, segment_bytes: 16 << 20 };
    let welcome = Welcome {
        version: 1,
        refusal: None,
        service_threads: 4,
        durable: true,
        calibrated: false,
        segment_bytes: 16 << 20,
        memory_bytes: 0,
    };
    let exchange = RequestHeader {
        payload_bytes: 5,
        kind: RequestType::ClientServer,
        id: 7,
        size: 3,
        offset: 0,
        seed: 0xdead_beef,
        work: 0,
    };
    let exchanged = ReplyHeader {
        payload_bytes: 3,
        kind: 1,
        status: Status::Ok,
        id: 7,
        checksum: checksum(0xdead_beef, b"hello"),
        server_ns: 1_500,
    };
    let kind = RequestType::Processor;
    let work =
        RequestHeader { payload_bytes: 0, kind, id: 8, size: 0, seed: 9, work: 2, ..exchange };
    let worked = ReplyHeader {
        payload_bytes: 0,
        kind: 2,
        id: 8,
        checksum: work_checksum(9, 2),
        server_ns: 0,
        ..exchanged
    };
    let ours = [
        hex(&hello.encode()),
        hex(&welcome.encode()),
        hex(&exchange.encode()) + &hex(b"hello"),
        hex(&exchanged.encode()) + "xxxxxx",
        hex(&work.encode()),
        hex(&worked.encode()),
    ];
    assert_eq!(messages(), ours);
}

#[test]
fn the_checksums_of_the_document_are_ours() {
    let block = work_block();
    for (what, result) in [
        ("`crc` from 0 over `123456789`", hex(&checksum(0, b"123456789").to_be_bytes())),
        ("1 unit of work from 0", hex(&work_checksum(0, 1).to_be_bytes())),
        ("2 units from 9", hex(&work_checksum(9, 2).to_be_bytes())),
        ("100 units from 0", hex(&work_checksum(0, 100).to_be_bytes())),
        ("100 units from `deadbeef`", hex(&work_checksum(0xdead_beef, 100).to_be_bytes())),
        (
            "`crc` from 5 over the first 16,384 bytes of the work block",
            hex(&checksum(5, &block[..16_384]).to_be_bytes()),
        ),
    ] {
        let row = format!("| {what} | `{result}` |");
        assert!(DOCUMENT.contains(&row), "{row}");
    }
    for (what, range) in [("bytes 0 to 7", 0..8), ("bytes 256 to 263", 256..264)] {
        let bytes: Vec<String> = block[range].iter().map(|byte| format!("{byte:02x}")).collect();
        let row = format!("| work block, {what} | `{}` |", bytes.join(" "));
        assert!(DOCUMENT.contains(&row), "{row}");
    }
}

#[test]
fn the_limits_of_the_document_are_ours() {
    for text in ["at most 65,536", "at most 1,000,000", "default port is 7415", "version 1"] {
        assert!(DOCUMENT.contains(text), "{text}");
    }
    assert_eq!((PAYLOAD_BYTES_MAX, WORK_MAX, VERSION), (65_536, 1_000_000, 1));
}
