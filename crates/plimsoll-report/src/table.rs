//! A table as both HTML and Markdown show it.

use serde::Serialize;

use crate::text::ABSENT;

/// A table of text cells.
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
    /// Whether to mark the row as of an invalid point.
    pub(crate) invalid: bool,
}

impl Table {
    pub(crate) fn new(caption: impl Into<String>, columns: Vec<Column>) -> Self {
        Self { caption: caption.into(), columns, rows: Vec::new() }
    }

    pub(crate) fn push(&mut self, cells: Vec<String>) {
        self.rows.push(Row { cells, invalid: false });
    }

    pub(crate) fn push_judged(&mut self, cells: Vec<String>, valid: bool) {
        self.rows.push(Row { cells, invalid: !valid });
    }

    /// Some value is absent.
    pub(crate) fn has_gaps(&self) -> bool {
        self.rows.iter().any(|row| row.cells.iter().any(|cell| cell == ABSENT))
    }

    /// Leaves out columns without any value.
    pub(crate) fn without_empty_columns(mut self) -> Self {
        let keep: Vec<bool> = (0..self.columns.len())
            .map(|i| self.rows.iter().any(|row| row.cells.get(i).is_some_and(|c| c != ABSENT)))
            .collect();
        retain(&mut self.columns, &keep);
        for row in &mut self.rows {
            retain(&mut row.cells, &keep);
        }
        self
    }
}

fn retain<T>(items: &mut Vec<T>, keep: &[bool]) {
    let mut keep = keep.iter();
    items.retain(|_| keep.next().copied().unwrap_or(true));
}

/// A column of words.
pub(crate) fn words(name: &str) -> Column {
    Column { name: name.to_owned(), unit: String::new(), numeric: false }
}

/// A column of numbers.
pub(crate) fn figures(name: &str, unit: &str) -> Column {
    Column { name: name.to_owned(), unit: unit.to_owned(), numeric: true }
}
