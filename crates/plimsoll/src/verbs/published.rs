//! `plimsoll published`: transcribed results of the source reports.

use std::fmt::Write as _;

use plimsoll_analysis::published::{Published, PublishedError, Table, catalogue, published};

use crate::cli::{PublishedAction, PublishedArgs};
use crate::exit::{Exit, Failure};
use crate::terminal;

/// Lists them, or shows one.
pub(crate) fn perform(args: &PublishedArgs) -> Result<Exit, Failure> {
    let text = match &args.action {
        None | Some(PublishedAction::List) => table_text(&catalogue().map_err(failure)?),
        Some(PublishedAction::Show { name }) => page(&published(name).map_err(failure)?),
    };
    terminal::print(&text);
    Ok(Exit::Valid)
}

pub(super) fn failure(error: PublishedError) -> Failure {
    Failure::wrong(error.to_string())
}

fn page(it: &Published) -> String {
    let mut out = format!("{}\n{}\n\n{}\n", it.title, it.source, it.method);
    for table in it.tables() {
        let _ = write!(out, "\n{}:\n{}", table.name, table_text(&table));
    }
    if !it.disclosure.is_empty() {
        out.push_str("\ndisclosure:\n");
    }
    for fact in &it.disclosure {
        let _ = writeln!(out, "  {}: {}", fact.name, fact.value);
    }
    for note in &it.notes {
        let _ = writeln!(out, "\nNote: {note}");
    }
    out
}

pub(super) fn table_text(table: &Table) -> String {
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
