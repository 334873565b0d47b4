//! Files that are delegated to one client and needed by another.

use plimsoll_engine::interface::Session as _;
use plimsoll_nfs::server::Nfs4Config;
use plimsoll_nfs::session::SessionRequest;
use plimsoll_nfs::wire::v4::{Operation, Status4};

use super::client::Client;
use super::net::Fault;
use super::{Bed, REQUEST, read, write};

const DELEGATIONS: SessionRequest = SessionRequest { delegations: true, ..REQUEST };

fn bed() -> Bed {
    Bed::new(Nfs4Config { delegations: true, ..Nfs4Config::default() })
}

/// Both go on until both have nothing to do.
fn run_both(first: &mut Client, second: &mut Client) {
    while first.is_busy() || second.is_busy() {
        first.settle();
        second.settle();
        if second.is_busy() {
            second.wake();
        }
    }
    for client in [first, second] {
        client.settle();
        client.assert_all_went_well();
        client.log_off();
    }
}

#[test]
fn files_are_read_under_a_delegation_without_being_opened() {
    let bed = bed();
    let mut client = Client::ready(&bed, 1, DELEGATIONS);
    for _ in 0..3 {
        client.run_op(read(2));
    }
    client.assert_all_went_well();
    let opens = client.net.sent.iter().filter(|sent| **sent == Operation::Open).count();
    assert_eq!(opens, 1);
    assert_eq!(client.counters().delegations, 1);
    client.log_off();
    assert_eq!(client.net.sent.iter().filter(|sent| **sent == Operation::DelegReturn).count(), 1);
    assert_eq!(bed.core.v4().clients(), 0);
}

#[test]
fn a_delegation_that_is_recalled_is_returned_after_the_ops_that_use_it() {
    let bed = bed();
    let mut first = Client::ready(&bed, 1, DELEGATIONS);
    let mut second = Client::ready(&bed, 2, DELEGATIONS);
    first.run_op(read(1));
    first.net.sent.clear();
    for _ in 0..3 {
        first.issue(read(1));
    }
    second.issue(write(1));
    second.settle();
    assert!(second.is_busy(), "the server asks for time");
    // The recall arrives, and the reads are still on their way.
    assert!(first.deliver(1, 0, usize::MAX));
    assert!(!first.net.sent.contains(&Operation::DelegReturn));
    // A new one opens the file again.
    first.issue(read(1));
    first.settle();
    let returned = first.net.sent.iter().position(|sent| *sent == Operation::DelegReturn);
    assert_eq!(
        first.net.sent[..4],
        [Operation::Read, Operation::Read, Operation::Read, Operation::Open]
    );
    assert!(returned > Some(3), "{:?}", first.net.sent);
    run_both(&mut first, &mut second);
    let (counters, delays) = (first.counters(), second.counters().delays);
    assert_eq!((counters.delegations, counters.recalls), (1, 1));
    assert!(delays > 0);
    assert_eq!(bed.core.v4().clients(), 0);
}

#[test]
fn a_recall_may_come_before_the_reply_that_brings_the_delegation() {
    let bed = bed();
    let mut first = Client::ready(&bed, 1, DELEGATIONS);
    let mut second = Client::ready(&bed, 2, DELEGATIONS);
    first.issue(read(1));
    first.net.execute(1, 0);
    second.issue(write(1));
    second.settle();
    // The recall comes behind the reply to OPEN, and is delivered first.
    assert!(first.deliver(1, 1, usize::MAX));
    first.net.execute(1, 0);
    run_both(&mut first, &mut second);
    let counters = first.counters();
    assert_eq!((counters.delegations, counters.recalls), (1, 2));
    assert_eq!(bed.core.v4().clients(), 0);
}

#[test]
fn a_connection_that_is_opened_again_carries_recalls_again() {
    let bed = bed();
    let mut first = Client::ready(&bed, 1, DELEGATIONS);
    let mut second = Client::ready(&bed, 2, DELEGATIONS);
    first.run_op(read(1));
    second.issue(write(1));
    second.settle();
    // The recall is lost with its connection, and comes again.
    first.cut(1, true);
    first.wake();
    first.settle();
    assert!(first.net.sent.contains(&Operation::BindConnToSession));
    run_both(&mut first, &mut second);
    assert_eq!(first.session.lost(), None);
    assert_eq!(bed.core.v4().clients(), 0);
}

#[test]
fn files_whose_delegation_the_server_does_not_know_are_opened_again() {
    let bed = bed();
    let mut client = Client::ready(&bed, 1, DELEGATIONS);
    client.run_op(read(1));
    client.counters();
    let mut left = 2;
    client.net.faults = Box::new(move |request| {
        let is_lost = request.is(Operation::Read) && left > 0;
        left -= i32::from(is_lost);
        is_lost.then_some(Fault::Second(Status4::BAD_STATEID))
    });
    client.issue(read(1));
    client.issue(read(1));
    client.run();
    client.assert_all_went_well();
    let counters = client.counters();
    assert_eq!((counters.reopened, counters.opens), (2, 2));
    client.log_off();
}
