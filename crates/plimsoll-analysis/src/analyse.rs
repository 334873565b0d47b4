//! The whole result of a run.

use std::collections::BTreeMap;

use jiff::Timestamp;
use plimsoll_model::assignment::Purpose;
use plimsoll_model::event::RunStarted;
use plimsoll_model::nonconformity::Nonconformities;
use plimsoll_model::result::{
    Axis, PointResult, RESULT_FORMAT, RunResult, SuiteSummary, Summary, Verdict,
};
use plimsoll_model::suite::{Ladder, LoadSpec, Metric};

use crate::capacity;
use crate::gate::judge;
use crate::hints::{Seen, hints_of_point, hints_of_run};
use crate::limit::judge_limits;
use crate::metric::{bytes_per_s, ops_unit};
use crate::point::point_result;
use crate::raw::{KnownPoint, PointView, RawRun, RunView};
use crate::score::{idle_clients, score_of_point};
use crate::stated::{state, state_summary};
use crate::summary::summarise_run;
use crate::validity::{
    Evidence, check_capacity, check_counted, check_point, check_run, lateness_limit,
    nonconformities,
};

/// Derives the result of a run. Pure: the same bundle gives the same result, to the byte.
pub fn analyse(raw: &RawRun<'_>) -> RunResult {
    analyse_with(raw, &BTreeMap::new())
}

/// The same of a run that goes on: `known` has the load points, by stem, that were derived before.
/// Their histograms need not be at hand any more.
pub fn analyse_with(raw: &RawRun<'_>, known: &BTreeMap<String, KnownPoint>) -> RunResult {
    let mut view = RunView::new(raw.journal);
    let mut result = frame(raw, view.started);
    if let Some((departures, method)) = view.departures {
        (result.departures, result.method) = (departures.to_vec(), method.to_vec());
    }
    let Some(started) = view.started else {
        result.verdict = check_run(raw.suite, &view, &[]);
        return result;
    };
    let searched = started.capacity.is_some();
    if searched {
        capacity::order_points(&mut view, raw.suite);
    }
    let judged = |points: &[PointView<'_>]| -> Vec<PointResult> {
        let judged = |view: &PointView<'_>| match known.get(&view.record.point.stem()) {
            Some(point) => placed(&point.result, view.position),
            None => judged_point(raw, started, view),
        };
        points.iter().map(judged).collect()
    };
    result.points = judged(&view.ladder);
    result.probes = judged(&view.probes);
    result.hints = hints_of_run(&result.points);
    result.verdict = check_run(raw.suite, &view, &result.points);
    let disclosure = raw.disclosure.as_ref();
    judge_limits(raw.suite, &mut result.points, &mut result.probes, disclosure);
    result.summary = summarise_run(raw.suite, &view, &result.points, &result.probes);
    state_summary(&mut result.summary, raw.suite, &result.points);
    if searched {
        let points = (&result.points[..], &result.probes[..]);
        capacity::summarise(&mut result.summary, (raw, known), &view, points);
        let capacity = result.summary.capacity.as_ref();
        let bounds = capacity.map(|it| (Some(it.value), it.high));
        let bears = |point: &&PointResult| {
            let load = Some(point.requested);
            bounds.is_none_or(|(value, high)| load == value || load == high)
        };
        let bearing = result.points.iter().filter(bears);
        result.verdict = check_capacity(&view, capacity.is_some(), bearing);
    }
    result.verdict.warnings.extend(nonconformities(&view.nonconformities));
    result.nonconformities = view.nonconformities;
    let gates = &started.gates;
    result.gates = gates.all.iter().map(|one| judge(one, &result, gates.unsure_fails)).collect();
    result
}

fn judged_point(raw: &RawRun<'_>, started: &RunStarted, view: &PointView<'_>) -> PointResult {
    let times = raw.histograms.get(&view.record.point.stem());
    let mut result = point_result(started, view, times);
    let disclosure = raw.disclosure.as_ref();
    let totals = times.map(|times| times.window_total());
    let evidence = Evidence {
        suite: raw.suite,
        started,
        view,
        times: totals.as_ref(),
        seconds: times,
        disclosure,
    };
    let Verdict { valid, reasons, warnings } = check_point(&evidence);
    (result.valid, result.reasons, result.warnings) = (valid, reasons, warnings);
    if let (Some(total), Some(times)) = (&totals, times) {
        let stated = state(raw.suite, view.record, total, times);
        result.response_interval_ns = stated.response;
        result.service_interval_ns = stated.service;
        result.achieved_interval_ops_per_s = stated.achieved;
        result.uncertainty = stated.uncertainty;
        result.hints = hints_of_point(&Seen { record: view.record, times: total });
    }
    let score = raw.suite.score.as_ref().filter(|_| on_ladder(view));
    if let Some(mix) = score.and_then(|s| score_of_point(s, &started.op_names, view.record)) {
        let clients = view.record.load.clients();
        result.score = Some(mix.value);
        result.warnings.extend(idle_clients(&mix, clients, view.position));
    }
    let (not_counted, because) = check_counted(&evidence).unzip();
    result.not_counted = not_counted;
    result.not_counted_because = because.map(|rule| rule.at(view.position));
    result.achieved_bytes_per_s = match raw.suite.metric {
        Metric::Bytes => bytes_per_s(&result),
        Metric::Ops | Metric::Logons => None,
    };
    result.generator.cpu_busy_ratio_limit = Some(raw.suite.rules.generator_cpu_max_ratio);
    result.generator.lateness_limit_ns =
        totals.as_ref().map(|times| lateness_limit(raw.suite, times).0);
    result
}

/// A point of a search may move when another is found below it.
fn placed(point: &PointResult, position: u32) -> PointResult {
    let mut point = PointResult { position, ..point.clone() };
    let findings = point.reasons.iter_mut().chain(&mut point.warnings);
    for finding in findings.chain(&mut point.not_counted_because) {
        finding.point = finding.point.map(|_| position);
    }
    point
}

fn on_ladder(view: &PointView<'_>) -> bool {
    view.record.point.purpose == Purpose::Ladder
}

/// What a result says before its points.
fn frame(raw: &RawRun<'_>, started: Option<&RunStarted>) -> RunResult {
    let (name, unit) = match (&raw.suite.load, &raw.suite.ladder) {
        (LoadSpec::Open { .. }, _) => ("requested load", ops_unit(raw.suite.metric)),
        (LoadSpec::Closed { .. }, Ladder::Think { .. }) => ("think time", "s"),
        (LoadSpec::Closed { .. }, _) => ("clients", "clients"),
    };
    RunResult {
        format: RESULT_FORMAT,
        suite: Some(SuiteSummary {
            name: raw.suite.name.clone(),
            title: raw.suite.title.clone(),
            source: raw.suite.source.clone(),
            response_cap_ms: raw.suite.rules.response_cap_ms,
            metric: raw.suite.metric,
        }),
        targets: started.map(|s| s.targets.clone()).unwrap_or_default(),
        profile: started.map(|s| s.profile.clone()),
        seed: started.map(|s| s.seed),
        started: started.and_then(|s| rfc3339(s.at_unix_ns)),
        command: started.map(|s| s.command.clone()).unwrap_or_default(),
        verdict: Verdict::default(),
        gates: Vec::new(),
        axis: Axis { name: name.to_owned(), unit: unit.to_owned() },
        summary: Summary::default(),
        points: Vec::new(),
        probes: Vec::new(),
        hints: Vec::new(),
        departures: started.map(|s| s.departures.clone()).unwrap_or_default(),
        method: started.map(|s| s.method.clone()).unwrap_or_default(),
        nonconformities: Nonconformities::default(),
        disclosure: raw.disclosure.clone(),
    }
}

fn rfc3339(at_unix_ns: u64) -> Option<String> {
    Timestamp::from_nanosecond(i128::from(at_unix_ns)).ok().map(|at| at.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::RunBuilder;

    fn json(run: &RunBuilder) -> String {
        serde_json::to_string_pretty(&analyse(&run.raw())).unwrap()
    }

    #[test]
    fn the_same_bundle_gives_a_byte_identical_result() {
        let run = RunBuilder::open(&[100.0, 200.0, 300.0]);
        assert_eq!(json(&run), json(&run));
    }

    #[test]
    fn a_run_that_holds_its_load_is_valid() {
        let result = analyse(&RunBuilder::open(&[500.0, 1_000.0, 1_500.0]).raw());
        assert_eq!(result.verdict, Verdict { valid: true, ..Verdict::default() });
        assert_eq!(result.points.len(), 3);
        assert_eq!(result.points[2].achieved_ops_per_s, Some(1_500.0));
        assert_eq!(result.points[2].offered_ops_per_s, Some(1_500.0));
        assert_eq!(result.summary.value, Some(1_500.0));
        assert_eq!(result.started.as_deref(), Some("2026-11-21T20:00:00Z"));
        let point = &result.points[0];
        assert_eq!(point.response_ns.unwrap().n, 15_000);
        assert_eq!(point.ops["get"].count, 15_000);
        assert_eq!(point.timeline.len(), 10 + 30);
        assert!(point.timeline[0].response_p50_ns.is_some());
        assert_eq!(point.timeline[12].phase, "measure");
    }

    #[test]
    fn a_run_analysed_point_by_point_comes_to_the_same() {
        let mut run = RunBuilder::open(&[500.0, 1_000.0, 1_500.0]);
        let whole = analyse(&run.raw());
        let known = whole.points.iter().map(|point| {
            let known = KnownPoint { result: point.clone(), attempt: None };
            (point.stem.clone().unwrap(), known)
        });
        let mut known: BTreeMap<_, _> = known.collect();
        let last = known.pop_last().unwrap().0;
        run.histograms.retain(|stem, _| *stem == last);
        assert_eq!(analyse_with(&run.raw(), &known), whole);
        let elsewhere = placed(&whole.points[0], 9);
        assert_eq!(elsewhere.position, 9);
        assert!(elsewhere.warnings.iter().all(|warning| warning.point == Some(9)));
    }

    #[test]
    fn probes_are_listed_apart_and_do_not_touch_the_verdict() {
        let run = RunBuilder::open(&[500.0]).with_failed_probe(9_000.0);
        let result = analyse(&run.raw());
        assert_eq!((result.points.len(), result.probes.len()), (1, 1));
        assert!(!result.probes[0].counts());
        assert!(result.verdict.valid, "{:?}", result.verdict);
    }

    #[test]
    fn an_empty_journal_is_invalid_and_does_not_panic() {
        let mut run = RunBuilder::open(&[500.0]);
        run.journal.clear();
        let result = analyse(&run.raw());
        assert!(!result.verdict.valid);
        assert_eq!(result.verdict.reasons[0].rule.name(), "incomplete");
    }

    #[test]
    fn a_point_without_its_histograms_is_invalid() {
        let mut run = RunBuilder::open(&[500.0]);
        run.histograms.clear();
        let result = analyse(&run.raw());
        assert_eq!(result.points[0].reasons[0].rule.name(), "intervals");
        assert!(!result.verdict.valid);
    }
}
