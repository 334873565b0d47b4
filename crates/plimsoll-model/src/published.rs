//! A published report as it is shown: derived by analysis from a transcribed file.

use serde::{Deserialize, Serialize};

/// One report, or the part of it shown with a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublishedPage {
    /// Short name, as typed after `plimsoll published show`.
    pub name: String,
    /// Year of the tests.
    pub year: u32,
    /// One line.
    pub title: String,
    /// Suites here that follow the same method.
    pub suites: Vec<String>,
    /// Who published it, and when.
    pub source: String,
    /// What its citations name: pages, or sections and tables.
    pub places: String,
    /// What was measured, and how.
    pub method: CitedText,
    /// Figures, each table with its citation.
    pub tables: Vec<PublishedTable>,
    /// What the report discloses of its hosts.
    pub disclosure: Vec<CitedFact>,
    /// What a reader must know of the figures.
    pub notes: Vec<CitedText>,
    /// Where the report contradicts itself or its figures.
    pub slips: Vec<CitedText>,
}

/// Figures in rows. Every row has a field per column.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublishedTable {
    /// What it shows.
    pub name: String,
    /// Where its figures are in the source.
    pub place: String,
    /// Headings, with units. Computed columns are marked as such.
    pub columns: Vec<String>,
    /// Fields as printed in the source, or computed from them.
    pub rows: Vec<Vec<String>>,
}

/// A text and where it is in the source.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CitedText {
    /// Paraphrased.
    pub text: String,
    /// Page, or section, table or figure.
    pub place: String,
}

/// A named value and where it is in the source.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CitedFact {
    /// Name.
    pub name: String,
    /// Value, with its unit where the name has none.
    pub value: String,
    /// Page, or section, table or figure.
    pub place: String,
}

/// Two published systems side by side.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublishedComparison {
    /// The two, as requested.
    pub names: [String; 2],
    /// Year, title and source of each.
    pub sources: [String; 2],
    /// Figures of both, with ratios.
    pub figures: Vec<PublishedFigure>,
    /// Load points that both have.
    pub points: Vec<PublishedPoint>,
    /// Notes of either source that bear on its figures.
    pub notes: Vec<CitedText>,
}

/// One figure of two published systems.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublishedFigure {
    /// What it is, with its unit.
    pub name: String,
    /// Of both, as the ratio is made of them.
    pub values: [f64; 2],
    /// Second over first, computed.
    pub ratio: f64,
    /// Whether the values are as printed, or rounded as the source rounds before it divides.
    pub basis: String,
    /// The ratio that the source prints for the same pair; empty where it prints none.
    pub printed: String,
    /// The ratio of `printed` as a number, turned to be second over first.
    pub printed_ratio: Option<f64>,
    /// Where it prints it, or the values.
    pub place: String,
}

/// The same load on two published systems.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublishedPoint {
    /// Clients, or the number of the load point.
    pub load: String,
    /// Throughput of both.
    pub values: [f64; 2],
    /// Second over first, computed.
    pub ratio: f64,
    /// Clients that took part, where the source names them.
    pub participating: Option<[u32; 2]>,
}
