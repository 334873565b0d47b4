//! A transcribed result as tables to show.

use plimsoll_model::published::{Placed, PublishedPage, PublishedTable};
use plimsoll_model::units::grouped;

use super::{Comparison, Configuration, ListedResult, Published};

impl Published {
    /// All of it.
    pub fn page(&self) -> PublishedPage {
        let notes = |slips: bool| {
            self.notes.iter().filter(|note| note.slip == slips).map(|note| note.placed()).collect()
        };
        PublishedPage {
            name: self.name.clone(),
            year: self.year,
            title: self.title.clone(),
            suites: self.suites.clone(),
            source: self.source.clone(),
            places: self.places.clone(),
            method: Placed { text: self.method.clone(), place: self.method_place.clone() },
            tables: self.tables(),
            disclosure: self.disclosure.clone(),
            notes: notes(false),
            slips: notes(true),
        }
    }

    /// Its throughput alone, or what stands in its place where the report prints none.
    pub fn extract(&self) -> PublishedPage {
        let mut tables = self.throughput_tables();
        if tables.is_empty() {
            tables.extend(self.tables.first().cloned());
        }
        let server = self.disclosure.iter().filter(|fact| fact.name.contains("server"));
        PublishedPage {
            tables,
            disclosure: server.cloned().collect(),
            slips: Vec::new(),
            ..self.page()
        }
    }

    /// Everything to show, in order: results and points, computed comparisons, then the report's
    /// own tables.
    pub fn tables(&self) -> Vec<PublishedTable> {
        let mut tables = self.throughput_tables();
        tables.extend(self.byte_tables());
        tables.push(self.comparisons_table());
        tables.retain(|table| !table.rows.is_empty());
        tables.extend(self.tables.iter().cloned());
        tables
    }

    fn throughput_tables(&self) -> Vec<PublishedTable> {
        let mut tables = vec![self.results_table(), self.points_table()];
        tables.extend(self.byte_curves.iter().map(super::ByteCurve::mixes_table));
        tables.retain(|table| !table.rows.is_empty());
        tables
    }

    /// The list of peaks, in the report's order.
    pub fn results_table(&self) -> PublishedTable {
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
        PublishedTable {
            name: "results".to_owned(),
            place: self.results_place.clone(),
            columns: headings(&["company", "system", "transport", "processors", &throughput]),
            rows: self.results.iter().map(row).collect(),
        }
    }

    /// Throughput of each load point, a column per configuration; the last row is the peak.
    pub fn points_table(&self) -> PublishedTable {
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
        PublishedTable {
            name: format!("throughput in {}", self.unit),
            place: each_once(self.configurations.iter().map(|c| c.place.as_str())),
            columns: std::iter::once("point".to_owned()).chain(named).collect(),
            rows,
        }
    }

    /// Ratios of peaks with the gain in percent, and what the report prints for the same pair.
    pub fn comparisons_table(&self) -> PublishedTable {
        let row = |comparison: &Comparison| {
            let ratio = self.ratio(comparison);
            let texts = ratio.map(|r| (format!("{r:.3}"), format!("{:+.1} %", (r - 1.0) * 100.0)));
            let (ratio, gain) = texts.unwrap_or_default();
            vec![comparison.name.clone(), ratio, gain, comparison.printed.clone()]
        };
        PublishedTable {
            name: "comparisons of the peaks".to_owned(),
            place: each_once(self.comparisons.iter().map(|c| c.place.as_str())),
            columns: headings(&["change", "ratio, computed", "gain, computed", "as printed"]),
            rows: self.comparisons.iter().map(row).collect(),
        }
    }
}

/// Places of several rows in one text.
fn each_once<'p>(places: impl Iterator<Item = &'p str>) -> String {
    let mut once: Vec<&str> = Vec::new();
    for place in places {
        if !once.contains(&place) {
            once.push(place);
        }
    }
    once.join("; ")
}

pub(super) fn headings(columns: &[&str]) -> Vec<String> {
    columns.iter().map(|name| (*name).to_owned()).collect()
}
