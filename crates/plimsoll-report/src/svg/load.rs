//! Throughput, response time and the generator's health over load.

use plimsoll_model::result::{PointResult, RunResult, TimeSummary};
use plimsoll_model::suite::Metric;

use super::Frame;
use super::bounds::{Bounds, peak};
use super::stacked::{Dot, Guide, Panel, Series, Stack, draw};
use super::strip::{Cell, cells};
use crate::table::Mark;
use crate::text::{TimeUnit, axis_name, number, percent, three_digits};
use crate::view::{has_limits, metric, rate, rate_unit};

/// An axis ends at this multiple of the largest value of a counted point, so that one overloaded
/// point does not press all others flat; what lies beyond is marked and labelled.
const HEADROOM: f64 = 1.5;
/// A response cap further than this multiple of the largest counted mean is left out, for the same
/// reason.
const CAP_SHOWN_MAX: f64 = 6.0;
pub(super) const CAP: &str = "cap: not counted above";

/// One point makes no curve over load; the tables are enough for it.
const POINTS_MIN: usize = 2;

/// Of the panels on the generator.
const LOW_HEIGHT: f64 = 96.0;

/// Achieved rate over load, with what limited each point.
pub(crate) fn throughput_chart(frame: Frame<'_>, run: &RunResult) -> Option<String> {
    panels_chart(frame, run, ("Throughput over load", vec![throughput(run)?]), strip(run))
}

/// Response times over load, on a logarithmic scale.
pub(crate) fn response_chart(frame: Frame<'_>, run: &RunResult) -> Option<String> {
    panels_chart(frame, run, ("Response time over load", vec![response(run)?]), None)
}

/// Both in one drawing.
pub(crate) fn load_chart(frame: Frame<'_>, run: &RunResult) -> Option<String> {
    let panels = [throughput(run), response(run)].into_iter().flatten().collect();
    let title = "Throughput and response time over load";
    panels_chart(frame, run, (title, panels), strip(run))
}

fn strip(run: &RunResult) -> Option<(&'static str, Vec<Cell>)> {
    has_limits(run).then(|| ("What limited each load point", cells(run)))
}

fn panels_chart(
    frame: Frame<'_>,
    run: &RunResult,
    (title, panels): (&str, Vec<Panel>),
    strip: Option<(&'static str, Vec<Cell>)>,
) -> Option<String> {
    let count = |mark| run.points.iter().filter(|p| Mark::of_point(p) == mark).count();
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
    Some(draw(frame, &Stack { strip, ..stack(run, title, &desc, panels)? }))
}

/// Busy share of the busiest worker and lag of sending over load.
pub(crate) fn generator_chart(frame: Frame<'_>, run: &RunResult) -> Option<String> {
    let panels = [busy(run), lag(run)].into_iter().flatten().collect();
    let desc = "Dashed lines are the limits beyond which the generator, not the target, may have \
                shaped the figures.";
    chart_by_load(frame, run, "Health of the generator", desc, panels)
}

/// Panels on the axis of load; nothing without panels or for a single point.
pub(super) fn chart_by_load(
    frame: Frame<'_>,
    run: &RunResult,
    title: &str,
    desc: &str,
    panels: Vec<Panel>,
) -> Option<String> {
    Some(draw(frame, &stack(run, title, desc, panels)?))
}

pub(super) fn stack(run: &RunResult, title: &str, desc: &str, panels: Vec<Panel>) -> Option<Stack> {
    (!panels.is_empty() && run.points.len() >= POINTS_MIN).then(|| Stack {
        title: title.to_owned(),
        desc: desc.to_owned(),
        axis: axis_name(&run.axis),
        loads: run.points.iter().map(|p| p.requested).filter(|x| x.is_finite()).collect(),
        panels,
        strip: None,
    })
}

fn throughput(run: &RunResult) -> Option<Panel> {
    let (unit, counts_bytes) = (rate_unit(run), metric(run) == Metric::Bytes);
    let text = |value| if counts_bytes { three_digits(value) } else { number(Some(value)) };
    let dots = dots(run, rate(run), |value| format!("{} {unit}", text(value)));
    let panel = Panel::single(format!("Throughput, {unit}"), "achieved", dots)?;
    let same_unit = !counts_bytes && run.axis.unit == unit;
    Some(Panel {
        top: panel.top.max(if same_unit { largest_load(run) } else { 0.0 }),
        guides: Vec::from_iter(same_unit.then_some(Guide::Diagonal("achieved = requested"))),
        peak: peak(run),
        bounds: Bounds::from_run(run),
        ..panel
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
    Panel::log(quantity, series)
}

pub(super) fn mean(point: &PointResult) -> Option<f64> {
    point.response_ns.and_then(|t| t.mean).or_else(|| point.service_ns?.mean)
}

fn nanos(value: f64, unit: TimeUnit) -> u64 {
    (value / unit.convert(1.0)).round() as u64
}

fn busy(run: &RunResult) -> Option<Panel> {
    let value = |p: &PointResult| p.generator.cpu_busy_ratio_max.map(|r| r * 100.0);
    let dots = dots(run, value, |v| percent(Some(v / 100.0)));
    let limit = lowest(run, |p| p.generator.cpu_busy_ratio_limit);
    Some(Panel {
        height: LOW_HEIGHT,
        top: 100.0,
        guides: Vec::from_iter(limit.map(|limit| Guide::Level(limit * 100.0, "limit"))),
        ..Panel::single("Busiest worker, % of one core".to_owned(), "busy", dots)?
    })
}

fn lag(run: &RunResult) -> Option<Panel> {
    let lag = |p: &PointResult| p.generator.lateness_ns?.p99.map(|n| n as f64);
    let limit = lowest(run, |p| p.generator.lateness_limit_ns.map(|n| n as f64));
    let cap = cap(run, lag).unwrap_or(0.0).max(limit.unwrap_or(0.0) * 1.25);
    let unit = TimeUnit::for_largest(cap);
    let text = |v: f64| plimsoll_model::units::Nanos(nanos(v, unit)).to_string();
    let dots = dots(run, |p| Some(unit.convert(lag(p)?)), text);
    let title = format!("Send lag p99, own part, {}", unit.name());
    Some(Panel {
        height: LOW_HEIGHT,
        top: unit.convert(cap),
        guides: Vec::from_iter(limit.map(|limit| Guide::Level(unit.convert(limit), "limit"))),
        ..Panel::single(title, "p99", dots)?
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
    Some(Dot { x, y, mark: Mark::of_point(point), position: point.position, text: text(y) })
}

pub(super) fn cap(run: &RunResult, value: impl Fn(&PointResult) -> Option<f64>) -> Option<f64> {
    let counted = run.points.iter().filter(|p| p.counts()).filter_map(value);
    counted.filter(|v| *v > 0.0).reduce(f64::max).map(|v| v * HEADROOM)
}

fn largest_load(run: &RunResult) -> f64 {
    run.points.iter().map(|p| p.requested).filter(|x| x.is_finite()).fold(0.0, f64::max)
}
