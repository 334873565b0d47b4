//! Response time over percentile, on a scale of nines: each step right is ten times rarer.

use plimsoll_model::result::{PointResult, RunResult};
use plimsoll_model::units::Nanos;

use super::Frame;
use super::draw::Anchor;
use super::plot::{Outline, PanelArea, Plot};
use super::scale::{Axis, nines, time_tick_text};
use crate::text::load;
use crate::view::selected_points;

const CLASSES: [&str; 3] = ["s1", "s2", "s3"];
/// Buckets of a histogram whose longest times are further apart have empty ones between them.
const EMPTY_BUCKETS_RATIO: f64 = 1.8;
const NAME_DIGIT_WIDTH: f64 = 8.6; // of 13 px bold type

/// One line per selected point.
pub(crate) fn percentile_chart(frame: Frame<'_>, run: &RunResult) -> Option<String> {
    let points = selected_points(run);
    let lines: Vec<Vec<(f64, u64)>> = points.iter().map(|p| measured(p)).collect();
    let all = || lines.iter().flatten();
    let nanos = || all().map(|(_, nanos)| *nanos);
    let (shortest, slowest) = (nanos().min()?, nanos().max()?);
    let rarest = all().map(|(p, _)| nines(*p)).fold(1.0, f64::max);
    let longest = points.iter().map(|p| name(run, p).chars().count()).max().unwrap_or(0);
    let margin = (longest as f64 * NAME_DIGIT_WIDTH + 12.0).min(frame.width / 3.0);
    let outline = Outline {
        title: "Response time by percentile, log scale",
        x: nines_axis(rarest),
        y: Axis::log((shortest as f64, slowest as f64), time_tick_text),
        x_name: "percentile (each step right is rarer)",
        height: 240.0,
        margins: (frame.left(), margin),
    };
    let mut plot = Plot::new(frame, &outline);
    let PanelArea { x, y, top, bottom, .. } = plot.area;
    let mut ends = Vec::new();
    for ((point, line), class) in points.iter().zip(&lines).zip(CLASSES) {
        let to_pixel = |(p, n): &(f64, u64)| (x.pixel(nines(*p)), y.pixel(*n as f64));
        let path: Vec<_> = step_path(point, line).iter().map(to_pixel).collect();
        plot.drawing.polyline(&format!("curve {class}"), &path);
        for dot @ (p, n) in line {
            let tip = format!("point {}: p{p} {}", point.position, Nanos(*n));
            plot.drawing.circle(&format!("dot {class}"), to_pixel(dot), 2.0, Some(&tip));
        }
        let end = line.last().map(to_pixel);
        ends.extend(
            end.map(|(x, y)| (format!("name {class}"), (x + 8.0, y + 4.0), name(run, point))),
        );
    }
    plot.drawing.texts_apart(&ends, Anchor::Start, 14.0, (top + 4.0, bottom));
    let desc = "One line per selected load point. The table of load points holds the percentiles.";
    Some(plot.finish("Response time over percentile", desc))
}
/// The percentile 100 has no position on a scale of nines; the longest time is in the tables.
fn measured(point: &PointResult) -> Vec<(f64, u64)> {
    let on_scale = |p: &&(f64, u64)| p.0 >= 0.0 && p.0 < 100.0;
    point.response_percentiles.iter().filter(on_scale).copied().collect()
}

/// What a line goes through: where no op took a time it goes straight up, as between a hundred ops
/// of 1 ms and one of 4 s.
fn step_path(point: &PointResult, line: &[(f64, u64)]) -> Vec<(f64, u64)> {
    let last = line.last().map_or(0.0, |(percentile, _)| *percentile);
    let all: u64 = point.response_histogram.iter().map(|(_, ops)| ops).sum();
    let mut below = 0;
    let mut path = line.to_vec();
    for pair in point.response_histogram.windows(2) {
        let [(from, ops), (to, _)] = [pair[0], pair[1]];
        below += ops;
        let percentile = 100.0 * below as f64 / all as f64;
        if to as f64 > EMPTY_BUCKETS_RATIO * from as f64 && percentile < last {
            path.extend([(percentile, from), (percentile, to)]);
        }
    }
    path.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    path
}

fn nines_axis(rarest: f64) -> Axis {
    let all = [0.0, 50.0, 90.0, 99.0, 99.9, 99.99, 99.999, 99.9999];
    let shown = all.into_iter().filter(|percentile| nines(*percentile) <= rarest + 1e-9);
    Axis::marked(
        shown.map(|percentile| (nines(percentile), percentile.to_string())).collect(),
        rarest,
    )
}

fn name(run: &RunResult, point: &PointResult) -> String {
    load(point.requested, &run.axis)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_goes_straight_up_where_no_op_took_a_time() {
        let point = PointResult {
            response_histogram: vec![(100, 600), (116, 384), (4_000, 16)],
            ..PointResult::default()
        };
        let line = [(0.0, 90), (50.0, 98), (95.0, 116), (99.0, 4_000)];
        let expected = [&line[..3], &[(98.4, 116), (98.4, 4_000)], &line[3..]].concat();
        assert_eq!(step_path(&point, &line), expected);
        assert_eq!(step_path(&point, &line[..3]), line[..3], "nothing is known beyond the last");
        assert_eq!(step_path(&PointResult::default(), &line), line);
    }
}
