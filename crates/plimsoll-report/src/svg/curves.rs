//! Curves of several systems over load in one chart. Each has a colour, a mark of its own and a
//! number at its end, so that they differ without colour; published ones are dashed.

use plimsoll_model::comparison::{Comparison, Curve, CurvePoint};

use super::Frame;
use super::draw::{Anchor, Drawing};
use super::plot::{Outline, Plot};
use super::scale::{Axis, tick_text, time_tick_text};
use crate::text::axis_name;
use crate::view::curves::{Quantity, curve_name, drawn, throughput_unit};

/// Room for the numbers at the ends.
const RIGHT: f64 = 34.0;
/// From this ratio of the largest loads on, equal ratios are equal steps: otherwise the curve of an
/// old system is a dot at the origin.
const FAR_APART_RATIO: f64 = 8.0;
/// One point makes no curve.
const POINTS_MIN: usize = 2;
const NUMBER_SPACING: f64 = 14.0;
/// Half the size of a mark.
const MARK: f64 = 4.0;

/// Corners of the marks, in halves of their size: dot, square, triangle, diamond, triangle upside
/// down, plus, bow tie, hourglass.
const MARKS: [&[(f64, f64)]; 8] = [
    &[
        (-0.4, -0.95),
        (0.4, -0.95),
        (0.95, -0.4),
        (0.95, 0.4),
        (0.4, 0.95),
        (-0.4, 0.95),
        (-0.95, 0.4),
        (-0.95, -0.4),
    ],
    &[(-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)],
    &[(0.0, -1.2), (1.15, 0.9), (-1.15, 0.9)],
    &[(0.0, -1.3), (1.3, 0.0), (0.0, 1.3), (-1.3, 0.0)],
    &[(0.0, 1.2), (1.15, -0.9), (-1.15, -0.9)],
    &[
        (-0.4, -1.2),
        (0.4, -1.2),
        (0.4, -0.4),
        (1.2, -0.4),
        (1.2, 0.4),
        (0.4, 0.4),
        (0.4, 1.2),
        (-0.4, 1.2),
        (-0.4, 0.4),
        (-1.2, 0.4),
        (-1.2, -0.4),
        (-0.4, -0.4),
    ],
    &[(-1.2, -1.0), (0.0, -0.25), (1.2, -1.0), (1.2, 1.0), (0.0, 0.25), (-1.2, 1.0)],
    &[(-1.0, -1.2), (1.0, -1.2), (0.25, 0.0), (1.0, 1.2), (-1.0, 1.2), (-0.25, 0.0)],
];

/// A point of a curve in a chart of one quantity, in the units of its axes.
struct PlotPoint {
    x: f64,
    y: f64,
    range: Option<[f64; 2]>,
    /// Left out of the result of some run.
    open: bool,
    tip: String,
}

/// A curve with its number, from 1.
struct Line<'c> {
    number: usize,
    curve: &'c Curve,
    points: Vec<PlotPoint>,
}

impl Line<'_> {
    /// Colour, and the dash of published curves.
    fn class(&self) -> String {
        let dash = if self.curve.published.is_some() { " dashed" } else { "" };
        format!("c{}{dash}", self.number)
    }
}

/// One quantity of all curves over load; nothing where no curve has two points.
pub(crate) fn curves_chart(
    frame: Frame<'_>,
    comparison: &Comparison,
    quantity: Quantity,
) -> Option<String> {
    let lines = lines(comparison, quantity);
    if lines.iter().all(|line| line.points.len() < POINTS_MIN) {
        return None;
    }
    let loads = Loads::from_comparison(comparison);
    let is_throughput = quantity == Quantity::Throughput;
    let unit = throughput_unit(comparison);
    let title = match (is_throughput, loads.log) {
        (true, false) => format!("{}, {unit}", quantity.name()),
        (true, true) => format!("{}, {unit}; log scales", quantity.name()),
        (false, false) => format!("{}, log scale", quantity.name()),
        (false, true) => format!("{}; log scales", quantity.name()),
    };
    let outline = Outline {
        title: &title,
        // Ticks of a logarithmic axis may be near each other.
        x: loads.axis(frame).with_half_room(|text| text.chars().count() as f64 * 4.0 + 2.0),
        y: value_axis(&lines, quantity, loads.log),
        x_name: &axis_name(&comparison.axis),
        height: 280.0,
        margins: (36.0, RIGHT),
    };
    let mut plot = Plot::new(frame, &outline);
    if is_throughput && unit == comparison.axis.unit {
        // Where the throughput is the load.
        let ([from, to], [low, high]) = (outline.x.ends, outline.y.ends);
        let [start, end] = [from.max(low), to.min(high)].map(|at| plot.area.pixels(at, at));
        plot.drawing.line("guide", start, end);
    }
    lines.iter().for_each(|line| draw_band(&mut plot, line));
    lines.iter().for_each(|line| draw_line(&mut plot, line));
    number_ends(&mut plot, &lines);
    let desc = "Numbers at the ends are those of the legend. The table of the curves holds the same \
                figures.";
    Some(plot.finish(&format!("{} over load", quantity.name()), desc))
}

/// A piece of a curve with its mark, for the legend.
pub(crate) fn curve_sample(number: usize, curve: &Curve) -> String {
    const SIZE: (f64, f64) = (44.0, 14.0);
    let line = Line { number, curve, points: Vec::new() };
    let mut drawing = Drawing::new();
    let y = SIZE.1 / 2.0;
    drawing.polyline(&format!("course {}", line.class()), &[(1.0, y), (SIZE.0 - 1.0, y)]);
    drawing.shape(&format!("mark {}", line.class()), &corners(number, (SIZE.0 / 2.0, y)), "");
    drawing.finish_hidden(SIZE)
}

fn lines(comparison: &Comparison, quantity: Quantity) -> Vec<Line<'_>> {
    let points_of = |curve: &Curve| plot_points(comparison, curve, quantity);
    let numbered = drawn(comparison).into_iter();
    numbered.map(|(number, curve)| Line { number, curve, points: points_of(curve) }).collect()
}

/// The axis of loads, the same for the charts of all quantities.
struct Loads {
    ends: [f64; 2],
    /// The largest loads of the curves differ so much that equal ratios are equal steps.
    log: bool,
}

impl Loads {
    fn from_comparison(comparison: &Comparison) -> Self {
        let drawn = drawn(comparison);
        let loads = |curve: &'_ Curve| ends(curve.points.iter().map(|point| point.load));
        let each: Vec<[f64; 2]> = drawn.iter().map(|(_, curve)| loads(curve)).collect();
        let [least, most] = ends(each.iter().map(|[_, largest]| *largest));
        let lowest = ends(each.iter().map(|[smallest, _]| *smallest))[0];
        Self { ends: [lowest, most], log: lowest > 0.0 && most > FAR_APART_RATIO * least }
    }

    fn axis(&self, frame: Frame<'_>) -> Axis {
        match (self.log, self.ends) {
            (false, [_, highest]) => Axis::linear(highest, frame.steps()),
            (true, [lowest, highest]) => Axis::log((lowest, highest), tick_text),
        }
    }
}

fn plot_points(comparison: &Comparison, curve: &Curve, quantity: Quantity) -> Vec<PlotPoint> {
    let plot_point = |point: &CurvePoint| {
        let figure = quantity.figure(point)?;
        let on_axis = |value| quantity.on_axis(value, comparison);
        let text = quantity.text(figure.value, comparison);
        (point.load.is_finite() && figure.value > 0.0).then(|| PlotPoint {
            x: point.load,
            y: on_axis(figure.value),
            range: figure.range.map(|range| range.map(on_axis)),
            open: point.not_counted,
            tip: format!("{}: {text} at {}", curve_name(comparison, curve), tick_text(point.load)),
        })
    };
    curve.points.iter().filter_map(plot_point).collect()
}

fn corners(number: usize, (x, y): (f64, f64)) -> Vec<(f64, f64)> {
    let shape = MARKS[(number - 1) % MARKS.len()];
    shape.iter().map(|(dx, dy)| (x + dx * MARK, y + dy * MARK)).collect()
}

fn value_axis(lines: &[Line<'_>], quantity: Quantity, log: bool) -> Axis {
    let all_points = lines.iter().flat_map(|line| &line.points);
    let values = all_points.flat_map(|point| point.range.unwrap_or([point.y; 2]));
    let [low, high] = ends(values.filter(|value| *value > 0.0));
    match (quantity, log) {
        (Quantity::Throughput, false) => Axis::linear(high, 5),
        (Quantity::Throughput, true) => Axis::log((low, high), tick_text),
        _ => Axis::log((low, high), time_tick_text),
    }
}

/// The range of the runs.
fn draw_band(plot: &mut Plot<'_>, line: &Line<'_>) {
    let edge_at = |end: usize| {
        let ranged = line.points.iter().filter_map(|point| Some((point.x, point.range?[end])));
        ranged.map(|(x, y)| plot.area.pixels(x, y)).collect::<Vec<_>>()
    };
    let (mut edge, lower) = (edge_at(1), edge_at(0));
    edge.extend(lower.into_iter().rev());
    // Two corners make no area.
    if edge.len() > 2 {
        plot.drawing.shape(&format!("range {}", line.class()), &edge, "");
    }
}

fn draw_line(plot: &mut Plot<'_>, line: &Line<'_>) {
    let class = line.class();
    let points: Vec<_> = line.points.iter().map(|p| plot.area.pixels(p.x, p.y)).collect();
    plot.drawing.polyline(&format!("course {class}"), &points);
    for (point, at) in line.points.iter().zip(points) {
        let open = if point.open { " open" } else { "" };
        let class = format!("mark {class}{open}");
        plot.drawing.shape(&class, &corners(line.number, at), &point.tip);
    }
}

/// The number of each curve at its end.
fn number_ends(plot: &mut Plot<'_>, lines: &[Line<'_>]) {
    let Plot { drawing, area, .. } = plot;
    let end = |line: &Line<'_>| {
        let (x, y) = line.points.last().map(|point| area.pixels(point.x, point.y))?;
        Some((format!("end c{}", line.number), (x + 9.0, y + 4.0), line.number.to_string()))
    };
    let ends: Vec<_> = lines.iter().filter_map(end).collect();
    drawing.texts_apart(&ends, Anchor::Start, NUMBER_SPACING, (area.top + 4.0, area.bottom));
}

/// Smallest and largest.
fn ends(values: impl Iterator<Item = f64>) -> [f64; 2] {
    let ends = values.fold([f64::INFINITY, f64::NEG_INFINITY], |[low, high], value| {
        [low.min(value), high.max(value)]
    });
    ends.map(|end| if end.is_finite() { end } else { 0.0 })
}
