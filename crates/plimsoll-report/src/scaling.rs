//! The page and the table of a scaling.

use plimsoll_model::event::Bound;
use plimsoll_model::scaling::{Scaling, ScalingStep};
use plimsoll_model::suite::Metric;
use plimsoll_model::units::{BYTES_PER_MIB, whole_percent};
use serde::Serialize;

use crate::html::{Chart, ReportError, chart, environment};
use crate::svg::scaling_chart;
use crate::table::{Mark, Table, figures, words};
use crate::text::{ABSENT, number, three_digits};
use crate::view::{CLOSING, limit_name};

/// What the columns mean.
const NOTE: &str = "Ratio: throughput over that of the first step. Efficiency: the ratio over that \
    of the sizes; 100 % is straight growth. In brackets the uncertainty interval (95 %). \
    The limit is that of the load point with the highest throughput; why a step is invalid is said \
    in its report.";

#[derive(Serialize)]
struct ScalingPage {
    title: String,
    subtitle: String,
    /// Named apart from the templates' own `chart` and `table`.
    chart_of: Option<Chart>,
    table_of: Table,
    links: Vec<Link>,
    limits: Vec<(String, String)>,
    note: &'static str,
    closing: &'static str,
}

#[derive(Serialize)]
struct Link {
    name: String,
    /// Its directory, below the page's.
    bundle: String,
}

/// Renders a scaling as one page that needs no network; it links to the reports of its steps.
///
/// # Errors
/// When the embedded template does not render, which no document should be able to cause.
pub fn scaling_html(scaling: &Scaling) -> Result<String, ReportError> {
    let link = |step: &ScalingStep| Link { name: step.name.clone(), bundle: step.bundle.clone() };
    let limit = |step: &ScalingStep| {
        // What the table names in a word; the run's sentence where no load point says it.
        let mut texts = [Some(step.limit.to_string()), step.limit_text.clone()].into_iter();
        Some((step.name.clone(), texts.find_map(|text| text.filter(|text| !text.is_empty()))?))
    };
    let page = ScalingPage {
        title: format!("{} over {}", scaling.suite, scaling.over),
        subtitle: format!("{} steps, a run for each", scaling.steps.len()),
        chart_of: chart("scaling", |frame| scaling_chart(frame, scaling)),
        table_of: table(scaling),
        links: scaling.steps.iter().map(link).collect(),
        limits: scaling.steps.iter().filter_map(limit).collect(),
        note: NOTE,
        closing: CLOSING,
    };
    let mut environment = environment()?;
    environment.add_template("scaling.html", include_str!("../templates/scaling.html"))?;
    Ok(environment.get_template("scaling.html")?.render(minijinja::value::Serde(&page))?)
}

/// The steps as a table of Markdown.
pub fn scaling_markdown(scaling: &Scaling) -> String {
    let table = table(scaling);
    let row = |cells: &[String]| {
        let cells: Vec<_> = cells.iter().map(|cell| cell.replace('|', "/")).collect();
        format!("| {} |\n", cells.join(" | "))
    };
    let names: Vec<String> = table.columns.iter().map(|column| column.name.clone()).collect();
    let rules = table.columns.iter().map(|c| if c.numeric { "---:" } else { "---" }.to_owned());
    let mut out = row(&names) + &row(&rules.collect::<Vec<_>>());
    table.rows.iter().for_each(|one| out.push_str(&row(&one.cells)));
    out
}

fn table(scaling: &Scaling) -> Table {
    let bytes = scaling.unit == Metric::Bytes.unit();
    let columns = vec![
        words("step"),
        figures(if bytes { "MiB/s" } else { &scaling.unit }, ""),
        figures("ratio", ""),
        figures("efficiency", ""),
        words("verdict"),
        words("limit"),
    ];
    let mut table = Table::new(format!("Steps of {}", scaling.over), columns);
    for step in &scaling.steps {
        let text = |value: Option<f64>| value.map_or(ABSENT.to_owned(), three_digits);
        let cells = vec![
            step.name.clone(),
            throughput(step, if bytes { BYTES_PER_MIB } else { 1.0 }),
            text(step.ratio),
            step.efficiency.map_or(ABSENT.to_owned(), whole_percent),
            if step.valid { "valid" } else { "invalid" }.to_owned(),
            limit_name(&step.limit),
        ];
        let mark = if step.valid { Mark::Sound } else { Mark::Invalid };
        table.push_marked(cells, mark);
    }
    table
}

/// In a unit of so many of the step's.
fn throughput(step: &ScalingStep, unit: f64) -> String {
    let Some(value) = step.throughput else { return "none".to_owned() };
    let least = if step.bound == Bound::AtLeast { "at least " } else { "" };
    let interval = step.interval.filter(|[low, high]| low < high);
    let interval = interval
        .map(|[low, high]| format!(" ({}–{})", number(Some(low / unit)), number(Some(high / unit))))
        .unwrap_or_default();
    format!("{least}{}{interval}", number(Some(value / unit)))
}
