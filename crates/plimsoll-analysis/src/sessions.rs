//! What came of the sessions that clients opened one after the other and kept. Pure.
//!
//! Clients open them in the warm-up, which is as long as that takes. So the times of the op that
//! opens a session are those of the warm-up, slice by slice, and each slice is at the number of
//! sessions that were opened before it.

use std::collections::BTreeMap;

use plimsoll_model::event::{PointRecord, RunStarted};
use plimsoll_model::sessions::{SessionStep, Sessions};

use crate::blocks::{Coarse, lower_edge_ns};
use crate::raw::PointTimes;

/// The table has so many lines.
const STEPS: u64 = 10;

/// `None` where the clients keep no sessions.
pub(crate) fn sessions(
    started: &RunStarted,
    record: &PointRecord,
    times: Option<&PointTimes>,
) -> Option<Sessions> {
    let plan = started.sessions.as_ref()?;
    let op = started.op_names.0.iter().position(|name| *name == plan.op)?;
    let (totals, asked) = (&record.totals, record.load.clients());
    let slices: Vec<&Coarse> = times.map(|t| t.warm_up_of_op(op).collect()).unwrap_or_default();
    // Those that took longer than the warm-up was.
    let late = totals.ops.get(&plan.op).map_or(0, |counts| counts.ended_in_window);
    let opened = slices.iter().map(|slice| slice.n).sum::<u64>() + late;
    let mut errors: BTreeMap<String, u64> = totals.errors.clone();
    for (class, count) in &totals.warm_up_errors {
        *errors.entry(class.clone()).or_default() += count;
    }
    Some(Sessions {
        asked,
        opened,
        held: opened.min(u64::from(totals.clients_participating)),
        lost: asked.saturating_sub(totals.clients_participating),
        errors,
        steps: steps(&slices, u64::from(asked)),
    })
}

/// Tenths of the sessions asked for. A slice belongs to the tenth in which its first session is.
fn steps(slices: &[&Coarse], asked: u64) -> Vec<SessionStep> {
    let mut tenths: BTreeMap<u64, (u64, Vec<&Coarse>)> = BTreeMap::new();
    let mut opened = 0;
    for slice in slices {
        let tenth = opened * STEPS / asked.max(1);
        tenths.entry(tenth).or_insert((opened, Vec::new())).1.push(slice);
        opened += slice.n;
    }
    tenths.into_values().map(|(from, slices)| step(from, &slices)).collect()
}

fn step(from: u64, slices: &[&Coarse]) -> SessionStep {
    let mut counts: BTreeMap<u16, u64> = BTreeMap::new();
    for (bucket, count) in slices.iter().flat_map(|slice| slice.counts()) {
        *counts.entry(*bucket).or_default() += u64::from(*count);
    }
    let n: u64 = counts.values().sum();
    let at = |share: f64| {
        let rank = (n as f64 * share).ceil() as u64;
        let mut below = 0;
        let bucket = counts.iter().find(|(_, count)| {
            below += **count;
            below >= rank
        });
        bucket.map_or(0.0, |(bucket, _)| middle_ns(*bucket))
    };
    SessionStep { from, to: from + n, p50_ns: at(0.5), p99_ns: at(0.99), max_ns: at(1.0) }
}

fn middle_ns(bucket: u16) -> f64 {
    let (low, next) = (lower_edge_ns(bucket), lower_edge_ns(bucket + 1));
    (low + next) as f64 / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_model::event::new_times;

    fn slice(n: u32, ms: u64) -> Coarse {
        let mut times = new_times();
        times.record_n(ms * 1_000_000, n).unwrap();
        Coarse::of(&times)
    }

    #[test]
    fn a_step_has_the_sessions_opened_before_it_and_the_times_of_its_own() {
        let slices: Vec<Coarse> = (0..20).map(|at| slice(5, 1 + at)).collect();
        let steps = steps(&slices.iter().collect::<Vec<_>>(), 100);
        assert_eq!(steps.len(), 10);
        assert_eq!((steps[9].from, steps[9].to), (90, 100));
        for (at, step) in steps.iter().enumerate() {
            let (first, second) = ((2 * at + 1) as f64 * 1e6, (2 * at + 2) as f64 * 1e6);
            assert!((step.p50_ns / first - 1.0).abs() < 0.01, "{step:?}");
            assert!((step.p99_ns / second - 1.0).abs() < 0.01, "{step:?}");
            assert_eq!(step.p99_ns, step.max_ns);
        }
    }

    #[test]
    fn slices_with_more_sessions_than_a_step_make_fewer_steps() {
        let slices = [slice(45, 1), slice(55, 2)];
        let steps = steps(&slices.iter().collect::<Vec<_>>(), 100);
        let borders: Vec<_> = steps.iter().map(|step| (step.from, step.to)).collect();
        assert_eq!(borders, [(0, 45), (45, 100)]);
    }
}
