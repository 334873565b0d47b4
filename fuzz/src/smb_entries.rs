//! Decoders of SMB2 under arbitrary bytes.

use plimsoll_smb::wire::frame::{Assembler, FrameError};
use plimsoll_smb::{op, wire};

#[path = "../../crates/plimsoll-smb/src/wire/tests/checks.rs"]
mod checks;

/// What a hostile client sends. The first byte chooses a command, the second how long the pieces
/// are; the rest is its body, and a stream of messages too.
pub fn smb_request(data: &[u8]) {
    run(data, checks::REQUESTS);
}

/// What a hostile server sends, likewise; and what is in its answers.
pub fn smb_reply(data: &[u8]) {
    run(data, checks::REPLIES);
}

fn run(data: &[u8], bodies: &[checks::Check]) {
    let [choice, piece, input @ ..] = data else { return };
    bodies[usize::from(*choice) % bodies.len()](input);
    checks::OTHERS.iter().for_each(|check| check(input));
    let mut assembler = Assembler::new();
    for bytes in input.chunks(usize::from(*piece) + 1) {
        let each = |message: &[u8]| {
            wire::Parts::new(message).flatten().for_each(|part| {
                bodies.iter().for_each(|check| check(part.body));
            });
            Ok::<_, FrameError>(())
        };
        if assembler.push(bytes, each).is_err() {
            return;
        }
        assert!(assembler.held_bytes() <= input.len(), "more is held than has arrived");
    }
}
