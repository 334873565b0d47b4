//! `plimsoll size --json`, format 1: how big a server must be for a load. Facts only;
//! `plimsoll-report` writes the text.

use serde::{Deserialize, Serialize};

use crate::capacity::{Figure, Within};
use crate::event::Bound;
use crate::limit::LimitKind;
use crate::prices::Money;
use crate::units::Nanos;

/// Version of the document.
pub const SIZING_FORMAT: u32 = 1;
/// Share of a resource that may be used, unless another is requested.
pub const HEADROOM: f64 = 0.7;
/// For one size of server, loads above this many times the highest measured one are refused.
pub const LOAD_MAX_RATIO: f64 = 2.0;

/// What a server is sized for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SizeRequest {
    /// The load; of users or bytes per second what they come to.
    pub load_ops_per_s: f64,
    /// The users that the load was given in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub users: Option<f64>,
    /// How many users one client of the suite stands for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub users_per_client: Option<f64>,
    /// The application bytes per second that the load was given in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load_bytes_per_s: Option<f64>,
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
    /// Memory of the server, for which the number of disks is wanted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<f64>,
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
    /// The request.
    pub asked: SizeRequest,
    /// What it rests on.
    pub measured: MeasuredServer,
    /// The most that servers can handle: each size that was measured, and twice the largest.
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
    /// Memory in place of disks; absent where the access pattern is not ours.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub page_cache: Option<PageCacheSize>,
    /// Whole servers like the largest one measured, where the load can be divided among them.
    pub servers: Option<Estimate>,
    /// Response time of a server of the size needed: its mean, and each figure that is limited.
    pub response: Vec<ResponseAt>,
    /// Users that the load represents: load × (think time + mean response time). Of clients with a
    /// think time of their own, which is divided among the ops after it, × users of a client.
    pub users: Option<f64>,
    /// What the servers cost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub money: Option<SizedMoney>,
    /// What the runs do not show.
    pub unknown: Vec<Unknown>,
    /// Why the load is refused; then there are no needs.
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
    /// High end; `null`: the figure is *at least* the low end.
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
    /// How many, headroom included; `null` where the ceiling of one is unknown.
    pub count: Option<Estimate>,
    /// What the load demands: cores, transfers/s, bytes/s or bytes.
    pub total: Estimate,
    /// Demand of one op at that load: nanoseconds, transfers or bytes; of memory absent.
    pub per_op: Option<Estimate>,
    /// What one can do, and the source of that.
    pub each: Option<Ceiling>,
    /// The law of the demand.
    pub law: Vec<Term>,
    /// The load by the highest one measured.
    pub load_ratio: f64,
}

/// How much memory saves how many disks, for the data set that was measured. Sizes are memory for
/// files, without the server's own.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct PageCacheSize {
    /// Disks of the measured server.
    pub disks: f64,
    /// What one may transfer, headroom included; `null` where its capacity is unknown.
    pub disk_bytes_per_s: Option<f64>,
    /// From this size on they are enough for the load; `null` where the capacity of a disk is
    /// unknown, or where writes alone exceed it.
    pub enough_bytes: Option<f64>,
    /// From this size on nothing is read from disks.
    pub full_bytes: f64,
    /// With the requested memory.
    pub with: Option<DisksWithMemory>,
}

/// What a server with a size of memory needs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct DisksWithMemory {
    /// What is left for files.
    pub bytes: f64,
    /// Bytes read from disks per byte that is sent.
    pub miss_ratio: f64,
    /// Disks, headroom included; `null` where the capacity of one is unknown.
    pub disks: Option<f64>,
}

/// What one of a resource can do per second.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Ceiling {
    /// In the unit of the need's total.
    pub value: f64,
    /// Its source.
    pub basis: CeilingBasis,
}

/// Source of a ceiling.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CeilingBasis {
    /// A second has a second of processor time.
    Time,
    /// Given by the user.
    Stated,
    /// The control group limits it.
    Limit,
    /// The link reports its speed.
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

/// What a server can handle with its processors full.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PredictedPeak {
    /// Its cores.
    pub processors: f64,
    /// This size was measured.
    pub measured: bool,
    /// Ops per second.
    pub ops_per_s: Estimate,
    /// *At most*, where something else than processors may limit it earlier, or more of them may
    /// not bring their share.
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
    /// The server can handle at most that.
    AtMost,
    /// Its processors carry that at least: an op may cost less where the server no longer sleeps.
    AtLeast,
    /// Neither is known.
    Open,
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
    /// Queueing: r + q ρ^(√(2(n+1))−1) / (1 − ρ) for the mean; other figures in their measured
    /// ratio to it.
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

/// What the runs do not show.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[expect(missing_docs, reason = "a field is the figure of its name")]
pub enum Unknown {
    /// A lock or a pool that limits only loads above the measured ones. Always there.
    HigherLoads { highest_ops_per_s: f64 },
    /// This load was limited, and not by a resource that more hardware extends.
    HeldBack { limit: LimitKind, at_ops_per_s: f64 },
    /// At the lowest load an op takes longer than its processor and disk times explain: it waits
    /// for something of unknown capacity.
    Waits { response_ns: f64, explained_ns: f64 },
    /// The response time grows more than the processors' use explains: another queue.
    Queue { from_ns: f64, to_ns: f64, explained_ns: f64 },
    /// The server was never so busy that it no longer slept between ops, which then cost less.
    Asleep { busy_ratio: f64 },
    /// The busiest thread did so much of the server's work that these cores cannot all be used.
    FewThreads { share_ratio: f64, cores: f64 },
    /// The processors were never busy enough to predict where they are full.
    LittleUsed { busy_ratio: f64 },
    /// Nobody watched the server's processors.
    ProcessorsNotWatched,
    /// More processors than were measured: that each brings its share is assumed.
    MoreProcessors { measured: f64 },
    /// Too few loads to see how the demand changes with the load.
    FewLoads { loads: usize },
    /// The disks did too little to show what one can do.
    DiskIdle { busy_ratio: f64 },
    /// The link does not report its speed.
    AdapterSpeed,
    /// Server and generator share a host: bytes are those of its loopback interface.
    SharedHost,
    /// How many disks the requested memory needs: no load point has a predicted miss ratio.
    AccessPattern,
    /// A limit on errors: nothing predicts them.
    Errors,
    /// Times within replies or goodput were limited, and no law predicts them.
    Streams,
    /// A run is not valid as a whole; its valid load points were used.
    InvalidRun { bundle: String, rule: String },
    /// The server was throttled by its quota within periods: response times at higher use come in
    /// steps that the law does not have.
    Throttled { cores: f64 },
}

/// Why a load is refused.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[expect(missing_docs, reason = "a field is the figure of its name")]
pub enum Refusal {
    /// No load point is valid and has throughput.
    NothingMeasured,
    /// The runs are not of the same suite.
    Different { first: String, other: String },
    /// The load is too far above what was measured.
    TooFar { highest_ops_per_s: f64 },
    /// The server was limited below that load by something that no hardware extends.
    HeldBack { limit: LimitKind, at_ops_per_s: f64 },
    /// A limit is not kept even by an idle server.
    TooSlow { figure: Figure, idle_ns: f64, below_ns: f64 },
    /// Each further processor costs more than it brings before the load is reached.
    NoNumber,
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
