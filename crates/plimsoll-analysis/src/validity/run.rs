//! Rules about the whole run, and the run's verdict from its points'.

use plimsoll_model::capacity::Figure;
use plimsoll_model::finding::{Finding, Interruption, Rule};
use plimsoll_model::monitored::{MonitoredHost, RoleBasis};
use plimsoll_model::nonconformity::Nonconformities;
use plimsoll_model::reported::ReportedFigure;
use plimsoll_model::result::{PointResult, Verdict};
use plimsoll_model::suite::Suite;

use super::Evidence;
use crate::limit::generator_alone;
use crate::point::missed_load;
use crate::raw::{Ending, RunView};

/// A panic of a worker is a bug: nothing it counted can be trusted.
pub(super) fn panicked(e: &Evidence<'_>) -> Option<Rule> {
    Some(Rule::Panic { message: e.view.record.panic.clone()? })
}

/// A window that was cut short does not follow the method, whatever was measured in it.
pub(super) fn ended_early(e: &Evidence<'_>) -> Option<Rule> {
    Some(Rule::EndedEarly { cause: e.view.record.ended_early.clone()? })
}

/// The run's verdict: its own rules, then its ladder's points in order. A point that the suite
/// does not count leaves the run as it is: only its other reasons, if it has any, are reasons.
pub(crate) fn check_run(suite: &Suite, view: &RunView, points: &[PointResult]) -> Verdict {
    let unfinished = [incomplete(suite, view, points), stopped(view)];
    let finished = unfinished.iter().all(Option::is_none);
    let (mut reasons, mut warnings) = of_run(view, unfinished);
    // If a searched ladder outgrew the generator, its counted points end before that.
    let searched = view.peak.is_some();
    for point in points {
        let beyond = searched && generator_alone(point);
        let findings = if beyond { &mut warnings } else { &mut reasons };
        findings.extend(point.reasons.iter().cloned());
        warnings.extend(point.not_counted_because.iter().chain(&point.warnings).cloned());
    }
    warnings.extend(near_the_cap(suite, points).map(Rule::of_run));
    // Only a whole ladder ends at the peak.
    let peak = points.last().filter(|_| searched && finished);
    warnings.extend(peak.and_then(|peak| not_repeated(peak, points)).map(Rule::of_run));
    if reasons.is_empty() {
        reasons.extend(nothing_counts(points).map(Rule::of_run));
    }
    let verdict = verdict(reasons, warnings);
    Verdict { valid: verdict.valid && !points.is_empty(), ..verdict }
}

/// Replies that differ from their specification were measured all the same.
pub(crate) fn nonconformities(replies: &Nonconformities) -> Option<Finding> {
    let replies = replies.clone();
    (!replies.is_empty()).then(|| Rule::Nonconformities { replies }.of_run())
}

/// The server's host was guessed. Bundles of older programs do not list their sources.
pub(crate) fn server_assumed(hosts: &[MonitoredHost]) -> Option<Finding> {
    let assumed = hosts.iter().find(|host| host.basis == RoleBasis::Assumed)?;
    let source = assumed.source.clone()?;
    Some(Rule::ServerAssumed { source }.of_run())
}

/// The verdict of a search for a capacity. Most of its load points are tries that are meant to be
/// too much: only those that decided the answer count for the verdict. `unsound`: why those are not
/// valid, where a capacity was found. `points` are those at the answer and at the first load beyond
/// it: their warnings are reported once.
pub(crate) fn check_capacity<'p>(
    view: &RunView,
    unsound: Option<Vec<Finding>>,
    points: impl Iterator<Item = &'p PointResult>,
) -> Verdict {
    let nothing = || Rule::NoCapacity { cause: view.capacity.clone() };
    // The reason why it stopped is enough.
    let ended = stopped(view).or_else(|| unsound.is_none().then(nothing));
    let (mut reasons, mut warnings) = of_run(view, [ended]);
    reasons.extend(unsound.into_iter().flatten());
    for warning in points.flat_map(|point| point.reasons.iter().chain(&point.warnings)) {
        let mut listed = reasons.iter().chain(&warnings);
        if !listed.any(|listed| listed.rule.is_same(&warning.rule)) {
            warnings.push(warning.clone());
        }
    }
    verdict(reasons, warnings)
}

/// Reasons and warnings of the run itself; `ended` is why it has no end or no answer.
fn of_run(
    view: &RunView,
    ended: impl IntoIterator<Item = Option<Rule>>,
) -> (Vec<Finding>, Vec<Finding>) {
    let reasons = ended.into_iter().chain([debug_build(view)]).flatten();
    let lost_servers = view.lost_servers.iter().cloned();
    let warnings = resumed(view).into_iter().chain(lost_agents(view)).chain(lost_servers);
    (reasons.map(Rule::of_run).collect(), warnings.map(Rule::of_run).collect())
}

fn verdict(reasons: Vec<Finding>, mut warnings: Vec<Finding>) -> Verdict {
    // Lost connections explain the others.
    warnings.sort_by_key(|warning| !matches!(warning.rule, Rule::ConnectionsLost { .. }));
    Verdict { valid: reasons.is_empty(), reasons, warnings }
}

/// The suite counts by the figure as measured, which in another run may be on the cap's other side.
fn near_the_cap(suite: &Suite, points: &[PointResult]) -> Option<Rule> {
    let cap_ms = suite.rules.response_cap_ms?;
    // A mean without an upper end is near everything.
    let holds_cap =
        |[low, high]: [f64; 2]| high.is_finite() && (low..=high).contains(&(cap_ms * 1e6));
    let near = |point: &PointResult| {
        let mean = ReportedFigure::service(point, Figure::Mean)?;
        let near = point.valid && mean.interval.is_some_and(holds_cap);
        near.then(|| (mean.time_text(), point.position))
    };
    let points: Vec<(String, u32)> = points.iter().filter_map(near).collect();
    (!points.is_empty()).then_some(Rule::NearCap { cap_ms, points })
}

/// A searched ladder ends at the load that the search sustained when it verified it.
fn not_repeated(peak: &PointResult, points: &[PointResult]) -> Option<Rule> {
    let missed = points.iter().find(|point| missed_load(point))?;
    Some(Rule::NotRepeated {
        verified_ops_per_s: peak.requested,
        missed_ops_per_s: missed.requested,
    })
}

/// Runs are made to reach a server's limit, but it must have carried some load.
fn nothing_counts(points: &[PointResult]) -> Option<Rule> {
    if points.is_empty() || points.iter().any(PointResult::counts) {
        return None;
    }
    let because = points.iter().find_map(|point| point.not_counted_because.as_ref());
    Some(Rule::NothingCounts { because: because.map(|finding| Box::new(finding.rule.clone())) })
}

/// Fewer points than the ladder has.
fn incomplete(suite: &Suite, view: &RunView, points: &[PointResult]) -> Option<Rule> {
    let [finished_points, planned_points] =
        [points.len(), planned_points(suite, view)].map(|points| points as u32);
    let all = finished_points >= planned_points && finished_points > 0;
    (!all).then_some(Rule::Incomplete { finished_points, planned_points })
}

/// How many points the ladder has.
pub(crate) fn planned_points(suite: &Suite, view: &RunView) -> usize {
    view.started.ladder.as_ref().map_or_else(|| suite.ladder.points_planned(), Vec::len)
}

/// The journal has no last line, or names the reason why it ends.
fn stopped(view: &RunView) -> Option<Rule> {
    let nothing_finished = !view.has_points;
    match &view.ending {
        Ending::Finished => None,
        Ending::Interrupted => {
            Some(Rule::Interrupted { how: Interruption::Stopped, nothing_finished })
        }
        Ending::Aborted(reason) => Some(Rule::Aborted { cause: reason.clone(), nothing_finished }),
        Ending::Torn => Some(Rule::Interrupted { how: Interruption::Killed, nothing_finished }),
    }
}

/// Debug assertions make the generator several times slower than what users measure with.
fn debug_build(view: &RunView) -> Option<Rule> {
    let debug = view.started.debug_build || view.resumed_debug;
    debug.then_some(Rule::DebugBuild)
}

fn resumed(view: &RunView) -> Option<Rule> {
    let times = view.resumed;
    (times > 0).then_some(Rule::Resumed { times })
}

fn lost_agents(view: &RunView) -> impl Iterator<Item = Rule> {
    view.lost_agents.iter().cloned().map(|lost| Rule::AgentLost {
        agent: lost.agent,
        host: lost.host,
        cause: lost.reason,
        points: lost.points,
    })
}

#[cfg(test)]
mod tests {
    use crate::analyse;
    use crate::testing::{PointBuilder, RunBuilder, check_rule};
    use plimsoll_model::event::{Bound, JournalRecord};
    use plimsoll_model::result::NotCounted;
    use plimsoll_report::sentences::finding;

    fn rules(run: &RunBuilder) -> Vec<&'static str> {
        let verdict = analyse(&run.raw()).verdict;
        assert_eq!(verdict.valid, verdict.reasons.is_empty());
        verdict.reasons.into_iter().map(|reason| reason.rule.name()).collect()
    }

    fn run() -> RunBuilder {
        RunBuilder::open(&[500.0, 1_000.0])
    }

    fn replace_last(record: JournalRecord) -> RunBuilder {
        let mut run = run();
        *run.journal.last_mut().unwrap() = record;
        run
    }

    #[test]
    fn a_complete_run_breaks_no_rule() {
        assert!(rules(&run()).is_empty());
    }

    #[test]
    fn a_panic_makes_its_point_invalid() {
        let mut point = PointBuilder::open(1_000.0).build();
        point.record.panic = Some("index out of bounds".to_owned());
        check_rule("panic", &point, &PointBuilder::open(1_000.0).build());
    }

    #[test]
    fn a_point_that_was_cut_short_is_invalid_for_that_alone() {
        let mut point = PointBuilder::closed(32).build();
        point.record.ended_early = Some("no client is left".to_owned());
        point.record.totals.clients_participating = 0;
        point.record.totals.pieces = 0;
        point.record.measured_ns = plimsoll_model::units::Nanos::from_secs(3);
        check_rule("ended_early", &point, &PointBuilder::closed(32).build());
        assert_eq!(point.reasons(), ["ended_early"]);
    }

    #[test]
    fn fewer_points_than_the_ladder_is_incomplete() {
        let mut run = run();
        let last_point = run.journal.len() - 2;
        run.journal.remove(last_point);
        assert_eq!(rules(&run), ["incomplete"]);
    }

    #[test]
    fn a_searched_ladder_that_was_never_run_is_incomplete() {
        let mut run = RunBuilder::open(&[]);
        run.started_mut().ladder = None;
        assert_eq!(rules(&run), ["incomplete"]);
    }

    #[test]
    fn the_journals_end_tells_how_the_run_ended() {
        let interrupted = replace_last(JournalRecord::Interrupted { at_unix_ns: 0 });
        assert_eq!(rules(&interrupted), ["interrupted"]);
        let reason = "disk full".to_owned();
        let aborted = replace_last(JournalRecord::Aborted { at_unix_ns: 0, reason });
        assert_eq!(rules(&aborted), ["aborted"]);
        let mut killed = run();
        killed.journal.pop();
        assert_eq!(rules(&killed), ["interrupted"]);
    }

    fn resumed(debug_build: bool) -> JournalRecord {
        JournalRecord::Resumed { at_unix_ns: 0, version: "0.1.0".to_owned(), debug_build }
    }

    #[test]
    fn a_resumed_run_that_finished_is_valid_with_a_warning() {
        let mut run = run();
        let before_last = run.journal.len() - 1;
        let resumed = resumed(false);
        run.journal.insert(before_last, JournalRecord::Interrupted { at_unix_ns: 0 });
        run.journal.insert(before_last + 1, resumed);
        assert!(rules(&run).is_empty());
        assert_eq!(analyse(&run.raw()).verdict.warnings[0].rule.name(), "resumed");
    }

    #[test]
    fn a_debug_build_is_no_measurement() {
        let mut run = run();
        run.started_mut().debug_build = true;
        assert_eq!(rules(&run), ["debug_build"]);

        let mut run = self::run();
        run.journal.insert(run.journal.len() - 1, resumed(true));
        assert_eq!(rules(&run), ["debug_build"]);
    }

    /// 20 ms and 30 ms under a cap of 40 ms, then the last point.
    fn capped(last: PointBuilder) -> RunBuilder {
        let sustained = [(500.0, 20), (1_000.0, 30)];
        let sustained =
            sustained.map(|(rate, ms)| PointBuilder::open(rate).response_ns(ms * 1_000_000));
        let mut run = RunBuilder::from_points(sustained.into_iter().chain([last]));
        run.suite.rules.response_cap_ms = Some(40.0);
        run
    }

    #[test]
    fn a_point_above_the_response_cap_is_not_counted_and_leaves_the_run_valid() {
        let result = analyse(&capped(PointBuilder::open(2_000.0).response_ns(50_000_000)).raw());
        let last = &result.points[2];
        assert!(last.valid && last.reasons.is_empty(), "{:?}", last.reasons);
        assert!(!last.counts() && result.points[1].counts());
        assert_eq!(last.not_counted_because.as_ref().unwrap().point, Some(3));
        assert!(result.verdict.valid, "{:?}", result.verdict);
        assert_eq!(result.verdict.warnings[0].rule.name(), "response_cap");

        let (summary, below) = (result.summary, analyse(&run_below_the_cap().raw()).summary);
        assert_eq!(summary.value, Some(1_000.0));
        assert_eq!(summary.overall_response_ms, below.overall_response_ms);
        assert_eq!(summary.peak_ops_per_s, Some(2_000.0), "the highest of any point stays known");
        assert_eq!(result.suite.unwrap().response_cap_ms, Some(40.0));
    }

    #[test]
    fn a_mean_near_the_cap_may_be_counted_otherwise_the_next_time() {
        let near = |cap_ms: f64| {
            let mut run = capped(PointBuilder::open(2_000.0).response_ns(50_000_000));
            run.suite.rules.response_cap_ms = Some(cap_ms);
            let mut result = analyse(&run.raw());
            for point in &mut result.points {
                let of_it = |ends: [f64; 2]| [ends[0] - 1e6, ends[1] + 1e6];
                let intervals = point.service_interval_ns.as_mut().unwrap();
                intervals.mean = intervals.mean.map(of_it);
            }
            super::near_the_cap(&run.suite, &result.points)
        };
        let text = finding::text(&near(49.5).unwrap());
        assert!(text.contains("the cap of 49.5 ms") && text.contains("at point 3)"), "{text}");
        assert!(near(40.0).is_none());
    }

    #[test]
    fn a_ladder_that_misses_what_the_search_held_says_so() {
        let mut run = RunBuilder::from_points(past_the_limit());
        let warned = |run: &RunBuilder| {
            let warnings = analyse(&run.raw()).verdict.warnings;
            warnings.into_iter().find(|warning| warning.rule.name() == "not_repeated")
        };
        assert!(warned(&run).is_none(), "a ladder that somebody asked for");
        let (peak, how) = (14_000.0, "held twice".to_owned());
        let record = JournalRecord::PeakFound { peak, how, bound: Bound::Exact, held_back: None };
        run.journal.insert(1, record);
        let text = finding::text(&warned(&run).unwrap().rule);
        assert!(text.contains("held 14,000 ops/s") && text.contains("missed 14,000"), "{text}");
        run.journal.pop();
        assert!(warned(&run).is_none(), "a ladder that was cut short ends anywhere");
    }

    fn run_below_the_cap() -> RunBuilder {
        let mut run = capped(PointBuilder::open(2_000.0));
        let last_point = run.journal.len() - 2;
        run.journal.remove(last_point);
        run
    }

    #[test]
    fn a_point_above_the_cap_with_other_reasons_stays_invalid_and_so_does_the_run() {
        let busy = PointBuilder::open(2_000.0).worker_busy(0.95).response_ns(50_000_000);
        let result = analyse(&capped(busy).raw());
        let last = &result.points[2];
        assert!(!last.valid && last.not_counted == Some(NotCounted::Cap));
        assert_eq!(last.reasons[0].rule.name(), "generator_cpu");
        assert!(!result.verdict.valid);
        assert_eq!(result.verdict.reasons.len(), 1);
        assert_eq!(result.summary.value, Some(1_000.0));
    }

    #[test]
    fn the_cap_is_on_service_time_not_on_what_ops_waited_before_they_were_sent() {
        let waited = PointBuilder::open(2_000.0).response_ns(60_000_000).send_lag_ns(25_000_000);
        let point = |run: &RunBuilder| analyse(&run.raw()).points.pop().unwrap();
        let run = capped(waited.clone().lateness_ns(10_000));
        let counted = point(&run);
        assert!(counted.counts(), "{:?} {:?}", counted.reasons, counted.not_counted);
        assert!(counted.response_ns.unwrap().mean.unwrap() > 59e6, "the due-based time beside it");
        assert!((counted.service_ns.unwrap().mean.unwrap() / 35e6 - 1.0).abs() < 0.001);
        assert!(!point(&capped(waited.send_lag_ns(10_000))).counts());
    }

    #[test]
    fn a_load_that_the_server_did_not_hold_is_a_finding_and_the_run_stays_valid() {
        let result = analyse(&RunBuilder::from_points(past_the_limit()).raw());
        let last = &result.points[1];
        assert!(last.valid && last.not_counted == Some(NotCounted::NotHeld), "{last:?}");
        assert!(result.verdict.valid, "{:?}", result.verdict);
        assert_eq!(result.verdict.warnings[0].rule.name(), "rate");
        assert_eq!(result.summary.value, Some(4_000.0));
    }

    fn past_the_limit() -> [PointBuilder; 2] {
        [PointBuilder::open(4_000.0), PointBuilder::open(14_000.0).achieved(9_000)]
    }

    #[test]
    fn a_searched_ladder_that_outgrew_the_generator_carried_at_least_what_came_before() {
        let points = [PointBuilder::open(1_000.0), PointBuilder::open(2_000.0).worker_busy(0.95)];
        let mut run = RunBuilder::from_points(points);
        assert!(!analyse(&run.raw()).verdict.valid, "a ladder that somebody asked for");
        let (peak, how) = (2_000.0, "carried so far".to_owned());
        let record = JournalRecord::PeakFound { peak, how, bound: Bound::AtLeast, held_back: None };
        run.journal.insert(1, record);
        let result = analyse(&run.raw());
        assert!(result.verdict.valid, "{:?}", result.verdict);
        assert_eq!(result.verdict.warnings[0].rule.name(), "generator_cpu");
        assert!(!result.points[1].valid);
        assert_eq!((result.summary.value, result.summary.bound), (Some(1_000.0), Bound::AtLeast));
    }

    #[test]
    fn a_run_in_which_no_point_counts_is_invalid() {
        let [_, missed] = past_the_limit();
        let result = analyse(&RunBuilder::from_points([missed]).raw());
        assert!(result.points[0].valid && !result.verdict.valid);
        assert_eq!(result.verdict.reasons[0].rule.name(), "nothing_counts");
        assert!(
            finding::text(&result.verdict.reasons[0].rule)
                .contains("load not held: achieved 9,000")
        );
    }

    #[test]
    fn a_run_whose_every_point_is_above_the_cap_has_no_figure() {
        let mut run = run();
        run.suite.rules.response_cap_ms = Some(0.5);
        let result = analyse(&run.raw());
        assert_eq!(result.verdict.reasons[0].rule.name(), "nothing_counts");
        assert_eq!(result.summary.value, None);
        assert_eq!(result.summary.overall_response_ms.origin, None);
    }
}
