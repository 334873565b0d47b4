//! Tables of samples: the same columns make the CSV header, the rows and the sums per load point.

use std::fmt::Write;

/// What a column counts in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// 0 to 1.
    Ratio,
    /// Processors kept busy.
    Cores,
    /// Bytes.
    Bytes,
    /// Bytes per second.
    BytesPerSecond,
    /// Events per second.
    PerSecond,
    /// Seconds.
    Seconds,
    /// Things, now.
    Count,
}

impl Unit {
    /// As a disclosure or report shows it; empty for a plain count.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Ratio => "ratio",
            Self::Cores => "cores",
            Self::Bytes => "bytes",
            Self::BytesPerSecond => "bytes/s",
            Self::PerSecond => "1/s",
            Self::Seconds => "s",
            Self::Count => "",
        }
    }

    /// Suffix of a CSV column's name.
    const fn suffix(self) -> &'static str {
        match self {
            Self::Ratio => "_ratio",
            Self::Cores => "_cores",
            Self::Bytes => "_bytes",
            Self::BytesPerSecond => "_bytes_per_s",
            Self::PerSecond => "_per_s",
            Self::Seconds => "_s",
            Self::Count => "",
        }
    }
}

/// One column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    /// Name without unit.
    pub name: &'static str,
    /// Unit.
    pub unit: Unit,
    /// It is summed up per load point, not only written to the CSV file.
    pub summed: bool,
    /// Its samples are kept per load point, to draw them over time and to measure their variation.
    pub drawn: bool,
}

impl Column {
    /// A column that is only written.
    pub(super) const fn written(name: &'static str, unit: Unit) -> Self {
        Self { name, unit, summed: false, drawn: false }
    }

    /// The same, and its samples are kept.
    pub(super) const fn drawn(name: &'static str, unit: Unit) -> Self {
        Self { drawn: true, ..Self::summed(name, unit) }
    }

    /// A column that is summed up per load point too.
    pub(super) const fn summed(name: &'static str, unit: Unit) -> Self {
        Self { name, unit, summed: true, drawn: false }
    }
}

/// Names and units of a table.
#[derive(Debug, PartialEq, Eq)]
pub struct Table {
    /// What a row is about: `host`, `cpu`, `disk`, `network`, `process`.
    pub name: &'static str,
    /// A sample has one row per thing of this kind, distinguished by a key; else it has one row.
    pub keyed: bool,
    /// A thing whose summed columns are all zero is left out of the sums.
    pub idle_left_out: bool,
    /// It shows a state at an instant, which disappears when the load ends: each instant in the
    /// window counts, not the time before it.
    pub ends_with_load: bool,
    /// Columns after time, point and key.
    pub columns: &'static [Column],
}

impl Table {
    /// One row a sample.
    pub(super) const fn single(name: &'static str) -> Self {
        Self { name, keyed: false, idle_left_out: false, ends_with_load: false, columns: &[] }
    }

    /// A row for each thing of its kind.
    pub(super) const fn keyed(name: &'static str) -> Self {
        Self { keyed: true, ..Self::single(name) }
    }

    /// See [`Self::idle_left_out`].
    pub(super) const fn without_idle(self) -> Self {
        Self { idle_left_out: true, ..self }
    }

    /// See [`Self::ends_with_load`].
    pub(super) const fn ending_with_load(self) -> Self {
        Self { ends_with_load: true, ..self }
    }

    pub(super) const fn columns(self, columns: &'static [Column]) -> Self {
        Self { columns, ..self }
    }

    /// Header of the CSV file, with its newline.
    pub fn header(&self) -> String {
        let mut header = String::from("time_unix_ns,point");
        if self.keyed {
            header.push(',');
            header.push_str(self.name);
        }
        for column in self.columns {
            header.push(',');
            header.push_str(column.name);
            header.push_str(column.unit.suffix());
        }
        header.push('\n');
        header
    }
}

/// One thing at one instant.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Row {
    /// Which thing; empty when the table has no key.
    pub key: String,
    /// In the order of the table's columns; absent where the host does not report it.
    pub values: Vec<Option<f64>>,
}

/// The rows of one table in one sample.
#[derive(Clone, Debug)]
pub struct Rows {
    /// Names and units.
    pub table: &'static Table,
    rows: Vec<Row>,
    used: usize,
}

impl Rows {
    pub(crate) fn new(table: &'static Table) -> Self {
        Self { table, rows: Vec::new(), used: 0 }
    }

    /// The rows of the last sample.
    pub fn rows(&self) -> &[Row] {
        &self.rows[..self.used]
    }

    /// A column's value in the row with this key.
    pub fn value(&self, key: &str, column: &str) -> Option<f64> {
        let index = self.table.columns.iter().position(|c| c.name == column)?;
        self.rows().iter().find(|row| row.key == key)?.values.get(index).copied().flatten()
    }

    /// Rows are kept for their memory and filled anew.
    pub(super) fn clear(&mut self) {
        self.used = 0;
    }

    pub(crate) fn push(&mut self, key: &str, values: &[Option<f64>]) {
        debug_assert_eq!(values.len(), self.table.columns.len(), "{}", self.table.name);
        if self.used == self.rows.len() {
            self.rows.push(Row::default());
        }
        let row = &mut self.rows[self.used];
        self.used += 1;
        row.key.clear();
        row.key.push_str(key);
        row.values.clear();
        row.values.extend(values.iter().map(|value| value.filter(|v| v.is_finite())));
    }

    /// Appends the rows as CSV lines.
    pub fn write_csv(&self, time_unix_ns: u64, point: &str, out: &mut String) {
        for row in self.rows() {
            // Writing to a String cannot fail.
            let _ = write!(out, "{time_unix_ns},{}", Cell(point));
            if self.table.keyed {
                let _ = write!(out, ",{}", Cell(&row.key));
            }
            for value in &row.values {
                out.push(',');
                if let Some(value) = value {
                    write_number(*value, out);
                }
            }
            out.push('\n');
        }
    }
}

/// Counts as whole numbers, small fractions to the millionth, the rest to the thousandth.
fn write_number(value: f64, out: &mut String) {
    let digits = match value.abs() {
        _ if value.fract() == 0.0 => 0,
        size if size < 1.0 => 6,
        _ => 3,
    };
    let _ = write!(out, "{value:.digits$}");
}

/// Text in a CSV cell, quoted where RFC 4180 requires it.
struct Cell<'a>(&'a str);

impl std::fmt::Display for Cell<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.0.contains(['"', ',', '\n', '\r']) {
            write!(f, "\"{}\"", self.0.replace('"', "\"\""))
        } else {
            f.write_str(self.0)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    static TABLE: Table = Table::keyed("disk").without_idle().columns(&[
        Column::summed("read", Unit::BytesPerSecond),
        Column::written("queue", Unit::Count),
    ]);

    #[test]
    fn the_header_names_time_point_key_and_units() {
        assert_eq!(TABLE.header(), "time_unix_ns,point,disk,read_bytes_per_s,queue\n");
    }

    #[test]
    fn absent_values_are_empty_cells_and_zero_is_zero() {
        let mut rows = Rows::new(&TABLE);
        rows.push("vda", &[None, Some(0.0)]);
        rows.push("a,b", &[Some(1234.5678), Some(f64::NAN)]);
        let mut out = String::new();
        rows.write_csv(7, "point-01", &mut out);
        assert_eq!(out, "7,point-01,vda,,0\n7,point-01,\"a,b\",1234.568,\n");
        rows.clear();
        assert!(rows.rows().is_empty());
    }
}
