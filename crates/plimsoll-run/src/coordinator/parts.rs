//! The parts of a load point that agents deliver, and the record of them all.

use std::collections::VecDeque;

use plimsoll_fleet::message::PointReport;
use plimsoll_model::assignment::Endpoint;
use plimsoll_model::bundle::{IntervalSlice, PackedSlice};
use plimsoll_model::event::{
    AgentPoint, CoreUser, Phase, PointRecord, SecondRecord, ShapedPoint, TargetTotals,
};
use plimsoll_model::load_shape::{LoadShape, PhaseKind};
use plimsoll_model::units::Nanos;

use super::recorder::{PointRecorder, WindowRecorder};
use crate::agent::cannot_keep;
use crate::failure::Failure;

/// The part of one agent.
pub(super) struct Part {
    pub report: PointReport,
    /// Slices that are not written yet, the oldest first.
    pub slices: VecDeque<PackedSlice>,
    /// Its agent; `None` for this program.
    pub agent: Option<AgentPoint>,
    /// Numbers of the targets that its clients used, from 0; empty for all.
    pub targets: Vec<usize>,
}

/// What the parts have of a window, which is taken out of them.
pub(super) fn parts_of_window(parts: &mut [Part], number: usize) -> Vec<Part> {
    let of_window = |part: &mut Part| {
        let report = match number.checked_sub(1) {
            None => PointReport { later: Vec::new(), ..part.report.clone() },
            Some(later) => part.report.later.get(later).cloned().unwrap_or_default(),
        };
        let (own, others) = std::mem::take(&mut part.slices)
            .into_iter()
            .partition(|packed| packed.window as usize == number);
        part.slices = others;
        Part { report, slices: own, agent: part.agent.clone(), targets: part.targets.clone() }
    };
    parts.iter_mut().map(of_window).collect()
}

/// Writes the slices of all parts, those of one time as one, in order of time.
pub(super) fn write_all(window: &mut WindowRecorder, parts: &mut [Part]) -> Result<(), Failure> {
    let next_key = |part: &Part| part.slices.front().map(PackedSlice::key);
    while let Some(key) = parts.iter().filter_map(next_key).min() {
        let mut sum: Option<IntervalSlice> = None;
        for part in parts.iter_mut().filter(|part| next_key(part) == Some(key)) {
            let Some(packed) = part.slices.pop_front() else { continue };
            let slice = packed.unpack().map_err(|e| cannot_keep(&e))?;
            match &mut sum {
                Some(sum) => sum.merge(&slice),
                None => sum = Some(slice),
            }
        }
        if let Some(slice) = sum {
            window.write(slice)?;
        }
    }
    Ok(())
}

/// The record of a window of a load point, from its parts and what this program's monitors
/// observed.
pub(super) fn record_of(
    recorder: &PointRecorder,
    (number, window): (usize, &mut WindowRecorder),
    parts: Vec<Part>,
) -> PointRecord {
    let assignment = &recorder.assignment;
    let observed = window.observed.take().unwrap_or_default();
    // Times of a later window are from its own begin.
    let (begin, warm_up_ns) = match number {
        0 => (Nanos::ZERO, window.phases.warm_up_ns),
        _ => (window.phases.warm_up_ns, Nanos::ZERO),
    };
    let shaped = assignment.shape.as_ref().map(|shape| (shape, &shape.phases[number]));
    let agents: Vec<AgentPoint> = parts.iter().filter_map(agent_of).collect();
    let reports = parts.into_iter().map(|part| with_all_targets(part, &assignment.endpoints));
    let mut sum = reports.reduce(joined).unwrap_or_default();
    if agents.is_empty() {
        sum.process_cpu_ns = observed.process_cpu_ns;
        sum.monitor_cpu_ns = observed.monitor_cpu_ns;
        sum.clock_step_ns = observed.clock_step_ns;
        sum.core_users = observed.core_users;
    }
    // If the point was cut short, or ended by its number of ops, the length of each phase is that
    // of its seconds.
    let planned_length = recorder.ended_early.is_none() && assignment.phases.ops.is_none();
    let length = |phase: Phase, planned: Nanos| match planned_length {
        true => planned,
        false => planned.min(phase_duration(&sum.seconds, phase)),
    };
    PointRecord {
        point: window.point,
        load: shaped
            .map_or_else(|| assignment.load.clone(), |(_, phase)| assignment.load.in_phase(phase)),
        pacing: assignment.pacing,
        started_unix_ns: recorder.started_unix_ns + begin.0,
        warm_up_ns: length(Phase::WarmUp, warm_up_ns),
        measured_ns: length(Phase::Measure, window.phases.measure_ns),
        phase: shaped.map(|(shape, _)| Box::new(shaped_point(shape, number, &sum.seconds))),
        clock_step_ns: sum.clock_step_ns,
        totals: sum.totals,
        seconds: sum.seconds,
        workers: sum.workers,
        process_cpu_ns: sum.process_cpu_ns,
        monitor_cpu_ns: sum.monitor_cpu_ns,
        panic: sum.panic,
        ended_early: recorder.ended_early.clone(),
        resources: observed.resources.into_iter().chain(sum.resources).collect(),
        core_users: sum.core_users,
        server_core_users: observed.server_core_users,
        server_lost: None,
        host_work: observed.work,
        ops: assignment.phases.ops,
        data_set_bytes: None,
        access_pattern: None,
        agents,
    }
}

/// What is special about a phase of a shape.
fn shaped_point(shape: &LoadShape, number: usize, seconds: &[SecondRecord]) -> ShapedPoint {
    let phase = shape.phases[number].clone();
    let mut at = phase.start_ns;
    let measured = seconds.iter().filter(|second| second.phase == Phase::Measure);
    let requested = measured.map(|second| {
        let start = at;
        at += Nanos(second.length_ns);
        shape.mean(start, at)
    });
    let before = number.checked_sub(1).and_then(|before| shape.phases.get(before));
    ShapedPoint {
        requested: requested.collect(),
        follows_pulse: before.is_some_and(|before| before.kind == PhaseKind::Pulse),
        phase,
    }
}

/// The agent of a part, with the facts of its report.
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

/// The report, with empty entries for the targets that its agent did not use.
fn with_all_targets(part: Part, endpoints: &[Endpoint]) -> PointReport {
    let Part { mut report, targets, .. } = part;
    if !targets.is_empty() {
        let unused =
            |of: &Endpoint| TargetTotals { target: of.target.clone(), ..Default::default() };
        let mut all: Vec<TargetTotals> = endpoints.iter().map(unused).collect();
        for (at, own) in targets.into_iter().zip(std::mem::take(&mut report.totals.per_target)) {
            if let Some(total) = all.get_mut(at) {
                *total = own;
            }
        }
        report.totals.per_target = all;
    }
    report
}

/// Joins two reports of one load point.
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
        match sum.iter_mut().rev().find(|existing| key(existing) == key(&second)) {
            Some(existing) => {
                let length_ns = existing.length_ns.max(second.length_ns);
                existing.add(second);
                existing.length_ns = length_ns;
            }
            None => sum.push(second),
        }
    }
    sum.sort_by_key(key);
    sum
}

/// Of all hosts, the largest first; `None` unless every agent looked.
fn joined_users(sum: Option<Vec<CoreUser>>, part: Option<Vec<CoreUser>>) -> Option<Vec<CoreUser>> {
    let mut users = sum?;
    users.extend(part?);
    users.sort_by_key(|user| std::cmp::Reverse(user.cpu_ns));
    Some(users)
}

/// The actual length of a phase.
fn phase_duration(seconds: &[SecondRecord], phase: Phase) -> Nanos {
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
        assert_eq!(phase_duration(&seconds, Phase::Measure), Nanos(1_400));
        assert_eq!(phase_duration(&seconds, Phase::Drain), Nanos::ZERO);
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
            let slices = VecDeque::new();
            Part { report, slices, agent: None, targets: targets.to_vec() }
        };
        let parts = [
            part(vec![done("a", 1), done("c", 2)], &[0, 2]),
            part(vec![done("a", 10), done("b", 20), done("c", 30)], &[]),
        ];
        let endpoints = [a, b, c];
        let whole = parts.map(|part| with_all_targets(part, &endpoints)).into_iter();
        let sum = whole.reduce(joined).unwrap();
        assert_eq!(sum.totals.per_target, [done("a", 11), done("b", 20), done("c", 32)]);
    }

    #[test]
    fn seconds_of_agents_add_up_by_second_and_phase() {
        let first = vec![second(0, Phase::WarmUp, 500, 3), second(0, Phase::Measure, 500, 4)];
        let other = vec![second(0, Phase::Measure, 400, 5), second(1, Phase::Measure, 900, 6)];
        let sum = joined_seconds(first, other);
        let merged: Vec<_> = sum.iter().map(|s| (s.second, s.phase, s.length_ns, s.done)).collect();
        let expected =
            [(0, Phase::WarmUp, 500, 3), (0, Phase::Measure, 500, 9), (1, Phase::Measure, 900, 6)];
        assert_eq!(merged, expected);
    }
}
