//! A table of results: the page, whose lines a click on a heading sorts, and the same as text.

use minijinja::value::{Serde, Value};
use plimsoll_model::board::{BoardColumn, BoardRow, BoardSource};
use plimsoll_model::stated::Stated;
use serde::Serialize;

use crate::csv::Sheet;
use crate::html::{ReportError, environment};
use crate::markdown::MarkdownPage;
use crate::table::{Column, Mark, Table, figures, words};
use crate::text::{ABSENT, three_digits};
use crate::view::{CLOSING, limit_name};

const NS_PER_MS: f64 = 1e6;
/// On a terminal a line is as long as its longest cells; these are cut.
const TERMINAL_WORDS_MAX: usize = 34;
const NOTE: &str = "Only figures of the same suite and unit can be set against each \
    other, and only those of the same hosts say something of the servers. Processors: what the \
    server had, where the disclosure says so. Response times are those at the load point with the \
    highest throughput that counts. A signature was not checked; plimsoll verify does that. \
    Published results are figures of their year as their source prints them.";

/// Columns in the order of reading.
const COLUMNS: [BoardColumn; 14] = [
    BoardColumn::Date,
    BoardColumn::System,
    BoardColumn::Suite,
    BoardColumn::Processors,
    BoardColumn::Peak,
    BoardColumn::PerProcessor,
    BoardColumn::ResponseMean,
    BoardColumn::ResponseP99,
    BoardColumn::OverallResponse,
    BoardColumn::Limit,
    BoardColumn::Price,
    BoardColumn::Verdict,
    BoardColumn::Signed,
    BoardColumn::Source,
];

#[derive(Serialize)]
struct BoardPage {
    title: &'static str,
    subtitle: String,
    columns: Vec<Heading>,
    rows: Vec<PageRow>,
    caption: String,
    note: &'static str,
    closing: &'static str,
    board_script: Value,
}

#[derive(Serialize)]
struct Heading {
    column: Column,
    /// `descending` where the best is the largest value; as `aria-sort` says it.
    first: &'static str,
    /// Its cells may be long: they wrap.
    long: bool,
}

#[derive(Serialize)]
struct PageRow {
    class: &'static str,
    cells: Vec<PageCell>,
}

#[derive(Serialize)]
struct PageCell {
    text: String,
    /// Its place when sorted by its column; absent where there is nothing to sort by.
    rank: Option<usize>,
}

/// Renders lines, in their order, as one page that needs no network, and no script but to sort.
///
/// # Errors
/// When the embedded template does not render, which no line should be able to cause.
pub fn board_html(rows: &[BoardRow]) -> Result<String, ReportError> {
    let table = table(rows);
    let shown: Vec<BoardColumn> = shown(&table).collect();
    let ranks: Vec<Vec<Option<usize>>> = shown.iter().map(|column| ranks(rows, *column)).collect();
    let page_row = |(at, row): (usize, crate::table::Row)| PageRow {
        class: row.class,
        cells: row
            .cells
            .into_iter()
            .zip(&ranks)
            .map(|(text, ranks)| PageCell { text, rank: ranks[at] })
            .collect(),
    };
    let page = BoardPage {
        title: "Table of results",
        subtitle: subtitle(rows),
        columns: table.columns.into_iter().zip(shown).map(heading).collect(),
        rows: table.rows.into_iter().enumerate().map(page_row).collect(),
        caption: table.caption,
        note: NOTE,
        closing: CLOSING,
        board_script: Value::from_safe_string(include_str!("../templates/board.js").to_owned()),
    };
    let mut environment = environment()?;
    environment.add_template("board.html", include_str!("../templates/board.html"))?;
    Ok(environment.get_template("board.html")?.render(Serde(&page))?)
}

fn heading((column, of): (Column, BoardColumn)) -> Heading {
    let first = if of.falls() { "descending" } else { "ascending" };
    let long = matches!(of, BoardColumn::System | BoardColumn::Limit | BoardColumn::Source);
    Heading { column, first, long }
}

/// The same as Markdown with a table (GitHub's dialect).
pub fn board_markdown(rows: &[BoardRow]) -> String {
    let mut page = MarkdownPage::default();
    page.title("Table of results");
    page.emphasised(&subtitle(rows));
    page.table(&table(rows));
    page.paragraph(NOTE);
    page.end(CLOSING)
}

/// The same for a terminal, a line each; without the places the lines are from.
pub fn board_text(rows: &[BoardRow]) -> String {
    let mut table = table(rows).without_column(name(BoardColumn::Source).name.as_str());
    for row in &mut table.rows {
        for cell in &mut row.cells {
            if cell.chars().count() > TERMINAL_WORDS_MAX {
                *cell = cell.chars().take(TERMINAL_WORDS_MAX - 1).chain(['…']).collect();
            }
        }
    }
    table.aligned()
}

/// The numbers unrounded, units in the headers, absence empty.
pub fn board_csv(rows: &[BoardRow]) -> String {
    let header = [
        "date",
        "system",
        "suite",
        "profile",
        "processors",
        "peak",
        "unit",
        "bound",
        "peak_per_processor",
        "response_mean_ns",
        "response_p99_ns",
        "overall_response_ms",
        "limit",
        "price_per_unit",
        "currency",
        "priced_unit",
        "valid",
        "signed",
        "source",
    ];
    let mut sheet = Sheet::new(&header.map(str::to_owned));
    for row in rows {
        sheet.row(csv_cells(row));
    }
    sheet.text
}

fn csv_cells(row: &BoardRow) -> [String; 19] {
    fn text<T: ToString>(value: Option<T>) -> String {
        value.map(|value| value.to_string()).unwrap_or_default()
    }
    let price = row.price.as_ref();
    [
        text(row.date.as_ref()),
        row.system.clone(),
        row.suite.clone(),
        text(row.profile.as_ref()),
        text(row.processors),
        text(row.peak),
        row.unit.clone(),
        if row.at_least { "at_least" } else { "exact" }.to_owned(),
        text(row.per_processor()),
        text(row.response_mean_ns),
        text(row.response_p99_ns),
        text(row.overall_response_ms),
        text(row.limit.as_ref().map(limit_name)),
        text(price.map(|price| price.per_unit)),
        text(price.map(|price| &price.currency)),
        text(price.map(|price| &price.unit)),
        text(row.valid),
        text(row.signed),
        source(row),
    ]
}

fn subtitle(rows: &[BoardRow]) -> String {
    let published =
        rows.iter().filter(|row| matches!(row.source, BoardSource::Published(_))).count();
    let counted = |number: usize, word: &str| match number {
        1 => format!("1 {word}"),
        number => format!("{number} {word}s"),
    };
    let runs = counted(rows.len() - published, "run");
    match published {
        0 => runs,
        published => format!("{runs}, {}", counted(published, "published result")),
    }
}

fn name(column: BoardColumn) -> Column {
    match column {
        BoardColumn::Date => words("date"),
        BoardColumn::System => words("system"),
        BoardColumn::Suite => words("suite"),
        BoardColumn::Processors => figures("processors", ""),
        BoardColumn::Peak => figures("peak", ""),
        BoardColumn::PerProcessor => figures("per processor", ""),
        BoardColumn::ResponseMean => figures("mean response", "ms"),
        BoardColumn::ResponseP99 => figures("p99", "ms"),
        BoardColumn::OverallResponse => figures("overall response", "ms"),
        BoardColumn::Limit => words("limit"),
        BoardColumn::Price => figures("price per unit", ""),
        BoardColumn::Verdict => words("verdict"),
        BoardColumn::Signed => words("signed"),
        BoardColumn::Source => words("from"),
    }
}

fn table(rows: &[BoardRow]) -> Table {
    let mut table = Table::new("Results, a line each", COLUMNS.map(name).to_vec());
    for row in rows {
        let cells = COLUMNS.map(|column| cell(row, column).unwrap_or_else(|| ABSENT.to_owned()));
        let mark = if row.valid == Some(false) { Mark::Invalid } else { Mark::Sound };
        table.push_marked(cells.to_vec(), mark);
    }
    table.without_empty_columns()
}

/// The columns that a table has kept.
fn shown(table: &Table) -> impl Iterator<Item = BoardColumn> {
    let kept = |column: &BoardColumn| table.columns.iter().any(|it| it.name == name(*column).name);
    COLUMNS.into_iter().filter(kept)
}

/// The place of each row when sorted by this column.
fn ranks(rows: &[BoardRow], column: BoardColumn) -> Vec<Option<usize>> {
    let mut order: Vec<usize> = (0..rows.len()).collect();
    order.sort_by(|a, b| rows[*a].order(&rows[*b], column));
    let mut ranks = vec![None; rows.len()];
    for (rank, at) in order.into_iter().enumerate() {
        ranks[at] = rows[at].has(column).then_some(rank);
    }
    ranks
}

fn cell(row: &BoardRow, column: BoardColumn) -> Option<String> {
    let millis = |nanos: Option<f64>| nanos.map(|nanos| three_digits(nanos / NS_PER_MS));
    let throughput = |value: f64| Stated::new(value, None).throughput_text(&row.unit);
    let least = if row.at_least { "≥\u{a0}" } else { "" };
    match column {
        BoardColumn::Date => row.date.as_deref().map(day),
        BoardColumn::System => Some(row.system.clone()),
        BoardColumn::Suite => Some(match row.profile.as_deref() {
            // The whole method needs no word.
            None | Some("full") => row.suite.clone(),
            Some(profile) => format!("{}, {profile}", row.suite),
        }),
        BoardColumn::Processors => row.processors.map(|number| number.to_string()),
        BoardColumn::Peak => row.peak.map(|peak| format!("{least}{}", throughput(peak))),
        BoardColumn::PerProcessor => {
            row.per_processor().map(|value| format!("{least}{}", throughput(value)))
        }
        BoardColumn::ResponseMean => millis(row.response_mean_ns),
        BoardColumn::ResponseP99 => millis(row.response_p99_ns),
        BoardColumn::OverallResponse => row.overall_response_ms.map(three_digits),
        BoardColumn::Limit => row.limit.as_ref().map(limit_name),
        BoardColumn::Price => row.price.as_ref().map(|price| {
            let most = if price.at_most { "≤\u{a0}" } else { "" };
            format!("{most}{} {} per {}", price.currency, three_digits(price.per_unit), price.unit)
        }),
        BoardColumn::Verdict => {
            row.valid.map(|valid| if valid { "valid" } else { "✗ invalid" }.to_owned())
        }
        BoardColumn::Signed => {
            row.signed.map(|signed| if signed { "yes" } else { "no" }.to_owned())
        }
        BoardColumn::Source => Some(source(row)),
    }
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
