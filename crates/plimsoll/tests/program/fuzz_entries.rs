//! The entry points of the fuzz targets on the stable toolchain, with inputs near the real ones.

use plimsoll_fuzz::{app_entries, derive_entries, entries, h2_entries, nfs_entries};
use proptest::prelude::*;

/// Shipped suites: name and text.
fn shipped() -> Vec<(&'static str, &'static str)> {
    entries::PROTOCOLS.into_iter().flat_map(|protocol| protocol.suites).copied().collect()
}

/// Pieces that replies are made of, so that random choices reach the states behind them.
fn reply_piece() -> impl Strategy<Value = Vec<u8>> {
    let pieces: &[&[u8]] = &[
        b"HTTP/1.1 200 OK\r\n",
        b"HTTP/1.0 200 OK\r\n",
        b"HTTP/1.1 100 Continue\r\n\r\n",
        b"HTTP/1.1 204 No Content\r\n\r\n",
        b"HTTP/1.1 404 Not Found\r\n",
        b"\r\n",
        b"\n",
        b"\r",
        b"Content-Length: 102\r\n\r\n",
        b"Content-Length: 0\r\n",
        b"Content-Length: 99999\r\n\r\n",
        b"Content-Length: 18446744073709551615\r\n\r\n",
        b"Connection: close\r\n",
        b"Transfer-Encoding: chunked\r\n\r\n",
        b"5\r\nhello\r\n",
        b"0\r\n\r\n",
        b"ffffffffffffffff\r\n",
        b"A: b\r\n",
        b" folded\r\n",
    ];
    let pieces: Vec<Vec<u8>> = pieces.iter().map(|piece| piece.to_vec()).collect();
    prop_oneof![
        4 => prop::sample::select(pieces),
        1 => prop::collection::vec(any::<u8>(), 0..64),
        1 => (any::<u8>(), 0usize..3_000).prop_map(|(byte, n)| vec![byte; n]),
    ]
}

/// Pieces of lines of access logs.
fn log_piece() -> impl Strategy<Value = Vec<u8>> {
    let pieces: &[&[u8]] = &[
        b"::1 - - [10/Oct/2000:13:55:36 -0700] ",
        b"\"GET /a\\x22?b HTTP/1.1\" ",
        b"200 5 \"-\" \"x\"",
        b"1700000000.123 ",
        b"0.001 ",
        b"\n",
        b"\\\"",
        b"{\"ts\":1.5,\"request\":{\"method\":\"GET\",\"uri\":\"/\"},\"status\":200}",
        b"{\"StartUTC\":\"2000-10-10T20:55:36.5Z\",",
        b"\"RequestPath\":\"/\",\"DownstreamStatus\":200}",
        b"$msec $request $status",
        b"%t %r %>s",
        b"%{User-Agent}i",
    ];
    let pieces: Vec<Vec<u8>> = pieces.iter().map(|piece| piece.to_vec()).collect();
    prop_oneof![
        4 => prop::sample::select(pieces),
        1 => prop::collection::vec(any::<u8>(), 0..40),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn no_line_of_a_log_breaks_its_formats(pieces in prop::collection::vec(log_piece(), 0..12)) {
        derive_entries::log_line(&pieces.concat());
    }

    #[test]
    fn no_reply_breaks_a_session(
        head in any::<[u8; 2]>(),
        pieces in prop::collection::vec(reply_piece(), 0..40),
    ) {
        let mut data = head.to_vec();
        data.extend(pieces.concat());
        entries::reply(&data);
    }
}

/// Frames that replies are made of, and parts of header blocks.
fn h2_piece() -> impl Strategy<Value = Vec<u8>> {
    let frame = |kind: u8, flags: u8, stream: u8, payload: Vec<u8>| {
        let length = payload.len() as u8;
        [&[0, 0, length, kind, flags, 0, 0, 0, stream][..], &payload].concat()
    };
    let block = prop_oneof![
        Just(vec![0x88]),
        Just(vec![0x88, 0x0f, 0x0d, 1, b'3']),
        Just(vec![0x88, 0x40, 1, b'a', 1, b'b']),
        Just(vec![0x88, 0xbe]),
        prop::collection::vec(any::<u8>(), 0..9),
    ];
    let stream = prop_oneof![Just(0u8), 1u8..12];
    let flags = prop_oneof![Just(0u8), Just(1), Just(4), Just(5), any::<u8>()];
    let number = prop::collection::vec(0u8..9, 4);
    prop_oneof![
        6 => (flags.clone(), stream.clone(), block).prop_map(move |(f, s, b)| frame(1, f | 4, s, b)),
        4 => (flags.clone(), stream.clone(), prop::collection::vec(any::<u8>(), 0..5))
            .prop_map(move |(f, s, b)| frame(0, f, s, b)),
        3 => (stream.clone(), number.clone()).prop_map(move |(s, n)| frame(3, 0, s, n)),
        3 => (stream.clone(), number).prop_map(move |(s, n)| frame(8, 0, s, n)),
        1 => (0u8..12).prop_map(move |last| frame(7, 0, 0, vec![0, 0, 0, last, 0, 0, 0, 0])),
        1 => (0u8..12, flags, stream, prop::collection::vec(any::<u8>(), 0..20))
            .prop_map(move |(k, f, s, b)| frame(k, f, s, b)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn no_frames_break_a_session_of_http2(
        head in any::<[u8; 2]>(),
        pieces in prop::collection::vec(h2_piece(), 0..40),
    ) {
        let mut data = head.to_vec();
        data.extend(pieces.concat());
        h2_entries::h2_reply(&data);
    }

    #[test]
    fn no_header_block_is_taken_for_another(
        blocks in prop::collection::vec(
            prop_oneof![
                Just(vec![0x88]),
                Just(vec![0x88, 0xbe]),
                Just(vec![0x48, 3, b'2', b'0', b'1', 0xbe]),
                Just(vec![0x88, 0x40, 1, b'a', 1, b'b']),
                Just(vec![0x20, 0x88]),
                prop::collection::vec(any::<u8>(), 0..12),
            ],
            0..40,
        ),
    ) {
        let with_length = |block: Vec<u8>| [&[block.len() as u8][..], &block].concat();
        let data: Vec<u8> = blocks.into_iter().flat_map(with_length).collect();
        h2_entries::h2_block(&data);
    }
}

proptest! {
    #[test]
    fn no_text_breaks_the_suite_reader(
        shipped in prop::sample::select(shipped()),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
    ) {
        let mut bytes = shipped.1.as_bytes().to_vec();
        for (index, byte) in changes {
            let at = index.index(bytes.len());
            bytes[at] = byte & 0x7f;
        }
        entries::suite(&bytes);
    }
}

/// Values of messages, in the order in which random choices need them.
fn nfs_word() -> impl Strategy<Value = u32> {
    prop_oneof![4 => 0u32..4, 1 => 4u32..70, 1 => 100_000u32..100_006, 1 => any::<u32>()]
}

/// Begins of records: calls and replies, whole and in fragments.
fn nfs_begin() -> impl Strategy<Value = Vec<u32>> {
    let last = 0x8000_0000;
    prop_oneof![
        (24u32..200).prop_map(move |n| vec![last | n, 7, 1, 0, 0, 0, 0]),
        (40u32..200, 0u32..22).prop_map(move |(n, p)| vec![
            last | n,
            7,
            0,
            2,
            100_003,
            3,
            p,
            0,
            0,
            0,
            0
        ]),
        (40u32..200, 0u32..18).prop_map(move |(n, p)| vec![
            last | n,
            7,
            0,
            2,
            100_003,
            2,
            p,
            0,
            0,
            0,
            0
        ]),
        // Compounds of NFSv4.1 and of its callbacks, with SEQUENCE in front; then their replies.
        (100u32..250).prop_map(move |n| {
            let head = [last | n, 7, 0, 2, 100_003, 4, 1, 0, 0, 0, 0, 0, 1, 9];
            [&head[..], &[53, 0, 0, 0, 0, 1, 0, 0, 0]].concat()
        }),
        (100u32..250).prop_map(move |n| {
            let head = [last | n, 7, 0, 2, 0x4000_0000, 1, 1, 0, 0, 0, 0, 0, 1, 0, 9];
            [&head[..], &[11, 0, 0, 0, 0, 1, 0, 0, 0, 0]].concat()
        }),
        (80u32..250).prop_map(move |n| {
            let head = [last | n, 7, 1, 0, 0, 0, 0, 0, 0, 9];
            [&head[..], &[53, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0]].concat()
        }),
        (0u32..64).prop_map(|n| vec![n]),
        Just(Vec::new()),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_000))]

    #[test]
    fn no_bytes_break_the_decoders_of_nfs(
        head in any::<[u8; 2]>(),
        records in prop::collection::vec(
            (nfs_begin(), prop::collection::vec(nfs_word(), 0..50)),
            1..4,
        ),
    ) {
        let mut data = head.to_vec();
        for (begin, payload) in records {
            data.extend(begin.iter().chain(&payload).flat_map(|word| word.to_be_bytes()));
        }
        nfs_entries::nfs_request(&data);
        nfs_entries::nfs_reply(&data);
    }
}

/// A header of a reply to one of a session's first transactions, right but for a few fields; or
/// anything.
fn app_piece() -> impl Strategy<Value = Vec<u8>> {
    let header = (0u8..9, 0u8..7, 0u8..6, prop_oneof![Just(0u32), Just(1_000), Just(16_384)]);
    prop_oneof![
        4 => header.prop_map(|(kind, status, id, length)| {
            let mut reply = vec![0; 24];
            reply[..4].copy_from_slice(&length.to_be_bytes());
            (reply[4], reply[5], reply[11]) = (kind, status, id);
            reply
        }),
        1 => prop::collection::vec(any::<u8>(), 0..64),
        1 => (any::<u8>(), 0usize..20_000).prop_map(|(byte, n)| vec![byte; n]),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn no_reply_breaks_a_session_of_transactions(
        head in any::<[u8; 2]>(),
        pieces in prop::collection::vec(app_piece(), 0..20),
    ) {
        let mut data = head.to_vec();
        data.extend(pieces.concat());
        app_entries::app_reply(&data);
    }
}
