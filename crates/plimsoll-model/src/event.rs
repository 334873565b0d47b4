//! What an agent and a run report. The journal is a list of these, one JSON object a line.
//!
//! The engine's only output. Progress display, journal and live view listen; nothing else prints.

mod options;
mod session_counts;
mod signs;
mod times;
mod totals;

use serde::{Deserialize, Serialize};

use crate::assignment::{Assignment, Load, Pacing, PointId};
use crate::consumers::{HostWork, ServerProfile};
use crate::load_shape::{LoadPhase, PhaseKind};
use crate::method::Parameter;
use crate::named::named;
use crate::nonconformity::Nonconformities;
use crate::outcome::ErrorSample;
use crate::page_cache::AccessPattern;
use crate::units::Nanos;

pub use crate::consumers::{CoreUser, CoreUserKind};
pub use crate::finding::{LostSign, ServerLost};
pub use options::{AgentOptions, InARow, RequestedLoadFile, RunOptions, RunStarted, ServerLimits};
pub use session_counts::{GenerationCounts, JourneyCounts, PageLimits};
pub use signs::{CoarseTimes, PAUSE_MIN, PartWaits, Pause, Signs, TICK_GRID, new_coarse_histogram};
pub use times::{
    HISTOGRAM_DIGITS, HISTOGRAM_NS_MAX, OpTimes, StreamTimes, TimeKind, Times, add_times,
    growing_times, new_times,
};
pub use totals::{
    CutOff, OpCounts, SecondRecord, SessionCounters, SliceCounts, TICK, TICKS_MAX, TargetTotals,
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
    /// One worker has drained; its totals of a window, all of which follow each other.
    WorkerFinished {
        /// Which window of the load point, from 0.
        window: usize,
        /// Its totals.
        totals: Box<WorkerTotals>,
    },
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
    /// Window of the load point, from 0. After its end those of its ops that ended late follow.
    pub window: usize,
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

/// What a headline figure shows about the server.
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
        /// The request.
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
        /// How the search found it, for a person.
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
        /// Every parameter that deviates from the published method; replaces those of the start.
        departures: Vec<String>,
        /// Every parameter and the method's; replaces those of the start.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        method: Vec<Parameter>,
    },
    /// The search for a capacity ended. The answer follows from its load points.
    CapacitySearched {
        /// What it came to, for a person.
        how: String,
        /// Every parameter that deviates from the published method; replaces those of the start.
        departures: Vec<String>,
        /// Every parameter and the method's; replaces those of the start.
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
    /// The requested load.
    pub load: Load,
    /// Pacing the workers used.
    pub pacing: Pacing,
    /// Start of the point, nanoseconds since the Unix epoch.
    pub started_unix_ns: u64,
    /// Length of the actual warm-up.
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
    /// A server that went away in the load and was not there when it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_lost: Option<ServerLost>,
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
    /// Requested number of ops in the window, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ops: Option<u64>,
    /// Size of the data on all servers that the ops chose from; `None` where nobody knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data_set_bytes: Option<u64>,
    /// Which parts of that data the ops read, and how often; `None` where that is not ours to
    /// choose.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub access_pattern: Option<AccessPattern>,
    /// The agents, in the order of their workers; empty where this program made the load alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub agents: Vec<AgentPoint>,
    /// The phase of a shape that this load point is. Its `seconds` are counted from the start of
    /// the warm-up of the whole, its times from its own begin.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<Box<ShapedPoint>>,
}

/// A load point that is a phase of a shape.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ShapedPoint {
    /// The phase.
    pub phase: LoadPhase,
    /// Load that was requested in each second of it, on average; the first and the last may be
    /// parts.
    pub requested: Vec<f64>,
    /// It comes after a pulse: what is measured is how the server recovers, and no steady state.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub follows_pulse: bool,
}

/// An agent's part in a load point.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentPoint {
    /// As the user named it, with a number if the name covers several: `ssh://a#2`.
    pub name: String,
    /// Name of its host.
    pub host: String,
    /// How many of the load point's workers were its own; they follow those of the agents before.
    pub workers: u32,
    /// Ops that ended in the window, over its workers.
    pub done: u64,
    /// Ops of these that failed.
    pub errors: u64,
    /// Start of its load, by its own wall clock, nanoseconds since the Unix epoch.
    pub started_unix_ns: u64,
    /// How much later its load started than the first agent's, as far as the clocks show.
    pub start_skew_ns: u64,
    /// Its clock against the controller's.
    pub clock: ClockOffset,
    /// Its wall clock moved by this much against its monotonic one during the point.
    pub clock_step_ns: i64,
    /// CPU time of its process in the window.
    pub process_cpu_ns: u64,
    /// CPU time of its monitors in the window.
    pub monitor_cpu_ns: u64,
    /// Who else used its workers' cores, the largest first; `None` when nobody looked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub core_users: Option<Vec<CoreUser>>,
}

/// An agent's monotonic clock less the controller's. The true offset was within `bound` of
/// `offset_ns` during the whole load point.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClockOffset {
    /// The offset before the load point.
    pub offset_ns: i64,
    /// Half of the shortest round trip, and the drift.
    #[serde(rename = "bound_ns")]
    pub bound: Nanos,
    /// The offset after the load point less the one before it.
    pub drift_ns: i64,
}

/// Use of one resource over the window of a load point. A resource that could not be watched has
/// no entry; zero is a measurement.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ResourceUse {
    /// Stable name, from whole to part: `host.cpu_busy`, `process.server.cpu`, `disk.vda.busy`.
    pub name: String,
    /// `ratio`, `cores`, `bytes`, `bytes/s`, `1/s`, `s`, or empty for a plain count.
    pub unit: String,
    /// Mean over the window, by time.
    pub mean: f64,
    /// Highest sample of the window.
    pub max: f64,
    /// Where it was read, as given to `--monitor`, without secrets; absent for this host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Its samples, for resources that are drawn over time: seconds from the window's start to the
    /// sample's middle, and its value. Of long windows, means of several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub over_time: Vec<(f64, f64)>,
}

impl ResourceUse {
    /// A figure of the whole window, without samples.
    pub fn of_window(name: &str, unit: &str, mean: f64, max: f64) -> Self {
        Self { name: name.to_owned(), unit: unit.to_owned(), mean, max, ..Self::default() }
    }

    /// Its key, if it is this column of this table: `vda` of `disk.vda.busy`.
    pub fn key(&self, table: &str, column: &str) -> Option<&str> {
        let rest = self.name.strip_prefix(table)?.strip_prefix('.')?;
        rest.strip_suffix(column)?.strip_suffix('.')
    }
}

/// How a worker fared in an interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkerHealth {
    /// CPU time (user + system) of the worker's thread.
    pub cpu_ns: u64,
    /// Part of the interval spent in empty polls, where the worker polls.
    pub empty_poll_ns: u64,
    /// Length of the interval.
    pub wall_ns: u64,
    /// Times the worker woke from a sleep.
    pub wakeups: u64,
    /// Ops waiting for a free connection at the end of the interval.
    pub backlog_ops: u64,
    /// Time the worker was ready to run while another thread had its core; `None` where the kernel
    /// does not report it.
    pub run_delay_ns: Option<u64>,
    /// Time the worker slept of its own will, waiting for replies or the next op.
    #[serde(default)]
    pub sleep_ns: u64,
    /// Time between two empty polls that was far longer than a poll takes: somebody else had the
    /// core, another thread or the hypervisor. Part of neither work nor empty polls.
    #[serde(default)]
    pub gap_ns: u64,
    /// The longest of those gaps.
    #[serde(default)]
    pub gap_ns_max: u64,
    /// The wall clock moved by this much against the monotonic one since the last interval. Stamps
    /// of replies are wall clock.
    #[serde(default)]
    pub clock_step_ns: i64,
    /// Ops in flight at the end of the interval; counted where the load changes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_flight_ops: Option<u64>,
}

impl ShapedPoint {
    /// The load stays the same in it, and a pulse before it has no effect on it.
    pub fn is_steady(&self) -> bool {
        self.phase.kind == PhaseKind::Hold && !self.follows_pulse
    }
}

impl WorkerHealth {
    /// Share of the interval in which the worker did useful work; empty polls are not work.
    pub fn busy_ratio(&self) -> f64 {
        if self.wall_ns == 0 {
            return 0.0;
        }
        // Polls that another thread interrupted are gaps and not counted as polls.
        let work_ns = self.cpu_ns as f64 - self.empty_poll_ns as f64;
        (work_ns / self.wall_ns as f64).clamp(0.0, 1.0)
    }
}
