//! `result.json`, format 1: what analysis derives from a bundle. Reports show this and compute
//! nothing. Absence is `null`; zero is a measurement.

mod generation;
mod generator;
mod journeys;
mod times;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::capacity::{Capacity, CapacitySearch};
use crate::consumers::{HostConsumers, ServerProfile};
use crate::cost::{self, Cost, CostFigure, CostOf, HostCost};
use crate::counters::{Counter, with_counters};
use crate::disclosure::Disclosure;
use crate::disks::DiskUse;
use crate::event::{Bound, CoreUser, ResourceUse, UnexpectedCount};
use crate::finding::{Finding, Rule};
use crate::gate::GateResult;
use crate::goodput::Goodput;
use crate::hint::{Hint, RunHint};
use crate::late::LateOps;
use crate::limit::{Limit, LimitSpan};
use crate::method::Parameter;
use crate::monitored::MonitoredHost;
use crate::named::named;
use crate::nonconformity::Nonconformities;
use crate::page_cache::PageCacheUse;
use crate::precision::ReachedPrecision;
use crate::recovery::Recovery;
use crate::sessions::Sessions;
use crate::shape::Shape;
use crate::suite::Metric;

pub use generation::{
    CountSummary, Endpoints, EndpointsPoint, Generation, Region, RegionName, SteadyStatus,
    SteadyVerdict, SteadyWindow, TokenSource, Wanting,
};
pub use generator::{AgentResult, Censored, GeneratorResult, TimeIntervals, Uncertainty};
pub use journeys::JourneySummary;
pub use times::{CompoundCalls, PhaseResult, ResponseHeatmap, TimeSummary, TimelineSecond};

/// Version of the result format.
pub const RESULT_FORMAT: u32 = 1;

/// The whole result.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunResult {
    /// Version of this format.
    pub format: u32,
    /// Name of the suite; `null` for a curve from elsewhere.
    pub suite: Option<SuiteSummary>,
    /// Targets as given, without passwords.
    pub targets: Vec<String>,
    /// Profile name; `null` for a curve from elsewhere.
    pub profile: Option<String>,
    /// Run seed.
    pub seed: Option<u64>,
    /// First instant of the run, RFC 3339.
    pub started: Option<String>,
    /// The command line that made the run.
    pub command: Vec<String>,
    /// Can the figures be trusted.
    pub verdict: Verdict,
    /// Results of the run's gates (`--fail-if`).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gates: Vec<GateResult>,
    /// What the ladder counts.
    pub axis: Axis,
    /// The headline.
    pub summary: Summary,
    /// How the load changed, as the user wrote it: the points are its phases. Absent where each
    /// point has one load.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load_shape: Option<String>,
    /// Whether the server recovered from each pulse.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub recovery: Vec<Recovery>,
    /// The ladder, in order.
    pub points: Vec<PointResult>,
    /// Steps of the search for the peak; not part of the ladder.
    pub probes: Vec<PointResult>,
    /// Hosts that monitors watched, this one first, each with its role.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub monitored_hosts: Vec<MonitoredHost>,
    /// Signs that point at a known cause, with the points of the ladder that show them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hints: Vec<RunHint>,
    /// Every parameter that deviates from the published method.
    pub departures: Vec<String>,
    /// Every parameter of the run and the method's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub method: Vec<Parameter>,
    /// Where the servers' replies differ from their specification and mean the same: in set-up and
    /// in all load points.
    #[serde(default, skip_serializing_if = "Nonconformities::is_empty")]
    pub nonconformities: Nonconformities,
    /// Functions that the server's processor time went to, where it was profiled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_profile: Option<ServerProfile>,
    /// What is needed to repeat the run.
    pub disclosure: Option<Disclosure>,
}

/// The suite, as the report describes it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SuiteSummary {
    /// Short name.
    pub name: String,
    /// One line.
    pub title: String,
    /// The method it follows.
    pub source: String,
    /// Mean service time above which the suite does not count a load point; absent without one.
    /// Suites that have it report an overall response time with their peak.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_cap_ms: Option<f64>,
    /// What the headline counts.
    #[serde(default, skip_serializing_if = "Metric::is_ops")]
    pub metric: Metric,
}

/// Can the figures be trusted.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Verdict {
    /// Every rule was checked and kept.
    pub valid: bool,
    /// Why not.
    pub reasons: Vec<Finding>,
    /// What a reader must still know.
    pub warnings: Vec<Finding>,
}

/// What the ladder counts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Axis {
    /// `requested load`, `clients` or `think time`.
    pub name: String,
    /// `ops/s`, `clients`, `s`.
    pub unit: String,
}

/// The headline figures.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Summary {
    /// What `value` is: `highest sustained ops/s`.
    pub metric: String,
    /// The figure; `null` when no point is valid.
    pub value: Option<f64>,
    /// Its unit.
    pub unit: String,
    /// Is the figure the server's limit, or no more than the load requested of it?
    #[serde(default)]
    pub bound: Bound,
    /// Highest achieved rate of any point of the ladder, valid or not.
    pub peak_ops_per_s: Option<f64>,
    /// Highest application byte rate of any point.
    pub peak_bytes_per_s: Option<f64>,
    /// Uncertainty interval of `value`, in its unit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value_interval: Option<[f64; 2]>,
    /// Area under response time over throughput, by both definitions.
    pub overall_response_ms: OverallResponse,
    /// The same with every mean at the low and at the high end of its uncertainty interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overall_response_interval_ms: Option<[OverallResponse; 2]>,
    /// Overall score of suites that have one, in transactions per second.
    pub score: Option<f64>,
    /// Uncertainty interval of the score: computed with every point's throughput at the low and at
    /// the high end of its own interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub score_interval: Option<[f64; 2]>,
    /// How it was made, or why there is none; absent where the suite has no score.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub score_note: Option<String>,
    /// What limited the run, as far as known, for a person.
    pub limit: Option<String>,
    /// The same as facts: what limited the run, from which load on. Empty where nothing did.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub limits: Vec<LimitSpan>,
    /// How the peak was found, if it was searched.
    pub peak_search: Option<String>,
    /// The highest load within the requested limits; `null` where none was found or none
    /// requested.
    pub capacity: Option<Capacity>,
    /// How it was searched; absent where none was requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capacity_search: Option<CapacitySearch>,
    /// The shape of throughput over load; absent where the ladder has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub curve: Option<Shape>,
    /// The ladder by the rules of MLPerf Endpoints, of suites that follow them. No MLPerf result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endpoints: Option<Endpoints>,
}

named! {
    /// Why a valid load point is left out of the headline. A finding about the server, no fault of
    /// the measurement.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
    pub enum NotCounted {
        /// Its mean service time is above the suite's cap.
        Cap = "cap",
        /// The server did not sustain the requested load.
        NotHeld = "not_held",
        /// The server sent more errors than the suite allows.
        Errors = "errors",
        /// The server went away.
        ServerLost = "server_lost",
    }
}

/// Overall response time, in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OverallResponse {
    /// From an added (0, 0) point to the peak, divided by the peak.
    pub origin: Option<f64>,
    /// Between first and last point, divided by their distance.
    pub span: Option<f64>,
}

with_counters! {
    /// One load point.
    #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct PointResult counts Option<u64> {
        /// Position in the ladder from 1, or of the probe.
        pub position: u32,
        /// Stem of the point's files in the bundle; `null` for a curve from elsewhere.
        pub stem: Option<String>,
        /// Requested load, on the axis; where it changes, its mean.
        pub requested: f64,
        /// The phase of a shape that the point is; absent where its load stays the same.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub phase: Option<PhaseResult>,
        /// Ops due in the window, per second; `null` for closed loads and foreign curves.
        pub offered_ops_per_s: Option<f64>,
        /// Ops finished without error in the window, per second.
        pub achieved_ops_per_s: Option<f64>,
        /// Application bytes per second in the window, both ways, of suites whose metric it is.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub achieved_bytes_per_s: Option<f64>,
        /// Mean think time in seconds, on a ladder of think times, where `requested` is the method's.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub think_s: Option<f64>,
        /// Closed loads: iterations of several ops that ended in the window, a think time before each.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub iterations: Option<u64>,
        /// Requested clients.
        pub clients_requested: Option<u32>,
        /// Clients that took part to the end of the window.
        pub clients_participating: Option<u32>,
        /// Length of the window.
        pub seconds: Option<f64>,
        /// done − due.
        pub response_ns: Option<TimeSummary>,
        /// done − sent.
        pub service_ns: Option<TimeSummary>,
        /// sent − due.
        pub send_lag_ns: Option<TimeSummary>,
        /// done − arrived: the generator's own delay in reading.
        pub receive_lag_ns: Option<TimeSummary>,
        /// Uncertainty intervals of the response time.
        pub response_interval_ns: Option<TimeIntervals>,
        /// Uncertainty intervals of the service time.
        pub service_interval_ns: Option<TimeIntervals>,
        /// Uncertainty interval of `achieved_ops_per_s`: `[low, high]`.
        pub achieved_interval_ops_per_s: Option<[f64; 2]>,
        /// What the intervals of the headline figures are made of: `response_p50_ns`,
        /// `response_p99_ns`, `response_mean_ns`, `service_mean_ns`, `achieved_ops_per_s`.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        pub uncertainty: BTreeMap<String, Uncertainty>,
        /// How precise the figure of `--until` is; absent without it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub precision: Option<ReachedPrecision>,
        /// Share of the replies whose `arrived` is the kernel's stamp; the others' is only bounded.
        pub arrived_stamped_ratio: Option<f64>,
        /// Response time at many percentiles, for a chart: pairs of (percentile, nanoseconds).
        pub response_percentiles: Vec<(f64, u64)>,
        /// Response times in buckets, without the empty ones: pairs of the longest time in a
        /// bucket, in nanoseconds, and its ops.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        pub response_histogram: Vec<(u64, u64)>,
        /// How response times lay within the window, for a heat map; absent without times.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub response_over_time: Option<ResponseHeatmap>,
        /// What was generated; absent where replies are no streams of output.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub generation: Option<Generation>,
        /// Application bytes of failed ops, which are in no other figure; absent where there are
        /// none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub failed_bytes: Option<u64>,
        /// Ops that kept the suite's limits of a good one; absent where it has none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub goodput: Option<Goodput>,
        /// By op name.
        pub ops: BTreeMap<String, OpResult>,
        /// The sessions that the clients opened and kept; absent where they keep none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub sessions: Option<Sessions>,
        /// Journeys of users; absent where there are none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub journeys: Option<JourneySummary>,
        /// Compound calls; absent where the protocol has none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub compound_calls: Option<CompoundCalls>,
        /// By error class.
        pub errors: BTreeMap<String, u64>,
        /// Statuses other than expected.
        pub unexpected: Vec<UnexpectedCount>,
        /// Samples of errors, for a person.
        pub error_samples: Vec<String>,
        /// Ops that were not sent or not finished: figures of the response time that depend on them
        /// are lower bounds. `null` where there are none, and in bundles of earlier versions.
        pub censored: Option<Censored>,
        /// Requests of a replay that were sent late; absent where none was.
        #[serde(default, skip_serializing_if = "LateOps::is_empty")]
        pub late: LateOps,
        /// Mean service time of the point's first ops, which met a server with little to do.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub first_service_ns: Option<f64>,
        /// Where replies differ from their specification and mean the same.
        #[serde(default, skip_serializing_if = "Nonconformities::is_empty")]
        pub nonconformities: Nonconformities,
        /// The agents; empty where one program made the load.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        pub agents: Vec<AgentResult>,
        /// The generator's own health.
        pub generator: GeneratorResult,
        /// One entry a second.
        pub timeline: Vec<TimelineSecond>,
        /// By target, when there are several.
        pub per_target: Vec<TargetResult>,
        /// Use of hosts and processes in the window, as the monitors saw it.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        pub resources: Vec<ResourceUse>,
        /// Size of the data on all servers that the ops chose from.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub data_set_bytes: Option<u64>,
        /// Use of each disk of servers and databases; disks whose role is not known come last.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        pub disks: Vec<DiskUse>,
        /// How often the server read its disks instead of its memory; absent where its disks were
        /// not monitored.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub page_cache: Option<PageCacheUse>,
        /// What an op cost the hosts that were watched.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        pub cost: Vec<HostCost>,
        /// Programs other than the server that may run on its cores and used CPU time in the
        /// window.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        pub server_core_users: Vec<CoreUser>,
        /// Where the processor time of each host went whose processes could be read.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        pub consumers: Vec<HostConsumers>,
        /// Every rule was kept.
        pub valid: bool,
        /// Why not.
        pub reasons: Vec<Finding>,
        /// What a reader must still know.
        pub warnings: Vec<Finding>,
        /// Why the point is left out of the headline although it may be valid: the server did not
        /// sustain the load, sent errors, or was slower than the suite's cap. This is no fault of
        /// the measurement and does not affect `valid`.
        pub not_counted: Option<NotCounted>,
        /// The same for a person.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub not_counted_because: Option<Finding>,
        /// What limited the point.
        #[serde(default)]
        pub limit: Limit,
        /// Signs that point at a known cause.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        pub hints: Vec<Hint>,
        /// The mix's score in transactions per second, of suites that have one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub score: Option<f64>,
    }
}

impl RunResult {
    /// The server went away in a load point that was not made again.
    pub fn server_lost(&self) -> Option<&Rule> {
        let mut points = self.points.iter().chain(&self.probes);
        let lost = points.find(|point| point.not_counted == Some(NotCounted::ServerLost))?;
        lost.not_counted_because.as_ref().map(|finding| &finding.rule)
    }
}

impl PointResult {
    /// May the point's figures enter the result of the run? Every rule was kept, and the suite
    /// does not leave it out.
    pub const fn counts(&self) -> bool {
        self.valid && self.not_counted.is_none()
    }

    /// A figure of cost over all hosts of a kind.
    pub fn cost_of(&self, of: CostOf, figure: CostFigure) -> Option<Cost> {
        cost::cost_of(&self.cost, of, figure)
    }

    /// What the server spent, and whose figure that is.
    pub fn server_cost(&self, figure: CostFigure) -> Option<(CostOf, Cost)> {
        cost::server_cost(&self.cost, figure)
    }
}

/// One op of a point.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OpResult {
    /// Ops due in the window that ended.
    pub count: u64,
    /// Failed.
    pub errors: u64,
    /// Failed as expected.
    pub expected_failures: u64,
    /// Of all ops that ended within the window, this part was of this kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share_ratio: Option<f64>,
    /// The part the method requires; absent when the mix is not fixed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wanted_ratio: Option<f64>,
    /// done − due.
    pub response_ns: Option<TimeSummary>,
    /// done − sent.
    pub service_ns: Option<TimeSummary>,
    /// Of a page: last byte of its last reply, redirects included − due of its first request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub page_ns: Option<TimeSummary>,
    /// Its uncertainty intervals.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub page_interval_ns: Option<TimeIntervals>,
    /// Part of the pages that were complete within the limit of a good one; those that failed were
    /// not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub good_ratio: Option<f64>,
    /// Part of the pages that were complete within the limit of a tolerable one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tolerable_ratio: Option<f64>,
    /// First chunk of the reply − due, where replies are timed chunk by chunk.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_piece_ns: Option<TimeSummary>,
    /// From each chunk of a reply to the next.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub piece_gap_ns: Option<TimeSummary>,
}

/// One target's share of a point.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TargetResult {
    /// As given, without password.
    pub target: String,
    /// Ops finished without error, per second.
    pub achieved_ops_per_s: f64,
    /// Ops that failed.
    pub errors: u64,
    /// Application bytes read.
    pub bytes_read: u64,
    /// Application bytes written.
    #[serde(default)]
    pub bytes_written: u64,
}
