//! Whether a run passes the gates it was given (`--fail-if`), by the uncertainty intervals.

use plimsoll_model::condition::{ConditionFigure, Side};
use plimsoll_model::figure::{Figure, StreamFigure};
use plimsoll_model::gate::{Gate, GateFigure, GateResult, GateState};
use plimsoll_model::reported::ReportedFigure;
use plimsoll_model::result::{Censored, PointResult, RunResult};

/// The outcome of a gate. `unsure_fails`: as in `Gates`.
pub(crate) fn evaluate(gate: &Gate, result: &RunResult, unsure_fails: Option<bool>) -> GateResult {
    let measured = find(gate, result);
    let ends = measured.map(|(reported, _)| ends(&reported));
    let state = ends.map_or(GateState::Unknown, |ends| {
        GateState::from_condition(gate.side.holds(gate.limit, ends))
    });
    let value = measured.map(|(reported, _)| reported.value);
    GateResult {
        expr: gate.clone(),
        state,
        fails: gate.fails(state, value, unsure_fails),
        value,
        low: ends.map(|[low, _]| low),
        high: ends.map(|[_, high]| high).filter(|high| high.is_finite()),
        load: measured.and_then(|(_, load)| load),
    }
}

/// Ends of the interval; the figure itself where it has none.
fn ends(reported: &ReportedFigure) -> [f64; 2] {
    reported.interval.unwrap_or([reported.value; 2])
}

/// The figure, and the load of its point.
fn find(gate: &Gate, result: &RunResult) -> Option<(ReportedFigure, Option<f64>)> {
    let summary = &result.summary;
    let reported = match &gate.figure {
        _ if gate.figure.is_of_point() => return worst(gate, result),
        GateFigure::Value => ReportedFigure::headline(summary),
        GateFigure::PeakOps => {
            let peak = summary.peak_ops_per_s?;
            let point = result.points.iter().find(|p| p.achieved_ops_per_s == Some(peak));
            let interval = point.and_then(|point| point.achieved_interval_ops_per_s);
            Some(ReportedFigure::new(peak, interval))
        }
        GateFigure::PeakBytes => {
            summary.peak_bytes_per_s.map(|peak| ReportedFigure::new(peak, None))
        }
        GateFigure::OverallOrigin => ReportedFigure::overall(summary, |overall| overall.origin),
        GateFigure::OverallSpan => ReportedFigure::overall(summary, |overall| overall.span),
        GateFigure::Score => ReportedFigure::score(summary),
        GateFigure::Capacity => {
            let capacity = summary.capacity.as_ref()?;
            let high = capacity.high.unwrap_or(capacity.value);
            Some(ReportedFigure::new(capacity.value, Some([capacity.low, high])))
        }
        _ => None,
    };
    Some((reported?, None))
}

/// Of the named point, or of the worst one that counts. Errors may be why a point does not count,
/// so they are searched in all valid ones.
fn worst(gate: &Gate, result: &RunResult) -> Option<(ReportedFigure, Option<f64>)> {
    let is_included = |point: &&PointResult| match gate.at {
        Some(load) => point.requested == load,
        None if gate.figure == GateFigure::Errors => point.valid,
        None => point.counts(),
    };
    // First one that certainly fails, then one whose figure fails, then one that may fail, then by
    // distance.
    let badness = |reported: &ReportedFigure| {
        let (value, [low, high]) = (reported.value, ends(reported));
        match gate.side {
            Side::Above => ([low, value, high].map(|it| it > gate.limit), low),
            Side::Below => ([high, value, low].map(|it| it < gate.limit), -high),
        }
    };
    let mut worst: Option<(ReportedFigure, Option<f64>)> = None;
    for point in result.points.iter().filter(is_included) {
        let reported = of_point(&gate.figure, point)?;
        if worst.is_none_or(|(worst, _)| badness(&reported) > badness(&worst)) {
            worst = Some((reported, Some(point.requested)));
        }
    }
    worst
}

pub(crate) fn of_point(figure: &GateFigure, point: &PointResult) -> Option<ReportedFigure> {
    // A time of that length may be that of an op that was not sent or not finished: its upper end
    // is open.
    let time = |reported: Option<ReportedFigure>, figure, is_bound: IsBound| {
        let reported = reported?;
        let [low, high] = ends(&reported);
        let is_open = point.censored.is_some_and(|censored| is_bound(&censored, figure, high));
        let high = if is_open { f64::INFINITY } else { high };
        Some(ReportedFigure { interval: Some([low, high]), ..reported })
    };
    match figure.clone() {
        GateFigure::Response(figure) => {
            time(ReportedFigure::response(point, figure), figure, Censored::bounds_response)
        }
        GateFigure::Service(figure) => {
            time(ReportedFigure::service(point, figure), figure, Censored::bounds_service)
        }
        GateFigure::Stream(of @ StreamFigure::FirstOutput, figure) => {
            time(ReportedFigure::stream(point, of, figure), figure, Censored::bounds_response)
        }
        GateFigure::Stream(of, figure) => ReportedFigure::stream(point, of, figure),
        GateFigure::Goodput => ReportedFigure::goodput(point),
        GateFigure::TokensPerS => ReportedFigure::tokens_per_s(point),
        GateFigure::Errors => {
            let ended: u64 = point.ops.values().map(|op| op.count).sum();
            let errors: u64 = point.errors.values().sum();
            // Any op that is unfinished may have failed.
            let unfinished = point.censored.map_or(0, |censored| censored.unfinished);
            let share = |errors: u64, ops: u64| errors as f64 / ops as f64 * 100.0;
            (ended > 0).then(|| {
                let [low, high] =
                    [share(errors, ended), share(errors + unfinished, ended + unfinished)];
                ReportedFigure::new(low, Some([low, high.max(low)]))
            })
        }
        GateFigure::Achieved => ReportedFigure::achieved(point),
        GateFigure::Journey(figure) => ReportedFigure::journey(point, &figure),
        GateFigure::Cost(figure) => {
            let (_, cost) = point.server_cost(figure)?;
            let unit = if figure.is_share() { 100.0 } else { 1.0 };
            let interval = cost.interval.map(|bounds| bounds.map(|bound| bound * unit));
            Some(ReportedFigure::new(cost.value * unit, interval))
        }
        _ => None,
    }
}

/// Whether a figure of that length is a lower bound.
type IsBound = fn(&Censored, Figure, f64) -> bool;

#[cfg(test)]
mod tests {
    use plimsoll_model::result::{Censored, OpResult, Summary, TimeIntervals, TimeSummary};

    use super::*;

    fn point(requested: f64, p99_ms: [f64; 3], counts: bool) -> PointResult {
        let [low, value, high] = p99_ms.map(|ms| ms * 1e6);
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

    fn evaluate_expr(expr: &str) -> GateResult {
        evaluate(&expr.parse().unwrap(), &run(), Some(false))
    }

    #[test]
    fn a_gate_holds_or_fails_only_where_the_whole_interval_does() {
        assert_eq!(evaluate_expr("p99 > 61ms").state, GateState::Held);
        assert_eq!(evaluate_expr("p99 > 29ms").state, GateState::Failed);
        let unsure = evaluate_expr("p99 > 50ms");
        assert_eq!(
            (unsure.state, unsure.fails, unsure.load),
            (GateState::Unsure, false, Some(2_000.0))
        );
        assert!(evaluate(&"p99 > 50ms".parse().unwrap(), &run(), Some(true)).fails);
        let by_figure = |expr: &str| {
            let gate = evaluate(&expr.parse().unwrap(), &run(), None);
            assert_eq!(gate.state, GateState::Unsure, "{gate:?}");
            gate.fails
        };
        assert_eq!([by_figure("p99 > 50ms"), by_figure("p99 > 39ms")], [false, true]);
        assert!(by_figure("achieved_ops_per_s@1000 < 1001"), "the figure is 1,000");
        assert_eq!(evaluate_expr("peak_ops_per_s < 1500").state, GateState::Held);
        assert_eq!(evaluate_expr("peak_ops_per_s < 2500").state, GateState::Failed);
        assert_eq!(evaluate_expr("peak_ops_per_s < 2000").state, GateState::Unsure);
    }

    #[test]
    fn points_that_do_not_count_are_left_out_but_for_their_errors_and_when_they_are_named() {
        assert_eq!(evaluate_expr("achieved_ops_per_s < 500").load, Some(1_000.0));
        assert_eq!(evaluate_expr("p99@3000 > 50ms").state, GateState::Failed);
        assert_eq!(evaluate_expr("errors > 0.1%").value, Some(0.2));
        assert_eq!(evaluate_expr("errors > 0.2%").state, GateState::Held);
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
        let state = |expr: &str| evaluate(&expr.parse().unwrap(), &run, Some(false)).state;
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
        let evaluate_gate = |expr: &str| evaluate(&expr.parse().unwrap(), &run, Some(false));
        assert_eq!(evaluate_gate("p99@2000 > 39ms").state, GateState::Failed);
        let open = evaluate_gate("p99@2000 > 41ms");
        assert_eq!((open.state, open.low, open.high), (GateState::Unsure, Some(40e6), None));
        assert_eq!(evaluate_gate("p99@2000 < 39ms").state, GateState::Held);
        run.points[1].censored =
            Some(Censored { unsent: 9, response_exact_to_ns: 50_000_000, ..Censored::default() });
        let exact = evaluate(&"p99@2000 > 41ms".parse().unwrap(), &run, Some(false));
        assert_eq!(exact.state, GateState::Held, "all that is censored lies above it");
    }

    #[test]
    fn a_figure_that_is_not_there_fails() {
        for expr in ["p99@77 > 50ms", "p50 > 50ms", "score < 5", "capacity < 5", "value < 1"] {
            let gate = evaluate_expr(expr);
            assert_eq!(
                (gate.state, gate.fails, gate.value),
                (GateState::Unknown, true, None),
                "{expr}"
            );
        }
    }
}
