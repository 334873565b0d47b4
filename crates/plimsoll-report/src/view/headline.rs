//! The figures of the first screen, and what their uncertainty intervals are made of.

use plimsoll_model::capacity::Figure as TimeFigure;
use plimsoll_model::event::Bound;
use plimsoll_model::reported::ReportedFigure;
use plimsoll_model::result::{PointResult, RunResult, Uncertainty};
use plimsoll_model::suite::Metric;
use plimsoll_model::units::{Bytes, grouped, time_unit};
use serde::Serialize;

use super::generation;
use super::moved::{mbit_per_s, metric, ops_unit};
use super::points::{CENSORED_NOTE, not_counted_word};
use crate::table::{Mark, Rows, Table};
use crate::text::{ABSENT, load, number, three_digits};

/// Said where no load point earned a value.
pub(super) const NONE: &str = "none";

/// What the overall figures are.
const OVERALL_NOTE: &str = " Overall response is the mean service time averaged over all \
    throughputs from zero to the peak, so it is lower than the times at the peak: the area under \
    mean service time over achieved throughput, with a point (0, 0) added, divided by the peak.";
/// Note on the second one, where it is shown.
const SPAN_NOTE: &str = " Span: the same from the first load point on, not from zero.";

/// Said where an interval is wide enough to be taken for the spread of requests.
const WIDE_NOTE: &str =
    " The range behind a figure is its 95 % interval, not the spread of requests.";
/// Unit of the score of a mix and of a ladder; its label explains the formula.
const SCORE_UNIT: &str = "tps";

/// One large figure with its name.
#[derive(Debug, Serialize)]
pub(crate) struct Figure {
    pub(crate) label: String,
    pub(crate) value: String,
    pub(crate) unit: String,
    /// The one the reader came for.
    pub(crate) main: bool,
}

/// The point the headline speaks of: the counted one that reached the summary's value, else the
/// last counted one, else the last.
pub(crate) fn headline_point(run: &RunResult) -> Option<&PointResult> {
    let counted = || run.points.iter().filter(|p| p.counts());
    let is_headline = |p: &&PointResult| {
        run.summary.value.is_some_and(|value| {
            let rates = [p.achieved_ops_per_s, p.achieved_bytes_per_s, Some(p.requested)];
            rates.into_iter().flatten().any(|rate| close(rate, value))
        })
    };
    counted().rfind(is_headline).or_else(|| counted().next_back()).or_else(|| run.points.last())
}

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-9 * b.abs()
}

/// The value with a unit that people use.
pub(super) fn value(run: &RunResult) -> String {
    let Some(value) = run.summary.value else { return NONE.to_owned() };
    let (value, unit) = shown(run, value);
    format!("{} {unit}", bounded(run, value))
}

/// A value of the headline in the unit that is shown, which is not that of the files for bytes.
fn shown(run: &RunResult, value: f64) -> (String, String) {
    match value.is_finite() {
        true => ReportedFigure::new(value, None).throughput_parts(&run.summary.unit),
        false => (ABSENT.to_owned(), run.summary.unit.clone()),
    }
}

/// The headline figure, which may be no more than the requested load.
fn bounded(run: &RunResult, value: String) -> String {
    match run.summary.bound {
        Bound::Exact => value,
        Bound::AtLeast => format!("at least {value}"),
    }
}

/// Its unit, with its interval where that is wider than the rounding.
fn main_unit(run: &RunResult) -> String {
    let Some(value) = ReportedFigure::headline(&run.summary) else { return String::new() };
    let (_, unit) = shown(run, value.value);
    match value.throughput_interval_text(&run.summary.unit) {
        // A bound has no interval of its own.
        Some(interval) if run.summary.bound == Bound::AtLeast => {
            format!("{unit} (this load gave {interval})")
        }
        Some(interval) => format!("{unit} ({interval})"),
        None => unit,
    }
}

/// The large figures and what they belong to.
pub(super) fn figures(run: &RunResult) -> (Vec<Figure>, String) {
    let mut figures: Vec<Figure> = score(run).into_iter().collect();
    let has_score = !figures.is_empty();
    figures.push(Figure {
        label: run.summary.metric.clone(),
        value: run.summary.value.map_or_else(|| NONE.to_owned(), |v| bounded(run, shown(run, v).0)),
        unit: main_unit(run),
        main: !has_score,
    });
    if let Some(rate) = run.summary.value.filter(|_| metric(run) == Metric::Bytes) {
        figures.push(figure("in 10^6 bits", format!("{} Mbit/s", mbit_per_s(Some(rate)))));
    }
    let point = headline_point(run);
    let overall_first = overall_is_a_result(run);
    if overall_first {
        figures.extend(overall(run));
    }
    let generated = point.map(generation::large_figures).unwrap_or_default();
    figures.extend(generated.into_iter().map(|(label, value, unit)| Figure {
        label,
        value,
        unit,
        main: false,
    }));
    figures.extend(point.map(times).unwrap_or_default());
    let peak = run.summary.peak_ops_per_s.filter(|peak| Some(*peak) != run.summary.value);
    if peak.is_some() {
        let text = format!("{} {}", number(peak), ops_unit(run));
        figures.push(figure("highest rate of any point", text));
    }
    let most = run.summary.peak_bytes_per_s.filter(|rate| Some(*rate) != run.summary.value);
    if let Some(rate) = most.filter(|r| r.is_finite()) {
        figures.push(figure("most data", format!("{}/s", Bytes(rate.round() as u64))));
    }
    if !overall_first {
        figures.extend(overall(run).into_iter().take(1));
    }
    (figures, note(run, point))
}

/// Response times with their intervals; of a curve from elsewhere the means it gives.
fn times(point: &PointResult) -> Vec<Figure> {
    if point.response_ns.is_none() {
        let mean = ReportedFigure::service(point, TimeFigure::Mean);
        return mean.map(|mean| headline_figure("mean service time", mean)).into_iter().collect();
    }
    let percentiles =
        [("p50", TimeFigure::P50), ("p95", TimeFigure::P95), ("p99", TimeFigure::P99)];
    let percentiles = percentiles.map(|(name, which)| {
        let label = format!("response {name}");
        match ReportedFigure::response(point, which) {
            Some(reported) => headline_figure(&label, reported),
            None => figure(&label, ABSENT.to_owned()),
        }
    });
    percentiles.into()
}

fn headline_figure(label: &str, reported: ReportedFigure) -> Figure {
    let (value, unit) = reported.time_parts();
    Figure { label: label.to_owned(), value, unit, main: false }
}

/// The overall score of suites that have one; it comes before the peak.
fn score(run: &RunResult) -> Option<Figure> {
    let note = run.summary.score_note.as_ref()?;
    let reported = ReportedFigure::score(&run.summary);
    let value = reported.map_or_else(|| NONE.to_owned(), |score| number(Some(score.value)));
    let interval = reported.and_then(|score| score.rate_interval_text());
    let unit = match (reported, interval) {
        (None, _) => String::new(),
        (Some(_), None) => SCORE_UNIT.to_owned(),
        (Some(_), Some(interval)) => format!("{SCORE_UNIT} ({interval})"),
    };
    let label = match run.summary.score {
        Some(_) => format!("score, {note}"),
        None => format!("score, {}", note.trim_start_matches("none: ")),
    };
    Some(Figure { label, value, unit, main: true })
}

/// Suites that cap the response time publish the overall one with the peak, and a curve from
/// elsewhere is analysed for its sake.
fn overall_is_a_result(run: &RunResult) -> bool {
    run.suite.as_ref().is_none_or(|suite| suite.response_cap_ms.is_some())
}

/// Overall response time by both definitions, as far as the points give it.
fn overall(run: &RunResult) -> Vec<Figure> {
    let overall_time = |of| ReportedFigure::overall(&run.summary, of);
    let figures = [
        ("overall response", overall_time(|overall| overall.origin)),
        ("overall response, span", overall_time(|overall| overall.span)),
    ];
    figures.into_iter().filter_map(|(label, time)| Some(headline_figure(label, time?))).collect()
}

fn figure(label: &str, text: String) -> Figure {
    let (value, unit) = match text.rsplit_once(' ') {
        Some((value, unit)) => (value.to_owned(), unit.to_owned()),
        None => (text, String::new()),
    };
    Figure { label: label.to_owned(), value, unit, main: false }
}

fn note(run: &RunResult, point: Option<&PointResult>) -> String {
    let Some(point) = point else {
        return "No load point was finished, so there are no figures.".to_owned();
    };
    let point_text =
        format!("load point {} ({})", point.position, load(point.requested, &run.axis));
    let mut note = match Mark::of_point(point) {
        Mark::Sound => format!("The response times are those of {point_text}."),
        Mark::NotCounted => {
            let why = point.not_counted.map_or("left out", not_counted_word);
            format!(
                "No load point counts. The times are those of {point_text}, which is not counted: {why}."
            )
        }
        Mark::Invalid => {
            format!("No load point counts. The times are those of {point_text}, which is invalid.")
        }
    };
    if point.response_ns.is_some_and(|t| t.p50.is_none() || t.p95.is_none() || t.p99.is_none()) {
        note.push_str(&format!(" {ABSENT} where the sample is too small for the percentile."));
    }
    if point.censored.is_some() {
        note.push_str(&format!(" {CENSORED_NOTE}"));
    }
    if has_wide_interval(point) {
        note.push_str(WIDE_NOTE);
    }
    if run.summary.overall_response_ms.origin.is_some() {
        note.push_str(OVERALL_NOTE);
        if overall_is_a_result(run) {
            note.push_str(SPAN_NOTE);
        }
    }
    note
}

fn has_wide_interval(point: &PointResult) -> bool {
    let shown = [TimeFigure::P50, TimeFigure::P95, TimeFigure::P99]
        .map(|which| ReportedFigure::response(point, which));
    shown.into_iter().flatten().any(|reported| reported.wide_ratio().is_some())
}

/// The measured window, when all points agree on it; else its range.
pub(super) fn window(run: &RunResult) -> Option<String> {
    let seconds = || run.points.iter().filter_map(|p| p.seconds).filter(|s| s.is_finite());
    let (low, high) = (seconds().reduce(f64::min)?, seconds().reduce(f64::max)?);
    Some(if three_digits(low) == three_digits(high) {
        format!("{} s", number(Some(low)))
    } else {
        format!("{} to {} s", number(Some(low)), number(Some(high)))
    })
}

pub(super) const BUDGET_NOTE: &str = "Each column says how far the truth may lie from the measured \
    figure through that part alone, at 95 %. Generator: its own late sends and late reads. Sample: \
    what other windows of the same length might have shown; ∞ where too few slow ops came to know. \
    Histogram: half a step of the scale the times are counted on. How far other runs differ is not \
    known from one run: repeat it with the server restarted, or run an experiment.";

/// One figure a row, of the headline's point; empty where unknown.
pub(super) fn budget_table(run: &RunResult) -> Table {
    let Some(point) = headline_point(run) else { return Table::default() };
    let caption =
        format!("What the uncertainty intervals of load point {} are made of", point.position);
    Rows::new(caption, &point.uncertainty)
        .text("figure", |(key, _)| {
            key.trim_end_matches("_ns").trim_end_matches("_ops_per_s").replace('_', " ")
        })
        .figures("measured", "", |(key, parts)| match is_time(key) {
            true => {
                let unit = time_unit(parts.value).1;
                format!("{}\u{a0}{unit}", budget_text(key, parts, "", parts.value))
            }
            false => format!("{}\u{a0}ops/s", grouped(parts.value)),
        })
        .figures("generator", "", |(key, parts)| {
            // A late generator makes times longer and a closed loop's throughput smaller.
            let sign = if is_time(key) { "−" } else { "+" };
            budget_text(key, parts, sign, parts.generator)
        })
        .figures("sample below", "", |(key, it)| budget_text(key, it, "−", it.sample_below))
        .figures("sample above", "", |(key, it)| budget_text(key, it, "+", it.sample_above))
        .figures("histogram", "", |(key, it)| budget_text(key, it, "±", it.resolution))
        .table()
}

fn is_time(key: &str) -> bool {
    key.ends_with("_ns")
}

/// In the unit of the measured value.
fn budget_text(key: &str, parts: &Uncertainty, sign: &str, value: f64) -> String {
    let unit_size = if is_time(key) { time_unit(parts.value).0 } else { 1.0 };
    match value {
        0.0 => "0".to_owned(),
        f64::INFINITY => "∞".to_owned(),
        _ => format!("{sign}{}", three_digits(value / unit_size)),
    }
}
