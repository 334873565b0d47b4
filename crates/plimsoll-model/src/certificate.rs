//! A certificate of calibration: how far this program's figures are from the truth on one host, as
//! `plimsoll calibrate` measured it. JSON, format 2; `docs/calibration.md` explains it.
//!
//! Four judgements are kept apart. *Tight*: what the client measured against the times the server
//! itself computed for the same requests. *On schedule*: those times against what the same queue
//! gives when each request arrives as it was due. *Theory*: these against what queueing theory
//! predicts for such a server, within the scatter of a run of that length. *Interval*: the
//! uncertainty interval of the ordinary result against the truth, from due to the reply handed to
//! the kernel.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::named::named;
use crate::units::Nanos;

/// Version of the certificate's format.
pub const CERTIFICATE_FORMAT: u32 = 2;

/// A certificate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "the names without a comment say it")]
pub struct Certificate {
    pub format: u32,
    /// When the calibration ended, nanoseconds since the Unix epoch.
    pub made_unix_ns: u64,
    pub host: CertifiedHost,
    pub instrument: Instrument,
    /// Schedule and service times follow from it.
    pub seed: u64,
    /// Short windows: the tails are less certain.
    pub quick: bool,
    /// Share of the usual time that every case was given: below 1 it is a test of the program, and
    /// nothing of the instrument is certified.
    pub time_share: f64,
    /// Cost of the round trip, waking up included.
    pub floor: Floor,
    /// Open loads on servers whose law is known.
    pub queues: Vec<QueueCase>,
    /// The interactive law in a closed loop.
    pub closed: ClosedCase,
    /// A pause of the server.
    pub stall: StallCase,
    /// The highest rate with punctual sends.
    pub punctual: PunctualRate,
    /// What a reader must know, for a person.
    pub warnings: Vec<String>,
    pub all_held: bool,
}

/// Shown instead of a setting of the processors that the host does not show.
pub const NOT_VISIBLE: &str = "not visible";

/// Settings of the processors that times depend on, besides the governor, by their names: the
/// deepest C-state, turbo and mitigations. Empty in older certificates.
pub type ProcessorSettings = BTreeMap<String, String>;

/// The host that was calibrated.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CertifiedHost {
    /// Its name.
    pub name: String,
    /// Kernel release and build; absent when not readable.
    pub kernel: Option<String>,
    /// Processor model; absent when not readable.
    pub cpu_model: Option<String>,
    /// Logical processors online; absent when not readable.
    pub cpus_online: Option<u32>,
    /// Frequency governor of the processors; absent where there is none.
    pub governor: Option<String>,
    /// Other settings of the processors.
    #[serde(default)]
    pub processor: ProcessorSettings,
}

/// Outcome of a judgement that may be left open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JudgementOutcome {
    /// Within what is allowed.
    Held,
    /// Not within it, or there was nothing to compare.
    #[default]
    Broken,
    /// The allowance is so large that being within it proves nothing.
    NotJudged,
}

/// Verdict of the ordinary run behind a case.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunVerdict {
    /// It offered the requested load, without errors. It may still be invalid for being late; the
    /// other judgements cover that.
    pub held: bool,
    /// Every reason for which it is invalid, for a person.
    pub reasons: Vec<String>,
}

/// The program and how it was set up.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Instrument {
    /// Version of the program.
    pub version: String,
    /// `release` or `debug`.
    pub build: String,
    /// What moves bytes: `epoll`.
    pub driver: String,
    /// Worker threads.
    pub workers: u32,
    /// How they wait: `auto`, `spin`, `precise`, `coalesce`.
    pub pacing: String,
    /// Their scheduling priority: `auto`, `normal`.
    #[serde(default)]
    pub priority: String,
    /// Protocols that were spoken: `app`, `http`, `nfs`, `smb`.
    #[serde(default)]
    pub protocols: Vec<String>,
    /// Cores of the generator; empty: shared with everything.
    pub generator_cores: Vec<u32>,
    /// Cores of the calibrated server; empty: shared with everything.
    pub server_cores: Vec<u32>,
}

named! {
    fn name;
    /// A figure of a distribution of response times.
    #[derive(
        Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
    )]
    #[serde(rename_all = "snake_case")]
    pub enum Statistic {
        /// Arithmetic mean.
        Mean = "mean",
        /// Median.
        P50 = "p50",
        /// 95th percentile.
        P95 = "p95",
        /// 99th percentile.
        P99 = "p99",
        /// 99.9th percentile.
        P999 = "p99.9",
    }
}

impl Statistic {
    /// Share of the sample at or below it; `None` for the mean.
    pub const fn share(self) -> Option<f64> {
        match self {
            Self::Mean => None,
            Self::P50 => Some(0.5),
            Self::P95 => Some(0.95),
            Self::P99 => Some(0.99),
            Self::P999 => Some(0.999),
        }
    }
}

/// Response times of a server where every request takes the same and nobody waits, at a low rate,
/// less that service.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Floor {
    /// Ops per second.
    pub rate_ops_per_s: f64,
    /// What every request takes in the server.
    pub service_ns: Nanos,
    /// Ops in the window.
    pub ops: u64,
    /// By statistic; those the sample does not support are absent.
    pub response: Vec<FloorReading>,
    /// Verdict of the run.
    pub run: RunVerdict,
}

/// One figure of the floor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FloorReading {
    /// Which.
    pub statistic: Statistic,
    /// Response time as the client measured it, less the service.
    pub beyond_ns: Nanos,
}

impl Floor {
    /// The floor under a statistic. Where the sample does not support it, that of the highest
    /// percentile it supports, which is lower: the judgement becomes stricter.
    pub fn under(&self, statistic: Statistic) -> Nanos {
        let floor_of = |requested| {
            let matched = self.response.iter().find(|reading| reading.statistic == requested);
            matched.map(|reading| reading.beyond_ns)
        };
        let highest = || self.response.iter().map(|reading| reading.beyond_ns).max();
        floor_of(statistic).or_else(highest).unwrap_or_default()
    }
}

/// One open load on one server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QueueCase {
    /// How it was spoken to: `app`, `http`, `https`, `nfs`, `smb`.
    pub protocol: String,
    /// In Kendall's notation: `M/M/4`.
    pub queue: String,
    /// Law of the service times, as `serve app --calibrated` takes it.
    pub service: String,
    /// Services at a time.
    pub servers: u32,
    /// Requested share of its capacity.
    pub utilisation: f64,
    /// Requested ops per second; of a closed loop those that were done.
    pub rate_ops_per_s: f64,
    /// Length of the window.
    pub seconds: f64,
    /// Ops that came due in the window.
    pub ops_due: u64,
    /// Ops that the schedule has in the window; absent for a closed loop.
    pub ops_scheduled: Option<u64>,
    /// Ops that finished without error in the window.
    pub ops_done: u64,
    /// Requests that arrived at the server in the window.
    pub ops_served: u64,
    /// How late the server's replies left (99th percentile): its own part of the distance.
    pub server_late_p99_ns: Nanos,
    /// Done over due, less one.
    pub rate_error_ratio: f64,
    /// What a queue of this kind may make of it in such a window.
    pub rate_allowed_ratio: f64,
    /// It is within that, and no op failed or was left out.
    pub rate: JudgementOutcome,
    /// Served over due, less one: do both sides speak of the same ops?
    pub served_error_ratio: f64,
    /// It is within the limit.
    pub served: JudgementOutcome,
    /// Why judgements were left open, for a person.
    #[serde(default)]
    pub open_because: Vec<String>,
    /// Verdict of the run.
    pub run: RunVerdict,
    /// Counts and times in the server's log; absent in older certificates.
    pub witness: Option<CrossCheck>,
    /// By statistic; those the sample does not support are absent.
    pub readings: Vec<Reading>,
}

/// A statistic of one case, from three sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reading {
    /// Which.
    pub statistic: Statistic,
    /// What the client measured, from due to done.
    pub client_ns: Nanos,
    /// What the server computed, from arrival to completion.
    pub served_ns: Nanos,
    /// How far they may be apart, in the direction in which they are.
    pub allowed_ns: Nanos,
    /// They are no further apart.
    pub tight: JudgementOutcome,
    /// The figure by the schedule; absent for a closed loop, which has none.
    pub schedule: Option<ScheduleReading>,
    /// Its interval in the ordinary result; absent where that has none.
    pub stated: Option<IntervalCheck>,
}

/// A statistic of an open load, by its schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScheduleReading {
    /// Computed for the same queue when each request arrives at the instant it was due.
    pub scheduled_ns: Nanos,
    /// The server's figure differs from that by no more than delays on the route explain.
    pub on_schedule: JudgementOutcome,
    /// Theory's figure for a run without end.
    pub theory_ns: Nanos,
    /// Shortest and longest that a run of this length gives.
    pub theory_interval_ns: (Nanos, Nanos),
    /// What the schedule gives lies between them.
    pub theory_held: bool,
}

/// An uncertainty interval, and the truth it must contain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IntervalCheck {
    /// As in the result.
    pub interval_ns: (Nanos, Nanos),
    /// From due to the reply handed to the kernel, by the schedule and the server's log.
    pub truth_ns: Nanos,
    /// The truth is in the interval.
    pub interval: JudgementOutcome,
}

impl Reading {
    /// Distance between client and server.
    pub const fn error_ns(&self) -> Nanos {
        Nanos(self.client_ns.0.abs_diff(self.served_ns.0))
    }
}

/// A closed loop, checked in three ways. Throughput × (response + think time) equals the number of
/// clients by construction, whatever the response: this shows that counting loses nothing. The
/// server's log shows whether the response is right; the theory of a queue with a finite source
/// shows whether the throughput is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "the names without a comment say it")]
pub struct ClosedCase {
    pub clients: u32,
    pub ops_per_s: f64,
    pub response_ns: Nanos,
    /// Mean think time that was drawn.
    pub think_ns: Nanos,
    /// X (R + Z) / N, less one.
    pub error_ratio: f64,
    /// Ops that failed or were never sent.
    pub troubles: u64,
    /// The error is within the limit, and there were no troubles.
    pub held: bool,
    /// Mean response time as the server computed it; zero when it served nothing in the window.
    pub served_ns: Nanos,
    /// How far both means may be apart.
    pub allowed_ns: Nanos,
    /// They are no further apart.
    pub tight: JudgementOutcome,
    /// Throughput of M/M/c//N in a run without end, with the floor as round trip.
    pub theory_ops_per_s: f64,
    /// Lowest and highest of simulated runs of this length, with a round trip of all that is
    /// allowed and with none.
    pub theory_interval_ops_per_s: (f64, f64),
    /// The throughput lies between them.
    pub theory: JudgementOutcome,
    /// How far the mean think time may be from the requested one, by chance.
    #[serde(default)]
    pub think_allowed_ns: Nanos,
    #[serde(default)]
    pub think: JudgementOutcome,
    /// Verdict of the run.
    pub run: RunVerdict,
    /// Counts in the server's log; absent in older certificates.
    pub witness: Option<CrossCheck>,
}

/// A server that pauses once.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "the names without a comment say it")]
pub struct StallCase {
    pub stall_ns: Nanos,
    /// Ops per second, evenly spaced.
    pub rate_ops_per_s: f64,
    pub ops: u64,
    /// What the client measured, from due to done.
    pub p99_ns: Nanos,
    /// The same from sent to done: what a tool that times from the send would show.
    pub service_p99_ns: Nanos,
    pub expected_p99_ns: Nanos,
    /// Measured over expected, less one.
    pub error_ratio: f64,
    /// Ops that failed or were never sent.
    pub troubles: u64,
    /// The error is within the limit, the server did pause, and there were no troubles.
    pub held: bool,
    /// Verdict of the run.
    pub run: RunVerdict,
    /// Counts and times in the server's log; absent in older certificates.
    pub witness: Option<CrossCheck>,
}

/// How fast the program can send on time. Measured, not judged.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PunctualRate {
    /// Send lag p99 that counts as punctual.
    pub send_lag_p99_max_ns: Nanos,
    /// Highest rate that was; absent when none was.
    pub highest_ops_per_s: Option<f64>,
    /// Lowest rate that was not; absent when all were.
    pub missed_ops_per_s: Option<f64>,
    /// What was tried, in order.
    pub probes: Vec<PunctualProbe>,
}

/// One rate that was tried.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PunctualProbe {
    /// Requested ops per second.
    pub rate_ops_per_s: f64,
    /// How often it was tried; what follows is the middle one by send lag.
    pub tries: u32,
    /// 99th percentile of send lag.
    pub send_lag_p99_ns: Nanos,
    /// Done over due.
    pub done_ratio: f64,
    /// Send lag within the limit, and (nearly) every op done.
    pub punctual: bool,
}

impl QueueCase {
    /// `M/M/4 at 0.9`, and over what unless it is our own protocol.
    pub fn label(&self) -> String {
        let transport = match self.protocol.as_str() {
            "app" => String::new(),
            other => format!(" over {other}"),
        };
        format!("{}{transport} at {}", self.queue, (self.utilisation * 100.0).round() / 100.0)
    }
}

mod judgements;

pub use judgements::{
    CertificateNote, CheckedTime, CrossCheck, Judgement, JudgementCase, JudgementKind,
    RunEnvironment,
};
#[cfg(test)]
mod tests;
