//! What held a load point back: a resource with its place and evidence, or why none is named. The
//! words are made in `text`, from the facts.

mod facts;
mod text;

use serde::{Deserialize, Serialize};

use crate::core_user::CoreUser;
use crate::named::named;

pub use facts::{DiskRate, EarlierService, LimitFacts, LoadShape, NearlyFull, ServerCores, Way};

/// What held a load point back. Never absent: *not saturated* is [`LimitKind::None`]. In JSON with
/// the text that [`std::fmt::Display`] makes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(into = "text::LimitJson", from = "text::LimitJson")]
pub struct Limit {
    /// Which kind of thing.
    pub kind: LimitKind,
    /// Where: `core 1`, `vda`, `veth0`, `service threads`; `None` where the kind says it all.
    pub place: Option<String>,
    /// What its text is made of.
    pub facts: LimitFacts,
    /// The figures it rests on.
    pub evidence: Vec<Evidence>,
    /// What held it back as much, at the same load.
    pub also: Vec<Limit>,
    /// Of the suite's cap: the resource that was full behind it.
    pub behind: Option<Box<Limit>>,
    /// Who else had the server's cores, where that is a part of it.
    pub others: Option<OtherPrograms>,
    /// There is no other load: a higher one might bring more.
    pub only_load: bool,
}

impl Limit {
    /// The limit that facts make, with the figures that show it.
    pub fn new(facts: LimitFacts, evidence: Vec<Evidence>) -> Self {
        Self { kind: facts.kind(), place: facts.place(), facts, evidence, ..Self::default() }
    }
}

/// Programs other than the server on the server's cores.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OtherPrograms {
    /// Their share of the time of these cores.
    pub cores_ratio: f64,
    /// The one that used most CPU time, of those that may run there; absent where none explains
    /// that share.
    pub foremost: Option<CoreUser>,
}

/// A stretch of the ladder, by rising load, and what held it back.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LimitSpan {
    /// The lowest load of the stretch, on the ladder's axis.
    pub from: f64,
    /// As at that load, without its evidence.
    pub limit: Limit,
}

named! {
    /// Kinds of limits.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
    pub enum LimitKind {
        /// All cores the server may use.
        Processor = "processor",
        /// One core: the only one the server may use, or the one of a busy thread.
        Core = "core",
        /// CPU time that a control group is allowed.
        Quota = "quota",
        /// A disk, or the rate it is held to.
        Disk = "disk",
        /// A link, or the rate it is held to.
        Network = "network",
        /// Memory: what does not fit is read again.
        Memory = "memory",
        /// Threads, processes or connections that serve: all at work while the hardware is idle.
        Pool = "pool",
        /// A lock in the server: its threads wait for each other while the hardware is idle.
        Lock = "lock",
        /// The batch of a server of language models: all its places are taken.
        Batch = "batch",
        /// The memory of such a server for the tokens of requests under way.
        KvCache = "kv_cache",
        /// A GPU.
        Gpu = "gpu",
        /// The hypervisor kept the server's processors.
        Hypervisor = "hypervisor",
        /// The clients: more of them, or shorter think times, would bring more.
        Clients = "clients",
        /// The generator.
        Generator = "generator",
        /// The suite's cap on response time.
        Cap = "cap",
        /// The point was not held back: it is not saturated.
        None = "none",
        /// It was held back, and by what is not known.
        #[default]
        Unknown = "unknown",
    }
}

impl LimitKind {
    /// It is a resource of the server or its host.
    pub const fn is_resource(self) -> bool {
        !matches!(self, Self::Clients | Self::Generator | Self::Cap | Self::None | Self::Unknown)
    }
}

/// One figure that a limit rests on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Evidence {
    /// Name of the resource, as in `points[].resources`, or of a figure of the load point.
    pub name: String,
    /// Mean over the window.
    pub value: f64,
    /// Its unit.
    pub unit: String,
    /// What it cannot exceed, where that is known.
    pub ceiling: Option<f64>,
    /// The same at the lowest load, where there is a lower one.
    pub low_load_value: Option<f64>,
}
