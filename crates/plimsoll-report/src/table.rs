//! A table as both HTML and Markdown show it.

use plimsoll_model::result::PointResult;
use serde::Serialize;

use crate::text::ABSENT;

#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Table {
    pub(crate) caption: String,
    pub(crate) columns: Vec<Column>,
    pub(crate) rows: Vec<Row>,
}

#[derive(Clone, Debug, Serialize)]
pub(crate) struct Column {
    pub(crate) name: String,
    pub(crate) unit: String,
    pub(crate) numeric: bool,
}

#[derive(Clone, Debug, Serialize)]
pub(crate) struct Row {
    pub(crate) cells: Vec<String>,
    /// Class of the row: empty, or how the point it stands for was judged.
    pub(crate) class: &'static str,
    /// Text of a cell, and where it leads.
    pub(crate) link: Option<(String, String)>,
}

/// How a point was judged, where a table or chart marks it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mark {
    /// Counted, or judged by nobody.
    Sound,
    /// Valid, and left out of the result by the suite's own rule.
    NotCounted,
    /// A rule was broken.
    Invalid,
}

/// A column of a table of load points, and what its cells say of each.
pub(crate) type Filled<'a> = (Column, Box<dyn Fn(&PointResult) -> String + 'a>);

pub(crate) fn filled<'a>(column: Column, cell: impl Fn(&PointResult) -> String + 'a) -> Filled<'a> {
    (column, Box::new(cell))
}

/// A table with a row for each of these load points.
pub(crate) fn table_of<'p>(
    points: impl IntoIterator<Item = &'p PointResult>,
    filled: Vec<Filled<'_>>,
    caption: &str,
) -> Table {
    let (columns, cells): (Vec<Column>, Vec<_>) = filled.into_iter().unzip();
    let mut table = Table::new(caption, columns);
    for point in points {
        table.push_marked(cells.iter().map(|cell| cell(point)).collect(), Mark::of(point));
    }
    table
}

impl Mark {
    /// Of a point, as it was judged.
    pub(crate) fn of(point: &PointResult) -> Self {
        match (point.valid, &point.not_counted) {
            (false, _) => Self::Invalid,
            (true, Some(_)) => Self::NotCounted,
            (true, None) => Self::Sound,
        }
    }

    fn class(self) -> &'static str {
        match self {
            Self::Sound => "",
            Self::NotCounted => "not-counted",
            Self::Invalid => "invalid",
        }
    }
}

impl Table {
    pub(crate) fn new(caption: impl Into<String>, columns: Vec<Column>) -> Self {
        Self { caption: caption.into(), columns, rows: Vec::new() }
    }

    pub(crate) fn push(&mut self, cells: Vec<String>) {
        self.push_marked(cells, Mark::Sound);
    }

    pub(crate) fn push_marked(&mut self, cells: Vec<String>, mark: Mark) {
        self.rows.push(Row { cells, class: mark.class(), link: None });
    }

    /// The cell of the last row that has this text leads there.
    pub(crate) fn link(&mut self, text: &str, href: &str) {
        if let Some(row) = self.rows.last_mut() {
            row.link = Some((text.to_owned(), href.to_owned()));
        }
    }

    /// Some value is absent.
    pub(crate) fn has_gaps(&self) -> bool {
        self.any_cell(|cell| cell == ABSENT)
    }

    pub(crate) fn any_cell(&self, is_so: impl Fn(&str) -> bool) -> bool {
        self.rows.iter().any(|row| row.cells.iter().any(|cell| is_so(cell)))
    }

    /// Leaves out the column of that name.
    pub(crate) fn without_column(mut self, name: &str) -> Self {
        let keep: Vec<bool> = self.columns.iter().map(|column| column.name != name).collect();
        self.retain_columns(&keep);
        self
    }

    /// Leaves out columns without any value.
    pub(crate) fn without_empty_columns(mut self) -> Self {
        let keep: Vec<bool> = (0..self.columns.len())
            .map(|i| self.rows.iter().any(|row| row.cells.get(i).is_some_and(|c| c != ABSENT)))
            .collect();
        self.retain_columns(&keep);
        self
    }

    /// Its headings and rows for a terminal, two spaces in; numbers stand to the right.
    pub(crate) fn aligned(&self) -> String {
        let heading = |column: &Column| match column.unit.is_empty() {
            true => column.name.clone(),
            false => format!("{}, {}", column.name, column.unit),
        };
        let headings: Vec<String> = self.columns.iter().map(heading).collect();
        let rows = || std::iter::once(&headings).chain(self.rows.iter().map(|row| &row.cells));
        let width = |at: usize| rows().map(|row| row[at].chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..headings.len()).map(width).collect();
        let line = |row: &Vec<String>| {
            let cells = row.iter().zip(&self.columns).zip(&widths);
            let cells = cells.map(|((cell, column), &width)| match column.numeric {
                true => format!("{cell:>width$}"),
                false => format!("{cell:<width$}"),
            });
            format!("  {}\n", cells.collect::<Vec<_>>().join("  ").trim_end())
        };
        rows().map(line).collect()
    }

    fn retain_columns(&mut self, keep: &[bool]) {
        retain(&mut self.columns, keep);
        for row in &mut self.rows {
            retain(&mut row.cells, keep);
        }
    }
}

fn retain<T>(items: &mut Vec<T>, keep: &[bool]) {
    let mut keep = keep.iter();
    items.retain(|_| keep.next().copied().unwrap_or(true));
}

pub(crate) fn words(name: &str) -> Column {
    Column { name: name.to_owned(), unit: String::new(), numeric: false }
}

pub(crate) fn figures(name: &str, unit: &str) -> Column {
    Column { name: name.to_owned(), unit: unit.to_owned(), numeric: true }
}
