//! What must hold of the frame reader, whatever a client sends. A fuzz target and a property test
//! feed the same function; both have the reader as `super::connection`.

use plimsoll_app::wire::WireError;

use super::connection::{Arrived, FRAME_BYTES_MAX, Inbox, Malformed};

/// Feeds what a hostile client sends. The first two bytes say how long the pieces are, and how
/// many times the rest arrives.
pub fn app_request(data: &[u8]) {
    let [piece, times, input @ ..] = data else { return };
    let input = input.repeat(usize::from(*times % 8) + 1);
    let whole = read(&input, FRAME_BYTES_MAX);
    let pieces = read(&input, usize::from(*piece) * usize::from(*piece) + 1);
    assert_eq!(whole, pieces, "how bytes are cut changes what they mean");
}

/// All messages, as bytes again, and how it ended.
fn read(input: &[u8], piece: usize) -> (Vec<Vec<u8>>, Option<Malformed>) {
    let (mut inbox, mut messages, mut rest, mut held_max) = (Inbox::new(), Vec::new(), input, 0);
    loop {
        match inbox.next_message() {
            Ok(Some(Arrived::Hello(hello))) => messages.push(hello.encode().to_vec()),
            Ok(Some(Arrived::Request(request))) => {
                assert_eq!(inbox.payload().len(), request.payload_bytes as usize);
                messages.push([&request.encode()[..], inbox.payload()].concat());
                inbox.finish();
            }
            Ok(None) if rest.is_empty() => break,
            Ok(None) => {
                let (now, later) = rest.split_at(piece.min(rest.len()).min(inbox.room()));
                assert!(!now.is_empty(), "an inbox is full and has no message");
                inbox.push(now);
                rest = later;
                held_max = held_max.max(inbox.memory_bytes());
            }
            // How much of a foreign beginning is named depends on how much was there.
            Err(Malformed::Hello(WireError::Magic(_))) => {
                return (messages, Some(Malformed::Hello(WireError::Magic([0; 4]))));
            }
            Err(malformed) => return (messages, Some(malformed)),
        }
        assert!(held_max <= FRAME_BYTES_MAX.min(2 * (input.len() - rest.len())));
    }
    let taken: usize = messages.iter().map(Vec::len).sum();
    let said = messages.concat();
    // A greeting of another version may have bytes this one knows nothing of.
    let greeting = said.len().min(24);
    assert_eq!(said[greeting..], input[greeting..taken], "a message was changed on the way");
    (messages, None)
}
