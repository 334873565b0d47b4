//! Groups of runs side by side: the page, the text for a repository and that for a terminal.

mod curves;

use std::fmt::Write as _;

use plimsoll_model::comparison::{Comparison, FigureRow, Group, GroupFigure, RatioFigure};
use plimsoll_model::condition::ConditionFigure;
use plimsoll_model::units::grouped;
use serde::Serialize;

use self::curves::{CurvesSection, published_points};
use crate::html::{Chart, ReportError, chart, environment};
use crate::markdown::MarkdownPage;
use crate::published::{price_comparison_html, price_comparison_text};
use crate::svg::{experiment_chart, ratio_chart};
use crate::table::{Mark, Rows, Table};
use crate::text::{axis_name, instant, number};
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
/// Introduces the reasons against a comparison that was forced.
const FORCED: &str = "Forced: these runs should not be compared, and no ratio below is a finding";

#[derive(Serialize)]
struct ComparisonPage {
    title: String,
    subtitle: String,
    forced_lead: &'static str,
    forced: Vec<String>,
    /// What the factors do.
    experiment: Option<ExperimentView>,
    /// An experiment of more than two combinations: the pairs of groups follow it, folded.
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
        let experiment = it.experiment.as_ref().map(|results| ExperimentView::new(it, results));
        let splits = it.groups.iter().flat_map(|group| {
            group.splits.iter().map(|split| (group.name().to_owned(), split.clone()))
        });
        let gates = it.gates.iter();
        let gates = gates.map(|gate| (gate.state.sign(gate.fails), ratios::gate(it, gate)));
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

/// Pairs of groups add to their factor if there are two groups, unless a level was set once.
fn sentences(it: &Comparison, experiment: Option<&ExperimentView>) -> Vec<String> {
    let is_once = it.experiment.as_ref().is_some_and(experiment::is_set_once);
    let others = if is_grid(it) || is_once { 0 } else { it.groups.len().saturating_sub(1) };
    let of_pairs = (0..others).flat_map(|index| {
        // First speed and cost in one sentence, then one sentence for each figure.
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
        let [first, other] = [0, index + 1].map(|at| it.groups[at].name());
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
    page.heading(0, &it.title);
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
            page.heading(1, &other.title);
            page.table(&other.points);
            page.table(&other.costs);
        }
    }
    let published = published_points(comparison);
    if !published.rows.is_empty() {
        page.heading(1, "Published curves");
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
    let view = it.experiment.as_ref().map(|experiment| ExperimentView::new(it, experiment));
    if let Some(view) = view.as_ref().filter(|_| is_grid(it)) {
        out.push_str(&experiment_text(it, view));
    }
    let pairs = if is_grid(it) { 0 } else { it.groups.len().saturating_sub(1) };
    for index in 0..pairs {
        let [first, other] = [0, index + 1].map(|at| it.groups[at].name());
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
                    labels => format!("  (not counted: {})", group_names(it, labels)),
                };
                let _ = writeln!(out, "  at {}{mark}", number(load));
            }
            let [before, after] =
                [0, index + 1].map(|at| ratios::value(it, row.figure, &row.groups[at]));
            let (name, claim) = (ratios::name(row.figure), ratios::claim_text(row, index));
            let indent = if row.load.is_some() { "    " } else { "  " };
            let width = widest + 4 - indent.len();
            let _ = writeln!(out, "{indent}{name:<width$} {before} → {after}  {claim}");
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
        let _ = writeln!(out, "  curve: {}, {points} load points", curve_name(it, curve));
    }
    for difference in &it.differences {
        let _ = writeln!(out, "  differs: {}: {}", difference.name, difference.values.join(" | "));
    }
    let forced = it.forced.iter().map(|text| format!("forced: {text}"));
    for text in forced.chain(it.notes.iter().map(|text| format!("note: {text}"))) {
        let _ = writeln!(out, "  {text}");
    }
    for gate in &it.gates {
        let _ = writeln!(out, "  {} {}", gate.state.sign(gate.fails), ratios::gate(it, gate));
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
    group.splits.iter().map(|split| (group.name(), split.as_str()))
}

pub(crate) fn title(it: &Comparison) -> String {
    if let Some(experiment) = it.experiment.as_ref().filter(|_| is_grid(it)) {
        return format!("{} over {}", it.suite, experiment::factors(experiment));
    }
    let mut labels = it.groups.iter().map(Group::name);
    let first = labels.next().unwrap_or_default();
    if it.groups.len() == 1 {
        return format!("{first} beside published results");
    }
    format!("{} compared with {first}", labels.collect::<Vec<_>>().join(", "))
}

/// What reports call the groups with these labels.
fn group_names(it: &Comparison, labels: &[String]) -> String {
    labels.iter().map(|label| it.name_of(label)).collect::<Vec<_>>().join(", ")
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
    let rows = it.figures.iter().filter(|row| row.load.is_none());
    let begin =
        Rows::new("Figures of the whole run", rows).text("figure", |row| ratios::name(row.figure));
    let all = (0..it.groups.len()).fold(begin, |rows, index| {
        let rows = group_columns(rows, it, index);
        match index.checked_sub(1) {
            Some(other) => rows
                .text(&format!("to {}", it.groups[0].name()), |row| ratios::claim_text(row, other)),
            None => rows,
        }
    });
    all.table().without_empty_columns()
}

/// Mean and spread of a group.
fn group_columns<'r>(
    rows: Rows<&'r FigureRow>,
    it: &Comparison,
    index: usize,
) -> Rows<&'r FigureRow> {
    rows.figures(it.groups[index].name(), "", |row| {
        ratios::value(it, row.figure, &row.groups[index])
    })
    .figures("spread", "", |row| ratios::spread(&row.groups[index]))
}

/// Ratios of one group to the first, a line for each load point.
fn points_table(it: &Comparison, index: usize, shown: impl Fn(RatioFigure) -> bool) -> Table {
    let [first, other] = [0, index + 1].map(|at| it.groups[at].name());
    let of_points = RatioFigure::all().filter(|it| it.is_of_point() && shown(*it));
    let of_points: Vec<RatioFigure> = of_points.collect();
    let what = if of_points.iter().all(|it| it.is_cost()) { ", what an op costs" } else { "" };
    let caption = format!("{other} to {first} at each load point{what}");
    let mut loads: Vec<f64> = it.figures.iter().filter_map(|row| row.load).collect();
    loads.dedup();
    let at = |load: f64, figure| it.rows(figure).find(|row| row.load == Some(load));
    let has_figure = |load: &f64| of_points.iter().any(|figure| at(*load, *figure).is_some());
    let left_out = |load: f64| {
        let labels = at(load, of_points[0]).map(|row| group_names(it, &row.not_counted));
        labels.filter(|labels| !labels.is_empty())
    };
    let begin = Rows::new(caption, loads.into_iter().filter(has_figure))
        .marked(|load| left_out(*load).map_or(Mark::Sound, |_| Mark::NotCounted))
        // In the first cell, which no width of the page pushes out of sight.
        .figures(&axis_name(&it.axis), "", |load| match left_out(*load) {
            Some(labels) => format!("{}, not counted: {labels}", grouped(*load)),
            None => grouped(*load),
        });
    let all = of_points.iter().fold(begin, |rows, figure| {
        rows.figures(ratios::name(*figure), "", |load| {
            at(*load, *figure).map(|row| ratios::cell(row, index))
        })
    });
    all.table().without_empty_columns()
}

/// The values behind the ratios of the load points.
fn values_table(it: &Comparison, index: usize) -> Table {
    let caption = "Geometric means of the runs, and how far they lie apart";
    let rows = Rows::new(caption, it.figures.iter().filter(|row| row.load.is_some()))
        .text("figure", |row| ratios::name_at_load(row));
    group_columns(group_columns(rows, it, 0), it, index + 1)
        .text("ratio", |row| ratios::claim_text(row, index))
        .table()
}

fn differences_table(it: &Comparison) -> Table {
    let begin = Rows::new("What differs between the groups", &it.differences)
        .text("what", |difference| difference.name.clone());
    let all = it.groups.iter().enumerate().fold(begin, |rows, (index, group)| {
        rows.text(group.name(), |difference| difference.values.get(index).cloned())
    });
    all.table()
}

fn runs_table(it: &Comparison) -> Table {
    let runs = it.groups.iter().flat_map(|group| group.runs.iter().map(move |run| (group, run)));
    Rows::new("The runs", runs)
        .marked(|(_, run)| if run.valid { Mark::Sound } else { Mark::Invalid })
        .linked(|(_, run)| Some((run.bundle.clone(), run.report.clone()?)))
        .text("group", |(group, _)| group.name())
        .text("bundle", |(_, run)| run.bundle.clone())
        .text("started", |(_, run)| run.started.as_deref().map(instant))
        .text("verdict", |(_, run)| if run.valid { "valid" } else { "invalid" })
        .figures("peak", "", |(_, run)| {
            let value = GroupFigure { mean: run.value, ..GroupFigure::default() };
            ratios::value(it, RatioFigure::Peak, &value)
        })
        .text("what limited it", |(_, run)| run.limit.clone())
        .table()
        .without_empty_columns()
}

#[cfg(test)]
mod tests;
