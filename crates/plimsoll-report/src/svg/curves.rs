//! Curves of several systems over load in one chart. Each has a colour, a mark of its own and a
//! number at its end, so that they differ without colour; published ones are dashed.

use plimsoll_model::comparison::{Comparison, Curve, CurvePoint};

use super::Frame;
use super::draw::{Anchor, Drawing};
use super::scale::{Scale, log_ticks, spread, tick_room, tick_text, ticks, time_tick_text};
use super::stacked::{log_scale, named, upright};
use crate::text::axis_name;
use crate::view::curves::{Quantity, curve_name, drawn, throughput_unit};

const TOP: f64 = 26.0;
const HEIGHT: f64 = 280.0;
const FOOT: f64 = 44.0;
/// Room for the numbers at the ends.
const RIGHT: f64 = 34.0;
/// From this ratio of the largest loads on, equal ratios are equal steps: otherwise the curve of an
/// old system is a dot at the origin.
const FAR_APART_RATIO: f64 = 8.0;
/// One point has no course.
const POINTS_MIN: usize = 2;
const NUMBER_GAP: f64 = 14.0;
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
struct Place {
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
    places: Vec<Place>,
}

impl Line<'_> {
    /// Colour, and the dash of published curves.
    fn class(&self) -> String {
        let dash = if self.curve.published.is_some() { " dashed" } else { "" };
        format!("c{}{dash}", self.number)
    }
}

/// One quantity of all curves over load; nothing where no curve has a course.
pub(crate) fn curves_chart(
    frame: Frame<'_>,
    comparison: &Comparison,
    quantity: Quantity,
) -> Option<String> {
    let lines = lines(comparison, quantity);
    if lines.iter().all(|line| line.places.len() < POINTS_MIN) {
        return None;
    }
    let area = Area::of(frame, &lines, (quantity, Loads::of(comparison)));
    let mut drawing = Drawing::new();
    area.axes(&mut drawing);
    let title = match (quantity, area.log) {
        (Quantity::Throughput, false) => {
            format!("{}, {}", quantity.name(), throughput_unit(comparison))
        }
        (Quantity::Throughput, true) => {
            format!("{}, {}; log scales", quantity.name(), throughput_unit(comparison))
        }
        (_, false) => format!("{}, log scale", quantity.name()),
        (_, true) => format!("{}; log scales", quantity.name()),
    };
    drawing.text("panel", (0.0, TOP - 11.0), Anchor::Start, &title);
    if quantity == Quantity::Throughput && throughput_unit(comparison) == comparison.axis.unit {
        area.diagonal(&mut drawing);
    }
    lines.iter().for_each(|line| area.band(&mut drawing, line));
    lines.iter().for_each(|line| area.line(&mut drawing, line));
    area.numbers(&mut drawing, &lines);
    let bottom = TOP + HEIGHT;
    let name = axis_name(&comparison.axis);
    drawing.text("axis-name", (area.right, bottom + 36.0), Anchor::End, &name);
    let desc = "Numbers at the ends are those of the legend. The table of the curves holds the same \
                figures.";
    let title = format!("{} over load", quantity.name());
    Some(drawing.finish(frame.id, (frame.width, bottom + FOOT), &title, desc))
}

/// A piece of a curve with its mark, for the legend.
pub(crate) fn curve_sample(number: usize, curve: &Curve) -> String {
    const SIZE: (f64, f64) = (44.0, 14.0);
    let line = Line { number, curve, places: Vec::new() };
    let mut drawing = Drawing::new();
    let y = SIZE.1 / 2.0;
    drawing.polyline(&format!("course {}", line.class()), &[(1.0, y), (SIZE.0 - 1.0, y)]);
    drawing.shape(&format!("mark {}", line.class()), &corners(number, (SIZE.0 / 2.0, y)), "");
    drawing.finish_hidden(SIZE)
}

fn lines(comparison: &Comparison, quantity: Quantity) -> Vec<Line<'_>> {
    let places = |curve: &Curve| places(comparison, curve, quantity);
    let numbered = drawn(comparison).into_iter();
    numbered.map(|(number, curve)| Line { number, curve, places: places(curve) }).collect()
}

/// The axis of loads, the same for the charts of all quantities.
struct Loads {
    ends: [f64; 2],
    /// The largest loads of the curves differ so much that equal ratios are equal steps.
    log: bool,
}

impl Loads {
    fn of(comparison: &Comparison) -> Self {
        let drawn = drawn(comparison);
        let loads = |curve: &'_ Curve| ends(curve.points.iter().map(|point| point.load));
        let each: Vec<[f64; 2]> = drawn.iter().map(|(_, curve)| loads(curve)).collect();
        let [least, most] = ends(each.iter().map(|[_, largest]| *largest));
        let lowest = ends(each.iter().map(|[smallest, _]| *smallest))[0];
        Self { ends: [lowest, most], log: lowest > 0.0 && most > FAR_APART_RATIO * least }
    }
}

fn places(comparison: &Comparison, curve: &Curve, quantity: Quantity) -> Vec<Place> {
    let place = |point: &CurvePoint| {
        let figure = quantity.of(point)?;
        let on_axis = |value| quantity.on_axis(value, comparison);
        let text = quantity.text(figure.value, comparison);
        (point.load.is_finite() && figure.value > 0.0).then(|| Place {
            x: point.load,
            y: on_axis(figure.value),
            range: figure.range.map(|range| range.map(on_axis)),
            open: point.not_counted,
            tip: format!("{}: {text} at {}", curve_name(curve), tick_text(point.load)),
        })
    };
    curve.points.iter().filter_map(place).collect()
}

fn corners(number: usize, (x, y): (f64, f64)) -> Vec<(f64, f64)> {
    let shape = MARKS[(number - 1) % MARKS.len()];
    shape.iter().map(|(dx, dy)| (x + dx * MARK, y + dy * MARK)).collect()
}

/// The axes, and where values stand between them.
struct Area {
    left: f64,
    right: f64,
    x: Scale,
    y: Scale,
    x_ticks: Vec<(f64, String)>,
    y_ticks: Vec<(f64, String)>,
    /// The axis of loads is logarithmic, and that of throughput with it.
    log: bool,
}

impl Area {
    fn of(
        frame: Frame<'_>,
        lines: &[Line<'_>],
        (quantity, Loads { ends: loads, log }): (Quantity, Loads),
    ) -> Self {
        let places = || lines.iter().flat_map(|line| &line.places);
        let values = places().flat_map(|place| place.range.unwrap_or([place.y; 2]));
        let [low, high] = ends(values.filter(|value| *value > 0.0));
        let y_ticks = match (quantity, log) {
            (Quantity::Throughput, false) => named(ticks(high, 5), tick_text),
            (Quantity::Throughput, true) => named(log_ticks(low, high), tick_text),
            _ => named(log_ticks(low, high), time_tick_text),
        };
        let [lowest, highest] = loads;
        let about = if frame.is_narrow() { 4 } else { 8 };
        let x_ticks = match log {
            false => named(ticks(highest, about), tick_text),
            true => named(log_ticks(lowest, highest), tick_text),
        };
        let (left, right) = (tick_room(&y_ticks).max(36.0), frame.width - RIGHT);
        let last = |ticks: &[(f64, String)]| ticks.last().map_or(1.0, |(value, _)| *value);
        let (bottom, top) = (TOP + HEIGHT, TOP);
        let linear = quantity == Quantity::Throughput && !log;
        Self {
            x: if log {
                log_scale(&x_ticks, left, right)
            } else {
                Scale::new(last(&x_ticks), left, right)
            },
            y: if linear {
                Scale::new(last(&y_ticks), bottom, top)
            } else {
                log_scale(&y_ticks, bottom, top)
            },
            x_ticks,
            y_ticks,
            left,
            right,
            log,
        }
    }

    fn axes(&self, drawing: &mut Drawing) {
        upright(drawing, (self.y, &self.y_ticks), (self.left, self.right));
        let bottom = TOP + HEIGHT;
        let mut room = f64::NEG_INFINITY;
        for (tick, text) in &self.x_ticks {
            let x = self.x.at(*tick);
            drawing.line("base", (x, bottom), (x, bottom + 4.0));
            let half = text.chars().count() as f64 * 4.0;
            // Ticks of a logarithmic axis may be near each other.
            if x - half > room {
                drawing.text("tick", (x, bottom + 17.0), Anchor::Middle, text);
                room = x + half + 4.0;
            }
        }
    }

    /// Where the throughput is the load.
    fn diagonal(&self, drawing: &mut Drawing) {
        let [x, y] =
            [&self.x_ticks, &self.y_ticks].map(|ticks| ends(ticks.iter().map(|(tick, _)| *tick)));
        let [low, high] = [x[0].max(y[0]), x[1].min(y[1])];
        drawing.line("guide", self.at(low, low), self.at(high, high));
    }

    fn at(&self, x: f64, value: f64) -> (f64, f64) {
        (self.x.at(x), self.y.at(value))
    }

    /// The range of the runs.
    fn band(&self, drawing: &mut Drawing, line: &Line<'_>) {
        let ranged = || line.places.iter().filter_map(|place| Some((place.x, place.range?)));
        let upper = ranged().map(|(x, [_, high])| self.at(x, high));
        let lower = ranged().map(|(x, [low, _])| self.at(x, low));
        let mut edge: Vec<(f64, f64)> = upper.collect();
        edge.extend(lower.collect::<Vec<_>>().into_iter().rev());
        // Two corners make no area.
        if edge.len() > 2 {
            drawing.shape(&format!("range {}", line.class()), &edge, "");
        }
    }

    fn line(&self, drawing: &mut Drawing, line: &Line<'_>) {
        let class = line.class();
        let points: Vec<(f64, f64)> =
            line.places.iter().map(|place| self.at(place.x, place.y)).collect();
        drawing.polyline(&format!("course {class}"), &points);
        for (place, at) in line.places.iter().zip(points) {
            let open = if place.open { " open" } else { "" };
            let class = format!("mark {class}{open}");
            drawing.shape(&class, &corners(line.number, at), &place.tip);
        }
    }

    /// The number of each curve at its end.
    fn numbers(&self, drawing: &mut Drawing, lines: &[Line<'_>]) {
        let ends = lines.iter().filter_map(|line| Some((line, line.places.last()?)));
        let ends: Vec<_> = ends.map(|(line, end)| (line, self.at(end.x, end.y))).collect();
        let wanted: Vec<f64> = ends.iter().map(|(_, (_, y))| y + 4.0).collect();
        let placed = spread(&wanted, NUMBER_GAP, TOP + 4.0, TOP + HEIGHT);
        for ((line, (x, _)), y) in ends.iter().zip(placed) {
            let number = line.number.to_string();
            drawing.text(&format!("end c{number}"), (x + 9.0, y), Anchor::Start, &number);
        }
    }
}

/// Smallest and largest.
fn ends(values: impl Iterator<Item = f64>) -> [f64; 2] {
    let ends = values.fold([f64::INFINITY, f64::NEG_INFINITY], |[low, high], value| {
        [low.min(value), high.max(value)]
    });
    ends.map(|end| if end.is_finite() { end } else { 0.0 })
}
