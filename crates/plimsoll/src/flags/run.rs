//! Flags of `plimsoll run`, and the values of a suite that they set.

use std::path::PathBuf;
use std::str::FromStr;

use clap::builder::TypedValueParser;
use clap::{Args, ValueEnum};
use plimsoll_model::assignment::{Pacing, Priority};
use plimsoll_model::comparison::RatioGate;
use plimsoll_model::condition::ConditionError;
use plimsoll_model::gate::Gate;
use plimsoll_model::goodput::GoodLimits;
use plimsoll_model::server_profile::ProfileAt;
use plimsoll_model::suite::{
    LADDER_POINTS_MAX, LadderChange, LoadSpec, Override, Peak, ProfileName, Suite,
};
use plimsoll_model::units::Nanos;
use plimsoll_model::until::Precision;
use plimsoll_protocol::{DEFAULT_SEED, InputFile};
use plimsoll_run::protocols;

use super::observers::ObserverArgs;
use super::recorded::OF_REPLAYS;
use super::url::{
    OF_JOURNEYS, OF_PAGES, OF_REQUESTS, OF_WEB, Set, ThinkArg, URL_SUITE, USERS_SUITE, UrlArgs,
    has_users,
};
use super::values::{one_of, parse_override, parse_peak, parse_point, parse_profile_at};
use super::{AgentArgs, Given, LlmArgs, Output, ReplayArgs, llm};
use crate::exit::Failure;
use crate::suite_source;

/// Prefix of keys that declare a fact for the disclosure instead of setting the suite.
pub(crate) const STATEMENT_PREFIX: &str = "disclosure.";
/// Name prefix of suites for web servers.
const WEB_SUITES: &str = "web-";

#[derive(Clone, Debug, Args)]
pub(crate) struct RunArgs {
    // First: it reads the matches before other fields take their values from them.
    #[command(flatten)]
    pub given: Given,
    /// Name of a shipped suite, or path of a suite file
    pub suite: String,
    /// Servers: http(s)://host:port/, nfs://host/export, smb://user@host/share, app://host:port/,
    /// builtin:, or managed:nginx, caddy, ganesha, samba or llama;
    /// PLIMSOLL_PASSWORD holds the user's password
    #[arg(required = true, value_name = "TARGET")]
    pub targets: Vec<String>,
    #[command(flatten)]
    pub ladder: LadderArgs,
    /// Timings and scale of the workload
    #[arg(long, default_value = "standard", value_name = "NAME", value_parser = profiles())]
    pub profile: ProfileName,
    /// Where the bundle goes; must be empty or absent [default: runs/SUITE-TIME]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Repeat the run in this bundle: its suite with all settings, seed, profile and load points,
    /// so that the two can be compared point by point; --set changes a value
    #[arg(long, value_name = "DIR", conflicts_with_all = ["points", "peak", "steps", "seed", "profile", "clients", "rate"])]
    pub like: Option<PathBuf>,
    /// One seed reproduces schedule and data
    #[arg(long, value_name = "N", default_value_t = DEFAULT_SEED)]
    pub seed: u64,
    /// Whole runs to make, one after the other, each with its own bundle (DIR-1, DIR-2 …)
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub repeat: u32,
    /// Which runs of --repeat are reported and decide the exit code; with last, the earlier runs
    /// condition the server as for published runs
    #[arg(long, value_enum, default_value_t = Reported::All, value_name = "WHICH")]
    pub report: Reported,
    /// Set a value of the suite, or disclosure.KEY for a fact of your own; may be given often
    #[arg(long, value_name = "KEY=VALUE", value_parser = parse_override)]
    pub set: Vec<Override>,
    /// Further content of the disclosure: an inventory of the server's host (`plimsoll inventory
    /// --json` there), or a system.toml with what no program can read; distinguished by content,
    /// may be given often
    #[arg(long, value_name = "FILE")]
    pub system: Vec<PathBuf>,
    /// Another host to watch besides this one: agents (those of --agents), ssh://user@host, http://host:9100/metrics
    /// (node_exporter, windows_exporter) or snmp://community@host; may be given often. Its role is found,
    /// or given: server=URL, database=URL, network=URL, client=URL.
    /// PLIMSOLL_SNMP_COMMUNITY holds a community, or the variable in snmp://env:VARIABLE@host
    #[arg(long, value_name = "[ROLE=]URL")]
    pub monitor: Vec<String>,
    /// File with the hosts of the test, how each is monitored, the agents, and what no program can
    /// read: instead of --system, --monitor and --agents (docs/testbed.md)
    #[arg(long, value_name = "FILE")]
    pub testbed: Option<PathBuf>,
    /// Profile the server with perf for ten seconds, at a load point of its own after all others:
    /// at the load with the highest throughput (or the capacity), or at LOAD. A server on another
    /// host is profiled through --monitor ssh://
    #[arg(long, value_name = "LOAD|peak", num_args = 0..=1, require_equals = true, default_missing_value = "peak", value_parser = parse_profile_at)]
    pub profile_server: Option<ProfileAt>,
    /// Worker threads of the generator, one core each [default: depends on the number of cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=256))]
    pub workers: Option<u32>,
    /// How workers wait for the next due time
    #[arg(long, default_value = "auto", value_name = "HOW", value_parser = pacing())]
    pub pacing: Pacing,
    /// Scheduling priority of the worker threads
    #[arg(long, default_value = "auto", value_name = "HOW", value_parser = priorities())]
    pub priority: Priority,
    #[command(flatten)]
    pub agents: AgentArgs,
    #[command(flatten)]
    pub observers: ObserverArgs,
    /// Limits of a good op, for example first_output<500ms,tpot<50ms,response<10s: the result shows
    /// which part of the ops met them; failed ops never do
    #[arg(long, value_name = "LIMITS")]
    pub goodput: Option<GoodLimits>,
    /// Measure each load point until half the interval of a figure is this share of it: p99+-5%.
    /// Pilots find how long that takes, then a window of its own is measured. Both together last
    /// --for at most [default: ten windows of the profile]
    #[arg(long, value_name = "FIGURE±SHARE", conflicts_with_all = ["requests", "hold", "trace"])]
    pub until: Option<Precision>,
    /// Change the load during the run: "ramp 0..500 in 1m, hold 5m, pulse 3x for 10s, hold 5m", in
    /// ops/s, sessions/s or clients; 3x is three times the load before. FILE.csv has the columns
    /// seconds,load; log is the log that the suite names. --rate, --sessions or --clients give the
    /// load that it begins with (docs/shapes.md)
    #[arg(long, value_name = "PHASES|FILE.csv|log")]
    pub shape: Option<String>,
    #[command(flatten)]
    pub gates: GateArgs,
    #[command(flatten)]
    pub output: Output,
    // Last: their headings would apply to every flag after them.
    #[command(flatten)]
    pub url: UrlArgs,
    #[command(flatten)]
    pub llm: LlmArgs,
    #[command(flatten)]
    pub replay: ReplayArgs,
}

impl RunArgs {
    /// The first given flag of suite web-url that not all suites for web servers have.
    pub(crate) fn first_of_url(&self) -> Option<String> {
        self.given.first::<UrlArgs>(|id| !OF_WEB.contains(&id))
    }

    /// The first given flag of language model suites only.
    pub(crate) fn first_of_llm(&self) -> Option<String> {
        self.given.first::<LlmArgs>(|_| true)
    }

    /// Takes the think time out of the flags, as if it were not given.
    pub(crate) fn take_think(&mut self) -> Option<ThinkArg> {
        self.given.forget("think");
        self.url.think.take()
    }

    /// Takes `--for` out of the flags, as if it were not given.
    pub(crate) fn take_length(&mut self) -> Option<Nanos> {
        self.given.forget("length");
        self.url.length.take()
    }

    /// Values of the suite that flags of its protocol set, and the recorded load of `--trace`.
    pub(crate) fn changes(&self) -> Result<(Vec<Override>, Option<InputFile>), Failure> {
        let file = self.suite_of_file()?;
        let is_replay = file.as_ref().is_some_and(|suite| suite.workload.is_recorded());
        let has_journeys = file.as_ref().is_some_and(|suite| suite.workload.has_journeys());
        let is_url = self.suite == URL_SUITE;
        let is_users = has_users(&self.suite) || has_journeys;
        let is_open = file.is_some_and(|suite| matches!(suite.load, LoadSpec::Open { .. }));
        self.check_replay(is_replay)?;
        let is_llm = self.sets_llm()?;
        self.check_users(is_users)?;
        if let Some(flag) =
            self.first_of_url().filter(|_| !is_url && !is_users && !is_llm && !is_replay)
        {
            return Err(Failure::wrong(format!(
                "{flag} belongs to suite {URL_SUITE}; for {} use --points, --peak or --set",
                self.suite
            )));
        }
        let is_of_web =
            is_llm || self.suite.starts_with(WEB_SUITES) || self.suite.contains(['/', '.']);
        let of_web = self.given.first::<UrlArgs>(|id| OF_WEB.contains(&id));
        if let Some(flag) = of_web.filter(|_| !is_of_web) {
            return Err(Failure::wrong(format!(
                "{flag} belongs to suites {URL_SUITE} and web-static and to language model suites, \
                 not to {}",
                self.suite
            )));
        }
        let mut set = Set::new(if is_llm { llm::TRANSPORT } else { "workload" });
        if is_url || is_llm || is_users {
            // A shape without clients is one of requests per second.
            let of_shape = self.shape.as_ref().filter(|_| self.url.clients.is_none());
            let peak = self.ladder.peak.or(of_shape.map(|_| Peak::Auto));
            let peak = peak.filter(|_| !is_users);
            self.url.set_load((peak, is_open && is_users), &mut set)?;
        }
        if is_replay {
            self.url.set_connections(&mut set);
        }
        if is_url || is_users {
            self.url.set_clients(&mut set)?;
        }
        self.url.set_think(is_url, &mut set);
        self.url.set_timings(self.profile, &mut set);
        self.url.set_requests(&mut set)?;
        self.url.set_transport(&mut set);
        let trace = match (is_llm, is_replay) {
            (true, _) => self.set_llm(&mut set)?,
            (_, true) => {
                let (name, of_url) = (&self.suite, (&self.url, self.profile));
                Some(self.replay.set_replay(name, &self.suite_values(), of_url, &mut set)?)
            }
            (false, false) => None,
        };
        Ok((set.values, trace))
    }

    /// Values of `--set` that are of the suite.
    fn suite_values(&self) -> Vec<Override> {
        self.set.iter().filter(|item| !item.path.starts_with(STATEMENT_PREFIX)).cloned().collect()
    }

    /// The suite, unless it is a shipped one.
    fn suite_of_file(&self) -> Result<Option<Suite>, Failure> {
        match protocols::shipped(&self.suite) {
            Some(_) => Ok(None),
            None => suite_source::find(&self.suite, &self.suite_values()[..]).map(Some),
        }
    }

    /// Refuses flags of loads and requests for a replay, and those of recorded loads for others.
    fn check_replay(&self, is_replay: bool) -> Result<(), Failure> {
        if !is_replay {
            return match self.replay.speed.filter(|_| self.llm.trace.is_none()) {
                None => Ok(()),
                Some(_) => Err(Failure::wrong(format!(
                    "--speed belongs to recorded loads, and {} is none: name the suite of a replay \
                     (plimsoll derive), or write --trace FILE for language models",
                    self.suite
                ))),
            };
        }
        let of_ladder = self.given.first::<LadderArgs>(|_| true);
        let other = |id: &str| !OF_REPLAYS.contains(&id) && !OF_WEB.contains(&id);
        match of_ladder.or_else(|| self.given.first::<UrlArgs>(other)) {
            None => Ok(()),
            Some(flag) => Err(Failure::wrong(format!(
                "{flag}: the requests of a replay and their times are those of its file; write \
                 --speed K for another speed, --for SPAN for its beginning alone, --connections N \
                 for the connections that send it"
            ))),
        }
    }

    /// Refuses flags of single requests for users, and those of journeys for other suites.
    fn check_users(&self, is_users: bool) -> Result<(), Failure> {
        if !is_users {
            return match self.given.first::<UrlArgs>(|id| OF_JOURNEYS.contains(&id)) {
                None => Ok(()),
                Some(flag) => Err(Failure::wrong(format!(
                    "{flag} belongs to suite {USERS_SUITE}, not to {}",
                    self.suite
                ))),
            };
        }
        let is_other = |id: &str| OF_REQUESTS.contains(&id) || OF_PAGES.contains(&id);
        match self.given.first::<UrlArgs>(is_other) {
            None => Ok(()),
            Some(flag) => Err(Failure::wrong(format!(
                "{flag} belongs to suite {URL_SUITE}; what the users of {USERS_SUITE} request, and \
                 how long they think, is in the file of --journey, and --users N sets how many they \
                 are, or --sessions N how many arrive per second"
            ))),
        }
    }

    /// Whether flags of language model suites are given. Refuses them for other suites.
    fn sets_llm(&self) -> Result<bool, Failure> {
        let own = self.first_of_llm();
        let shared = self.given.first::<UrlArgs>(|_| true);
        if own.is_none() && shared.is_none() && self.ladder.peak.is_none() {
            return Ok(false);
        }
        let suite = suite_source::find(&self.suite, &[])?;
        if suite.protocol != llm::PROTOCOL {
            return match own {
                None => Ok(false),
                Some(flag) => Err(Failure::wrong(format!(
                    "{flag} belongs to language model suites, such as llm-chat; {} is none",
                    suite.name
                ))),
            };
        }
        match self.given.first::<UrlArgs>(|id| OF_REQUESTS.contains(&id)) {
            None => Ok(true),
            Some(flag) => Err(Failure::wrong(format!(
                "{flag} belongs to suite web-url; the requests of {} are prompts: write \
                 --input-tokens and --output-tokens, --prompts FILE, or --set \
                 workload.extra.NAME=VALUE for a further field",
                suite.name
            ))),
        }
    }

    /// Sets the values of flags of language model suites.
    fn set_llm(&self, set: &mut Set) -> Result<Option<InputFile>, Failure> {
        self.llm.set(&self.url, set)?;
        if self.llm.trace.is_none() {
            return Ok(None);
        }
        let all = [&set.values[..], &self.set].concat();
        let suite = suite_source::find(&self.suite, &all[..])?;
        self.llm.set_trace((&suite, self.replay.speed), &self.url, self.profile, set)
    }
}

/// Which runs of several are reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Reported {
    /// Each of them
    All,
    /// The last
    Last,
}

/// Conditions under which a run fails.
#[derive(Clone, Debug, Args)]
pub(crate) struct GateArgs {
    /// End with exit code 1 if this holds, for example 'p99 > 50ms', 'errors > 0.1%',
    /// 'peak_ops_per_s < 20000', 'p99@4000 > 20ms' (one load point); may be given often
    #[arg(long, value_name = "CONDITION")]
    pub fail_if: Vec<FailIf>,
    /// Whether a limit within a figure's uncertainty interval fails [default: only if the figure
    /// itself breaks the limit]
    #[arg(long, value_name = "yes|no", requires = "fail_if", value_parser = yes_no())]
    pub fail_if_unsure: Option<bool>,
    /// Write verdict and conditions as JUnit XML
    #[arg(long, value_name = "FILE")]
    pub junit: Option<PathBuf>,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct LadderArgs {
    /// Load points, for example 500,1000,1500 or 1k,2.5k (ops/s; clients for closed suites,
    /// think times in seconds for nic)
    #[arg(long, value_name = "LIST", value_delimiter = ',', conflicts_with_all = ["peak", "steps"], value_parser = parse_point)]
    pub points: Vec<f64>,
    /// Highest load point, or auto to search for the server's peak first
    #[arg(long, value_name = "N|auto", value_parser = parse_peak)]
    pub peak: Option<Peak>,
    /// Evenly spaced load points up to the peak
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=LADDER_POINTS_MAX as i64))]
    pub steps: Option<u32>,
}

impl LadderArgs {
    /// The ladder that the flags request; `None` without any.
    pub(crate) fn change(&self) -> Option<LadderChange> {
        let steps = self.steps;
        match (&self.points[..], self.peak) {
            ([], None) => steps.map(LadderChange::Steps),
            ([], Some(peak)) => Some(LadderChange::Peak { peak, steps }),
            (points, _) => Some(LadderChange::Points(points.to_vec())),
        }
    }
}

/// A condition under which a command fails.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum FailIf {
    /// On a figure of a run.
    Figure(Gate),
    /// On a ratio of two groups.
    Ratio(RatioGate),
}

impl FromStr for FailIf {
    type Err = ConditionError;

    fn from_str(text: &str) -> Result<Self, ConditionError> {
        match text.trim_end().ends_with(['x', '×']) {
            true => text.parse().map(Self::Ratio),
            false => text.parse().map(Self::Figure),
        }
    }
}

/// Timings and scale.
fn profiles() -> impl TypedValueParser<Value = ProfileName> {
    one_of([
        (&["quick"], "1 s + 3 s per load point, everything scaled down", ProfileName::Quick),
        (&["standard"], "10 s + 30 s per load point", ProfileName::Standard),
        (
            &["full"],
            "The published timings, or our own if the method published none",
            ProfileName::Full,
        ),
    ])
}

/// How workers wait.
pub(crate) fn pacing() -> impl TypedValueParser<Value = Pacing> {
    const AUTO: &str = "Decide at each wait: poll if something is due soon and the core is free for it, else sleep";
    one_of([
        (&["auto"], AUTO, Pacing::Auto),
        (&["spin"], "Poll without sleeping: least lag, a whole core", Pacing::Spin),
        (&["precise"], "Sleep with a nanosecond timer", Pacing::Precise),
        (&["coalesce"], "Wake on a coarse grid: least CPU, most lag", Pacing::Coalesce),
    ])
}

/// Scheduling priority of the workers.
fn priorities() -> impl TypedValueParser<Value = Priority> {
    const AUTO: &str = "Above other programs, if that is permitted; the report says whether it was";
    one_of([
        (&["auto"], AUTO, Priority::Auto),
        (&["normal"], "Like any other program", Priority::Normal),
    ])
}

/// Yes or no.
pub(crate) fn yes_no() -> impl TypedValueParser<Value = bool> {
    one_of([(&["yes"], "Yes", true), (&["no"], "No", false)])
}
