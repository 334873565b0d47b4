//! Groups of runs side by side: the page, the text for a repository and that for a terminal.

mod curves;

use std::fmt::Write as _;

use plimsoll_model::comparison::{Comparison, Group, GroupFigure, RatioFigure};
use plimsoll_model::condition::ConditionFigure;
use plimsoll_model::gate::GateState;
use plimsoll_model::units::grouped;
use serde::Serialize;

use self::curves::{CurvesSection, published_points};
use crate::html::{Chart, ReportError, chart, environment};
use crate::markdown::MarkdownPage;
use crate::published::{price_comparison_html, price_comparison_text};
use crate::svg::ratio_chart;
use crate::table::{Mark, Table, figures, words};
use crate::text::{ABSENT, axis_name, instant, number};
use crate::view::curves::curve_name;
use crate::view::{CLOSING, ratios};

/// How to read the figures.
const NOTE: &str = "Ratios are those of geometric means to the first group. In brackets the 95 % \
    interval from how the runs scatter: where it leaves 1 out the groups differ, where it holds 1 \
    no difference was seen, and beside it stands the smallest that would have been in four of five \
    such comparisons. Ratios beside the headline share the 5 %: where none of them holds against \
    that, nor the headline, one that leaves 1 out may be chance. Of fewer than three runs a side \
    nothing is claimed.";
/// What precedes the reasons against a comparison that was forced.
const FORCED: &str = "Forced: these runs should not be compared, and no ratio below is a finding";

#[derive(Serialize)]
struct ComparisonPage {
    title: String,
    subtitle: String,
    forced_lead: &'static str,
    forced: Vec<String>,
    sentences: Vec<String>,
    splits: Vec<(String, String)>,
    gates: Vec<(&'static str, String)>,
    curves: CurvesSection,
    whole: Table,
    /// A group after the first each.
    others: Vec<Other>,
    differences: Table,
    notes: Vec<String>,
    runs: Table,
    /// The section on prices, made by its own template.
    prices: Option<String>,
    note: &'static str,
    closing: &'static str,
}

#[derive(Serialize)]
struct Other {
    title: String,
    /// Named apart from the templates' own `chart` and `table`.
    chart_of: Option<Chart>,
    points: Table,
    values: Table,
}

impl ComparisonPage {
    fn new(it: &Comparison) -> Self {
        let others = 0..it.groups.len().saturating_sub(1);
        let splits = it.groups.iter().flat_map(|group| {
            group.splits.iter().map(|split| (group.label.clone(), split.clone()))
        });
        let gates = it.gates.iter().map(|gate| {
            let sign = match (gate.fails, gate.state) {
                (true, _) => "✗",
                (false, GateState::Held) => "✓",
                _ => "?",
            };
            (sign, ratios::gate(gate))
        });
        Self {
            title: title(it),
            subtitle: subtitle(it),
            forced_lead: FORCED,
            forced: it.forced.clone(),
            sentences: others.clone().flat_map(|index| ratios::sentences(it, index)).collect(),
            splits: splits.collect(),
            gates: gates.collect(),
            curves: CurvesSection::new(it),
            whole: whole_table(it),
            others: others.map(|index| Other::new(it, index)).collect(),
            differences: differences_table(it),
            notes: it.notes.clone(),
            runs: runs_table(it),
            prices: None,
            note: NOTE,
            closing: CLOSING,
        }
    }
}

impl Other {
    fn new(it: &Comparison, index: usize) -> Self {
        let [first, other] = [0, index + 1].map(|at| &it.groups[at].label);
        let title = match it.groups.len() {
            2 => "Ratios at each load point".to_owned(),
            _ => format!("{other} compared with {first}"),
        };
        Self {
            title,
            chart_of: chart(&format!("ratios-{index}"), |frame| ratio_chart(frame, it, index)),
            points: points_table(it, index),
            values: values_table(it, index),
        }
    }
}

/// Renders a comparison as one page that needs no network.
///
/// # Errors
/// When the embedded template does not render, which no document should be able to cause.
pub fn comparison_html(comparison: &Comparison) -> Result<String, ReportError> {
    let mut environment = environment()?;
    environment.add_template("comparison.html", include_str!("../templates/comparison.html"))?;
    let prices = comparison.prices.as_ref().map(price_comparison_html).transpose()?;
    let page =
        minijinja::value::Serde(ComparisonPage { prices, ..ComparisonPage::new(comparison) });
    Ok(environment.get_template("comparison.html")?.render(page)?)
}

/// Renders it as Markdown with tables (GitHub's dialect).
pub fn comparison_markdown(comparison: &Comparison) -> String {
    let (it, mut page) = (ComparisonPage::new(comparison), MarkdownPage::default());
    page.title(&it.title);
    page.emphasised(&it.subtitle);
    if !it.forced.is_empty() {
        page.strong(&format!("✗ {}:", it.forced_lead));
        page.items(&it.forced);
    }
    page.items(&it.sentences);
    let splits = it.splits.iter().map(|(label, split)| format!("{label}: {split}"));
    page.items(&splits.collect::<Vec<_>>());
    if !it.gates.is_empty() {
        page.paragraph("Conditions under which the comparison fails:");
        let gates = it.gates.iter().map(|(sign, text)| format!("{sign} {text}"));
        page.items(&gates.collect::<Vec<_>>());
    }
    page.table(&it.whole);
    for other in &it.others {
        if !other.points.rows.is_empty() {
            page.section(&other.title);
            page.table(&other.points);
        }
    }
    let published = published_points(comparison);
    if !published.rows.is_empty() {
        page.section("Published curves");
        page.table(&published);
    }
    page.paragraph(it.note);
    page.items(&it.notes);
    if let Some(prices) = &comparison.prices {
        page.priced(prices);
    }
    page.table(&it.differences);
    page.table(&it.runs);
    page.end(it.closing)
}

/// Renders it for a terminal.
pub fn comparison_text(comparison: &Comparison) -> String {
    let mut out = String::new();
    let it = comparison;
    for index in 0..it.groups.len().saturating_sub(1) {
        let [first, other] = [0, index + 1].map(|at| &it.groups[at].label);
        let _ = writeln!(out, "{other} compared with {first} ({})", subtitle(it));
        if !it.forced.is_empty() {
            let _ = writeln!(out, "  {FORCED}");
        }
        let mut load = None;
        for row in &it.figures {
            if row.load != load {
                load = row.load;
                let mark = match row.not_counted.as_slice() {
                    [] => String::new(),
                    labels => format!("  (not counted: {})", labels.join(", ")),
                };
                let _ = writeln!(out, "  at {}{mark}", number(load));
            }
            let [before, after] =
                [0, index + 1].map(|at| ratios::value(it, row.figure, &row.groups[at]));
            let (name, said) = (ratios::name(row.figure), ratios::said(row, index));
            let indent = if row.load.is_some() { "    " } else { "  " };
            let width = 22 - indent.len();
            let _ = writeln!(out, "{indent}{name:<width$} {before} → {after}  {said}");
        }
    }
    if it.groups.len() == 1 {
        let _ = writeln!(out, "{} ({})", title(it), subtitle(it));
        out.push_str(&whole_table(it).aligned());
    }
    for (label, text) in it.groups.iter().flat_map(labelled_splits) {
        let _ = writeln!(out, "  {label}: {text}");
    }
    for curve in it.curves.iter().filter(|curve| curve.published.is_some()) {
        let points = curve.points.len();
        let _ = writeln!(out, "  curve: {}, {points} load points", curve_name(curve));
    }
    for difference in &it.differences {
        let _ = writeln!(out, "  differs: {}: {}", difference.name, difference.values.join(" | "));
    }
    let forced = it.forced.iter().map(|text| format!("forced: {text}"));
    for text in forced.chain(it.notes.iter().map(|text| format!("note: {text}"))) {
        let _ = writeln!(out, "  {text}");
    }
    for gate in &it.gates {
        let _ = writeln!(out, "  {}", ratios::gate(gate));
    }
    if let Some(prices) = &it.prices {
        out.push_str(&price_comparison_text(prices));
    }
    out
}

fn labelled_splits(group: &Group) -> impl Iterator<Item = (&str, &str)> {
    group.splits.iter().map(|split| (group.label.as_str(), split.as_str()))
}

pub(crate) fn title(it: &Comparison) -> String {
    let mut labels = it.groups.iter().map(|group| group.label.as_str());
    let first = labels.next().unwrap_or_default();
    if it.groups.len() == 1 {
        return format!("{first} beside published results");
    }
    format!("{} compared with {first}", labels.collect::<Vec<_>>().join(", "))
}

fn subtitle(it: &Comparison) -> String {
    format!("{}, profile {}, {}", it.suite, it.profile, ratios::runs(it))
}

/// Figures of the run, all groups side by side.
fn whole_table(it: &Comparison) -> Table {
    let mut columns = vec![words("figure")];
    for (index, group) in it.groups.iter().enumerate() {
        columns.push(figures(&group.label, ""));
        columns.push(figures("spread", ""));
        if index > 0 {
            columns.push(words(&format!("to {}", it.groups[0].label)));
        }
    }
    let mut table = Table::new("Figures of the whole run", columns);
    for row in it.figures.iter().filter(|row| row.load.is_none()) {
        let mut cells = vec![ratios::name(row.figure).to_owned()];
        for (index, group) in row.groups.iter().enumerate() {
            cells.push(ratios::value(it, row.figure, group));
            cells.push(ratios::spread(group));
            if index > 0 {
                cells.push(ratios::said(row, index - 1));
            }
        }
        table.push(cells);
    }
    table.without_empty_columns()
}

/// Ratios of one group to the first, a line for each load point.
fn points_table(it: &Comparison, index: usize) -> Table {
    let [first, other] = [0, index + 1].map(|at| &it.groups[at].label);
    let of_points = RatioFigure::all().filter(|figure| figure.is_of_point());
    let of_points: Vec<RatioFigure> = of_points.collect();
    let mut columns = vec![figures(&axis_name(&it.axis), "")];
    columns.extend(of_points.iter().map(|figure| figures(ratios::name(*figure), "")));
    let caption = format!("{other} to {first} at each load point");
    let mut table = Table::new(caption, columns);
    let mut loads: Vec<f64> = it.figures.iter().filter_map(|row| row.load).collect();
    loads.dedup();
    for load in loads {
        let at = |figure: RatioFigure| it.rows(figure).find(|row| row.load == Some(load));
        let left_out = at(of_points[0]).map(|row| row.not_counted.join(", "));
        // In the first cell, which no width of the page pushes out of sight.
        let (place, mark) = match left_out.filter(|labels| !labels.is_empty()) {
            Some(labels) => (format!("{}, not counted: {labels}", grouped(load)), Mark::NotCounted),
            None => (grouped(load), Mark::Sound),
        };
        let ratio = |figure: &RatioFigure| at(*figure).map(|row| ratios::cell(row, index));
        let mut cells = vec![place];
        cells.extend(of_points.iter().map(|f| ratio(f).unwrap_or_else(|| ABSENT.to_owned())));
        table.push_marked(cells, mark);
    }
    table.without_empty_columns()
}

/// What the ratios of the load points are made of.
fn values_table(it: &Comparison, index: usize) -> Table {
    let columns = vec![
        words("figure"),
        figures(&it.groups[0].label, ""),
        figures("spread", ""),
        figures(&it.groups[index + 1].label, ""),
        figures("spread", ""),
        words("ratio"),
    ];
    let mut table = Table::new("Geometric means of the runs, and how far they lie apart", columns);
    for row in it.figures.iter().filter(|row| row.load.is_some()) {
        let mut cells = vec![ratios::place(row)];
        for group in [&row.groups[0], &row.groups[index + 1]] {
            cells.push(ratios::value(it, row.figure, group));
            cells.push(ratios::spread(group));
        }
        cells.push(ratios::said(row, index));
        table.push(cells);
    }
    table
}

fn differences_table(it: &Comparison) -> Table {
    let mut columns = vec![words("what")];
    columns.extend(it.groups.iter().map(|group| words(&group.label)));
    let mut table = Table::new("What differs between the groups", columns);
    for difference in &it.differences {
        let mut cells = vec![difference.name.clone()];
        cells.extend(difference.values.iter().cloned());
        table.push(cells);
    }
    table
}

fn runs_table(it: &Comparison) -> Table {
    let columns = vec![
        words("group"),
        words("bundle"),
        words("started"),
        words("verdict"),
        figures("peak", ""),
        words("what limited it"),
    ];
    let mut table = Table::new("The runs", columns);
    for group in &it.groups {
        for run in &group.runs {
            let value = GroupFigure { mean: run.value, ..GroupFigure::default() };
            let cells = vec![
                group.label.clone(),
                run.bundle.clone(),
                run.started.as_deref().map_or_else(|| ABSENT.to_owned(), instant),
                if run.valid { "valid" } else { "invalid" }.to_owned(),
                ratios::value(it, RatioFigure::Peak, &value),
                run.limit.clone().unwrap_or_else(|| ABSENT.to_owned()),
            ];
            table.push_marked(cells, if run.valid { Mark::Sound } else { Mark::Invalid });
        }
    }
    table.without_empty_columns()
}

#[cfg(test)]
mod tests;
