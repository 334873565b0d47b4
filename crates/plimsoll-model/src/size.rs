//! `plimsoll size --json`, format 1: how big a server must be for a load. Facts only; the words are
//! made in `plimsoll-report`.

mod doubts;

use serde::{Deserialize, Serialize};

use crate::capacity::{Figure, Within};
use crate::event::Bound;
use crate::prices::Money;
use crate::units::Nanos;

pub use doubts::{Refusal, Unknown};

/// Version of the document.
pub const SIZING_FORMAT: u32 = 1;
/// Share of a resource that may be used, unless another is asked for.
pub const HEADROOM: f64 = 0.7;
/// Of one size of server, loads above so many times the highest measured one are refused.
pub const LOAD_MAX_RATIO: f64 = 2.0;

/// What a server is sized for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SizeAsked {
    /// The load.
    pub load_ops_per_s: f64,
    /// Limits of the response time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub within: Option<Within>,
    /// Share of a resource that the load may use.
    pub headroom_ratio: f64,
    /// Pause of a user between two requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub think: Option<Nanos>,
    /// What one disk or adapter can do, where the user knows it.
    pub stated: Ceilings,
}

/// What one disk or adapter can do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ceilings {
    /// Reads and writes per second of a disk.
    pub disk_transfers_per_s: Option<f64>,
    /// Bytes per second of a disk.
    pub disk_bytes_per_s: Option<f64>,
    /// Bytes per second and direction of an adapter.
    pub adapter_bytes_per_s: Option<f64>,
}

/// How big a server must be.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Sizing {
    /// Version of this format.
    pub format: u32,
    /// What was asked.
    pub asked: SizeAsked,
    /// What it rests on.
    pub measured: MeasuredServer,
    /// What servers carry at most: each size that was measured, and twice the largest.
    pub peaks: Vec<PredictedPeak>,
    /// Cores.
    pub processors: Option<Need>,
    /// Disks, by their transfers per second.
    pub disks_by_iops: Option<Need>,
    /// Disks, by their bytes per second.
    pub disks_by_bytes: Option<Need>,
    /// Network adapters, by bytes per second in the busier direction.
    pub adapters: Option<Need>,
    /// Bytes of memory.
    pub memory: Option<Need>,
    /// Whole servers like the largest one measured, where the load can be divided among them.
    pub servers: Option<Estimate>,
    /// Response time of a server of the size needed: its mean, and each figure that is limited.
    pub response: Vec<ResponseAt>,
    /// Users that the load stands for: load × (think time + mean response time).
    pub users: Option<f64>,
    /// What the servers cost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub money: Option<SizedMoney>,
    /// What the runs do not tell.
    pub unknown: Vec<Unknown>,
    /// Why nothing is said of the load; then there are no needs.
    pub refused: Option<Refusal>,
}

/// The server as it was measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct MeasuredServer {
    /// The bundles.
    pub runs: Vec<String>,
    /// Cores of each size of the server, rising: what it may use, or its quota.
    pub processors: Vec<f64>,
    /// Load points that were used.
    pub loads: usize,
    /// The highest throughput.
    pub highest_ops_per_s: f64,
    /// How busy its processors were at most; `null` where nobody watched them.
    pub busy_highest_ratio: Option<f64>,
}

/// A figure with its 95 % interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Estimate {
    /// The figure.
    pub value: f64,
    /// Low end.
    pub low: f64,
    /// High end; `null`: the figure is *at least* the value.
    pub high: Option<f64>,
}

impl Estimate {
    /// Each part times a factor above zero.
    #[must_use]
    pub fn times(self, factor: f64) -> Self {
        let Self { value, low, high } = self;
        Self { value: value * factor, low: low * factor, high: high.map(|high| high * factor) }
    }

    /// Without a high end.
    #[must_use]
    pub fn at_least(self) -> Self {
        Self { high: None, ..self }
    }

    /// In whole ones; what exceeds a whole one by rounding does not count.
    pub fn whole(self) -> f64 {
        const ROUNDING: f64 = 1e-6;
        (self.value - ROUNDING).ceil().max(1.0)
    }
}

/// How much of a resource the load needs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Need {
    /// How many, headroom included; `null` where nothing says what one can do.
    pub count: Option<Estimate>,
    /// What the load demands: cores, transfers/s, bytes/s or bytes.
    pub total: Estimate,
    /// Demand of one op at that load: nanoseconds, transfers or bytes; of memory absent.
    pub per_op: Option<Estimate>,
    /// What one can do, and how that is known.
    pub each: Option<Ceiling>,
    /// The law of the demand.
    pub law: Vec<Term>,
    /// The load by the highest one measured.
    pub load_ratio: f64,
}

/// What one of a resource can do per second.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Ceiling {
    /// In the unit of the need's total.
    pub value: f64,
    /// How it is known.
    pub basis: CeilingBasis,
}

/// How a ceiling is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CeilingBasis {
    /// A second has a second of processor time.
    Time,
    /// The user said it.
    Stated,
    /// The control group limits it.
    Limit,
    /// The link says its speed.
    LinkSpeed,
    /// Utilisation law: throughput over the share of the time in which it was busy.
    Utilisation,
}

/// A term of the law of a demand per op, D(x): all terms are added.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Term {
    /// Which.
    pub kind: TermKind,
    /// Its coefficient, in the unit of the demand.
    pub value: f64,
}

/// Kinds of terms. ρ is the utilisation of the processors, n their number, x the load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TermKind {
    /// a: of every op.
    Constant,
    /// w (1 − ρ): waking up, which ops save that find the server awake.
    WakeUps,
    /// b / x: what is done without any load, divided among the ops.
    Background,
    /// c x: contention, which rises with the load.
    Contention,
    /// k (n − 1): what each further processor costs every op.
    Processors,
}

/// What a server carries with its processors full.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PredictedPeak {
    /// Its cores.
    pub processors: f64,
    /// This size was measured.
    pub measured: bool,
    /// Ops per second.
    pub ops_per_s: Estimate,
    /// *At most*, where something else than processors may limit it earlier, or more of them may not
    /// bring their share.
    pub bound: PeakBound,
    /// It, by the highest load measured of this size; of another size of the nearest.
    pub load_ratio: f64,
}

/// How a predicted peak is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PeakBound {
    /// Within its interval.
    Exact,
    /// The server carries that at most.
    AtMost,
}

/// A figure of the response time at the load.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ResponseAt {
    /// Which.
    pub figure: Figure,
    /// In nanoseconds.
    pub ns: Estimate,
    /// What it must stay below, in nanoseconds.
    pub below_ns: Option<f64>,
    /// How busy the processors are.
    pub busy_ratio: f64,
    /// What it rests on.
    pub law: ResponseLaw,
}

/// What a response time rests on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ResponseLaw {
    /// The measured curve, between two loads.
    Measured,
    /// Queueing: r + q ρ^(√(2(n+1))−1) / (1 − ρ) for the mean; other figures in their measured ratio
    /// to it.
    Queue,
}

/// What the servers cost.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SizedMoney {
    /// The system of the price file.
    pub system: String,
    /// What one costs.
    pub one: Money,
    /// How many are needed.
    pub servers: f64,
    /// More may be needed.
    pub bound: Bound,
    /// What they cost.
    pub total: Money,
    /// For 1,000 ops/s.
    pub per_thousand_ops_per_s: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_ones_are_rounded_up_and_not_by_a_rounding_error() {
        let whole = |value| Estimate { value, low: value, high: None }.whole();
        assert_eq!([0.1, 1.0, 1.000_000_1, 1.01, 3.7].map(whole), [1.0, 1.0, 1.0, 2.0, 4.0]);
    }

    #[test]
    fn an_estimate_keeps_its_missing_end() {
        let estimate = Estimate { value: 2.0, low: 1.0, high: Some(3.0) };
        assert_eq!(estimate.times(2.0), Estimate { value: 4.0, low: 2.0, high: Some(6.0) });
        assert_eq!(estimate.at_least().times(2.0).high, None);
    }
}
