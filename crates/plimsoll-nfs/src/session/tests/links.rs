//! Links that are lost and opened again, retransmission, timeouts.

use plimsoll_engine::interface::{Link, LinkError, Session, Ticket};
use plimsoll_model::outcome::{ErrorClass, OpStatus};
use plimsoll_model::units::Nanos;

use super::super::test_io::*;
use super::super::{RECONNECT_PAUSE, RECONNECT_PAUSE_MAX, replies};
use super::{ALL, Datagram, Stream, V2, V3};
use crate::op::*;

fn failed(class: ErrorClass) -> OpStatus {
    OpStatus::Failed(class)
}

#[test]
fn a_lost_datagram_is_sent_again_with_its_xid_after_1_2_and_4_seconds() {
    let mut bench = Bench::connected(V3, Datagram);
    let call = NfsCall::GetAttr(large_file());
    let start = bench.now;
    bench.issue(call);
    let mut sent_at = Vec::new();
    for _ in 0..95 {
        bench.pass(Nanos::from_millis(100));
        while sent_at.len() + 1 < bench.io.sent.len() {
            sent_at.push((bench.now - start).as_secs_f64().floor());
        }
    }
    assert_eq!(sent_at, [1.0, 3.0, 7.0]);
    assert!(bench.io.sent.iter().all(|sent| *sent == bench.io.sent[0]));
    for sent in 0..4 {
        bench.answer(sent, call);
    }
    assert_eq!(bench.io.done.len(), 1);
    assert_eq!((bench.last().status, bench.last().ambiguous), (OpStatus::Ok, false));
    assert_eq!(bench.session.take_counters().retransmissions, 3);
    assert_eq!(bench.session.next_deadline(), None);
}

#[test]
fn what_may_have_been_done_twice_is_ambiguous() {
    let create = NfsCall::Create(SlotNo(1));
    let remove = NfsCall::Remove(SlotNo(1), Presence::Exists);
    for call in [create, remove, NfsCall::SetAttr(large_file())] {
        let mut bench = Bench::connected(V3, Datagram);
        bench.issue(call);
        bench.pass(Nanos::from_millis(1_100));
        bench.answer(1, call);
        let ambiguous = !matches!(call, NfsCall::SetAttr(_));
        assert_eq!((bench.last().status, bench.last().ambiguous), (OpStatus::Ok, ambiguous));
    }
}

#[test]
fn a_new_connection_carries_every_pending_call_again() {
    for version in [V2, V3] {
        let mut bench = Bench::connected(version, Stream);
        let calls = [
            NfsCall::GetAttr(large_file()),
            NfsCall::Create(SlotNo(1)),
            NfsCall::Remove(SlotNo(2), Presence::Exists),
        ];
        for call in calls {
            bench.issue(call);
        }
        // Half a reply is worth nothing on a new connection.
        let half = framed(Stream, &replies::good(&bench.site, calls[0], bench.xid(0)));
        bench.bytes(&half[..half.len() / 2]);
        bench.reset();
        assert_eq!((bench.io.links.len(), bench.io.sent.len()), (1, 3));
        bench.pass(RECONNECT_PAUSE);
        assert_eq!((bench.io.links.len(), bench.io.sent.len()), (2, 3));
        bench.connect();
        let (first, again) = bench.io.sent.split_at(3);
        let sorted = |sent: &[(Link, Vec<u8>)]| {
            let mut bytes: Vec<Vec<u8>> = sent.iter().map(|(_, bytes)| bytes.clone()).collect();
            bytes.sort();
            bytes
        };
        assert_eq!(sorted(first), sorted(again));
        for (sent, call) in calls.iter().enumerate() {
            bench.answer(sent, *call);
        }
        let ends: Vec<_> = bench.io.done.iter().map(|(_, o)| (o.status, o.ambiguous)).collect();
        let ok = OpStatus::Ok;
        assert_eq!(ends, [(ok, false), (ok, true), (ok, true)]);
        // Retransmissions are of datagrams; here nothing was lost on the way.
        assert_eq!(bench.session.take_counters().retransmissions, 0);
    }
}

#[test]
fn a_server_that_closes_an_idle_connection_is_called_again() {
    let mut bench = Bench::connected(V3, Stream);
    bench.session.on_eof(bench.link(), bench.now, &mut bench.io);
    assert_eq!(bench.io.closed, [Link(1)]);
    assert_eq!(bench.session.next_deadline(), None);
    bench.pass(Nanos::from_secs(5));
    bench.issue(NfsCall::FsStat);
    assert_eq!(bench.io.links.len(), 2);
    bench.connect();
    bench.answer(0, NfsCall::FsStat);
    assert_eq!(bench.last().status, OpStatus::Ok);
    assert_eq!(bench.session.take_counters().retransmissions, 0);
}

#[test]
fn a_server_that_is_away_is_tried_again_with_growing_pauses_until_the_call_times_out() {
    for link in [Stream, Datagram] {
        let mut bench = Bench::new(V3, link);
        let start = bench.now;
        bench.issue(NfsCall::FsStat);
        let mut tries = Vec::new();
        while bench.io.done.is_empty() {
            let error = LinkError { class: ErrorClass::Transport, errno: 111 };
            bench.session.on_failed(bench.link(), error, bench.now, &mut bench.io);
            let links = bench.io.links.len();
            while bench.io.links.len() == links && bench.io.done.is_empty() {
                bench.pass(Nanos::from_millis(100));
            }
            tries.push((bench.now - start).0 / 100_000_000);
        }
        assert_eq!(tries[..6], [1, 3, 7, 15, 25, 35]);
        assert_eq!(bench.now - start, OP_TIMEOUT);
        assert_eq!(bench.last().status, failed(ErrorClass::Timeout));
        let detail = &bench.io.detail;
        assert!(detail.starts_with("FSSTAT: no connection within 10.0 s: Connection refused"));
        // What comes after a reply begins with the shortest pause again.
        bench.pass(RECONNECT_PAUSE_MAX);
        bench.issue(NfsCall::FsStat);
        bench.connect();
        bench.answer(0, NfsCall::FsStat);
        assert_eq!(bench.last().status, OpStatus::Ok);
        bench.issue(NfsCall::FsStat);
        let links = bench.io.links.len();
        bench.reset();
        bench.pass(RECONNECT_PAUSE);
        assert_eq!(bench.io.links.len(), links + 1);
    }
}

#[test]
fn a_call_without_reply_times_out_and_its_late_reply_is_dropped() {
    for (version, link) in ALL {
        let mut bench = Bench::connected(version, link);
        let call = NfsCall::GetAttr(large_file());
        bench.issue(call);
        bench.pass(Nanos::from_secs(4));
        bench.issue(call);
        bench.pass(Nanos::from_secs(6));
        assert_eq!(bench.io.done.len(), 1);
        assert_eq!(bench.io.done[0].0, Ticket(1));
        assert_eq!(bench.last().status, failed(ErrorClass::Timeout));
        let text =
            format!("GETATTR of dir00000/{}: no reply within 10.0 s", large_file().file().name());
        assert!(bench.io.detail.starts_with(&text), "{}", bench.io.detail);
        bench.answer(0, call);
        assert_eq!(bench.io.done.len(), 1);
        bench.pass(Nanos::from_secs(6));
        assert_eq!(bench.io.done.len(), 2);
    }
}

#[test]
fn the_generators_own_limits_end_calls_at_once() {
    let mut bench = Bench::new(V3, Stream);
    bench.issue(NfsCall::FsStat);
    bench.issue(NfsCall::FsStat);
    let error = LinkError { class: ErrorClass::PortsExhausted, errno: 99 };
    bench.session.on_failed(bench.link(), error, bench.now, &mut bench.io);
    let ends: Vec<OpStatus> = bench.io.done.iter().map(|(_, outcome)| outcome.status).collect();
    assert_eq!(ends, [failed(ErrorClass::PortsExhausted); 2]);
    assert_eq!(bench.session.next_deadline(), None);
}

#[test]
fn a_stream_that_cannot_be_read_is_closed_and_its_calls_are_lost() {
    let mut bench = Bench::connected(V3, Stream);
    bench.issue(NfsCall::FsStat);
    bench.issue(NfsCall::FsStat);
    bench.bytes(b"HTTP/1.1 400 Bad Request\r\n\r\n");
    let ends: Vec<OpStatus> = bench.io.done.iter().map(|(_, outcome)| outcome.status).collect();
    assert_eq!(ends, [failed(ErrorClass::Malformed); 2]);
    assert_eq!(bench.io.closed, [Link(1)]);
    bench.pass(RECONNECT_PAUSE);
    bench.issue(NfsCall::FsStat);
    assert_eq!(bench.io.links.len(), 2);
}

#[test]
fn bytes_that_no_record_begins_with_are_a_surplus_of_the_op_before_them() {
    let mut bench = Bench::connected(V3, Stream);
    let call = NfsCall::GetAttr(large_file());
    bench.issue(call);
    bench.answer(0, call);
    bench.bytes(&[0xff; 7]);
    assert_eq!((bench.last().status, bench.io.closed.len()), (OpStatus::Ok, 1));
    assert_eq!(bench.io.trailing_bytes, [KIND]);
    assert!(bench.io.detail.starts_with("bytes behind the reply: "), "{}", bench.io.detail);
}
