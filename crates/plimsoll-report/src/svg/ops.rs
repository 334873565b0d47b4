//! Which ops the throughput is made of: a column for each load point, a band for each kind of op.

use std::collections::BTreeMap;

use plimsoll_model::result::{PointResult, RunResult};

use super::Frame;
use super::draw::{Anchor, Drawing};
use super::scale::{Scale, spread, tick_room, tick_text, ticks};
use super::stacked::{named, upright};
use super::strip::{cut, spans};
use crate::text::axis_name;
use crate::view::ops_unit;

const HEIGHT: f64 = 200.0;
const TOP: f64 = 26.0;
/// Kinds that have a colour and a name; the others share one, on top.
const CLASSES: [&str; 8] = ["o1", "o2", "o3", "o4", "o5", "o6", "o7", "o8"];
const REST: &str = "rest";
const CHAR_WIDTH: f64 = 7.0; // of 12 px type
const LABEL_GAP: f64 = 14.0;

/// Ops of each kind that ended, per second, over load. Nothing for one kind of op.
pub(crate) fn ops_chart(frame: Frame<'_>, run: &RunResult) -> Option<String> {
    let kinds = kinds(run);
    let mut points: Vec<&PointResult> = run
        .points
        .iter()
        .filter(|p| p.requested.is_finite() && p.seconds.is_some_and(|s| s > 0.0))
        .collect();
    if kinds.len() < 2 || points.len() < 2 {
        return None;
    }
    points.sort_by(|a, b| a.requested.total_cmp(&b.requested));
    let loads: Vec<f64> = points.iter().map(|p| p.requested).collect();
    let stacks: Vec<Vec<f64>> = points.iter().map(|p| stack(p, &kinds)).collect();
    let top = stacks.iter().filter_map(|stack| stack.last()).copied().fold(0.0, f64::max);
    let y_ticks = named(ticks(top, 4), tick_text);
    let left = tick_room(&y_ticks).max(if frame.is_narrow() { 36.0 } else { 60.0 });
    let longest = kinds.iter().take(CLASSES.len()).map(|kind| kind.chars().count()).max();
    let room = longest.unwrap_or(0) as f64 * CHAR_WIDTH + 26.0;
    let right = frame.width - room.clamp(62.0, frame.width / 3.0);
    let bottom = TOP + HEIGHT;
    let y = Scale::new(y_ticks.last().map_or(1.0, |(value, _)| *value), bottom, TOP);
    let x_ticks = ticks(*loads.last()?, if frame.is_narrow() { 4 } else { 8 });
    let x = Scale::new(x_ticks.last().copied().unwrap_or(1.0), left, right);
    let spans = spans(&loads, x, (left, right));

    let mut drawing = Drawing::new();
    let title = format!("Ops that ended, by kind, {}", ops_unit(run));
    drawing.text("panel", (0.0, TOP - 11.0), Anchor::Start, &title);
    upright(&mut drawing, (y, &y_ticks), (left, right));
    for (number, kind) in kinds.iter().enumerate() {
        let areas: Vec<_> = stacks
            .iter()
            .zip(&spans)
            .map(|(stack, (from, to))| {
                let upper = y.at(stack[number + 1]);
                ((*from, upper), (to - from, y.at(stack[number]) - upper))
            })
            .collect();
        drawing.areas(&format!("kind {}", class(number)), &areas, kind);
    }
    label(&mut drawing, &kinds, (stacks.last()?, y), (spans.last()?.1, frame.width));
    for tick in &x_ticks {
        let at = x.at(*tick);
        drawing.line("base", (at, bottom), (at, bottom + 4.0));
        drawing.text("tick", (at, bottom + 17.0), Anchor::Middle, &tick_text(*tick));
    }
    drawing.text("axis-name", (right, bottom + 36.0), Anchor::End, &axis_name(&run.axis));
    let desc = "A column for each load point, the most frequent kind of op at its foot. The tables \
                of ops hold the same figures.";
    let size = (frame.width, bottom + 44.0);
    Some(drawing.finish(frame.id, size, "Ops by kind over load", desc))
}

/// The most frequent first.
fn kinds(run: &RunResult) -> Vec<&str> {
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    for (name, op) in run.points.iter().flat_map(|p| &p.ops) {
        let count = counts.entry(name).or_default();
        *count = count.saturating_add(op.count);
    }
    let mut kinds: Vec<_> = counts.into_iter().filter(|(_, count)| *count > 0).collect();
    kinds.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(b.0)));
    kinds.into_iter().map(|(name, _)| name).collect()
}

/// Where the bands of a point begin, from zero, and where the last ends.
fn stack(point: &PointResult, kinds: &[&str]) -> Vec<f64> {
    let seconds = point.seconds.unwrap_or(1.0);
    let mut sum = 0.0;
    let tops = kinds.iter().map(|kind| {
        sum += point.ops.get(*kind).map_or(0.0, |op| op.count as f64 / seconds);
        sum
    });
    std::iter::once(0.0).chain(tops).collect()
}

fn class(number: usize) -> &'static str {
    CLASSES.get(number).copied().unwrap_or(REST)
}

/// Names beside the last column.
fn label(
    drawing: &mut Drawing,
    kinds: &[&str],
    (stack, y): (&[f64], Scale),
    (column, edge): (f64, f64),
) {
    let middle = |i: usize| y.at(f64::midpoint(stack[i], stack[i + 1])) + 4.0;
    let mut names: Vec<(f64, &str, String)> = kinds
        .iter()
        .take(CLASSES.len())
        .enumerate()
        .map(|(i, kind)| (middle(i), class(i), (*kind).to_owned()))
        .collect();
    if kinds.len() > CLASSES.len() {
        let rest = kinds.len() - CLASSES.len();
        let at = y.at(f64::midpoint(stack[CLASSES.len()], stack[kinds.len()])) + 4.0;
        names.push((at, REST, format!("{rest} others")));
    }
    let wanted: Vec<f64> = names.iter().map(|name| name.0).collect();
    let placed = spread(&wanted, LABEL_GAP, TOP + 4.0, TOP + HEIGHT);
    for ((_, class, name), at) in names.iter().zip(placed) {
        let corner = (column + 6.0, at - 9.0);
        drawing.areas(&format!("kind {class}"), &[(corner, (9.0, 9.0))], "");
        let text = cut(name, edge - column - 20.0);
        drawing.text("tick", (column + 19.0, at), Anchor::Start, &text);
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_model::result::OpResult;

    use super::*;

    #[test]
    fn bands_lie_on_each_other_and_the_most_frequent_kind_at_the_foot() {
        let op = |count| OpResult { count, ..OpResult::default() };
        let ops = [("read", op(30)), ("write", op(60)), ("never", op(0))];
        let point = PointResult {
            seconds: Some(3.0),
            ops: ops.map(|(name, op)| (name.to_owned(), op)).into(),
            ..PointResult::default()
        };
        let run = RunResult { points: vec![point], ..RunResult::default() };
        assert_eq!(kinds(&run), ["write", "read"]);
        assert_eq!(stack(&run.points[0], &kinds(&run)), [0.0, 20.0, 30.0]);
    }
}
