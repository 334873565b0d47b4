//! A benchmark method as data.
//!
//! A suite file is TOML. [`Suite::parse`] reads it, reports the location of every mistake, fills in
//! every default, and checks what can be checked before a packet is sent. A [`Suite`] cannot
//! contain a bad value, so nothing downstream checks again. The `[workload]` table belongs to the
//! protocol: a function of the caller reads it into a type of the protocol's own.

mod document;
mod file;
mod ladder;
mod metric;
mod origins;
mod read;
mod score;
mod values;
mod workload;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

pub use document::{Override, SuiteError, nearest};
pub use ladder::{LadderChange, Peak};
pub use metric::{Metric, SESSIONS_UNIT};
pub use origins::{Origin, Origins};
pub use read::Changes;
pub use score::{Score, ScoreKind};
pub use workload::{AsTable, Parameters, TableReader, Workload, percents, read_document, weights};

use crate::goodput::GoodLimits;
use crate::named::named;
use crate::units::{Nanos, parse_span, read_text, span_serde};

/// Version of the suite format this program reads and writes.
pub const SUITE_FORMAT: u32 = 1;
/// Load points a ladder may have; beyond it a run would not end within days.
pub const LADDER_POINTS_MAX: usize = 1_000;
/// Clients one load point may have: the limit of one generator's descriptors and memory.
pub const CLIENTS_MAX: u32 = 100_000;
/// Most ops that may be requested for a window.
pub const OPS_MAX: u64 = 1_000_000_000_000;
/// Highest load that may be requested; above what any one host generates.
pub const RATE_OPS_PER_S_MAX: f64 = 100_000_000.0;

/// A benchmark method as data.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Suite {
    /// Version of this format.
    pub format: u32,
    /// Short name, as typed after `plimsoll run`.
    pub name: String,
    /// One line for a person.
    pub title: String,
    /// What question the suite answers, and how.
    pub about: String,
    /// The published method it follows.
    pub source: String,
    /// Protocol whose folder reads `[workload]`.
    pub protocol: String,
    /// An op without a reply after this long has failed.
    #[serde(serialize_with = "span_serde::serialize")]
    pub op_timeout: Nanos,
    /// What the headline counts.
    pub metric: Metric,
    /// What is done with the server's caches before a load point.
    pub conditioning: Conditioning,
    /// How ops arrive.
    pub load: LoadSpec,
    /// The sequence of load points.
    pub ladder: Ladder,
    /// When a point is valid.
    pub rules: Rules,
    /// One figure for each load point and one for the ladder; absent for most methods.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub score: Option<Score>,
    /// What an op must keep to be a good one; absent: goodput is not reported.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub goodput: Option<GoodLimits>,
    /// The ladder is checked by the rules of MLPerf Endpoints.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub endpoints: Option<EndpointsRules>,
    /// Timings and scale by name.
    pub profiles: Profiles,
    /// The protocol's own parameters.
    pub workload: Workload,
    /// Where the parameters come from.
    #[serde(skip_serializing_if = "Origins::is_empty")]
    pub origins: Origins,
}

/// What is done with the server's caches before a load point.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Conditioning {
    /// Nothing: caches stay as preparation, the point before and the warm-up left them.
    #[default]
    AsFound,
    /// The data set is read once through the server.
    Warm,
    /// The page cache of the server's host is emptied; on this host only.
    Cold,
}

/// What happens to the load point when a client cannot continue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnClientFailure {
    /// It leaves the load; the others go on.
    #[default]
    Drop,
    /// The point ends and is invalid.
    Abort,
}

/// How ops arrive.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "mode", rename_all = "snake_case")]
pub enum LoadSpec {
    /// A schedule that does not wait for replies; the ladder's unit is ops/s, or sessions/s.
    Open {
        /// Whose schedule it is.
        arrivals: Arrivals,
        /// How far ops lie apart.
        gaps: InterArrival,
        /// Simulated clients (`per_client`) or the pool that serves the schedule (`shared`,
        /// `sessions`).
        clients: u32,
        /// Ops that may wait for a free connection, over all clients; the next one is not sent.
        backlog_ops_max: u32,
        /// File with the rate over time that `--shape log` plays.
        #[serde(skip_serializing_if = "Option::is_none")]
        log: Option<String>,
    },
    /// Each client sends its next op only after the last reply; the ladder's unit is clients.
    Closed {
        /// Pause before each piece of work.
        think: Think,
        /// When its clients start.
        start_delay: StartDelay,
        /// What happens to the point when a client cannot continue.
        on_client_failure: OnClientFailure,
    },
}

impl LoadSpec {
    /// The load is a number of sessions per second.
    pub const fn is_sessions(&self) -> bool {
        matches!(self, Self::Open { arrivals: Arrivals::Sessions, .. })
    }

    /// Unit of the loads of its ladder, unless that is one of think times.
    pub const fn unit(&self, metric: Metric) -> &'static str {
        match self {
            Self::Open { arrivals: Arrivals::Sessions, .. } => SESSIONS_UNIT,
            Self::Open { .. } => metric.ops_unit(),
            Self::Closed { .. } => "clients",
        }
    }

    /// What happens to the point when a client cannot continue. In open loads the others do its
    /// work; ops that nobody does are counted.
    pub const fn on_client_failure(&self) -> OnClientFailure {
        match self {
            Self::Open { .. } => OnClientFailure::Drop,
            Self::Closed { on_client_failure, .. } => *on_client_failure,
        }
    }
}

/// Whose arrival schedule an open load follows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Arrivals {
    /// Every client has its own schedule with an equal share of the rate.
    #[default]
    PerClient,
    /// One schedule, served by whichever client is free.
    Shared,
    /// One schedule of sessions, each made by a client that is free until it has ended. Further ops
    /// of a session follow from its replies and think times.
    Sessions,
}

/// How far apart the ops of a schedule are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum InterArrival {
    /// Exponential: a Poisson process, as independent users make.
    #[default]
    Exponential,
    /// Evenly spaced.
    Uniform,
}

/// When the clients of a closed load start. In a suite file a span, or `auto`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartDelay {
    /// Each at a random instant within this span: all together where it is zero.
    Within(Nanos),
    /// Out of step, so that no wave of requests that the generator made runs through the window:
    /// each after what is left of a think time, or, without think time, at a random instant of the
    /// first half of the warm-up. If the window is a count of ops, all clients start together.
    Auto,
}

impl StartDelay {
    const AUTO: &str = "auto";

    /// Within which span each client starts at a random instant, where the suite names one.
    pub const fn span(self) -> Nanos {
        match self {
            Self::Within(span) => span,
            Self::Auto => Nanos::ZERO,
        }
    }
}

impl Default for StartDelay {
    fn default() -> Self {
        Self::Within(Nanos::ZERO)
    }
}

impl Serialize for StartDelay {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Within(span) => span_serde::serialize(span, serializer),
            Self::Auto => serializer.serialize_str(Self::AUTO),
        }
    }
}

impl<'de> Deserialize<'de> for StartDelay {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        read_text(deserializer, "a span of time like \"30s\", or \"auto\"", |text| match text {
            Self::AUTO => Some(Self::Auto),
            _ => parse_span(text).map(Self::Within),
        })
    }
}

/// Think time of a closed load.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Think {
    /// Mean pause.
    #[serde(with = "span_serde")]
    #[schemars(with = "String")]
    pub mean: Nanos,
    /// Its distribution.
    pub distribution: ThinkDistribution,
}

named! {
    /// Distribution of think times.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    pub enum ThinkDistribution {
        /// Always the mean.
        #[default]
        Constant = "constant",
        /// Even from zero to twice the mean.
        Uniform = "uniform",
        /// Exponential around the mean.
        Exponential = "exponential",
    }
}

impl ThinkDistribution {
    /// Standard deviation, as a share of the mean.
    pub fn variation(self) -> f64 {
        match self {
            Self::Constant => 0.0,
            Self::Uniform => 3.0_f64.sqrt().recip(),
            Self::Exponential => 1.0,
        }
    }
}

/// The sequence of load points.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Ladder {
    /// These loads, in this order (ops/s for open loads, clients for closed ones).
    Points {
        /// The loads.
        points: Vec<f64>,
    },
    /// Evenly spaced loads up to a peak the user names.
    Peak {
        /// The highest load.
        peak: f64,
        /// How many points.
        steps: u32,
    },
    /// The peak is searched first; then evenly spaced loads up to `headroom` of it.
    Auto {
        /// How many points.
        steps: u32,
        /// Share of the re-verified peak that the last point requests.
        headroom: f64,
    },
    /// The same clients with one think time after the other, in this order.
    Think {
        /// Simulated clients of every point.
        clients: u32,
        /// Mean think times, before the profile's scale.
        #[serde(serialize_with = "span_serde::serialize_list")]
        thinks: Vec<Nanos>,
    },
}

impl Ladder {
    /// How many load points it will have.
    pub fn points_planned(&self) -> usize {
        match self {
            Self::Points { points } => points.len(),
            Self::Peak { steps, .. } | Self::Auto { steps, .. } => *steps as usize,
            Self::Think { thinks, .. } => thinks.len(),
        }
    }

    /// Evenly spaced loads `peak/steps, 2·peak/steps … peak`.
    pub fn evenly(peak: f64, steps: u32) -> Vec<f64> {
        (1..=steps).map(|k| peak * f64::from(k) / f64::from(steps)).collect()
    }
}

/// When a point is valid. Every limit has its source in the method or in `docs/validity.md`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Rules {
    /// The achieved load may differ from the schedule's by this share.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub rate_tolerance_ratio: f64,
    /// Share of ops that may fail.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub errors_max_ratio: f64,
    /// A point whose mean service time is above this is not counted; absent means no cap.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.001, max = 3.6e6))]
    pub response_cap_ms: Option<f64>,
    /// A worker busier than this limits the measurement, not the server.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub generator_cpu_max_ratio: f64,
    /// Send lag p99 may be this long, or a twentieth of response p50, whichever is larger.
    #[serde(with = "span_serde")]
    #[schemars(with = "String")]
    pub send_lag_p99_max: Nanos,
    /// Each op's share of the ops done may differ from the method's by this many percentage points.
    #[schemars(range(min = 0.0, max = 100.0))]
    pub op_mix_max_points: f64,
    /// Each target's ops may differ from an equal part of all by this share of that part, and each
    /// agent's from its workers' part; absent means not checked.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub target_share_max_ratio: Option<f64>,
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            rate_tolerance_ratio: 0.05,
            errors_max_ratio: 0.001,
            response_cap_ms: None,
            generator_cpu_max_ratio: 0.9,
            send_lag_p99_max: Nanos::from_millis(1),
            op_mix_max_points: 1.0,
            target_share_max_ratio: None,
        }
    }
}

/// How a ladder is checked by the rules of MLPerf Endpoints.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EndpointsRules {
    /// Equal parts of the window that take the place of passes over a data set.
    #[schemars(range(min = 4, max = 64))]
    pub passes: u32,
    /// Least length of a steady window.
    #[serde(with = "span_serde")]
    #[schemars(with = "String")]
    pub steady_min: Nanos,
}

/// The named profiles.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Profiles {
    /// The published timings; where a method published none, ours.
    pub full: Profile,
    /// The default: shorter, unscaled.
    pub standard: Profile,
    /// Everything scaled down; the whole run within 90 s.
    pub quick: Profile,
    /// For `plimsoll demo`: within 15 s a suite.
    pub demo: Profile,
}

/// Timings of a load point and the scale of the workload.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Profile {
    /// Load before measuring.
    #[serde(serialize_with = "span_serde::serialize")]
    pub warm_up: Nanos,
    /// The measurement window.
    #[serde(serialize_with = "span_serde::serialize")]
    pub measure: Nanos,
    /// Load after the window, not counted.
    #[serde(serialize_with = "span_serde::serialize")]
    pub ramp_down: Nanos,
    /// Longest wait after the load for ops still under way.
    #[serde(serialize_with = "span_serde::serialize")]
    pub drain: Nanos,
    /// The window is over when this many ops have ended in it, if it was not before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ops: Option<u64>,
    /// Share of the method's file set (or segment) that is used; 1 is unscaled.
    pub workload_scale: f64,
    /// Share of the method's think time and start delay that is used; 1 is unscaled.
    pub think_scale: f64,
    /// Most clients of a ladder of think times; absent means all it names.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clients_max: Option<u32>,
}

impl Profile {
    /// How many of a think-time ladder's clients are simulated.
    pub fn clients_used(&self, clients: u32) -> u32 {
        self.clients_max.map_or(clients, |max| clients.min(max))
    }
}

named! {
    /// Which profile a run uses.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    pub enum ProfileName {
        /// The published timings; where a method published none, ours.
        Full = "full",
        /// Shorter, unscaled.
        #[default]
        Standard = "standard",
        /// Scaled down.
        Quick = "quick",
        /// For the tour.
        Demo = "demo",
    }
}

impl ProfileName {
    /// The profile of that name.
    pub fn named(name: &str) -> Option<Self> {
        let all = [Self::Full, Self::Standard, Self::Quick, Self::Demo];
        all.into_iter().find(|profile| profile.as_str() == name)
    }
}

impl Profiles {
    /// The profile of that name, to change it.
    pub const fn get_mut(&mut self, name: ProfileName) -> &mut Profile {
        match name {
            ProfileName::Full => &mut self.full,
            ProfileName::Standard => &mut self.standard,
            ProfileName::Quick => &mut self.quick,
            ProfileName::Demo => &mut self.demo,
        }
    }

    /// The profile of that name.
    pub const fn get(&self, name: ProfileName) -> &Profile {
        match name {
            ProfileName::Full => &self.full,
            ProfileName::Standard => &self.standard,
            ProfileName::Quick => &self.quick,
            ProfileName::Demo => &self.demo,
        }
    }
}

impl Suite {
    /// The suite as TOML, every default explicit; [`Suite::parse`] reads it back as equal.
    pub fn to_toml(&self) -> String {
        toml::to_string_pretty(self).expect("a suite holds only what TOML can say")
    }
}
