//! A suite as a list of lines: path, name, value.

use toml::{Table, Value};

use crate::suite::{Ladder, LoadSpec, Origins, Profile, ProfileName, Suite, ThinkDistribution};
use crate::units::{Nanos, grouped, span_text};

/// Path of the load's kind.
pub(super) const MODE: &str = "load.mode";
/// Timings have the paths of the profile that the method is compared with.
pub(super) const PROFILE: &str = "profiles.full";
/// Its effect shows in the lines of think time and start delay.
pub(super) const THINK_SCALE: &str = "profiles.full.think_scale";

const THINK: &str = "load.think.mean";
const START_DELAY: &str = "load.start_delay";
const WORKLOAD: &str = "workload";
const ONLY_TOML_VALUES: &str = "a suite holds only what TOML can say";

/// One parameter of a suite.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Line {
    pub key: String,
    pub name: String,
    pub shown: Shown,
}

/// A value as it is shown.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Shown {
    /// A value.
    One(String),
    /// A table in one line.
    Table(Vec<(String, String)>),
}

impl Shown {
    pub(super) fn text(&self) -> String {
        match self {
            Self::One(text) => text.clone(),
            Self::Table(entries) => joined(entries.iter().filter(|(_, value)| value != "0")),
        }
    }

    /// This and the other: of tables what differs.
    pub(super) fn differences(&self, other: &Self) -> (String, String) {
        let (Self::Table(own), Self::Table(theirs)) = (self, other) else {
            return (self.text(), other.text());
        };
        let value = |entries: &[(String, String)], key: &str| {
            let matched = entries.iter().find(|(name, _)| name == key);
            matched.map_or_else(|| "0".to_owned(), |(_, value)| value.clone())
        };
        let keys: Vec<&String> = own.iter().map(|(key, _)| key).collect();
        let more = theirs.iter().map(|(key, _)| key).filter(|key| !keys.contains(key));
        let differing = keys.iter().copied().chain(more);
        let (mut left, mut right) = (Vec::new(), Vec::new());
        for key in differing.filter(|key| value(own, key) != value(theirs, key)) {
            left.push((key.clone(), value(own, key)));
            right.push((key.clone(), value(theirs, key)));
        }
        (joined(left.iter()), joined(right.iter()))
    }
}

fn joined<'e>(entries: impl Iterator<Item = &'e (String, String)>) -> String {
    entries.map(|(key, value)| format!("{} {value}", plain(key))).collect::<Vec<_>>().join(", ")
}

/// The parameters of a suite under a profile. A table with one entry in `origins` is one line, and
/// so is a table of numbers.
pub(super) fn lines(suite: &Suite, profile: ProfileName, origins: &Origins) -> Vec<Line> {
    let whole = Table::try_from(suite).expect(ONLY_TOML_VALUES);
    let profile = suite.profiles.get(profile);
    let mut lines = Vec::new();
    let mut table = |name: &str| {
        if let Some(value) = whole.get(name) {
            flatten(name, value, origins, &mut lines);
        }
    };
    ["metric", "load", "op_timeout"].into_iter().for_each(&mut table);
    scale_thinks(suite, profile, &mut lines);
    lines.push(line(LADDER, ladder_text(suite)));
    if let Ladder::Think { clients, .. } = suite.ladder {
        let clients = grouped(f64::from(profile.clients_used(clients)));
        lines.push(line("ladder.clients", clients));
    }
    timings(suite, profile, &mut lines);
    let mut table = |name: &str| {
        if let Some(value) = whole.get(name) {
            flatten(name, value, origins, &mut lines);
        }
    };
    let tables = ["conditioning", "rules", "score", "goodput", "endpoints", WORKLOAD];
    tables.into_iter().for_each(&mut table);
    lines
}

fn line(key: &str, text: impl Into<String>) -> Line {
    Line { key: key.to_owned(), name: name_of(key), shown: Shown::One(text.into()) }
}

fn flatten(path: &str, value: &Value, origins: &Origins, lines: &mut Vec<Line>) {
    let Value::Table(table) = value else {
        lines.push(line(path, text(value)));
        return;
    };
    let is_section = !path.contains('.');
    let one_line = table.values().all(is_number) || origins.names(path);
    if !is_section && one_line && !origins.name_below(path) {
        let shown = Shown::Table(entries("", table));
        lines.push(Line { key: path.to_owned(), name: name_of(path), shown });
        return;
    }
    for (key, value) in table {
        flatten(&format!("{path}.{key}"), value, origins, lines);
    }
}

/// A number, or a list of them.
fn is_number(value: &Value) -> bool {
    match value {
        Value::Array(values) => values.iter().all(is_number),
        value => value.is_float() || value.is_integer(),
    }
}

/// The values of a table and of the tables in it.
fn entries(prefix: &str, table: &Table) -> Vec<(String, String)> {
    let below = |(key, value): (&String, &Value)| match value {
        Value::Table(inner) => entries(&format!("{prefix}{key} "), inner),
        value => vec![(format!("{prefix}{key}"), text(value))],
    };
    table.iter().flat_map(below).collect()
}

fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Boolean(true) => "yes".to_owned(),
        Value::Boolean(false) => "no".to_owned(),
        Value::Float(number) => number.to_string(),
        Value::Array(values) if values.is_empty() => "none".to_owned(),
        Value::Array(values) => values.iter().map(text).collect::<Vec<_>>().join(", "),
        other => other.to_string(),
    }
}

/// Think time and start delay as the profile scales them.
fn scale_thinks(suite: &Suite, profile: &Profile, lines: &mut Vec<Line>) {
    let LoadSpec::Closed { think, start_delay, .. } = &suite.load else { return };
    if let Ladder::Think { .. } = suite.ladder {
        // The ladder sweeps it.
        lines.retain(|line| line.key != THINK);
    }
    if think.mean == Nanos::ZERO && think.distribution == ThinkDistribution::Constant {
        lines.retain(|line| line.key != "load.think.distribution");
    }
    for (key, span) in [(THINK, think.mean), (START_DELAY, start_delay.span())] {
        let scaled = Nanos::from_secs_f64(span.as_secs_f64() * profile.think_scale);
        let matched = lines.iter_mut().find(|line| line.key == key);
        if let Some(line) = matched.filter(|_| scaled != span) {
            let text = format!("{scaled} ({} × {})", span_text(span), profile.think_scale);
            line.shown = Shown::One(text);
        }
    }
}

fn timings(suite: &Suite, profile: &Profile, lines: &mut Vec<Line>) {
    let mut push = |key: &str, text: String| lines.push(line(&format!("{PROFILE}.{key}"), text));
    push("warm_up", span_text(profile.warm_up));
    push(
        "measure",
        match profile.ops {
            Some(ops) => format!("{} ops", grouped(ops as f64)),
            None => span_text(profile.measure),
        },
    );
    push("ramp_down", span_text(profile.ramp_down));
    push("drain", span_text(profile.drain));
    push("workload_scale", profile.workload_scale.to_string());
    if matches!(suite.load, LoadSpec::Closed { .. }) {
        push("think_scale", profile.think_scale.to_string());
    }
}

/// Parameters whose path is no good name.
const NAMES: [(&str, &str); 37] = [
    ("conditioning", "server's caches before a load point"),
    ("endpoints.passes", "parts of the window that stand for passes over the data set"),
    ("endpoints.steady_min", "steady window, at least"),
    ("generator.hosts", "hosts of the clients"),
    ("generator.runs", "runs in a row"),
    ("goodput.first_output", "a good op has its first output within"),
    ("goodput.response", "a good op ends within"),
    ("goodput.tpot", "a good op takes per output token at most"),
    ("ladder", "load points"),
    ("ladder.clients", "clients"),
    ("load.arrivals", "arrival schedule"),
    ("load.backlog_ops_max", "ops that may wait for a client, at most"),
    ("load.gaps", "gaps between arrivals"),
    ("load.mode", "load"),
    ("load.on_client_failure", "when a client fails"),
    ("load.start_delay", "start delay of a client, random up to"),
    ("load.think.distribution", "distribution of think times"),
    ("load.think.mean", "think time"),
    ("metric", "what the headline counts"),
    ("op_timeout", "timeout of an op"),
    ("profiles.full.drain", "wait for late replies, at most"),
    ("profiles.full.measure", "measurement per load point"),
    ("profiles.full.ramp_down", "ramp-down per load point"),
    ("profiles.full.think_scale", "scale of think time and start delay"),
    ("profiles.full.warm_up", "warm-up per load point"),
    ("profiles.full.workload_scale", "scale of the data"),
    ("rules.errors_max_ratio", "errors allowed, as a share of ops"),
    ("rules.generator_cpu_max_ratio", "generator's core busy, at most"),
    ("rules.op_mix_max_points", "op mix held within, percentage points"),
    ("rules.rate_tolerance_ratio", "requested load held within, as a share"),
    ("rules.response_cap_ms", "response cap (mean service time, ms)"),
    ("rules.send_lag_p99_max", "send lag p99, at most"),
    ("rules.target_share_max_ratio", "load even over the targets within, as a share"),
    ("workload.mib_per_op_per_s", "MiB of files per op/s"),
    ("workload.mix", "op mix, weights"),
    ("workload.segment_mib", "data segment of a client, MiB"),
    ("workload.workspace_mib", "workspace of a client, MiB"),
];

/// For a person.
pub(super) fn name_of(key: &str) -> String {
    match NAMES.iter().find(|(candidate, _)| *candidate == key) {
        Some((_, name)) => (*name).to_owned(),
        None => plain(key.split_once('.').map_or(key, |(_, rest)| rest)),
    }
}

fn plain(key: &str) -> String {
    key.replace('_', " ").replace('.', ": ")
}

/// Path of its line.
pub(super) const LADDER: &str = "ladder";

/// It is another than the method's. A peak that the user names instead of the search leaves the
/// ladder the method's.
pub(super) fn ladder_differs(own: &Ladder, method: &Ladder) -> bool {
    match (own, method) {
        (
            Ladder::Peak { steps, .. },
            Ladder::Peak { steps: expected, .. } | Ladder::Auto { steps: expected, .. },
        ) => steps != expected,
        (Ladder::Think { thinks, .. }, Ladder::Think { thinks: expected, .. }) => {
            thinks != expected
        }
        _ => own != method,
    }
}

/// `16 named: 1, 4, 8, 12 clients`.
fn ladder_text(suite: &Suite) -> String {
    match &suite.ladder {
        Ladder::Points { points } => {
            let unit = suite.load.unit(suite.metric);
            let loads = points.iter().map(|load| grouped(*load)).collect::<Vec<_>>().join(", ");
            format!("{}: {loads} {unit}", count(points.len()))
        }
        Ladder::Think { thinks, .. } => {
            let thinks = thinks.iter().map(|think| span_text(*think)).collect::<Vec<_>>();
            format!("{}: think times of {}", count(thinks.len()), thinks.join(", "))
        }
        Ladder::Peak { peak, steps } => format!("{steps} even ones up to {}", grouped(*peak)),
        Ladder::Auto { steps, headroom } if *headroom == 1.0 => {
            format!("{steps} even ones up to the peak")
        }
        Ladder::Auto { steps, headroom } => {
            format!("{steps} even ones up to {headroom} of the peak")
        }
    }
}

fn count(points: usize) -> String {
    match points {
        1 => "one named".to_owned(),
        several => format!("{several} named"),
    }
}
