//! Transcribed results of the source reports, for `plimsoll published`. Facts and figures only;
//! what is computed from them here is marked as computed.

use plimsoll_model::disclosure::Setting;
use plimsoll_model::units::grouped;
use serde::Deserialize;

/// Version of the files' format.
pub const PUBLISHED_FORMAT: u32 = 1;

/// Name and text of every file.
const FILES: [(&str, &str); 1] =
    [("web-n440bx-1998", include_str!("../../../published/web-n440bx-1998.toml"))];

/// One report.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Published {
    /// Version of the format.
    pub format: u32,
    /// Short name, as typed after `plimsoll published show`.
    pub name: String,
    /// One line.
    pub title: String,
    /// Suite here that follows the same method.
    pub suite: String,
    /// Who published it, and when.
    pub source: String,
    /// What was measured, and how.
    pub method: String,
    /// Unit of the points and peaks.
    pub unit: String,
    /// What a reader must know of the figures.
    pub notes: Vec<String>,
    /// What the report discloses of its hosts.
    pub disclosure: Vec<Setting>,
    /// What was measured.
    pub configurations: Vec<Configuration>,
    /// Pairs the report compares.
    pub comparisons: Vec<Comparison>,
    /// Further figures.
    pub tables: Vec<Table>,
}

/// One configuration of the server.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Configuration {
    /// Name.
    pub name: String,
    /// Processors in use.
    pub processors: u32,
    /// Their clock.
    pub clock_mhz: u32,
    /// Throughput of each load point.
    pub points_ops_per_s: Vec<f64>,
    /// The published result.
    pub peak_ops_per_s: f64,
}

/// Two configurations the report compares.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Comparison {
    /// What changed between them.
    pub name: String,
    /// Configuration before.
    pub from: String,
    /// Configuration after.
    pub to: String,
    /// What the report prints.
    pub printed: String,
}

/// Figures in rows. Every row has a field per column.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Table {
    /// What it shows.
    pub name: String,
    /// Headings, with units.
    pub columns: Vec<String>,
    /// Fields as printed in the source.
    pub rows: Vec<Vec<String>>,
}

/// Why a file cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PublishedError {
    /// Not TOML, or not this format.
    #[error("published result {name}: {message}")]
    Malformed {
        /// The file.
        name: String,
        /// What the parser says.
        message: String,
    },
    /// Another version of the format.
    #[error("published result {name} has format {found}; this program reads {PUBLISHED_FORMAT}")]
    Format {
        /// The file.
        name: String,
        /// Its version.
        found: u32,
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
    #[error("no published result is called {name:?}; there are: {known}")]
    Unknown {
        /// What was asked for.
        name: String,
        /// Names there are.
        known: String,
    },
}

/// Names of the transcribed results, in order.
pub fn names() -> impl Iterator<Item = &'static str> {
    FILES.iter().map(|(name, _)| *name)
}

/// The transcribed result of that name.
pub fn published(name: &str) -> Result<Published, PublishedError> {
    match FILES.iter().find(|(known, _)| *known == name) {
        Some((name, text)) => parse(name, text),
        None => Err(PublishedError::Unknown {
            name: name.to_owned(),
            known: names().collect::<Vec<_>>().join(", "),
        }),
    }
}

/// Reads a file and checks that its parts fit together.
pub fn parse(name: &str, text: &str) -> Result<Published, PublishedError> {
    let published: Published = toml::from_str(text)
        .map_err(|e| PublishedError::Malformed { name: name.to_owned(), message: e.to_string() })?;
    if published.format != PUBLISHED_FORMAT {
        return Err(PublishedError::Format { name: name.to_owned(), found: published.format });
    }
    match published.inconsistency() {
        None => Ok(published),
        Some(what) => Err(PublishedError::Inconsistent { name: name.to_owned(), what }),
    }
}

/// One row per transcribed result: name, suite, title, source.
pub fn catalogue() -> Result<Table, PublishedError> {
    let rows: Result<Vec<Vec<String>>, PublishedError> = names()
        .map(|name| published(name).map(|p| vec![p.name, p.suite, p.title, p.source]))
        .collect();
    Ok(Table {
        name: "published results".to_owned(),
        columns: ["name", "suite", "title", "source"].map(str::to_owned).to_vec(),
        rows: rows?,
    })
}

impl Published {
    /// Everything to show, in order: points, computed comparisons, then the report's own tables.
    pub fn tables(&self) -> Vec<Table> {
        let mut tables = vec![self.points_table(), self.comparisons_table()];
        tables.extend(self.tables.iter().cloned());
        tables
    }

    /// The configuration of that name.
    pub fn configuration(&self, name: &str) -> Option<&Configuration> {
        self.configurations.iter().find(|configuration| configuration.name == name)
    }

    /// Ratio of the two configurations' peaks, computed.
    pub fn ratio(&self, comparison: &Comparison) -> Option<f64> {
        let peak = |name: &str| self.configuration(name).map(|c| c.peak_ops_per_s);
        Some(peak(&comparison.to)? / peak(&comparison.from)?)
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
        rows.push(row("peak".to_owned(), &|c| Some(c.peak_ops_per_s)));
        Table {
            name: format!("throughput in {}", self.unit),
            columns: std::iter::once("point".to_owned()).chain(named).collect(),
            rows,
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
            columns: ["change", "ratio, computed", "gain, computed", "as printed"]
                .map(str::to_owned)
                .to_vec(),
            rows: self.comparisons.iter().map(row).collect(),
        }
    }

    fn inconsistency(&self) -> Option<String> {
        for configuration in &self.configurations {
            let points = &configuration.points_ops_per_s;
            let highest = points.iter().copied().reduce(f64::max);
            if highest != Some(configuration.peak_ops_per_s) {
                return Some(format!(
                    "the peak of {:?} is not its highest point",
                    configuration.name
                ));
            }
        }
        if let Some(bad) = self.comparisons.iter().find(|c| self.ratio(c).is_none()) {
            return Some(format!("comparison {:?} names no known configuration", bad.name));
        }
        let ragged = |t: &&Table| t.rows.iter().any(|row| row.len() != t.columns.len());
        let table = self.tables.iter().find(ragged)?;
        Some(format!("table {:?} has a row with another number of fields", table.name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn web() -> Published {
        published("web-n440bx-1998").unwrap()
    }

    #[test]
    fn every_file_reads_and_carries_its_own_name() {
        for name in names() {
            let published = published(name).unwrap();
            assert_eq!(published.name, name);
        }
        assert_eq!(catalogue().unwrap().rows.len(), FILES.len());
    }

    #[test]
    fn the_golden_ratios_of_the_web_report_are_computed_from_its_peaks() {
        let rows = web().comparisons_table().rows;
        let computed: Vec<(&str, &str)> =
            rows.iter().map(|row| (row[1].as_str(), row[2].as_str())).collect();
        assert_eq!(
            computed,
            [("1.661", "+66.1 %"), ("1.587", "+58.7 %"), ("1.150", "+15.0 %"), ("1.099", "+9.9 %")]
        );
    }

    #[test]
    fn every_configuration_has_ten_evenly_spaced_points() {
        for configuration in web().configurations {
            let step = configuration.peak_ops_per_s / 10.0;
            assert_eq!(configuration.points_ops_per_s.len(), 10, "{}", configuration.name);
            for (k, point) in (1..).zip(&configuration.points_ops_per_s) {
                assert!((point - step * f64::from(k)).abs() <= 1.0, "{point}");
            }
        }
    }

    #[test]
    fn the_directory_counts_follow_the_methods_formula() {
        let web = web();
        let table = web.tables.iter().find(|t| t.name.starts_with("file set")).unwrap();
        for row in &table.rows {
            let ops_per_s: f64 = row[0].parse().unwrap();
            let directories = 10.0 * (ops_per_s / 5.0).sqrt();
            assert_eq!(directories.floor().to_string(), row[1]);
            // MiB of the unrounded count; the report rounds.
            let size: f64 = row[2].parse().unwrap();
            assert!((directories * 4.882 - size).abs() < 1.0, "{ops_per_s}");
        }
    }

    #[test]
    fn the_points_table_ends_with_the_peaks() {
        let table = web().points_table();
        assert_eq!(table.columns.len(), 5);
        assert_eq!(table.rows.len(), 11);
        assert_eq!(table.rows[10], ["peak", "1,000", "1,661", "1,150", "1,825"]);
    }

    #[test]
    fn mistakes_are_named() {
        let check = |change: (&str, &str), message: &str| {
            let text = FILES[0].1.replacen(change.0, change.1, 1);
            let error = parse("test", &text).unwrap_err().to_string();
            assert!(error.contains(message), "{error}");
        };
        check(("format = 1", "format = 2"), "has format 2");
        check(("peak_ops_per_s = 1661", "peak_ops_per_s = 1700"), "is not its highest point");
        check(("to = \"2 CPU 350 MHz\"", "to = \"4 CPU\""), "names no known configuration");
        check(("[\"1\", \"4\", \"22\"]", "[\"1\", \"4\"]"), "another number of fields");
        check(("clock_mhz", "clock"), "clock");
        let unknown = published("nothing").unwrap_err().to_string();
        assert!(unknown.contains("there are: web-n440bx-1998"), "{unknown}");
    }
}
