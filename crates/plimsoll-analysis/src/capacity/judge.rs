//! One load point, held against the limits.

use plimsoll_model::assignment::Load;
use plimsoll_model::capacity::{
    CapacityTry, Figure, LimitFigure, LoadFigure, LoadLimit, TryReason, TryStanding, Within,
};
use plimsoll_model::event::{OpTimes, PointRecord, Times};
use plimsoll_model::figure::StreamFigure;
use plimsoll_model::finding::Rule;
use plimsoll_model::result::{NotCounted, PointResult, TimeIntervals};
use plimsoll_model::stated::Stated;
use plimsoll_model::suite::{LoadSpec, Suite};

use super::growth::growth;
use crate::generation::kind_of;
use crate::raw::PointTimes;
use crate::stated::{response_p999, stream_p999};
use crate::times::quantile_ns;
use crate::validity::load_was_held;

/// The breach is the server's doing. Any other reason says that the measurement was at fault, and
/// nothing of the server.
const fn is_servers(rule: &Rule) -> bool {
    matches!(
        rule,
        Rule::Corrupt { .. }
            | Rule::ClientsLost { .. }
            | Rule::EndedEarly { .. }
            | Rule::NothingDone { .. }
            | Rule::NotSteady { .. }
    )
}

/// The generator's own delays are too large a part of the median. They make times longer only, and
/// the lower end of an interval is without them: what is decided all the same stands.
const fn is_late(rule: &Rule) -> bool {
    matches!(rule, Rule::GeneratorError { .. })
}

/// A load point with what it is judged by.
pub(crate) struct Tried<'a> {
    pub suite: &'a Suite,
    pub within: &'a Within,
    pub record: &'a PointRecord,
    pub result: &'a PointResult,
    /// `None` when the interval logs are not there.
    pub times: Option<&'a PointTimes>,
}

impl Tried<'_> {
    /// Holds it against the limits. All clients at once asks for no load of an open suite: that
    /// is no try.
    pub(crate) fn attempt(&self) -> Option<CapacityTry> {
        let open = matches!(self.suite.load, LoadSpec::Open { .. });
        let on_axis = matches!(self.record.load, Load::Open { .. }) == open;
        on_axis.then(|| self.judge())
    }

    pub(super) fn judge(&self) -> CapacityTry {
        let (standing, reason, figures) = self.judged();
        CapacityTry {
            point: self.result.position,
            load: self.result.requested,
            purpose: self.record.point.purpose,
            standing,
            // A load that was not held has no figures to look at.
            passed: !figures.is_empty() && figures.iter().all(LimitFigure::holds),
            reason,
            figures,
        }
    }

    fn judged(&self) -> (TryStanding, TryReason, Vec<LimitFigure>) {
        let of_rule =
            |standing, rule: &Rule| (standing, TryReason::Rule { rule: rule.clone() }, Vec::new());
        let mut reasons = self.result.reasons.iter().map(|reason| &reason.rule);
        if let Some(fault) = reasons.clone().find(|it| !is_servers(it) && !is_late(it)) {
            return of_rule(TryStanding::NotJudged, fault);
        }
        if let Some(failed) = reasons.clone().find(|rule| is_servers(rule)) {
            return of_rule(TryStanding::NotWithin, failed);
        }
        if let Some(reason) = self.not_held() {
            return (TryStanding::NotWithin, reason, Vec::new());
        }
        let (standing, figures) = self.against_limits();
        let decided = standing == TryStanding::NotWithin || figures.iter().all(LimitFigure::holds);
        match reasons.find(|rule| is_late(rule)) {
            Some(late) if !decided => of_rule(TryStanding::NotJudged, late),
            _ => (standing, TryReason::Figures, figures),
        }
    }

    /// Why the load was not held, or ops failed beyond what the suite allows where the user names
    /// no limit for them.
    fn not_held(&self) -> Option<TryReason> {
        let left_out = || {
            let because = self.result.not_counted_because.as_ref();
            because.map(|it| TryReason::Rule { rule: it.rule.clone() })
        };
        let not_held = self.result.not_counted == Some(NotCounted::NotHeld);
        if not_held || !load_was_held(self.suite, self.record) {
            return Some(left_out().unwrap_or(TryReason::NotHeld));
        }
        if self.result.not_counted == Some(NotCounted::Errors) && !self.within.limits_errors() {
            return left_out();
        }
        growth(self.record, self.times?)
    }

    fn against_limits(&self) -> (TryStanding, Vec<LimitFigure>) {
        let total = self.times.map(PointTimes::window_total);
        let figures: Vec<LimitFigure> =
            self.within.limits().iter().map(|limit| self.figure(limit, total.as_ref())).collect();
        let any = |wanted: &TryStanding| figures.iter().any(|it| it.standing() == *wanted);
        let worst = [TryStanding::NotWithin, TryStanding::Undecided].into_iter().find(any);
        (worst.unwrap_or(TryStanding::Within), figures)
    }

    fn figure(&self, limit: &LoadLimit, total: Option<&OpTimes>) -> LimitFigure {
        let name = limit.figure.name();
        match limit.figure {
            LoadFigure::Response(figure) => {
                let (value, interval) = self.response(figure, total);
                let censored = self.result.censored;
                let is_bound = |ns| censored.is_some_and(|it| it.bounds_response(figure, ns));
                let lower_bound = value.is_some_and(is_bound);
                // Its upper end is open where it lies among times that are known from below only.
                let interval = interval.filter(|[_, high]| !is_bound(*high));
                let (unit, below) = ("ns".to_owned(), limit.limit);
                LimitFigure { name, unit, value, interval, lower_bound, below, at_least: false }
            }
            LoadFigure::Stream(of, figure) => {
                let (value, interval) = self.stream(of, figure, total);
                let from_due = of == StreamFigure::FirstOutput;
                let censored = self.result.censored.filter(|_| from_due);
                let is_bound = |ns| censored.is_some_and(|it| it.bounds_response(figure, ns));
                let lower_bound = value.is_some_and(is_bound);
                let interval = interval.filter(|[_, high]| !is_bound(*high));
                let (unit, below) = ("ns".to_owned(), limit.limit);
                LimitFigure { name, unit, value, interval, lower_bound, below, at_least: false }
            }
            LoadFigure::Goodput => {
                let stated = Stated::goodput(self.result);
                let (value, interval) =
                    (stated.map(|it| it.value), stated.and_then(|it| it.interval));
                let (unit, below) = ("ratio".to_owned(), limit.limit);
                let lower_bound = false;
                LimitFigure { name, unit, value, interval, lower_bound, below, at_least: true }
            }
            LoadFigure::Errors => {
                let totals = &self.record.totals;
                let failed: u64 = totals.errors.values().sum();
                let share = |ops: u64| (totals.due > 0).then(|| ops as f64 / totals.due as f64);
                let value = share(failed);
                // Ops that failed were counted, one by one; any that is unfinished may have failed.
                let interval = value.zip(share(failed + totals.unfinished));
                let interval = interval.map(|(low, high)| [low, high]);
                let (unit, below) = ("ratio".to_owned(), limit.limit / 100.0);
                let lower_bound = false;
                LimitFigure { name, unit, value, interval, lower_bound, below, at_least: false }
            }
        }
    }

    /// A figure of a time within replies and its uncertainty interval.
    fn stream(
        &self,
        of: StreamFigure,
        figure: Figure,
        total: Option<&OpTimes>,
    ) -> (Option<f64>, Option<[f64; 2]>) {
        let kind = kind_of(of);
        let Some(times) = total.and_then(|total| kind.of(total)) else { return (None, None) };
        let generation = self.result.generation.as_ref();
        let intervals = generation.and_then(|it| it.times(of)?.1.copied());
        let of_p999 = || stream_p999(self.record, total?, self.times?, kind);
        of_times(times, intervals.unwrap_or_default(), figure, of_p999)
    }

    /// A figure of the response time and its uncertainty interval.
    fn response(&self, figure: Figure, total: Option<&OpTimes>) -> (Option<f64>, Option<[f64; 2]>) {
        let Some(total) = total.filter(|total| !total.response.is_empty()) else {
            return (None, None);
        };
        let intervals = self.result.response_interval_ns.unwrap_or_default();
        let of_p999 = || response_p999(self.record, total, self.times?);
        of_times(&total.response, intervals, figure, of_p999)
    }
}

/// A figure of a distribution and its uncertainty interval; that of p99.9 is in no result.
fn of_times(
    times: &Times,
    intervals: TimeIntervals,
    figure: Figure,
    of_p999: impl Fn() -> Option<[f64; 2]>,
) -> (Option<f64>, Option<[f64; 2]>) {
    let percentile = |e2| Some(quantile_ns(times, e2) as f64);
    match figure {
        Figure::Mean => (Some(times.mean()), intervals.mean),
        Figure::P50 => (percentile(5_000), intervals.p50),
        Figure::P90 => (percentile(9_000), intervals.p90),
        Figure::P95 => (percentile(9_500), intervals.p95),
        Figure::P99 => (percentile(9_900), intervals.p99),
        Figure::P999 => (percentile(9_990), of_p999()),
        Figure::Max => {
            let longest = times.max() as f64;
            (Some(longest), Some([longest, longest]))
        }
    }
}
