//! Response time over throughput, as the source reports draw it: the line follows the ladder, and
//! bends back where more load brings less.

use plimsoll_model::result::{PointResult, RunResult};
use plimsoll_model::units::Nanos;

use super::Frame;
use super::load::{CAP, cap, dot, is_near, mean, stack};
use super::stacked::{Dot, Guide, Panel, Stack, draw};
use crate::text::TimeUnit;
use crate::view::{caps, rate, rate_unit};

/// Two points make a line and do not show the shape of a curve.
const POINTS_MIN: usize = 3;

/// Mean response time over throughput, of points that have both.
pub(crate) fn response_curve_chart(frame: Frame<'_>, run: &RunResult) -> Option<String> {
    let time = time(run);
    let counted = cap(run, time).or_else(|| run.points.iter().filter_map(time).reduce(f64::max))?;
    let cap_ms = run.suite.as_ref().and_then(|suite| suite.response_cap_ms);
    let near_cap = cap_ms.map(|ms| ms * 1e6).filter(|cap| is_near(*cap, counted));
    let top = near_cap.map_or(counted, |cap| counted.max(cap * 1.1));
    let unit = TimeUnit::for_largest(top);
    let text = |v: f64| Nanos((v / unit.convert(1.0)).round() as u64).to_string();
    let rate = rate(run);
    let dots: Vec<Dot> = run
        .points
        .iter()
        .filter_map(|p| dot(p, rate(p), time(p).map(|nanos| unit.convert(nanos)), text))
        .collect();
    if dots.len() < POINTS_MIN {
        return None;
    }
    let quantity = if caps(run) || foreign_service(run) { "service" } else { "response" };
    let loads = dots.iter().map(|dot| dot.x).collect();
    let panel = Panel::single(format!("Mean {quantity} time, {}", unit.name()), "mean", dots)?;
    let cap_top = near_cap.map_or(0.0, |cap| unit.convert(cap * 1.1));
    let panel = Panel {
        top: panel.top.min(unit.convert(counted)).max(cap_top),
        guides: Vec::from_iter(near_cap.map(|cap| Guide::Level(unit.convert(cap), CAP))),
        ..panel
    };
    let desc = "The line joins the load points in the order of the ladder. The table of load \
                points holds the same figures.";
    let stack = stack(run, "Response time over throughput", desc, vec![panel])?;
    let axis = format!("throughput, {}", rate_unit(run));
    Some(draw(frame, &Stack { axis, loads, ..stack }))
}

/// The mean that the suite caps, in nanoseconds.
fn time(run: &RunResult) -> fn(&PointResult) -> Option<f64> {
    if caps(run) { |p| p.service_ns?.mean } else { mean }
}

fn foreign_service(run: &RunResult) -> bool {
    run.points.iter().all(|p| p.response_ns.is_none())
}
