//! What a sizing cannot know, and when it refuses.

use serde::Serialize;

use crate::capacity::Figure;
use crate::limit::LimitKind;

/// What the runs do not tell.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[expect(missing_docs, reason = "a field is the figure of its name")]
pub enum Unknown {
    /// A lock or a pool that limits only loads above the measured ones. Always there.
    HigherLoads { highest_ops_per_s: f64 },
    /// This load was held back, and not by a resource that more hardware extends.
    HeldBack { limit: LimitKind, at_ops_per_s: f64 },
    /// At the lowest load an op takes longer than its processor and disk times explain: it waits for
    /// something of unknown capacity.
    Waits { response_ns: f64, explained_ns: f64 },
    /// The response time grows more than the processors' use explains: another queue.
    Queue { from_ns: f64, to_ns: f64, explained_ns: f64 },
    /// The processors were never busy enough to predict where they are full.
    LittleUsed { busy_ratio: f64 },
    /// Nobody watched the server's processors.
    ProcessorsNotWatched,
    /// More processors than were measured: that each brings its share is assumed.
    MoreProcessors { measured: f64 },
    /// Too few loads to see how the demand changes with the load.
    FewLoads { loads: usize },
    /// Of these disks: too little was done to know what one can do.
    DiskIdle { busy_ratio: f64 },
    /// The link does not say how fast it is.
    AdapterSpeed,
    /// Server and generator share a host: bytes are those of its loopback interface.
    SharedHost,
    /// A limit on errors: nothing predicts them.
    Errors,
    /// Times within replies or goodput were limited, and no law predicts them.
    Streams,
    /// A run is not valid as a whole; its valid load points were used.
    InvalidRun { bundle: String, rule: String },
    /// The server was held back by its quota within periods: response times at higher use come in
    /// steps that the law does not have.
    Throttled { cores: f64 },
}

/// Why nothing is said of a load.
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
    /// The server was held back below that load by what no hardware extends.
    HeldBack { limit: LimitKind, at_ops_per_s: f64 },
    /// A limit is not kept even by an idle server.
    TooSlow { figure: Figure, idle_ns: f64, below_ns: f64 },
    /// Each further processor costs more than it brings before the load is reached.
    NoNumber,
}
