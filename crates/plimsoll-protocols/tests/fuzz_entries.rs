//! The entry points of the fuzz targets on the stable toolchain, with inputs near the real ones.

#![allow(missing_docs, reason = "a test has no readers of its documentation")]

#[path = "../../../fuzz/src/entries.rs"]
mod entries;

use plimsoll_protocols::SHIPPED;
use proptest::prelude::*;

/// Pieces that replies are made of, so that random choices reach the states behind them.
fn reply_piece() -> impl Strategy<Value = Vec<u8>> {
    let known: &[&[u8]] = &[
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
    let known: Vec<Vec<u8>> = known.iter().map(|piece| piece.to_vec()).collect();
    prop_oneof![
        4 => prop::sample::select(known),
        1 => prop::collection::vec(any::<u8>(), 0..64),
        1 => (any::<u8>(), 0usize..3_000).prop_map(|(byte, n)| vec![byte; n]),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

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

proptest! {
    #[test]
    fn no_text_breaks_the_suite_reader(
        shipped in prop::sample::select(SHIPPED.to_vec()),
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
