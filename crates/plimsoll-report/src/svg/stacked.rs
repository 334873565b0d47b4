//! Panels one above the other on one axis of load.

use super::Frame;
use super::bounds::{Bounds, PanelArea};
use super::draw::{Anchor, Drawing};
use super::scale::{Scale, log_ticks, spread, tick_room, tick_text, ticks, time_tick_text};
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

impl Guide {
    fn is_level(&self) -> bool {
        matches!(self, Self::Level(..))
    }
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
    /// It is too low for words about single dots; their shape says it there.
    fn is_low(&self) -> bool {
        self.height < LOW
    }

    /// From the bottom up.
    fn ticks(&self) -> Vec<(f64, String)> {
        let about = if self.is_low() { 3 } else { 4 };
        match self.floor_ns {
            Some(floor) => named(log_ticks(floor, self.top), time_tick_text),
            None => named(ticks(self.top, about), tick_text),
        }
    }

    fn scale(&self, ticks: &[(f64, String)], bottom: f64, top: f64) -> Scale {
        match self.floor_ns {
            Some(_) => log_scale(ticks, bottom, top),
            None => Scale::new(ticks.last().map_or(1.0, |(value, _)| *value), bottom, top),
        }
    }
}

/// Ticks with their texts.
pub(super) fn named(ticks: Vec<f64>, text: fn(f64) -> String) -> Vec<(f64, String)> {
    ticks.into_iter().map(|tick| (tick, text(tick))).collect()
}

/// The scale that its ticks span.
pub(super) fn log_scale(ticks: &[(f64, String)], bottom: f64, top: f64) -> Scale {
    let end = |tick: Option<&(f64, String)>| tick.map_or(1.0, |(value, _)| *value);
    Scale::log((end(ticks.first()), end(ticks.last())), bottom, top)
}

/// A set of panels with the axis they share.
pub(super) struct Stack {
    pub(super) title: String,
    pub(super) desc: String,
    /// Name and unit of the load.
    pub(super) axis: String,
    pub(super) loads: Vec<f64>,
    pub(super) panels: Vec<Panel>,
    /// Title and cells of what stands below the panels.
    pub(super) strip: Option<(&'static str, Vec<Cell>)>,
}

const TITLE_HEIGHT: f64 = 26.0;
const GAP: f64 = 18.0;
const FOOT: f64 = 44.0;
const LOW: f64 = 90.0;
const NAME_DIGIT_WIDTH: f64 = 8.2; // of 13 px bold type
const CHAR_WIDTH: f64 = 6.8; // of 12 px type
const LABEL_GAP: f64 = 14.0;

pub(super) fn draw(frame: Frame<'_>, stack: &Stack) -> String {
    let (room, margin) = if frame.is_narrow() { (36.0, 62.0) } else { (60.0, 86.0) };
    let left = stack.panels.iter().map(|p| tick_room(&p.ticks())).fold(room, f64::max);
    let names = stack.panels.iter().flat_map(|p| &p.series).map(|s| s.label.chars().count());
    let name = names.max().unwrap_or(0) as f64 * NAME_DIGIT_WIDTH + 12.0;
    let right = frame.width - name.max(margin);
    let largest = stack.loads.iter().copied().fold(0.0, f64::max);
    let x_ticks = ticks(largest, if frame.is_narrow() { 4 } else { 8 });
    let x = Scale::new(x_ticks.last().copied().unwrap_or(1.0), left, right);
    let mut drawing = Drawing::new();
    let mut top = 0.0;
    for panel in &stack.panels {
        top += TITLE_HEIGHT;
        let y_ticks = panel.ticks();
        let bottom = top + panel.height;
        let y = panel.scale(&y_ticks, bottom, top);
        let area = PanelArea { x, y, left, right, top, bottom, edge: frame.width };
        let class = if panel.is_low() { "panel small" } else { "panel" };
        if let Some(bounds) = &panel.bounds {
            bounds.draw(&mut drawing, &area);
        }
        drawing.text(class, (0.0, top - 11.0), Anchor::Start, &panel.title);
        axes(&mut drawing, &area, (&x_ticks, &y_ticks));
        draw_panel(&mut drawing, &area, panel);
        top = bottom + GAP;
    }
    let mut bottom = top - GAP;
    if let Some((title, cells)) = &stack.strip {
        drawing.text("panel", (0.0, top + TITLE_HEIGHT - 11.0), Anchor::Start, title);
        bottom = draw_strip(&mut drawing, cells, (x, (left, right)), top + TITLE_HEIGHT - 4.0);
    }
    for tick in &x_ticks {
        let at = (x.at(*tick), bottom + 17.0);
        drawing.text("tick", at, Anchor::Middle, &tick_text(*tick));
    }
    drawing.text("axis-name", (right, bottom + 36.0), Anchor::End, &stack.axis);
    drawing.finish(frame.id, (frame.width, bottom + FOOT), &stack.title, &stack.desc)
}

/// Grid and texts of an upright axis, from its lowest tick up.
pub(super) fn upright(
    drawing: &mut Drawing,
    (y, ticks): (Scale, &[(f64, String)]),
    (left, right): (f64, f64),
) {
    for (number, (tick, text)) in ticks.iter().enumerate() {
        let at = y.at(*tick);
        let class = if number == 0 { "base" } else { "grid" };
        drawing.line(class, (left, at), (right, at));
        drawing.text("tick", (left - 8.0, at + 4.0), Anchor::End, text);
    }
}

fn axes(drawing: &mut Drawing, area: &PanelArea, (x_ticks, y_ticks): (&[f64], &[(f64, String)])) {
    upright(drawing, (area.y, y_ticks), (area.left, area.right));
    for tick in x_ticks {
        let x = area.x.at(*tick);
        drawing.line("base", (x, area.bottom), (x, area.bottom + 4.0));
    }
}

fn draw_panel(drawing: &mut Drawing, area: &PanelArea, panel: &Panel) {
    for guide in &panel.guides {
        draw_guide(drawing, area, guide);
    }
    for series in &panel.series {
        for piece in inside(series, area.y.max()) {
            let points: Vec<_> =
                piece.iter().map(|(x, y)| (area.x.at(*x), area.y.at(*y))).collect();
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
    // Beside a limit's line there is no room for words; the shape says it there.
    if !panel.is_low() && !panel.guides.iter().any(Guide::is_level) {
        label_marked(drawing, area, panel, (Mark::Invalid, "invalid"));
        label_marked(drawing, area, panel, (Mark::NotCounted, "not counted"));
    }
}

fn draw_guide(drawing: &mut Drawing, area: &PanelArea, guide: &Guide) {
    match guide {
        Guide::Diagonal(label) => {
            let end = area.x.max().min(area.y.max());
            let at = (area.x.at(end), area.y.at(end));
            drawing.line("guide", (area.left, area.bottom), at);
            // At its end it would stand in the way of the peak's name.
            let middle = (area.x.at(end * 0.55), area.y.at(end * 0.55));
            let anchor = (middle.0 - 10.0, middle.1 - 2.0);
            drawing.text("guide-name", anchor, Anchor::End, label);
        }
        Guide::Level(level, label) => {
            let y = area.y.at(*level);
            drawing.line("limit", (area.left, y), (area.right, y));
            drawing.text("guide-name", (area.left + 6.0, y + 15.0), Anchor::Start, label);
        }
    }
}

fn tip(series: &Series, dot: &Dot) -> String {
    let judged = match dot.mark {
        Mark::Sound => "",
        Mark::NotCounted => " (not counted)",
        Mark::Invalid => " (invalid)",
    };
    format!("point {}{judged}: {} {}", dot.position, series.label, dot.text)
}

fn draw_dot(drawing: &mut Drawing, area: &PanelArea, series: &Series, dot: &Dot) {
    let at = (area.x.at(dot.x), area.y.at(dot.y));
    let tip = tip(series, dot);
    if dot.y > area.y.max() {
        let class = format!("beyond {}", series.class);
        drawing.arrow(&class, (at.0, area.top - 1.0), &tip);
        return;
    }
    match dot.mark {
        Mark::Sound => drawing.dot(&format!("dot {}", series.class), at, 3.2, &tip),
        Mark::NotCounted => drawing.dot(&format!("ring {}", series.class), at, 3.4, &tip),
        Mark::Invalid => drawing.cross(&format!("cross {}", series.class), at, &tip),
    }
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
    let ends: Vec<_> = panel
        .series
        .iter()
        .filter_map(|s| s.dots.iter().rfind(|dot| dot.y <= area.y.max()).map(|dot| (s, dot)))
        .map(|(s, dot)| (s, area.x.at(dot.x), area.y.at(dot.y)))
        .collect();
    let wanted: Vec<f64> = ends.iter().map(|(_, _, y)| y + 4.0).collect();
    let placed = spread(&wanted, LABEL_GAP, area.top + 4.0, area.bottom);
    for ((series, x, _), y) in ends.iter().zip(placed) {
        let class = format!("name {}", series.class);
        drawing.text(&class, (x + 10.0, y), Anchor::Start, &series.label);
    }
}

/// The values of the highest series beyond the axis: each beside its arrow, or first and last of
/// neighbours that stand too close for that.
fn label_beyond(drawing: &mut Drawing, area: &PanelArea, panel: &Panel) {
    const ROOM: f64 = 84.0;
    let Some(series) = panel.series.last() else { return };
    let beyond = series.dots.iter().filter(|dot| dot.y > area.y.max());
    let mut named = false;
    for group in neighbours(beyond, area, ROOM) {
        let (Some(first), Some(last)) = (group.first(), group.last()) else { continue };
        let name = if named { "" } else { series.label.as_str() };
        named = true;
        let x = area.x.at(last.x);
        if group.len() == 1 {
            let label = format!("{name} {}", first.text);
            let at = (x - 8.0, area.top + 8.0);
            drawing.text("value", at, Anchor::End, label.trim_start());
        } else {
            let label = format!("{name} {} … {}", first.text, last.text);
            let end = (x + 70.0).min(area.edge);
            let free = end - label.chars().count() as f64 * CHAR_WIDTH
                > panel.title.chars().count() as f64 * NAME_DIGIT_WIDTH;
            // Beside the panel's title, or else below the arrows.
            let at = (end, if free { area.top - 9.0 } else { area.top + 20.0 });
            drawing.text("value", at, Anchor::End, label.trim_start());
        }
    }
}

/// Marks the highest throughput, above which there is room.
fn label_peak(drawing: &mut Drawing, area: &PanelArea, panel: &Panel) {
    let Some((series, position)) = panel.series.first().zip(panel.peak) else { return };
    let Some(dot) = series.dots.iter().find(|dot| dot.position == position) else { return };
    let at = (area.x.at(dot.x), area.y.at(dot.y));
    drawing.ring_around(&format!("peak {}", series.class), at, 7.0);
    drawing.text("guide-name", (at.0, at.1 - 11.0), Anchor::Middle, "peak");
}

/// Says a mark in words, one label for neighbours that stand too close for one each.
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
        let x = f64::midpoint(area.x.at(first.x), area.x.at(last.x));
        let below = area.y.at(lowest) + 20.0;
        let y = if below < area.bottom - 4.0 { below } else { area.y.at(lowest) - 12.0 };
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
        let near = |before: &&Dot| area.x.at(dot.x) - area.x.at(before.x) < room;
        match groups.last_mut() {
            Some(group) if group.last().is_some_and(near) => group.push(dot),
            _ => groups.push(vec![dot]),
        }
    }
    groups
}
