//! What limited each load point: a strip of cells on the axis of the panels above it.

use plimsoll_model::limit::LimitKind;
use plimsoll_model::result::{PointResult, RunResult};

use super::draw::{Anchor, Drawing};
use super::scale::Scale;
use crate::sentences;
use crate::text::load;
use crate::view::limit_name;

const HEIGHT: f64 = 24.0;
const CHAR_WIDTH: f64 = 6.6; // of 12 px type
const KEY_LINE: f64 = 20.0;
const SWATCH: f64 = 11.0;
const MARGIN: f64 = 50.0; // right of the axis, where lines have their names

pub(super) struct Cell {
    x: f64,
    class: &'static str,
    label: String,
    tip: String,
}

/// A cell with the pixels it spans.
struct CellSpan<'c> {
    cell: &'c Cell,
    from: f64,
    to: f64,
}

/// The points of a run, in the order of their load.
pub(super) fn cells(run: &RunResult) -> Vec<Cell> {
    let finite = run.points.iter().filter(|p| p.requested.is_finite());
    let mut cells: Vec<Cell> = finite.map(|p| cell(run, p)).collect();
    cells.sort_by(|a, b| a.x.total_cmp(&b.x));
    cells
}

fn cell(run: &RunResult, point: &PointResult) -> Cell {
    let label = limit_name(&point.limit);
    let load = load(point.requested, &run.axis);
    let limit_text = Some(sentences::limit::text(&point.limit)).filter(|text| !text.is_empty());
    let limit_text = limit_text.map_or_else(String::new, |text| format!("; {text}"));
    let tip = format!("point {}, {load}: {label}{limit_text}", point.position);
    Cell { x: point.requested, class: class(point.limit.kind), label, tip }
}

/// Kinds that are easily confused share a colour; their labels differ.
const fn class(kind: LimitKind) -> &'static str {
    match kind {
        LimitKind::Processor
        | LimitKind::Core
        | LimitKind::Quota
        | LimitKind::Hypervisor
        | LimitKind::Gpu => "cpu",
        LimitKind::Disk => "disk",
        LimitKind::Network => "network",
        LimitKind::Memory | LimitKind::KvCache => "memory",
        LimitKind::Pool | LimitKind::Lock | LimitKind::Batch => "soft",
        LimitKind::Clients | LimitKind::Slots | LimitKind::Generator | LimitKind::Cap => "load",
        LimitKind::None => "none",
        LimitKind::Unknown => "unknown",
    }
}

/// Draws the strip below `top`; above it a key of the limits whose cells have no room for their
/// name. Returns where it ends.
pub(super) fn draw_strip(
    drawing: &mut Drawing,
    cells: &[Cell],
    (x, edges): (Scale, (f64, f64)),
    top: f64,
) -> f64 {
    let laid_out = cell_spans(cells, x, edges);
    let groups: Vec<_> = laid_out.chunk_by(|a, b| a.cell.label == b.cell.label).collect();
    let (roomy, tight): (Vec<_>, Vec<_>) =
        groups.into_iter().partition(|group| width(&group[0].cell.label) + 8.0 <= span(group));
    let mut unnamed: Vec<&Cell> = Vec::new();
    for cell in tight.iter().map(|group| group[0].cell) {
        let mut named = roomy.iter().map(|group| group[0].cell).chain(unnamed.iter().copied());
        if !named.any(|other| other.label == cell.label) {
            unnamed.push(cell);
        }
    }
    let top = draw_key(drawing, &unnamed, edges, top);
    for CellSpan { cell, from, to } in &laid_out {
        let class = format!("cell {}", cell.class);
        drawing.rect(&class, ((*from, top), (to - from, HEIGHT)), Some(&cell.tip));
    }
    for group in roomy {
        let at = (group[0].from + span(group) / 2.0, top + HEIGHT / 2.0 + 4.0);
        drawing.text("cell-name", at, Anchor::Middle, &group[0].cell.label);
    }
    top + HEIGHT
}

/// Swatches with names, from left to right in as many lines as it takes. Returns where it ends.
fn draw_key(
    drawing: &mut Drawing,
    cells: &[&Cell],
    (left, right): (f64, f64),
    mut top: f64,
) -> f64 {
    let mut x = left;
    for cell in cells {
        let label = cut(&cell.label, right + MARGIN - left - SWATCH - 6.0);
        let room = SWATCH + 6.0 + width(&label);
        if x > left && x + room > right {
            (x, top) = (left, top + KEY_LINE);
        }
        let class = format!("cell {}", cell.class);
        drawing.rect(&class, ((x, top + 2.0), (SWATCH, SWATCH)), None);
        let at = (x + SWATCH + 6.0, top + SWATCH);
        drawing.text("cell-name", at, Anchor::Start, &label);
        x += room + 18.0;
    }
    if cells.is_empty() { top } else { top + KEY_LINE }
}

fn cell_spans<'c>(cells: &'c [Cell], x: Scale, edges: (f64, f64)) -> Vec<CellSpan<'c>> {
    let loads: Vec<f64> = cells.iter().map(|cell| cell.x).collect();
    let spans = spans(&loads, x, edges);
    cells.iter().zip(spans).map(|(cell, (from, to))| CellSpan { cell, from, to }).collect()
}

/// Pixels of each load, in rising order: each reaches to the middle between itself and its
/// neighbours; points of the same load share its room.
pub(super) fn spans(loads: &[f64], x: Scale, (left, right): (f64, f64)) -> Vec<(f64, f64)> {
    let groups: Vec<&[f64]> = loads.chunk_by(|a, b| a == b).collect();
    let at = |i: usize| x.pixel(groups[i][0]);
    let mut spans = Vec::with_capacity(loads.len());
    for (i, same) in groups.iter().enumerate() {
        let before = (i > 0).then(|| (at(i) - at(i - 1)) / 2.0);
        let after = (i + 1 < groups.len()).then(|| (at(i + 1) - at(i)) / 2.0);
        let alone = (right - left) / 2.0;
        let from = (at(i) - before.or(after).unwrap_or(alone)).max(left);
        let to = (at(i) + after.or(before).unwrap_or(alone)).min(right);
        let share = (to - from) / same.len() as f64;
        spans.extend((0..same.len()).map(|k| {
            let from = from + share * k as f64;
            (from, from + share)
        }));
    }
    spans
}

fn span(group: &[CellSpan<'_>]) -> f64 {
    match group {
        [first, .., last] => last.to - first.from,
        [only] => only.to - only.from,
        [] => 0.0,
    }
}

/// As much of a name as there is room for; tip and table have the whole.
pub(super) fn cut(label: &str, room: f64) -> String {
    let fits = (room / CHAR_WIDTH) as usize;
    match label.chars().count() > fits {
        true => label.chars().take(fits.saturating_sub(1)).chain(['…']).collect(),
        false => label.to_owned(),
    }
}

fn width(label: &str) -> f64 {
    label.chars().count() as f64 * CHAR_WIDTH
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(x: f64, label: &str) -> Cell {
        Cell { x, class: "cpu", label: label.to_owned(), tip: String::new() }
    }

    #[test]
    fn cells_meet_between_their_loads_and_end_at_the_axis() {
        let cells = [cell(10.0, "a"), cell(20.0, "b"), cell(20.0, "c"), cell(40.0, "d")];
        let laid_out = cell_spans(&cells, Scale::new(40.0, 0.0, 400.0), (0.0, 400.0));
        let spans: Vec<_> = laid_out.iter().map(|p| (p.from, p.to)).collect();
        assert_eq!(spans, [(50.0, 150.0), (150.0, 225.0), (225.0, 300.0), (300.0, 400.0)]);
    }

    #[test]
    fn a_name_without_room_in_its_cell_stands_in_the_key_once() {
        let long = "pool: service threads of the server";
        let cells = [cell(10.0, long), cell(20.0, "core 1"), cell(21.0, long), cell(100.0, "vda")];
        let mut drawing = Drawing::new();
        let scale = Scale::new(100.0, 0.0, 300.0);
        let bottom = draw_strip(&mut drawing, &cells, (scale, (0.0, 300.0)), 0.0);
        let svg = drawing.finish("c", (300.0, bottom), "", "");
        assert_eq!(svg.matches(&format!(">{long}</text>")).count(), 1, "{svg}");
        assert_eq!(svg.matches(">vda</text>").count(), 1, "{svg}");
        assert!(bottom > HEIGHT, "the key is above the strip");
        assert_eq!(cut(long, 66.0), "pool: ser…");
    }
}
