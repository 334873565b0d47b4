//! Response times across the run as a heat map: the load points side by side, each window from
//! left to right; the darker, the more ops.

use plimsoll_model::result::{PointResult, ResponseHeatmap, RunResult};

use super::Frame;
use super::draw::{Anchor, Area, Drawing};
use super::plot::{Outline, PanelArea, Plot};
use super::scale::{Axis, Scale, time_tick_text};
use crate::table::Mark;
use crate::text::{axis_name, number};

const HEIGHT: f64 = 220.0;
/// Narrower columns are drawn as one.
const COLUMN_MIN: f64 = 2.0;
const SPACING: f64 = 2.0;
const RIGHT: f64 = 10.0;
/// Each shade has a quarter of the ops of the one before; the last has all that is below.
const SHADES: [&str; 7] =
    ["heat h1", "heat h2", "heat h3", "heat h4", "heat h5", "heat h6", "heat h7"];
const STEP: f64 = 4.0;
const SWATCH: f64 = 12.0;
const DIGIT_WIDTH: f64 = 7.6; // of 12 px type
/// What the whole title and the key need.
const ROOM: f64 = 400.0;

/// The part of the drawing that the windows take.
struct WindowArea {
    y: Scale,
    left: f64,
    width: f64,
}

/// Some seconds of a load point: where they begin and end, as shares of the window, and the ops in
/// each bucket per second.
struct Column {
    from: f64,
    to: f64,
    rates: Vec<f64>,
}

/// What a map shows of each load point.
type OfPoint = fn(&PointResult) -> Option<&ResponseHeatmap>;

/// Response times; nothing where no point has any.
pub(crate) fn heat_chart(frame: Frame<'_>, run: &RunResult) -> Option<String> {
    heat_map(frame, run, ("Response time", |point| point.response_over_time.as_ref()))
}

/// Times to first output; nothing where no point has any.
pub(crate) fn first_output_heat_chart(frame: Frame<'_>, run: &RunResult) -> Option<String> {
    heat_map(
        frame,
        run,
        ("First output", |point| point.generation.as_ref()?.first_output_over_time.as_ref()),
    )
}

fn heat_map(frame: Frame<'_>, run: &RunResult, (quantity, of): (&str, OfPoint)) -> Option<String> {
    let points: Vec<(&PointResult, &ResponseHeatmap)> =
        run.points.iter().filter_map(|p| Some((p, of(p)?))).collect();
    let edges = || points.iter().flat_map(|(_, heat)| &heat.edges_ns).map(|ns| (*ns).max(1) as f64);
    let (low, high) = (edges().reduce(f64::min)?, edges().reduce(f64::max)?);
    // The key is next to it.
    let scale = if frame.width < ROOM { "" } else { ", log scale" };
    let outline = Outline {
        title: &format!("{quantity}{scale}"),
        x: Axis::marked(Vec::new(), 1.0),
        y: Axis::log((low, high), time_tick_text),
        x_name: &format!("{}; each window from left to right", axis_name(&run.axis)),
        height: HEIGHT,
        margins: (frame.left(), RIGHT),
    };
    let mut plot = Plot::new(frame, &outline);
    let PanelArea { y, left, right, top, bottom, .. } = plot.area;
    let area = WindowArea { y, left, width: (right - left) / points.len() as f64 };
    let columns_max = ((area.width - SPACING) / COLUMN_MIN).floor().max(1.0) as usize;
    let columns: Vec<Vec<Column>> =
        points.iter().map(|(_, heat)| columns(heat, columns_max)).collect();
    let all = columns.iter().flatten().flat_map(|column| &column.rates);
    let most = all.copied().fold(0.0, f64::max);

    key(&mut plot.drawing, (right, top - 11.0));
    for (number, shade) in SHADES.into_iter().enumerate() {
        let areas: Vec<_> = (0..points.len())
            .flat_map(|i| areas(&area, (i, points[i].1), &columns[i], (number, most)))
            .collect();
        plot.drawing.areas(shade, &areas, "");
    }
    loads(&mut plot.drawing, &area, &points, (bottom, frame.width));
    let desc = format!(
        "Ops by their {}, second by second of each load point; darker where there were more. The \
         tables hold the figures of each load point.",
        quantity.to_lowercase()
    );
    Some(plot.finish(&format!("{quantity} across the run"), &desc))
}

/// Neighbouring spans are drawn as one where there is no room for each.
fn columns(heat: &ResponseHeatmap, columns_max: usize) -> Vec<Column> {
    let end = heat.starts_ns.last().copied().unwrap_or(1).max(1) as f64;
    let spans: Vec<_> = heat.starts_ns.windows(2).zip(&heat.counts).collect();
    let merged = spans.chunks(spans.len().div_ceil(columns_max).max(1));
    let column = |spans: &[(&[u64], &Vec<u64>)]| {
        let ([from, _], [_, to]) = (spans.first()?.0, spans.last()?.0) else { return None };
        let (from, to) = (*from as f64, *to as f64);
        let mut rates = vec![0.0; heat.edges_ns.len().saturating_sub(1)];
        for (rate, count) in spans.iter().flat_map(|(_, counts)| counts.iter().enumerate()) {
            if let Some(rate) = rates.get_mut(rate) {
                *rate += *count as f64 / (to - from).max(1.0);
            }
        }
        Some(Column { from: from / end, to: to / end, rates })
    };
    merged.filter_map(column).collect()
}

/// The areas of one shade; neighbours in one bucket as one.
fn areas(
    area: &WindowArea,
    (point, heat): (usize, &ResponseHeatmap),
    columns: &[Column],
    (shade, most): (usize, f64),
) -> Vec<Area> {
    let begin = area.left + area.width * point as f64 + SPACING / 2.0;
    let width = area.width - SPACING;
    let mut areas: Vec<Area> = Vec::new();
    for (bucket, edges) in heat.edges_ns.windows(2).enumerate() {
        let (top, bottom) = (area.y.pixel(edges[1] as f64), area.y.pixel(edges[0].max(1) as f64));
        let is_shade = |column: &Column| {
            shade_of(column.rates.get(bucket).copied().unwrap_or(0.0), most) == Some(shade)
        };
        for run in columns.chunk_by(|a, b| is_shade(a) == is_shade(b)) {
            let (Some(first), Some(last)) = (run.first(), run.last()) else { continue };
            if is_shade(first) {
                let (from, to) = (begin + width * first.from, begin + width * last.to);
                areas.push(((from, top), (to - from, bottom - top)));
            }
        }
    }
    areas
}

fn shade_of(rate: f64, most: f64) -> Option<usize> {
    (rate > 0.0).then(|| ((most / rate).log(STEP).floor() as usize).min(SHADES.len() - 1))
}

/// The load of each point below it, where there is room.
fn loads(
    drawing: &mut Drawing,
    area: &WindowArea,
    points: &[(&PointResult, &ResponseHeatmap)],
    (bottom, edge): (f64, f64),
) {
    let mut free = 0.0;
    for (i, (point, _)) in points.iter().enumerate() {
        let at = area.left + area.width * (i as f64 + 0.5);
        let (class, text) = match Mark::of_point(point) {
            Mark::Invalid => ("value", format!("✗\u{a0}{}", number(Some(point.requested)))),
            Mark::Sound | Mark::NotCounted => ("tick", number(Some(point.requested))),
        };
        let half = text.chars().count() as f64 * DIGIT_WIDTH / 2.0;
        drawing.line("base", (at, bottom), (at, bottom + 4.0));
        let middle = at.min(edge - half);
        if middle - half >= free {
            drawing.text(class, (middle, bottom + 17.0), Anchor::Middle, &text);
            free = middle + half + 6.0;
        }
    }
}

/// From most to fewest, at the upper edge.
fn key(drawing: &mut Drawing, (right, line): (f64, f64)) {
    let width = SWATCH * SHADES.len() as f64;
    let left = right - 50.0 - width;
    drawing.text("tick", (left - 6.0, line), Anchor::End, "most ops");
    for (i, shade) in SHADES.into_iter().enumerate() {
        let corner = (left + SWATCH * i as f64, line - 10.0);
        drawing.areas(shade, &[(corner, (SWATCH, SWATCH))], "");
    }
    drawing.text("tick", (left + width + 6.0, line), Anchor::Start, "fewest");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heat(spans: u64) -> ResponseHeatmap {
        ResponseHeatmap {
            starts_ns: (0..=spans).map(|i| i * 1_000).collect(),
            edges_ns: vec![64, 96, 128],
            counts: (0..spans).map(|i| vec![100, u64::from(i == 3)]).collect(),
        }
    }

    #[test]
    fn a_single_slow_op_is_seen_however_narrow_the_drawing() {
        for columns_max in [1, 4, 100] {
            let columns = columns(&heat(30), columns_max);
            assert!(columns.len() <= columns_max.max(30));
            let most = columns.iter().flat_map(|c| &c.rates).copied().fold(0.0, f64::max);
            let visible = columns.iter().filter(|c| shade_of(c.rates[1], most).is_some()).count();
            assert_eq!(visible, 1, "{columns_max}");
            assert!(columns.iter().all(|c| shade_of(c.rates[0], most) == Some(0)));
        }
    }

    #[test]
    fn neighbours_of_one_shade_are_one_area() {
        let heat = heat(30);
        let area = WindowArea { y: Scale::log((64.0, 128.0), 100.0, 0.0), left: 0.0, width: 302.0 };
        let columns = columns(&heat, 100);
        let area = |shade| areas(&area, (0, &heat), &columns, (shade, 0.1));
        assert_eq!(area(0).len(), 1, "{:?}", area(0));
        assert!((area(0)[0].1.0 - 300.0).abs() < 0.01);
        assert_eq!((1..SHADES.len()).map(|shade| area(shade).len()).sum::<usize>(), 1);
    }
}
