//! Many clients, more than there are threads, that do everything at once and check every answer.

use std::num::NonZeroU32;

use plimsoll_app::server::AppConfig;
use plimsoll_app::wire::{RequestHeader, RequestType, Status, checksum, work_block, work_checksum};

use crate::support::{Client, config, frame, request, serve};
use plimsoll_testkit::program::wait_until;

const CLIENTS: u32 = 24;
const ROUNDS: u32 = 250;
const SEGMENT_BYTES: u32 = 256 << 10;

/// A request, its payload, and the checksum and length of its answer.
fn exchange(id: u32, dice: u32) -> (RequestHeader, &'static [u8], Option<u32>, u32) {
    let size = dice % 65_537;
    let offset = u64::from(dice % (SEGMENT_BYTES - 65_536));
    let payload = &work_block()[..(dice / 7 % 3_000) as usize];
    let of = |kind| RequestHeader { id, seed: dice, ..request(kind) };
    let sum = |bytes| Some(checksum(dice, bytes));
    match dice % 6 {
        0 => {
            let question = RequestHeader { size: size % 900, ..of(RequestType::ClientServer) };
            (question, payload, sum(payload), size % 900)
        }
        1 => {
            let question = RequestHeader { work: dice % 4, ..of(RequestType::Processor) };
            (question, b"", Some(work_checksum(dice, dice % 4)), 0)
        }
        2 => {
            let question = RequestHeader { size, ..of(RequestType::ServerClient) };
            (question, b"", sum(&work_block()[..size as usize]), size)
        }
        // What is read depends on the writes of others with the same segment.
        3 => (RequestHeader { size, offset, ..of(RequestType::Read) }, b"", None, 0),
        4 => (RequestHeader { offset, ..of(RequestType::Write) }, payload, sum(payload), 0),
        _ => (of(RequestType::Append), payload, sum(payload), 0),
    }
}

/// Up to four requests ahead, now and then a status in between, and the same number of answers.
fn work(client: &mut Client, number: u32) {
    let mut dice = number.wrapping_mul(0x9E37_79B9) | 1;
    let mut roll = || {
        dice ^= dice << 13;
        dice ^= dice >> 17;
        dice ^= dice << 5;
        dice
    };
    for round in 0..ROUNDS {
        let ahead: Vec<_> = (0..1 + roll() % 4).map(|n| exchange(round * 4 + n, roll())).collect();
        let mut bytes = Vec::new();
        for (question, payload, ..) in &ahead {
            bytes.extend(frame(*question, payload));
        }
        let cut = roll() as usize % bytes.len();
        client.send(&bytes[..cut]);
        client.send(&bytes[cut..]);
        for (question, _, sum, answer_bytes) in ahead {
            let (header, payload) = client.reply();
            assert_eq!((header.id, header.status), (question.id, Status::Ok), "{question:?}");
            assert_eq!((payload.len() as u32, header.kind), (answer_bytes, question.kind as u8));
            if let Some(sum) = sum {
                assert_eq!(header.checksum, sum, "{question:?}");
            }
        }
        if round % 50 == 0 {
            client.status();
        }
    }
}

#[test]
fn all_answers_are_right_and_in_order_whatever_the_others_do() {
    let server = serve(&AppConfig { threads: NonZeroU32::new(5), ..config() });
    std::thread::scope(|scope| {
        for number in 0..CLIENTS {
            // Some share a segment.
            let mut client = server.client(number % 20, u64::from(SEGMENT_BYTES));
            scope.spawn(move || work(&mut client, number));
        }
    });
    wait_until("all have left", || {
        server.metric("connections") == 1.0 && server.metric("threads_busy") <= 1.0
    });
    for name in ["connections_timed_out_total", "connections_malformed_total", "queue_length"] {
        assert_eq!(server.metric(name), 0.0, "{name}");
    }
    server.end();
}
