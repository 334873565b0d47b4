//! Named things that happen to a session.

use std::time::Duration;

use plimsoll_engine::interface::{Mark, TimeKind};
use plimsoll_model::outcome::{ErrorClass, OpStatus};
use plimsoll_model::units::Nanos;
use plimsoll_nfs::op::{LinkNo, NfsCall, Presence, SlotNo};
use plimsoll_nfs::parameters::Opens;
use plimsoll_nfs::server::{FewerSlots, Nfs4Config};
use plimsoll_nfs::session::SessionRequest;
use plimsoll_nfs::wire::v4::{Operation, Status4};

use super::client::Client;
use super::net::Fault;
use super::{Bed, REQUEST, large_file, read, write};

fn bed() -> Bed {
    Bed::new(Nfs4Config::default())
}

/// How often the operation was sent.
fn sent(client: &Client, operation: Operation) -> usize {
    client.net.sent.iter().filter(|sent| **sent == operation).count()
}

#[test]
fn connections_cut_in_mid_call_repeat_calls_and_lose_none() {
    let bed = bed();
    let mut client = Client::ready(&bed, 1, REQUEST);
    for cut in 0..100 {
        let slot = SlotNo(cut / 2 % 10);
        // Alternately executed and not; a missing name would fail if it were removed twice.
        client.issue(match cut % 2 {
            0 => NfsCall::Create(slot),
            _ => NfsCall::Remove(slot, Presence::Exists),
        });
        let link = client.net.open()[0];
        client.cut(link, cut % 3 > 0);
        client.run();
    }
    client.assert_all_went_well();
    assert_eq!(client.ended.len(), 100);
    assert_eq!(client.counters().retransmissions, 100);
    assert_eq!(bed.core.v4().executed_twice(), 0);
    client.log_off();
    assert_eq!(bed.core.v4().clients(), 0);
}

#[test]
fn a_restarted_server_is_met_again_and_files_open_after_its_grace() {
    let bed = bed();
    let mut client = Client::ready(&bed, 1, SessionRequest { opens: Opens::Held, ..REQUEST });
    client.run_op(read(1));
    client.counters();
    bed.core.v4().restart(Duration::MAX);
    client.issue(NfsCall::FsStat);
    let opens = client.run_op(read(1));
    let grace = OpStatus::Failed(ErrorClass::Status(Status4::GRACE.0));
    assert_eq!(opens.outcome.status, grace, "{}", opens.detail);
    assert!(opens.detail.contains("OPEN: NFS4ERR_GRACE"), "{}", opens.detail);
    let counters = client.counters();
    assert_eq!((counters.sessions_rebuilt, counters.reopened), (1, 1));
    bed.core.v4().restart(Duration::ZERO);
    client.take_ended();
    client.run_op(read(1));
    client.assert_all_went_well();
    client.log_off();
    assert_eq!(bed.core.v4().clients(), 0);
}

#[test]
fn an_op_without_reply_is_ambiguous_after_a_restart_if_it_changes_something() {
    let bed = bed();
    let mut client = Client::ready(&bed, 1, REQUEST);
    client.run_op(NfsCall::Create(SlotNo(1)));
    client.issue(NfsCall::Remove(SlotNo(1), Presence::Exists));
    client.issue(NfsCall::FsStat);
    let link = client.net.open()[0];
    client.cut(link, true);
    bed.core.v4().restart(Duration::ZERO);
    client.run();
    let ambiguous: Vec<bool> = client.ended.iter().map(|ended| ended.outcome.ambiguous).collect();
    assert!(client.ended.iter().all(|ended| ended.outcome.status == OpStatus::Ok));
    assert_eq!(ambiguous.iter().filter(|ambiguous| **ambiguous).count(), 1);
}

#[test]
fn a_file_that_is_opened_again_belongs_to_the_time_of_its_op() {
    let bed = bed();
    let mut client = Client::ready(&bed, 1, REQUEST);
    let ticket = client.issue(read(1));
    client.net.execute(1, 0);
    client.deliver(1, 0, usize::MAX);
    assert_eq!(client.marks(ticket), [Mark::Preceded(TimeKind::Open)]);
    bed.core.v4().restart(Duration::ZERO);
    client.run();
    client.assert_all_went_well();
    assert_eq!((sent(&client, Operation::Open), client.counters().reopened), (2, 1));
    let closed = Mark::Value(TimeKind::Close, 0);
    assert_eq!(client.marks(ticket)[1..], [Mark::Complete, closed]);
}

#[test]
fn no_slot_above_the_servers_target_is_used_and_ops_that_wait_are_counted() {
    let fewer_slots = Some(FewerSlots { slots: 4, after_compounds: 20 });
    let bed = Bed::new(Nfs4Config { fewer_slots, ..Nfs4Config::default() });
    let mut client = Client::ready(&bed, 1, REQUEST);
    let fill = |client: &mut Client| (0..16).map(|_| client.issue(NfsCall::FsStat)).last();
    fill(&mut client);
    assert_eq!(client.net.highest_slot, 15);
    client.run();
    fill(&mut client);
    client.run();
    assert_eq!(client.counters().slot_waits, 0);
    client.net.highest_slot = 0;
    let last = fill(&mut client).unwrap();
    client.now += Nanos::from_millis(3);
    client.run();
    assert_eq!((client.net.highest_slot, client.counters().slot_waits), (3, 12));
    let waited = Mark::Value(TimeKind::SlotWait, 3_000_000);
    assert_eq!(client.marks(last), [Mark::ServiceWaits, Mark::ServiceBegins, waited]);
    client.assert_all_went_well();
}

#[test]
fn a_client_whose_lease_ended_in_silence_makes_a_new_session_and_opens_again() {
    let bed = bed();
    let request = SessionRequest { opens: Opens::Held, lease: Nanos::MAX, ..REQUEST };
    let mut client = Client::ready(&bed, 1, request);
    client.run_op(read(1));
    client.counters();
    client.now += Nanos::from_secs(1_000);
    // What is left at a server of a client whose lease has ended: nothing.
    bed.core.v4().restart(Duration::ZERO);
    client.run_op(read(1));
    client.assert_all_went_well();
    let counters = client.counters();
    assert_eq!((counters.sessions_rebuilt, counters.opens), (1, 1));
}

#[test]
fn an_idle_client_renews_its_lease_at_two_thirds_of_it() {
    let bed = bed();
    let mut client = Client::ready(&bed, 1, REQUEST);
    client.net.sent.clear();
    client.pass(Nanos::from_secs(59));
    assert_eq!(client.net.sent, []);
    client.pass(Nanos::from_secs(2));
    assert_eq!(client.net.sent, [Operation::Sequence]);
    client.pass(Nanos::from_secs(60));
    assert_eq!(client.net.sent.len(), 2);
    // Any other call does it as well.
    client.pass(Nanos::from_secs(50));
    client.run_op(NfsCall::FsStat);
    client.pass(Nanos::from_secs(50));
    assert_eq!(client.net.sent.len(), 3);
}

#[test]
fn three_connections_share_the_slots_and_carry_the_calls_of_a_lost_one() {
    let bed = bed();
    let mut client = Client::ready(&bed, 1, SessionRequest { connections: 3, ..REQUEST });
    assert_eq!(client.net.open(), [1, 2, 3]);
    client.counters();
    for _ in 0..9 {
        client.issue(NfsCall::FsStat);
    }
    assert_eq!(client.net.requests(), [3, 3, 3]);
    assert_eq!(client.net.highest_slot, 8);
    client.cut(2, true);
    assert_eq!(client.net.requests().iter().sum::<usize>(), 9);
    client.settle();
    assert_eq!((client.ended.len(), client.net.open()), (9, vec![1, 3]));
    assert_eq!(client.counters().retransmissions, 3);
    client.pass(Nanos::from_secs(1));
    assert_eq!(client.net.open(), [1, 3, 4]);
    client.assert_all_went_well();
    client.log_off();
    assert_eq!(bed.core.v4().clients(), 0);
}

#[test]
fn calls_of_set_up_that_wait_for_slots_stay_what_they_are() {
    // Set-up has more calls under way than that.
    let bed = Bed::new(Nfs4Config { slots_max: 2, ..Nfs4Config::default() });
    let mut client = Client::ready(&bed, 1, REQUEST);
    for call in [read(8), NfsCall::Lookup(large_file()), NfsCall::ReadLink(LinkNo(2))] {
        client.run_op(call);
    }
    client.assert_all_went_well();
}

#[test]
fn a_draw_of_three_blocks_opens_and_closes_its_file_once() {
    let bed = bed();
    let mut client = Client::ready(&bed, 1, REQUEST);
    for draw in [read(3), write(3)] {
        client.net.sent.clear();
        client.net.marks.clear();
        client.run_op(draw);
        let work = match draw {
            NfsCall::Read(..) => Operation::Read,
            _ => Operation::Write,
        };
        assert_eq!(client.net.sent, [Operation::Open, work, work, work, Operation::Close]);
        let marks: Vec<Mark> = client.net.marks.iter().map(|(_, mark)| *mark).collect();
        let opened = Mark::Preceded(TimeKind::Open);
        assert_eq!(marks, [opened, Mark::Complete, Mark::Value(TimeKind::Close, 0)]);
        let [first, .., last] = &client.take_ended()[..] else { panic!("three ops") };
        assert_eq!(client.net.marks[0].0, first.ticket);
        assert_eq!([client.net.marks[1].0, client.net.marks[2].0], [last.ticket; 2]);
    }
    assert_eq!(client.counters().opens, 2);
}

#[test]
fn an_anonymous_client_opens_only_what_it_creates() {
    let bed = bed();
    let mut client = Client::ready(&bed, 1, SessionRequest { opens: Opens::Anonymous, ..REQUEST });
    for call in [read(2), write(2), NfsCall::Create(SlotNo(3))] {
        client.run_op(call);
    }
    client.assert_all_went_well();
    assert_eq!((sent(&client, Operation::Open), sent(&client, Operation::Close)), (1, 1));
    assert_eq!(client.counters().opens, 1);
}

#[test]
fn a_client_that_keeps_files_open_opens_each_once_for_reading_and_once_for_writing() {
    let bed = bed();
    let mut client = Client::ready(&bed, 1, SessionRequest { opens: Opens::Held, ..REQUEST });
    for _ in 0..3 {
        client.run_op(read(2));
        client.run_op(write(2));
    }
    client.assert_all_went_well();
    assert_eq!((sent(&client, Operation::Open), sent(&client, Operation::Close)), (2, 0));
    client.log_off();
    assert_eq!(sent(&client, Operation::Close), 2);
    assert_eq!(bed.core.v4().clients(), 0);
}

#[test]
fn a_server_that_opens_no_files_by_handle_is_given_names() {
    let bed = bed();
    let mut client = Client::ready(&bed, 1, REQUEST);
    let mut left = 2;
    client.net.faults = Box::new(move |request| {
        left -= i32::from(request.is(Operation::Open));
        (request.is(Operation::Open) && left >= 0).then_some(Fault::Second(Status4::INVAL))
    });
    // Both find out.
    client.issue(read(1));
    client.issue(write(1));
    client.run();
    client.run_op(read(1));
    client.assert_all_went_well();
    assert_eq!(sent(&client, Operation::Open), 5);
    client.net.faults =
        Box::new(|request| request.is(Operation::Open).then_some(Fault::Second(Status4::INVAL)));
    let refused = client.run_op(read(1));
    let invalid = OpStatus::Failed(ErrorClass::Status(Status4::INVAL.0));
    assert_eq!(refused.outcome.status, invalid);
}

#[test]
fn a_reply_that_the_server_did_not_keep_makes_changes_ambiguous() {
    let bed = bed();
    let calls = [
        NfsCall::Remove(SlotNo(5), Presence::Missing),
        NfsCall::Create(SlotNo(5)),
        NfsCall::ReadLink(LinkNo(2)),
        NfsCall::Remove(SlotNo(5), Presence::Exists),
    ];
    for (number, call) in (1..).zip(calls) {
        for fault in [Fault::First, Fault::Second] {
            let mut client = Client::ready(&bed, number, REQUEST);
            // The server's slot has not advanced if SEQUENCE failed.
            client.net.is_strict = false;
            let mut is_first = true;
            client.net.faults = Box::new(move |_| {
                std::mem::take(&mut is_first).then(|| fault(Status4::RETRY_UNCACHED_REP))
            });
            let ended = client.run_op(call);
            let changes = !matches!(call, NfsCall::ReadLink(_));
            assert_eq!(ended.outcome.ambiguous, changes, "{ended:?}");
            let expected = match call {
                NfsCall::Remove(_, Presence::Missing) => OpStatus::ExpectedFailure,
                _ => OpStatus::Ok,
            };
            assert_eq!(ended.outcome.status, expected, "{ended:?}");
            bed.core.v4().restart(Duration::ZERO);
        }
    }
}
