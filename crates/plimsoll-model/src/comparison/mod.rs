//! Groups of runs side by side, format 1: what `plimsoll compare --json` prints, and the
//! `versus.json` of `plimsoll versus`. A run is one observation; what it holds is not.

mod curve;
pub mod experiment;
mod gate;

use serde::{Deserialize, Serialize};

pub use curve::{Curve, CurveFigure, CurvePoint, PublishedSource};
pub use gate::{RatioFigure, RatioGate, RatioGateResult};

use self::experiment::Experiment;
use crate::prices::PriceComparison;
use crate::result::Axis;

/// Version of the document.
pub const COMPARISON_FORMAT: u32 = 1;
/// Runs of a side from which more than a ratio is said.
pub const RUNS_MIN: usize = 3;

/// Groups of runs against the first of them.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Comparison {
    /// Version of this format.
    pub format: u32,
    /// Name of the first group's suite.
    pub suite: String,
    /// Its profile.
    pub profile: String,
    /// What the ladder counts.
    pub axis: Axis,
    /// Unit of the headline.
    pub unit: String,
    /// The n-th runs of all groups were made one after the other, and are compared as pairs.
    pub paired: bool,
    /// What is compared; the first is what the others are compared with.
    pub groups: Vec<Group>,
    /// Why the groups should not be compared, where that was asked for all the same (`--force`).
    /// Not empty: nothing below is a finding about servers.
    pub forced: Vec<String>,
    /// What differs between the groups: settings, software, hosts.
    pub differences: Vec<Difference>,
    /// The figures, those of the whole run first.
    pub figures: Vec<FigureRow>,
    /// Throughput and response time over load: a curve of each group, in their order, then the
    /// published ones that can be drawn beside them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub curves: Vec<Curve>,
    /// What a reader must know, for a person.
    pub notes: Vec<String>,
    /// What became of the conditions (`--fail-if`).
    pub gates: Vec<RatioGateResult>,
    /// What the groups cost (`--prices`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prices: Option<PriceComparison>,
    /// What the factors of an experiment do; its cells are the groups.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub experiment: Option<Experiment>,
}

/// Runs of one thing.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Group {
    /// What it is called.
    pub label: String,
    /// Its runs, in the order given.
    pub runs: Vec<GroupRun>,
    /// Signs that its runs are not of one thing, for a person.
    pub splits: Vec<String>,
}

/// One run of a group.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GroupRun {
    /// Its directory, as given.
    pub bundle: String,
    /// Its report, from the directory of the document, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub report: Option<String>,
    /// Its first instant, RFC 3339.
    pub started: Option<String>,
    /// Its targets, without passwords.
    pub targets: Vec<String>,
    /// Its verdict. Figures of an invalid run are left out, unless forced.
    pub valid: bool,
    /// Its headline.
    pub value: Option<f64>,
    /// What limited it, for a person.
    pub limit: Option<String>,
}

/// Something that is not the same in all groups.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Difference {
    /// What.
    pub name: String,
    /// Its value in each group; where a group holds several, all of them.
    pub values: Vec<String>,
}

/// A figure in all groups.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FigureRow {
    /// Its name, as `--fail-if` takes it.
    pub figure: RatioFigure,
    /// The load point it is of; `null` for figures of the run.
    pub load: Option<f64>,
    /// Not every run had this load: between two of its points a figure was drawn straight.
    pub interpolated: bool,
    /// Labels of the groups in which the load point was left out of a run's result, because the
    /// server did not hold it, sent errors or was beyond the suite's cap.
    pub not_counted: Vec<String>,
    /// A group each, in their order.
    pub groups: Vec<GroupFigure>,
    /// The groups after the first against it, in their order.
    pub ratios: Vec<Ratio>,
}

/// A figure of a group.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GroupFigure {
    /// Geometric mean over the runs; times in nanoseconds. `null` where no run has the figure.
    pub mean: Option<f64>,
    /// Standard deviation of the runs as a share of the mean; `null` below two.
    pub spread_ratio: Option<f64>,
    /// Of each run, in their order; `null` where it has none or is left out.
    pub values: Vec<Option<f64>>,
    /// In some run the figure is no limit of the server: it would have carried more.
    pub at_least: bool,
}

/// A group's figure over that of the first group.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ratio {
    /// Of the geometric means; `null` where one is absent or zero.
    pub ratio: Option<f64>,
    /// 95 % interval of the ratio; `null` with fewer than three runs a side.
    pub interval: Option<[f64; 2]>,
    /// The same with 5 % shared among all ratios beside the headline; of a headline the same. Costs
    /// share 5 % of their own: those at the load of the peak, and those at the other loads.
    pub interval_of_all: Option<[f64; 2]>,
    /// How the interval was made.
    pub method: Option<Method>,
    /// Runs of the first group and of this one that have the figure; pairs twice.
    pub runs: [usize; 2],
    /// The smallest difference, as a ratio above 1, that such runs would have shown in four of
    /// five comparisons.
    pub detectable: Option<f64>,
    /// What may be said.
    pub claim: Claim,
}

/// How an interval was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Method {
    /// Student's t on the logarithms of the pairs' ratios.
    PairedT,
    /// Welch's t on the logarithms of the runs.
    Welch,
    /// The same statistics, with critical values from resampled runs or pairs.
    Bootstrap,
}

/// What may be said of a ratio.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Claim {
    /// The interval leaves 1 out: the groups differ.
    Differs,
    /// The interval holds 1.
    NotDetectable,
    /// The interval leaves 1 out by itself, but the headline does not differ, nor does any of the
    /// ratios beside it where they share the 5 %: one of them may lie so by chance.
    MayBeChance,
    /// Fewer than three runs a side: a ratio, and no claim.
    TooFewRuns,
    /// A server would have carried more than the figure says, and in the direction that matters.
    AtLeast,
    /// The figure is absent, zero or of invalid runs only.
    #[default]
    Absent,
}

impl Comparison {
    /// The rows of a figure: one, or one for each load point.
    pub fn rows(&self, figure: RatioFigure) -> impl Iterator<Item = &FigureRow> {
        self.figures.iter().filter(move |row| row.figure == figure)
    }

    /// The load at which costs are compared.
    pub fn load_of_costs(&self) -> Option<f64> {
        load_of_costs(&self.figures)
    }

    /// A condition fails.
    pub fn fails(&self) -> bool {
        self.gates.iter().any(|gate| gate.fails)
    }
}

/// The load at which costs are compared beside the headline: of those that count in all groups the
/// one at which these did most.
pub fn load_of_costs(rows: &[FigureRow]) -> Option<f64> {
    let done = |row: &FigureRow| -> Option<f64> {
        let means = row.groups.iter().map(|group| group.mean.map(f64::ln));
        means.sum::<Option<f64>>()
    };
    let achieved = rows.iter().filter(|row| row.figure == RatioFigure::AchievedOpsPerS);
    let counted = achieved.filter(|row| row.not_counted.is_empty());
    let known = counted.filter_map(|row| Some((row.load?, done(row)?)));
    known.max_by(|a, b| a.1.total_cmp(&b.1)).map(|(load, _)| load)
}
