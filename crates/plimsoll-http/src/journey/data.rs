//! Rows of values from CSV with a header line, or from JSON lines: which row a session has follows
//! from its number, whatever the number of agents.

use plimsoll_engine::rng;
use serde_json::Value;

/// Largest file.
const FILE_BYTES_MAX: usize = 1 << 30;
/// Largest weight of a row: sums of a file's rows stay exact enough.
const WEIGHT_MAX: f64 = 1e12;

/// Which row a session or a request has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RowOrder {
    /// The first session has the first; after the last, no session has any.
    EachOnce,
    /// The same, from the first again after the last.
    #[default]
    InTurn,
    /// Any, all equally likely.
    Random,
    /// Any, drawn anew for each request: all equally likely, or by their weights.
    EachRequest,
}

/// The rows of a file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DataRows {
    /// What the rows are called.
    pub name: String,
    /// Which row a session has.
    pub order: RowOrder,
    /// Names of the columns.
    pub columns: Vec<String>,
    /// All values, one row after the other.
    values: Vec<u8>,
    /// Where each value ends.
    ends: Vec<usize>,
    /// Sums of the weights up to each row; empty where all rows are equally likely.
    weight_sums: Vec<f64>,
}

/// What is wrong with a file of rows. No value is quoted: rows hold passwords.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DataError {
    /// More than 1 GiB.
    #[error("the file has more than 1 GiB; split it")]
    TooLong,
    /// Not text.
    #[error("it is not UTF-8 text")]
    NotText,
    /// No row.
    #[error("it has no row; write a header line with the names of the columns, then a row a line")]
    Empty,
    /// A line that has more or fewer values than the header line.
    #[error("line {line} has {values} values, the header line has {columns}")]
    Length {
        /// From 1.
        line: u64,
        /// Of the line.
        values: usize,
        /// Of the header line.
        columns: usize,
    },
    /// A line that cannot be read as CSV.
    #[error("line {0} cannot be read as CSV")]
    Csv(u64),
    /// A line that is no JSON object of texts and numbers.
    #[error("line {0} is not a JSON object of texts, numbers, true and false")]
    Json(usize),
    /// A weight that no row can have.
    #[error("line {0}: its weight is not a number above 0")]
    Weight(u64),
    /// A column that is not there.
    #[error("the data {data:?} has no column {column:?}; it has {columns}", columns = .columns.join(", "))]
    NoColumn {
        /// Name of the data.
        data: String,
        /// Of the column.
        column: String,
        /// Names of those that are there.
        columns: Vec<String>,
    },
    /// A line that lacks a column of the first.
    #[error("line {line} has no {column:?}, which line 1 has")]
    Missing {
        /// From 1.
        line: usize,
        /// Name of the column.
        column: String,
    },
}

impl DataRows {
    /// Reads the rows of a file: JSON lines if its first character is `{`, else CSV (RFC 4180).
    pub fn read(name: &str, order: RowOrder, bytes: &[u8]) -> Result<Self, DataError> {
        Self::read_weighted((name, order, None), bytes)
    }

    /// The same of rows whose weights are in a column.
    pub fn read_weighted(
        (name, order, weight): (&str, RowOrder, Option<&str>),
        bytes: &[u8],
    ) -> Result<Self, DataError> {
        if bytes.len() > FILE_BYTES_MAX {
            return Err(DataError::TooLong);
        }
        let text = std::str::from_utf8(bytes).map_err(|_| DataError::NotText)?;
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let mut rows = Self { name: name.to_owned(), order, ..Self::default() };
        match text.trim_start().starts_with('{') {
            true => rows.read_json(text, weight)?,
            false => rows.read_csv(text, weight)?,
        }
        if rows.count() == 0 { Err(DataError::Empty) } else { Ok(rows) }
    }

    fn read_csv(&mut self, text: &str, weight: Option<&str>) -> Result<(), DataError> {
        let mut reader = csv::ReaderBuilder::new().flexible(true).from_reader(text.as_bytes());
        let line_of = |e: &csv::Error| e.position().map_or(1, csv::Position::line);
        let header = reader.headers().map_err(|e| DataError::Csv(line_of(&e)))?;
        self.columns = header.iter().map(|name| name.trim().to_owned()).collect();
        let columns = self.columns.len();
        let weight = weight.map(|name| self.column(name)).transpose()?;
        let mut row = csv::StringRecord::new();
        while reader.read_record(&mut row).map_err(|e| DataError::Csv(line_of(&e)))? {
            let line = row.position().map_or(0, csv::Position::line);
            if row.len() != columns {
                return Err(DataError::Length { line, values: row.len(), columns });
            }
            row.iter().for_each(|value| self.push(value));
            self.add_weight(weight, line)?;
        }
        Ok(())
    }

    fn read_json(&mut self, text: &str, weight: Option<&str>) -> Result<(), DataError> {
        let lines = text.lines().zip(1..).filter(|(line, _)| !line.trim().is_empty());
        for (text, line) in lines {
            let object: serde_json::Map<String, Value> =
                serde_json::from_str(text).map_err(|_| DataError::Json(line))?;
            if self.columns.is_empty() {
                self.columns = object.keys().cloned().collect();
            }
            let weight = weight.map(|name| self.column(name)).transpose()?;
            for at in 0..self.columns.len() {
                let column = &self.columns[at];
                match object.get(column) {
                    Some(Value::String(text)) => self.push(text),
                    Some(value @ (Value::Number(_) | Value::Bool(_))) => {
                        self.push(&value.to_string());
                    }
                    Some(_) => return Err(DataError::Json(line)),
                    None => return Err(DataError::Missing { line, column: column.clone() }),
                }
            }
            self.add_weight(weight, line as u64)?;
        }
        Ok(())
    }

    /// Index of the column of this name.
    pub(crate) fn column(&self, name: &str) -> Result<usize, DataError> {
        let at = self.columns.iter().position(|other| other == name);
        at.ok_or_else(|| DataError::NoColumn {
            data: self.name.clone(),
            column: name.to_owned(),
            columns: self.columns.clone(),
        })
    }

    /// Adds the weight of the last row, which is on this line, where rows have any.
    fn add_weight(&mut self, column: Option<usize>, line: u64) -> Result<(), DataError> {
        let Some(column) = column else { return Ok(()) };
        let weight = std::str::from_utf8(self.value(self.count() - 1, column)).ok();
        let weight = weight.and_then(|weight| weight.trim().parse::<f64>().ok());
        let weight = weight.filter(|weight| *weight > 0.0 && *weight <= WEIGHT_MAX);
        let before = self.weight_sums.last().copied().unwrap_or(0.0);
        self.weight_sums.push(before + weight.ok_or(DataError::Weight(line))?);
        Ok(())
    }

    fn push(&mut self, value: &str) {
        self.values.extend_from_slice(value.as_bytes());
        self.ends.push(self.values.len());
    }

    /// How many rows there are.
    pub fn count(&self) -> u64 {
        self.ends.len().checked_div(self.columns.len()).unwrap_or(0) as u64
    }

    /// The row of a session; `None` where there is none for it.
    pub(crate) fn row(&self, session: u64, key: u64) -> Option<u64> {
        let count = self.count();
        match self.order {
            RowOrder::EachOnce => Some(session).filter(|row| *row < count),
            RowOrder::InTurn => session.checked_rem(count),
            RowOrder::Random => (count > 0).then(|| rng::below(key, count)),
            // Sessions have none of their own; it never runs out.
            RowOrder::EachRequest => (count > 0).then_some(0),
        }
    }

    /// Some rows are likelier than others.
    pub(crate) fn is_weighted(&self) -> bool {
        !self.weight_sums.is_empty()
    }

    /// The row of a request, drawn by `key`.
    pub(crate) fn row_of_request(&self, key: u64) -> u64 {
        let Some(sum) = self.weight_sums.last() else { return rng::below(key, self.count()) };
        let drawn = rng::unit(key) * sum;
        let below = self.weight_sums.partition_point(|sum| *sum <= drawn) as u64;
        below.min(self.count() - 1)
    }

    /// A value that is a whole number.
    pub(crate) fn number(&self, row: u64, column: usize) -> Option<u64> {
        std::str::from_utf8(self.value(row, column)).ok()?.trim().parse().ok()
    }

    /// A value.
    pub(crate) fn value(&self, row: u64, column: usize) -> &[u8] {
        let at = row as usize * self.columns.len() + column;
        let Some(end) = self.ends.get(at) else { return &[] };
        let start = at.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.values[start..*end]
    }
}

#[cfg(test)]
mod tests;
