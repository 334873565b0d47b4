//! Facts of findings that have a type of their own.

use serde::{Deserialize, Serialize};

use crate::core_user::CoreUser;
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

/// Where ops are counted beside the totals of the journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CountRecord {
    /// The histograms of the interval logs.
    IntervalLogs,
    /// The seconds of the journal.
    Seconds,
}

/// Which figure the generator's own delays are held against.
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
    /// What the workers wanted of their cores.
    WorkerHealth,
    /// When replies arrived.
    Arrivals,
    /// How long the window should be: the suite has no profile of that name.
    Profile,
}

/// What is wrong with the tokens that answers say they have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TokenFault {
    /// They do not say it.
    Uncounted,
    /// There are fewer than chunks with text.
    Mismatched,
    /// There are fewer than were asked for.
    CutShort,
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
    /// It stood still, and no thread had it.
    Paused {
        /// For what part of the time.
        ratio: f64,
        /// For how long at the longest.
        longest_ns: Nanos,
    },
    /// The worker had it, was not busy, and woke late.
    Slept,
    /// The worker used it up.
    UsedUp,
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
    /// The error samples and the server's log tell.
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
    /// It was asked to stop.
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
