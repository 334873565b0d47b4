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
    /// Absent where a reader does not sort.
    pub(crate) sort: Option<Sort>,
}

/// The order of the rows by a column.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Sort {
    /// `descending` where the best is the largest value; a value of `aria-sort`.
    pub(crate) first: &'static str,
    /// The rank of each row, the best first; absent where there is nothing to sort by.
    pub(crate) ranks: Vec<Option<usize>>,
}

#[derive(Clone, Debug, Serialize)]
pub(crate) struct Row {
    pub(crate) cells: Vec<String>,
    /// Class of the row: empty, or the verdict on its point.
    pub(crate) class: &'static str,
    /// Text of a cell, and where it leads.
    pub(crate) link: Option<(String, String)>,
}

/// The verdict on a point, where a table or chart marks it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mark {
    /// Counted, or without a verdict.
    Sound,
    /// Valid, and left out of the result by the suite's own rule.
    NotCounted,
    /// A rule was broken.
    Invalid,
}

/// A table under construction: a row for each item, and one column after the other.
pub(crate) struct Rows<T> {
    items: Vec<T>,
    table: Table,
}

/// Content of a cell; an absent one is marked.
pub(crate) trait Cell {
    fn into_text(self) -> String;
}

impl Cell for String {
    fn into_text(self) -> String {
        self
    }
}

impl Cell for &str {
    fn into_text(self) -> String {
        self.to_owned()
    }
}

impl Cell for u32 {
    fn into_text(self) -> String {
        self.to_string()
    }
}

impl<C: Cell> Cell for Option<C> {
    fn into_text(self) -> String {
        self.map_or_else(|| ABSENT.to_owned(), Cell::into_text)
    }
}

/// Lines of a table of texts for a terminal, the headings first.
pub fn text_columns<S: AsRef<str>>(headings: &[S], rows: Vec<Vec<String>>) -> Vec<String> {
    let mut table = Table::new("", headings.iter().map(|it| text_column(it.as_ref())).collect());
    rows.into_iter().for_each(|cells| table.push(cells));
    table.lines()
}

impl<T> Rows<T> {
    pub(crate) fn new(caption: impl Into<String>, items: impl IntoIterator<Item = T>) -> Self {
        let (items, mut table) = (Vec::from_iter(items), Table::new(caption, Vec::new()));
        items.iter().for_each(|_| table.push(Vec::new()));
        Self { items, table }
    }

    /// Adds a column of texts.
    pub(crate) fn text<C: Cell>(self, name: &str, cell: impl Fn(&T) -> C) -> Self {
        self.column(text_column(name), cell)
    }

    /// Adds a column of figures.
    pub(crate) fn figures<C: Cell>(self, name: &str, unit: &str, cell: impl Fn(&T) -> C) -> Self {
        self.column(figures(name, unit), cell)
    }

    /// The same only where `shown`.
    pub(crate) fn figures_if<C: Cell>(
        self,
        shown: bool,
        (name, unit): (&str, &str),
        cell: impl Fn(&T) -> C,
    ) -> Self {
        if shown { self.figures(name, unit, cell) } else { self }
    }

    pub(crate) fn column<C: Cell>(mut self, column: Column, cell: impl Fn(&T) -> C) -> Self {
        self.table.columns.push(column);
        for (item, row) in self.items.iter().zip(&mut self.table.rows) {
            row.cells.push(cell(item).into_text());
        }
        self
    }

    pub(crate) fn marked(mut self, mark: impl Fn(&T) -> Mark) -> Self {
        for (item, row) in self.items.iter().zip(&mut self.table.rows) {
            row.class = mark(item).class();
        }
        self
    }

    /// Text of a cell of each row, and where it leads.
    pub(crate) fn linked(mut self, link: impl Fn(&T) -> Option<(String, String)>) -> Self {
        for (item, row) in self.items.iter().zip(&mut self.table.rows) {
            row.link = link(item);
        }
        self
    }

    pub(crate) fn table(self) -> Table {
        self.table
    }
}

impl<'p> Rows<&'p PointResult> {
    /// A row for each of these load points, marked by its verdict.
    pub(crate) fn of_points(
        caption: &str,
        points: impl IntoIterator<Item = &'p PointResult>,
    ) -> Self {
        Self::new(caption, points).marked(|point| Mark::of_point(point))
    }
}

impl Mark {
    /// Mark for a point, by its verdict.
    pub(crate) fn of_point(point: &PointResult) -> Self {
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

    /// Some value is absent.
    pub(crate) fn has_absent(&self) -> bool {
        self.rows.iter().any(|row| row.cells.iter().any(|cell| cell == ABSENT))
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

    /// Its headings and rows for a terminal, two spaces in; numbers are right-aligned.
    pub(crate) fn aligned(&self) -> String {
        self.lines().iter().map(|line| format!("  {line}\n")).collect()
    }

    fn lines(&self) -> Vec<String> {
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
            cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
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

pub(crate) fn text_column(name: &str) -> Column {
    Column { name: name.to_owned(), unit: String::new(), numeric: false, sort: None }
}

pub(crate) fn figures(name: &str, unit: &str) -> Column {
    Column { name: name.to_owned(), unit: unit.to_owned(), numeric: true, sort: None }
}
