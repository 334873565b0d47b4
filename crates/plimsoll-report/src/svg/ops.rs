//! Which ops the throughput is made of: a column for each load point, a band for each kind of op.

use std::collections::BTreeMap;

use plimsoll_model::result::{PointResult, RunResult};

use super::Frame;
use super::draw::Anchor;
use super::plot::{Outline, PanelArea, Plot};
use super::scale::{Axis, spread};
use super::strip::{cut, spans};
use crate::text::axis_name;
use crate::view::ops_unit;

const HEIGHT: f64 = 200.0;
/// Kinds that have a colour and a name; the others share one, on top.
const CLASSES: [&str; 8] = ["o1", "o2", "o3", "o4", "o5", "o6", "o7", "o8"];
const REST: &str = "rest";
const CHAR_WIDTH: f64 = 7.0; // of 12 px type
const LABEL_SPACING: f64 = 14.0;

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
    let longest = kinds.iter().take(CLASSES.len()).map(|kind| kind.chars().count()).max();
    let room = longest.unwrap_or(0) as f64 * CHAR_WIDTH + 26.0;
    let outline = Outline {
        title: &format!("Ops that ended, by kind, {}", ops_unit(run)),
        x: Axis::linear(*loads.last()?, frame.steps()),
        y: Axis::linear(top, 4),
        x_name: &axis_name(&run.axis),
        height: HEIGHT,
        margins: (frame.left(), room.clamp(62.0, frame.width / 3.0)),
    };
    let mut plot = Plot::new(frame, &outline);
    let PanelArea { x, y, left, right, .. } = plot.area;
    let spans = spans(&loads, x, (left, right));
    for (number, kind) in kinds.iter().enumerate() {
        let areas: Vec<_> = stacks
            .iter()
            .zip(&spans)
            .map(|(stack, (from, to))| {
                let upper = y.pixel(stack[number + 1]);
                ((*from, upper), (to - from, y.pixel(stack[number]) - upper))
            })
            .collect();
        plot.drawing.areas(&format!("kind {}", class(number)), &areas, kind);
    }
    label(&mut plot, &kinds, stacks.last()?, spans.last()?.1);
    let desc = "A column for each load point, the most frequent kind of op at its foot. The tables \
                of ops hold the same figures.";
    Some(plot.finish("Ops by kind over load", desc))
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

/// Names next to the last column.
fn label(plot: &mut Plot<'_>, kinds: &[&str], stack: &[f64], column: f64) {
    let PanelArea { y, top, bottom, edge, .. } = plot.area;
    let middle = |from: usize, to: usize| y.pixel(f64::midpoint(stack[from], stack[to])) + 4.0;
    let named = kinds.iter().take(CLASSES.len()).enumerate();
    let mut names: Vec<(f64, &str, String)> =
        named.map(|(i, kind)| (middle(i, i + 1), class(i), (*kind).to_owned())).collect();
    if kinds.len() > CLASSES.len() {
        let rest = kinds.len() - CLASSES.len();
        names.push((middle(CLASSES.len(), kinds.len()), REST, format!("{rest} others")));
    }
    let preferred: Vec<f64> = names.iter().map(|name| name.0).collect();
    let positions = spread(&preferred, LABEL_SPACING, top + 4.0, bottom);
    for ((_, class, name), at) in names.iter().zip(positions) {
        let corner = (column + 6.0, at - 9.0);
        plot.drawing.areas(&format!("kind {class}"), &[(corner, (9.0, 9.0))], "");
        let text = cut(name, edge - column - 20.0);
        plot.drawing.text("tick", (column + 19.0, at), Anchor::Start, &text);
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
