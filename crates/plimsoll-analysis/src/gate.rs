//! Whether a run passes the gates it was given (`--fail-if`), by the uncertainty intervals.

use plimsoll_model::condition::{ConditionFigure, Side};
use plimsoll_model::figure::StreamFigure;
use plimsoll_model::gate::{Gate, GateFigure, GateResult, GateState};
use plimsoll_model::result::{PointResult, RunResult};
use plimsoll_model::stated::Stated;

/// Nanoseconds of a millisecond.
const NS_PER_MS: f64 = 1e6;

/// A figure, its interval, and the load of its point.
#[derive(Clone, Copy, Debug)]
struct Found {
    value: f64,
    low: f64,
    high: f64,
    load: Option<f64>,
}

impl Found {
    fn new(value: f64, interval: Option<[f64; 2]>) -> Self {
        let [low, high] = interval.unwrap_or([value, value]);
        Self { value, low, high, load: None }
    }

    fn of(stated: Stated) -> Self {
        Self::new(stated.value, stated.interval)
    }
}

/// What became of a gate. `unsure_fails`: a limit within the interval fails the run.
pub(crate) fn judge(gate: &Gate, result: &RunResult, unsure_fails: bool) -> GateResult {
    let found = find(gate, result);
    let holds = |found: Found| gate.side.holds(gate.limit, [found.low, found.high]);
    let state = found.map_or(GateState::Unknown, |found| GateState::of(holds(found)));
    GateResult {
        expr: gate.clone(),
        state,
        fails: state.fails(unsure_fails),
        value: found.map(|found| found.value),
        low: found.map(|found| found.low),
        high: found.map(|found| found.high).filter(|high| high.is_finite()),
        load: found.and_then(|found| found.load),
    }
}

fn find(gate: &Gate, result: &RunResult) -> Option<Found> {
    if gate.figure.is_of_point() {
        return worst(gate, result);
    }
    let summary = &result.summary;
    let overall = |of: fn(&plimsoll_model::result::OverallResponse) -> Option<f64>| {
        let bounds = summary.overall_response_interval_ms.as_ref();
        let bounds =
            bounds.and_then(|[low, high]| Some([of(low)? * NS_PER_MS, of(high)? * NS_PER_MS]));
        Some(Found::new(of(&summary.overall_response_ms)? * NS_PER_MS, bounds))
    };
    match gate.figure {
        GateFigure::Value => Some(Found::new(summary.value?, summary.value_interval)),
        GateFigure::PeakOps => {
            let peak = summary.peak_ops_per_s?;
            let point = result.points.iter().find(|p| p.achieved_ops_per_s == Some(peak));
            Some(Found::new(peak, point.and_then(|point| point.achieved_interval_ops_per_s)))
        }
        GateFigure::PeakBytes => Some(Found::new(summary.peak_bytes_per_s?, None)),
        GateFigure::OverallOrigin => overall(|overall| overall.origin),
        GateFigure::OverallSpan => overall(|overall| overall.span),
        GateFigure::Score => Some(Found::new(summary.score?, summary.score_interval)),
        GateFigure::Capacity => {
            let capacity = summary.capacity.as_ref()?;
            let high = capacity.high.unwrap_or(capacity.value);
            Some(Found::new(capacity.value, Some([capacity.low, high])))
        }
        _ => None,
    }
}

/// Of the point named, or of the worst one that counts. Errors are what may make a point not
/// count, so that they are looked for in all valid ones.
fn worst(gate: &Gate, result: &RunResult) -> Option<Found> {
    let wanted = |point: &&PointResult| match gate.at {
        Some(load) => point.requested == load,
        None if gate.figure == GateFigure::Errors => point.valid,
        None => point.counts(),
    };
    let mut worst: Option<Found> = None;
    for point in result.points.iter().filter(wanted) {
        let found = Found { load: Some(point.requested), ..of_point(gate.figure, point)? };
        // What is certain to fail, then what may, then how far.
        let is_worse = worst.is_none_or(|worst| match gate.side {
            Side::Above => {
                let fails = |it: &Found| (it.low > gate.limit, it.high > gate.limit);
                (fails(&found), found.low) > (fails(&worst), worst.low)
            }
            Side::Below => {
                let fails = |it: &Found| (it.high < gate.limit, it.low < gate.limit);
                (fails(&found), worst.high) > (fails(&worst), found.high)
            }
        });
        if is_worse {
            worst = Some(found);
        }
    }
    worst
}

fn of_point(figure: GateFigure, point: &PointResult) -> Option<Found> {
    match figure {
        GateFigure::Response(figure) => {
            let is_bound = |ns| point.censored.is_some_and(|it| it.bounds_response(figure, ns));
            Stated::response(point, figure).map(|stated| time(stated, is_bound))
        }
        GateFigure::Service(figure) => {
            let is_bound = |ns| point.censored.is_some_and(|it| it.bounds_service(figure, ns));
            Stated::service(point, figure).map(|stated| time(stated, is_bound))
        }
        GateFigure::Stream(of, figure) => {
            let first = of == StreamFigure::FirstOutput;
            let censored = point.censored.filter(|_| first);
            let is_bound = |ns| censored.is_some_and(|it| it.bounds_response(figure, ns));
            Stated::stream(point, of, figure).map(|stated| time(stated, is_bound))
        }
        GateFigure::Goodput => Stated::goodput(point).map(Found::of),
        GateFigure::TokensPerS => Stated::tokens_per_s(point).map(Found::of),
        GateFigure::Errors => {
            let ended: u64 = point.ops.values().map(|op| op.count).sum();
            let errors: u64 = point.errors.values().sum();
            // Any op that is unfinished may have failed.
            let unfinished = point.censored.map_or(0, |censored| censored.unfinished);
            let share = |errors: u64, ops: u64| errors as f64 / ops as f64 * 100.0;
            (ended > 0).then(|| {
                let [low, high] =
                    [share(errors, ended), share(errors + unfinished, ended + unfinished)];
                Found::new(low, Some([low, high.max(low)]))
            })
        }
        GateFigure::Achieved => {
            Some(Found::new(point.achieved_ops_per_s?, point.achieved_interval_ops_per_s))
        }
        GateFigure::Cost(figure) => {
            let (_, cost) = point.server_cost(figure)?;
            let unit = if figure.is_share() { 100.0 } else { 1.0 };
            let interval = cost.interval.map(|bounds| bounds.map(|bound| bound * unit));
            Some(Found::new(cost.value * unit, interval))
        }
        _ => None,
    }
}

/// `is_bound`: a time of this length may be that of an op that was not sent or not finished.
fn time(stated: Stated, is_bound: impl Fn(f64) -> bool) -> Found {
    let found = Found::new(stated.value, stated.interval);
    match is_bound(found.high) {
        true => Found { high: f64::INFINITY, ..found },
        false => found,
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_model::result::{Censored, OpResult, Summary, TimeIntervals, TimeSummary};

    use super::*;

    fn point(requested: f64, p99_ms: [f64; 3], counts: bool) -> PointResult {
        let [low, value, high] = p99_ms.map(|ms| ms * NS_PER_MS);
        let op = OpResult { count: 1_000, errors: 2, ..OpResult::default() };
        PointResult {
            requested,
            valid: true,
            not_counted: (!counts).then_some(plimsoll_model::result::NotCounted::Errors),
            achieved_ops_per_s: Some(requested),
            achieved_interval_ops_per_s: Some([requested * 0.9, requested * 1.1]),
            response_ns: Some(TimeSummary { p99: Some(value as u64), ..TimeSummary::default() }),
            response_interval_ns: Some(TimeIntervals {
                p99: Some([low, high]),
                ..TimeIntervals::default()
            }),
            ops: [("a".to_owned(), op)].into(),
            errors: [("status_500".to_owned(), 2)].into(),
            ..PointResult::default()
        }
    }

    fn run() -> RunResult {
        let points = vec![
            point(1_000.0, [9.0, 10.0, 11.0], true),
            point(2_000.0, [30.0, 40.0, 60.0], true),
            point(3_000.0, [90.0, 100.0, 110.0], false),
        ];
        let summary = Summary { peak_ops_per_s: Some(2_000.0), ..Summary::default() };
        RunResult { points, summary, ..RunResult::default() }
    }

    fn judged(expr: &str) -> GateResult {
        judge(&expr.parse().unwrap(), &run(), false)
    }

    #[test]
    fn a_gate_holds_or_fails_only_where_the_whole_interval_does() {
        assert_eq!(judged("p99 > 61ms").state, GateState::Held);
        assert_eq!(judged("p99 > 29ms").state, GateState::Failed);
        let unsure = judged("p99 > 50ms");
        assert_eq!(
            (unsure.state, unsure.fails, unsure.load),
            (GateState::Unsure, false, Some(2_000.0))
        );
        assert!(judge(&"p99 > 50ms".parse().unwrap(), &run(), true).fails);
        assert_eq!(judged("peak_ops_per_s < 1500").state, GateState::Held);
        assert_eq!(judged("peak_ops_per_s < 2500").state, GateState::Failed);
        assert_eq!(judged("peak_ops_per_s < 2000").state, GateState::Unsure);
    }

    #[test]
    fn points_that_do_not_count_are_left_out_but_for_their_errors_and_when_they_are_named() {
        assert_eq!(judged("achieved_ops_per_s < 500").load, Some(1_000.0));
        assert_eq!(judged("p99@3000 > 50ms").state, GateState::Failed);
        assert_eq!(judged("errors > 0.1%").value, Some(0.2));
        assert_eq!(judged("errors > 0.2%").state, GateState::Held);
    }

    #[test]
    fn what_an_op_costs_is_held_against_a_time_or_a_share() {
        use plimsoll_model::cost::{Cost, CostFigure, CostOf, HostCost};
        let mut run = run();
        let figures = [
            (CostFigure::CpuPerOp, Cost { value: 42e3, interval: Some([41e3, 43e3]) }),
            (CostFigure::DiskBusy, Cost { value: 0.3, interval: None }),
        ];
        let (source, cores, disks, interfaces) = (None, None, Vec::new(), Vec::new());
        let of = CostOf::ServerProcesses;
        let cost = HostCost { source, of, cores, disks, interfaces, figures: figures.into() };
        run.points.iter_mut().for_each(|point| point.cost = vec![cost.clone()]);
        let state = |expr: &str| judge(&expr.parse().unwrap(), &run, false).state;
        assert_eq!(state("cpu_per_op > 40us"), GateState::Failed);
        assert_eq!(state("cpu_per_op@2000 > 44us"), GateState::Held);
        assert_eq!(state("disk_busy > 25%"), GateState::Failed);
        assert_eq!(state("memory > 5"), GateState::Unknown, "nobody saw it");
    }

    #[test]
    fn a_lower_bound_decides_a_gate_only_where_it_has_passed_the_limit() {
        let mut run = run();
        run.points[1].response_interval_ns = None;
        run.points[1].censored =
            Some(Censored { unsent: 9, response_exact_to_ns: 30_000_000, ..Censored::default() });
        let judged = |expr: &str| judge(&expr.parse().unwrap(), &run, false);
        assert_eq!(judged("p99@2000 > 39ms").state, GateState::Failed);
        let open = judged("p99@2000 > 41ms");
        assert_eq!((open.state, open.low, open.high), (GateState::Unsure, Some(40e6), None));
        assert_eq!(judged("p99@2000 < 39ms").state, GateState::Held);
        run.points[1].censored =
            Some(Censored { unsent: 9, response_exact_to_ns: 50_000_000, ..Censored::default() });
        let exact = judge(&"p99@2000 > 41ms".parse().unwrap(), &run, false);
        assert_eq!(exact.state, GateState::Held, "all that is censored lies above it");
    }

    #[test]
    fn a_figure_that_is_not_there_fails() {
        for expr in ["p99@77 > 50ms", "p50 > 50ms", "score < 5", "capacity < 5", "value < 1"] {
            let gate = judged(expr);
            assert_eq!(
                (gate.state, gate.fails, gate.value),
                (GateState::Unknown, true, None),
                "{expr}"
            );
        }
    }
}
