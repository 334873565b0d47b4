//! Panels one above the other on one axis of load.

use super::Frame;
use super::bounds::Bounds;
use super::draw::{Anchor, Drawing};
use super::plot::PanelArea;
use super::scale::{Axis, time_tick_text};
use super::strip::{Cell, draw_strip};
use crate::table::Mark;

#[derive(Clone, Debug)]
pub(super) struct Dot {
    pub(super) x: f64,
    pub(super) y: f64,
    pub(super) mark: Mark,
    /// Position in the ladder.
    pub(super) position: u32,
    /// The value as text, for a mark beyond the axis.
    pub(super) text: String,
}

/// Dots joined by a line, labelled at its end.
pub(super) struct Series {
    pub(super) class: &'static str,
    pub(super) label: String,
    pub(super) dots: Vec<Dot>,
}

/// What the dots are to be compared with.
pub(super) enum Guide {
    /// Where y equals x.
    Diagonal(&'static str),
    Level(f64, &'static str),
}

#[derive(Default)]
pub(super) struct Panel {
    /// Quantity and unit.
    pub(super) title: String,
    pub(super) height: f64,
    /// The axis reaches at least here; values beyond are marked by arrows.
    pub(super) top: f64,
    /// Lowest value of a panel of times in nanoseconds on a logarithmic axis; others begin at zero.
    pub(super) floor_ns: Option<f64>,
    pub(super) series: Vec<Series>,
    pub(super) guides: Vec<Guide>,
    /// Position of the point with the highest throughput, where the panel shows that.
    pub(super) peak: Option<u32>,
    /// Asymptotes and knee, where the panel shows throughput.
    pub(super) bounds: Option<Bounds>,
}

impl Panel {
    /// One line on an axis from zero; nothing without dots.
    pub(super) fn single(title: String, label: &str, dots: Vec<Dot>) -> Option<Self> {
        let top = dots.iter().map(|dot| dot.y).reduce(f64::max)?.max(0.0);
        let series = vec![Series { class: "s1", label: label.to_owned(), dots }];
        Some(Self { title, height: HEIGHT, top, series, ..Self::default() })
    }

    /// Times on a logarithmic scale; nothing without dots.
    pub(super) fn log(title: &str, series: Vec<Series>) -> Option<Self> {
        let times = || series.iter().flat_map(|s| &s.dots).map(|dot| dot.y);
        let (floor_ns, top) = (times().reduce(f64::min), times().reduce(f64::max)?);
        let title = format!("{title}, log scale");
        Some(Self { title, height: HEIGHT, top, floor_ns, series, ..Self::default() })
    }

    /// It is too low for labels of single dots; their shape must be enough.
    fn is_low(&self) -> bool {
        self.height < LOW
    }

    fn axis(&self) -> Axis {
        match self.floor_ns {
            Some(floor) => Axis::log((floor, self.top), time_tick_text),
            None => Axis::linear(self.top, if self.is_low() { 3 } else { 4 }),
        }
    }
}

/// A set of panels with the axis they share.
pub(super) struct Stack {
    pub(super) title: String,
    pub(super) desc: String,
    /// Name and unit of the load.
    pub(super) axis: String,
    pub(super) loads: Vec<f64>,
    pub(super) panels: Vec<Panel>,
    /// Title and cells of the strip below the panels.
    pub(super) strip: Option<(&'static str, Vec<Cell>)>,
}

const HEIGHT: f64 = 240.0;
const TITLE_HEIGHT: f64 = 26.0;
const SPACING: f64 = 18.0;
const FOOT: f64 = 44.0;
const LOW: f64 = 90.0;
const NAME_DIGIT_WIDTH: f64 = 8.2; // of 13 px bold type
const CHAR_WIDTH: f64 = 6.8; // of 12 px type
const LABEL_SPACING: f64 = 14.0;

pub(super) fn draw(frame: Frame<'_>, stack: &Stack) -> String {
    let margin = if frame.is_narrow() { 62.0 } else { 86.0 };
    let left = stack.panels.iter().fold(frame.left(), |left, panel| panel.axis().room(left));
    let names = stack.panels.iter().flat_map(|p| &p.series).map(|s| s.label.chars().count());
    let name = names.max().unwrap_or(0) as f64 * NAME_DIGIT_WIDTH + 12.0;
    let right = frame.width - name.max(margin);
    let largest = stack.loads.iter().copied().fold(0.0, f64::max);
    let x_axis = Axis::linear(largest, frame.steps());
    let x = x_axis.scale(left, right);
    let mut drawing = Drawing::new();
    let (mut top, mut last) = (0.0, None);
    for panel in &stack.panels {
        top += TITLE_HEIGHT;
        let (bottom, y_axis) = (top + panel.height, panel.axis());
        let y = y_axis.scale(bottom, top);
        let area = PanelArea { x, y, left, right, top, bottom, edge: frame.width };
        if let Some(bounds) = &panel.bounds {
            bounds.draw(&mut drawing, &area);
        }
        let class = if panel.is_low() { "panel small" } else { "panel" };
        drawing.text(class, (0.0, top - 11.0), Anchor::Start, &panel.title);
        area.axes(&mut drawing, &x_axis, &y_axis);
        draw_panel(&mut drawing, &area, panel);
        top = bottom + SPACING;
        last = Some(area);
    }
    let mut bottom = top - SPACING;
    if let Some((title, cells)) = &stack.strip {
        drawing.text("panel", (0.0, top + TITLE_HEIGHT - 11.0), Anchor::Start, title);
        bottom = draw_strip(&mut drawing, cells, (x, (left, right)), top + TITLE_HEIGHT - 4.0);
    }
    if let Some(area) = last {
        area.foot(&mut drawing, (&x_axis, &stack.axis), bottom);
    }
    drawing.finish(frame.id, (frame.width, bottom + FOOT), &stack.title, &stack.desc)
}

fn draw_panel(drawing: &mut Drawing, area: &PanelArea, panel: &Panel) {
    for guide in &panel.guides {
        draw_guide(drawing, area, guide);
    }
    for series in &panel.series {
        for piece in inside(series, area.y.max()) {
            let points: Vec<_> = piece.iter().map(|(x, y)| area.pixels(*x, *y)).collect();
            drawing.polyline(&format!("curve {}", series.class), &points);
        }
    }
    for series in &panel.series {
        for dot in &series.dots {
            draw_dot(drawing, area, series, dot);
        }
    }
    label_ends(drawing, area, panel);
    label_beyond(drawing, area, panel);
    label_peak(drawing, area, panel);
    if let Some(bounds) = &panel.bounds {
        bounds.label(drawing, area);
    }
    // There is no room for labels next to a limit's line; the shape must be enough.
    let has_limit = panel.guides.iter().any(|guide| matches!(guide, Guide::Level(..)));
    if !panel.is_low() && !has_limit {
        label_marked(drawing, area, panel, (Mark::Invalid, "invalid"));
        label_marked(drawing, area, panel, (Mark::NotCounted, "not counted"));
    }
}

fn draw_guide(drawing: &mut Drawing, area: &PanelArea, guide: &Guide) {
    match guide {
        Guide::Diagonal(label) => {
            let end = area.x.max().min(area.y.max());
            let at = area.pixels(end, end);
            drawing.line("guide", (area.left, area.bottom), at);
            // At its end it would overlap the peak's name.
            let middle = area.pixels(end * 0.55, end * 0.55);
            let anchor = (middle.0 - 10.0, middle.1 - 2.0);
            drawing.text("guide-name", anchor, Anchor::End, label);
        }
        Guide::Level(level, label) => {
            let y = area.y.pixel(*level);
            drawing.line("limit", (area.left, y), (area.right, y));
            drawing.text("guide-name", (area.left + 6.0, y + 15.0), Anchor::Start, label);
        }
    }
}

fn tip(series: &Series, dot: &Dot) -> String {
    let mark_text = match dot.mark {
        Mark::Sound => "",
        Mark::NotCounted => " (not counted)",
        Mark::Invalid => " (invalid)",
    };
    format!("point {}{mark_text}: {} {}", dot.position, series.label, dot.text)
}

fn draw_dot(drawing: &mut Drawing, area: &PanelArea, series: &Series, dot: &Dot) {
    let at = area.pixels(dot.x, dot.y);
    let tip = tip(series, dot);
    if dot.y > area.y.max() {
        let class = format!("beyond {}", series.class);
        drawing.arrow(&class, (at.0, area.top - 1.0), &tip);
        return;
    }
    drawing.point(series.class, at, dot.mark, &tip);
}

/// The pieces of a line that lie below `max`, cut where they cross it.
fn inside(series: &Series, max: f64) -> Vec<Vec<(f64, f64)>> {
    let mut pieces = vec![Vec::new()];
    let mut previous: Option<(f64, f64)> = None;
    for dot in &series.dots {
        let here = (dot.x, dot.y);
        if let Some(before) = previous
            && (before.1 > max) != (here.1 > max)
        {
            let share = (max - before.1) / (here.1 - before.1);
            let cut = (before.0 + (here.0 - before.0) * share, max);
            pieces.last_mut().expect("never empty").push(cut);
            if here.1 > max {
                pieces.push(Vec::new());
            }
        }
        if here.1 <= max {
            pieces.last_mut().expect("never empty").push(here);
        }
        previous = Some(here);
    }
    pieces
}

fn label_ends(drawing: &mut Drawing, area: &PanelArea, panel: &Panel) {
    let end = |series: &Series| {
        let dot = series.dots.iter().rfind(|dot| dot.y <= area.y.max())?;
        let (x, y) = area.pixels(dot.x, dot.y);
        Some((format!("name {}", series.class), (x + 10.0, y + 4.0), series.label.clone()))
    };
    let ends: Vec<_> = panel.series.iter().filter_map(end).collect();
    let edges = (area.top + 4.0, area.bottom);
    drawing.texts_apart(&ends, Anchor::Start, LABEL_SPACING, edges);
}

/// The values of the highest series beyond the axis: each next to its arrow, or first and last of
/// neighbours that are too close for that.
fn label_beyond(drawing: &mut Drawing, area: &PanelArea, panel: &Panel) {
    const ROOM: f64 = 84.0;
    let Some(series) = panel.series.last() else { return };
    let beyond = series.dots.iter().filter(|dot| dot.y > area.y.max());
    let mut named = false;
    for group in neighbours(beyond, area, ROOM) {
        let (Some(first), Some(last)) = (group.first(), group.last()) else { continue };
        let name = if named { "" } else { series.label.as_str() };
        named = true;
        let x = area.x.pixel(last.x);
        if group.len() == 1 {
            let label = format!("{name} {}", first.text);
            let at = (x - 8.0, area.top + 8.0);
            drawing.text("value", at, Anchor::End, label.trim_start());
        } else {
            let label = format!("{name} {} … {}", first.text, last.text);
            let end = (x + 70.0).min(area.edge);
            let free = end - label.chars().count() as f64 * CHAR_WIDTH
                > panel.title.chars().count() as f64 * NAME_DIGIT_WIDTH;
            // Next to the panel's title, or else below the arrows.
            let at = (end, if free { area.top - 9.0 } else { area.top + 20.0 });
            drawing.text("value", at, Anchor::End, label.trim_start());
        }
    }
}

/// Marks the highest throughput, above which there is room.
fn label_peak(drawing: &mut Drawing, area: &PanelArea, panel: &Panel) {
    let Some((series, position)) = panel.series.first().zip(panel.peak) else { return };
    let Some(dot) = series.dots.iter().find(|dot| dot.position == position) else { return };
    let at = area.pixels(dot.x, dot.y);
    drawing.circle(&format!("peak {}", series.class), at, 7.0, None);
    drawing.text("guide-name", (at.0, at.1 - 11.0), Anchor::Middle, "peak");
}

/// Labels a mark; neighbours that are too close for a label each share one.
fn label_marked(
    drawing: &mut Drawing,
    area: &PanelArea,
    panel: &Panel,
    (mark, word): (Mark, &str),
) {
    const ROOM: f64 = 62.0;
    let Some(series) = panel.series.first() else { return };
    let marked = series.dots.iter().filter(|d| d.mark == mark && d.y <= area.y.max());
    for group in neighbours(marked, area, ROOM) {
        let (Some(first), Some(last)) = (group.first(), group.last()) else { continue };
        let lowest = group.iter().map(|d| d.y).fold(f64::INFINITY, f64::min);
        let x = f64::midpoint(area.x.pixel(first.x), area.x.pixel(last.x));
        let below = area.y.pixel(lowest) + 20.0;
        let y = if below < area.bottom - 4.0 { below } else { area.y.pixel(lowest) - 12.0 };
        let text = match group.len() {
            1 => word.to_owned(),
            _ => format!("{}–{} {word}", first.position, last.position),
        };
        let class = if mark == Mark::Invalid { "value" } else { "guide-name" };
        drawing.text(class, (x, y), Anchor::Middle, &text);
    }
}

/// Dots in groups of those closer to the one before than `room` pixels.
fn neighbours<'a>(
    dots: impl Iterator<Item = &'a Dot>,
    area: &PanelArea,
    room: f64,
) -> Vec<Vec<&'a Dot>> {
    let mut groups: Vec<Vec<&Dot>> = Vec::new();
    for dot in dots {
        let near = |before: &&Dot| area.x.pixel(dot.x) - area.x.pixel(before.x) < room;
        match groups.last_mut() {
            Some(group) if group.last().is_some_and(near) => group.push(dot),
            _ => groups.push(vec![dot]),
        }
    }
    groups
}
