//! Transcribed results of the source reports, for `plimsoll published`. Facts and figures only;
//! what is computed from them here is marked as computed.

mod against;
mod bytes;
mod tables;

use std::fmt;

use plimsoll_model::disclosure::Setting;
use plimsoll_model::result::OverallResponse;
use serde::Deserialize;

use crate::overall::{CurvePoint, overall_response};

pub use against::against;
pub use bytes::{ByteCurve, PriceItem, Rival};

/// Version of the files' format.
pub const PUBLISHED_FORMAT: u32 = 1;

/// Name and text of every file.
const FILES: [(&str, &str); 8] = [
    ("netbench-netfinity-1999", include_str!("../../../published/netbench-netfinity-1999.toml")),
    ("netbench-nt-1998", include_str!("../../../published/netbench-nt-1998.toml")),
    ("netbench-proliant-1995", include_str!("../../../published/netbench-proliant-1995.toml")),
    ("netbench-sun-1998", include_str!("../../../published/netbench-sun-1998.toml")),
    ("nfs-ort-curves", include_str!("../../../published/nfs-ort-curves.toml")),
    ("nfs-pseries-v2-2002", include_str!("../../../published/nfs-pseries-v2-2002.toml")),
    ("nfs-pseries-v3-2002", include_str!("../../../published/nfs-pseries-v3-2002.toml")),
    ("web-n440bx-1998", include_str!("../../../published/web-n440bx-1998.toml")),
];
/// Printed with two decimals, so that a computed figure may be off by half of the last.
const OVERALL_TOLERANCE_MS: f64 = 0.005;

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
    #[serde(default)]
    pub disclosure: Vec<Setting>,
    /// What was measured, point by point.
    #[serde(default)]
    pub configurations: Vec<Configuration>,
    /// Results of which the report prints the peak only, in its order.
    #[serde(default)]
    pub results: Vec<ListedResult>,
    /// Response time over throughput with its overall figure.
    #[serde(default)]
    pub curves: Vec<Curve>,
    /// File throughput over clients.
    #[serde(default)]
    pub byte_curves: Vec<ByteCurve>,
    /// Pairs the report compares, by name of configuration or result.
    #[serde(default)]
    pub comparisons: Vec<Comparison>,
    /// Further figures.
    #[serde(default)]
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

/// One row of a report's list of results.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ListedResult {
    /// Who published it.
    pub company: String,
    /// The server, as printed.
    pub system: String,
    /// What carried the protocol.
    pub transport: Transport,
    /// Processors of the server.
    pub processors: u32,
    /// The published result.
    pub peak_ops_per_s: f64,
}

impl ListedResult {
    /// What a comparison calls it: system and transport, of which each pair is listed once.
    pub fn label(&self) -> String {
        format!("{}, {}", self.system, self.transport)
    }
}

/// What carries a file protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Transport {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
}

impl fmt::Display for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Tcp => "TCP",
            Self::Udp => "UDP",
        })
    }
}

/// Response time over throughput, as printed, with the overall response time printed for it.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Curve {
    /// Name.
    pub name: String,
    /// Throughput of each load point.
    pub throughput_ops_per_s: Vec<f64>,
    /// Mean response time of each load point.
    pub response_ms: Vec<f64>,
    /// The published figure, by the definition `origin`, with two decimals.
    pub overall_response_ms: f64,
}

impl Curve {
    /// Overall response time of its points, computed by both definitions.
    pub fn overall(&self) -> OverallResponse {
        let points = self.throughput_ops_per_s.iter().zip(&self.response_ms);
        let curve: Vec<CurvePoint> = points
            .map(|(achieved_ops_per_s, response_ms)| CurvePoint {
                achieved_ops_per_s: *achieved_ops_per_s,
                response_ms: *response_ms,
            })
            .collect();
        overall_response(&curve)
    }
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
    /// The configuration of that name.
    pub fn configuration(&self, name: &str) -> Option<&Configuration> {
        self.configurations.iter().find(|configuration| configuration.name == name)
    }

    /// Ratio of the two peaks, computed.
    pub fn ratio(&self, comparison: &Comparison) -> Option<f64> {
        Some(self.peak(&comparison.to)? / self.peak(&comparison.from)?)
    }

    /// The peak of a configuration by its name, or of a result by its label.
    fn peak(&self, name: &str) -> Option<f64> {
        let listed = || self.results.iter().find(|result| result.label() == name);
        let configured = self.configuration(name).map(|c| c.peak_ops_per_s);
        configured.or_else(|| listed().map(|result| result.peak_ops_per_s))
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
        if let Some(twice) = self.listed_twice() {
            return Some(twice);
        }
        if let Some(bad) = self.comparisons.iter().find(|c| self.ratio(c).is_none()) {
            return Some(format!(
                "comparison {:?} names no known configuration or result",
                bad.name
            ));
        }
        let ragged = |t: &&Table| t.rows.iter().any(|row| row.len() != t.columns.len());
        if let Some(table) = self.tables.iter().find(ragged) {
            return Some(format!("table {:?} has a row with another number of fields", table.name));
        }
        let mut mistakes = self.byte_curves.iter().filter_map(ByteCurve::mistake);
        mistakes.next().or_else(|| self.curves.iter().find_map(mistake_of_curve))
    }

    fn listed_twice(&self) -> Option<String> {
        let repeats = |(at, result): &(usize, &ListedResult)| {
            self.results[..*at].iter().any(|earlier| earlier.label() == result.label())
        };
        let (_, result) = self.results.iter().enumerate().find(repeats)?;
        Some(format!("result {:?} is listed twice", result.label()))
    }
}

fn mistake_of_curve(curve: &Curve) -> Option<String> {
    if curve.throughput_ops_per_s.len() != curve.response_ms.len() {
        return Some(format!("curve {:?} has more of one column than of the other", curve.name));
    }
    let off = |origin: f64| (origin - curve.overall_response_ms).abs() > OVERALL_TOLERANCE_MS;
    curve.overall().origin.is_none_or(off).then(|| {
        format!("the overall response time of curve {:?} is not what its points give", curve.name)
    })
}

#[cfg(test)]
mod tests;
