//! One self-contained page: of a run, or of several with a curve each.

use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Serde, Value};
use minijinja::{Environment, context};
use plimsoll_model::result::RunResult;
use serde::Serialize;

use crate::svg::{
    COST_CHARTS, Frame, bounds_legend, chunk_interval_chart, cost_chart, first_output_chart,
    first_output_heat_chart, generator_chart, heat_chart, load_chart, ops_chart, page_cache_chart,
    percentile_chart, resource_chart, resource_topics, response_chart, response_curve_chart,
    step_chart, testbed_drawing, throughput_chart, timeline_chart, tokens_chart,
};
use crate::table::{Mark, Table};
use crate::text::capitalised;
use crate::view::{
    CLOSING, LIMIT_COLUMN, RunView, Supplements, SupplementsView, joined_point, timeline_table,
};

const WIDE: f64 = 1000.0;
const HALF: f64 = 488.0;
const NARROW: f64 = 348.0; // a telephone of 380 px less the margins of the page
const SMALL: f64 = 320.0;

/// The page could not be rendered.
#[derive(Debug, thiserror::Error)]
#[error("the template of a report failed, which is a bug of plimsoll-report: {source}")]
pub struct ReportError {
    #[from]
    source: minijinja::Error,
}

#[derive(Serialize)]
struct ReportPage {
    title: String,
    run: RunPage,
    closing: &'static str,
}

#[derive(Serialize)]
struct RunPage {
    view: RunView,
    beside: SupplementsView,
    throughput: Option<Chart>,
    /// What the marks of its curve are.
    legend: String,
    course: Option<Chart>,
    response: Option<Chart>,
    heat: Option<Chart>,
    ops: Option<Chart>,
    /// Of servers of language models, in pairs.
    generation: Vec<Chart>,
    first_output_heat: Option<Chart>,
    resources: Vec<Small>,
    /// Of processors, then of disks and network.
    costs: Vec<Chart>,
    page_cache: Option<Chart>,
    percentiles: Option<Chart>,
    generator: Option<Chart>,
    testbed: Option<Chart>,
    timelines: Vec<Timeline>,
    /// A load that changes, over time.
    shape: Option<Timeline>,
}

/// The same chart for wide and narrow pages. The text was escaped where it was drawn.
#[derive(Serialize)]
pub(crate) struct Chart {
    wide: Value,
    narrow: Value,
}

/// A drawing next to others of its kind.
#[derive(Serialize)]
struct Small {
    title: String,
    drawing: Value,
}

#[derive(Serialize)]
struct Timeline {
    title: String,
    drawing: Value,
    table: Table,
}

macro_rules! sections {
    ($($name:literal),* $(,)?) => {
        [$((
            concat!("run/", $name, ".html"),
            include_str!(concat!("../templates/run/", $name, ".html")),
        )),*]
    };
}

/// The parts of a run's page. Their order, titles and conditions are in `run.html`.
const SECTIONS: &[(&str, &str)] = &sections![
    "front",
    "capacity",
    "shape",
    "hints",
    "price",
    "generation",
    "curve",
    "response",
    "heat",
    "ops",
    "warnings",
    "points",
    "limits",
    "generated",
    "op-tables",
    "errors",
    "percentiles",
    "seconds",
    "cost",
    "page-cache",
    "resources",
    "consumers",
    "profile",
    "uncertainty",
    "generator",
    "search",
    "method",
    "published",
    "disclosure",
];

/// Renders a run as a page that needs neither network nor scripts.
///
/// # Errors
/// When the embedded template does not render, which no result should be able to cause.
pub fn html(run: &RunResult) -> Result<String, ReportError> {
    html_with_supplements(run, &Supplements::default())
}

/// The same with supplements to the run.
///
/// # Errors
/// When the embedded template does not render, which no result should be able to cause.
pub fn html_with_supplements(
    run: &RunResult,
    supplements: &Supplements,
) -> Result<String, ReportError> {
    render("report.html", run, RunView::new(run), supplements)
}

/// The body of that page, to be put into [`live_page`].
///
/// # Errors
/// When the embedded template does not render, which no result should be able to cause.
pub fn html_body(run: &RunResult) -> Result<String, ReportError> {
    render("body.html", run, RunView::new(run), &Supplements::default())
}

/// The same of a run in progress: it has no verdict yet.
///
/// # Errors
/// When the embedded template does not render, which no result should be able to cause.
pub fn html_body_so_far(run: &RunResult) -> Result<String, ReportError> {
    render("body.html", run, RunView::so_far(run), &Supplements::default())
}

/// A page that shows the seconds of a run, and the body of its report as it grows. Its script
/// receives both as server-sent events from `events`, relative to the page.
///
/// # Errors
/// When the embedded template does not render.
pub fn live_page() -> Result<String, ReportError> {
    let mut environment = environment()?;
    environment.add_template("live.html", include_str!("../templates/live.html"))?;
    environment.add_global("live_css", Value::from_safe_string(LIVE_STYLE.to_owned()));
    environment.add_global("live_script", Value::from_safe_string(LIVE_SCRIPT.to_owned()));
    Ok(environment.get_template("live.html")?.render(context! { title => "Live" })?)
}

fn render(
    template: &str,
    run: &RunResult,
    view: RunView,
    supplements: &Supplements,
) -> Result<String, ReportError> {
    let mut environment = environment()?;
    environment.add_template("report.html", include_str!("../templates/report.html"))?;
    environment.add_template("body.html", include_str!("../templates/body.html"))?;
    environment.add_template("run.html", include_str!("../templates/run.html"))?;
    for &(name, template) in SECTIONS {
        environment.add_template(name, template)?;
    }
    let title = view.title.clone();
    let run = run_page(run, view, SupplementsView::new(supplements));
    let page = ReportPage { title, run, closing: CLOSING };
    Ok(environment.get_template(template)?.render(Serde(&page))?)
}

/// What every page has in common.
pub(crate) fn environment() -> Result<Environment<'static>, minijinja::Error> {
    let mut environment = Environment::new();
    let syntax = SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build()?;
    environment.set_syntax(syntax);
    environment.add_template("head.html", include_str!("../templates/head.html"))?;
    environment.add_template("page.html", include_str!("../templates/page.html"))?;
    environment.add_template("parts.html", include_str!("../templates/parts.html"))?;
    environment.add_global("css", Value::from_safe_string(STYLE.to_owned()));
    environment.add_global("script", Value::from_safe_string(SCRIPT.to_owned()));
    Ok(environment)
}

const STYLE: &str = concat!(
    include_str!("../templates/palette.css"),
    include_str!("../templates/style.css"),
    include_str!("../templates/chart.css"),
);
const SCRIPT: &str = include_str!("../templates/script.js");
const LIVE_STYLE: &str = include_str!("../templates/live.css");
const LIVE_SCRIPT: &str = include_str!("../templates/live.js");

fn run_page(run: &RunResult, mut view: RunView, supplements: SupplementsView) -> RunPage {
    let top = run.points.iter().flat_map(|p| &p.timeline).map(|s| s.ops_per_s).fold(0.0, f64::max);
    let timelines = run.points.iter().filter_map(|point| {
        let chart_id = format!("second-{}", point.position);
        let frame = Frame { id: &chart_id, width: SMALL };
        let drawing = Value::from_safe_string(timeline_chart(frame, point, top)?);
        let load = crate::text::load(point.requested, &run.axis);
        let mark_text = match Mark::of_point(point) {
            Mark::Sound => "",
            Mark::NotCounted => " · not counted",
            Mark::Invalid => " · ✗ invalid",
        };
        let title = format!("Point {} · {load}{mark_text}", point.position);
        Some(Timeline { title, drawing, table: timeline_table(point) })
    });
    let shape = joined_point(run).and_then(|joined| {
        let frame = Frame { id: "chart-shape", width: WIDE };
        let drawing = Value::from_safe_string(timeline_chart(frame, &joined, top)?);
        let title = "The whole load, second by second".to_owned();
        Some(Timeline { title, drawing, table: timeline_table(&joined) })
    });
    // Phases are in order of time: a curve over load would join what does not belong together.
    let is_ladder = run.load_shape.is_none();
    let throughput = half("chart-throughput", |frame| throughput_chart(frame, run));
    let throughput = throughput.filter(|_| is_ladder);
    if throughput.is_some() {
        view.points = view.points.without_column(LIMIT_COLUMN);
    }
    RunPage {
        view,
        beside: supplements,
        throughput,
        legend: bounds_legend(run),
        course: half("chart-course", |frame| response_curve_chart(frame, run))
            .filter(|_| is_ladder),
        response: half("chart-response", |frame| response_chart(frame, run)).filter(|_| is_ladder),
        percentiles: half("chart-percentiles", |frame| percentile_chart(frame, run)),
        // For streams the map of first outputs shows more.
        heat: chart("chart-heat", |frame| heat_chart(frame, run)).filter(|_| !generates(run)),
        ops: half("chart-ops", |frame| ops_chart(frame, run)),
        generation: generation(run),
        first_output_heat: chart("chart-first-output-heat", |frame| {
            first_output_heat_chart(frame, run)
        }),
        resources: resources(run),
        costs: costs(run),
        page_cache: half("chart-page-cache", |frame| page_cache_chart(frame, run)),
        generator: chart("chart-generator", |frame| generator_chart(frame, run)),
        testbed: chart("testbed", |frame| testbed_drawing(frame, run)),
        timelines: timelines.collect(),
        shape,
    }
}

fn generates(run: &RunResult) -> bool {
    run.points.iter().any(|point| point.generation.is_some())
}

fn generation(run: &RunResult) -> Vec<Chart> {
    type Draw = fn(Frame<'_>, &RunResult) -> Option<String>;
    let charts: [(&str, Draw); 4] = [
        ("chart-steps", step_chart),
        ("chart-tokens", tokens_chart),
        ("chart-first-output", first_output_chart),
        ("chart-chunk-gap", chunk_interval_chart),
    ];
    charts.into_iter().filter_map(|(id, draw)| half(id, |frame| draw(frame, run))).collect()
}

fn costs(run: &RunResult) -> Vec<Chart> {
    let drawn = COST_CHARTS.iter().enumerate().filter_map(|(at, plan)| {
        half(&format!("chart-cost-{}", at + 1), |frame| cost_chart(frame, run, *plan))
    });
    drawn.collect()
}

fn resources(run: &RunResult) -> Vec<Small> {
    let drawn = resource_topics(run).into_iter().enumerate().filter_map(|(i, topic)| {
        let (id, title) = (format!("resources-{}", i + 1), topic.title.clone());
        let drawing = resource_chart(Frame { id: &id, width: SMALL }, run, topic)?;
        Some(Small { title, drawing: Value::from_safe_string(drawing) })
    });
    drawn.collect()
}

/// A chart as wide as the page.
pub(crate) fn chart(id: &str, draw: impl Fn(Frame<'_>) -> Option<String>) -> Option<Chart> {
    chart_of(WIDE, id, draw)
}

/// A chart of half the width, next to another.
pub(crate) fn half(id: &str, draw: impl Fn(Frame<'_>) -> Option<String>) -> Option<Chart> {
    chart_of(HALF, id, draw)
}

fn chart_of(width: f64, id: &str, draw: impl Fn(Frame<'_>) -> Option<String>) -> Option<Chart> {
    let at = |id: &str, width| draw(Frame { id, width }).map(Value::from_safe_string);
    let wide = at(id, width)?;
    let narrow = at(&format!("{id}-narrow"), NARROW)?;
    Some(Chart { wide, narrow })
}

#[derive(Serialize)]
struct OverviewPage {
    title: String,
    subtitle: String,
    runs: Vec<Run>,
    closing: &'static str,
}

#[derive(Serialize)]
struct Run {
    title: String,
    /// Its directory, below the page's.
    bundle: String,
    verdict: &'static str,
    limit: String,
    /// Named apart from the templates' own `chart`.
    chart_of: Option<Chart>,
}

/// Renders runs, each in a directory below the page's, as one page that needs no network.
///
/// # Errors
/// When the embedded template does not render, which no result should be able to cause.
pub fn overview_html(title: &str, runs: &[(String, &RunResult)]) -> Result<String, ReportError> {
    let run = |(bundle, result): &(String, &RunResult)| Run {
        title: result.suite.as_ref().map_or_else(|| bundle.clone(), |suite| suite.title.clone()),
        bundle: bundle.clone(),
        verdict: if result.verdict.valid { "Valid" } else { "Invalid" },
        limit: result.summary.limit.clone().map(sentence).unwrap_or_default(),
        chart_of: chart(&format!("load-{bundle}"), |frame| load_chart(frame, result)),
    };
    let page = OverviewPage {
        title: title.to_owned(),
        subtitle: format!("{} runs; each title leads to its report", runs.len()),
        runs: runs.iter().map(run).collect(),
        closing: CLOSING,
    };
    let mut environment = environment()?;
    environment.add_template("overview.html", include_str!("../templates/overview.html"))?;
    Ok(environment.get_template("overview.html")?.render(Serde(&page))?)
}

fn sentence(text: String) -> String {
    capitalised(&text) + "."
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_run_has_its_link_and_nothing_is_taken_for_markup() {
        let mut result = RunResult::default();
        result.summary.limit = Some("a <core> was full".to_owned());
        let page = overview_html("Two runs", &[("a".into(), &result), ("b".into(), &result)]);
        let page = page.unwrap();
        assert!(page.contains("href=\"a/report.html\"") && page.contains("href=\"b/report.html\""));
        assert!(page.contains("A &lt;core&gt; was full."), "{page}");
    }
}
