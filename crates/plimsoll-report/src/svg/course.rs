//! Response time over throughput, as the source reports draw it: the line follows the ladder, and
//! bends back where more load brings less.

use plimsoll_model::result::{PointResult, RunResult};
use plimsoll_model::suite::Metric;
use plimsoll_model::units::{BytesPerSec, Nanos};

use super::Frame;
use super::load::{CAP, base, cap, dot, is_near, largest, mean};
use super::stacked::{Dot, Guide, Panel, Series, Stack, draw};
use crate::text::TimeUnit;
use crate::view::{caps, metric, ops_unit};

/// Two points make a line, and tell nothing of its course.
const POINTS_MIN: usize = 3;

/// Mean response time over throughput, of points that have both.
pub(crate) fn course_chart(frame: Frame<'_>, run: &RunResult) -> Option<String> {
    let time = time(run);
    let counted = cap(run, time).or_else(|| run.points.iter().filter_map(time).reduce(f64::max))?;
    let cap_ms = run.suite.as_ref().and_then(|suite| suite.response_cap_ms);
    let near_cap = cap_ms.map(|ms| ms * 1e6).filter(|cap| is_near(*cap, counted));
    let top = near_cap.map_or(counted, |cap| counted.max(cap * 1.1));
    let unit = TimeUnit::for_largest(top);
    let text = |v: f64| Nanos((v / unit.of(1.0)).round() as u64).to_string();
    let rate = rate(run);
    let dots: Vec<Dot> = run
        .points
        .iter()
        .filter_map(|p| dot(p, rate(p), time(p).map(|nanos| unit.of(nanos)), text))
        .collect();
    if dots.len() < POINTS_MIN {
        return None;
    }
    let quantity = if caps(run) || foreign_service(run) { "service" } else { "response" };
    let rate_unit = if metric(run) == Metric::Bytes { "MiB/s" } else { ops_unit(run) };
    let panel = Panel {
        title: format!("Mean {quantity} time, {}", unit.name()),
        height: 240.0,
        top: largest(&dots)
            .min(unit.of(counted))
            .max(near_cap.map_or(0.0, |cap| unit.of(cap * 1.1))),
        series: vec![Series { class: "s1", label: "mean".to_owned(), dots }],
        guides: Vec::from_iter(near_cap.map(|cap| Guide::Level(unit.of(cap), CAP))),
        ..Panel::default()
    };
    let loads = panel.series[0].dots.iter().map(|dot| dot.x).collect();
    let desc = "The line joins the load points in the order of the ladder. The table of load \
                points holds the same figures.";
    Some(draw(
        frame,
        &Stack {
            title: "Response time over throughput".to_owned(),
            axis: format!("throughput, {rate_unit}"),
            loads,
            panels: vec![panel],
            ..base(run, desc.to_owned())
        },
    ))
}

/// The mean that the suite judges, in nanoseconds.
fn time(run: &RunResult) -> fn(&PointResult) -> Option<f64> {
    match caps(run) {
        true => |p| p.service_ns?.mean,
        false => mean,
    }
}

fn foreign_service(run: &RunResult) -> bool {
    run.points.iter().all(|p| p.response_ns.is_none())
}

fn rate(run: &RunResult) -> fn(&PointResult) -> Option<f64> {
    match metric(run) {
        Metric::Bytes => |p| Some(BytesPerSec(p.achieved_bytes_per_s?).mib_per_s()),
        Metric::Ops | Metric::Logons => |p| p.achieved_ops_per_s,
    }
}
