//! A transcribed result as tables to show.

use plimsoll_model::units::grouped;

use super::{Comparison, Configuration, Curve, ListedResult, Published, Table};

impl Published {
    /// Everything to show, in order: results and points, computed comparisons, then the report's
    /// own tables.
    pub fn tables(&self) -> Vec<Table> {
        let mut tables = vec![self.results_table(), self.points_table()];
        tables.extend(self.curves.iter().map(|curve| curve_table(curve, &self.unit)));
        tables.extend(self.byte_tables());
        tables.extend([self.overall_table(), self.comparisons_table()]);
        tables.retain(|table| !table.rows.is_empty());
        tables.extend(self.tables.iter().cloned());
        tables
    }

    /// The list of peaks, in the report's order.
    pub fn results_table(&self) -> Table {
        let row = |result: &ListedResult| {
            vec![
                result.company.clone(),
                result.system.clone(),
                result.transport.to_string(),
                result.processors.to_string(),
                grouped(result.peak_ops_per_s),
            ]
        };
        let throughput = format!("throughput in {}", self.unit);
        Table {
            name: "results".to_owned(),
            columns: names(&["company", "system", "transport", "processors", &throughput]),
            rows: self.results.iter().map(row).collect(),
        }
    }

    /// Throughput of each load point, a column per configuration; the last row is the peak.
    pub fn points_table(&self) -> Table {
        let named = self.configurations.iter().map(|c| c.name.clone());
        let count = self.configurations.iter().map(|c| c.points_ops_per_s.len()).max();
        let row = |title: String, value: &dyn Fn(&Configuration) -> Option<f64>| -> Vec<String> {
            let values = self.configurations.iter().map(value);
            let texts = values.map(|v| v.map(grouped).unwrap_or_default());
            std::iter::once(title).chain(texts).collect()
        };
        let mut rows: Vec<Vec<String>> = (0..count.unwrap_or(0))
            .map(|i| row((i + 1).to_string(), &|c| c.points_ops_per_s.get(i).copied()))
            .collect();
        if !self.configurations.is_empty() {
            rows.push(row("peak".to_owned(), &|c| Some(c.peak_ops_per_s)));
        }
        Table {
            name: format!("throughput in {}", self.unit),
            columns: std::iter::once("point".to_owned()).chain(named).collect(),
            rows,
        }
    }

    /// Overall response times as printed, and as both definitions compute them.
    pub fn overall_table(&self) -> Table {
        let two = |value: Option<f64>| value.map(|v| format!("{v:.2}")).unwrap_or_default();
        let row = |curve: &Curve| {
            let overall = curve.overall();
            let printed = two(Some(curve.overall_response_ms));
            vec![curve.name.clone(), printed, two(overall.origin), two(overall.span)]
        };
        Table {
            name: "overall response time in ms".to_owned(),
            columns: names(&["curve", "as printed", "origin, computed", "span, computed"]),
            rows: self.curves.iter().map(row).collect(),
        }
    }

    /// Ratios of peaks with the gain in percent, and what the report prints for the same pair.
    pub fn comparisons_table(&self) -> Table {
        let row = |comparison: &Comparison| {
            let ratio = self.ratio(comparison);
            let texts = ratio.map(|r| (format!("{r:.3}"), format!("{:+.1} %", (r - 1.0) * 100.0)));
            let (ratio, gain) = texts.unwrap_or_default();
            vec![comparison.name.clone(), ratio, gain, comparison.printed.clone()]
        };
        Table {
            name: "comparisons of the peaks".to_owned(),
            columns: names(&["change", "ratio, computed", "gain, computed", "as printed"]),
            rows: self.comparisons.iter().map(row).collect(),
        }
    }
}

/// The points of a curve, as printed.
fn curve_table(curve: &Curve, unit: &str) -> Table {
    let points = curve.throughput_ops_per_s.iter().zip(&curve.response_ms);
    Table {
        name: curve.name.clone(),
        columns: names(&["point", &format!("throughput in {unit}"), "response time in ms"]),
        rows: (1..)
            .zip(points)
            .map(|(at, (ops, ms))| vec![at.to_string(), grouped(*ops), format!("{ms:.1}")])
            .collect(),
    }
}

fn names(columns: &[&str]) -> Vec<String> {
    columns.iter().map(|name| (*name).to_owned()).collect()
}
