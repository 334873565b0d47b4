//! Results for a language model's users at each load point, a row for each; and goodput.

use std::fmt::Write as _;

use plimsoll_model::capacity::Figure;
use plimsoll_model::figure::StreamFigure;
use plimsoll_model::reported::ReportedFigure;
use plimsoll_model::result::{PointResult, RunResult};
use plimsoll_model::units::{grouped, percent, three_digits};

use super::super::Style;
use super::extent::Extent;
use super::table::thinned_of;

const ABSENT: &str = "–";

/// Title of a column and its cells.
type Column = (&'static str, fn(&PointResult) -> Option<String>);

const COLUMNS: [Column; 9] = [
    ("tokens/s", |p| ReportedFigure::tokens_per_s(p).map(|rate| grouped(rate.value.round()))),
    ("chunks/s", |p| match ReportedFigure::tokens_per_s(p) {
        None => p.generation.as_ref()?.chunks_per_s.map(|rate| grouped(rate.round())),
        Some(_) => None,
    }),
    ("a user", |p| p.generation.as_ref()?.tokens_per_s_per_user.map(three_digits)),
    ("first output p50", |p| time(p, StreamFigure::FirstOutput, Figure::P50)),
    ("p90", |p| time(p, StreamFigure::FirstOutput, Figure::P90)),
    ("per token p50", |p| time(p, StreamFigure::Tpot, Figure::P50)),
    ("p90", |p| time(p, StreamFigure::Tpot, Figure::P90)),
    ("gap p99", |p| time(p, StreamFigure::ChunkGap, Figure::P99)),
    ("goodput", |p| ReportedFigure::goodput(p).map(|share| percent(share.value))),
];

fn time(point: &PointResult, of: StreamFigure, figure: Figure) -> Option<String> {
    ReportedFigure::stream(point, of, figure).map(|reported| reported.bare_time_text())
}

/// The table; empty if no point generated tokens and goodput was not requested.
pub(super) fn push(out: &mut String, result: &RunResult, style: Style, extent: &Extent) {
    let has_generation =
        |point: &PointResult| point.generation.is_some() || point.goodput.is_some();
    if !result.points.iter().any(has_generation) {
        return;
    }
    let points = thinned_of(result, extent);
    let mut columns = vec![column(&result.axis.name, &points, |p| Some(grouped(p.requested)))];
    for (title, cell) in COLUMNS {
        let cells = column(title, &points, cell);
        if cells[1..].iter().any(|text| text != ABSENT) {
            columns.push(cells);
        }
    }
    let row = |at: usize| {
        let cells = columns.iter().map(|cells| {
            let wide = cells.iter().map(|cell| cell.chars().count()).max().unwrap_or(0);
            format!("{:>wide$}", cells[at])
        });
        cells.collect::<Vec<_>>().join("  ")
    };
    let _ = writeln!(out, "{}  {}", extent.separator(), style.dim(&row(0)));
    for at in 1..=points.len() {
        let _ = writeln!(out, "  {}", row(at));
    }
    push_limits(out, result);
}

/// The title and then the cells.
fn column(
    title: &str,
    points: &[&PointResult],
    cell: impl Fn(&PointResult) -> Option<String>,
) -> Vec<String> {
    let cells = points.iter().map(|point| cell(point).unwrap_or_else(|| ABSENT.to_owned()));
    std::iter::once(title.to_owned()).chain(cells).collect()
}

/// The limits of a good op.
fn push_limits(out: &mut String, result: &RunResult) {
    if let Some(goodput) = result.points.iter().find_map(|point| point.goodput.as_ref()) {
        let _ = writeln!(out, "  goodput: requests within {}", goodput.limits.text());
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_model::goodput::Goodput;
    use plimsoll_model::result::{Axis, Generation, TimeSummary};

    use super::*;

    fn run(generation: Option<Generation>, goodput: Option<Goodput>) -> String {
        let point = PointResult { requested: 8.0, generation, goodput, ..PointResult::default() };
        let axis = Axis { name: "clients".to_owned(), unit: "clients".to_owned() };
        let result = RunResult { points: vec![point], axis, ..RunResult::default() };
        let mut out = String::new();
        push(&mut out, &result, Style::new(false), &Extent::WHOLE);
        out
    }

    #[test]
    fn a_load_point_says_what_its_users_got() {
        let times =
            |p50| TimeSummary { p50: Some(p50), p90: Some(2 * p50), ..TimeSummary::default() };
        let generation = Generation {
            output_tokens_per_s: Some(612.4),
            chunks_per_s: Some(600.0),
            tokens_per_s_per_user: Some(76.5),
            first_output_ns: Some(times(120_000_000)),
            token_time_ns: Some(times(13_000_000)),
            ..Generation::default()
        };
        let limits = "first_output<500ms".parse().unwrap();
        let goodput = Goodput { limits, share_ratio: Some(0.97), ..Goodput::default() };
        assert_eq!(
            run(Some(generation), Some(goodput)),
            "\n  clients  tokens/s  a user  first output p50     p90  per token p50      p90  \
             goodput\n        8       612    76.5            120 ms  240 ms        13.0 ms  \
             26.0 ms     97 %\n  goodput: requests within first_output<500ms\n"
        );
    }

    #[test]
    fn without_tokens_there_are_chunks_and_without_streams_nothing() {
        let generation = Generation { chunks_per_s: Some(600.0), ..Generation::default() };
        assert!(run(Some(generation), None).contains("chunks/s"));
        assert_eq!(run(None, None), "");
    }
}
