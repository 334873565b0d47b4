//! The combinations of an experiment: means with intervals over the levels of the first factor, a
//! line for each combination of the others; of sizes, with the law that they follow.

use plimsoll_model::comparison::experiment::{Cell, Experiment, Factor, Law};
use plimsoll_model::comparison::{Comparison, GroupFigure, RatioFigure};
use plimsoll_model::suite::Metric;
use plimsoll_model::units::BYTES_PER_MIB;

use super::Frame;
use super::draw::Anchor;
use super::plot::{Outline, PanelArea, Plot};
use super::scale::Axis;
use crate::text::{TimeUnit, capitalised};
use crate::view::experiment::{cell_name, level_name};
use crate::view::ratios;

/// Width of a letter of the names at the lines' ends.
const LETTER: f64 = 7.6;
/// Marks of levels closer than this run into each other.
const TICK_ROOM: f64 = 44.0;
const LABEL_SPACING: f64 = 15.0;
/// Lines of one level are next to each other, so that their intervals do not overlap.
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
    let longest = lines.iter().map(|line| line.name.chars().count()).max().unwrap_or(0);
    let names = if frame.is_narrow() { 0.0 } else { longest as f64 * LETTER };
    let outline = Outline {
        title: &format!("{}{unit_name}", capitalised(ratios::name(it.response.figure))),
        x: level_axis(first),
        y: Axis::linear(tops.fold(0.0, f64::max) / unit, 5),
        x_name: &axis_name(first.unit.as_deref(), &first.name),
        height: 260.0,
        margins: (40.0, names + 24.0),
    };
    let mut plot = Plot::new(frame, &outline);
    let y = |area: &PanelArea, value: f64| area.y.pixel(value / unit);
    for line in &lines {
        draw_law(&mut plot, line, y);
    }
    let count = lines.len() as f64;
    for (number, line) in (0_u32..).zip(&lines) {
        let aside = (f64::from(number) - (count - 1.0) / 2.0) * APART;
        draw_line(&mut plot, (comparison, it), line, |area, level, value| {
            let position = outline.x.ticks.get(level).map_or(0.0, |(position, _)| *position);
            (area.x.pixel(position) + aside, y(area, value))
        });
    }
    name_lines(&mut plot, &lines, frame, y);
    let title = format!("{} by {}", ratios::name(it.response.figure), first.name);
    let desc = "Upright lines are 95 % intervals. Dashed curves are the law of scalability, the \
                dotted line is straight growth. The table of combinations holds the same figures.";
    Some(plot.finish(&title, desc))
}

/// At the lines' ends; on narrow pages in the corner below them.
fn name_lines(
    plot: &mut Plot<'_>,
    lines: &[Line<'_>],
    frame: Frame<'_>,
    y: impl Fn(&PanelArea, f64) -> f64,
) {
    let Plot { drawing, area, .. } = plot;
    let lowest = area.bottom - 8.0;
    let last = |line: &Line<'_>| line.cells.iter().rev().find_map(|cell| cell.mean);
    let name = |line: &Line<'_>| {
        let at = match frame.is_narrow() {
            true => (area.right, lowest),
            false => (area.right + 16.0, y(area, last(line).unwrap_or(0.0)) + 4.0),
        };
        (format!("name {}", line.class), at, line.name.clone())
    };
    let names: Vec<_> = lines.iter().map(name).collect();
    let anchor = if frame.is_narrow() { Anchor::End } else { Anchor::Start };
    drawing.texts_apart(&names, anchor, LABEL_SPACING, (area.top + 4.0, lowest));
}

fn axis_name(unit: Option<&str>, name: &str) -> String {
    unit.map_or_else(|| name.to_owned(), |unit| format!("{name}, {unit}"))
}

/// Size and name of the unit of the upright axis.
fn unit_of(comparison: &Comparison, it: &Experiment) -> (f64, String) {
    let largest = it.cells.iter().filter_map(|cell| cell.mean).fold(0.0, f64::max);
    match it.response.figure {
        figure if figure.is_time() => {
            let unit = TimeUnit::for_largest(largest);
            (1.0 / unit.convert(1.0), format!(", {}", unit.name()))
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
                && law.at.iter().all(|fixed| rest.get(fixed.factor - 1) == Some(&fixed.level))
        };
        // A law over the means of others has no line of its own.
        let law =
            it.laws.iter().find(is_of).filter(|law| it.factors.len() == 1 || !law.at.is_empty());
        let class = format!("{}{dashed}", CLASSES[number % CLASSES.len()]);
        Line { name: named.join(", "), class, cells, law }
    };
    rests.iter().enumerate().map(line).collect()
}

/// The levels by their sizes, or evenly spaced.
fn level_axis(factor: &Factor) -> Axis {
    let positions = factor
        .values()
        .unwrap_or_else(|| (0..factor.levels.len()).map(|level| level as f64 + 0.5).collect());
    let max = match factor.values() {
        Some(values) => values.into_iter().fold(0.0, f64::max),
        None => factor.levels.len().max(1) as f64,
    };
    let names = factor.levels.iter().map(|level| level.name.clone());
    let ticks = positions.into_iter().zip(names).collect();
    Axis::marked(ticks, max).with_half_room(|_| TICK_ROOM / 2.0)
}

fn draw_line(
    Plot { drawing, area, .. }: &mut Plot<'_>,
    (comparison, it): (&Comparison, &Experiment),
    line: &Line<'_>,
    pixels: impl Fn(&PanelArea, usize, f64) -> (f64, f64),
) {
    let pixels = |level: usize, value: f64| pixels(area, level, value);
    let level = |cell: &Cell| cell.levels.first().copied().unwrap_or_default();
    let means = line.cells.iter().filter_map(|cell| Some((*cell, cell.mean?)));
    let points: Vec<(f64, f64)> =
        means.clone().map(|(cell, mean)| pixels(level(cell), mean)).collect();
    // The law joins them better.
    if line.law.is_none() {
        drawing.polyline(&format!("curve {}", line.class), &points);
    }
    for (cell, mean) in means {
        let at = pixels(level(cell), mean);
        if let Some([low, high]) = cell.interval {
            let ends = [low, high].map(|end| pixels(level(cell), end));
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
            false => drawing.circle(&format!("dot {}", line.class), at, 3.0, Some(&tip)),
        }
    }
}

/// The law as far as it was measured, and straight growth from its smallest size.
fn draw_law(plot: &mut Plot<'_>, line: &Line<'_>, y: impl Fn(&PanelArea, f64) -> f64) {
    let Plot { drawing, area, .. } = plot;
    let Some(law) = line.law else { return };
    let fit = &law.fit;
    let straight = |n: f64| (area.x.pixel(n * law.one), y(area, fit.gamma * n));
    let end = (1..=STEPS).map(|step| fit.measured_to * f64::from(step) / f64::from(STEPS));
    let inside = end.map(straight).take_while(|(_, at)| *at >= area.top).last();
    if let Some(end) = inside {
        drawing.line("guide", straight(0.0), end);
    }
    let step = (fit.measured_to - 1.0) / f64::from(STEPS);
    let at = |step_number: u32| {
        let n = 1.0 + step * f64::from(step_number);
        let below = 1.0 + fit.alpha * (n - 1.0) + fit.beta * n * (n - 1.0);
        (area.x.pixel(n * law.one), y(area, fit.gamma * n / below))
    };
    let curve: Vec<(f64, f64)> = (0..=STEPS).map(at).collect();
    drawing.polyline(&format!("curve dashed {}", line.class), &curve);
}
