//! A transcribed file, as it is written, and the consistency checks of it.

use std::fmt;

use plimsoll_model::published::{CitedFact, CitedText, PublishedTable};
use serde::{Deserialize, Serialize};

use super::bytes::ByteCurve;

/// One report. Figures are typed as printed; every part names its location in the source.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Published {
    /// Version of the format.
    pub format: u32,
    /// Short name, as typed after `plimsoll published show`.
    pub name: String,
    /// Of the tests, or of the report where it does not say.
    pub year: u32,
    /// One line.
    pub title: String,
    /// Suites here that follow the same method.
    pub suites: Vec<String>,
    /// Who published it, and when.
    pub source: String,
    /// What locations refer to: pages, or sections and tables of a text without pages.
    pub places: String,
    /// The measurement and its method.
    pub method: String,
    /// Location of the method's description.
    pub method_place: String,
    /// Unit of the points and peaks.
    pub unit: String,
    /// Location of `results`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub results_place: String,
    /// Remarks on the figures.
    pub notes: Vec<Note>,
    /// The report's disclosure of its hosts.
    #[serde(default)]
    pub disclosure: Vec<CitedFact>,
    /// What was measured, point by point.
    #[serde(default)]
    pub configurations: Vec<Configuration>,
    /// Results of which the report prints the peak only, in its order.
    #[serde(default)]
    pub results: Vec<ListedResult>,
    /// File throughput over clients.
    #[serde(default)]
    pub byte_curves: Vec<ByteCurve>,
    /// Pairs the report compares, by name of configuration or result.
    #[serde(default)]
    pub comparisons: Vec<Comparison>,
    /// Further figures.
    #[serde(default)]
    pub tables: Vec<PublishedTable>,
}

/// A remark on the figures.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Note {
    /// Our own text.
    pub text: String,
    /// Its source.
    pub place: String,
    /// The report contradicts itself or its figures here.
    #[serde(default)]
    pub slip: bool,
}

impl Note {
    /// To be shown.
    pub(super) fn cited(&self) -> CitedText {
        CitedText { text: self.text.clone(), place: self.place.clone() }
    }
}

/// One configuration of the server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
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
    /// Location of the points and the peak.
    pub place: String,
}

/// One row of a report's list of results.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ListedResult {
    /// Who published it.
    pub company: String,
    /// The server, as printed.
    pub system: String,
    /// The transport protocol.
    pub transport: Transport,
    /// Processors of the server.
    pub processors: u32,
    /// The published result.
    pub peak_ops_per_s: f64,
}

impl ListedResult {
    /// Its label in a comparison: system and transport. Each pair is listed once.
    pub fn label(&self) -> String {
        format!("{}, {}", self.system, self.transport)
    }
}

/// Transport of a file protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
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

/// Two configurations the report compares.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Comparison {
    /// What changed between them.
    pub name: String,
    /// Configuration before.
    pub from: String,
    /// Configuration after.
    pub to: String,
    /// The comparison as printed.
    pub printed: String,
    /// The same as a number, where it is one: after over before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub printed_ratio: Option<f64>,
    /// Location of the printed comparison.
    pub place: String,
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

    pub(super) fn inconsistency(&self) -> Option<String> {
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
        let ragged = |t: &&PublishedTable| t.rows.iter().any(|row| row.len() != t.columns.len());
        if let Some(table) = self.tables.iter().find(ragged) {
            return Some(format!("table {:?} has a row with another number of fields", table.name));
        }
        if self.locations().any(str::is_empty) {
            return Some("something has an empty place".to_owned());
        }
        self.byte_curves.iter().find_map(ByteCurve::mistake)
    }

    fn locations(&self) -> impl Iterator<Item = &str> {
        let results = (!self.results.is_empty()).then_some(self.results_place.as_str());
        let single = [self.places.as_str(), self.method_place.as_str()].into_iter().chain(results);
        single
            .chain(self.notes.iter().map(|it| it.place.as_str()))
            .chain(self.disclosure.iter().map(|it| it.place.as_str()))
            .chain(self.configurations.iter().map(|it| it.place.as_str()))
            .chain(self.comparisons.iter().map(|it| it.place.as_str()))
            .chain(self.tables.iter().map(|it| it.place.as_str()))
            .chain(self.byte_curves.iter().flat_map(ByteCurve::locations))
    }

    fn listed_twice(&self) -> Option<String> {
        let repeats = |(at, result): &(usize, &ListedResult)| {
            self.results[..*at].iter().any(|earlier| earlier.label() == result.label())
        };
        let (_, result) = self.results.iter().enumerate().find(repeats)?;
        Some(format!("result {:?} is listed twice", result.label()))
    }
}
