//! Servers that answer otherwise than they should, late, or not at all.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use plimsoll_engine::interface::Session as _;
use plimsoll_model::outcome::{ErrorClass, OpStatus};
use plimsoll_model::units::Nanos;
use plimsoll_nfs::op::{NfsCall, SlotNo};
use plimsoll_nfs::server::Nfs4Config;
use plimsoll_nfs::session::SessionRequest;
use plimsoll_nfs::wire::v4::{Operation, Status4};

use super::client::{Client, OP_TIMEOUT};
use super::net::Fault;
use super::{Bed, REQUEST, read, write};

fn bed() -> Bed {
    Bed::new(Nfs4Config::default())
}

#[test]
fn a_reply_to_another_call_of_the_slot_is_malformed() {
    let bed = bed();
    let mut client = Client::ready(&bed, 1, REQUEST);
    // The sequence in the result of SEQUENCE.
    client.net.faults = Box::new(|_| Some(Fault::Changed(|reply| reply[63] ^= 1)));
    let ended = client.run_op(NfsCall::FsStat);
    assert_eq!(ended.outcome.status, OpStatus::Failed(ErrorClass::Malformed));
    assert!(ended.detail.contains("another call of its slot"), "{}", ended.detail);
    client.net.faults = Box::new(|_| None);
    client.take_ended();
    client.run_op(NfsCall::FsStat);
    client.assert_all_went_well();
}

#[test]
fn a_slot_whose_op_has_timed_out_is_used_again_when_its_reply_has_come() {
    let bed = bed();
    let mut client = Client::ready(&bed, 1, REQUEST);
    client.issue(read(1));
    client.net.execute(1, 0);
    client.wake();
    assert_eq!(client.now, Nanos::from_secs(1) + OP_TIMEOUT);
    let timeout = OpStatus::Failed(ErrorClass::Timeout);
    assert_eq!(client.ended[0].outcome.status, timeout, "{:?}", client.ended);
    client.issue(NfsCall::FsStat);
    assert_eq!(client.net.highest_slot, 1);
    // The reply to OPEN: the file is closed.
    client.net.sent.clear();
    assert!(client.deliver(1, 0, usize::MAX));
    assert_eq!(client.net.sent, [Operation::Close]);
    client.settle();
    client.log_off();
    assert_eq!(bed.core.v4().clients(), 0);
}

#[test]
fn a_client_that_is_refused_leaves_with_the_reason() {
    let bed = bed();
    for refused in [Operation::ExchangeId, Operation::CreateSession] {
        let mut client = Client::new(&bed, 1, REQUEST);
        client.net.faults =
            Box::new(move |request| request.is(refused).then_some(Fault::First(Status4::PERM)));
        let ended = client.run_op(NfsCall::FsStat);
        assert_eq!(ended.outcome.status, OpStatus::Failed(ErrorClass::Transport));
        let reason = format!("{}: NFS4ERR_PERM", refused.name());
        assert!(ended.detail.contains(&reason), "{}", ended.detail);
        assert!(client.session.lost().is_some_and(|lost| lost.starts_with(&reason)));
        assert!(!client.session.has_room());
    }
}

/// How often `operation` is sent, and when the client's op ended, if the server always asks for
/// time there.
fn delayed(operation: Operation, fault: fn(Status4) -> Fault) -> (usize, Nanos) {
    let bed = bed();
    let mut client = Client::new(&bed, 1, REQUEST);
    client.net.faults =
        Box::new(move |request| request.is(operation).then(|| fault(Status4::DELAY)));
    let ended = client.run_op(NfsCall::Create(SlotNo(1)));
    assert_eq!(ended.outcome.status, OpStatus::Failed(ErrorClass::Timeout));
    let sent = client.net.sent.iter().filter(|sent| **sent == operation).count();
    assert_eq!(client.counters().delays, sent as u64);
    (sent, client.now)
}

#[test]
fn pauses_double_while_the_server_asks_for_time() {
    let end = Nanos::from_secs(1) + OP_TIMEOUT;
    // At once, and after 100, 300, 700, 1,500, 3,100, 6,300 ms.
    assert_eq!(delayed(Operation::Open, Fault::Second), (7, end));
    assert_eq!(delayed(Operation::CreateSession, Fault::First), (7, end));
    assert_eq!(delayed(Operation::ExchangeId, Fault::First), (7, end));
    // The same call of a slot: at once and every 100 ms.
    assert_eq!(delayed(Operation::Open, Fault::First), (101, end));
    assert_eq!(delayed(Operation::ReclaimComplete, Fault::Second), (101, end));
}

#[test]
fn a_connection_that_is_not_bound_is_bound_itself() {
    let bed = bed();
    let mut client = Client::ready(&bed, 1, SessionRequest { connections: 3, ..REQUEST });
    let bound = Rc::new(Cell::new(0));
    let is_bound = Rc::clone(&bound);
    client.net.faults = Box::new(move |request| {
        if request.is(Operation::BindConnToSession) {
            is_bound.set(request.link);
        }
        let is_refused = request.link == 2 && is_bound.get() != 2;
        is_refused.then_some(Fault::First(Status4::CONN_NOT_BOUND_TO_SESSION))
    });
    for _ in 0..6 {
        client.issue(NfsCall::FsStat);
    }
    client.settle();
    assert_eq!(bound.get(), 2);
    assert_eq!(client.ended.len(), 6);
    client.assert_all_went_well();
    assert_eq!(client.counters().retransmissions, 0);
}

#[test]
fn a_session_whose_connections_cannot_be_bound_is_made_again() {
    let bed = bed();
    let mut client = Client::ready(&bed, 1, REQUEST);
    let mut is_refused = true;
    client.net.faults = Box::new(move |request| match request.main {
        Some(Operation::BindConnToSession) => Some(Fault::First(Status4::NOTSUPP)),
        Some(Operation::CreateSession) => {
            is_refused = false;
            None
        }
        _ => is_refused.then_some(Fault::First(Status4::CONN_NOT_BOUND_TO_SESSION)),
    });
    client.run_op(NfsCall::FsStat);
    client.assert_all_went_well();
    assert_eq!(client.counters().sessions_rebuilt, 1);
}

#[test]
fn slots_that_the_server_refuses_are_used_once() {
    let bed = bed();
    let mut client = Client::ready(&bed, 1, REQUEST);
    let refusals = Rc::new(Cell::new(0));
    let refused = Rc::clone(&refusals);
    client.net.faults = Box::new(move |request| {
        let is_refused = request.sequence.is_some_and(|sequence| sequence.slot >= 4);
        refused.set(refused.get() + u32::from(is_refused));
        is_refused.then_some(Fault::First(Status4::BADSLOT))
    });
    for _ in 0..3 {
        for _ in 0..16 {
            client.issue(NfsCall::FsStat);
        }
        client.run();
    }
    client.assert_all_went_well();
    assert_eq!((client.ended.len(), refusals.get()), (48, 12));
}

#[test]
fn a_file_that_may_be_closed_already_fails_no_op_in_a_new_session() {
    let bed = bed();
    let mut client = Client::ready(&bed, 1, REQUEST);
    client.issue(read(1));
    for _ in [Operation::Open, Operation::Read] {
        client.net.execute(1, 0);
        client.deliver(1, 0, usize::MAX);
    }
    client.net.execute(1, 0);
    assert_eq!(client.net.sent.last(), Some(&Operation::Close));
    // The reply to CLOSE is on its way when the session is lost.
    client.issue(NfsCall::FsStat);
    let mut is_first = true;
    client.net.faults = Box::new(move |_| {
        std::mem::take(&mut is_first).then_some(Fault::First(Status4::SEQ_MISORDERED))
    });
    client.net.execute(1, 0);
    client.deliver(1, 1, usize::MAX);
    client.cut(1, true);
    client.run();
    assert_eq!(client.ended.len(), 2);
    client.assert_all_went_well();
    assert_eq!(client.counters().sessions_rebuilt, 1);
}

#[test]
fn a_client_logs_off_whatever_is_under_way() {
    let bed = bed();
    for steps in 0..6 {
        let mut client = Client::ready(&bed, steps, SessionRequest { slots: 2, ..REQUEST });
        for call in [read(2), write(1), NfsCall::Create(SlotNo(1)), read(1), NfsCall::FsStat] {
            client.issue(call);
        }
        for _ in 0..steps {
            client.net.execute(1, 0);
            client.deliver(1, 0, usize::MAX);
        }
        client.log_off();
        assert_eq!(bed.core.v4().clients(), 0);
    }
}

#[test]
fn a_client_that_the_server_has_lost_or_left_logs_off_too() {
    let bed = bed();
    let mut client = Client::ready(&bed, 1, REQUEST);
    client.issue(read(1));
    bed.core.v4().restart(Duration::ZERO);
    client.log_off();
    let mut client = Client::ready(&bed, 2, REQUEST);
    client.session.log_off(client.now, &mut client.net);
    assert!(!client.session.has_logged_off());
    client.cut(1, true);
    assert!(client.session.has_logged_off());
}
