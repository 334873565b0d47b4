//! Transcribed results of the source reports, for `plimsoll published`. Facts and figures only,
//! each with its location in the source; figures computed from them are marked as computed.

mod bytes;
mod systems;
mod types;

use plimsoll_model::published::{CitedText, PublishedPage, PublishedTable};
use plimsoll_model::suite::nearest;
use plimsoll_model::units::grouped;

pub use bytes::{ByteCurve, PriceItem, Rival};
pub use systems::{PublishedCurve, board_rows, compare, curve};
pub use types::{Comparison, Configuration, ListedResult, Note, Published, Transport};

/// Version of the files' format.
pub const PUBLISHED_FORMAT: u32 = 2;

macro_rules! file {
    ($name:literal) => {
        ($name, include_str!(concat!("../../../published/", $name, ".toml")))
    };
}

/// Name and text of every file.
const FILES: [(&str, &str); 8] = [
    file!("netbench-netfinity-1999"),
    file!("netbench-nt-1998"),
    file!("netbench-proliant-1995"),
    file!("netbench-sun-1998"),
    file!("nfs-pseries-v2-2002"),
    file!("nfs-pseries-v3-2002"),
    file!("transactions-netfinity-1999"),
    file!("web-n440bx-1998"),
];

/// Why a file cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PublishedError {
    /// Not TOML, or not this format.
    #[error("published result {name}: {message}")]
    Malformed {
        /// The file.
        name: String,
        /// The parser's message.
        message: String,
    },
    /// Another version of the format.
    #[error("published result {name} has format {format}; this program reads {PUBLISHED_FORMAT}")]
    Format {
        /// The file.
        name: String,
        /// Its version.
        format: u32,
    },
    /// Its parts do not fit together.
    #[error("published result {name}: {what}")]
    Inconsistent {
        /// The file.
        name: String,
        /// What does not fit.
        what: String,
    },
    /// No such file.
    #[error("no published result is called {name:?}; {help}")]
    Unknown {
        /// The requested name.
        name: String,
        /// The nearest name, or all there are.
        help: String,
    },
    /// The file has several systems, or none of that name.
    #[error("{name}: {what}; write {name}/SYSTEM with one of: {systems}")]
    System {
        /// The file.
        name: String,
        /// What is wrong with the requested system.
        what: String,
        /// Valid values of SYSTEM.
        systems: String,
    },
    /// The file prints no throughput.
    #[error("{name} prints ratios and charts only: there is no figure to compare")]
    NoFigures {
        /// The file.
        name: String,
    },
    /// Two methods: a ratio would mean nothing.
    #[error("{first} and {second} follow different methods ({suites}); a ratio would mean nothing")]
    Different {
        /// The first.
        first: String,
        /// The second.
        second: String,
        /// Suites of both.
        suites: String,
    },
}

/// Names of the transcribed results, in order.
pub fn names() -> impl Iterator<Item = &'static str> {
    FILES.iter().map(|(name, _)| *name)
}

/// The transcribed result of that name.
pub fn published(name: &str) -> Result<Published, PublishedError> {
    let Some((name, text)) = FILES.iter().find(|(listed, _)| *listed == name) else {
        let help = match nearest(name, names()) {
            Some(near) => format!("did you mean {near}?"),
            None => format!("there are: {}", names().collect::<Vec<_>>().join(", ")),
        };
        return Err(PublishedError::Unknown { name: name.to_owned(), help });
    };
    parse(name, text)
}

/// Reads a file and checks that its parts fit together.
pub fn parse(name: &str, text: &str) -> Result<Published, PublishedError> {
    let published: Published = toml::from_str(text)
        .map_err(|e| PublishedError::Malformed { name: name.to_owned(), message: e.to_string() })?;
    if published.format != PUBLISHED_FORMAT {
        return Err(PublishedError::Format { name: name.to_owned(), format: published.format });
    }
    match published.inconsistency() {
        None => Ok(published),
        Some(what) => Err(PublishedError::Inconsistent { name: name.to_owned(), what }),
    }
}

/// One row per transcribed result: name, year, suites, title, source.
pub fn catalogue() -> Result<PublishedTable, PublishedError> {
    let row = |p: Published| vec![p.name, p.year.to_string(), p.suites.join(", "), p.title];
    let rows: Result<Vec<_>, _> = names().map(|name| published(name).map(row)).collect();
    Ok(PublishedTable {
        name: "published results".to_owned(),
        place: String::new(),
        columns: ["name", "year", "suites", "title"].map(str::to_owned).to_vec(),
        rows: rows?,
    })
}

/// Published results shown next to a run of that suite: the reports whose method it follows, oldest
/// first, each with its figures alone. They are context of their time and rank nothing.
pub fn pages_for_suite(suite: &str) -> Result<Vec<PublishedPage>, PublishedError> {
    let all: Result<Vec<Published>, _> = names().map(published).collect();
    let mut of_suite = all?;
    of_suite.retain(|it| it.suites.iter().any(|name| name == suite));
    of_suite.sort_by_key(|it| it.year);
    Ok(of_suite.iter().map(Published::extract).collect())
}

impl Published {
    /// All of it.
    pub fn page(&self) -> PublishedPage {
        let notes = |errata: bool| {
            self.notes.iter().filter(|note| note.slip == errata).map(|note| note.cited()).collect()
        };
        PublishedPage {
            name: self.name.clone(),
            year: self.year,
            title: self.title.clone(),
            suites: self.suites.clone(),
            source: self.source.clone(),
            places: self.places.clone(),
            method: CitedText { text: self.method.clone(), place: self.method_place.clone() },
            tables: self.tables(),
            disclosure: self.disclosure.clone(),
            notes: notes(false),
            slips: notes(true),
        }
    }

    /// Its throughput alone, or the report's own tables where it prints none.
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
        tables.extend(self.byte_curves.iter().map(ByteCurve::mixes_table));
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

    /// Ratios of peaks with the gain in percent, and the printed ratio of the same pair.
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

/// Locations of several rows in one text.
fn each_once<'p>(locations: impl IntoIterator<Item = &'p str>) -> String {
    let mut once: Vec<&str> = Vec::new();
    for location in locations {
        if !once.contains(&location) {
            once.push(location);
        }
    }
    once.join("; ")
}

fn headings(columns: &[&str]) -> Vec<String> {
    columns.iter().map(|name| (*name).to_owned()).collect()
}

#[cfg(test)]
mod tests;
