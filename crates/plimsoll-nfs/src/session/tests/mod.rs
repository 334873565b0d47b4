//! Sessions driven by hand: every op of both versions, however its reply arrives, ends once.

mod links;
mod tolerated;

use plimsoll_engine::interface::{LinkKind, Session, SessionCounters, Ticket};
use plimsoll_model::outcome::{OpStatus, Outcome};
use proptest::prelude::*;

use super::test_io::*;
use super::{NfsVersion, replies};
use crate::op::*;

use LinkKind::{Datagram, Stream};
use NfsVersion::{V2, V3};

const ALL: [(NfsVersion, LinkKind); 4] =
    [(V2, Stream), (V2, Datagram), (V3, Stream), (V3, Datagram)];

/// One of each call that the version has.
fn every_call(version: NfsVersion) -> Vec<NfsCall> {
    let file = large_file();
    let mut calls = vec![
        NfsCall::GetAttr(file),
        NfsCall::SetAttr(file),
        NfsCall::Lookup(file),
        NfsCall::ReadLink(LinkNo(2)),
        NfsCall::Read(two_blocks(), Verify::Content),
        NfsCall::Read(two_blocks(), Verify::Length),
        NfsCall::Write(two_blocks(), Stability::FileSync),
        NfsCall::Create(SlotNo(7)),
        NfsCall::Remove(SlotNo(7), Presence::Exists),
        NfsCall::ReadDir(DirNo(1)),
        NfsCall::FsStat,
    ];
    if version == V3 {
        calls.extend([
            NfsCall::Access(file),
            NfsCall::ReadDirPlus(DirNo(1)),
            NfsCall::Write(two_blocks(), Stability::Unstable),
            NfsCall::Commit(file),
        ]);
    }
    calls
}

/// Bytes that a call reads and writes.
fn bytes_of(call: NfsCall) -> (u64, u64) {
    match call {
        NfsCall::Read(span, _) => (u64::from(span.bytes), 0),
        NfsCall::Write(span, _) => (0, u64::from(span.bytes)),
        _ => (0, 0),
    }
}

#[test]
fn every_op_of_both_versions_ends_well_over_both_kinds_of_link() {
    for (version, link) in ALL {
        let mut bench = Bench::connected(version, link);
        for call in every_call(version) {
            let sent = bench.io.sent.len();
            let ticket = bench.issue(call);
            bench.answer(sent, call);
            let (bytes_read, bytes_written) = bytes_of(call);
            let expected = Outcome {
                kind: KIND,
                status: OpStatus::Ok,
                bytes_read,
                bytes_written,
                ambiguous: false,
            };
            let last = *bench.io.done.last().unwrap();
            assert_eq!(last, (ticket, expected), "{call:?}: {}", bench.io.detail);
        }
        assert_eq!(bench.io.links, [link]);
        let counted = SessionCounters { verified: 1, ..SessionCounters::default() };
        assert_eq!(bench.session.take_counters(), counted);
        assert_eq!(bench.session.take_counters(), SessionCounters::default());
    }
}

#[test]
fn replies_may_be_split_anywhere_and_come_many_at_once() {
    for version in [V2, V3] {
        let calls = every_call(version);
        let start = || {
            let mut bench = Bench::connected(version, Stream);
            for call in &calls[..4] {
                bench.issue(*call);
            }
            let replies = calls[..4].iter().enumerate().rev().map(|(sent, call)| {
                framed(Stream, &replies::good(&bench.site, *call, bench.xid(sent)))
            });
            let bytes = replies.collect::<Vec<_>>().concat();
            (bench, bytes)
        };
        let total = start().1.len();
        for at in 0..=total {
            let (mut bench, bytes) = start();
            bench.bytes(&bytes[..at]);
            bench.bytes(&bytes[at..]);
            let order: Vec<u32> = bench.io.done.iter().map(|(ticket, _)| ticket.0).collect();
            assert_eq!(order, [4, 3, 2, 1]);
            assert!(bench.io.done.iter().all(|(_, outcome)| outcome.status == OpStatus::Ok));
        }
        let (mut bench, bytes) = start();
        bytes.iter().for_each(|byte| bench.bytes(&[*byte]));
        assert_eq!(bench.io.done.len(), 4);
    }
}

#[test]
fn a_reply_in_several_fragments_is_one_reply() {
    let mut bench = Bench::connected(V3, Stream);
    let call = NfsCall::Read(two_blocks(), Verify::Content);
    bench.issue(call);
    let reply = replies::good(&bench.site, call, bench.xid(0));
    let mut bytes = Vec::new();
    for (at, part) in reply.chunks(1_000).enumerate() {
        let last = if (at + 1) * 1_000 >= reply.len() { 1 << 31 } else { 0 };
        bytes.extend_from_slice(&(last | part.len() as u32).to_be_bytes());
        bytes.extend_from_slice(part);
    }
    bench.bytes(&bytes);
    assert_eq!(bench.last().status, OpStatus::Ok, "{}", bench.io.detail);
}

#[test]
fn second_replies_and_those_of_strangers_change_nothing() {
    for (version, link) in ALL {
        let mut bench = Bench::connected(version, link);
        let call = NfsCall::GetAttr(large_file());
        bench.issue(call);
        let stranger = replies::good(&bench.site, call, bench.xid(0) ^ 0x40_0000);
        bench.message(&stranger);
        bench.message(&[]);
        bench.message(&[1, 2, 3]);
        assert!(bench.io.done.is_empty());
        bench.answer(0, call);
        bench.answer(0, call);
        // The next call takes the same slot, and the old reply is not its own.
        bench.issue(call);
        bench.answer(0, call);
        assert_eq!(bench.io.done.len(), 1);
        bench.answer(1, call);
        assert_eq!(bench.io.done.len(), 2);
    }
}

#[test]
fn calls_wait_for_the_link_and_there_is_room_for_as_many_as_agreed() {
    for (version, link) in ALL {
        let mut bench = Bench::new(version, link);
        for _ in 0..OUTSTANDING_MAX {
            bench.issue(NfsCall::FsStat);
        }
        assert!(!bench.session.has_room() && bench.io.sent.is_empty());
        bench.connect();
        assert_eq!(bench.io.sent.len(), OUTSTANDING_MAX as usize);
        bench.answer(0, NfsCall::FsStat);
        assert!(bench.session.has_room());
    }
}

#[test]
fn further_blocks_follow_a_success_and_nothing_else() {
    let mut bench = Bench::connected(V3, Stream);
    let block = two_blocks();
    let next = Span { offset: block.offset + u64::from(block.bytes), blocks_left: 0, ..block };
    let pairs = [
        (NfsCall::Read(block, Verify::Content), NfsCall::Read(next, Verify::Content)),
        (NfsCall::Write(block, Stability::Unstable), NfsCall::Write(next, Stability::Unstable)),
    ];
    for (call, follow_on) in pairs {
        let ticket = bench.issue(call);
        bench.answer(bench.io.sent.len() - 1, call);
        let next = bench.session.take_follow_on(ticket);
        assert_eq!(next, Some(NfsOp::first(KIND, follow_on)));
        assert_eq!(bench.session.take_follow_on(ticket), None);
        let ticket = bench.issue(follow_on);
        bench.answer(bench.io.sent.len() - 1, follow_on);
        assert_eq!(bench.session.take_follow_on(ticket), None);
        let ticket = bench.issue(call);
        bench.pass(OP_TIMEOUT);
        assert_eq!(bench.session.take_follow_on(ticket), None);
    }
    assert_eq!(bench.session.take_follow_on(Ticket(99)), None);
}

proptest! {
    #[test]
    fn bytes_of_any_kind_never_panic(
        which in 0..ALL.len(),
        parts in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..200), 1..6),
    ) {
        let (version, link) = ALL[which];
        let mut bench = Bench::connected(version, link);
        bench.issue(NfsCall::ReadDir(DirNo(0)));
        for part in parts {
            if bench.io.closed.is_empty() {
                bench.bytes(&part);
            }
        }
    }

    #[test]
    fn a_reply_with_any_byte_changed_or_missing_ends_its_call_once_or_not_at_all(
        which in 0..ALL.len(),
        call in 0..15usize,
        at in any::<prop::sample::Index>(),
        value in any::<u8>(),
        cut in any::<bool>(),
    ) {
        let (version, link) = ALL[which];
        let calls = every_call(version);
        let call = calls[call % calls.len()];
        let mut bench = Bench::connected(version, link);
        bench.issue(call);
        let mut reply = replies::good(&bench.site, call, bench.xid(0));
        let at = at.index(reply.len());
        if cut {
            reply.truncate(at);
        } else {
            reply[at] = value;
        }
        bench.message(&reply);
        prop_assert!(bench.io.done.len() <= 1);
        prop_assert!(bench.io.done.len() == 1 || at < 4);
    }
}
