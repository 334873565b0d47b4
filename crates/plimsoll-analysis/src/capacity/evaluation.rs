//! Compares one load point with the limits.
//!
//! Do ops in flight grow through the window? Then more ops arrive than complete, and the load could
//! not be sustained for long, whatever its figures are so far. Ops in flight are the rate times the
//! response time (Little). The window is cut into blocks of equal length, and a straight line is
//! laid through their means.

use plimsoll_model::assignment::Load;
use plimsoll_model::capacity::{
    CapacityTry, Figure, LimitFigure, LoadFigure, LoadLimit, TryOutcome, TryReason, Within,
};
use plimsoll_model::condition::{ConditionFigure as _, LimitUnit};
use plimsoll_model::event::{OpTimes, PointRecord, Times};
use plimsoll_model::figure::StreamFigure;
use plimsoll_model::finding::Rule;
use plimsoll_model::reported::ReportedFigure;
use plimsoll_model::result::{NotCounted, PointResult, TimeIntervals};
use plimsoll_model::suite::{Arrivals, LoadSpec, Suite};
use plimsoll_model::units::Nanos;

use crate::coarse::Coarse;
use crate::generation::kind_of;
use crate::raw::PointTimes;
use crate::times::quantile_ns;
use crate::validity::load_was_sustained;

/// The server caused the breach. Any other reason means that the measurement was at fault, and
/// shows nothing about the server.
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

/// Other programs or the hypervisor had a core of the generator for long.
fn disturbance(result: &PointResult) -> Option<&Rule> {
    let is_taken =
        |rule: &&Rule| matches!(rule, Rule::CoreTaken { .. }) && rule.disturbance().is_some();
    result.warnings.iter().map(|warning| &warning.rule).find(is_taken)
}

/// Whether the figures as measured are within their limits. A load that was not sustained has none.
fn passes(figures: &[LimitFigure]) -> bool {
    !figures.is_empty() && figures.iter().all(LimitFigure::holds)
}

/// A load point with the inputs of its evaluation.
pub(crate) struct Tried<'a> {
    pub suite: &'a Suite,
    pub within: &'a Within,
    pub record: &'a PointRecord,
    pub result: &'a PointResult,
    /// `None` when the interval logs are not there.
    pub times: Option<&'a PointTimes>,
}

impl Tried<'_> {
    /// Compares it with the limits. All clients at once are not a requested load of an open suite:
    /// that is no try.
    pub(crate) fn attempt(&self) -> Option<CapacityTry> {
        let open = matches!(self.suite.load, LoadSpec::Open { .. });
        let on_axis = matches!(self.record.load, Load::Open { .. }) == open;
        on_axis.then(|| self.evaluate())
    }

    pub(super) fn evaluate(&self) -> CapacityTry {
        let (outcome, reason, figures) = self.decide();
        let late = outcome == TryOutcome::Within
            && self.result.reasons.iter().any(|reason| reason.rule.is_generators());
        CapacityTry {
            point: self.result.position,
            load: self.result.requested,
            purpose: self.record.point.purpose,
            standing: outcome,
            passed: passes(&figures),
            late,
            why: String::new(),
            reason,
            figures,
        }
    }

    fn decide(&self) -> (TryOutcome, TryReason, Vec<LimitFigure>) {
        let of_rule =
            |outcome, rule: &Rule| (outcome, TryReason::Rule { rule: rule.clone() }, Vec::new());
        let mut reasons = self.result.reasons.iter().map(|reason| &reason.rule);
        if let Some(fault) = reasons.clone().find(|it| !is_servers(it) && !it.is_generators()) {
            return of_rule(TryOutcome::NotJudged, fault);
        }
        if let Some(failed) = reasons.clone().find(|rule| is_servers(rule)) {
            return of_rule(TryOutcome::NotWithin, failed);
        }
        let (outcome, reason, figures) = match self.failure_reason() {
            Some(reason) => (TryOutcome::NotWithin, reason, Vec::new()),
            None => {
                let (outcome, figures) = self.against_limits();
                (outcome, TryReason::Figures, figures)
            }
        };
        // Delays of the generator only make times longer: figures that are within the limits with
        // these delays are within them without, and an undecided figure below a limit is no breach
        // of it. The delays also send requests in bursts, and a server's response to bursts is not
        // its limit.
        match reasons.find(|rule| rule.is_generators()).or_else(|| disturbance(self.result)) {
            Some(rule) if outcome != TryOutcome::Within && !passes(&figures) => {
                of_rule(TryOutcome::NotJudged, rule)
            }
            _ => (outcome, reason, figures),
        }
    }

    /// Why the load was not sustained, or ops failed beyond what the suite allows where the user
    /// names no limit for them.
    fn failure_reason(&self) -> Option<TryReason> {
        let left_out = || {
            let because = self.result.not_counted_because.as_ref();
            because.map(|it| TryReason::Rule { rule: it.rule.clone() })
        };
        let not_sustained = self.result.not_counted == Some(NotCounted::NotHeld);
        if not_sustained || !load_was_sustained(self.suite, self.record) {
            return Some(left_out().unwrap_or(TryReason::NotHeld));
        }
        if self.result.not_counted == Some(NotCounted::Errors) && !self.within.limits_errors() {
            return left_out();
        }
        growth(self.record, self.times?)
    }

    fn against_limits(&self) -> (TryOutcome, Vec<LimitFigure>) {
        let total = self.times.map(PointTimes::window_total);
        let figures: Vec<LimitFigure> =
            self.within.limits().iter().map(|limit| self.figure(limit, total.as_ref())).collect();
        let any = |expected: &TryOutcome| figures.iter().any(|it| it.outcome() == *expected);
        let worst = [TryOutcome::NotWithin, TryOutcome::Undecided].into_iter().find(any);
        (worst.unwrap_or(TryOutcome::Within), figures)
    }

    fn figure(&self, limit: &LoadLimit, total: Option<&OpTimes>) -> LimitFigure {
        let share = LimitFigure {
            name: limit.figure.name(),
            unit: "ratio".to_owned(),
            value: None,
            interval: None,
            lower_bound: false,
            below: limit.limit,
            at_least: false,
        };
        let ((value, interval), figure, from_due) = match &limit.figure {
            LoadFigure::Response(figure) => (self.response(*figure, total), *figure, true),
            LoadFigure::Stream(of, figure) => {
                (self.stream(*of, *figure, total), *figure, *of == StreamFigure::FirstOutput)
            }
            LoadFigure::Journey(_) | LoadFigure::Goodput => {
                let reported = match &limit.figure {
                    LoadFigure::Journey(figure) => ReportedFigure::journey(self.result, figure),
                    _ => ReportedFigure::goodput(self.result),
                };
                let (value, interval) =
                    (reported.map(|it| it.value), reported.and_then(|it| it.interval));
                return match limit.figure.unit() {
                    LimitUnit::Time => {
                        LimitFigure { unit: "ns".to_owned(), value, interval, ..share }
                    }
                    _ => LimitFigure { value, interval, at_least: true, ..share },
                };
            }
            LoadFigure::Errors => {
                let totals = &self.record.totals;
                let failed: u64 = totals.errors.values().sum();
                let ratio = |ops: u64| (totals.due > 0).then(|| ops as f64 / totals.due as f64);
                let value = ratio(failed);
                // Ops that failed were counted, one by one; any that is unfinished may have failed.
                let interval = value.zip(ratio(failed + totals.unfinished));
                let interval = interval.map(|(low, high)| [low, high]);
                return LimitFigure { value, interval, below: limit.limit / 100.0, ..share };
            }
        };
        let censored = self.result.censored.filter(|_| from_due);
        let is_bound = |ns| censored.is_some_and(|it| it.bounds_response(figure, ns));
        let lower_bound = value.is_some_and(is_bound);
        // Its upper end is open where it lies among times of which only a lower bound is known.
        let interval =
            interval.map(|[low, high]| [low, if is_bound(high) { f64::INFINITY } else { high }]);
        LimitFigure { unit: "ns".to_owned(), value, interval, lower_bound, ..share }
    }

    /// A figure of a time within replies and its uncertainty interval.
    fn stream(
        &self,
        of: StreamFigure,
        figure: Figure,
        total: Option<&OpTimes>,
    ) -> (Option<f64>, Option<[f64; 2]>) {
        let kind = kind_of(of);
        let Some(times) = total.and_then(|total| kind.times_in(total)) else { return (None, None) };
        let intervals = self.result.generation.as_ref().and_then(|it| it.times(of)?.1.copied());
        of_times(times, intervals.unwrap_or_default(), figure)
    }

    /// A figure of the response time and its uncertainty interval.
    fn response(&self, figure: Figure, total: Option<&OpTimes>) -> (Option<f64>, Option<[f64; 2]>) {
        let Some(total) = total.filter(|total| !total.response.is_empty()) else {
            return (None, None);
        };
        let intervals = self.result.response_interval_ns.unwrap_or_default();
        of_times(&total.response, intervals, figure)
    }
}

/// A figure of a distribution and its uncertainty interval.
fn of_times(
    times: &Times,
    intervals: TimeIntervals,
    figure: Figure,
) -> (Option<f64>, Option<[f64; 2]>) {
    let percentile = |e2| quantile_ns(times, e2) as f64;
    let value = match figure {
        Figure::Mean => times.mean(),
        Figure::P50 => percentile(5_000),
        Figure::P90 => percentile(9_000),
        Figure::P95 => percentile(9_500),
        Figure::P99 => percentile(9_900),
        Figure::P999 => percentile(9_990),
        Figure::Max => {
            let longest = times.max() as f64;
            return (Some(longest), Some([longest, longest]));
        }
    };
    (Some(value), intervals.figure(figure))
}

/// Blocks of the window.
const BLOCKS: usize = 8;
/// A slope this many times its standard error is no scatter. More than the textbook's 2, because a
/// queue correlates neighbouring blocks.
const SLOPE_T_MIN: f64 = 4.0;
/// Growth below this factor does not change a result.
const GROWTH_MIN_RATIO: f64 = 2.0;
/// Nor does growth by less than this share of the ops that come due meanwhile: an excess that small
/// is within the effect of a busy moment on a queue.
const GROWTH_MIN_SHARE: f64 = 0.005;

/// The growth of an open load's ops in flight, by the line through the blocks; `None` without
/// growth, or where the window is too short to show it. A closed load cannot have more in flight
/// than its clients.
fn growth(record: &PointRecord, times: &PointTimes) -> Option<TryReason> {
    let rate = match record.load {
        Load::Closed { .. } => return None,
        Load::Open { arrivals: Arrivals::Sessions, .. } => {
            record.totals.due as f64 / record.measured_ns.as_secs_f64().max(f64::MIN_POSITIVE)
        }
        Load::Open { rate_ops_per_s, .. } => rate_ops_per_s.get(),
    };
    let in_flight: Vec<f64> =
        block_means_ns(times)?.into_iter().map(|mean_ns| rate * mean_ns / 1e9).collect();
    grown(&in_flight, rate * record.measured_ns.as_secs_f64())
}

/// Mean response time of each block. Slow ops that were due in the window are done late in it: the
/// first slices, which hold fast ones only, are left out.
fn block_means_ns(times: &PointTimes) -> Option<Vec<f64>> {
    let slices: Vec<(Nanos, &Coarse)> =
        times.slices().map(|(start, slice)| (start, &slice.response)).collect();
    let (begin, _) = slices.first()?;
    let longest = slices.iter().filter(|(_, s)| s.n > 0).map(|(_, s)| s.sum_ns / s.n as f64);
    let skipped = begin.0.saturating_add(longest.fold(0.0, f64::max) as u64);
    let slices: Vec<&Coarse> =
        slices.into_iter().filter(|(start, _)| start.0 >= skipped).map(|(_, s)| s).collect();
    let length = slices.len() / BLOCKS;
    if length == 0 {
        return None;
    }
    let blocks = slices[slices.len() - BLOCKS * length..].chunks(length);
    blocks
        .map(|block| {
            let n: u64 = block.iter().map(|slice| slice.n).sum();
            let sum_ns: f64 = block.iter().map(|slice| slice.sum_ns).sum();
            (n > 0).then(|| sum_ns / n as f64)
        })
        .collect()
}

fn grown(values: &[f64], due_ops: f64) -> Option<TryReason> {
    let n = values.len() as f64;
    let middle = (n - 1.0) / 2.0;
    let mean = values.iter().sum::<f64>() / n;
    let off = |index: usize| index as f64 - middle;
    let spread: f64 = (0..values.len()).map(|index| off(index).powi(2)).sum();
    let slope = values.iter().enumerate().map(|(i, v)| off(i) * (v - mean)).sum::<f64>() / spread;
    let rest: f64 =
        values.iter().enumerate().map(|(i, v)| (v - mean - slope * off(i)).powi(2)).sum();
    let error = (rest / (n - 2.0) / spread).sqrt();
    let (from_ops, to_ops) = ((mean - slope * middle).max(0.0), mean + slope * middle);
    let matters =
        to_ops > GROWTH_MIN_RATIO * from_ops && to_ops - from_ops > GROWTH_MIN_SHARE * due_ops;
    let grown = slope > 0.0 && slope > SLOPE_T_MIN * error && matters;
    grown.then_some(TryReason::Growth { from_ops, to_ops })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_that_grows_is_seen_and_one_that_scatters_is_not() {
        let rising = [4.0, 11.0, 14.0, 22.0, 24.0, 33.0, 35.0, 44.0];
        let growth = grown(&rising, 5_000.0);
        let Some(TryReason::Growth { from_ops, to_ops }) = growth else { panic!("{growth:?}") };
        assert!(from_ops < 6.0 && to_ops > 40.0, "{from_ops} {to_ops}");
        assert_eq!(grown(&rising, 10_000.0), None, "less than one in two hundred");
        assert_eq!(grown(&[9.0, 3.0, 14.0, 5.0, 11.0, 4.0, 16.0, 6.0], 100.0), None);
        let high = [80.0, 82.0, 84.0, 86.0, 88.0, 90.0, 92.0, 94.0];
        assert_eq!(grown(&high, 100.0), None, "by a sixth");
    }
}
