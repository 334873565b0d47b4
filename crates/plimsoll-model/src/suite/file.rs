//! A suite as it is in a file: optional keys, the bounds of numbers, and its schema.

use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::IgnoredAny;

use super::{
    Arrivals, CLIENTS_MAX, Conditioning, EndpointsRules, InterArrival, LADDER_POINTS_MAX, LoadSpec,
    Metric, OPS_MAX, OnClientFailure, Origins, Profile, Profiles, Rules, Score, StartDelay, Think,
};
use crate::goodput::GoodLimits;
use crate::units::{Nanos, SpanText, span_serde};

/// A suite as it is in a file.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SuiteFile {
    /// Version of this format.
    #[serde(rename = "format")]
    pub(super) _format: u32,
    /// Short name, as typed after `plimsoll run`.
    pub(super) name: String,
    /// One line for a person.
    pub(super) title: String,
    /// What question the suite answers, and how.
    #[serde(default)]
    pub(super) about: String,
    /// The published method it follows.
    #[serde(default)]
    pub(super) source: String,
    /// Protocol whose folder reads `[workload]`.
    pub(super) protocol: String,
    /// An op without a reply after this long has failed.
    #[serde(with = "span_serde", default = "default_op_timeout")]
    #[schemars(with = "String")]
    pub(super) op_timeout: Nanos,
    /// What the headline counts.
    #[serde(default)]
    pub(super) metric: Metric,
    /// What is done with the server's caches before a load point.
    #[serde(default)]
    pub(super) conditioning: Conditioning,
    /// How ops arrive.
    pub(super) load: LoadTable,
    /// The sequence of load points.
    #[serde(default)]
    pub(super) ladder: LadderTable,
    /// When a point is valid.
    #[serde(default)]
    pub(super) rules: Rules,
    /// Timings and scale by name.
    #[serde(default)]
    pub(super) profiles: ProfilesTable,
    /// One figure for each load point and one for the ladder; absent for most methods.
    #[serde(default)]
    pub(super) score: Option<Score>,
    /// What an op must keep to be a good one.
    #[serde(default)]
    pub(super) goodput: Option<GoodLimits>,
    /// The ladder is checked by the rules of MLPerf Endpoints.
    #[serde(default)]
    pub(super) endpoints: Option<EndpointsRules>,
    /// The protocol's own table.
    #[serde(default, rename = "workload")]
    #[schemars(with = "serde_json::Map<String, serde_json::Value>")]
    pub(super) _workload: IgnoredAny,
    /// Where the parameters come from.
    #[serde(default)]
    pub(super) origins: Origins,
}

/// How ops arrive. Keys of the other mode may stay, since the command line may change the
/// load.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct LoadTable {
    /// Whether a client waits for the reply to its last op.
    pub(super) mode: LoadMode,
    /// Open: whose schedule it is.
    #[serde(default)]
    pub(super) arrivals: Arrivals,
    /// Open: how far ops lie apart.
    #[serde(default)]
    pub(super) gaps: InterArrival,
    /// Open: simulated clients (`per_client`) or the pool that serves the schedule (`shared`,
    /// `sessions`).
    #[serde(default = "default_clients")]
    #[schemars(range(min = 1, max = CLIENTS_MAX))]
    pub(super) clients: u32,
    /// Open: ops that may wait for a free connection, over all clients.
    #[serde(default = "default_backlog")]
    #[schemars(range(min = 1, max = 1 << 24))]
    pub(super) backlog_ops_max: u32,
    /// Open: file with the rate over time that `--shape log` plays, relative to the suite's: columns
    /// `seconds,rate_per_s`.
    #[serde(default)]
    pub(super) log: Option<String>,
    /// Closed: pause before each piece of work.
    #[serde(default)]
    pub(super) think: Think,
    /// Closed: each client starts at a random instant within this span; `auto`: out of step, after
    /// what is left of a think time or within half of the warm-up.
    #[serde(default)]
    #[schemars(with = "String")]
    pub(super) start_delay: StartDelay,
    /// Closed: what happens to the point when a client cannot continue.
    #[serde(default)]
    pub(super) on_client_failure: OnClientFailure,
}

#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum LoadMode {
    /// A schedule that does not wait for replies; the ladder's unit is ops/s.
    Open,
    /// Each client sends its next op only after the last reply; the ladder's unit is clients.
    Closed,
}

const fn default_op_timeout() -> Nanos {
    Nanos::from_secs(10)
}

const fn default_clients() -> u32 {
    64
}

const fn default_backlog() -> u32 {
    65_536
}

/// The sequence of load points. Keys of the other kinds may stay.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct LadderTable {
    /// By default `auto` for an open load and `points` for a closed one.
    pub(super) kind: Option<LadderKind>,
    /// Kind `points`: the loads in ops/s (open) or clients (closed).
    pub(super) points: Option<Vec<f64>>,
    /// Kind `peak`: the highest load.
    pub(super) peak: Option<f64>,
    /// Kinds `peak` and `auto`: how many points.
    #[schemars(range(min = 1, max = LADDER_POINTS_MAX))]
    pub(super) steps: Option<u32>,
    /// Kind `auto`: share of the re-verified peak that the last point requests.
    #[schemars(range(min = 0.01, max = 1.0))]
    pub(super) headroom: Option<f64>,
    /// Kind `think`: simulated clients of every point.
    #[schemars(range(min = 1, max = CLIENTS_MAX))]
    pub(super) clients: Option<u32>,
    /// Kind `think`: mean think times, before the profile's scale.
    pub(super) thinks: Option<Vec<SpanText>>,
}

#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum LadderKind {
    /// The loads named, in their order.
    Points,
    /// Evenly spaced loads up to a peak that is named.
    Peak,
    /// Evenly spaced loads up to a peak that is searched.
    Auto,
    /// The same clients with one think time after the other.
    Think,
}

#[derive(Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct ProfilesTable {
    pub(super) full: ProfileTable,
    pub(super) standard: ProfileTable,
    pub(super) quick: ProfileTable,
    pub(super) demo: ProfileTable,
}

/// A suite's values for a profile.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct ProfileTable {
    /// Load before measuring.
    pub(super) warm_up: Option<SpanText>,
    /// The measurement window.
    pub(super) measure: Option<SpanText>,
    /// Load after the window, not counted.
    pub(super) ramp_down: Option<SpanText>,
    /// Longest wait after the load for ops still under way.
    pub(super) drain: Option<SpanText>,
    /// The window is over when this many ops have ended in it, if it was not before.
    #[schemars(range(min = 1, max = OPS_MAX))]
    pub(super) ops: Option<u64>,
    /// Share of the method's file set (or segment) that is used; 1 is unscaled.
    #[schemars(range(min = 0.0001, max = 1.0))]
    pub(super) workload_scale: Option<f64>,
    /// Share of the method's think time and start delay that is used; 1 is unscaled.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub(super) think_scale: Option<f64>,
    /// Most clients of a ladder of think times; absent means all it names.
    #[schemars(range(min = 1, max = CLIENTS_MAX))]
    pub(super) clients_max: Option<u32>,
}

impl LoadTable {
    pub(super) fn finish(self) -> LoadSpec {
        match self.mode {
            LoadMode::Open => LoadSpec::Open {
                arrivals: self.arrivals,
                gaps: self.gaps,
                clients: self.clients,
                backlog_ops_max: self.backlog_ops_max,
                log: self.log,
            },
            LoadMode::Closed => LoadSpec::Closed {
                think: self.think,
                start_delay: self.start_delay,
                on_client_failure: self.on_client_failure,
            },
        }
    }
}

impl ProfilesTable {
    pub(super) fn finish(self) -> Profiles {
        let seconds = Nanos::from_secs;
        let millis = Nanos::from_millis;
        Profiles {
            full: self.full.with_defaults(seconds(300), seconds(300), seconds(30), 1.0),
            standard: self.standard.with_defaults(seconds(10), seconds(30), seconds(10), 1.0),
            quick: self.quick.with_defaults(seconds(1), seconds(3), seconds(1), 0.1),
            demo: self.demo.with_defaults(millis(200), millis(700), millis(300), 0.02),
        }
    }
}

impl ProfileTable {
    /// Fills absent values with the profile's own.
    fn with_defaults(self, warm_up: Nanos, measure: Nanos, drain: Nanos, scale: f64) -> Profile {
        let or = |written: Option<SpanText>, own| written.map_or(own, |SpanText(span)| span);
        Profile {
            warm_up: or(self.warm_up, warm_up),
            measure: or(self.measure, measure),
            ramp_down: or(self.ramp_down, Nanos::ZERO),
            drain: or(self.drain, drain),
            ops: self.ops,
            workload_scale: self.workload_scale.unwrap_or(scale),
            think_scale: self.think_scale.unwrap_or(scale),
            clients_max: self.clients_max,
        }
    }
}
