//! What each agent brought of a load point, and the record of all.

use plimsoll_fleet::message::PointReport;
use plimsoll_model::assignment::Endpoint;
use plimsoll_model::bundle::IntervalSlice;
use plimsoll_model::event::{AgentPoint, CoreUser, Phase, PointRecord, SecondRecord, TargetTotals};
use plimsoll_model::units::Nanos;

use super::book::{PointBook, cannot_keep};
use super::watcher::PointUse;
use crate::agent::KeptSlices;
use crate::exit::Failure;

/// What an agent brought.
pub(super) struct Part {
    pub report: PointReport,
    /// Slices that are not written yet.
    pub slices: KeptSlices,
    /// Who it was; `None` for this program.
    pub agent: Option<AgentPoint>,
    /// Numbers of the targets that its clients used, from 0; empty for all.
    pub targets: Vec<usize>,
}

impl Part {
    /// Adds what monitors of this program saw of it.
    pub(super) fn see(&mut self, seen: &PointUse) {
        let report = &mut self.report;
        if self.agent.is_some() {
            return;
        }
        report.process_cpu_ns = seen.process_cpu_ns;
        report.monitor_cpu_ns = seen.monitor_cpu_ns;
        report.clock_step_ns = seen.clock_step_ns;
        report.resources.clone_from(&seen.resources);
        report.core_users.clone_from(&seen.core_users);
    }
}

/// Writes the slices of all parts, those of one time as one, in order of time.
pub(super) fn write_all(book: &mut PointBook, parts: &mut [Part]) -> Result<(), Failure> {
    while let Some(key) = parts.iter().filter_map(|part| part.slices.next_key()).min() {
        let mut sum: Option<IntervalSlice> = None;
        for part in parts.iter_mut().filter(|part| part.slices.next_key() == Some(key)) {
            let Some(packed) = part.slices.take_oldest() else { continue };
            let slice = packed.unpack().map_err(|e| cannot_keep(&e))?;
            match &mut sum {
                Some(sum) => sum.merge(&slice),
                None => sum = Some(slice),
            }
        }
        if let Some(slice) = sum {
            book.write(slice)?;
        }
    }
    Ok(())
}

/// The record of a load point, from its parts. What was seen of the servers is left out.
pub(super) fn record_of(book: &PointBook, parts: Vec<Part>) -> PointRecord {
    let assignment = &book.assignment;
    let agents = parts.iter().filter_map(agent_of).collect();
    let reports = parts.into_iter().map(|part| over_all_targets(part, &assignment.endpoints));
    let sum = reports.reduce(joined).unwrap_or_default();
    // A point cut short, or ended by the number of its ops, held each phase for as long as its
    // seconds tell.
    let planned_length = book.ended_early.is_none() && assignment.phases.ops.is_none();
    let length = |phase: Phase, planned: Nanos| match planned_length {
        true => planned,
        false => planned.min(held(&sum.seconds, phase)),
    };
    PointRecord {
        point: assignment.point,
        load: assignment.load.clone(),
        pacing: assignment.pacing,
        started_unix_ns: book.started_unix_ns,
        warm_up_ns: length(Phase::WarmUp, assignment.phases.warm_up_ns),
        measured_ns: length(Phase::Measure, assignment.phases.measure_ns),
        clock_step_ns: sum.clock_step_ns,
        totals: sum.totals,
        seconds: sum.seconds,
        workers: sum.workers,
        process_cpu_ns: sum.process_cpu_ns,
        monitor_cpu_ns: sum.monitor_cpu_ns,
        panic: sum.panic,
        ended_early: book.ended_early.clone(),
        resources: sum.resources,
        core_users: sum.core_users,
        server_core_users: None,
        host_work: Vec::new(),
        ops: assignment.phases.ops,
        data_set_bytes: None,
        agents,
    }
}

/// The agent of a part, with what its report says of it.
fn agent_of(part: &Part) -> Option<AgentPoint> {
    let (report, agent) = (&part.report, part.agent.clone()?);
    Some(AgentPoint {
        workers: report.workers.len() as u32,
        done: report.totals.done_in_window,
        errors: report.totals.errors.values().sum(),
        started_unix_ns: report.started_unix_ns,
        clock_step_ns: report.clock_step_ns,
        process_cpu_ns: report.process_cpu_ns,
        monitor_cpu_ns: report.monitor_cpu_ns,
        core_users: report.core_users.clone(),
        ..agent
    })
}

/// The report, with the targets that its agent did not use at their places.
fn over_all_targets(part: Part, endpoints: &[Endpoint]) -> PointReport {
    let Part { mut report, targets, .. } = part;
    if !targets.is_empty() {
        let unused =
            |of: &Endpoint| TargetTotals { target: of.target.clone(), ..Default::default() };
        let mut all: Vec<TargetTotals> = endpoints.iter().map(unused).collect();
        for (at, own) in targets.into_iter().zip(std::mem::take(&mut report.totals.per_target)) {
            if let Some(place) = all.get_mut(at) {
                *place = own;
            }
        }
        report.totals.per_target = all;
    }
    report
}

/// Two reports of one load point as one.
fn joined(mut sum: PointReport, part: PointReport) -> PointReport {
    sum.seconds = joined_seconds(sum.seconds, part.seconds);
    sum.workers.extend(part.workers);
    sum.totals.add(part.totals);
    sum.panic = sum.panic.or(part.panic);
    sum.process_cpu_ns += part.process_cpu_ns;
    sum.monitor_cpu_ns += part.monitor_cpu_ns;
    if part.clock_step_ns.unsigned_abs() > sum.clock_step_ns.unsigned_abs() {
        sum.clock_step_ns = part.clock_step_ns;
    }
    sum.resources.extend(part.resources);
    sum.core_users = joined_users(sum.core_users, part.core_users);
    sum
}

fn joined_seconds(mut sum: Vec<SecondRecord>, part: Vec<SecondRecord>) -> Vec<SecondRecord> {
    let key = |second: &SecondRecord| (second.second, second.phase);
    for second in part {
        match sum.iter_mut().rev().find(|known| key(known) == key(&second)) {
            Some(known) => {
                let length_ns = known.length_ns.max(second.length_ns);
                known.add(second);
                known.length_ns = length_ns;
            }
            None => sum.push(second),
        }
    }
    sum.sort_by_key(key);
    sum
}

/// Of all hosts, the largest first; nobody looked unless every agent did.
fn joined_users(sum: Option<Vec<CoreUser>>, part: Option<Vec<CoreUser>>) -> Option<Vec<CoreUser>> {
    let mut users = sum?;
    users.extend(part?);
    users.sort_by_key(|user| std::cmp::Reverse(user.cpu_ns));
    Some(users)
}

/// For how long a phase was held.
fn held(seconds: &[SecondRecord], phase: Phase) -> Nanos {
    let lengths = seconds.iter().filter(|record| record.phase == phase);
    Nanos(lengths.map(|record| record.length_ns).sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn second(second: u32, phase: Phase, length_ns: u64, done: u64) -> SecondRecord {
        SecondRecord { second, phase, length_ns, done, ..SecondRecord::default() }
    }

    #[test]
    fn a_phase_was_held_for_as_long_as_its_seconds_tell() {
        let seconds = [
            second(0, Phase::WarmUp, 1_000, 0),
            second(1, Phase::Measure, 1_000, 0),
            second(2, Phase::Measure, 400, 0),
        ];
        assert_eq!(held(&seconds, Phase::Measure), Nanos(1_400));
        assert_eq!(held(&seconds, Phase::Drain), Nanos::ZERO);
    }

    #[test]
    fn targets_that_an_agent_did_not_use_keep_their_places() {
        let [a, b, c] = ["a", "b", "c"].map(|target| Endpoint {
            target: target.to_owned(),
            address: ([127, 0, 0, 1], 80).into(),
            unix: None,
        });
        let done = |target: &str, done_in_window| TargetTotals {
            target: target.to_owned(),
            done_in_window,
            ..TargetTotals::default()
        };
        let part = |per_target, targets: &[usize]| {
            let mut report = PointReport::default();
            report.totals.per_target = per_target;
            let slices = KeptSlices::default();
            Part { report, slices, agent: None, targets: targets.to_vec() }
        };
        let parts = [
            part(vec![done("a", 1), done("c", 2)], &[0, 2]),
            part(vec![done("a", 10), done("b", 20), done("c", 30)], &[]),
        ];
        let endpoints = [a, b, c];
        let whole = parts.map(|part| over_all_targets(part, &endpoints)).into_iter();
        let sum = whole.reduce(joined).unwrap();
        assert_eq!(sum.totals.per_target, [done("a", 11), done("b", 20), done("c", 32)]);
    }

    #[test]
    fn seconds_of_agents_add_up_by_second_and_phase() {
        let first = vec![second(0, Phase::WarmUp, 500, 3), second(0, Phase::Measure, 500, 4)];
        let other = vec![second(0, Phase::Measure, 400, 5), second(1, Phase::Measure, 900, 6)];
        let sum = joined_seconds(first, other);
        let told: Vec<_> = sum.iter().map(|s| (s.second, s.phase, s.length_ns, s.done)).collect();
        let expected =
            [(0, Phase::WarmUp, 500, 3), (0, Phase::Measure, 500, 9), (1, Phase::Measure, 900, 6)];
        assert_eq!(told, expected);
    }
}
