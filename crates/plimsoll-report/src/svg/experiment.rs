//! The combinations of an experiment: means with intervals over the levels of the first factor, a
//! line for each combination of the others; of sizes, with the law that they follow.

use plimsoll_model::comparison::experiment::{Cell, Experiment, Law};
use plimsoll_model::comparison::{Comparison, GroupFigure, RatioFigure};
use plimsoll_model::suite::Metric;
use plimsoll_model::units::BYTES_PER_MIB;

use super::Frame;
use super::draw::{Anchor, Drawing};
use super::scale::{Scale, spread, tick_room, tick_text, ticks};
use super::stacked::{named, upright};
use crate::text::{TimeUnit, capitalised};
use crate::view::experiment::{cell_name, level_name};
use crate::view::ratios;

const TOP: f64 = 30.0;
const HEIGHT: f64 = 260.0;
const FOOT: f64 = 44.0;
/// Of a letter of the names at the lines' ends.
const LETTER: f64 = 7.6;
/// Marks of levels closer than this run into each other.
const TICK_ROOM: f64 = 44.0;
const LABEL_GAP: f64 = 15.0;
/// Lines of one level are beside each other, so that their intervals are told apart.
const APART: f64 = 5.0;
const CLASSES: [&str; 3] = ["s1", "s2", "s3"];
/// Half the width of an interval's ends.
const CAP: f64 = 4.0;
/// Steps of a law's curve.
const STEPS: u32 = 60;

/// A line of the picture.
struct Line<'a> {
    name: String,
    class: String,
    /// By level of the first factor.
    cells: Vec<&'a Cell>,
    law: Option<&'a Law>,
}

/// Nothing where fewer than two combinations have a mean.
pub(crate) fn experiment_chart(
    frame: Frame<'_>,
    comparison: &Comparison,
    it: &Experiment,
) -> Option<String> {
    let first = it.factors.first()?;
    if it.cells.iter().filter(|cell| cell.mean.is_some()).count() < 2 {
        return None;
    }
    let (unit, unit_name) = unit_of(comparison, it);
    let lines = lines(it);
    let tops = it.cells.iter().filter_map(|cell| cell.interval.map(|ends| ends[1]).or(cell.mean));
    let y_ticks = named(ticks(tops.fold(0.0, f64::max) / unit, 5), tick_text);
    let bottom = TOP + HEIGHT;
    let y = Scale::new(y_ticks.last().map_or(1.0, |(value, _)| *value), bottom, TOP);
    let longest = lines.iter().map(|line| line.name.chars().count()).max().unwrap_or(0);
    let names = if frame.is_narrow() { 0.0 } else { longest as f64 * LETTER };
    let area = (tick_room(&y_ticks).max(40.0), frame.width - names - 24.0);
    let x = Axis::of(it, area);
    let mut drawing = Drawing::new();
    let title = format!("{}{unit_name}", capitalised(ratios::name(it.response.figure)));
    drawing.text("panel", (0.0, TOP - 12.0), Anchor::Start, &title);
    upright(&mut drawing, (y, &y_ticks), area);
    x.draw(&mut drawing, it, bottom);
    for line in lines.iter().filter(|line| line.law.is_some()) {
        draw_law(&mut drawing, line, &x, |value| y.at(value / unit));
    }
    let count = lines.len() as f64;
    for (number, line) in (0_u32..).zip(&lines) {
        let aside = (f64::from(number) - (count - 1.0) / 2.0) * APART;
        draw_line(&mut drawing, (comparison, it), line, |level, value| {
            (x.at(level) + aside, y.at(value / unit))
        });
    }
    name_lines(&mut drawing, &lines, (frame, area.1), |value| y.at(value / unit));
    drawing.text(
        "axis-name",
        (area.1, bottom + 36.0),
        Anchor::End,
        &axis_name(first.unit.as_deref(), &first.name),
    );
    let title = format!("{} by {}", ratios::name(it.response.figure), first.name);
    let desc = "Upright lines are 95 % intervals. Dashed curves are the law of scalability, the \
                dotted line is straight growth. The table of combinations holds the same figures.";
    Some(drawing.finish(frame.id, (frame.width, bottom + FOOT), &title, desc))
}

/// At the lines' ends; on narrow pages in the corner below them.
fn name_lines(
    drawing: &mut Drawing,
    lines: &[Line<'_>],
    (frame, right): (Frame<'_>, f64),
    y: impl Fn(f64) -> f64,
) {
    let bottom = TOP + HEIGHT;
    let last = |line: &Line<'_>| line.cells.iter().rev().find_map(|cell| cell.mean);
    let (x, anchor, wanted): (f64, Anchor, Vec<f64>) = match frame.is_narrow() {
        true => (right, Anchor::End, lines.iter().map(|_| bottom - 8.0).collect()),
        false => {
            let ends = lines.iter().map(|line| y(last(line).unwrap_or(0.0)) + 4.0);
            (right + 16.0, Anchor::Start, ends.collect())
        }
    };
    let placed = spread(&wanted, LABEL_GAP, TOP + 4.0, bottom - 8.0);
    for (line, at) in lines.iter().zip(placed) {
        drawing.text(&format!("name {}", line.class), (x, at), anchor, &line.name);
    }
}

fn axis_name(unit: Option<&str>, name: &str) -> String {
    unit.map_or_else(|| name.to_owned(), |unit| format!("{name}, {unit}"))
}

/// Size and name of the unit of the upright axis.
fn unit_of(comparison: &Comparison, it: &Experiment) -> (f64, String) {
    let means = it.cells.iter().filter_map(|cell| cell.mean);
    let largest = means.fold(0.0, f64::max);
    match it.response.figure {
        figure if figure.is_time() => {
            let unit = TimeUnit::for_largest(largest);
            (1.0 / unit.of(1.0), format!(", {}", unit.name()))
        }
        RatioFigure::Peak if comparison.unit == Metric::Bytes.unit() => {
            (BYTES_PER_MIB, ", MiB/s".to_owned())
        }
        RatioFigure::Peak => (1.0, format!(", {}", comparison.unit)),
        RatioFigure::AchievedOpsPerS => (1.0, format!(", {}", Metric::Ops.unit())),
        _ => (1.0, String::new()),
    }
}

/// A line for each combination of the factors after the first.
fn lines(it: &Experiment) -> Vec<Line<'_>> {
    let mut rests: Vec<&[usize]> = Vec::new();
    for cell in &it.cells {
        let rest = cell.levels.get(1..).unwrap_or_default();
        if !rests.contains(&rest) {
            rests.push(rest);
        }
    }
    let line = |(number, rest): (usize, &&'_ [usize])| {
        let mut cells: Vec<&Cell> =
            it.cells.iter().filter(|cell| cell.levels.get(1..) == Some(*rest)).collect();
        cells.sort_by_key(|cell| cell.levels.first().copied());
        let named = it.factors.iter().skip(1).zip(rest.iter());
        let named: Vec<String> = named.map(|(factor, at)| level_name(factor, *at)).collect();
        let dashed = if (number / CLASSES.len()) % 2 == 1 { " dashed" } else { "" };
        let is_of = |law: &&Law| {
            law.factor == 0
                && law.at.iter().all(|held| rest.get(held.factor - 1) == Some(&held.level))
        };
        // A law over the means of others has no line of its own.
        let law =
            it.laws.iter().find(is_of).filter(|law| it.factors.len() == 1 || !law.at.is_empty());
        let class = format!("{}{dashed}", CLASSES[number % CLASSES.len()]);
        Line { name: named.join(", "), class, cells, law }
    };
    rests.iter().enumerate().map(line).collect()
}

/// Where the levels of the first factor stand: by their sizes, or one beside the other.
struct Axis {
    at: Vec<f64>,
    scale: Option<Scale>,
}

impl Axis {
    fn of(it: &Experiment, (left, right): (f64, f64)) -> Self {
        let factor = &it.factors[0];
        match factor.values() {
            Some(values) => {
                let scale = Scale::new(values.iter().copied().fold(0.0, f64::max), left, right);
                let at = values.iter().map(|value| scale.at(*value)).collect();
                Self { at, scale: Some(scale) }
            }
            None => {
                let step = (right - left) / factor.levels.len().max(1) as f64;
                let at = (0..factor.levels.len()).map(|at| left + step * (at as f64 + 0.5));
                Self { at: at.collect(), scale: None }
            }
        }
    }

    fn at(&self, level: usize) -> f64 {
        self.at.get(level).copied().unwrap_or_default()
    }

    fn draw(&self, drawing: &mut Drawing, it: &Experiment, bottom: f64) {
        let mut before = f64::NEG_INFINITY;
        for (level, at) in it.factors[0].levels.iter().zip(&self.at) {
            drawing.line("base", (*at, bottom), (*at, bottom + 4.0));
            if at - before >= TICK_ROOM {
                drawing.text("tick", (*at, bottom + 18.0), Anchor::Middle, &level.name);
                before = *at;
            }
        }
    }
}

fn draw_line(
    drawing: &mut Drawing,
    (comparison, it): (&Comparison, &Experiment),
    line: &Line<'_>,
    place: impl Fn(usize, f64) -> (f64, f64),
) {
    let level = |cell: &Cell| cell.levels.first().copied().unwrap_or_default();
    let known = line.cells.iter().filter_map(|cell| Some((*cell, cell.mean?)));
    let points: Vec<(f64, f64)> =
        known.clone().map(|(cell, mean)| place(level(cell), mean)).collect();
    // The law joins them better.
    if line.law.is_none() {
        drawing.polyline(&format!("curve {}", line.class), &points);
    }
    for (cell, mean) in known {
        let at = place(level(cell), mean);
        if let Some([low, high]) = cell.interval {
            let ends = [low, high].map(|end| place(level(cell), end));
            drawing.line(&format!("whisker {}", line.class), ends[0], ends[1]);
            for (x, y) in ends {
                let class = format!("whisker {}", line.class);
                drawing.line(&class, (x - CAP, y), (x + CAP, y));
            }
        }
        let (mean, at_least) = (Some(mean), cell.at_least);
        let group = GroupFigure { mean, at_least, ..GroupFigure::default() };
        let value = ratios::value(comparison, it.response.figure, &group);
        let tip = format!("{}: {value}", cell_name(it, &cell.levels));
        match cell.at_least {
            true => drawing.arrow(&format!("beyond {}", line.class), (at.0, at.1 - 4.0), &tip),
            false => drawing.dot(&format!("dot {}", line.class), at, 3.0, &tip),
        }
    }
}

/// The law as far as it was measured, and straight growth from its smallest size.
fn draw_law(drawing: &mut Drawing, line: &Line<'_>, x: &Axis, y: impl Fn(f64) -> f64) {
    let Some((law, scale)) = line.law.zip(x.scale) else { return };
    let fit = &law.fit;
    let straight = |n: f64| (scale.at(n * law.one), y(fit.gamma * n));
    let end = (1..=STEPS).map(|step| fit.measured_to * f64::from(step) / f64::from(STEPS));
    let inside = end.map(straight).take_while(|(_, at)| *at >= TOP).last();
    if let Some(end) = inside {
        drawing.line("guide", straight(0.0), end);
    }
    let step = (fit.measured_to - 1.0) / f64::from(STEPS);
    let at = |step_number: u32| {
        let n = 1.0 + step * f64::from(step_number);
        let below = 1.0 + fit.alpha * (n - 1.0) + fit.beta * n * (n - 1.0);
        (scale.at(n * law.one), y(fit.gamma * n / below))
    };
    let curve: Vec<(f64, f64)> = (0..=STEPS).map(at).collect();
    drawing.polyline(&format!("curve dashed {}", line.class), &curve);
}
