//! Uncertainty intervals: how far a figure is open because of the generator's own delays, the
//! sample, scatter between runs and the histogram.
//!
//! *Below*, the generator's part: each op was also recorded without receive lag and without the
//! largest lateness in flight with it, so that distribution bounds the true one from below. The
//! sample's part goes to both sides ([`crate::blocks`]). A closed load without the generator's
//! delays would have done more: up to the same work in the time of its clients less the generator's
//! part of it.
//!
//! A limit on lateness instead would make healthy runs invalid, and would pass a starved closed
//! load, because nothing is late in a closed loop.

use std::collections::BTreeMap;

use plimsoll_model::assignment::Load;
use plimsoll_model::capacity::Figure;
use plimsoll_model::event::{HISTOGRAM_DIGITS, OpTimes, PointRecord, TimeKind, Times};
use plimsoll_model::finding::Rule;
use plimsoll_model::reported::{self as figure, WIDE_RATIO};
use plimsoll_model::result::{OverallResponse, PointResult, Summary, TimeIntervals, Uncertainty};
use plimsoll_model::suite::Suite;
use plimsoll_model::units::Nanos;

use crate::blocks::{Chance, Coarse, chance_of_mean, chance_of_rate, chance_of_share, ratio_parts};
use crate::curve::{CurvePoint, overall_response};
use crate::health::ClientTime;
use crate::point::{censored, throughput};
use crate::raw::PointTimes;
use crate::sampling::NORMAL_95;
use crate::score::overall_score;
use crate::times::percentile;
use crate::validity::load_was_sustained;

/// Half a step of the histograms, as a share of the value.
const RESOLUTION_RATIO: f64 = 0.5 / 10u32.pow(HISTOGRAM_DIGITS as u32) as f64;

/// At 95 %, as a share of the figure: runs of one closed load, on one quiet host, differ by as
/// much. A closed load keeps the server at its full speed, and that is a different one in each run.
const RUNS_APART_RATIO: f64 = 0.02;

/// Where more of the ops beyond a percentile may be missing, those that came do not show how slow
/// the others would have been: the tail may go on, as steep as it was.
const TAIL_MISSING_MAX: f64 = 0.5;

#[derive(Debug, Default)]
pub(crate) struct PointIntervals {
    pub(crate) response: Option<TimeIntervals>,
    pub(crate) service: Option<TimeIntervals>,
    pub(crate) achieved: Option<[f64; 2]>,
    /// By name of the figure.
    pub(crate) uncertainty: BTreeMap<String, Uncertainty>,
}

/// A distribution, as measured and without the generator's own delays, and its slices.
struct Distribution<'a> {
    name: &'a str,
    measured: &'a Times,
    low: &'a Times,
    slices: Vec<&'a Coarse>,
    /// Of a closed load.
    closed: Option<ClientTime>,
    /// Where ops were not sent or not finished: values above are lower bounds, whose upper end is
    /// not known.
    exact_to_ns: Option<u64>,
}

impl Distribution<'_> {
    /// The part of the server's queue that is left without the generator's own delays.
    fn queue_ratio(&self) -> f64 {
        self.closed.map_or(1.0, |time| time.queue_ratio())
    }

    fn has_bounds(&self) -> bool {
        !self.measured.is_empty() && self.low.len() == self.measured.len()
    }
}

fn response<'a>(
    record: &PointRecord,
    total: &'a OpTimes,
    times: &'a PointTimes,
) -> Distribution<'a> {
    let slices = times.slices().map(|(_, slice)| &slice.response).collect();
    Distribution {
        name: "response",
        measured: &total.response,
        low: &total.response_low,
        slices,
        closed: ClientTime::from_record(record, total),
        exact_to_ns: censored(&record.totals).map(|censored| censored.response_exact_to_ns),
    }
}

/// By which share the figures of other runs may differ. An open load below saturation repeats them
/// within the uncertainty of one run (`docs/calibration.md`).
pub(crate) fn runs_apart(closed: Option<ClientTime>) -> f64 {
    if closed.is_some() { RUNS_APART_RATIO } else { 0.0 }
}

/// Intervals of a point whose `total` is merged over window and ops.
pub(crate) fn state(
    suite: &Suite,
    record: &PointRecord,
    total: &OpTimes,
    times: &PointTimes,
) -> PointIntervals {
    let closed = ClientTime::from_record(record, total);
    let slices = times.slices().map(|(_, slice)| &slice.service).collect();
    let response = response(record, total, times);
    let service = Distribution {
        name: "service",
        measured: &total.service,
        low: &total.service_low,
        slices,
        closed: response.closed,
        exact_to_ns: censored(&record.totals).and_then(|censored| censored.service_exact_to_ns),
    };
    let mut result = PointIntervals::default();
    result.response = intervals(&response, &mut result.uncertainty);
    result.service = intervals(&service, &mut result.uncertainty);
    let parts = slice_parts(record, times);
    let cycles = Cycles::from_record(record, total, times);
    if let Some(uncertainty) = achieved(suite, record, closed, (cycles, &parts)) {
        result.achieved = Some(span(&uncertainty));
        // The generator's part of a throughput lies above it, not below.
        result.uncertainty.insert("achieved_ops_per_s".to_owned(), uncertainty);
    }
    result
}

/// The widest interval of the percentiles that reports show, if one is wide.
pub(crate) fn wide_interval(point: &PointResult) -> Option<Rule> {
    let shown = [("p50", Figure::P50), ("p95", Figure::P95), ("p99", Figure::P99)];
    let wide = shown.into_iter().filter_map(|(name, figure)| {
        let reported = figure::ReportedFigure::response(point, figure)?;
        Some((reported.wide_ratio()?, name, reported))
    });
    let (_, figure, reported) = wide.max_by(|a, b| a.0.total_cmp(&b.0))?;
    let [value_ns, low_ns, high_ns] =
        [reported.value, reported.interval?[0], reported.interval?[1]].map(|ns| Nanos(ns as u64));
    let limit_ratio = WIDE_RATIO;
    Some(Rule::WideInterval { figure: figure.to_owned(), value_ns, low_ns, high_ns, limit_ratio })
}

/// Sets the intervals of the headline figures, from the points they are computed from.
pub(crate) fn state_summary(summary: &mut Summary, suite: &Suite, points: &[PointResult]) {
    let counted = || points.iter().filter(|point| point.counts());
    let scaled = |point: &PointResult| {
        let achieved = point.achieved_ops_per_s.filter(|achieved| *achieved > 0.0)?;
        let [low, high] = point.achieved_interval_ops_per_s?;
        Some([low / achieved, high / achieved])
    };
    let best = counted().find(|point| throughput(suite.metric, point) == summary.value);
    summary.value_interval = summary
        .value
        .zip(best.and_then(scaled))
        .map(|(value, [low, high])| [value * low, value * high]);
    summary.overall_response_interval_ms = overall_interval(summary, counted());
    let mixes = |end: usize| -> Option<Vec<(f64, f64)>> {
        let score = suite.score.as_ref()?;
        let mix = |(index, point): (usize, &PointResult)| {
            Some((point.score? * scaled(point)?[end], score.mix_weight(index)))
        };
        points.iter().enumerate().map(mix).collect()
    };
    summary.score_interval =
        summary.score.and_then(|_| Some([overall_score(&mixes(0)?)?, overall_score(&mixes(1)?)?]));
}

fn overall_interval<'p>(
    summary: &Summary,
    counted: impl Iterator<Item = &'p PointResult>,
) -> Option<[OverallResponse; 2]> {
    let OverallResponse { origin, span } = summary.overall_response_ms;
    origin.or(span)?;
    let mut curves: [Vec<CurvePoint>; 2] = Default::default();
    for point in counted {
        let achieved_ops_per_s = point.achieved_ops_per_s?;
        let ends = point.service_interval_ns?.mean?;
        for (curve, end) in curves.iter_mut().zip(ends) {
            curve.push(CurvePoint { achieved_ops_per_s, response_ms: end / 1e6 });
        }
    }
    let [low, high] = curves.map(|curve| overall_response(&curve));
    // Where throughput falls along the ladder, areas are subtracted, and the ends may change
    // places.
    let holds = |value: Option<f64>, low: Option<f64>, high: Option<f64>| match (value, low, high) {
        (Some(value), Some(low), Some(high)) => low <= value && value <= high,
        _ => true,
    };
    let sound = holds(origin, low.origin, high.origin) && holds(span, low.span, high.span);
    sound.then_some([low, high])
}

fn intervals(
    distribution: &Distribution<'_>,
    uncertainty: &mut BTreeMap<String, Uncertainty>,
) -> Option<TimeIntervals> {
    if !distribution.has_bounds() {
        return None;
    }
    let mut keep = |figure: &str, parts: Option<(Uncertainty, [f64; 2])>| {
        let (parts, interval) = parts?;
        if ["mean", "p50", "p99"].contains(&figure) {
            uncertainty.insert(format!("{}_{figure}_ns", distribution.name), parts);
        }
        Some(interval)
    };
    let mut percentile = |name, e2| keep(name, of_percentile(distribution, e2));
    let percentiles = [("p50", 5_000), ("p90", 9_000), ("p95", 9_500), ("p99", 9_900)]
        .map(|(n, e2)| percentile(n, e2));
    let [p50, p90, p95, p99] = in_order(percentiles);
    Some(TimeIntervals { mean: keep("mean", of_mean(distribution)), p50, p90, p95, p99 })
}

/// A percentile is no less than one below it: its interval is limited by that one's.
fn in_order<const N: usize>(mut intervals: [Option<[f64; 2]>; N]) -> [Option<[f64; 2]>; N] {
    let mut least = f64::NEG_INFINITY;
    for [low, _] in intervals.iter_mut().flatten() {
        least = low.max(least);
        *low = least;
    }
    let mut most = f64::INFINITY;
    for [_, high] in intervals.iter_mut().rev().flatten() {
        most = high.min(most);
        *high = most;
    }
    intervals
}

/// Intervals of times within replies. Those between stamps of the kernel have no part of the
/// generator's own in them; for the time to first output its lower bound was recorded. Where output
/// is visible from the first on, that is the bound of both.
pub(crate) fn stream_intervals(
    record: &PointRecord,
    total: &OpTimes,
    times: &PointTimes,
    kind: TimeKind,
) -> Option<TimeIntervals> {
    intervals(&stream(record, total, times, kind)?, &mut BTreeMap::new())
}

fn stream<'a>(
    record: &PointRecord,
    total: &'a OpTimes,
    times: &'a PointTimes,
    kind: TimeKind,
) -> Option<Distribution<'a>> {
    let measured = kind.times_in(total)?;
    let low = match kind {
        TimeKind::FirstOutput => TimeKind::FirstOutputLow.times_in(total)?,
        TimeKind::FirstVisible if TimeKind::FirstOutput.times_in(total) == Some(measured) => {
            TimeKind::FirstOutputLow.times_in(total)?
        }
        TimeKind::FirstVisible => return None,
        _ => measured,
    };
    let from_due = kind == TimeKind::FirstOutput;
    Some(Distribution {
        name: kind.as_str(),
        measured,
        low,
        slices: times.slices().filter_map(|(_, slice)| slice.stream(kind)).collect(),
        closed: ClientTime::from_record(record, total),
        exact_to_ns: censored(&record.totals)
            .filter(|_| from_due)
            .map(|censored| censored.response_exact_to_ns),
    })
}

/// Interval of p99.9 of a time within replies; `None` where the sample is too small for it.
pub(crate) fn stream_p999(
    record: &PointRecord,
    total: &OpTimes,
    times: &PointTimes,
    kind: TimeKind,
) -> Option<[f64; 2]> {
    let distribution = stream(record, total, times, kind)?;
    of_percentile(&distribution, 9_990)
        .filter(|_| distribution.has_bounds())
        .map(|(_, interval)| interval)
}

/// Interval of p99.9 of the response time; `None` where the sample is too small for it.
pub(crate) fn response_p999(
    record: &PointRecord,
    total: &OpTimes,
    times: &PointTimes,
) -> Option<[f64; 2]> {
    let distribution = response(record, total, times);
    of_percentile(&distribution, 9_990)
        .filter(|_| distribution.has_bounds())
        .map(|(_, interval)| interval)
}

fn of_mean(distribution: &Distribution<'_>) -> Option<(Uncertainty, [f64; 2])> {
    let Chance { below, above } = chance_of_mean(&distribution.slices)?;
    if distribution.exact_to_ns.is_some() {
        return None;
    }
    let value = distribution.measured.mean();
    let uncertainty = Uncertainty {
        value,
        generator: (value - distribution.low.mean() * distribution.queue_ratio()).max(0.0),
        sample_below: below,
        sample_above: above,
        other_runs: value * runs_apart(distribution.closed),
        resolution: value * RESOLUTION_RATIO,
    };
    let Uncertainty { generator, other_runs, resolution, .. } = uncertainty;
    let low = value - generator - below.hypot(other_runs) - resolution;
    Some((uncertainty, [low.max(0.0), value + above.hypot(other_runs) + resolution]))
}

fn of_percentile(
    distribution: &Distribution<'_>,
    percentile_e2: u32,
) -> Option<(Uncertainty, [f64; 2])> {
    let is_exact = |ns: f64| distribution.exact_to_ns.is_none_or(|exact_to| ns <= exact_to as f64);
    let value = percentile(distribution.measured, percentile_e2)? as f64;
    if !is_exact(value) {
        return None;
    }
    let share = f64::from(percentile_e2) / 10_000.0;
    let Chance { below, above } =
        chance_of_share(&distribution.slices, distribution.measured, share)?;
    let at = |times: &Times, share: f64| times.value_at_quantile(share.clamp(0.0, 1.0)) as f64;
    let beyond = 1.0 - share;
    // Bursts of slow ops are few, and their number is not spread evenly about the observed one:
    // there may be more of them by the factor that there may be fewer.
    let shifted = |by: f64| share / (share + beyond * (by / (share * beyond)).exp());
    let lowest = at(distribution.low, shifted(below));
    let highest = match above / beyond {
        _ if share <= 0.5 => at(distribution.measured, shifted(-above)),
        missing if missing < TAIL_MISSING_MAX => at(distribution.measured, share + above),
        missing => at(distribution.measured, share + above)
            .max(value + tail_scale(distribution.measured, share) * reach(missing)),
    };
    let without_generator = (at(distribution.low, share) * distribution.queue_ratio()).min(value);
    let highest = highest.max(value);
    let lowest = (lowest * distribution.queue_ratio()).min(without_generator);
    let other_runs = value * runs_apart(distribution.closed);
    let resolution = value * RESOLUTION_RATIO;
    let uncertainty = Uncertainty {
        value,
        generator: value - without_generator,
        sample_below: (value - at(distribution.measured, share - below)).max(0.0),
        sample_above: highest - value,
        other_runs,
        resolution,
    };
    let low = without_generator - (without_generator - lowest).hypot(other_runs) - resolution;
    let high = value + (highest - value).hypot(other_runs) + resolution;
    Some((uncertainty, [low.max(0.0), high]))
}

/// By how many scales a tail goes on when this part of it is missing: as an exponential one up to
/// nine tenths, from there one more for each whole tail.
fn reach(missing: f64) -> f64 {
    const MOST: f64 = 0.9;
    -(1.0 - missing.min(MOST)).ln() + (missing - MOST).max(0.0)
}

/// Scale of an exponential tail up to a percentile: the largest of those through it and the
/// percentile that five times as many ops lie beyond, and through that one and the median. All are
/// equal where the tail is exponential, as that of a queue is. Values beyond, such as one long
/// pause, do not count.
fn tail_scale(times: &Times, share: f64) -> f64 {
    let at = |share: f64| times.value_at_quantile(share) as f64;
    let scale = |from: f64, to: f64| (at(to) - at(from)) / ((1.0 - from) / (1.0 - to)).ln();
    let middle = 1.0 - (1.0 - share) * 5.0;
    match share {
        ..=0.9 => scale(0.5, share),
        _ => scale(middle, share).max(scale(0.5, middle)),
    }
}

/// Throughput; `parts` are ops and length of each slice of the window.
fn achieved(
    suite: &Suite,
    record: &PointRecord,
    closed: Option<ClientTime>,
    (cycles, parts): (Option<Cycles>, &[(f64, f64)]),
) -> Option<Uncertainty> {
    let seconds = record.measured_ns.as_secs_f64();
    if seconds <= 0.0 {
        return None;
    }
    let value = record.totals.done_in_window as f64 / seconds;
    let generator = match record.load {
        Load::Open { .. } => 0.0,
        Load::Closed { .. } => value * (closed?.longer_ratio() - 1.0),
    };
    let exact = matches!(record.load, Load::Open { .. }) && load_was_sustained(suite, record);
    let chance = match (exact, cycles) {
        // The schedule gives the number of ops, and all were done.
        (true, _) => Chance::default(),
        (false, Some(cycles)) => cycles.chance_of(value, value),
        (false, None) => {
            let (ops, length) = ratio_parts(parts.iter());
            let scale = if ops > 0.0 { value / (ops / length) } else { 0.0 };
            let Chance { below, above } = chance_of_rate(parts)?;
            Chance { below: below * scale, above: above * scale }
        }
    };
    let Chance { below: sample_below, above: sample_above } = chance;
    let other_runs = value * runs_apart(closed);
    Some(Uncertainty { value, generator, sample_below, sample_above, other_runs, resolution: 0.0 })
}

/// The throughput of a closed load by the cycles of its clients. Where they go in step, a window
/// cuts their waves anywhere, so that counts are off by up to a wave, and slices have all of one or
/// nothing. The time of a client's piece of work is known all the same: N clients that take C for
/// each do N / C of them a second.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cycles {
    /// N / C, by the rate of pieces that was counted.
    to_counted: f64,
    /// How far chance may have moved C, at 95 %, as a share of it.
    error_ratio: f64,
}

impl Cycles {
    /// `None` of an open load, where clients left, where no piece of work ended in the window, and
    /// where pieces hold several ops: those of a piece that has not ended count too.
    pub(crate) fn from_record(
        record: &PointRecord,
        total: &OpTimes,
        times: &PointTimes,
    ) -> Option<Self> {
        let Load::Closed { clients, think, .. } = &record.load else { return None };
        let (totals, response) = (&record.totals, &total.response);
        let pieces = totals.pieces as f64;
        let are_ops = totals.pieces > 0 && totals.pieces >= totals.done_in_window;
        let all_stayed = totals.clients_participating == *clients && record.ops.is_none();
        if !are_ops || response.is_empty() || !all_stayed {
            return None;
        }
        let spent_ns = (totals.piece_ns_total + totals.think_ns_total) as f64;
        let at_work_ratio = totals.piece_ns_total as f64 / spent_ns;
        let slices: Vec<&Coarse> = times.slices().map(|(_, slice)| &slice.response).collect();
        // Less than independent ones would scatter is luck.
        let least = NORMAL_95 * response.stdev() / (response.len() as f64).sqrt();
        let chance = chance_of_mean(&slices).unwrap_or_default();
        let work_ratio =
            chance.below.max(chance.above).max(least) / response.mean() * at_work_ratio;
        let think_ns = think.mean.0 as f64 * think.distribution.variation();
        let think_ratio = NORMAL_95 * think_ns / pieces.sqrt() / (spent_ns / pieces);
        Some(Self {
            to_counted: f64::from(*clients) * record.measured_ns.0 as f64 / spent_ns,
            error_ratio: work_ratio.hypot(think_ratio),
        })
    }

    /// For a count that varies from piece to piece: by how much, as a share.
    pub(crate) fn of_varying(self, ratio: f64) -> Self {
        Self { error_ratio: self.error_ratio.hypot(ratio), ..self }
    }

    /// For a rate, from the pieces per second that ended in the window.
    pub(crate) fn chance_of(&self, rate: f64, of_pieces: f64) -> Chance {
        let by_cycles = of_pieces * self.to_counted;
        let [low, high] = [1.0 - self.error_ratio, 1.0 + self.error_ratio];
        Chance {
            below: (rate - by_cycles * low).max(0.0),
            above: (by_cycles * high - rate).max(0.0),
        }
    }
}

/// Ops and length of each slice, which reaches to where the next begins.
fn slice_parts(record: &PointRecord, times: &PointTimes) -> Vec<(f64, f64)> {
    let end = record.warm_up_ns.saturating_add(record.measured_ns);
    let ends = times.slices().map(|(start, _)| start).skip(1).chain([end]);
    let parts = times.slices().zip(ends).map(|((start, slice), end)| {
        (slice.response.n as f64, end.saturating_sub(start).as_secs_f64())
    });
    parts.collect()
}

/// The interval of a throughput: the generator's part lies above.
pub(crate) fn span(parts: &Uncertainty) -> [f64; 2] {
    let Uncertainty { value, generator, sample_below, sample_above, other_runs, .. } = *parts;
    let above = sample_above.hypot(other_runs);
    let most = if value > 0.0 { (value + above) * (1.0 + generator / value) } else { 0.0 };
    [(value - sample_below.hypot(other_runs)).max(0.0), most]
}

#[cfg(test)]
mod tests;
