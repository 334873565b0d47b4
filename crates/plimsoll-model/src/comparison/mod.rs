//! Groups of runs side by side, format 1: what `plimsoll compare --json` prints, and the
//! `versus.json` of `plimsoll versus`. A run is one observation, its load points are not.

pub mod experiment;

use serde::{Deserialize, Serialize};

use crate::condition::{Condition, ConditionError, ConditionFigure, LimitUnit, figure_named};
use crate::cost::CostFigure;
use crate::gate::GateState;
use crate::prices::PriceComparison;
use crate::result::Axis;
use experiment::Experiment;

/// Version of the document.
pub const COMPARISON_FORMAT: u32 = 1;
/// Runs a group needs for more than a ratio.
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
    /// Why the groups should not be compared, where the user forced it (`--force`). If not empty,
    /// nothing below is a finding about servers.
    pub forced: Vec<String>,
    /// What differs between the groups: settings, software, hosts.
    pub differences: Vec<Difference>,
    /// The figures, those of the whole run first.
    pub figures: Vec<FigureRow>,
    /// Throughput and response time over load: a curve of each group, in their order, then the
    /// published ones that can be drawn with them.
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
    /// What it is called in files: its target, its directory, or the name that the user gave it.
    pub label: String,
    /// What reports call it: its software and version where that distinguishes the groups, else its
    /// label.
    #[serde(default)]
    pub system: String,
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
    /// Its value in each group; where a group has several, all of them.
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
    /// server did not sustain it, sent errors or was beyond the suite's cap.
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
    /// The same with 5 % shared among all ratios except the headline; the same for a headline.
    /// Costs share 5 % of their own: those at the load of the peak, and those at the other loads.
    pub interval_of_all: Option<[f64; 2]>,
    /// How the interval was made.
    pub method: Option<Method>,
    /// Runs of the first group and of this one that have the figure; pairs twice.
    pub runs: [usize; 2],
    /// The smallest difference, as a ratio above 1, that such runs would have shown in four of
    /// five comparisons.
    pub detectable: Option<f64>,
    /// The claim that the data support.
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

/// The claim that the data support about a ratio.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Claim {
    /// The interval leaves 1 out: the groups differ.
    Differs,
    /// The interval contains 1.
    NotDetectable,
    /// The interval alone excludes 1, but the headline does not differ, nor does any other ratio
    /// where they share the 5 %: one of them may differ by chance.
    MayBeChance,
    /// Fewer than three runs a side: a ratio, and no claim.
    TooFewRuns,
    /// A server can handle more than the figure, in the direction that matters.
    AtLeast,
    /// The figure is absent, zero or of invalid runs only.
    #[default]
    Absent,
}

impl Group {
    /// What reports call it.
    pub fn name(&self) -> &str {
        if self.system.is_empty() { &self.label } else { &self.system }
    }
}

impl Comparison {
    /// What reports call the group, or the published curve, with this label.
    pub fn name_of<'a>(&'a self, label: &'a str) -> &'a str {
        self.groups.iter().find(|group| group.label == label).map_or(label, Group::name)
    }

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

/// The load at which costs are compared with the headline: of the loads that count in all groups,
/// the one with the most work done.
pub fn load_of_costs(rows: &[FigureRow]) -> Option<f64> {
    let done = |row: &FigureRow| -> Option<f64> {
        row.groups.iter().map(|group| group.mean.map(f64::ln)).sum::<Option<f64>>()
    };
    let achieved = rows.iter().filter(|row| row.figure == RatioFigure::AchievedOpsPerS);
    let counted = achieved.filter(|row| row.not_counted.is_empty());
    let measured = counted.filter_map(|row| Some((row.load?, done(row)?)));
    measured.max_by(|a, b| a.1.total_cmp(&b.1)).map(|(load, _)| load)
}

/// A curve over load.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Curve {
    /// Label of the group, or name of the published system.
    pub label: String,
    /// Where a published curve is from; absent of a group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub published: Option<PublishedSource>,
    /// By load.
    pub points: Vec<CurvePoint>,
}

/// Where a published curve is from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublishedSource {
    /// As typed after `published:`.
    pub name: String,
    /// Year of the tests.
    pub year: u32,
    /// Who published it, and when.
    pub source: String,
}

/// A load point of a curve. A figure that no run has, or that the source does not print, is absent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CurvePoint {
    /// On the axis of the comparison.
    pub load: f64,
    /// In bytes per second where the headline counts bytes, else in ops per second.
    pub throughput: Option<CurveFigure>,
    /// Mean response time.
    pub response_mean_ns: Option<CurveFigure>,
    /// 99th percentile of the response time.
    pub response_p99_ns: Option<CurveFigure>,
    /// The point was left out of the result of some run: the server did not sustain the load, sent
    /// errors or was beyond the suite's cap.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub not_counted: bool,
}

/// A figure at a load.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CurveFigure {
    /// Geometric mean over the runs, or the printed value.
    pub value: f64,
    /// Lowest and highest of the runs; absent with one run, and of published figures.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub range: Option<[f64; 2]>,
}

/// A condition under which a comparison fails. Its limit is the ratio to the first group.
pub type RatioGate = Condition<RatioFigure>;

/// A figure that groups are compared by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum RatioFigure {
    /// The headline of the run.
    Peak,
    /// Highest rate of any point, where it is not the headline.
    PeakOpsPerS,
    /// Score of suites that have one.
    Score,
    /// The capacity that was searched.
    Capacity,
    /// Overall response time from the origin.
    OverallResponse,
    /// Throughput of a load point.
    AchievedOpsPerS,
    /// Median response time of a load point.
    P50,
    /// 90th percentile.
    P90,
    /// 95th percentile.
    P95,
    /// 99th percentile.
    P99,
    /// 90th percentile of the time to first output.
    FirstOutputP90,
    /// 90th percentile of the time per output token, vLLM's definition.
    TpotP90,
    /// Output tokens of a load point per second.
    TokensPerS,
    /// The part of a load point's ops that were good ones.
    Goodput,
    /// What the server spent on a load point.
    Cost(CostFigure),
}

/// A figure of speed or time, and none of cost.
const SPEED: [RatioFigure; 14] = [
    RatioFigure::Peak,
    RatioFigure::PeakOpsPerS,
    RatioFigure::Score,
    RatioFigure::Capacity,
    RatioFigure::OverallResponse,
    RatioFigure::AchievedOpsPerS,
    RatioFigure::P50,
    RatioFigure::P90,
    RatioFigure::P95,
    RatioFigure::P99,
    RatioFigure::FirstOutputP90,
    RatioFigure::TpotP90,
    RatioFigure::TokensPerS,
    RatioFigure::Goodput,
];

impl RatioFigure {
    /// Those of the run, then those of load points, costs last.
    pub fn all() -> impl Iterator<Item = Self> {
        SPEED.into_iter().chain(CostFigure::ALL.map(Self::Cost))
    }

    /// As files and conditions write it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Peak => "peak",
            Self::PeakOpsPerS => "peak_ops_per_s",
            Self::Score => "score",
            Self::Capacity => "capacity",
            Self::OverallResponse => "overall_response",
            Self::AchievedOpsPerS => "achieved_ops_per_s",
            Self::P50 => "p50",
            Self::P90 => "p90",
            Self::P95 => "p95",
            Self::P99 => "p99",
            Self::FirstOutputP90 => "first_output.p90",
            Self::TpotP90 => "tpot.p90",
            Self::TokensPerS => "tokens_per_s",
            Self::Goodput => "goodput",
            Self::Cost(figure) => figure.as_str(),
        }
    }

    /// It is the headline of a run; the others supplement it.
    pub const fn is_headline(self) -> bool {
        matches!(self, Self::Peak | Self::Score | Self::Capacity)
    }

    /// It is what the server spent: less is better.
    pub const fn is_cost(self) -> bool {
        matches!(self, Self::Cost(_))
    }

    /// Only suites whose replies are streams of output have it.
    pub const fn is_of_streams(self) -> bool {
        matches!(self, Self::FirstOutputP90 | Self::TpotP90 | Self::TokensPerS)
    }

    /// It is a time: less is better.
    pub const fn is_time(self) -> bool {
        let of_streams = matches!(self, Self::FirstOutputP90 | Self::TpotP90);
        let of_response = matches!(self, Self::P50 | Self::P90 | Self::P95 | Self::P99);
        of_streams || of_response || matches!(self, Self::OverallResponse)
    }

    /// Less of it is better.
    pub const fn is_less_better(self) -> bool {
        self.is_time() || self.is_cost()
    }
}

impl ConditionFigure for RatioFigure {
    const OF: &'static str = "a comparison";
    const EXAMPLES: &'static str =
        "'p99 > 1.05x', 'peak < 0.97x', 'p50@4000 > 1.1x' or 'cpu_per_op > 1.05x'";

    fn all_named() -> Vec<(String, Self)> {
        Self::all().map(|figure| (figure.as_str().to_owned(), figure)).collect()
    }

    fn unit(&self) -> LimitUnit {
        LimitUnit::Ratio
    }

    fn is_of_point(&self) -> bool {
        let of_run =
            [Self::Peak, Self::PeakOpsPerS, Self::Score, Self::Capacity, Self::OverallResponse];
        !of_run.contains(self)
    }
}

impl From<RatioFigure> for String {
    fn from(figure: RatioFigure) -> Self {
        figure.as_str().to_owned()
    }
}

impl TryFrom<String> for RatioFigure {
    type Error = ConditionError;

    fn try_from(name: String) -> Result<Self, ConditionError> {
        figure_named(&name)
    }
}

/// What became of a condition in one of the groups.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RatioGateResult {
    /// The condition, as written.
    pub expr: RatioGate,
    /// Label of the group that was compared with the first.
    pub group: String,
    /// What it came to.
    pub state: GateState,
    /// The comparison fails because of it.
    pub fails: bool,
    /// The ratio; `null` where there is none.
    pub ratio: Option<f64>,
    /// Its interval; `null` with fewer than three runs a side.
    pub interval: Option<[f64; 2]>,
    /// The load point it is of; `null` for figures of the run.
    pub load: Option<f64>,
}
