//! Stated intervals: what the generator's own delays, the sample, other runs and the histogram leave
//! open of a figure.
//!
//! *Below*, the generator's part: each op was also recorded without receive lag and without the
//! largest lateness in flight with it, so that distribution bounds the true one from below. The
//! sample's part goes to both sides ([`crate::blocks`]). A closed load that waits for nothing of the
//! generator would have done more: up to the same work in the time of its clients less the
//! generator's part of it.
//!
//! A limit on lateness instead would make healthy runs invalid, and would pass a starved closed
//! load, because nothing is late in a closed loop.

use std::collections::BTreeMap;

use plimsoll_model::assignment::Load;
use plimsoll_model::event::{HISTOGRAM_DIGITS, OpTimes, PointRecord, TimeKind, Times};
use plimsoll_model::result::{OverallResponse, PointResult, Summary, TimeIntervals, Uncertainty};
use plimsoll_model::suite::Suite;

use crate::blocks::{Chance, Coarse, chance_of_mean, chance_of_rate, chance_of_share, ratio_parts};
use crate::health::ClientTime;
use crate::metric::throughput;
use crate::overall::{CurvePoint, overall_response};
use crate::point::censored;
use crate::raw::PointTimes;
use crate::score::overall_score;
use crate::times::percentile;
use crate::validity::load_was_held;

/// Half a step of the histograms, as a share of the value.
const RESOLUTION_RATIO: f64 = 0.5 / 10u32.pow(HISTOGRAM_DIGITS as u32) as f64;

/// At 95 %, as a share of the figure: runs of one closed load, on one quiet host, differ by as much. It
/// keeps the server at its full speed, and that is another one in each run.
const RUNS_APART_RATIO: f64 = 0.02;

/// Where more of the ops beyond a percentile may have failed to come, those that came do not tell how
/// slow the others would have been: the tail may go on, as steep as it was.
const TAIL_SEEN: f64 = 0.5;

#[derive(Debug, Default)]
pub(crate) struct Stated {
    pub(crate) response: Option<TimeIntervals>,
    pub(crate) service: Option<TimeIntervals>,
    pub(crate) achieved: Option<[f64; 2]>,
    /// By name of the figure.
    pub(crate) uncertainty: BTreeMap<String, Uncertainty>,
}

/// A distribution, as measured and without the generator's own delays, and its slices.
struct Known<'a> {
    name: &'a str,
    measured: &'a Times,
    low: &'a Times,
    slices: Vec<&'a Coarse>,
    /// Of a closed load.
    closed: Option<ClientTime>,
    /// Where ops were not sent or not finished: what lies above is a lower bound, whose upper end is
    /// not known.
    exact_to_ns: Option<u64>,
}

impl Known<'_> {
    /// What is left of the server's queue without the generator's own delays.
    fn queue_ratio(&self) -> f64 {
        self.closed.map_or(1.0, |time| time.queue_ratio())
    }

    fn has_bounds(&self) -> bool {
        !self.measured.is_empty() && self.low.len() == self.measured.len()
    }
}

fn response<'a>(record: &PointRecord, total: &'a OpTimes, times: &'a PointTimes) -> Known<'a> {
    let slices = times.slices().map(|(_, slice)| &slice.response).collect();
    Known {
        name: "response",
        measured: &total.response,
        low: &total.response_low,
        slices,
        closed: ClientTime::of(record, total),
        exact_to_ns: censored(&record.totals).map(|censored| censored.response_exact_to_ns),
    }
}

/// By which share the figures of other runs may differ. An open load below saturation repeats them as
/// well as one run tells (`docs/calibration.md`).
pub(crate) fn runs_apart(closed: Option<ClientTime>) -> f64 {
    if closed.is_some() { RUNS_APART_RATIO } else { 0.0 }
}

/// States what is known of a point whose `total` is merged over window and ops.
pub(crate) fn state(
    suite: &Suite,
    record: &PointRecord,
    total: &OpTimes,
    times: &PointTimes,
) -> Stated {
    let closed = ClientTime::of(record, total);
    let slices = times.slices().map(|(_, slice)| &slice.service).collect();
    let response = response(record, total, times);
    let service = Known {
        name: "service",
        measured: &total.service,
        low: &total.service_low,
        slices,
        closed: response.closed,
        exact_to_ns: censored(&record.totals).and_then(|censored| censored.service_exact_to_ns),
    };
    let mut stated = Stated::default();
    stated.response = intervals(&response, &mut stated.uncertainty);
    stated.service = intervals(&service, &mut stated.uncertainty);
    let parts = slice_parts(record, times);
    if let Some(uncertainty) = achieved(suite, record, closed, &parts) {
        stated.achieved = Some(span(&uncertainty));
        // More, not less, is what the generator's part of a throughput leaves open.
        stated.uncertainty.insert("achieved_ops_per_s".to_owned(), uncertainty);
    }
    stated
}

/// States what is known of the headline figures, from the points they are made of.
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
    // Where throughput falls along the ladder, areas are taken off, and the ends may change places.
    let holds = |value: Option<f64>, low: Option<f64>, high: Option<f64>| match (value, low, high) {
        (Some(value), Some(low), Some(high)) => low <= value && value <= high,
        _ => true,
    };
    let sound = holds(origin, low.origin, high.origin) && holds(span, low.span, high.span);
    sound.then_some([low, high])
}

fn intervals(
    known: &Known<'_>,
    uncertainty: &mut BTreeMap<String, Uncertainty>,
) -> Option<TimeIntervals> {
    if !known.has_bounds() {
        return None;
    }
    let mut keep = |figure: &str, parts: Option<(Uncertainty, [f64; 2])>| {
        let (parts, interval) = parts?;
        if ["mean", "p50", "p99"].contains(&figure) {
            uncertainty.insert(format!("{}_{figure}_ns", known.name), parts);
        }
        Some(interval)
    };
    let mut percentile = |name, e2| keep(name, of_percentile(known, e2));
    let percentiles = [("p50", 5_000), ("p90", 9_000), ("p95", 9_500), ("p99", 9_900)]
        .map(|(n, e2)| percentile(n, e2));
    let [p50, p90, p95, p99] = in_order(percentiles);
    Some(TimeIntervals { mean: keep("mean", of_mean(known)), p50, p90, p95, p99 })
}

/// A percentile is no less than one below it: where that one must lie, it must too.
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
/// generator's own in them; of the time to first output its lower bound was recorded. Where output
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
) -> Option<Known<'a>> {
    let measured = kind.of(total)?;
    let low = match kind {
        TimeKind::FirstOutput => TimeKind::FirstOutputLow.of(total)?,
        TimeKind::FirstVisible if TimeKind::FirstOutput.of(total) == Some(measured) => {
            TimeKind::FirstOutputLow.of(total)?
        }
        TimeKind::FirstVisible => return None,
        _ => measured,
    };
    let from_due = kind == TimeKind::FirstOutput;
    Some(Known {
        name: kind.as_str(),
        measured,
        low,
        slices: times.slices().filter_map(|(_, slice)| slice.stream(kind)).collect(),
        closed: ClientTime::of(record, total),
        exact_to_ns: censored(&record.totals)
            .filter(|_| from_due)
            .map(|censored| censored.response_exact_to_ns),
    })
}

/// Stated interval of p99.9 of a time within replies; `None` where the sample is too small for it.
pub(crate) fn stream_p999(
    record: &PointRecord,
    total: &OpTimes,
    times: &PointTimes,
    kind: TimeKind,
) -> Option<[f64; 2]> {
    let known = stream(record, total, times, kind)?;
    of_percentile(&known, 9_990).filter(|_| known.has_bounds()).map(|(_, interval)| interval)
}

/// Stated interval of p99.9 of the response time; `None` where the sample is too small for it.
pub(crate) fn response_p999(
    record: &PointRecord,
    total: &OpTimes,
    times: &PointTimes,
) -> Option<[f64; 2]> {
    let known = response(record, total, times);
    of_percentile(&known, 9_990).filter(|_| known.has_bounds()).map(|(_, interval)| interval)
}

fn of_mean(known: &Known<'_>) -> Option<(Uncertainty, [f64; 2])> {
    let Chance { below, above } = chance_of_mean(&known.slices)?;
    if known.exact_to_ns.is_some() {
        return None;
    }
    let value = known.measured.mean();
    let uncertainty = Uncertainty {
        value,
        generator: (value - known.low.mean() * known.queue_ratio()).max(0.0),
        sample_below: below,
        sample_above: above,
        other_runs: value * runs_apart(known.closed),
        resolution: value * RESOLUTION_RATIO,
    };
    let Uncertainty { generator, other_runs, resolution, .. } = uncertainty;
    let low = value - generator - below.hypot(other_runs) - resolution;
    Some((uncertainty, [low.max(0.0), value + above.hypot(other_runs) + resolution]))
}

fn of_percentile(known: &Known<'_>, percentile_e2: u32) -> Option<(Uncertainty, [f64; 2])> {
    let is_exact = |ns: f64| known.exact_to_ns.is_none_or(|exact_to| ns <= exact_to as f64);
    let value = percentile(known.measured, percentile_e2)? as f64;
    if !is_exact(value) {
        return None;
    }
    let share = f64::from(percentile_e2) / 10_000.0;
    let Chance { below, above } = chance_of_share(&known.slices, known.measured, share)?;
    let at = |times: &Times, share: f64| times.value_at_quantile(share.clamp(0.0, 1.0)) as f64;
    let beyond = 1.0 - share;
    // Bursts of slow ops are few, and their number is not spread evenly about what was seen: there
    // may be more of them by the factor that there may be fewer.
    let shifted = |by: f64| share / (share + beyond * (by / (share * beyond)).exp());
    let lowest = at(known.low, shifted(below));
    let highest = match above / beyond {
        _ if share <= 0.5 => at(known.measured, shifted(-above)),
        seen if seen < TAIL_SEEN => at(known.measured, share + above),
        missing => at(known.measured, share + above)
            .max(value + tail_scale(known.measured, share) * reach(missing)),
    };
    let without_generator = (at(known.low, share) * known.queue_ratio()).min(value);
    let highest = highest.max(value);
    let lowest = (lowest * known.queue_ratio()).min(without_generator);
    let other_runs = value * runs_apart(known.closed);
    let resolution = value * RESOLUTION_RATIO;
    let uncertainty = Uncertainty {
        value,
        generator: value - without_generator,
        sample_below: (value - at(known.measured, share - below)).max(0.0),
        sample_above: highest - value,
        other_runs,
        resolution,
    };
    let low = without_generator - (without_generator - lowest).hypot(other_runs) - resolution;
    let high = value + (highest - value).hypot(other_runs) + resolution;
    Some((uncertainty, [low.max(0.0), high]))
}

/// By how many scales a tail goes on when this part of it is missing: as an exponential one up to nine
/// tenths, from there one more for each whole tail.
fn reach(missing: f64) -> f64 {
    const MOST: f64 = 0.9;
    -(1.0 - missing.min(MOST)).ln() + (missing - MOST).max(0.0)
}

/// Scale of an exponential tail up to a percentile: the most of those through it and the percentile
/// that five times as many ops lie beyond, and through that one and the median. All the same where
/// the tail is exponential, as that of a queue is; what lies beyond, such as one long pause, does not
/// count.
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
    parts: &[(f64, f64)],
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
    let exact = matches!(record.load, Load::Open { .. }) && load_was_held(suite, record);
    let chance = match exact {
        // The schedule says how many ops there were, and all were done.
        true => Chance::default(),
        false => {
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
