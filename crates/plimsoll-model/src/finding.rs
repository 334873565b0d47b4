//! Findings of a run's rules, as facts; `plimsoll-report` turns them into sentences.
//! `docs/validity.md` explains every rule to users.

mod facts;

use serde::{Deserialize, Serialize};

pub use facts::{
    Answers, CountRecord, CycleCount, EarlyAnswers, ErrorCause, Interruption, LostClients,
    LostSign, LostWith, Missing, OpsLeft, PartOf, Progress, ServerLost, ShortPhase, Silence,
    TokenFault, WorkerCore,
};

use crate::consumers::CoreUserKind;
use crate::late::LateOps;
use crate::nonconformity::Nonconformities;
use crate::precision::ReachedPrecision;
use crate::units::Nanos;

/// A rule that was broken. In JSON `{"rule", "text", "facts", "point"}`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Finding {
    /// [`Rule::name`], for people who read the file.
    #[serde(rename = "rule")]
    name: String,
    /// The sentence, for them too: empty until `plimsoll-report` fills it.
    pub text: String,
    /// Which rule, with what it saw.
    #[serde(rename = "facts")]
    pub rule: Rule,
    /// Position of the load point in the ladder, from 1; `None` for the whole run.
    pub point: Option<u32>,
}

/// Every rule, with the facts that its text is made of. Ratios are parts of 1.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
#[expect(missing_docs, reason = "a field is the fact of its name; limit_… is the most it may be")]
pub enum Rule {
    // Of a load point: reasons.
    /// A worker of the generator panicked.
    Panic { message: String },
    /// The point ended before its window did.
    EndedEarly { cause: String },
    /// The interval logs are missing.
    Intervals { files: String },
    /// Not one op was done in the window.
    NothingDone { progress: Progress },
    /// Replies contained wrong data.
    Corrupt {
        /// How many, in warm-up too.
        replies: u64,
    },
    /// Two counts of the same ops differ.
    Counts {
        record: CountRecord,
        recorded_ops: u64,
        total_ops: u64,
        /// Ops of the totals that had no reply.
        without_reply_ops: u64,
    },
    /// A worker needed more of its core than it may.
    GeneratorCpu {
        /// Its work and the time it was kept from its core.
        wanted_ratio: f64,
        limit_ratio: f64,
        busy_ratio: f64,
        /// The time it was kept from its core.
        waiting_ratio: f64,
        core: WorkerCore,
    },
    /// The generator's own delays are a large part of a figure.
    GeneratorError {
        part_of: PartOf,
        own_ns: Nanos,
        of_ns: Nanos,
        ratio: f64,
        limit_ratio: f64,
        /// What became of the worker's core.
        core: WorkerCore,
    },
    /// A rule could not be checked.
    MissingEvidence { missing: Missing },
    /// More ops failed than may.
    Errors {
        failed_ops: u64,
        due_ops: u64,
        /// What part of them may fail.
        limit_ratio: f64,
        /// The most frequent class of errors and its count.
        most: Option<(String, u64)>,
        /// Why, as far as known.
        cause: ErrorCause,
    },
    /// Clients left before the window ended.
    ClientsLost {
        clients: u32,
        /// Those that stayed to the end of the window.
        stayed: u32,
        /// Those that left, after the window too.
        left: u32,
        cause: Option<String>,
        /// What it means for the load point.
        consequence: LostClients,
    },
    /// Throughput, response time and think time do not account for the clients of a closed load.
    ClosedLoop {
        counted: CycleCount,
        present: f64,
        clients: u32,
        /// What part of them is missing, or too much.
        off_ratio: f64,
        limit_ratio: f64,
    },
    /// No op ended in the window of a closed load.
    ClosedLoopUnknown,
    /// The share of an op is not the suite's.
    OpMix {
        /// The op furthest from its share.
        op: String,
        /// Its share of the ops done, in percent.
        percent: f64,
        wanted_percent: f64,
        /// How many percentage points it may be off.
        limit_points: f64,
    },
    /// One target did more or less than an equal part.
    TargetShares { target: String, ops: u64, equal_ops: u64, off_ratio: f64, limit_ratio: f64 },
    /// One agent did more or less than its workers' part.
    AgentShares { ops: u64, part_ops: u64, off_ratio: f64, limit_ratio: f64 },
    /// More was counted than the network links can carry.
    LinkCapacity { used_mbit_per_s: f64, limit_mbit_per_s: f64 },
    /// Throughput changed from one half of the window to the other.
    NotSteady { first_ops_per_s: f64, second_ops_per_s: f64, change_ratio: f64, limit_ratio: f64 },
    /// The monitors used too much CPU time.
    Monitors { used_ratio: f64, limit_ratio: f64 },
    /// The window or its warm-up was shorter than the profile requires.
    Duration {
        phase: ShortPhase,
        length_ns: Nanos,
        /// How long it should have been.
        wanted_ns: Nanos,
        profile: String,
    },
    /// Fewer ops came due than requested, in the longest time that the window may take.
    TooFewOps { due_ops: u64, wanted_ops: u64, limit_ns: Nanos },
    /// The wall clock was set during the point.
    ClockStepped { step_ns: Nanos, limit_ns: Nanos },

    // Of a load point: why the headline leaves it out.
    /// An open load was not sustained.
    Rate {
        achieved_ops_per_s: f64,
        scheduled_ops_per_s: f64,
        /// What part of the ops was not done in time.
        off_ratio: f64,
        limit_ratio: f64,
        ops: OpsLeft,
    },
    /// Ops of an open load that was sustained were never sent.
    NotSent { not_sent_ops: u64, due_ops: u64 },
    /// Ops had neither a reply nor an error when the drain ended.
    Unfinished {
        unfinished_ops: u64,
        due_ops: u64,
        /// What part of them may be.
        limit_ratio: f64,
        /// Since when the server was silent.
        silence: Option<Silence>,
    },
    /// A server went away. Of a load point that was made again, a warning.
    ServerLost {
        server: ServerLost,
        /// Since when nothing was answered; `None` from the begin of the window on.
        from_second: Option<u32>,
        made_again: bool,
    },
    /// The mean service time is above the suite's cap.
    ResponseCap { mean_ms: f64, cap_ms: f64 },

    // Of a load point: warnings.
    /// The server refused or closed connections.
    ConnectionsLost {
        /// Ops that got no reply for it.
        before_reply_ops: u64,
        within_reply_ops: u64,
        /// Of both, those whose stream alone was reset.
        reset_ops: u64,
        due_ops: u64,
        /// Clients left, whose ops are among them.
        clients: LostWith,
        /// Since when the server was silent.
        silence: Option<Silence>,
        /// The server answered while requests were still being sent.
        early: Option<EarlyAnswers>,
    },
    /// An agent broke a rule on the generator.
    OfAgent {
        /// As the user named it.
        agent: String,
        host: String,
        /// How many other agents broke it too.
        others: u32,
        rule: Box<Self>,
    },
    /// An agent's clock offset is too uncertain.
    AgentClock { bound_ns: Nanos, limit_ns: Nanos, drift_ns: i64 },
    /// Other threads had a worker's core for long.
    CoreTaken { core: WorkerCore },
    /// Other programs used the processors of the generator's host.
    OtherWork { used_cores: f64, cores: u32 },
    /// The hypervisor gave the processors to other machines.
    Stolen { ratio: f64 },
    /// A window of less than half a second would break this rule.
    ShortWindow {
        window_ns: Nanos,
        /// From which length on the rule is a reason.
        limit_ns: Nanos,
        breaks: Box<Rule>,
    },
    /// Ops were sent late, by the generator's own doing.
    SendLag {
        /// Which percentile of the send lag: `p99`.
        percentile: String,
        own_ns: Nanos,
        limit_ns: Nanos,
        /// What became of the worker's core.
        core: WorkerCore,
    },
    /// Requests of a replay were sent late.
    LateOps { late: LateOps, of_ops: u64 },
    /// The load is a recording, so that steadiness was not judged.
    ChangingLoad,
    /// Ops waited for a free connection.
    Connections {
        /// Which percentile of the send lag: `p99`.
        percentile: String,
        all_ns: Nanos,
        own_ns: Nanos,
        limit_ns: Nanos,
    },
    /// Ops failed before the window.
    WarmUpErrors { failed_ops: u64 },
    /// Requests were sent again.
    Retransmissions {
        requests: u64,
        due_ops: u64,
        /// How many per op may be.
        limit_ratio: f64,
    },
    /// Ops were sent again although the first try may have worked.
    Ambiguous { ops: u64 },
    /// The server forgot sessions of NFSv4.1, and files that were open.
    SessionsRebuilt { sessions: u64, reopened_files: u64 },
    /// The server closed connections after replies that announced to keep them.
    Unkept { connections: u64, done_ops: u64, reconnected_ops: u64 },
    /// Tokens of answers are missing, wrong, or fewer than requested.
    Tokens { fault: TokenFault, requests: u64, of_requests: u64 },
    /// The server's own counter of output tokens grew by another number than the answers have.
    TokensApart { server_per_s: f64, answers_per_s: f64, limit_ratio: f64 },
    /// The mean response time changed within the window.
    ResponseDrift { first_ns: Nanos, second_ns: Nanos },
    /// A percentile's interval is wide.
    WideInterval {
        figure: String,
        value_ns: Nanos,
        low_ns: Nanos,
        /// `None` where the sample shows no upper end.
        high_ns: Option<Nanos>,
        limit_ratio: f64,
        /// The window in which it would not be wide.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        window_needed_ns: Option<Nanos>,
    },
    /// The figure of `--until` is less precise than it was to be.
    PrecisionNotReached {
        /// `p99±5%`
        requested: String,
        reached: ReachedPrecision,
        /// The window.
        window_ns: Nanos,
    },
    /// Few very slow ops make the tail: intervals of the mean and of p99.9 may be too narrow.
    HeavyTail { p99_ns: Nanos, p999_ns: Nanos, limit_ratio: f64 },
    /// A client of a mix did no transaction that counts, so that the score of the mix is 0.
    Score { idle_clients: u32, clients: u32 },

    // Of the whole run.
    /// Fewer load points were finished than the ladder has.
    Incomplete { finished_points: u32, planned_points: u32 },
    /// The journal has no start of a run.
    NotStarted,
    /// The run did not go on to its end.
    Interrupted {
        how: Interruption,
        /// No load point was finished: there is nothing to go on with.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        nothing_finished: bool,
    },
    /// The run could not continue.
    Aborted {
        cause: String,
        /// No load point was finished: there is nothing to go on with.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        nothing_finished: bool,
    },
    /// The generator was built with debug assertions.
    DebugBuild,
    /// The run was resumed.
    Resumed { times: u32 },
    /// A load point was made again because an agent was lost.
    AgentLost { agent: String, host: String, cause: String, points: u32 },
    /// No load point counts.
    NothingCounts { because: Option<Box<Rule>> },
    /// The suite's cap lies within the uncertainty of some load points.
    NearCap {
        cap_ms: f64,
        /// Mean service times as the report shows them, with the positions of their points.
        points: Vec<(String, u32)>,
    },
    /// The ladder missed a load that the search had sustained.
    NotRepeated { verified_ops_per_s: f64, missed_ops_per_s: f64 },
    /// The search for a capacity found none.
    NoCapacity {
        /// Why; `None` where it has not ended.
        cause: Option<String>,
    },
    /// Replies differ from their specification and mean the same.
    Nonconformities { replies: Nonconformities },
    /// No monitored host is known to be the server's but this one may be.
    ServerAssumed { source: String },
    /// The curve was measured by another program.
    ForeignCurve,
    /// A figure of a curve from elsewhere is 0.
    CurvePoint { column: String },
}

impl Rule {
    /// Stable name: `rate`, `errors`, `generator_cpu` … Rules that find the same from other
    /// evidence share one.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Panic { .. } => "panic",
            Self::EndedEarly { .. } => "ended_early",
            Self::Intervals { .. } => "intervals",
            Self::NothingDone { .. } => "nothing_done",
            Self::Corrupt { .. } => "corrupt",
            Self::Counts { .. } => "counts",
            Self::GeneratorCpu { .. } => "generator_cpu",
            Self::GeneratorError { .. } => "generator_error",
            Self::MissingEvidence { .. } => "missing_evidence",
            Self::Errors { .. } => "errors",
            Self::ClientsLost { .. } => "clients_lost",
            Self::ClosedLoop { .. } | Self::ClosedLoopUnknown => "closed_loop",
            Self::OpMix { .. } => "op_mix",
            Self::TargetShares { .. } => "target_shares",
            Self::AgentShares { .. } => "agent_shares",
            Self::LinkCapacity { .. } => "link_capacity",
            Self::NotSteady { .. } => "not_steady",
            Self::Monitors { .. } => "monitors",
            Self::Duration { .. } | Self::TooFewOps { .. } => "duration",
            Self::ClockStepped { .. } => "clock_stepped",
            Self::Rate { .. } => "rate",
            Self::NotSent { .. } => "not_sent",
            Self::Unfinished { .. } => "unfinished",
            Self::ServerLost { .. } => "server_lost",
            Self::ResponseCap { .. } => "response_cap",
            Self::ConnectionsLost { .. } => "connections_lost",
            Self::OfAgent { rule, .. } => rule.name(),
            Self::AgentClock { .. } => "agent_clock",
            Self::AgentLost { .. } => "agent_lost",
            Self::CoreTaken { .. } => "core_taken",
            Self::OtherWork { .. } => "other_work",
            Self::Stolen { .. } => "stolen",
            Self::ShortWindow { .. } => "short_window",
            Self::SendLag { .. } => "send_lag",
            Self::LateOps { .. } => "late_requests",
            Self::ChangingLoad => "changing_load",
            Self::Connections { .. } => "connections",
            Self::WarmUpErrors { .. } => "warm_up_errors",
            Self::Retransmissions { .. } => "retransmissions",
            Self::Ambiguous { .. } => "ambiguous",
            Self::SessionsRebuilt { .. } => "sessions_rebuilt",
            Self::Unkept { .. } => "unkept",
            Self::Tokens { fault, .. } => match fault {
                TokenFault::Uncounted => "tokens_uncounted",
                TokenFault::Mismatched => "tokens_mismatched",
                TokenFault::Contradictory => "tokens_contradictory",
                TokenFault::CutShort | TokenFault::CutAtLength => "tokens_cut_short",
            },
            Self::TokensApart { .. } => "tokens_apart",
            Self::ResponseDrift { .. } => "response_drift",
            Self::WideInterval { .. } => "wide_interval",
            Self::PrecisionNotReached { .. } => "precision_not_reached",
            Self::HeavyTail { .. } => "heavy_tail",
            Self::Score { .. } => "score",
            Self::Incomplete { .. } | Self::NotStarted => "incomplete",
            Self::Interrupted { .. } => "interrupted",
            Self::Aborted { .. } => "aborted",
            Self::DebugBuild => "debug_build",
            Self::Resumed { .. } => "resumed",
            Self::NothingCounts { .. } => "nothing_counts",
            Self::NearCap { .. } => "near_cap",
            Self::NotRepeated { .. } => "not_repeated",
            Self::NoCapacity { .. } => "no_capacity",
            Self::Nonconformities { .. } => "nonconformities",
            Self::ServerAssumed { .. } => "server_assumed",
            Self::ForeignCurve => "foreign_curve",
            Self::CurvePoint { .. } => "curve_point",
        }
    }

    /// Both are findings of the same name.
    pub fn is_same(&self, other: &Self) -> bool {
        self.name() == other.name()
    }

    /// The generator set the figure, not the server.
    pub fn is_generators(&self) -> bool {
        match self {
            Self::OfAgent { rule, .. } => rule.is_generators(),
            _ => matches!(self, Self::GeneratorCpu { .. } | Self::GeneratorError { .. }),
        }
    }

    /// Who kept the generator from its core, where that and not its own work is why the rule was
    /// broken.
    pub fn disturbance(&self) -> Option<&WorkerCore> {
        let core = match self {
            Self::OfAgent { rule, .. } => return rule.disturbance(),
            Self::GeneratorCpu { core, busy_ratio, limit_ratio, .. }
                if busy_ratio <= limit_ratio =>
            {
                core
            }
            Self::GeneratorError { core, .. } | Self::CoreTaken { core } => core,
            _ => return None,
        };
        let by_others = match core {
            WorkerCore::Taken { user, .. } => user.kind() == CoreUserKind::Other,
            WorkerCore::TakenByUnknown { .. }
            | WorkerCore::Stolen { .. }
            | WorkerCore::Paused { .. } => true,
            WorkerCore::Slept | WorkerCore::UsedUp => false,
        };
        by_others.then_some(core)
    }

    /// `plimsoll resume` finishes the run.
    pub const fn is_resumable(&self) -> bool {
        matches!(
            self,
            Self::Incomplete { .. }
                | Self::Interrupted { .. }
                | Self::Aborted { .. }
                | Self::ServerLost { made_again: false, .. }
        )
    }

    /// The finding of the whole run.
    pub fn of_run(self) -> Finding {
        Finding { name: self.name().to_owned(), text: String::new(), rule: self, point: None }
    }

    /// The finding of the load point at a position of the ladder.
    pub fn of_point(self, position: u32) -> Finding {
        Finding { point: Some(position), ..self.of_run() }
    }
}
