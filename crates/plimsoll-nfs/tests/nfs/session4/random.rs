//! Random sequences of events: every op ends once, no slot has two calls, nothing is executed twice
//! in a session, and nothing is left of a client that logs off.

use std::cell::Cell;
use std::time::Duration;

use plimsoll_engine::interface::{Session as _, SessionCounters};
use plimsoll_model::outcome::{ErrorClass, OpStatus};
use plimsoll_model::units::Nanos;
use plimsoll_nfs::fileset::BLOCK_BYTES;
use plimsoll_nfs::op::*;
use plimsoll_nfs::parameters::Opens;
use plimsoll_nfs::server::{FewerSlots, Nfs4Config};
use plimsoll_nfs::session::SessionRequest;
use plimsoll_nfs::wire::v4::{Operation, Status4};
use proptest::prelude::*;

use super::client::{Client, Ended};
use super::net::{Fault, Request};
use super::{Bed, REQUEST, large_file, runner};

/// Something that happens to a client.
#[derive(Clone, Copy, Debug)]
enum Event {
    /// It is given an op, if it has room.
    Issue(usize),
    Connect,
    /// The server executes a request.
    Execute {
        link: usize,
        which: usize,
    },
    /// A reply arrives, or a part of it.
    Deliver {
        link: usize,
        which: usize,
        bytes_max: usize,
    },
    /// A connection breaks.
    Cut {
        link: usize,
        executed: bool,
    },
    /// Time passes up to the next timer.
    Wake,
    /// The server forgets all clients.
    Restart,
    /// The server answers the next call like this.
    Refuse(Refusal),
}

#[derive(Clone, Copy, Debug)]
enum Refusal {
    DelaySequence,
    DelayWork,
    Uncached,
    BadSlot,
    NotBound,
    LostState,
    Misordered,
}

/// One of each call, reads and writes of one block and of several.
pub fn calls() -> Vec<NfsCall> {
    let span = |blocks_left| {
        let (file, offset) = (large_file(), u64::from(BLOCK_BYTES));
        Span { file, offset, bytes: 512, blocks_left }
    };
    vec![
        NfsCall::GetAttr(large_file()),
        NfsCall::SetAttr(large_file()),
        NfsCall::Lookup(large_file()),
        NfsCall::Access(large_file()),
        NfsCall::ReadLink(LinkNo(2)),
        NfsCall::Read(span(0), Verify::Content),
        NfsCall::Read(span(1), Verify::Length),
        NfsCall::Write(span(0), Stability::FileSync),
        NfsCall::Write(span(1), Stability::Unstable),
        NfsCall::Create(SlotNo(7)),
        NfsCall::Create(SlotNo(8)),
        NfsCall::Remove(SlotNo(9), Presence::Missing),
        NfsCall::FsStat,
        NfsCall::Commit(large_file()),
    ]
}

fn event() -> impl Strategy<Value = Event> {
    let refusal = prop_oneof![
        Just(Refusal::DelaySequence),
        Just(Refusal::DelayWork),
        Just(Refusal::Uncached),
        Just(Refusal::BadSlot),
        Just(Refusal::NotBound),
        Just(Refusal::LostState),
        Just(Refusal::Misordered),
    ];
    let bytes_max = prop_oneof![3 => Just(usize::MAX), 1 => 1..200_usize];
    prop_oneof![
        8 => any::<usize>().prop_map(Event::Issue),
        2 => Just(Event::Connect),
        8 => (any::<usize>(), any::<usize>())
            .prop_map(|(link, which)| Event::Execute { link, which }),
        8 => (any::<usize>(), any::<usize>(), bytes_max)
            .prop_map(|(link, which, bytes_max)| Event::Deliver { link, which, bytes_max }),
        2 => (any::<usize>(), any::<bool>()).prop_map(|(link, executed)| Event::Cut { link, executed }),
        2 => Just(Event::Wake),
        1 => Just(Event::Restart),
        1 => refusal.prop_map(Event::Refuse),
    ]
}

fn request() -> impl Strategy<Value = SessionRequest> {
    let opens = prop_oneof![
        2 => Just(Opens::PerDraw),
        1 => Just(Opens::Held),
        1 => Just(Opens::Anonymous),
    ];
    (1..4_u32, 1..4_u32, opens, any::<bool>()).prop_map(
        |(slots, connections, opens, delegations)| SessionRequest {
            slots,
            connections,
            opens,
            delegations,
            ..REQUEST
        },
    )
}

fn fault(refusal: Refusal, request: &Request) -> Option<Fault> {
    let slot = request.sequence?.slot;
    let is_op = !matches!(request.main, Some(Operation::ReclaimComplete | Operation::Sequence));
    let uses_state = matches!(request.main, Some(Operation::Read | Operation::Write));
    Some(match refusal {
        Refusal::DelaySequence => Fault::First(Status4::DELAY),
        Refusal::DelayWork => Fault::Second(Status4::DELAY),
        Refusal::Uncached if is_op => Fault::Second(Status4::RETRY_UNCACHED_REP),
        Refusal::BadSlot if slot > 0 => Fault::First(Status4::BADSLOT),
        Refusal::Misordered => Fault::First(Status4::SEQ_MISORDERED),
        Refusal::NotBound => Fault::First(Status4::CONN_NOT_BOUND_TO_SESSION),
        Refusal::LostState if uses_state => Fault::Second(Status4::BAD_STATEID),
        _ => return None,
    })
}

fn pick(from: &[u64], which: usize) -> Option<u64> {
    from.get(which % from.len().max(1)).copied()
}

impl Client {
    /// Logs off, if it has ever had something to do.
    fn leave(&mut self, bed: &Bed) {
        if self.net.links > 0 {
            self.log_off();
        }
        assert_eq!(bed.core.v4().executed_twice(), 0);
    }

    fn happen(&mut self, bed: &Bed, event: Event) {
        let calls = calls();
        let open = self.net.open();
        match event {
            Event::Issue(which) => {
                if self.session.has_room() {
                    self.issue(calls[which % calls.len()]);
                }
            }
            Event::Connect => drop(self.connect()),
            Event::Execute { link, which } => {
                if let Some(link) = pick(&open, link) {
                    self.net.execute(link, which);
                }
            }
            Event::Deliver { link, which, bytes_max } => {
                if let Some(link) = pick(&open, link) {
                    self.deliver(link, which, bytes_max);
                }
            }
            Event::Cut { link, executed } => {
                if let Some(link) = pick(&open, link) {
                    self.cut(link, executed);
                }
            }
            Event::Wake => self.wake(),
            Event::Restart => bed.core.v4().restart(Duration::ZERO),
            Event::Refuse(refusal) => {
                let mut left = 1;
                self.net.faults = Box::new(move |request| {
                    let fault = (left > 0).then(|| fault(refusal, request)).flatten();
                    left -= i32::from(fault.is_some());
                    fault
                });
            }
        }
    }
}

/// Ops end well, or because nobody answered in time, or because the server twice did not know a
/// file to be open; without open files, once.
fn assert_is_explained(ended: &Ended, opens: Opens, events: &[Event]) {
    let count = |of: fn(&Event) -> bool| events.iter().filter(|event| of(event)).count();
    let restarts =
        count(|event| matches!(event, Event::Restart | Event::Refuse(Refusal::Misordered)));
    match ended.outcome.status {
        OpStatus::Ok | OpStatus::ExpectedFailure => {}
        OpStatus::Failed(ErrorClass::Timeout) => {}
        OpStatus::Failed(ErrorClass::Status(code)) if code == Status4::BAD_STATEID.0 => {
            let lost = count(|event| matches!(event, Event::Refuse(Refusal::LostState)));
            let allowed = usize::from(opens != Opens::Anonymous);
            assert!(restarts + lost > allowed, "{ended:?}");
        }
        _ => panic!("{ended:?}"),
    }
    if ended.outcome.ambiguous {
        assert!(matches!(ended.call, NfsCall::Create(_) | NfsCall::Remove(..)), "{ended:?}");
        let uncached = count(|event| matches!(event, Event::Refuse(Refusal::Uncached)));
        assert!(restarts + uncached > 0, "{ended:?}");
    }
}

/// A client that gave up a session which the server still knows stays until its lease ends.
fn assert_are_gone(bed: &Bed, events: &[Event]) {
    let keeps = |event: &Event| matches!(event, Event::Refuse(Refusal::Misordered));
    assert!(bed.core.v4().clients() == 0 || events.iter().any(keeps));
}

fn check(bed: &Bed, number: u32, request: SessionRequest, events: &[Event]) {
    let mut client = Client::new(bed, number, request);
    let counted = bed.core.v4().counts();
    for event in events {
        client.happen(bed, *event);
    }
    client.run();
    client.ended.iter().for_each(|ended| assert_is_explained(ended, request.opens, events));
    client.net.faults = Box::new(|_| None);
    // Longer than any pause and any timeout.
    client.pass(Nanos::from_secs(60));
    let counters = client.counters();
    let disturbs =
        |event: &Event| matches!(event, Event::Cut { .. } | Event::Restart | Event::Refuse(_));
    if !events.iter().any(disturbs) {
        let now = bed.core.v4().counts();
        let server = (now.compounds - counted.compounds, now.operations - counted.operations);
        assert_eq!((counters.compounds, counters.operations), server);
        assert_eq!(counters.retransmissions, 0);
    }
    bed.totals.borrow_mut().add(counters);
    client.leave(bed);
    assert_are_gone(bed, events);
}

/// The same happens to two clients in turn, which need the same files.
fn check_two(bed: &Bed, number: u32, request: SessionRequest, events: &[Event]) {
    let mut clients = [0, 1].map(|of_two| Client::new(bed, number * 2 + of_two, request));
    for (number, event) in events.iter().enumerate() {
        clients[number % 2].happen(bed, *event);
    }
    while clients.iter().any(Client::is_busy) {
        clients.iter_mut().for_each(Client::settle);
        clients.iter_mut().filter(|client| client.is_busy()).for_each(Client::wake);
    }
    for client in &mut clients {
        client.ended.iter().for_each(|ended| assert_is_explained(ended, request.opens, events));
        client.net.faults = Box::new(|_| None);
        client.pass(Nanos::from_secs(60));
        bed.totals.borrow_mut().add(client.counters());
    }
    clients.iter_mut().for_each(|client| client.leave(bed));
    assert_are_gone(bed, events);
}

/// The client leaves in the middle of its work. If it has a session, it ends that.
fn check_leaving(bed: &Bed, number: u32, request: SessionRequest, events: &[Event]) {
    let mut client = Client::new(bed, number, request);
    let waits = |event: &&Event| !matches!(event, Event::Refuse(_));
    for event in events.iter().filter(waits) {
        client.happen(bed, *event);
    }
    client.leave(bed);
}

type Check = fn(&Bed, u32, SessionRequest, &[Event]);

fn run(check: Check, cases: u32, config: Nfs4Config) -> SessionCounters {
    let bed = Bed::new(config);
    let events = prop::collection::vec(event(), 1..40);
    let number = Cell::new(0);
    let test = |(request, events): (SessionRequest, Vec<Event>)| {
        // Those that a case left behind when it failed.
        bed.core.v4().restart(Duration::ZERO);
        number.set(number.get() + 1);
        check(&bed, number.get(), request, &events);
        Ok(())
    };
    runner(cases).run(&(request(), events), test).unwrap();
    bed.totals.into_inner()
}

#[test]
fn whatever_happens_every_op_ends_once_and_nothing_is_done_twice() {
    let totals = run(check, 5_000, Nfs4Config::default());
    let SessionCounters { retransmissions, delays, sessions_rebuilt, reopened, .. } = totals;
    let counts = [retransmissions, delays, sessions_rebuilt, reopened, totals.slot_waits];
    assert!(counts.iter().all(|count| *count > 100), "{counts:?}");
}

#[test]
fn it_is_so_where_slots_grow_fewer_and_clients_need_what_is_delegated_to_others() {
    let fewer_slots = Some(FewerSlots { slots: 2, after_compounds: 6 });
    let config = Nfs4Config { fewer_slots, delegations: true, ..Nfs4Config::default() };
    let totals = run(check_two, 5_000, config);
    let counts = [totals.delegations, totals.recalls, totals.reopened];
    assert!(counts.iter().all(|count| *count > 100), "{counts:?}");
}

#[test]
fn a_client_may_leave_at_any_time() {
    run(check_leaving, 2_000, Nfs4Config { delegations: true, ..Nfs4Config::default() });
}
