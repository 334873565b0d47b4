//! `plimsoll published`: transcribed results of the source reports, and two of them side by side.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use plimsoll_analysis::published::{self, PublishedCurve, PublishedError, catalogue, published};
use plimsoll_model::board::BoardRow;
use plimsoll_model::published::{CitedText, PublishedComparison, PublishedPage, PublishedTable};
use plimsoll_report::text_columns;
use serde_json::json;

use super::write;
use crate::exit::{Exit, Failure};
use crate::terminal;

/// Prefix of a published result's name, where a bundle is accepted too.
const PREFIX: &str = "published:";

#[derive(Debug, Args)]
pub(crate) struct PublishedArgs {
    #[command(subcommand)]
    pub action: Option<PublishedAction>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum PublishedAction {
    /// List them, as `plimsoll published` alone does
    List,
    /// Print one result: every figure with its position in the source
    Show {
        /// Name of the result
        name: String,
        /// Print JSON
        #[arg(long)]
        json: bool,
        /// HTML file to write
        #[arg(long, value_name = "FILE")]
        html: Option<PathBuf>,
    },
}

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
        write(file, &plimsoll_report::published_html(&page)?)?;
    }
    if json {
        // As transcribed and as shown, with the computed figures.
        terminal::print(&json_text(&json!({ "transcribed": whole, "shown": page })));
    } else if html.is_none() {
        terminal::print(&text_of(&page));
    }
    Ok(())
}

/// The name of a published result, if the text has the prefix.
pub(crate) fn name_of(text: &str) -> Option<&str> {
    text.strip_prefix(PREFIX)
}

/// The two published results of a comparison without runs; `None` with runs.
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

/// The published curves in a comparison of runs.
pub(crate) fn curves<S: AsRef<str>>(targets: &[S]) -> Result<Vec<PublishedCurve>, Failure> {
    let names = targets.iter().filter_map(|target| name_of(target.as_ref()));
    names.map(|name| published::curve(name).map_err(failure)).collect()
}

/// The rows of published results in a table of results.
pub(crate) fn board_rows(name: &str) -> Result<Vec<BoardRow>, Failure> {
    published::board_rows(name).map_err(failure)
}

/// Compares two published results.
pub(crate) fn compare([first, second]: [&str; 2]) -> Result<PublishedComparison, Failure> {
    published::compare(first, second).map_err(failure)
}

fn failure(error: PublishedError) -> Failure {
    Failure::wrong(error.to_string())
}

pub(crate) fn json_text(value: &serde_json::Value) -> String {
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
    for erratum in &it.slips {
        let _ = write!(out, "\nSlip of the source: {}\n", line_of(erratum));
    }
    out
}

fn line_of(text: &CitedText) -> String {
    format!("{} ({})", text.text, text.place)
}

fn table_text(table: &PublishedTable) -> String {
    let lines = text_columns(&table.columns, table.rows.clone());
    lines.iter().map(|line| format!("  {line}\n")).collect()
}
