//! Ratios of one group to another with their intervals, a line each, about the line of no
//! difference.

use plimsoll_model::comparison::{Claim, Comparison, FigureRow, Ratio};

use super::Frame;
use super::draw::{Anchor, Drawing};
use crate::view::ratios::{cell, charted, name_at_load};

const ROW: f64 = 24.0;
const TOP: f64 = 30.0;
const FOOT: f64 = 34.0;
/// Width of a letter of the labels.
const LETTER: f64 = 6.8;
/// Half a tick's text is beyond the axis.
const MARGIN: f64 = 14.0;
/// Room for the text about a ratio, on wide pages.
const TEXT_WIDTH: f64 = 250.0;
/// The axis shows at least a tenth to either side.
const LOG_MIN: f64 = 0.095;
/// Ratios beyond this leave the others without room; they end in an arrow.
const LOG_MAX: f64 = 2.4;
/// Round ratios, of which those within the axis are marked.
const TICKS: [f64; 17] =
    [0.1, 0.2, 0.33, 0.5, 0.7, 0.8, 0.9, 0.95, 1.0, 1.05, 1.1, 1.2, 1.5, 2.0, 3.0, 5.0, 10.0];
/// Marks closer than this run into each other.
const TICK_ROOM: f64 = 34.0;

/// Nothing where there is no ratio.
pub(crate) fn ratio_chart(
    frame: Frame<'_>,
    comparison: &Comparison,
    index: usize,
) -> Option<String> {
    let has_ratio = |row: &&FigureRow| {
        row.ratios.get(index).is_some_and(|it| it.ratio.is_some() && it.claim != Claim::Absent)
    };
    let rows: Vec<&FigureRow> = charted(comparison, index).filter(has_ratio).collect();
    if rows.is_empty() {
        return None;
    }
    let longest =
        rows.iter().map(|row| name_at_load(row).chars().count()).max().unwrap_or_default();
    let left = LETTER * longest as f64 + 2.0 * MARGIN;
    let right = frame.width - if frame.is_narrow() { MARGIN } else { TEXT_WIDTH };
    let ratios = || rows.iter().map(|row| &row.ratios[index]);
    let furthest = ratios().flat_map(ends).map(|end| end.ln().abs()).fold(LOG_MIN, f64::max);
    let reach = (furthest * 1.08).min(LOG_MAX);
    let x = |ratio: f64| {
        let part = (ratio.ln() / reach).clamp(-1.0, 1.0);
        left + (right - left) * (part + 1.0) / 2.0
    };
    let bottom = TOP + ROW * rows.len() as f64;
    let mut drawing = Drawing::new();
    ticks(&mut drawing, reach, &x, bottom);
    drawing.line("base", (x(1.0), TOP - 6.0), (x(1.0), bottom));
    for (at, row) in rows.iter().enumerate() {
        let y = TOP + ROW * (at as f64 + 0.5);
        let ratio = &row.ratios[index];
        let (class, text) = (class(ratio), cell(row, index));
        drawing.text("label", (left - MARGIN, y + 4.0), Anchor::End, &name_at_load(row));
        if let Some([low, high]) = ratio.interval {
            drawing.line(&format!("whisker {class}"), (x(low), y), (x(high), y));
        }
        let tip = format!("{}: {text}", name_at_load(row));
        let at = (x(ratio.ratio.unwrap_or(1.0)), y);
        drawing.circle(&format!("dot {class}"), at, 4.5, Some(&tip));
        if !frame.is_narrow() {
            drawing.text("small", (right + MARGIN, y + 4.0), Anchor::Start, &text);
        }
    }
    let [first, other] = [0, index + 1].map(|at| comparison.groups[at].name());
    let title = format!("Ratios of {other} to {first}, with 95 % intervals");
    let desc = "Left of the middle line the figure is smaller, right of it larger. Strong: the \
                interval leaves 1 out. The tables hold the same figures.";
    Some(drawing.finish(frame.id, (frame.width, bottom + FOOT), &title, desc))
}

fn ends(ratio: &Ratio) -> impl Iterator<Item = f64> {
    let ends = ratio.interval.unwrap_or_default();
    ends.into_iter().chain(ratio.ratio).filter(|end| *end > 0.0 && end.is_finite())
}

/// Strong where a difference is claimed.
fn class(ratio: &Ratio) -> &'static str {
    match (ratio.claim, ratio.interval.is_some()) {
        (Claim::Differs, _) => "s1",
        (_, true) => "weak",
        (_, false) => "weak ring",
    }
}

fn ticks(drawing: &mut Drawing, reach: f64, x: &impl Fn(f64) -> f64, bottom: f64) {
    // From the middle outwards, so that 1 has its mark.
    let mut within: Vec<f64> = TICKS.into_iter().filter(|t| t.ln().abs() <= reach).collect();
    within.sort_by(|a, b| a.ln().abs().total_cmp(&b.ln().abs()));
    let mut drawn: Vec<f64> = Vec::new();
    for tick in within {
        let at = x(tick);
        if drawn.iter().any(|other| (other - at).abs() < TICK_ROOM) {
            continue;
        }
        drawn.push(at);
        drawing.line("grid", (at, TOP - 6.0), (at, bottom));
        let text = format!("{tick}×");
        drawing.text("tick", (at, bottom + 18.0), Anchor::Middle, &text);
    }
}
