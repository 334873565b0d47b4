//! Ops in flight: never more than the bounds, never two on a name.

use std::collections::HashMap;

use plimsoll_model::outcome::{ErrorClass, OpStatus};

use super::*;
use crate::op::SlotNo;

/// Ops in flight that end in any order, some of them failing.
#[derive(Default)]
struct Line {
    flights: Vec<Option<(NfsOp, u32)>>,
}

impl Line {
    fn free(&mut self) -> Ticket {
        let at = self.flights.iter().position(Option::is_none).unwrap_or_else(|| {
            self.flights.push(None);
            self.flights.len() - 1
        });
        Ticket(at as u32)
    }

    fn begin(&mut self, op: NfsOp, blocks_left: u32) -> Ticket {
        let ticket = self.free();
        self.flights[ticket.0 as usize] = Some((op, blocks_left));
        ticket
    }

    fn counts(&self) -> [usize; 3] {
        let count = |f: fn(&NfsCall) -> bool| {
            self.flights.iter().flatten().filter(|(op, _)| f(&op.call)).count()
        };
        [
            self.flights.iter().flatten().count(),
            count(|call| matches!(call, NfsCall::Read(..))),
            count(|call| matches!(call, NfsCall::Write(..))),
        ]
    }

    fn slots(&self) -> Vec<SlotNo> {
        let slot = |op: &NfsOp| match op.call {
            NfsCall::Create(slot) | NfsCall::Remove(slot, _) => Some(slot),
            _ => None,
        };
        self.flights.iter().flatten().filter_map(|(op, _)| slot(op)).collect()
    }
}

#[test]
fn bounds_hold_with_follow_ons_and_no_slot_is_in_flight_twice() {
    let mut workload = workload("nfs-v3");
    workload.mix.insert(MixOp::Create, 5.0);
    workload.mix.insert(MixOp::Remove, 5.0);
    workload.mix.insert(MixOp::Write, 20.0);
    let plan = Arc::new(ScriptPlan::new(&workload, FileSet::new(1_000), 5, 6).unwrap());
    let mut script = NfsScript::new(plan.clone(), 3);
    let mut line = Line::default();
    let mut reached = [0; 3];
    // What exists, as a server would know it.
    let mut exists: HashMap<SlotNo, bool> = HashMap::new();
    for round in 0..60_000u64 {
        while let Step::Issue(op) = script.next(NOW) {
            let blocks_left = match op.call {
                NfsCall::Read(span, _) | NfsCall::Write(span, _) => span.blocks_left,
                NfsCall::Remove(slot, presence) => {
                    let there = exists.get(&slot).copied().unwrap_or_default();
                    assert_eq!(there, presence == Presence::Exists, "{slot:?}");
                    0
                }
                NfsCall::Create(_) => {
                    assert_eq!(Some(op.kind), plan.create);
                    0
                }
                _ => 0,
            };
            script.on_issued(line.begin(op, blocks_left));
        }
        let counts = line.counts();
        assert!(counts[0] <= 32 && counts[1] <= 8 && counts[2] <= 8, "{counts:?}");
        reached = std::array::from_fn(|i| reached[i].max(counts[i]));
        let mut slots = line.slots();
        slots.sort_unstable();
        assert!(slots.windows(2).all(|pair| pair[0] != pair[1]), "{slots:?}");
        end_one(&mut script, &mut line, &mut exists, round);
    }
    assert_eq!(reached, [32, 8, 8]);
}

fn end_one(
    script: &mut NfsScript,
    line: &mut Line,
    exists: &mut HashMap<SlotNo, bool>,
    round: u64,
) {
    let key = rng::key(&[99, round]);
    let in_flight: Vec<usize> =
        (0..line.flights.len()).filter(|i| line.flights[*i].is_some()).collect();
    let at = in_flight[rng::below(key, in_flight.len() as u64) as usize];
    let (op, blocks_left) = line.flights[at].take().unwrap();
    let failed = rng::below(rng::key(&[key]), 50) == 0;
    // A failed op may have worked nevertheless.
    let worked = !failed || key.is_multiple_of(2);
    match op.call {
        NfsCall::Create(slot) if worked => exists.insert(slot, true),
        NfsCall::Remove(slot, _) if worked => exists.insert(slot, false),
        _ => None,
    };
    let status = match op.call {
        _ if failed => OpStatus::Failed(ErrorClass::Timeout),
        NfsCall::Remove(_, Presence::Missing) => OpStatus::ExpectedFailure,
        _ => OpStatus::Ok,
    };
    script.on_outcome(Ticket(at as u32), &outcome(op, status), Nanos::ZERO);
    if blocks_left > 0 && !failed {
        let ticket = line.begin(op, blocks_left - 1);
        script.on_follow_on(Ticket(at as u32), ticket);
    }
}
