//! The patterns other than the disk mix.

use plimsoll_model::outcome::OpStatus;
use plimsoll_model::sessions::SessionsPlan;

use super::*;
use crate::op::{SmbKind, SmbOp};
use crate::parameters::Pattern;
use crate::workspace::Workspace;

fn with(pattern: Pattern, outstanding_max: u32) -> Arc<ScriptPlan> {
    plan(2, 1.0, |workload| {
        workload.pattern = pattern;
        workload.outstanding_max = outstanding_max;
        workload.verify_one_in = 16;
    })
}

/// What a script issues while nothing ends.
fn burst(script: &mut SmbScript) -> Vec<SmbCall> {
    let mut calls = Vec::new();
    loop {
        match script.next(ScriptContext { index: 0, due: Nanos(0), now: Nanos(0) }) {
            Step::Issue(call) => {
                script.on_issued(Ticket(0));
                calls.push(call);
            }
            Step::Think => {}
            _ => return calls,
        }
    }
}

#[test]
fn a_nic_pass_reads_the_whole_file_once_in_order() {
    let plan = with(Pattern::Nic, 1);
    let mut client = Client::new(&plan, 1);
    let workspace = Workspace::new(20.0, 0.001);
    let mut share = Share::prepared(1, 1, workspace);
    let mut offsets = Vec::new();
    let moved = client.work(&mut share, 2, |call| {
        if let SmbOp::Read { offset, length, .. } = call.op {
            assert_eq!(length, 1_024);
            offsets.push(offset);
        }
    });
    let pass = (0..1_024).map(|n| n * 1_024);
    assert_eq!(offsets, pass.clone().chain(pass).collect::<Vec<_>>());
    assert_eq!((moved.read, moved.verified), (2 * 1_048_576, 128));
    assert_eq!(client.pieces, 3);
    assert!(share.is_as_prepared(&Share::prepared(1, 1, workspace)));
}

#[test]
fn a_nic_pass_of_another_size_ends_with_what_is_left() {
    let plan = plan(1, 1.0, |workload| {
        workload.pattern = Pattern::Nic;
        workload.nic_file_bytes = 10_000;
        workload.nic_request_bytes = 4_096;
    });
    let mut client = Client::new(&plan, 0);
    let mut lengths = Vec::new();
    while lengths.len() < 6 {
        if let SmbOp::Read { length, .. } = client.next().0.op {
            lengths.push(length);
        }
    }
    assert_eq!(lengths, [4_096, 4_096, 1_808, 4_096, 4_096, 1_808]);
}

#[test]
fn a_nic_client_keeps_reads_in_flight_but_opens_and_closes_alone() {
    let mut client = Client::new(&with(Pattern::Nic, 8), 0);
    let opens = burst(&mut client.script);
    assert_eq!(opens.len(), 1);
    client.end(&opens[0]);
    let first = burst(&mut client.script);
    assert_eq!(first.iter().map(|call| call.op.kind()).collect::<Vec<_>>(), [SmbKind::Read; 8]);
    let mut reads = first.len();
    let mut last = first[0].clone();
    while last.op.kind() == SmbKind::Read {
        client.end(&last);
        let more = burst(&mut client.script);
        reads += more.iter().filter(|call| call.op.kind() == SmbKind::Read).count();
        last = more.last().cloned().unwrap_or(last);
    }
    assert_eq!((reads, last.op.kind()), (1_024, SmbKind::Close));
    assert!(burst(&mut client.script).is_empty());
}

#[test]
fn logons_think_before_each_and_echoes_never() {
    let mut client = Client::new(&with(Pattern::Logons, 1), 0);
    for _ in 0..3 {
        let (call, thought) = client.next();
        assert!(thought && call.op == SmbOp::Logon);
    }
    let mut client = Client::new(&with(Pattern::Echo, 5), 0);
    let (call, thought) = client.next();
    assert!(!thought && call.op == SmbOp::Echo);
    assert_eq!(burst(&mut client.script).len(), 5);
}

#[test]
fn the_clients_of_an_open_load_do_not_wait_for_each_other() {
    for pattern in [Pattern::Logons, Pattern::Echo] {
        let workload = SmbWorkload { pattern, outstanding_max: 1, ..SmbWorkload::default() };
        let mut plan = ScriptPlan::new(7, 64, workload, 1.0);
        plan.pacing = Pacing::Open;
        let mut shared = Client::new(&Arc::new(plan), 0).script;
        for _ in 0..64 {
            let step = shared.next(ScriptContext { index: 0, due: Nanos(0), now: Nanos(0) });
            assert!(matches!(step, Step::Issue(_)), "{pattern:?}: {step:?}");
            shared.on_issued(Ticket(0));
        }
    }
}

#[test]
fn an_open_load_never_thinks() {
    for pattern in [Pattern::Logons, Pattern::Nic, Pattern::DiskMix] {
        let mut workload = SmbWorkload { pattern, ..SmbWorkload::default() };
        workload.model.ops_per_pass = 700;
        let mut plan = ScriptPlan::new(7, 1, workload, 0.001);
        plan.pacing = Pacing::Open;
        let mut client = Client::new(&Arc::new(plan), 0);
        assert!((0..3_000).all(|_| !client.next().1), "{pattern:?}");
    }
}

#[test]
fn a_client_that_stays_logs_on_when_its_turn_has_come_and_then_asks_rarely() {
    let workload = SmbWorkload { pattern: Pattern::Sessions, ..SmbWorkload::default() };
    let mut plan = ScriptPlan::new(7, 20, workload, 1.0);
    plan.sessions = Some(SessionsPlan { op: "logon".to_owned(), starts_per_s: 20.0 });
    let mut script = Client::new(&Arc::new(plan), 3).script;
    let start = Nanos::from_millis(150);
    assert_eq!(
        script.next(ScriptContext { index: 0, due: Nanos(0), now: Nanos(0) }),
        Step::SleepUntil(start)
    );
    let ok = |kind: SmbKind| Outcome {
        kind: kind.into(),
        status: OpStatus::Ok,
        bytes_read: 0,
        bytes_written: 0,
        ambiguous: false,
    };
    let kinds = [SmbKind::Logon, SmbKind::QueryFs, SmbKind::QueryFs];
    for (index, kind) in (0..).zip(kinds) {
        let context = ScriptContext { index, due: start, now: start };
        if kind != SmbKind::Logon {
            assert_eq!(script.next(context), Step::Think);
        }
        let Step::Issue(call) = script.next(context) else { panic!("{kind:?}") };
        assert_eq!(call.op.kind(), kind);
        script.on_issued(Ticket(0));
        assert_eq!(script.next(context), Step::WaitForOutcome);
        script.on_outcome(Ticket(0), &ok(kind), context.now);
    }
}
