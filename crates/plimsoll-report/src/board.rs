//! A table of results: the page, whose lines a click on a heading sorts, and the same as text.

use minijinja::value::{Serde, Value};
use plimsoll_model::board::{BoardColumn, BoardPrice, BoardRow, BoardSource};
use plimsoll_model::reported::ReportedFigure;
use plimsoll_model::units::counted;
use serde::Serialize;

use crate::csv::Sheet;
use crate::html::{ReportError, environment};
use crate::markdown::MarkdownPage;
use crate::table::{Column, Mark, Rows, Sort, Table, figures, text_column};
use crate::text::three_digits;
use crate::view::{CLOSING, limit_name};

const TITLE: &str = "Table of results";
const NS_PER_MS: f64 = 1e6;
/// On a terminal a line is as long as its longest cells; these are cut.
const TERMINAL_TEXT_MAX: usize = 34;
const NOTE: &str = "Only figures of the same suite and unit can be set against each \
    other, and only those of the same hosts say something of the servers. Processors: what the \
    server had, where the disclosure says so. Response times are those at the load point with the \
    highest throughput that counts. A signature was not checked; plimsoll verify does that. \
    Published results are figures of their year as their source prints them.";

#[derive(Serialize)]
struct BoardPage {
    title: &'static str,
    subtitle: String,
    table: Table,
    note: &'static str,
    closing: &'static str,
    board_script: Value,
}

/// Renders lines, in their order, as one page that needs no network, and no script but to sort.
///
/// # Errors
/// When the embedded template does not render, which no line should be able to cause.
pub fn board_html(rows: &[BoardRow]) -> Result<String, ReportError> {
    let page = BoardPage {
        title: TITLE,
        subtitle: subtitle(rows),
        table: table(rows),
        note: NOTE,
        closing: CLOSING,
        board_script: Value::from_safe_string(include_str!("../templates/board.js").to_owned()),
    };
    let mut environment = environment()?;
    environment.add_template("board.html", include_str!("../templates/board.html"))?;
    Ok(environment.get_template("board.html")?.render(Serde(&page))?)
}

/// The same as Markdown with a table (GitHub's dialect).
pub fn board_markdown(rows: &[BoardRow]) -> String {
    let mut page = MarkdownPage::default();
    page.heading(0, TITLE);
    page.emphasised(&subtitle(rows));
    page.table(&table(rows));
    page.paragraph(NOTE);
    page.end(CLOSING)
}

/// The same for a terminal, a line each.
pub fn board_text(rows: &[BoardRow]) -> String {
    let mut table = table(rows);
    let from = table.columns.len() - 1;
    for row in &mut table.rows {
        for (column, cell) in row.cells.iter_mut().enumerate() {
            let cut = cell.chars().count().saturating_sub(TERMINAL_TEXT_MAX - 1);
            *cell = match (cut, column == from) {
                (0 | 1, _) => continue,
                // The end of a path distinguishes the runs.
                (_, true) => std::iter::once('…').chain(cell.chars().skip(cut)).collect(),
                (_, false) => cell.chars().take(TERMINAL_TEXT_MAX - 1).chain(['…']).collect(),
            };
        }
    }
    table.aligned()
}

/// The numbers unrounded, units in the headers, absence empty.
pub fn board_csv(rows: &[BoardRow]) -> String {
    Sheet::new(rows)
        .column("date", |row| row.date.as_ref())
        .column("system", |row| Some(&row.system))
        .column("suite", |row| Some(&row.suite))
        .column("profile", |row| row.profile.as_ref())
        .column("processors", |row| row.processors)
        .column("peak", |row| row.peak)
        .column("unit", |row| Some(&row.unit))
        .column("bound", |row| Some(if row.at_least { "at_least" } else { "exact" }))
        .column("peak_per_processor", |row| row.per_processor())
        .column("response_mean_ns", |row| row.response_mean_ns)
        .column("response_p99_ns", |row| row.response_p99_ns)
        .column("overall_response_ms", |row| row.overall_response_ms)
        .column("limit", |row| row.limit.as_ref().map(limit_name))
        .column("price_per_unit", |row| Some(row.price.as_ref()?.per_unit))
        .column("currency", |row| Some(&row.price.as_ref()?.currency))
        .column("priced_unit", |row| Some(&row.price.as_ref()?.unit))
        .column("valid", |row| row.valid)
        .column("signed", |row| row.signed)
        .column("source", |row| Some(source(row)))
        .text()
}

fn subtitle(rows: &[BoardRow]) -> String {
    let published =
        rows.iter().filter(|row| matches!(row.source, BoardSource::Published(_))).count();
    let runs = counted(rows.len() - published, "run");
    match published {
        0 => runs,
        published => format!("{runs}, {}", counted(published, "published result")),
    }
}

fn table(rows: &[BoardRow]) -> Table {
    let mark = |row: &&BoardRow| match row.valid {
        Some(false) => Mark::Invalid,
        _ => Mark::Sound,
    };
    let begin = Rows::new("Results, a line each", rows).marked(mark);
    let all = columns().into_iter().fold(begin, |table, (of, column, cell)| {
        table.column(Column { sort: Some(sort(rows, of)), ..column }, |row| cell(row))
    });
    all.table().without_empty_columns()
}

type BoardCell = fn(&BoardRow) -> Option<String>;

/// What each column is sorted by, its heading, and its cells.
fn columns() -> [(BoardColumn, Column, BoardCell); 14] {
    [
        (BoardColumn::Date, text_column("date"), |row| row.date.as_deref().map(day)),
        (BoardColumn::System, text_column("system"), |row| Some(row.system.clone())),
        (BoardColumn::Suite, text_column("suite"), |row| Some(suite(row))),
        (BoardColumn::Processors, figures("processors", ""), |row| {
            row.processors.map(|number| number.to_string())
        }),
        (BoardColumn::Peak, figures("peak", ""), |row| Some(throughput(row, row.peak?))),
        (BoardColumn::PerProcessor, figures("per processor", ""), |row| {
            Some(throughput(row, row.per_processor()?))
        }),
        (BoardColumn::ResponseMean, figures("mean response", "ms"), |row| {
            row.response_mean_ns.map(millis)
        }),
        (BoardColumn::ResponseP99, figures("p99", "ms"), |row| row.response_p99_ns.map(millis)),
        (BoardColumn::OverallResponse, figures("overall response", "ms"), |row| {
            row.overall_response_ms.map(three_digits)
        }),
        (BoardColumn::Limit, text_column("limit"), |row| row.limit.as_ref().map(limit_name)),
        (BoardColumn::Price, figures("price per unit", ""), |row| row.price.as_ref().map(price)),
        (BoardColumn::Verdict, text_column("verdict"), |row| {
            row.valid.map(|valid| if valid { "valid" } else { "✗ invalid" }.to_owned())
        }),
        (BoardColumn::Signed, text_column("signed"), |row| {
            row.signed.map(|signed| if signed { "yes" } else { "no" }.to_owned())
        }),
        (BoardColumn::Source, text_column("from"), |row| Some(source(row))),
    ]
}

fn sort(rows: &[BoardRow], column: BoardColumn) -> Sort {
    let mut order: Vec<usize> = (0..rows.len()).collect();
    order.sort_by(|a, b| rows[*a].order(&rows[*b], column));
    let mut ranks = vec![None; rows.len()];
    for (rank, at) in order.into_iter().enumerate() {
        ranks[at] = rows[at].has(column).then_some(rank);
    }
    Sort { first: if column.falls() { "descending" } else { "ascending" }, ranks }
}

/// The full profile needs no mention.
fn suite(row: &BoardRow) -> String {
    match row.profile.as_deref() {
        None | Some("full") => row.suite.clone(),
        Some(profile) => format!("{}, {profile}", row.suite),
    }
}

fn throughput(row: &BoardRow, value: f64) -> String {
    let least = if row.at_least { "≥\u{a0}" } else { "" };
    format!("{least}{}", ReportedFigure::new(value, None).throughput_text(&row.unit))
}

fn millis(nanos: f64) -> String {
    three_digits(nanos / NS_PER_MS)
}

fn price(price: &BoardPrice) -> String {
    let most = if price.at_most { "≤\u{a0}" } else { "" };
    format!("{most}{} {} per {}", price.currency, three_digits(price.per_unit), price.unit)
}

fn source(row: &BoardRow) -> String {
    match &row.source {
        BoardSource::Bundle(dir) => dir.clone(),
        BoardSource::Published(name) => format!("published:{name}"),
    }
}

/// `2026-11-23 20:41` of an instant; a year is one.
fn day(date: &str) -> String {
    const MINUTE_CHARS: usize = 16;
    date.get(..MINUTE_CHARS).unwrap_or(date).replace('T', " ")
}

#[cfg(test)]
mod tests;
