//! `docs/app-protocol.md` says what the code does: its test vectors, checked.

use super::wire::*;

const DOCUMENT: &str = include_str!("../../../docs/app-protocol.md");

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
