//! Facts of findings that have a type of their own.

use serde::{Deserialize, Serialize};

use crate::consumers::CoreUser;
use crate::units::Nanos;

/// How far the ops of a window without a good one came.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names without a comment say it")]
pub enum Progress {
    NoneDue,
    NoReply,
    AllFailed,
}

/// Where ops are counted besides the totals of the journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CountRecord {
    /// The histograms of the interval logs.
    IntervalLogs,
    /// The seconds of the journal.
    Seconds,
}

/// Which figure the generator's own delays are compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PartOf {
    /// The median response time.
    ResponseP50,
    /// The time that the server took, per op of a closed load.
    ServerTime,
}

/// Evidence that a point lacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Missing {
    /// How much of their cores the workers needed.
    WorkerHealth,
    /// When replies arrived.
    Arrivals,
    /// How long the window should be: the suite has no profile of that name.
    Profile,
}

/// What is wrong with the token counts that answers report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TokenFault {
    /// They report none.
    Uncounted,
    /// There are fewer than chunks with text.
    Mismatched,
    /// Prompt and answer are not the total, or reasoning is more than the answer.
    Contradictory,
    /// There are fewer than requested.
    CutShort,
    /// The same, and the server reports that the answer reached a length.
    CutAtLength,
}

/// What became of a worker's core while the worker was slow or late.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum WorkerCore {
    /// A thread had it.
    Taken {
        /// Which.
        user: CoreUser,
        /// For what part of the window.
        ratio: f64,
    },
    /// Threads had it that nobody could name.
    TakenByUnknown {
        /// For what part of the window.
        ratio: f64,
    },
    /// The hypervisor kept the host's processors.
    Stolen {
        /// For what part of the time.
        ratio: f64,
    },
    /// It was paused, and no thread had it.
    Paused {
        /// For what part of the time.
        ratio: f64,
        /// For how long at the longest.
        longest_ns: Nanos,
    },
    /// The worker had it, was not busy, and woke late.
    Slept,
    /// The worker used it up, or what the CPU quota of its control group allows of it.
    UsedUp,
}

/// A target that went away in a load point: its ops failed to the end, and then it was not there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServerLost {
    /// As given, without password.
    pub target: String,
    /// How the loss was detected.
    pub sign: LostSign,
}

/// How the loss of a server was detected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LostSign {
    /// Its process has ended.
    Ended,
    /// Nobody takes a connection.
    Unreachable,
}

/// Why ops failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum ErrorCause {
    /// The generator's host ran out of ports or descriptors.
    Generator,
    /// The server fell silent.
    Silence(Silence),
    /// The server answered before it had read the requests.
    EarlyAnswers(EarlyAnswers),
    /// See the error samples and the server's log.
    Unknown,
}

/// Since when the server answered nothing, or nothing well.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Silence {
    /// Second of the point; `None` from the begin of the window on.
    pub from_second: Option<u32>,
    /// Did it still answer with errors?
    pub answers: Answers,
}

/// What a server sends to ops that fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answers {
    /// Nothing.
    None,
    /// Errors.
    Errors,
}

/// Ops whose requests the server answered, or cut off, before it had read them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EarlyAnswers {
    /// Each status and how many ops got it.
    pub answered: Vec<(u32, u64)>,
    /// Ops that lost their connection instead.
    pub lost_ops: u64,
    /// Ops of the point.
    pub due_ops: u64,
}

/// What clients that left mean for a load point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LostClients {
    /// They left after the window.
    AfterWindow,
    /// Those that stayed did the work of an open load.
    OthersDidMore,
    /// The closed load shrank.
    LoadShrank,
    /// Too few are left.
    TooFew,
}

/// Did clients leave with the connections that were lost?
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LostWith {
    /// All clients stayed.
    Stayed,
    /// Some left.
    Left,
}

/// What the clients of a closed load are counted by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CycleCount {
    /// Their iterations, and the think times between those.
    Iterations,
    /// Their ops: no iteration ended in the window.
    Ops,
}

/// A part of a load point that was too short.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ShortPhase {
    /// The measured window.
    Window,
    /// The warm-up before it.
    WarmUp,
}

/// What became of the ops of an open load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "the names without a comment say it")]
pub struct OpsLeft {
    pub due: u64,
    pub not_sent: u64,
    /// Of these, without a reply when the drain ended.
    pub unfinished: u64,
    pub failed: u64,
}

/// How a run ended that was not finished.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Interruption {
    /// It was requested to stop.
    Stopped,
    /// It was killed.
    Killed,
}

impl EarlyAnswers {
    /// Ops that got a status.
    pub fn answered_ops(&self) -> u64 {
        self.answered.iter().map(|(_, count)| count).sum()
    }

    /// All of them.
    pub fn ops(&self) -> u64 {
        self.answered_ops() + self.lost_ops
    }
}
