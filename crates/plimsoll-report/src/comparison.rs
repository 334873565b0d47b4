//! Groups of runs side by side: the page, the text for a repository and that for a terminal.

mod curves;

use std::fmt::Write as _;

use plimsoll_model::comparison::{Comparison, FigureRow, Group, GroupFigure, RatioFigure};
use plimsoll_model::condition::ConditionFigure;
use plimsoll_model::gate::GateState;
use plimsoll_model::units::grouped;
use serde::Serialize;

use self::curves::{CurvesSection, published_points};
use crate::html::{Chart, ReportError, chart, environment};
use crate::markdown::MarkdownPage;
use crate::published::{price_comparison_html, price_comparison_text};
use crate::svg::{experiment_chart, ratio_chart};
use crate::table::{Mark, Table, figures, words};
use crate::text::{ABSENT, axis_name, instant, number};
use crate::view::curves::curve_name;
use crate::view::experiment::{self, ExperimentView};
use crate::view::{CLOSING, joined, ratios};

/// How to read the figures.
const NOTE: &str = "Ratios are those of geometric means to the first group. In brackets the 95 % \
    interval from how the runs scatter: where it leaves 1 out the groups differ, where it holds 1 \
    no difference was seen, and beside it stands the smallest that would have been in four of five \
    such comparisons. Ratios beside the headline share the 5 %: where none of them holds against \
    that, nor the headline, one that leaves 1 out may be chance. Of fewer than three runs a side \
    nothing is claimed. What an op costs is claimed apart from speed: costs at the load of the peak \
    share 5 % of their own, and so do those at the other loads.";
/// Names of figures are aligned at this width on a terminal, or at that of the longest.
const NAME_WIDTH: usize = 18;
/// What precedes the reasons against a comparison that was forced.
const FORCED: &str = "Forced: these runs should not be compared, and no ratio below is a finding";

#[derive(Serialize)]
struct ComparisonPage {
    title: String,
    subtitle: String,
    forced_lead: &'static str,
    forced: Vec<String>,
    /// What the factors do.
    experiment: Option<ExperimentView>,
    /// An experiment of more than two combinations: the pairs of groups stand folded behind it.
    is_grid: bool,
    pairs: &'static str,
    /// Of an experiment, drawn.
    cells_chart: Option<Chart>,
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
    /// What an op costs at each load point.
    costs: Table,
    values: Table,
}

impl ComparisonPage {
    fn new(it: &Comparison) -> Self {
        let others = 0..it.groups.len().saturating_sub(1);
        let experiment = it.experiment.as_ref().map(|found| ExperimentView::new(it, found));
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
            cells_chart: it.experiment.as_ref().and_then(|experiment| {
                chart("experiment", |frame| experiment_chart(frame, it, experiment))
            }),
            sentences: sentences(it, experiment.as_ref()),
            is_grid: is_grid(it),
            pairs: experiment::PAIRS,
            experiment,
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

/// Pairs of groups say more than their factor where there are two; not of a level set once.
fn sentences(it: &Comparison, experiment: Option<&ExperimentView>) -> Vec<String> {
    let is_once = it.experiment.as_ref().is_some_and(experiment::is_set_once);
    let others = if is_grid(it) || is_once { 0 } else { it.groups.len().saturating_sub(1) };
    let of_pairs = (0..others).flat_map(|index| {
        // What comes first: speed and cost in one sentence, then one for each figure.
        joined(it, index).into_iter().chain(ratios::sentences(it, index))
    });
    let of_factors = experiment.into_iter().flat_map(|view| view.sentences.iter().cloned());
    of_pairs.chain(of_factors).collect()
}

/// Combinations over something, rather than two things side by side.
fn is_grid(it: &Comparison) -> bool {
    it.experiment.as_ref().is_some_and(|experiment| {
        let is_numeric = experiment.factors.iter().all(|factor| factor.values().is_some());
        experiment.cells.len() != 2 || is_numeric
    })
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
            points: points_table(it, index, |figure| !figure.is_cost()),
            costs: points_table(it, index, RatioFigure::is_cost),
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
    if let Some(experiment) = &it.experiment {
        let missing = experiment.missing.iter().map(|(cell, text)| format!("{cell}: {text}"));
        page.items(&missing.collect::<Vec<_>>());
    }
    if let Some(experiment) = it.experiment.as_ref().filter(|_| it.is_grid) {
        page.table(&experiment.cells);
        page.table(&experiment.effects);
        page.paragraph(experiment.note);
    }
    let splits = it.splits.iter().map(|(label, split)| format!("{label}: {split}"));
    page.items(&splits.collect::<Vec<_>>());
    if !it.gates.is_empty() {
        page.paragraph("Conditions under which the comparison fails:");
        let gates = it.gates.iter().map(|(sign, text)| format!("{sign} {text}"));
        page.items(&gates.collect::<Vec<_>>());
    }
    if it.is_grid {
        page.fold(experiment::PAIRS);
    }
    page.table(&it.whole);
    for other in &it.others {
        if !other.points.rows.is_empty() {
            page.section(&other.title);
            page.table(&other.points);
            page.table(&other.costs);
        }
    }
    let published = published_points(comparison);
    if !published.rows.is_empty() {
        page.section("Published curves");
        page.table(&published);
    }
    page.paragraph(it.note);
    if it.is_grid {
        page.end_of_fold();
    }
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
    let view = it.experiment.as_ref().map(|found| ExperimentView::new(it, found));
    if let Some(view) = view.as_ref().filter(|_| is_grid(it)) {
        out.push_str(&experiment_text(it, view));
    }
    let pairs = if is_grid(it) { 0 } else { it.groups.len().saturating_sub(1) };
    for index in 0..pairs {
        let [first, other] = [0, index + 1].map(|at| &it.groups[at].label);
        let _ = writeln!(out, "{other} compared with {first} ({})", subtitle(it));
        if !it.forced.is_empty() {
            let _ = writeln!(out, "  {FORCED}");
        }
        out.push_str(&view.as_ref().map(factors_text).unwrap_or_default());
        let mut load = None;
        let load_of_costs = it.load_of_costs();
        let shown = |row: &&FigureRow| !row.figure.is_cost() || row.load == load_of_costs;
        let shown: Vec<&FigureRow> = it.figures.iter().filter(shown).collect();
        let names = shown.iter().map(|row| ratios::name(row.figure).chars().count());
        let widest = names.max().unwrap_or_default().max(NAME_WIDTH);
        for row in shown {
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
            let width = widest + 4 - indent.len();
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

/// Sentences and tables; the ratios at load points are left to the page.
fn experiment_text(it: &Comparison, view: &ExperimentView) -> String {
    let forced = if it.forced.is_empty() { String::new() } else { format!("  {FORCED}\n") };
    let (head, factors) = (format!("{} ({})\n", title(it), subtitle(it)), factors_text(view));
    let [cells, effects] = [&view.cells, &view.effects].map(Table::aligned);
    format!("{head}{forced}{factors}\n{cells}\n{effects}\n")
}

fn factors_text(view: &ExperimentView) -> String {
    let sentences = view.sentences.iter().map(|sentence| format!("  {sentence}\n"));
    let missing = view.missing.iter().map(|(cell, text)| format!("  missing: {cell}, {text}\n"));
    sentences.chain(missing).collect()
}

fn labelled_splits(group: &Group) -> impl Iterator<Item = (&str, &str)> {
    group.splits.iter().map(|split| (group.label.as_str(), split.as_str()))
}

pub(crate) fn title(it: &Comparison) -> String {
    if let Some(experiment) = it.experiment.as_ref().filter(|_| is_grid(it)) {
        return format!("{} over {}", it.suite, experiment::factors(experiment));
    }
    let mut labels = it.groups.iter().map(|group| group.label.as_str());
    let first = labels.next().unwrap_or_default();
    if it.groups.len() == 1 {
        return format!("{first} beside published results");
    }
    format!("{} compared with {first}", labels.collect::<Vec<_>>().join(", "))
}

fn subtitle(it: &Comparison) -> String {
    let runs = match it.experiment.as_ref().filter(|_| is_grid(it)) {
        Some(experiment) => experiment::repeats(experiment),
        None => ratios::runs(it),
    };
    format!("{}, profile {}, {runs}", it.suite, it.profile)
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
fn points_table(it: &Comparison, index: usize, shown: impl Fn(RatioFigure) -> bool) -> Table {
    let [first, other] = [0, index + 1].map(|at| &it.groups[at].label);
    let of_points = RatioFigure::all().filter(|it| it.is_of_point() && shown(*it));
    let of_points: Vec<RatioFigure> = of_points.collect();
    let mut columns = vec![figures(&axis_name(&it.axis), "")];
    columns.extend(of_points.iter().map(|figure| figures(ratios::name(*figure), "")));
    let what = if of_points.iter().all(|it| it.is_cost()) { ", what an op costs" } else { "" };
    let caption = format!("{other} to {first} at each load point{what}");
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
        if of_points.iter().all(|figure| at(*figure).is_none()) {
            continue;
        }
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
            if let Some(report) = &run.report {
                table.link(&run.bundle, report);
            }
        }
    }
    table.without_empty_columns()
}

#[cfg(test)]
mod tests;
