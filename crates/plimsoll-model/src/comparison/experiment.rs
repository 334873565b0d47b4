//! Results of an experiment for its factors: the cells of the grid, the effects of the levels, and
//! how certain each is. Analysis computes them; reports write the text.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::RatioFigure;
use crate::shape::Scalability;

/// An experiment over factors. A cell is a combination of levels and has a group of the comparison;
/// a block is a repeat of all cells.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Experiment {
    /// What was changed.
    pub factors: Vec<Factor>,
    /// The figure that it compares.
    pub response: Response,
    /// Groups of the comparison whose peak no run shows, so that `response` is another figure than
    /// the headline.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub peak_unknown: Vec<usize>,
    /// Repeats of the grid, complete or not.
    pub blocks: usize,
    /// The combinations of levels, the first of which the others are compared with.
    pub cells: Vec<Cell>,
    /// Levels against the first level of their factor.
    pub effects: Vec<Effect>,
    /// Does the effect of a factor depend on the others? `null` where that cannot be tested.
    pub interaction: Option<Interaction>,
    /// What is left of the runs' scatter without cells and blocks.
    pub residual: Option<Scatter>,
    /// How far settings made by hand differ from block to block, as the mean over a setting's runs;
    /// `null` without such factors.
    pub between_blocks: Option<Scatter>,
    /// Growth over a numeric factor.
    pub laws: Vec<Law>,
    /// The best cell against the first.
    pub best: Option<Best>,
}

/// Something of the server that was changed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Factor {
    /// What it is called.
    pub name: String,
    /// Unit of its levels' values.
    pub unit: Option<String>,
    /// Its levels; effects are relative to the first.
    pub levels: Vec<Level>,
    /// Who sets it, and how often.
    pub set: Setting,
}

/// A value that a factor takes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Level {
    /// What it is called.
    pub name: String,
    /// What reports call it, if that is the software of its target.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system: Option<String>,
    /// Its size, above zero; `null` where levels have none.
    pub value: Option<f64>,
}

/// Who sets a factor. How often it is set decides what its effect rests on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Setting {
    /// A program, anew before each run.
    #[default]
    ByProgram,
    /// A person, each level anew in each block.
    ByHand,
    /// Each level once for all its runs: its effect cannot be separated from anything else that
    /// changed.
    Once,
}

/// The figure that an experiment compares.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Response {
    /// The figure, one of the comparison's rows.
    pub figure: RatioFigure,
    /// Its load point; `null` of figures of the run.
    pub load: Option<f64>,
}

impl Default for Response {
    /// The headline.
    fn default() -> Self {
        Self { figure: RatioFigure::Peak, load: None }
    }
}

/// A combination of levels, and what it came to.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cell {
    /// For each factor the index of its level.
    pub levels: Vec<usize>,
    /// Index of its group in the comparison; `null` without a run.
    pub group: Option<usize>,
    /// Runs that have the figure.
    pub runs: usize,
    /// Geometric mean as it would be over all blocks; `null` without a run.
    pub mean: Option<f64>,
    /// 95 % interval of the mean relative to the other cells': blocks that are fast or slow as a
    /// whole do not widen it.
    pub interval: Option<[f64; 2]>,
    /// In some run the server would have carried more: the mean is a lower bound.
    pub at_least: bool,
    /// Mean over that of the first cell; `null` of bounds.
    pub ratio: Option<f64>,
    /// Repeats without a figure.
    pub missing: Vec<Missing>,
}

/// A repeat of a cell that has no figure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Missing {
    /// The repeat, from 0.
    pub block: usize,
    /// Why it has none.
    pub why: MissingWhy,
}

/// Why a repeat of a cell has no figure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum MissingWhy {
    /// The run was invalid, and so was the one that repeated it.
    Invalid {
        /// Names of the rules that were broken.
        rules: Vec<String>,
    },
    /// A command of the user's did not do its work.
    Hook(HookFailure),
    /// The target or the host could not be used.
    Unusable {
        /// The message of the run.
        message: String,
    },
    /// Nobody made the run: the experiment was ended before it.
    NotRun,
    /// The run has no such figure.
    NoFigure,
}

/// A command of an experiment that did not do its work.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HookFailure {
    /// The factor that it is of.
    pub factor: String,
    /// The level that it was to set, verify or take back.
    pub level: String,
    /// What it was for.
    pub hook: Hook,
    /// The command.
    pub command: String,
    /// How it ended.
    pub end: HookEnd,
    /// The end of what it printed; untrusted.
    pub output: String,
}

impl fmt::Display for HookFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { factor, level, command, .. } = self;
        let what = match self.hook {
            Hook::Set => "the command that sets",
            Hook::Verify => "the command that verifies",
            Hook::Undo => "the command that undoes",
        };
        write!(f, "{what} {factor} = {level} {} ({command})", self.end)?;
        if self.output.is_empty() { Ok(()) } else { write!(f, ":\n{}", self.output) }
    }
}

/// What a command of an experiment is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Hook {
    /// It sets a level.
    Set,
    /// It checks whether the level is set.
    Verify,
    /// It takes a level back.
    Undo,
}

/// How a command ended that did not do its work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HookEnd {
    /// With this exit code.
    Exit(i32),
    /// By this signal.
    Signal(i32),
    /// It had not ended after this many seconds.
    TimedOut(u64),
    /// It could not be started.
    NotStarted,
}

impl fmt::Display for HookEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exit(status) => write!(f, "ended with status {status}"),
            Self::Signal(signal) => write!(f, "was ended by signal {signal}"),
            Self::TimedOut(seconds) => write!(f, "had not ended after {seconds} s"),
            Self::NotStarted => f.write_str("could not be started"),
        }
    }
}

/// A level against the first level of its factor.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Effect {
    /// Index of the factor.
    pub factor: usize,
    /// Index of the level it is compared with.
    pub from: usize,
    /// Index of the level.
    pub to: usize,
    /// Factors and levels that were fixed for it. Empty: the mean over all combinations of the
    /// other factors that have both levels.
    pub at: Vec<AtLevel>,
    /// The combinations of the other factors that it is the mean of, where others lack a run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub over: Vec<Vec<AtLevel>>,
    /// Of geometric means.
    pub ratio: Option<f64>,
    /// Its 95 % interval; `null` where there is no basis for one.
    pub interval: Option<[f64; 2]>,
    /// The smallest difference, as a ratio above 1, that four of five such experiments would show.
    pub detectable: Option<f64>,
    /// The ratio over that of the levels' values: 1 is straight growth. `null` of times and of
    /// factors that are not numeric.
    pub efficiency: Option<f64>,
    /// The claim that the data support.
    pub claim: EffectClaim,
    /// What scatter the interval rests on.
    pub basis: Basis,
}

/// A factor fixed at a level.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AtLevel {
    /// Index of the factor.
    pub factor: usize,
    /// Index of its level.
    pub level: usize,
}

/// The claim that the data support about an effect.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EffectClaim {
    /// The interval leaves 1 out.
    Differs,
    /// The interval contains 1: the effect is no larger than its ends.
    Within,
    /// There is no basis for an interval: a ratio, and no claim.
    RatioOnly,
    /// The ratio is a lower bound: with the level the server would have carried more.
    AtLeast,
    /// The ratio is an upper bound: without the level the server would have carried more.
    AtMost,
    /// The server would have carried more with either.
    Open,
    /// No combination of the other factors has both levels.
    #[default]
    Absent,
}

/// What the interval of an effect rests on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Basis {
    /// The pooled residual of all runs.
    Residual,
    /// How settings made by hand scatter from block to block.
    BetweenBlocks,
    /// Both: a setting made by hand, at one level of factors that a program sets.
    Both,
    /// None: a level was set once.
    SetOnce,
    /// None: fewer than three repeats, or too many of them missing.
    TooFewRuns,
    /// None: bounds have no scatter of the server's.
    #[default]
    Bound,
}

/// One F test of all interactions.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Interaction {
    /// Mean square of the interactions over that of the scatter.
    pub f: f64,
    /// Degrees of freedom of both.
    pub degrees: [f64; 2],
    /// Share of experiments without interaction in which F is as large by chance. Where factors set
    /// by hand interact among themselves and with others, the two tests share the 5 %.
    pub p: f64,
    /// p is below 5 %.
    pub found: bool,
    /// The smallest ratio between two effects of a factor at two levels of another, above 1, that
    /// four of five such experiments would find.
    pub detectable: f64,
}

/// How far runs scatter.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scatter {
    /// One standard deviation, as a share of the mean.
    pub spread_ratio: f64,
    /// Degrees of freedom behind it.
    pub degrees: f64,
}

/// The universal scalability law over a numeric factor of four levels or more.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Law {
    /// Index of the factor.
    pub factor: usize,
    /// Factors and levels that were fixed; empty: means over all combinations of the others.
    pub at: Vec<AtLevel>,
    /// The smallest value of the factor, of which the law's N is a multiple.
    pub one: f64,
    /// The law, with N counted in multiples of `one`.
    pub fit: Scalability,
}

/// The cell with the best mean against the first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Best {
    /// Index of the cell.
    pub cell: usize,
    /// Its mean over that of the first cell.
    pub ratio: f64,
    /// 95 % interval of the ratio, simultaneous over all cells (Bonferroni); `null` without a
    /// basis.
    pub interval: Option<[f64; 2]>,
    /// The claim that the data support.
    pub claim: BestClaim,
    /// Both cells run again, which no choice among cells favours.
    #[serde(default)]
    pub again: Option<RunAgain>,
}

/// Runs of the first and the best cell after the choice of the best.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunAgain {
    /// Mean of the best cell over that of the first.
    pub ratio: f64,
    /// 95 % interval of the ratio; `null` without a basis.
    pub interval: Option<[f64; 2]>,
    /// Runs of each.
    pub runs: u32,
}

/// The claim that the data support about the best cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BestClaim {
    /// It is the first cell.
    First,
    /// The simultaneous interval leaves 1 out.
    Better,
    /// The interval contains 1, or there is none: run both again.
    RunAgain,
}

impl Factor {
    /// Its levels' values, where all have one.
    pub fn values(&self) -> Option<Vec<f64>> {
        self.levels.iter().map(|level| level.value.filter(|value| *value > 0.0)).collect()
    }
}
