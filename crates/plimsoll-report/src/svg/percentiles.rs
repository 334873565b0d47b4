//! Response time over percentile, on a scale of nines: each step right is ten times rarer.

use plimsoll_model::result::{PointResult, RunResult};
use plimsoll_model::units::Nanos;

use super::Frame;
use super::draw::{Anchor, Drawing};
use super::scale::{Scale, log_ticks, nines, spread, tick_room, time_tick_text};
use super::stacked::{log_scale, named, upright};
use crate::text::load;
use crate::view::selected_points;

const CLASSES: [&str; 3] = ["s1", "s2", "s3"];
const HEIGHT: f64 = 240.0;
const TOP: f64 = 26.0;
const NAME_DIGIT_WIDTH: f64 = 8.6; // of 13 px bold type

/// One line per selected point.
pub(crate) fn percentile_chart(frame: Frame<'_>, run: &RunResult) -> Option<String> {
    let points = selected_points(run);
    let lines: Vec<Vec<(f64, u64)>> = points.iter().map(|p| measured(p)).collect();
    let all = || lines.iter().flatten();
    let nanos = || all().map(|(_, nanos)| *nanos);
    let (shortest, slowest) = (nanos().min()?, nanos().max()?);
    let rarest = all().map(|(p, _)| nines(*p)).fold(1.0, f64::max);
    let y_ticks = named(log_ticks(shortest as f64, slowest as f64), time_tick_text);
    let room = if frame.is_narrow() { 36.0 } else { 60.0 };
    let longest = points.iter().map(|p| name(run, p).chars().count()).max().unwrap_or(0);
    let margin = (longest as f64 * NAME_DIGIT_WIDTH + 12.0).min(frame.width / 3.0);
    let (left, right) = (tick_room(&y_ticks).max(room), frame.width - margin);
    let bottom = TOP + HEIGHT;
    let x = Scale::new(rarest, left, right);
    let y = log_scale(&y_ticks, bottom, TOP);

    let mut drawing = Drawing::new();
    let title = "Response time by percentile, log scale";
    drawing.text("panel", (0.0, TOP - 11.0), Anchor::Start, title);
    upright(&mut drawing, (y, &y_ticks), (left, right));
    draw_percentiles(&mut drawing, x, bottom);
    let mut ends = Vec::new();
    for ((point, line), class) in points.iter().zip(&lines).zip(CLASSES) {
        let pixels: Vec<_> = line.iter().map(|(p, n)| (x.at(nines(*p)), y.at(*n as f64))).collect();
        drawing.polyline(&format!("curve {class}"), &pixels);
        for ((p, n), at) in line.iter().zip(&pixels) {
            let tip = format!("point {}: p{p} {}", point.position, Nanos(*n));
            drawing.dot(&format!("dot {class}"), *at, 2.0, &tip);
        }
        ends.extend(pixels.last().map(|at| (*point, class, *at)));
    }
    label(&mut drawing, run, &ends, bottom);
    let name = "percentile (each step right is rarer)";
    drawing.text("axis-name", (right, bottom + 36.0), Anchor::End, name);
    let desc = "One line per selected load point. The table of load points holds the percentiles.";
    let size = (frame.width, bottom + 44.0);
    Some(drawing.finish(frame.id, size, "Response time over percentile", desc))
}

/// The percentile 100 has no place on a scale of nines; the longest time is in the tables.
fn measured(point: &PointResult) -> Vec<(f64, u64)> {
    let on_scale = |p: &&(f64, u64)| p.0 >= 0.0 && p.0 < 100.0;
    point.response_percentiles.iter().filter(on_scale).copied().collect()
}

fn draw_percentiles(drawing: &mut Drawing, x: Scale, bottom: f64) {
    for percentile in [0.0, 50.0, 90.0, 99.0, 99.9, 99.99, 99.999, 99.9999] {
        if nines(percentile) <= x.max() + 1e-9 {
            let at = x.at(nines(percentile));
            drawing.line("base", (at, bottom), (at, bottom + 4.0));
            let text = if percentile == 0.0 { "0".to_owned() } else { format!("{percentile}") };
            drawing.text("tick", (at, bottom + 17.0), Anchor::Middle, &text);
        }
    }
}

fn label(
    drawing: &mut Drawing,
    run: &RunResult,
    ends: &[(&PointResult, &'static str, (f64, f64))],
    bottom: f64,
) {
    let wanted: Vec<f64> = ends.iter().map(|(_, _, at)| at.1 + 4.0).collect();
    let placed = spread(&wanted, 14.0, TOP + 4.0, bottom);
    for ((point, class, at), y) in ends.iter().zip(placed) {
        let at = (at.0 + 8.0, y);
        drawing.text(&format!("name {class}"), at, Anchor::Start, &name(run, point));
    }
}

fn name(run: &RunResult, point: &PointResult) -> String {
    load(point.requested, &run.axis)
}
