//! What an agent and a run report. The journal is a list of these, one JSON object a line.
//!
//! The engine's only output. Progress display, journal and live view listen; nothing else prints.

mod agent_point;
mod asked;
mod cut_off;
mod resources;
mod signs;
mod started;
mod times;
mod totals;

use serde::{Deserialize, Serialize};

use crate::assignment::{Assignment, Load, Pacing, PointId};
use crate::method::Parameter;
use crate::nonconformity::Nonconformities;
use crate::outcome::ErrorSample;
use crate::server_profile::ServerProfile;
use crate::units::Nanos;

use crate::consumers::HostWork;
pub use crate::core_user::{CoreUser, CoreUserKind};
use crate::named::named;
pub use agent_point::{AgentPoint, ClockOffset};
pub use asked::{AgentsAsked, Asked, InARow, LoadFileAsked, ServerLimits};
pub use cut_off::CutOff;
pub use resources::{ResourceUse, WorkerHealth};
pub use signs::{CoarseTimes, PAUSE_MIN, PartWaits, Pause, Signs, TICK_GRID, new_coarse_histogram};
pub use started::RunStarted;
pub use times::{
    HISTOGRAM_DIGITS, HISTOGRAM_NS_MAX, OpTimes, StreamTimes, TimeKind, Times, add_times,
    growing_times, new_times,
};
pub use totals::{
    GenerationCounts, OpCounts, SecondRecord, SessionCounters, TICK, TICKS_MAX, TargetTotals,
    UnexpectedCount, WorkerTotals,
};

/// Version of the journal's records.
pub const JOURNAL_FORMAT: u32 = 1;

/// From an agent while it works on a load point.
#[derive(Clone, Debug)]
pub enum AgentEvent {
    /// All workers are ready; the point's clock starts now.
    Started {
        /// Nanoseconds since the Unix epoch.
        at_unix_ns: u64,
    },
    /// One second of one worker.
    Interval(Box<Interval>),
    /// A failure worth showing; at most a few per class and point.
    ErrorSample(ErrorSample),
    /// A client gave up and left the point.
    ClientLost {
        /// Which client.
        client: u32,
        /// Why.
        reason: String,
        /// When, from the start of the point.
        at: Nanos,
    },
    /// One worker has drained; its totals.
    WorkerFinished(Box<WorkerTotals>),
    /// A worker panicked: a bug. The point is invalid.
    WorkerPanicked {
        /// The panic's message.
        message: String,
    },
}

named! {
    /// Part of a load point.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
    pub enum Phase {
        /// Before the window; not counted.
        #[default]
        WarmUp = "warm_up",
        /// The window.
        Measure = "measure",
        /// After the window: the load may go on for a while, not counted, and ops that were due in
        /// the window may still finish.
        Drain = "drain",
    }
}

/// What one worker saw in one second (or the part of it that a phase fills).
#[derive(Clone, Debug)]
pub struct Interval {
    /// Worker number.
    pub worker: u32,
    /// Start, from the start of the point.
    pub start: Nanos,
    /// End, from the start of the point.
    pub end: Nanos,
    /// Ops that finished in it, and in which second and phase.
    pub record: SecondRecord,
    /// Times of finished ops by op kind: in the measure and drain phases only ops that were *due*
    /// in the window, in warm-up all. Index is the [`crate::outcome::OpKind`].
    pub ops: Vec<OpTimes>,
    /// The worker's own health.
    pub health: WorkerHealth,
}

/// What a headline figure says of the server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Bound {
    /// The server's own limit was seen.
    #[default]
    Exact,
    /// The server carried this; where it ends was not reached (the generator, the clients, the
    /// room for files or the time was the limit).
    AtLeast,
}

/// A line of `journal.jsonl`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case", deny_unknown_fields)]
pub enum JournalRecord {
    /// First line.
    RunStarted(RunStarted),
    /// The run went on after an interruption.
    Resumed {
        /// Nanoseconds since the Unix epoch.
        at_unix_ns: u64,
        /// Version of the program that resumed.
        version: String,
        /// That program was built with debug assertions.
        #[serde(default)]
        debug_build: bool,
    },
    /// Set-up found replies that differ from their specification and mean the same.
    SetupNonconformities {
        /// Which, since the last of these records.
        seen: Nonconformities,
    },
    /// A load point begins. A point without its `point_finished` did not happen.
    PointStarted {
        /// What was asked for.
        assignment: Assignment,
        /// Nanoseconds since the Unix epoch.
        at_unix_ns: u64,
    },
    /// A failure sample of the point that runs.
    ErrorSample {
        /// Which point.
        point: PointId,
        /// The sample.
        sample: ErrorSample,
    },
    /// A client left.
    ClientLost {
        /// Which point.
        point: PointId,
        /// Which client.
        client: u32,
        /// Why.
        reason: String,
    },
    /// An agent was lost during a load point, which did not happen.
    AgentLost {
        /// Which point.
        point: PointId,
        /// As the user named the agent.
        agent: String,
        /// Name of its host.
        host: String,
        /// Why, for a person.
        reason: String,
    },
    /// A load point is complete and its interval logs are on disk.
    PointFinished(Box<PointRecord>),
    /// The search for the peak ended.
    PeakFound {
        /// The peak, on the ladder's axis.
        peak: f64,
        /// How it was found, for a person.
        how: String,
        /// Whether the server's own limit was seen.
        #[serde(default)]
        bound: Bound,
        /// What was the limit instead, where no step of the search shows it, for a person.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        held_back: Option<String>,
    },
    /// The search has given the ladder; what depends on the highest load is settled now.
    LadderPlanned {
        /// Loads of the ladder.
        loads: Vec<f64>,
        /// Every parameter that departs from the published method, instead of those of the start.
        departures: Vec<String>,
        /// Every parameter beside the method's, instead of those of the start.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        method: Vec<Parameter>,
    },
    /// The search for a capacity ended. The answer follows from its load points.
    CapacitySearched {
        /// What it came to, for a person.
        how: String,
        /// Every parameter that departs from the published method, instead of those of the start.
        departures: Vec<String>,
        /// Every parameter beside the method's, instead of those of the start.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        method: Vec<Parameter>,
    },
    /// The server was profiled; the stacks are on disk.
    ServerProfiled(Box<ServerProfile>),
    /// The run was interrupted (Ctrl-C); what is finished stays usable.
    Interrupted {
        /// Nanoseconds since the Unix epoch.
        at_unix_ns: u64,
    },
    /// The run cannot go on (the target died, the disk is full).
    Aborted {
        /// Nanoseconds since the Unix epoch.
        at_unix_ns: u64,
        /// Why, for a person.
        reason: String,
    },
    /// Last line of a complete run.
    RunFinished {
        /// Nanoseconds since the Unix epoch.
        at_unix_ns: u64,
    },
}

/// A finished load point: everything exact that is not a histogram.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PointRecord {
    /// Which point.
    pub point: PointId,
    /// The load asked for.
    pub load: Load,
    /// Pacing the workers used.
    pub pacing: Pacing,
    /// Start of the point, nanoseconds since the Unix epoch.
    pub started_unix_ns: u64,
    /// Length of the warm-up that was held.
    pub warm_up_ns: Nanos,
    /// Length of the window that was measured.
    pub measured_ns: Nanos,
    /// Wall clock minus monotonic clock moved by this much during the point.
    pub clock_step_ns: i64,
    /// Sums over workers.
    pub totals: WorkerTotals,
    /// Sums over workers per second and phase.
    pub seconds: Vec<SecondRecord>,
    /// Worker health, a list of intervals per worker.
    pub workers: Vec<Vec<WorkerHealth>>,
    /// CPU time of the whole generator process (monitors included) in the window.
    pub process_cpu_ns: u64,
    /// CPU time of the monitors in the window.
    pub monitor_cpu_ns: u64,
    /// A worker panicked; the message.
    pub panic: Option<String>,
    /// The point was ended before its time; why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_early: Option<String>,
    /// What the monitors saw of hosts and processes in the window.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<ResourceUse>,
    /// Who else used the workers' cores in the window, the largest first; `None` when nobody
    /// looked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub core_users: Option<Vec<CoreUser>>,
    /// Who else may run on the server's cores and used CPU time in the window, the largest first;
    /// `None` when nobody looked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_core_users: Option<Vec<CoreUser>>,
    /// Where the processor time of each host went whose processes could be read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub host_work: Vec<HostWork>,
    /// How many ops the window was asked to have, where that was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ops: Option<u64>,
    /// Size of the data on all servers that the ops chose from; `None` where nobody knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data_set_bytes: Option<u64>,
    /// The agents, in the order of their workers; empty where this program made the load alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub agents: Vec<AgentPoint>,
}
