//! Throughput, response time and the generator's health over load.

use plimsoll_model::result::{PointResult, RunResult, TimeSummary};
use plimsoll_model::suite::Metric;
use plimsoll_model::units::BytesPerSec;

use super::Frame;
use super::bounds::{Bounds, peak};
use super::stacked::{Dot, Guide, Panel, Series, Stack, draw};
use super::strip::{Cell, cells};
use crate::table::Mark;
use crate::text::{TimeUnit, axis_name, number, percent, three_digits};
use crate::view::{has_limits, metric, ops_unit};

/// An axis ends at this multiple of the largest value of a counted point, so that one overloaded
/// point does not press all others flat; what lies beyond is marked and labelled.
const HEADROOM: f64 = 1.5;
/// A response cap further than this multiple of the largest counted mean is left out, for the same
/// reason.
const CAP_SHOWN_MAX: f64 = 6.0;
pub(super) const CAP: &str = "cap: not counted above";

/// One point has no course over load; the tables say what there is to say of it.
const POINTS_MIN: usize = 2;

const STRIP: &str = "What limited each load point";

/// Achieved rate over load, with what limited each point.
pub(crate) fn throughput_chart(frame: Frame<'_>, run: &RunResult) -> Option<String> {
    let strip = has_limits(run).then(|| (STRIP, cells(run)));
    over_load(frame, run, ("Throughput over load", vec![throughput(run)?], strip))
}

/// Response times over load, on a logarithmic scale.
pub(crate) fn response_chart(frame: Frame<'_>, run: &RunResult) -> Option<String> {
    over_load(frame, run, ("Response time over load", vec![response(run)?], None))
}

/// Both in one drawing.
pub(crate) fn load_chart(frame: Frame<'_>, run: &RunResult) -> Option<String> {
    let panels = [throughput(run), response(run)].into_iter().flatten().collect();
    let strip = has_limits(run).then(|| (STRIP, cells(run)));
    over_load(frame, run, ("Throughput and response time over load", panels, strip))
}

type Strip = Option<(&'static str, Vec<Cell>)>;

fn over_load(
    frame: Frame<'_>,
    run: &RunResult,
    (title, panels, strip): (&str, Vec<Panel>, Strip),
) -> Option<String> {
    if panels.is_empty() || run.points.len() < POINTS_MIN {
        return None;
    }
    let count = |mark| run.points.iter().filter(|p| Mark::of(p) == mark).count();
    let rings = match count(Mark::NotCounted) {
        0 => String::new(),
        n => format!("; {n} not counted and drawn as rings"),
    };
    let desc = format!(
        "{} load points, {} of them invalid and drawn as crosses{rings}. The table of load points \
         holds the same figures.",
        run.points.len(),
        count(Mark::Invalid),
    );
    Some(draw(frame, &Stack { title: title.to_owned(), panels, strip, ..base(run, desc) }))
}

/// Busy share of the busiest worker and lag of sending over load.
pub(crate) fn generator_chart(frame: Frame<'_>, run: &RunResult) -> Option<String> {
    let panels: Vec<Panel> = [busy(run), lag(run)].into_iter().flatten().collect();
    if panels.is_empty() || run.points.len() < POINTS_MIN {
        return None;
    }
    let desc = "Dashed lines are the limits beyond which the generator, not the target, may have \
                shaped the figures.";
    let stack = Stack { title: "Health of the generator".to_owned(), ..base(run, desc.to_owned()) };
    Some(draw(frame, &Stack { panels, ..stack }))
}

/// Without title and panels.
pub(super) fn base(run: &RunResult, desc: String) -> Stack {
    Stack {
        title: String::new(),
        desc,
        axis: axis_name(&run.axis),
        loads: run.points.iter().map(|p| p.requested).filter(|x| x.is_finite()).collect(),
        panels: Vec::new(),
        strip: None,
    }
}

fn throughput(run: &RunResult) -> Option<Panel> {
    if metric(run) == Metric::Bytes {
        return bytes_moved(run);
    }
    let unit = ops_unit(run);
    let dots = dots(run, |p| p.achieved_ops_per_s, |v| format!("{} {unit}", number(Some(v))));
    let same_unit = run.axis.unit == unit;
    let top = largest(&dots).max(if same_unit { largest_load(run) } else { 0.0 });
    (!dots.is_empty()).then(|| Panel {
        title: format!("Throughput, {unit}"),
        height: 240.0,
        top,
        series: vec![Series { class: "s1", label: "achieved".to_owned(), dots }],
        guides: Vec::from_iter(same_unit.then_some(Guide::Diagonal("achieved = requested"))),
        peak: peak(run),
        bounds: Bounds::of(run),
        ..Panel::default()
    })
}

/// What a suite of file throughput is about.
fn bytes_moved(run: &RunResult) -> Option<Panel> {
    let mib_per_s = |p: &PointResult| Some(BytesPerSec(p.achieved_bytes_per_s?).mib_per_s());
    let dots = dots(run, mib_per_s, |v| format!("{} MiB/s", three_digits(v)));
    (!dots.is_empty()).then(|| Panel {
        title: "Throughput, MiB/s".to_owned(),
        height: 240.0,
        top: largest(&dots),
        series: vec![Series { class: "s1", label: "achieved".to_owned(), dots }],
        peak: peak(run),
        bounds: Bounds::of(run),
        ..Panel::default()
    })
}

/// A response cap is near what the counted points need, the axis of which ends at `counted`.
pub(super) fn is_near(cap: f64, counted: f64) -> bool {
    cap <= counted / HEADROOM * CAP_SHOWN_MAX
}

type Pick = fn(&TimeSummary) -> Option<u64>;

fn response(run: &RunResult) -> Option<Panel> {
    let picks: [(&'static str, &str, Pick); 3] =
        [("s1", "p50", |t| t.p50), ("s2", "p95", |t| t.p95), ("s3", "p99", |t| t.p99)];
    let text = |v: f64| plimsoll_model::units::Nanos(v.round() as u64).to_string();
    let above_zero = |value: Option<f64>| value.filter(|value| *value > 0.0);
    let mut series: Vec<Series> = picks
        .into_iter()
        .map(|(class, label, pick)| Series {
            class,
            label: label.to_owned(),
            dots: dots(run, |p| above_zero(Some(pick(&p.response_ns?)? as f64)), text),
        })
        .filter(|s| !s.dots.is_empty())
        .collect();
    let mut quantity = "Response time";
    if series.is_empty() {
        if run.points.iter().all(|p| p.response_ns.is_none()) {
            quantity = "Service time";
        }
        let dots = dots(run, |p| above_zero(mean(p)), text);
        series.push(Series { class: "s1", label: "mean".to_owned(), dots });
    }
    let times = || series.iter().flat_map(|s| &s.dots).map(|dot| dot.y);
    let (floor, top) = (times().reduce(f64::min)?, times().reduce(f64::max)?);
    Some(Panel {
        title: format!("{quantity}, log scale"),
        height: 240.0,
        top,
        floor_ns: Some(floor),
        series,
        ..Panel::default()
    })
}

pub(super) fn mean(point: &PointResult) -> Option<f64> {
    point.response_ns.and_then(|t| t.mean).or_else(|| point.service_ns?.mean)
}

fn nanos(value: f64, unit: TimeUnit) -> u64 {
    (value / unit.of(1.0)).round() as u64
}

fn busy(run: &RunResult) -> Option<Panel> {
    let value = |p: &PointResult| p.generator.cpu_busy_ratio_max.map(|r| r * 100.0);
    let dots = dots(run, value, |v| percent(Some(v / 100.0)));
    (!dots.is_empty()).then(|| Panel {
        title: "Busiest worker, % of one core".to_owned(),
        height: 96.0,
        top: 100.0,
        series: vec![Series { class: "s1", label: "busy".to_owned(), dots }],
        guides: lowest(run, |p| p.generator.cpu_busy_ratio_limit)
            .map(|limit| Guide::Level(limit * 100.0, "limit"))
            .into_iter()
            .collect(),
        ..Panel::default()
    })
}

fn lag(run: &RunResult) -> Option<Panel> {
    let lag = |p: &PointResult| p.generator.lateness_ns?.p99.map(|n| n as f64);
    let limit = lowest(run, |p| p.generator.lateness_limit_ns.map(|n| n as f64));
    let cap = cap(run, lag).unwrap_or(0.0).max(limit.unwrap_or(0.0) * 1.25);
    let unit = TimeUnit::for_largest(cap);
    let text = |v: f64| plimsoll_model::units::Nanos(nanos(v, unit)).to_string();
    let dots = dots(run, |p| Some(unit.of(lag(p)?)), text);
    (!dots.is_empty()).then(|| Panel {
        title: format!("Send lag p99, own part, {}", unit.name()),
        height: 96.0,
        top: unit.of(cap),
        series: vec![Series { class: "s1", label: "p99".to_owned(), dots }],
        guides: limit.map(|limit| Guide::Level(unit.of(limit), "limit")).into_iter().collect(),
        ..Panel::default()
    })
}

/// The lowest limit of any point: one line for all of them.
fn lowest(run: &RunResult, limit: impl Fn(&PointResult) -> Option<f64>) -> Option<f64> {
    run.points.iter().filter_map(limit).reduce(f64::min)
}

pub(super) fn dots(
    run: &RunResult,
    value: impl Fn(&PointResult) -> Option<f64>,
    text: impl Fn(f64) -> String,
) -> Vec<Dot> {
    let dot = |p: &PointResult| dot(p, Some(p.requested), value(p), &text);
    run.points.iter().filter_map(dot).collect()
}

/// Of a load point that has both values.
pub(super) fn dot(
    point: &PointResult,
    x: Option<f64>,
    y: Option<f64>,
    text: impl Fn(f64) -> String,
) -> Option<Dot> {
    let [x, y] = [x, y].map(|value| value.filter(|value| value.is_finite()));
    let (x, y) = x.zip(y)?;
    Some(Dot { x, y, mark: Mark::of(point), position: point.position, text: text(y) })
}

pub(super) fn cap(run: &RunResult, value: impl Fn(&PointResult) -> Option<f64>) -> Option<f64> {
    let counted = run.points.iter().filter(|p| p.counts()).filter_map(value);
    counted.filter(|v| *v > 0.0).reduce(f64::max).map(|v| v * HEADROOM)
}

pub(super) fn largest(dots: &[Dot]) -> f64 {
    dots.iter().map(|d| d.y).fold(0.0, f64::max)
}

fn largest_load(run: &RunResult) -> f64 {
    run.points.iter().map(|p| p.requested).filter(|x| x.is_finite()).fold(0.0, f64::max)
}
