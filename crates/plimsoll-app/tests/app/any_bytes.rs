//! Any bytes at all, to the frame reader.

use plimsoll_app::wire::{Hello, RequestHeader, RequestType};
use plimsoll_fuzz::app_entries::app_request;
use proptest::prelude::*;

use crate::support::{frame, request};

/// Frames that are good but for a few bytes.
fn nearly_good() -> impl Strategy<Value = Vec<u8>> {
    let kind = (0_u8..8)
        .prop_map(|code| RequestType::from_code(code).unwrap_or(RequestType::ClientServer));
    let one = (kind, proptest::collection::vec(any::<u8>(), 0..300), any::<u32>()).prop_map(
        |(kind, payload, seed)| {
            let fits = matches!(kind as u8, 1 | 5 | 6).then_some(payload).unwrap_or_default();
            frame(RequestHeader { seed, ..request(kind) }, &fits)
        },
    );
    proptest::collection::vec(one, 0..20).prop_map(|frames| frames.concat())
}

proptest! {
    #[test]
    fn the_frame_reader_stays_whole(
        lead: [u8; 2],
        good in nearly_good(),
        rest in proptest::collection::vec(any::<u8>(), 0..500),
        flip in any::<prop::sample::Index>(),
        greet: bool,
    ) {
        let hello = Hello { version: 1, client: 1, segment_bytes: 1 }.encode();
        let greeting = if greet { &hello[..] } else { &[] };
        let mut all = [&lead[..], greeting, &good, &rest].concat();
        app_request(&all);
        let at = flip.index(all.len());
        all[at] ^= 1 << (at % 8);
        app_request(&all);
    }
}
