use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::parameters::AppWorkload;
use crate::wire::{Refusal, RequestHeader, RequestType, checksum, work_block};

mod bench;

use bench::{Bench, OP_TIMEOUT, SCALE};

#[test]
fn the_first_transaction_waits_for_the_greeting_and_the_connection_is_kept() {
    let mut bench = Bench::new();
    bench.issue(AppKind::ClientServer);
    assert!(bench.io.sent.is_empty());
    bench.connect();
    let hello = Hello::decode(bench.io.sent[0].1.first_chunk().unwrap()).unwrap();
    assert_eq!((hello.version, hello.client, hello.segment_bytes), (VERSION, 3, 256 << 10));
    bench.answer();
    assert_eq!(bench.io.sent[1].1.len(), 128, "the whole request, in one piece");
    let reply = bench.reply();
    assert_eq!(reply.len(), 1_024, "the whole reply");
    bench.bytes(&reply);
    let outcome = bench.last();
    assert_eq!((outcome.status, outcome.kind), (OpStatus::Ok, OpKind(0)));
    assert_eq!((outcome.bytes_written, outcome.bytes_read), (88, 1_000));
    bench.issue(AppKind::Processor);
    assert_eq!((bench.io.links, bench.io.sent.len()), (1, 3));
}

#[test]
fn every_kind_asks_for_its_own_and_knows_the_answer() {
    let mut bench = Bench::ready();
    for kind in AppKind::ALL {
        bench.issue(kind);
        bench.answer();
        assert_eq!(bench.last().status, OpStatus::Ok, "{}: {}", kind.name(), bench.io.detail);
        assert_eq!(bench.last().kind, kind.op_kind());
    }
    let requests: Vec<RequestHeader> = bench.io.sent[2..]
        .iter()
        .map(|(_, bytes)| RequestHeader::decode(bytes.first_chunk().unwrap()).unwrap())
        .collect();
    assert_eq!(requests[1].work, 2);
    assert_eq!((requests[3].kind, requests[3].offset), (RequestType::Read, 5 * 8_192));
    assert_eq!((requests[4].kind, requests[4].offset), (RequestType::Write, 5 * 8_192));
    assert_eq!((requests[4].payload_bytes, requests[3].size), (8_192, 8_192));
    assert_eq!(bench.session.take_counters().verified, 3, "two reads and a body");
}

#[test]
fn sequential_kinds_go_through_the_segment_and_begin_anew() {
    let mut bench = Bench::ready();
    let blocks = 32;
    let offsets: Vec<u64> = (0..=blocks)
        .map(|_| {
            bench.issue(AppKind::SequentialWrite);
            bench.answer();
            assert_eq!(bench.last().status, OpStatus::Ok);
            let (_, bytes) = bench.io.sent.last().unwrap();
            RequestHeader::decode(bytes.first_chunk().unwrap()).unwrap().offset
        })
        .collect();
    let expected: Vec<u64> = (0..blocks).map(|n| n * 8_192).chain([0]).collect();
    assert_eq!(offsets, expected);
}

#[test]
fn appends_hold_what_the_segment_holds_where_the_server_puts_them() {
    let mut bench = Bench::ready();
    let site = Arc::clone(&bench.session.worker.site);
    bench.peer.segments.get_mut(&3).unwrap().fill(0);
    let append = |bench: &mut Bench, times: u32| {
        for _ in 0..times {
            bench.issue(AppKind::Append);
            if let Line::Connecting(_) = bench.session.line {
                bench.connect();
                bench.answer();
            }
            bench.answer();
            assert_eq!(bench.last().status, OpStatus::Ok, "{}", bench.io.detail);
        }
        let appended = bench.session.appended as usize * 8_192;
        let expected = site.content.bytes(bench.session.key, 0, appended);
        assert!(&bench.peer.segments[&3][..appended] == expected);
    };
    append(&mut bench, 3);
    // A connection of its own begins anew.
    bench.eof();
    append(&mut bench, 4);
    assert_eq!(bench.session.appended, 4);
}

#[test]
fn a_reply_may_come_in_any_pieces() {
    for piece in [1, 7, 23, 24, 25, 1_000] {
        let mut bench = Bench::ready();
        for kind in [AppKind::ServerClient, AppKind::ClientServer, AppKind::RandomRead] {
            bench.issue(kind);
            let reply = bench.reply();
            reply.chunks(piece).for_each(|bytes| bench.bytes(bytes));
            assert_eq!(bench.last().status, OpStatus::Ok, "{piece}: {}", bench.io.detail);
        }
    }
}

#[test]
fn a_long_body_that_nobody_compares_stays_in_the_kernel() {
    let mut bench = Bench::ready();
    let op = AppOp { compare: false, ..bench.op(AppKind::ServerClient) };
    bench.issue_op(op);
    assert_eq!(bench.session.read_limit(bench.link()), REPLY_HEADER_BYTES);
    let reply = bench.reply();
    bench.bytes(&reply[..10]);
    assert_eq!(bench.session.read_limit(bench.link()), REPLY_HEADER_BYTES - 10);
    bench.bytes(&reply[10..REPLY_HEADER_BYTES]);
    assert_eq!(bench.io.discards, [(bench.link(), 16_383)]);
    bench.session.on_discarded(bench.link(), 16_000, bench.now, &mut bench.io);
    bench.session.on_discarded(bench.link(), 383, bench.now, &mut bench.io);
    bench.bytes(&reply[reply.len() - 1..]);
    assert_eq!((bench.last().status, bench.last().bytes_read), (OpStatus::Ok, 16_384));
    bench.issue(AppKind::ServerClient);
    assert_eq!(bench.session.read_limit(bench.link()), usize::MAX, "this one is compared");
}

#[test]
fn a_second_reply_behind_a_body_that_was_dropped_fails_the_transaction_it_belongs_to() {
    let mut bench = Bench::ready();
    let op = AppOp { compare: false, ..bench.op(AppKind::ServerClient) };
    bench.issue_op(op);
    let reply = bench.reply();
    bench.bytes(&reply[..REPLY_HEADER_BYTES]);
    let (link, discard_bytes) = bench.io.discards[0];
    bench.session.on_discarded(link, discard_bytes, bench.now, &mut bench.io);
    // The next read takes the last byte and what follows it.
    let next = [&reply[reply.len() - 1..], &reply].concat();
    bench.bytes(&next);
    let expected = format!("the server sent {} bytes behind the reply", reply.len());
    bench.check_failed(ErrorClass::TrailingBytes, &expected);
}

#[test]
fn a_surplus_that_comes_later_is_told_once_and_ends_the_connection() {
    let mut bench = Bench::ready();
    bench.bytes(b"another");
    assert_eq!(bench.last().status, OpStatus::Ok, "it has been recorded so");
    assert_eq!(bench.io.trailing_bytes, [AppKind::ClientServer.op_kind()]);
    let expected = "client/server (request 1): the server sent 7 bytes behind the reply";
    assert_eq!(bench.io.detail, expected);
    assert_eq!(bench.io.closed, [bench.link()]);
    bench.bytes(b"more");
    assert_eq!(bench.io.trailing_bytes.len(), 1);
    bench.issue(AppKind::Processor);
    assert_eq!(bench.io.links, 2, "the next one connects again");
}

#[test]
fn a_transaction_that_has_failed_does_not_fail_again_for_what_comes_behind_its_reply() {
    let mut bench = Bench::ready();
    bench.peer.write_status = Some(Status::OutOfRange);
    bench.issue(AppKind::RandomWrite);
    bench.answer();
    assert!(bench.io.closed.is_empty());
    bench.bytes(b"another");
    assert_eq!((bench.io.trailing_bytes.len(), bench.io.closed.len()), (0, 1));
}

#[test]
fn wrong_checksums_and_bodies_are_corruption() {
    let mut bench = Bench::ready();
    for kind in AppKind::ALL {
        bench.issue(kind);
        let mut reply = bench.reply();
        reply[13] ^= 1;
        bench.bytes(&reply);
        bench.check_failed(ErrorClass::Corrupt, "checksum 0x");
    }
    bench.issue(AppKind::ServerClient);
    let mut reply = bench.reply();
    reply[REPLY_HEADER_BYTES + 9_000] ^= 1;
    reply.chunks(777).for_each(|bytes| bench.bytes(bytes));
    bench.check_failed(ErrorClass::Corrupt, "byte 9000 of the reply differs");
    assert!(bench.io.closed.is_empty(), "the connection is good");
}

#[test]
fn lost_writes_show_at_the_next_read() {
    let mut bench = Bench::ready();
    bench.peer.segments.get_mut(&3).unwrap()[5 * 8_192 + 100] ^= 1;
    bench.issue(AppKind::RandomRead);
    bench.answer();
    bench.check_failed(ErrorClass::Corrupt, "random read (request 2, offset 40960): checksum");
}

#[test]
fn statuses_are_told_and_only_some_end_the_connection() {
    for (status, ends) in [
        (Status::BadRequest, true),
        (Status::OutOfRange, false),
        (Status::Storage, false),
        (Status::NoRoom, false),
        (Status::Ending, true),
    ] {
        let mut bench = Bench::ready();
        bench.peer.write_status = Some(status);
        bench.issue(AppKind::RandomWrite);
        bench.answer();
        let expected = OpStatus::Unexpected { expected: 0, actual: status as u32 };
        assert_eq!(bench.last().status, expected);
        assert!(bench.io.detail.ends_with(status.name()), "{}", bench.io.detail);
        assert_eq!(bench.io.closed.len(), usize::from(ends), "{status:?}");
        bench.issue(AppKind::Processor);
        assert_eq!(bench.io.links, if ends { 2 } else { 1 });
    }
}

#[test]
fn what_answers_something_else_ends_the_connection() {
    let check = |class, expected: &str, change: fn(&mut Vec<u8>)| {
        let mut bench = Bench::ready();
        bench.issue(AppKind::ClientServer);
        let mut reply = bench.reply();
        change(&mut reply);
        bench.bytes(&reply);
        bench.check_failed(class, expected);
        assert_eq!(bench.io.closed.len(), 1);
        bench.issue(AppKind::Processor);
        assert_eq!(bench.io.links, 2, "the next one connects again");
    };
    check(ErrorClass::Malformed, "a reply to request 66 instead of 2", |reply| reply[11] = 66);
    check(ErrorClass::Malformed, "a reply of type 3 instead of 1", |reply| reply[4] = 3);
    check(ErrorClass::Malformed, "status 77 is not known", |reply| reply[5] = 77);
    check(ErrorClass::Malformed, "a payload of 4294967295 bytes", |reply| reply[..4].fill(255));
    check(ErrorClass::Length, "a body of 999 bytes instead of 1000", |reply| reply[3] -= 1);
    check(ErrorClass::TrailingBytes, "sent 1 byte behind the reply", |reply| reply.push(0));
}

#[test]
fn a_refused_client_leaves_and_says_why() {
    for (refusal, expected) in [
        (Refusal::Version, "version 1"),
        (Refusal::SegmentSize, "--segment-max"),
        (Refusal::NoRoom, "no room for a data segment of 256 KiB"),
        (Refusal::Full, "--connections-max"),
    ] {
        let mut bench = Bench::new();
        bench.peer.refusal = Some(refusal);
        bench.issue(AppKind::Processor);
        bench.connect();
        bench.answer();
        bench.check_failed(ErrorClass::Rejected, expected);
        assert!(bench.session.lost().unwrap().contains(expected));
        assert!(!bench.session.has_room());
        assert_eq!(bench.io.closed.len(), 1);
    }
}

#[test]
fn a_client_of_a_server_of_another_protocol_leaves() {
    let mut bench = Bench::new();
    bench.peer.greeting = Some(b"HTTP/1.1 400 Bad Request\r\n\r\n     ".to_vec());
    bench.issue(AppKind::Processor);
    bench.connect();
    bench.answer();
    bench.check_failed(ErrorClass::Rejected, "begins with [48, 54, 54, 50]");
    assert!(bench.session.lost().is_some());
}

#[test]
fn a_broken_connection_is_an_error_and_the_next_transaction_opens_another() {
    let mut bench = Bench::ready();
    bench.issue(AppKind::Processor);
    bench.reset();
    bench.check_failed(ErrorClass::Transport, "before the reply");
    bench.issue(AppKind::ClientServer);
    assert_eq!(bench.io.links, 2);
    bench.connect();
    bench.answer();
    let reply = bench.reply();
    bench.bytes(&reply[..30]);
    bench.eof();
    bench.check_failed(ErrorClass::Truncated, "the server closed the connection in the reply");
    assert_eq!(bench.last().bytes_read, 6);
    assert_eq!(bench.session.lost(), None);
}

#[test]
fn a_server_that_greets_nobody_is_not_tried_without_a_pause() {
    let mut bench = Bench::new();
    bench.issue(AppKind::Processor);
    bench.reset();
    bench.check_failed(ErrorClass::Transport, "before the server had greeted");
    bench.issue(AppKind::Processor);
    assert_eq!(bench.io.links, 1, "not yet");
    let at = bench.now + RECONNECT_AFTER;
    assert_eq!(bench.session.next_deadline(), Some(at));
    bench.now = at;
    bench.session.on_timer(at, &mut bench.io);
    assert_eq!(bench.io.links, 2);
    bench.connect();
    bench.answer();
    bench.answer();
    assert_eq!(bench.last().status, OpStatus::Ok);
}

#[test]
fn a_reply_that_does_not_come_in_time_is_a_timeout() {
    let mut bench = Bench::new();
    let check = |bench: &mut Bench, expected: &str| {
        bench.now = bench.session.next_deadline().unwrap();
        bench.session.on_timer(bench.now, &mut bench.io);
        bench.check_failed(ErrorClass::Timeout, expected);
        assert_eq!(bench.session.next_deadline(), None);
    };
    bench.issue(AppKind::ClientServer);
    check(&mut bench, "no connection within 10.0 s");
    bench.issue(AppKind::ClientServer);
    bench.connect();
    check(&mut bench, "no greeting within 10.0 s");
    bench.issue(AppKind::ClientServer);
    bench.connect();
    bench.answer();
    check(&mut bench, "no reply within 10.0 s");
    bench.issue(AppKind::ClientServer);
    bench.connect();
    bench.answer();
    let reply = bench.reply();
    bench.bytes(&reply[..500]);
    check(&mut bench, "no complete reply within 10.0 s");
    assert_eq!(bench.io.closed.len(), 4);
}

#[test]
fn bytes_that_answer_nothing_end_the_connection() {
    let mut bench = Bench::ready();
    bench.bytes(b"hello");
    assert_eq!(bench.io.closed.len(), 1);
    let done = bench.io.done.len();
    bench.issue(AppKind::Processor);
    assert_eq!((bench.io.links, bench.io.done.len()), (2, done));
}

#[test]
fn a_client_without_disk_transactions_asks_for_no_segment() {
    let mut workload = AppWorkload::default();
    (workload.mix.random_read, workload.mix.random_write) = (0.0, 0.0);
    let mut bench = Bench::from_site(Arc::new(AppSite::new(&workload, SCALE)));
    bench.issue(AppKind::Processor);
    bench.connect();
    bench.answer();
    assert_eq!(bench.peer.hellos[0].segment_bytes, 0);
}

#[test]
fn the_checksum_of_a_body_is_over_the_work_block() {
    let worker = WorkerSite::new(Arc::new(AppSite::new(&AppWorkload::default(), 1.0)));
    let op = AppOp { kind: AppKind::ServerClient, seed: 5, block: 0, compare: false };
    let request = Request { op, id: 1, offset: 0, key: 0 };
    assert_eq!(worker.checksum(&request), checksum(5, &work_block()[..16_384]));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn no_bytes_break_a_session_and_every_transaction_ends_once(
        greeted: bool,
        kinds in prop::collection::vec(0_usize..AppKind::ALL.len(), 1..6),
        pieces in prop::collection::vec(
            prop_oneof![
                prop::collection::vec(any::<u8>(), 0..64),
                // Headers of a reply that fits, up to a few fields.
                (0_u8..9, 0_u8..7, 0_u8..6, any::<u8>()).prop_map(|(kind, status, id, length)| {
                    let mut reply = [0; REPLY_HEADER_BYTES];
                    (reply[3], reply[4], reply[5], reply[11]) = (length, kind, status, id);
                    reply.to_vec()
                }),
            ],
            0..12,
        ),
    ) {
        let mut bench = if greeted { Bench::ready() } else { Bench::new() };
        let before = bench.io.done.len();
        let mut issued = 0;
        let mut kinds = kinds.into_iter();
        for piece in pieces {
            if bench.session.has_room() && let Some(kind) = kinds.next() {
                bench.issue(AppKind::ALL[kind]);
                issued += 1;
                if let Line::Connecting(_) = bench.session.line {
                    bench.connect();
                }
            }
            bench.bytes(&piece);
            if let Some((link, n)) = bench.io.discards.pop() {
                bench.session.on_discarded(link, n, bench.now, &mut bench.io);
            }
        }
        bench.now += OP_TIMEOUT;
        bench.session.on_timer(bench.now, &mut bench.io);
        prop_assert_eq!(bench.io.done.len() - before, issued);
        prop_assert!(bench.session.pieces.buffered() <= WELCOME_BYTES);
    }
}
