//! The whole result of a run.

use std::collections::BTreeMap;

use jiff::Timestamp;
use plimsoll_model::assignment::{PointId, Purpose};
use plimsoll_model::capacity::CapacityTry;
use plimsoll_model::disclosure::Disclosure;
use plimsoll_model::event::{JournalRecord, PointRecord, RunStarted};
use plimsoll_model::figure::Figure;
use plimsoll_model::finding::Rule;
use plimsoll_model::gate::GateFigure;
use plimsoll_model::nonconformity::Nonconformities;
use plimsoll_model::outcome::ErrorSample;
use plimsoll_model::result::{
    Axis, PointResult, RESULT_FORMAT, RunResult, SuiteSummary, Summary, Verdict,
};
use plimsoll_model::sentences::Sentences;
use plimsoll_model::server_profile::ServerProfile;
use plimsoll_model::suite::{Ladder, LoadSpec, Metric, Suite};
use plimsoll_model::until;

use crate::capacity::{self, Tried};
use crate::cost::costs;
use crate::disks::{add_disks_busy, disk_uses};
use crate::endpoints::endpoints;
use crate::gate::evaluate;
use crate::generation::{generation, goodput};
use crate::hints::{HintInput, hints_of_point, hints_of_run};
use crate::host_roles::monitored_hosts;
use crate::journeys::add_journeys;
use crate::limit::assign_limits;
use crate::page_cache::page_cache_use;
use crate::point::{UNPLACED, bytes_per_s, point_result};
use crate::precision::{self, reached_precision};
use crate::raw::{Ending, PointTimes, PointView, RunView};
use crate::recovery::{PhaseSecond, phase_seconds, recoveries};
use crate::score::{idle_clients, score_of_point};
use crate::summary::{report_missed_loads, summarise_run};
use crate::uncertainty::{Cycles, PointIntervals, state, state_summary, wide_interval};
use crate::validity::{
    Evidence, check_capacity, check_counted, check_point, check_run, lateness_limit,
    nonconformities, server_assumed,
};

/// The analysis of a run. It takes in the journal's records and the times of each load point, in
/// order. A running run and a bundle use the same path: the same records give the same result, to
/// the byte.
#[derive(Debug)]
pub struct Analysis<'a> {
    suite: &'a Suite,
    sentences: Sentences,
    disclosure: Option<Disclosure>,
    view: RunView,
    /// By ordinal. A point that was started twice counts as it finished last.
    drafts: BTreeMap<u32, Draft>,
    points: BTreeMap<u32, EvaluatedPoint>,
}

/// The journal's records of a load point before it finishes.
#[derive(Debug, Default)]
struct Draft {
    samples: Vec<ErrorSample>,
    lost: Vec<String>,
}

/// A load point, evaluated by itself.
#[derive(Clone, Debug)]
pub struct EvaluatedPoint {
    /// As the report shows it, except for its position and its limit: both follow from the
    /// neighbouring points.
    pub result: PointResult,
    /// How it compares with the limits; `None` where no capacity is searched, and for the point
    /// that bounds the search from above.
    pub attempt: Option<CapacityTry>,
    id: PointId,
    /// Of a phase of a shape.
    seconds: Vec<PhaseSecond>,
}

impl<'a> Analysis<'a> {
    /// Begins with the first record of the journal.
    pub fn begin(
        suite: &'a Suite,
        sentences: Sentences,
        started: RunStarted,
        disclosure: Option<Disclosure>,
    ) -> Self {
        let view = RunView::new(started);
        let (drafts, points) = (BTreeMap::new(), BTreeMap::new());
        Self { suite, sentences, disclosure, view, drafts, points }
    }

    /// The load point of that ordinal, if it has finished.
    pub fn point(&self, ordinal: u32) -> Option<&EvaluatedPoint> {
        self.points.get(&ordinal)
    }

    /// Replaces the disclosure: servers were started anew.
    pub fn disclose(&mut self, disclosure: Disclosure) {
        self.disclosure = Some(disclosure);
    }

    /// Takes in the next record. A load point that has finished comes with its times instead:
    /// [`Analysis::add_point`].
    pub fn add_record(&mut self, record: &JournalRecord) {
        self.view.add(record);
        match record {
            JournalRecord::PointStarted { assignment, .. } => {
                let ordinal = assignment.point.ordinal;
                self.drafts.insert(ordinal, Draft::default());
                let before = self.points.remove(&ordinal);
                let because = before.and_then(|point| point.result.not_counted_because);
                if let Some(Rule::ServerLost { server, from_second, .. }) =
                    because.map(|it| it.rule)
                {
                    let again = Rule::ServerLost { server, from_second, made_again: true };
                    self.view.lost_servers.push(again);
                }
            }
            JournalRecord::ErrorSample { point, sample } => {
                self.drafts.entry(point.ordinal).or_default().samples.push(sample.clone());
            }
            JournalRecord::ClientLost { point, reason, .. } => {
                self.drafts.entry(point.ordinal).or_default().lost.push(reason.clone());
            }
            _ => {}
        }
    }

    /// Takes in a load point that has finished; `times` are `None` where its interval log is not
    /// there.
    pub fn add_point(
        &mut self,
        record: &PointRecord,
        times: Option<&PointTimes>,
    ) -> &EvaluatedPoint {
        self.view.ending = Ending::Torn;
        self.view.has_points = true;
        let ordinal = record.point.ordinal;
        let Draft { samples, lost } = self.drafts.remove(&ordinal).unwrap_or_default();
        let view = PointView { record, samples: &samples, lost: &lost };
        let result = self.evaluate(&view, times);
        let request = self.view.started.capacity.as_ref();
        let is_try = record.server_lost.is_none() && record.point.purpose != Purpose::Pilot;
        let attempt = request.filter(|_| is_try).and_then(|request| {
            let within = &request.within;
            Tried { suite: self.suite, within, record, result: &result, times }.attempt()
        });
        let has_limits = self.suite.goodput.is_some();
        let seconds = times.map(|times| phase_seconds(record, times, has_limits));
        let seconds = seconds.unwrap_or_default();
        self.points.insert(ordinal, EvaluatedPoint { result, attempt, id: record.point, seconds });
        &self.points[&ordinal]
    }

    /// The result of all records so far.
    pub fn finish(&self) -> RunResult {
        let Self { suite, sentences, view, .. } = self;
        let disclosure = self.disclosure.as_ref();
        let mut result = frame(suite, disclosure, Some(&view.started));
        let searched = view.started.capacity.is_some();
        let on_ladder = |point: &&EvaluatedPoint| match searched {
            true => point.attempt.is_some(),
            false => point.id.purpose == Purpose::Ladder,
        };
        let (mut ladder, probes): (Vec<_>, Vec<_>) =
            self.points.values().filter(is_in_result).partition(on_ladder);
        if searched {
            // A stable sort: equal loads stay in order of time.
            ladder.sort_by(|a, b| a.result.requested.total_cmp(&b.result.requested));
        }
        result.points = with_positions(&ladder);
        result.load_shape = self.load_shape();
        let phases = result.points.iter().zip(ladder.iter().map(|point| &point.seconds[..]));
        let capacity = view.peak.as_ref().map(|peak| peak.peak);
        result.recovery = recoveries(&phases.collect::<Vec<_>>(), capacity);
        result.probes = with_positions(&probes);
        result.monitored_hosts = monitored_hosts(&result.points, disclosure);
        result.hints = hints_of_run(&result.points);
        result.verdict = check_run(suite, view, &result.points);
        assign_limits(suite, &mut result.points, &mut result.probes, disclosure);
        result.summary = summarise_run(suite, sentences, view, &result.points, &result.probes);
        if result.load_shape.is_some() {
            // Phases are in order of time, not of load.
            result.summary.curve = None;
        }
        state_summary(&mut result.summary, suite, &result.points);
        result.summary.endpoints = suite.endpoints.and_then(|_| endpoints(&result.points));
        match searched {
            true => self.answer(&mut result, &ladder),
            false if result.load_shape.is_none() => report_missed_loads(&mut result, suite),
            false => {}
        }
        result.server_profile = self.server_profile();
        result.nonconformities = view.nonconformities.clone();
        for point in self.points.values() {
            result.nonconformities.add(&point.result.nonconformities);
        }
        result.verdict.warnings.extend(nonconformities(&result.nonconformities));
        result.verdict.warnings.extend(server_assumed(&result.monitored_hosts));
        let gates = &view.started.gates;
        result.gates =
            gates.all.iter().map(|one| evaluate(one, &result, gates.unsure_fails)).collect();
        result
    }

    /// How the load changes, as the user wrote it.
    fn load_shape(&self) -> Option<String> {
        let options = self.view.started.asked.as_ref()?;
        let shape = options.shape.as_ref().map(|shape| shape.text.clone());
        let of_peak = || {
            let peak = self.view.peak.as_ref()?.peak;
            Some(options.recover?.shape(Some(peak)).ok()?.text)
        };
        shape.or_else(of_peak)
    }

    /// The profile, with the server's throughput while it was recorded.
    fn server_profile(&self) -> Option<ServerProfile> {
        let profile = self.view.profile.clone()?;
        let mut points = self.points.values().filter(|point| is_for_profile(point));
        let point = points.find(|point| point.result.stem.as_ref() == Some(&profile.stem));
        let achieved_ops_per_s = point.and_then(|point| point.result.achieved_ops_per_s);
        Some(ServerProfile { achieved_ops_per_s, ..profile })
    }

    /// Replaces the headline with the capacity.
    fn answer(&self, result: &mut RunResult, ladder: &[&EvaluatedPoint]) {
        let mut tries: Vec<(u32, CapacityTry)> = (1..)
            .zip(ladder)
            .filter_map(|(point, evaluated)| {
                Some((evaluated.id.ordinal, CapacityTry { point, ..evaluated.attempt.clone()? }))
            })
            .collect();
        tries.sort_by_key(|(ordinal, _)| *ordinal);
        let tries = tries.into_iter().map(|(_, attempt)| attempt).collect();
        let points = (&result.points[..], &result.probes[..]);
        let of_run = (self.suite, &self.view, &self.sentences);
        capacity::summarise(&mut result.summary, of_run, tries, points);
        let capacity = result.summary.capacity.as_ref();
        let bounds = capacity.map(|it| (Some(it.value), it.high));
        let bears = |point: &&PointResult| {
            let load = Some(point.requested);
            bounds.is_none_or(|(value, high)| load == value || load == high)
        };
        let bearing = result.points.iter().filter(bears);
        let unsound = capacity::unsound(&result.summary, &result.points);
        result.verdict = check_capacity(&self.view, capacity.map(|_| unsound), bearing);
    }

    fn evaluate(&self, view: &PointView<'_>, times: Option<&PointTimes>) -> PointResult {
        let (suite, started) = (self.suite, &self.view.started);
        let mut result = point_result(started, view, times);
        let totals = times.map(PointTimes::window_total);
        let evidence = Evidence {
            suite,
            started,
            view,
            times: totals.as_ref(),
            seconds: times,
            disclosure: self.disclosure.as_ref(),
        };
        let Verdict { valid, reasons, warnings } = check_point(&evidence);
        (result.valid, result.reasons, result.warnings) = (valid, reasons, warnings);
        let mut intervals = PointIntervals::default();
        if let (Some(total), Some(times)) = (&totals, times) {
            intervals = state(suite, view.record, total, times);
            result.response_interval_ns = intervals.response;
            result.service_interval_ns = intervals.service;
            result.achieved_interval_ops_per_s = intervals.achieved;
            result.uncertainty = std::mem::take(&mut intervals.uncertainty);
            let wide = wide_interval(&result, &intervals);
            result.warnings.extend(wide.map(|rule| rule.of_point(UNPLACED)));
            result.generation = generation(suite, view.record, total, times);
            add_journeys(&mut result, started, view.record, (total, times));
            let disclosure = self.disclosure.as_ref();
            let input = HintInput { record: view.record, times: total, disclosure };
            result.hints = hints_of_point(&input);
        }
        let on_ladder = view.record.point.purpose == Purpose::Ladder;
        let score = suite.score.as_ref().filter(|_| on_ladder);
        if let Some(mix) = score.and_then(|s| score_of_point(s, &started.op_names, view.record)) {
            let clients = view.record.load.clients();
            result.score = Some(mix.value);
            result.warnings.extend(idle_clients(&mix, clients).map(|rule| rule.of_point(UNPLACED)));
        }
        let cycles = totals.as_ref().zip(times);
        let cycles =
            cycles.and_then(|(total, times)| Cycles::from_record(view.record, total, times));
        result.goodput = suite.goodput.map(|limits| {
            let p90 = intervals.find(&GateFigure::Response(Figure::P90));
            goodput(limits, view.record, (totals.as_ref(), p90), cycles)
        });
        let disclosure = self.disclosure.as_ref();
        result.disks = disk_uses(view.record, disclosure);
        result.cost = costs(view.record, disclosure);
        add_disks_busy(&mut result.cost, &result.disks);
        result.page_cache = page_cache_use(suite, view.record, &result, disclosure);
        let (not_counted, because) = check_counted(&evidence).unzip();
        result.not_counted = not_counted;
        result.not_counted_because = because.map(|rule| rule.of_point(UNPLACED));
        result.achieved_bytes_per_s = match suite.metric {
            Metric::Bytes => bytes_per_s(&result),
            Metric::Ops | Metric::Logons => None,
        };
        result.generator.cpu_busy_ratio_limit = Some(suite.rules.generator_cpu_max_ratio);
        result.generator.lateness_limit_ns =
            totals.as_ref().map(|times| lateness_limit(suite, times).0);
        self.add_precision(&mut result, view.record.point.purpose, &intervals);
        result
    }

    /// How precise the figure of `--until` is, at load points that are measured until it is.
    fn add_precision(&self, result: &mut PointResult, purpose: Purpose, of: &PointIntervals) {
        let started = &self.view.started;
        let searched = started.capacity.is_some();
        let until = started.asked.as_ref().and_then(|options| options.until.as_ref());
        if let Some(until) = until.filter(|_| until::applies(purpose, searched)) {
            result.precision = Some(reached_precision(&until.precision, result, of));
            let findings = precision::findings(&until.precision, result).into_iter();
            result.warnings.extend(findings.map(|rule| rule.of_point(UNPLACED)));
        }
    }
}

/// The load served to profile the server, whose figures are those of a disturbed server.
fn is_for_profile(point: &EvaluatedPoint) -> bool {
    point.id.purpose == Purpose::Profile
}

/// Its figures are in the result.
fn is_in_result(point: &&EvaluatedPoint) -> bool {
    !matches!(point.id.purpose, Purpose::Profile | Purpose::Pilot)
}

/// The result of a run whose journal has no record at all.
pub fn not_started(suite: &Suite, disclosure: Option<&Disclosure>) -> RunResult {
    let mut result = frame(suite, disclosure, None);
    result.verdict.reasons.push(Rule::NotStarted.of_run());
    result
}

/// The points with their positions, from 1 in this order, in their findings too.
fn with_positions(points: &[&EvaluatedPoint]) -> Vec<PointResult> {
    let with_position = |(position, evaluated): (u32, &&EvaluatedPoint)| {
        let mut point = PointResult { position, ..evaluated.result.clone() };
        let findings = point.reasons.iter_mut().chain(&mut point.warnings);
        for finding in findings.chain(&mut point.not_counted_because) {
            finding.point = Some(position);
        }
        point
    };
    (1..).zip(points).map(with_position).collect()
}

/// The parts of a result that do not depend on its points.
fn frame(
    suite: &Suite,
    disclosure: Option<&Disclosure>,
    started: Option<&RunStarted>,
) -> RunResult {
    let (name, unit) = match (&suite.load, &suite.ladder) {
        (LoadSpec::Open { .. }, _) => ("requested load", suite.load.unit(suite.metric)),
        (LoadSpec::Closed { .. }, Ladder::Think { .. }) => ("think time", "s"),
        (LoadSpec::Closed { .. }, _) => ("clients", suite.load.unit(suite.metric)),
    };
    RunResult {
        format: RESULT_FORMAT,
        suite: Some(SuiteSummary {
            name: suite.name.clone(),
            title: suite.title.clone(),
            source: suite.source.clone(),
            response_cap_ms: suite.rules.response_cap_ms,
            metric: suite.metric,
        }),
        targets: started.map(|s| s.targets.clone()).unwrap_or_default(),
        profile: started.map(|s| s.profile.clone()),
        seed: started.map(|s| s.seed),
        started: started.and_then(|s| rfc3339(s.at_unix_ns)),
        command: started.map(|s| s.command.clone()).unwrap_or_default(),
        verdict: Verdict::default(),
        gates: Vec::new(),
        load_shape: None,
        recovery: Vec::new(),
        axis: Axis { name: name.to_owned(), unit: unit.to_owned() },
        summary: Summary::default(),
        points: Vec::new(),
        probes: Vec::new(),
        monitored_hosts: Vec::new(),
        hints: Vec::new(),
        departures: started.map(|s| s.departures.clone()).unwrap_or_default(),
        method: started.map(|s| s.method.clone()).unwrap_or_default(),
        nonconformities: Nonconformities::default(),
        server_profile: None,
        disclosure: disclosure.cloned(),
    }
}

fn rfc3339(at_unix_ns: u64) -> Option<String> {
    Timestamp::from_nanosecond(i128::from(at_unix_ns)).ok().map(|at| at.to_string())
}

#[cfg(test)]
mod tests {
    use plimsoll_model::capacity::CapacityRequest;
    use plimsoll_report::sentences::SENTENCES;

    use super::*;
    use crate::testing::{PointBuilder, RunBuilder, add, analyse};

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
    fn a_run_that_goes_on_is_shown_as_far_as_it_has_come_and_ends_as_its_bundle_says() {
        let busy = PointBuilder::closed(16).worker_busy(0.99);
        let mut run =
            RunBuilder::from_points([]).with_probe(busy).with_probe(PointBuilder::closed(8));
        run.suite = PointBuilder::closed(1).build().suite;
        let within = "p99<50ms".parse().unwrap();
        let request = CapacityRequest { within, think: None, users_per_client: Some(1.0) };
        run.started_mut().capacity = Some(request);
        let started = run.started_mut().clone();
        let mut analysis = Analysis::begin(&run.suite, SENTENCES, started, None);
        let mut positions = Vec::new();
        for record in &run.journal[1..] {
            add(&mut analysis, record, &run.histograms);
            let shown = analysis.finish();
            let point = shown.points.iter().find(|point| point.requested == 16.0).unwrap();
            assert_eq!(point.reasons[0].point, Some(point.position));
            positions.push(point.position);
        }
        assert_eq!(positions, [1, 2, 2], "the second try was of fewer clients");
        assert_eq!(analysis.finish(), analyse(&run.raw()));
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
