//! Charts of servers of language models: times within answers and output over load, and output over
//! what each user gets.

use plimsoll_model::capacity::Figure;
use plimsoll_model::figure::StreamFigure;
use plimsoll_model::reported::ReportedFigure;
use plimsoll_model::result::{Generation, PointResult, RunResult};
use plimsoll_model::units::{Nanos, grouped};

use super::Frame;
use super::draw::Anchor;
use super::load::{chart_by_load, dots};
use super::plot::{Outline, Plot};
use super::scale::Axis;
use super::stacked::{Panel, Series};
use crate::table::Mark;
use crate::text::{capitalised, number, three_digits};

/// One point makes no curve.
const POINTS_MIN: usize = 2;
const DESC: &str = "The tables of generation hold the same figures.";

type Line = (&'static str, &'static str, StreamFigure, Figure);

/// Time to first output over load.
pub(crate) fn first_output_chart(frame: Frame<'_>, run: &RunResult) -> Option<String> {
    let first = StreamFigure::FirstOutput;
    let lines: [Line; 3] = [
        ("s1", "p50", first, Figure::P50),
        ("s2", "p90", first, Figure::P90),
        ("s3", "p99", first, Figure::P99),
    ];
    times(frame, run, ("Time to first output", &lines))
}

/// Chunk gaps and time per output token over load.
pub(crate) fn chunk_interval_chart(frame: Frame<'_>, run: &RunResult) -> Option<String> {
    let lines: [Line; 3] = [
        ("s1", "token p50", StreamFigure::Tpot, Figure::P50),
        ("s2", "gap p50", StreamFigure::ChunkGap, Figure::P50),
        ("s3", "gap p99", StreamFigure::ChunkGap, Figure::P99),
    ];
    times(frame, run, ("Chunk gap, time per token", &lines))
}

fn times(frame: Frame<'_>, run: &RunResult, (title, lines): (&str, &[Line])) -> Option<String> {
    let text = |ns: f64| Nanos(ns.round() as u64).to_string();
    let series = lines.iter().map(|&(class, label, of, figure)| {
        let value = move |p: &PointResult| {
            ReportedFigure::stream(p, of, figure)
                .map(|reported| reported.value)
                .filter(|ns| *ns > 0.0)
        };
        Series { class, label: label.to_owned(), dots: dots(run, value, text) }
    });
    let series: Vec<Series> = series.filter(|it| !it.dots.is_empty()).collect();
    chart_by_load(frame, run, &format!("{title} over load"), DESC, vec![Panel::log(title, series)?])
}

/// Output tokens per second over load; chunks where nobody counted tokens.
pub(crate) fn tokens_chart(frame: Frame<'_>, run: &RunResult) -> Option<String> {
    let tokens = |p: &PointResult| p.generation.as_ref()?.output_tokens_per_s;
    let chunks = |p: &PointResult| p.generation.as_ref()?.chunks_per_s;
    let counted = run.points.iter().any(|point| tokens(point).is_some());
    let (unit, value): (_, fn(&PointResult) -> Option<f64>) =
        if counted { ("output tokens/s", tokens) } else { ("chunks/s", chunks) };
    let dots = dots(run, value, |v| format!("{} {unit}", grouped(v)));
    let label = if counted { "tokens" } else { "chunks" };
    let panel = Panel::single(capitalised(unit), label, dots)?;
    chart_by_load(frame, run, &format!("{} over load", capitalised(unit)), DESC, vec![panel])
}

/// A load point of the step curve.
struct Step<'r> {
    point: &'r PointResult,
    /// Tokens per second that a user gets.
    x: f64,
    /// Tokens per second of the server.
    y: f64,
}

/// What a user gets: MLPerf's definition, or the mean where some sample is too small for a p90.
type OfUser = fn(&Generation) -> Option<f64>;

const BY_P90: (OfUser, &str) =
    (|it| it.tps_per_user, "output tokens/s of a user (1 / p90 of the time per token)");
const BY_MEAN: (OfUser, &str) =
    (|it| it.tokens_per_s_per_user, "output tokens/s of a user (1 / mean time per token)");

const RIGHT: f64 = 60.0;
const NAME_SPACING: f64 = 13.0;

/// Output tokens per second over those that each user gets, as MLPerf Endpoints draws it: steps
/// that keep the value of the last lower concurrency; nothing is drawn between two points.
pub(crate) fn step_chart(frame: Frame<'_>, run: &RunResult) -> Option<String> {
    let [by_p90, by_mean] = [BY_P90, BY_MEAN].map(|(of_user, _)| steps(run, of_user));
    let all_have_p90 = by_p90.len() >= by_mean.len();
    let (steps, (_, name)) = if all_have_p90 { (by_p90, BY_P90) } else { (by_mean, BY_MEAN) };
    if steps.len() < POINTS_MIN {
        return None;
    }
    let most = |of: fn(&Step<'_>) -> f64| steps.iter().map(of).fold(0.0, f64::max);
    let outline = Outline {
        title: "Output tokens/s, over those of a user",
        x: Axis::linear(most(|step| step.x), if frame.is_narrow() { 4 } else { 6 }),
        y: Axis::linear(most(|step| step.y), 4),
        x_name: if frame.is_narrow() { "output tokens/s of a user" } else { name },
        height: 240.0,
        margins: (frame.left(), RIGHT),
    };
    let mut plot = Plot::new(frame, &outline);
    let line: Vec<_> = steps.iter().map(|step| plot.area.pixels(step.x, step.y)).collect();
    plot.drawing.polyline("curve s1", &corners(&line));
    marks(&mut plot, &steps);
    let desc = format!(
        "Each step is a load point, with its {}; the value of the lower load is kept up to the next.",
        run.axis.name
    );
    Some(plot.finish("Output tokens/s over output tokens/s of a user", &desc))
}

/// By load.
fn steps(run: &RunResult, of_user: OfUser) -> Vec<Step<'_>> {
    let step = |point| of_point(point, of_user);
    let mut steps: Vec<Step<'_>> = run.points.iter().filter_map(step).collect();
    steps.sort_by(|a, b| a.point.requested.total_cmp(&b.point.requested));
    steps
}

fn of_point(point: &PointResult, of_user: OfUser) -> Option<Step<'_>> {
    let generation = point.generation.as_ref()?;
    Some(Step { point, x: of_user(generation)?, y: generation.output_tokens_per_s? })
}

/// From each point horizontally to the next one's x, then up or down to it.
fn corners(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let between = points.windows(2).flat_map(|pair| [(pair[1].0, pair[0].1), pair[1]]);
    points.first().copied().into_iter().chain(between).collect()
}

fn marks(plot: &mut Plot<'_>, steps: &[Step<'_>]) {
    let Plot { drawing, area, .. } = plot;
    let mut names = Vec::new();
    for step in steps {
        let (x, y) = area.pixels(step.x, step.y);
        let load = number(Some(step.point.requested));
        let tip =
            format!("{load}: {} output tokens/s, {} a user", grouped(step.y), three_digits(step.x));
        drawing.point("s1", (x, y), Mark::of_point(step.point), &tip);
        names.push(("tick".to_owned(), (x + 9.0, y + 4.0), load));
    }
    let edges = (area.top + 4.0, area.bottom - 4.0);
    drawing.texts_apart(&names, Anchor::Start, NAME_SPACING, edges);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_holds_the_value_of_the_lower_load_up_to_the_next() {
        let corners = corners(&[(90.0, 10.0), (60.0, 40.0), (30.0, 45.0)]);
        assert_eq!(corners, [(90.0, 10.0), (60.0, 10.0), (60.0, 40.0), (30.0, 40.0), (30.0, 45.0)]);
    }
}
