//! `plimsoll published`: transcribed results of the source reports, and two of them side by side.

use std::fmt::Write as _;
use std::path::Path;

use plimsoll_analysis::published::{self, PublishedCurve, PublishedError, catalogue, published};
use plimsoll_model::board::BoardRow;
use plimsoll_model::published::{Placed, PublishedPage, PublishedTable};
use serde_json::json;

use super::write;
use crate::cli::{PublishedAction, PublishedArgs};
use crate::derive;
use crate::exit::{Exit, Failure};
use crate::terminal;

/// Before the name of a published result where a bundle may stand too.
const PREFIX: &str = "published:";

pub(crate) fn perform(args: &PublishedArgs) -> Result<Exit, Failure> {
    match &args.action {
        None | Some(PublishedAction::List) => {
            terminal::print(&table_text(&catalogue().map_err(failure)?));
        }
        Some(PublishedAction::Show { name, json, html }) => show(name, *json, html.as_deref())?,
    }
    Ok(Exit::Valid)
}

fn show(name: &str, json: bool, html: Option<&Path>) -> Result<(), Failure> {
    let whole = published(name).map_err(failure)?;
    let page = whole.page();
    if let Some(file) = html {
        write(file, &derive::published_page(&page)?)?;
    }
    if json {
        // As transcribed, and as shown: there is what is computed.
        terminal::print(&json_text(&json!({ "transcribed": whole, "shown": page })));
    } else if html.is_none() {
        terminal::print(&text_of(&page));
    }
    Ok(())
}

/// The name of a published result, where the text is one.
pub(crate) fn name_of(text: &str) -> Option<&str> {
    text.strip_prefix(PREFIX)
}

/// The two published results that a comparison without runs names; nothing where there are runs.
pub(crate) fn pair<S: AsRef<str>>(targets: &[S]) -> Result<Option<[&str; 2]>, Failure> {
    let names: Vec<&str> = targets.iter().filter_map(|target| name_of(target.as_ref())).collect();
    match names.as_slice() {
        names if names.is_empty() || names.len() < targets.len() => Ok(None),
        [first, second] => Ok(Some([first, second])),
        _ => Err(Failure::wrong(
            "without runs published results are compared two at a time: \
             plimsoll compare published:NAME published:NAME",
        )),
    }
}

/// The published curves that stand beside the runs of a comparison.
pub(crate) fn curves<S: AsRef<str>>(targets: &[S]) -> Result<Vec<PublishedCurve>, Failure> {
    let names = targets.iter().filter_map(|target| name_of(target.as_ref()));
    names.map(|name| published::curve(name).map_err(failure)).collect()
}

/// The lines of published results in a table of results.
pub(crate) fn board_rows(name: &str) -> Result<Vec<BoardRow>, Failure> {
    published::board_rows(name).map_err(failure)
}

/// Where a comparison goes besides the terminal.
#[derive(Default)]
pub(crate) struct Wanted<'w> {
    pub json: bool,
    pub html: Option<&'w Path>,
    pub md: Option<&'w Path>,
}

pub(crate) fn compare([first, second]: [&str; 2], wanted: &Wanted<'_>) -> Result<Exit, Failure> {
    let comparison = published::compare(first, second).map_err(failure)?;
    terminal::print(&match wanted.json {
        true => json_text(&json!(comparison)),
        false => plimsoll_report::published_comparison_text(&comparison),
    });
    if let Some(file) = wanted.html {
        write(file, &derive::published_comparison_page(&comparison)?)?;
    }
    if let Some(file) = wanted.md {
        write(file, &plimsoll_report::published_comparison_markdown(&comparison))?;
    }
    Ok(Exit::Valid)
}

fn failure(error: PublishedError) -> Failure {
    Failure::wrong(error.to_string())
}

fn json_text(value: &serde_json::Value) -> String {
    serde_json::to_string_pretty(value).expect("numbers and text become JSON")
}

fn text_of(it: &PublishedPage) -> String {
    let mut out = format!("{}: {}\n{}\n{}\n\n", it.year, it.title, it.source, it.places);
    let _ = writeln!(out, "Suites that follow the method: {}", it.suites.join(", "));
    let _ = writeln!(out, "{}", line_of(&it.method));
    for table in &it.tables {
        let _ = write!(out, "\n{} ({}):\n{}", table.name, table.place, table_text(table));
    }
    if !it.disclosure.is_empty() {
        out.push_str("\ndisclosure:\n");
    }
    for fact in &it.disclosure {
        let _ = writeln!(out, "  {}: {} ({})", fact.name, fact.value, fact.place);
    }
    for note in &it.notes {
        let _ = write!(out, "\nNote: {}\n", line_of(note));
    }
    for slip in &it.slips {
        let _ = write!(out, "\nSlip of the source: {}\n", line_of(slip));
    }
    out
}

fn line_of(text: &Placed) -> String {
    format!("{} ({})", text.text, text.place)
}

fn table_text(table: &PublishedTable) -> String {
    let lines = || std::iter::once(&table.columns).chain(&table.rows);
    let widths: Vec<usize> = (0..table.columns.len())
        .map(|i| lines().filter_map(|row| row.get(i)).map(|c| c.chars().count()).max().unwrap_or(0))
        .collect();
    let mut out = String::new();
    for row in lines() {
        let mut line = String::from(" ");
        for (cell, width) in row.iter().zip(&widths) {
            let _ = write!(line, " {cell:<width$} ");
        }
        let _ = writeln!(out, "{}", line.trim_end());
    }
    out
}
