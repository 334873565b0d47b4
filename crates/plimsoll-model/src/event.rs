//! What an agent and a run report. The journal is a list of these, one JSON object a line.
//!
//! The engine's only output. Progress display, journal and live view listen; nothing else prints.

mod asked;
mod cut_off;
mod resources;
mod signs;
mod started;
mod times;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::assignment::{Assignment, Load, Pacing, PointId};
use crate::method::Parameter;
use crate::nonconformity::Nonconformities;
use crate::outcome::{ClientCounts, ErrorSample};
use crate::units::Nanos;

pub use crate::core_user::{CoreUser, CoreUserKind};
pub use asked::{Asked, InARow, LoadFileAsked, ServerLimits};
pub use cut_off::CutOff;
pub use resources::{ResourceUse, WorkerHealth};
pub use signs::{CoarseTimes, PAUSE_MIN, PartWaits, Pause, Signs, TICK_GRID, new_coarse_histogram};
pub use started::RunStarted;
pub use times::{
    HISTOGRAM_DIGITS, HISTOGRAM_NS_MAX, OpTimes, PieceTimes, Times, add_times, growing_times,
    new_times,
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

/// Part of a load point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Before the window; not counted.
    WarmUp,
    /// The window.
    Measure,
    /// After the window: the load may go on for a while, not counted, and ops that were due in
    /// the window may still finish.
    Drain,
}

impl Phase {
    /// The word for it in files.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::WarmUp => "warm_up",
            Self::Measure => "measure",
            Self::Drain => "drain",
        }
    }
}

/// What one worker saw in one second (or the part of it that a phase fills).
#[derive(Clone, Debug)]
pub struct Interval {
    /// Worker number.
    pub worker: u32,
    /// 0, 1, 2 … seconds from the start of the point.
    pub second: u32,
    /// Start, from the start of the point.
    pub start: Nanos,
    /// End, from the start of the point.
    pub end: Nanos,
    /// Phase in which the ops of this interval *finished*.
    pub phase: Phase,
    /// Ops that finished in the interval, whatever their due time.
    pub done: u64,
    /// Of those, failed.
    pub errors: u64,
    /// Application bytes read by them.
    pub bytes_read: u64,
    /// Application bytes written by them.
    pub bytes_written: u64,
    /// Times of finished ops by op kind: in the measure and drain phases only ops that were *due*
    /// in the window, in warm-up all. Index is the [`crate::outcome::OpKind`].
    pub ops: Vec<OpTimes>,
    /// The worker's own health.
    pub health: WorkerHealth,
}

/// Counts of one op kind over the window.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OpCounts {
    /// Ops due in the window that ended, however.
    pub count: u64,
    /// Of those, failed or unexpected.
    pub errors: u64,
    /// Of those, failed as the script wanted.
    pub expected_failures: u64,
    /// Ops that ended within the window, however, whenever they were due. The shares of a mix are
    /// taken from these: when ops wait long, those due in the window and what follows from those
    /// done in it are not of the same draws.
    #[serde(default)]
    pub ended_in_window: u64,
}

/// An op that ended with another status than expected, counted.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UnexpectedCount {
    /// Op name.
    pub op: String,
    /// Status expected.
    pub expected: u32,
    /// Status seen.
    pub actual: u32,
    /// How often.
    pub count: u64,
    /// The protocol's name of `expected`, where it has names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected_name: Option<String>,
    /// The protocol's name of `actual`, where it has names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actual_name: Option<String>,
}

/// One worker's totals of a point. Everything adds up over workers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkerTotals {
    /// Ops whose due time lies in the window.
    pub due: u64,
    /// Ops that finished without error within the window, whatever their due time.
    pub done_in_window: u64,
    /// Ops due in the window that were never sent (backlog full, or still waiting after the drain).
    pub not_sent: u64,
    /// Ops due in the window still without reply when the drain ended, before their timeout. No
    /// errors: neither in `ops` nor in `errors`.
    pub unfinished: u64,
    /// The least age, at the end of the drain, of an op that was not sent or not finished: response
    /// times up to it are known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_age_min: Option<Nanos>,
    /// The least time since it was sent of an op that was not finished.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_age_min: Option<Nanos>,
    /// The first ops of the point: those sent before a quarter of the clients were busy.
    #[serde(default)]
    pub first_ops: u64,
    /// Their service time, summed.
    #[serde(default)]
    pub first_service_ns_total: u64,
    /// By op name, over ops due in the window.
    pub ops: BTreeMap<String, OpCounts>,
    /// By text form of the error class, over ops due in the window.
    pub errors: BTreeMap<String, u64>,
    /// Errors of ops due in warm-up, by class: a server that is broken is broken there too.
    pub warm_up_errors: BTreeMap<String, u64>,
    /// Of the failed ops due in the window, those whose requests were not yet sent whole.
    #[serde(default, skip_serializing_if = "CutOff::is_empty")]
    pub cut_off: CutOff,
    /// Unexpected statuses, over ops due in the window.
    pub unexpected: Vec<UnexpectedCount>,
    /// Ops sent again although the first try may have worked.
    pub ambiguous: u64,
    /// UDP retransmissions.
    pub retransmissions: u64,
    /// Connections opened in the window.
    pub connects: u64,
    /// Application bytes read by ops that finished in the window.
    pub bytes_read: u64,
    /// Application bytes written by ops that finished in the window.
    pub bytes_written: u64,
    /// Bytes received on sockets in the window.
    pub wire_bytes_in: u64,
    /// Bytes sent on sockets in the window.
    pub wire_bytes_out: u64,
    /// Ops whose content was verified in full.
    pub verified: u64,
    /// Where replies of the window differ from their specification and mean the same.
    #[serde(default, skip_serializing_if = "Nonconformities::is_empty")]
    pub nonconformities: Nonconformities,
    /// Ops due in the window whose `arrived` is the kernel's stamp.
    #[serde(default)]
    pub arrived_stamped: u64,
    /// Ops due in the window whose `arrived` is only bounded, by the end of the connection's
    /// previous empty read: several replies were waiting, or the socket has no stamps.
    #[serde(default)]
    pub arrived_bounded: u64,
    /// Clients that took part to the end of the window.
    pub clients_participating: u32,
    /// Closed loads: pieces of work finished in the window.
    pub pieces: u64,
    /// Closed loads: time in the window from due to done of those pieces, summed.
    pub piece_ns_total: u64,
    /// Closed loads: think time drawn for those pieces, summed.
    pub think_ns_total: u64,
    /// Open loads: when the last op of the window that was sent came due, from the start of the
    /// point.
    #[serde(default)]
    pub last_due: Nanos,
    /// When it was sent.
    #[serde(default)]
    pub last_sent: Nanos,
    /// By target, in the order of the assignment's endpoints.
    #[serde(default)]
    pub per_target: Vec<TargetTotals>,
    /// By client, in the order of their numbers; empty when the assignment did not ask for it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub per_client: Vec<ClientCounts>,
    /// Ops that ended in each [`TICK`] of the window's first minute.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub done_by_tick: Vec<u32>,
    /// Ops that were sent in each, of those that ended.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sent_by_tick: Vec<u32>,
    /// What replies looked like.
    #[serde(default, skip_serializing_if = "Signs::is_empty")]
    pub signs: Signs,
}

/// Time over which ops are counted for what changes within a second.
pub const TICK: Nanos = Nanos::from_millis(50);
/// Ticks of a load point that are kept: a minute.
pub const TICKS_MAX: usize = 1_200;

impl WorkerTotals {
    /// By op name, the ops from which shares of the mix are taken: those that ended within the
    /// window. A bundle written before they were counted has those due in it instead.
    pub fn mix(&self) -> BTreeMap<&str, u64> {
        let of = |pick: fn(&OpCounts) -> u64| {
            self.ops.iter().map(move |(name, counts)| (name.as_str(), pick(counts)))
        };
        if of(|counts| counts.ended_in_window).all(|(_, ended)| ended == 0) {
            return of(|counts| counts.count).collect();
        }
        of(|counts| counts.ended_in_window).collect()
    }
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
    /// How many ops the window was asked to have, where that was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ops: Option<u64>,
}

/// One second of a point over all workers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SecondRecord {
    /// 0, 1, 2 … from the start of the point.
    pub second: u32,
    /// Phase in which the ops finished; a second that holds a border has a record for each side.
    pub phase: Phase,
    /// Length of this record.
    pub length_ns: u64,
    /// Ops finished.
    pub done: u64,
    /// Of those, failed.
    pub errors: u64,
    /// Application bytes read.
    pub bytes_read: u64,
    /// Application bytes written.
    pub bytes_written: u64,
}

/// One target's share of a point.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TargetTotals {
    /// As given, without password.
    pub target: String,
    /// Ops that finished without error in the window.
    pub done_in_window: u64,
    /// Ops due in the window that failed.
    pub errors: u64,
    /// Application bytes read by ops that finished in the window.
    pub bytes_read: u64,
    /// Application bytes written by ops that finished in the window.
    #[serde(default)]
    pub bytes_written: u64,
    /// done − sent of ops due in the window that went well.
    #[serde(default, skip_serializing_if = "CoarseTimes::is_empty")]
    pub service: CoarseTimes,
}
