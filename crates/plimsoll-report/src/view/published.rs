//! What others published of the same method, as text in order of reading.

use plimsoll_model::published::{Placed, PublishedPage, PublishedTable};
use serde::Serialize;

use crate::table::{Table, figures, words};

/// Said before them in the report of a run.
pub(crate) const CONTEXT: &str = "Figures that others printed for the method this suite follows, \
    with their year. They are context and no comparison: servers, networks, clients and software \
    of that time are not those of this run, and nothing here is ranked.";

/// One report.
#[derive(Debug, Serialize)]
pub(crate) struct PublishedView {
    /// Year in front.
    pub(crate) title: String,
    /// As typed after `plimsoll published show`.
    pub(crate) name: String,
    pub(crate) source: String,
    pub(crate) places: String,
    /// Suites here that follow its method.
    pub(crate) suites: String,
    pub(crate) method: Placed,
    pub(crate) tables: Vec<Table>,
    /// Name, value, place.
    pub(crate) disclosure: Vec<(String, String, String)>,
    pub(crate) notes: Vec<Placed>,
    pub(crate) slips: Vec<Placed>,
}

impl PublishedView {
    pub(crate) fn new(page: &PublishedPage) -> Self {
        let facts = page.disclosure.iter();
        Self {
            title: format!("{}: {}", page.year, page.title),
            name: page.name.clone(),
            source: page.source.clone(),
            places: page.places.clone(),
            suites: page.suites.join(", "),
            method: page.method.clone(),
            tables: page.tables.iter().map(table).collect(),
            disclosure: facts.map(|f| (f.name.clone(), f.value.clone(), f.place.clone())).collect(),
            notes: page.notes.clone(),
            slips: page.slips.clone(),
        }
    }
}

/// With its place behind the caption; columns that hold numbers only stand to the right.
fn table(of: &PublishedTable) -> Table {
    let caption = match of.place.is_empty() {
        true => of.name.clone(),
        false => format!("{} ({})", of.name, of.place),
    };
    let column = |(at, name): (usize, &String)| {
        let mut cells = of.rows.iter().map(|row| row[at].as_str());
        if cells.all(is_number) { figures(name, "") } else { words(name) }
    };
    let mut table = Table::new(caption, of.columns.iter().enumerate().map(column).collect());
    of.rows.iter().for_each(|row| table.push(row.clone()));
    table
}

fn is_number(cell: &str) -> bool {
    let sign = |c: char| c.is_ascii_digit() || ",.+-% ".contains(c);
    cell.is_empty() || (cell.chars().all(sign) && cell.contains(|c: char| c.is_ascii_digit()))
}
