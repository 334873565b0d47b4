//! Uncertainty intervals: how far a figure of this run is open because of the generator's own
//! delays, the sample and the histogram. How far other runs differ is not known from one.
//!
//! *Below*, the generator's part: each op was also recorded without receive lag and without the
//! largest lateness in flight with it, so that distribution bounds the true one from below. The
//! sample's part goes to both sides ([`crate::standard_error`]). An end that the sample does not
//! show is infinite, and `null` in `result.json`.
//!
//! A limit on lateness instead would make healthy runs invalid, and would pass a starved closed
//! load, because nothing is late in a closed loop.

mod figure;
mod throughput;

use std::collections::BTreeMap;

use plimsoll_model::capacity::Figure;
use plimsoll_model::event::{OpTimes, PointRecord, TimeKind};
use plimsoll_model::finding::Rule;
use plimsoll_model::gate::GateFigure;
use plimsoll_model::reported::{ReportedFigure, WIDE_RATIO};
use plimsoll_model::result::{OverallResponse, PointResult, Summary, TimeIntervals, Uncertainty};
use plimsoll_model::suite::Suite;
use plimsoll_model::units::Nanos;

use crate::curve::{CurvePoint, overall_response};
use crate::health::ClientTime;
use crate::point::{censored, throughput};
use crate::raw::PointTimes;
use crate::score::overall_score;
use figure::Distribution;
use throughput::{achieved, degrees_max};

pub(crate) use figure::{FigureInterval, interval_of_share};
pub(crate) use throughput::{Cycles, OPS_PER_DEGREE, Rate, by_slice, span};

/// The intervals of a point.
#[derive(Debug, Default)]
pub(crate) struct PointIntervals {
    pub(crate) response: Option<TimeIntervals>,
    pub(crate) service: Option<TimeIntervals>,
    pub(crate) achieved: Option<[f64; 2]>,
    /// By name of the figure.
    pub(crate) uncertainty: BTreeMap<String, Uncertainty>,
    /// Of figures of the response and the service time.
    pub(crate) figures: Vec<(GateFigure, FigureInterval)>,
}

impl PointIntervals {
    /// Of that figure.
    pub(crate) fn find(&self, figure: &GateFigure) -> Option<&FigureInterval> {
        self.figures.iter().find(|(of, _)| of == figure).map(|(_, interval)| interval)
    }
}

/// Intervals of a point whose `total` is merged over window and ops.
pub(crate) fn state(
    suite: &Suite,
    record: &PointRecord,
    total: &OpTimes,
    times: &PointTimes,
) -> PointIntervals {
    let censored = censored(&record.totals);
    let response = Distribution {
        name: "response",
        figure: Some(GateFigure::Response),
        measured: &total.response,
        low: &total.response_low,
        slices: times.slices().map(|(_, slice)| &slice.response).collect(),
        closed: ClientTime::from_record(record, total),
        degrees_max: degrees_max(record, total),
        exact_to_ns: censored.map(|censored| censored.response_exact_to_ns),
    };
    let service = Distribution {
        name: "service",
        figure: Some(GateFigure::Service),
        measured: &total.service,
        low: &total.service_low,
        slices: times.slices().map(|(_, slice)| &slice.service).collect(),
        closed: response.closed,
        degrees_max: response.degrees_max,
        exact_to_ns: censored.and_then(|censored| censored.service_exact_to_ns),
    };
    let mut result = PointIntervals::default();
    result.response = intervals(&response, &mut result);
    result.service = intervals(&service, &mut result);
    if let Some(uncertainty) = achieved(suite, record, total, times) {
        result.achieved = Some(span(&uncertainty));
        // The generator's part of a throughput lies above it, not below.
        result.uncertainty.insert("achieved_ops_per_s".to_owned(), uncertainty);
    }
    result
}

/// The widest interval of the percentiles that reports show, if one is wide.
pub(crate) fn wide_interval(point: &PointResult, intervals: &PointIntervals) -> Option<Rule> {
    let shown = [Figure::P50, Figure::P95, Figure::P99];
    let wide = shown.into_iter().filter_map(|figure| {
        let reported = ReportedFigure::response(point, figure)?;
        Some((reported.wide_ratio()?, figure, reported))
    });
    let (_, figure, reported) = wide.max_by(|a, b| a.0.total_cmp(&b.0))?;
    let [low_ns, high_ns] = reported.interval?;
    let of_figure = intervals.find(&GateFigure::Response(figure));
    let windows = of_figure.and_then(|of_figure| of_figure.windows_needed(WIDE_RATIO));
    let needed_s = point.seconds.zip(windows).map(|(seconds, windows)| (seconds * windows).ceil());
    Some(Rule::WideInterval {
        figure: figure.as_str().to_owned(),
        value_ns: Nanos(reported.value as u64),
        low_ns: Nanos(low_ns as u64),
        high_ns: high_ns.is_finite().then_some(Nanos(high_ns as u64)),
        limit_ratio: WIDE_RATIO,
        window_needed_ns: needed_s.filter(|it| it.is_finite()).map(Nanos::from_secs_f64),
    })
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
    result: &mut PointIntervals,
) -> Option<TimeIntervals> {
    if !distribution.has_bounds() {
        return None;
    }
    let mut keep = |figure: Figure, of_figure: Option<FigureInterval>| {
        let of_figure = of_figure?;
        if matches!(figure, Figure::Mean | Figure::P50 | Figure::P99) {
            let key = format!("{}_{}_ns", distribution.name, figure.as_str());
            result.uncertainty.insert(key, of_figure.parts);
        }
        result.figures.extend(distribution.figure.map(|of| (of(figure), of_figure)));
        Some(of_figure.interval)
    };
    let [p50, p90, p95, p99, p999] = distribution.percentiles();
    let percentiles = [
        keep(Figure::P50, p50),
        keep(Figure::P90, p90),
        keep(Figure::P95, p95),
        keep(Figure::P99, p99),
        keep(Figure::P999, p999),
    ];
    let [p50, p90, p95, p99, p999] = in_order(percentiles);
    let mean = keep(Figure::Mean, distribution.mean());
    Some(TimeIntervals { mean, p50, p90, p95, p99, p999 })
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
    intervals(&stream(record, total, times, kind)?, &mut PointIntervals::default())
}

/// Intervals of the times of a page, whose `times` are those of its op. Delays of the generator
/// within it are not known apart.
pub(crate) fn page_intervals(
    record: &PointRecord,
    total: &OpTimes,
    times: &PointTimes,
    op: usize,
) -> Option<TimeIntervals> {
    let measured = TimeKind::Page.times_in(times.window().get(op)?)?;
    let distribution = Distribution {
        name: TimeKind::Page.as_str(),
        figure: None,
        measured,
        low: measured,
        slices: times.slices().filter_map(|(_, slice)| slice.page(op)).collect(),
        closed: ClientTime::from_record(record, total),
        degrees_max: degrees_max(record, total),
        exact_to_ns: None,
    };
    intervals(&distribution, &mut PointIntervals::default())
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
        figure: None,
        measured,
        low,
        slices: times.slices().filter_map(|(_, slice)| slice.stream(kind)).collect(),
        closed: ClientTime::from_record(record, total),
        degrees_max: degrees_max(record, total),
        exact_to_ns: censored(&record.totals)
            .filter(|_| from_due)
            .map(|censored| censored.response_exact_to_ns),
    })
}

#[cfg(test)]
mod tests;
