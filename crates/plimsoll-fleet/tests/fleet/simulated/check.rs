//! What must hold of a finished load point.

use plimsoll_fleet::controller::AgentReport;
use plimsoll_model::event::ClockOffset;
use plimsoll_model::units::Nanos;

use super::clock::Clock;
use super::coordinator::RunningPoint;
use super::host::{Host, LoadRun};
use super::work;

/// True time is whole nanoseconds and so are clocks: two roundings each.
const ROUNDING_NS: u64 = 4;

/// Every agent ran its whole share, all shares add up to the load point, and the clock errors are
/// within the reported bounds.
pub fn finished(ended: &RunningPoint, reports: &[AgentReport], hosts: &[Host], controller: &Clock) {
    let agents: Vec<usize> = reports.iter().map(|report| report.agent.0).collect();
    let expected: Vec<usize> = ended.assignments.iter().map(|(agent, _)| agent.0).collect();
    assert_eq!(agents, expected, "agents of the load point");
    let mut starts = Vec::new();
    for (report, (_, assignment)) in reports.iter().zip(&ended.assignments) {
        let host = &hosts[report.agent.0];
        let run = run_of(host, ended.attempt);
        assert!(run.is_whole, "agent {} did not run the load point whole", report.agent.0);
        assert_eq!(report.report.totals, work::totals(assignment), "its counts");
        let packed = |slices| format!("{slices:?}");
        assert_eq!(packed(&report.slices), packed(&work::slices(assignment)), "its slices");
        assert_eq!(report.dropped, 0);
        let start = host.process.clock.when(Nanos(report.report.started_ns));
        assert_eq!(start, run.start, "when it started");
        check_clock(&report.clock, run, (&host.process.clock, controller));
        starts.push((controller.shows(start).0, report.clock.bound.0, report.start_skew.0));
    }
    let ops: u64 = reports.iter().map(|report| report.report.totals.due).sum();
    assert_eq!(ops, ended.point.ops(), "ops of the load point");
    check_starts(&starts);
}

fn run_of(host: &Host, attempt: u64) -> &LoadRun {
    let mut runs = host.runs.iter().filter(|run| run.attempt == attempt);
    let run = runs.next().expect("a load point that ran");
    assert!(runs.next().is_none(), "it ran once");
    run
}

/// The true offset was within the bound from the start of the load to its end.
fn check_clock(reported: &ClockOffset, run: &LoadRun, (theirs, ours): (&Clock, &Clock)) {
    let end = run.end.expect("the end of a load that was whole");
    for part in 0..=4 {
        let at = run.start + (end - run.start) / 4 * part;
        let offset_ns = theirs.shows(at).0 as i64 - ours.shows(at).0 as i64;
        let away = offset_ns.abs_diff(reported.offset_ns);
        assert!(
            away <= reported.bound.0 + ROUNDING_NS,
            "the true offset was {away} ns away, the bound is {}",
            reported.bound
        );
    }
}

/// Starts (by the controller's clock, with bound and reported skew) are as close as the bounds
/// imply.
fn check_starts(starts: &[(u64, u64, u64)]) {
    let first = starts.iter().map(|(start, ..)| *start).min().unwrap_or_default();
    let widest = starts.iter().map(|(_, bound, _)| *bound).max().unwrap_or_default();
    for (start, bound, skew) in starts {
        for (other, other_bound, _) in starts {
            let apart = start.abs_diff(*other);
            assert!(apart <= bound + other_bound + ROUNDING_NS, "starts are {apart} ns apart");
        }
        let wrong = skew.abs_diff(start - first);
        assert!(wrong <= bound + widest + ROUNDING_NS, "the stated skew is {wrong} ns wrong");
    }
}
