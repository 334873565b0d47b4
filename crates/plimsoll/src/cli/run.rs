//! Flags of `plimsoll run`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use plimsoll_model::assignment::{Pacing, Priority};
use plimsoll_model::goodput::GoodLimits;
use plimsoll_model::server_profile::ProfileAt;
use plimsoll_model::suite::{LADDER_POINTS_MAX, LadderChange, Override, Peak, ProfileName};
use plimsoll_model::units::Nanos;

use super::values::{
    first_of, parse_clients, parse_override, parse_peak, parse_point, parse_profile_at, parse_rate,
    parse_requests, parse_span_arg, parse_span_or_none_arg,
};
use super::{AgentArgs, DEFAULT_SEED, FailIf, LlmArgs, ObserverArgs, Output};

#[derive(Clone, Debug, Args)]
pub(crate) struct RunArgs {
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
    #[arg(long, value_enum, default_value_t = ProfileArg::Standard, value_name = "NAME")]
    pub profile: ProfileArg,
    /// Where the bundle goes; must be empty or absent [default: runs/SUITE-TIME]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// As the run in this bundle was: its suite with all settings, seed, profile and load points,
    /// so that the two can be compared point by point; --set changes a value
    #[arg(long, value_name = "DIR", conflicts_with_all = ["points", "peak", "steps", "seed", "profile", "clients", "rate"])]
    pub like: Option<PathBuf>,
    /// One seed reproduces schedule and data
    #[arg(long, value_name = "N", default_value_t = DEFAULT_SEED)]
    pub seed: u64,
    /// Whole runs to make, one after the other, each with its own bundle (DIR-1, DIR-2 …)
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub repeat: u32,
    /// Which runs of --repeat are reported and decide the exit code; with last, those before it
    /// bring the server to where the published runs had it
    #[arg(long, value_enum, default_value_t = Reported::All, value_name = "WHICH")]
    pub report: Reported,
    /// Set a value of the suite, or disclosure.KEY for a statement; may be given often
    #[arg(long, value_name = "KEY=VALUE", value_parser = parse_override)]
    pub set: Vec<Override>,
    /// What the disclosure is to hold besides: an inventory of the server's host (`plimsoll
    /// inventory --json` there), or a system.toml with what no program can read; told apart by
    /// content, may be given often
    #[arg(long, value_name = "FILE")]
    pub system: Vec<PathBuf>,
    /// Another host to watch besides this one: agents (those of --agents), ssh://user@host, http://host:9100/metrics
    /// (node_exporter, windows_exporter) or snmp://community@host; may be given often.
    /// PLIMSOLL_SNMP_COMMUNITY holds a community, or the variable in snmp://env:VARIABLE@host
    #[arg(long, value_name = "URL")]
    pub monitor: Vec<String>,
    /// Profile the server with perf for ten seconds, at a load point of its own after all others:
    /// at the load with the highest throughput (or the capacity), or at LOAD. A server on another
    /// host is profiled through --monitor ssh://
    #[arg(long, value_name = "LOAD|peak", num_args = 0..=1, require_equals = true, default_missing_value = "peak", value_parser = parse_profile_at)]
    pub profile_server: Option<ProfileAt>,
    /// Worker threads of the generator, one core each [default: by the cores there are]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=256))]
    pub workers: Option<u32>,
    /// How workers wait for the next due time
    #[arg(long, value_enum, default_value_t = PacingArg::Auto, value_name = "HOW")]
    pub pacing: PacingArg,
    /// How workers stand to other programs of this host
    #[arg(long, value_enum, default_value_t = PriorityArg::Auto, value_name = "HOW")]
    pub priority: PriorityArg,
    #[command(flatten)]
    pub agents: AgentArgs,
    #[command(flatten)]
    pub observers: ObserverArgs,
    /// Limits of a good op, for example first_output<500ms,tpot<50ms,response<10s: the result says
    /// what part of the ops kept them; those that failed did not
    #[arg(long, value_name = "LIMITS")]
    pub goodput: Option<GoodLimits>,
    #[command(flatten)]
    pub gates: GateArgs,
    #[command(flatten)]
    pub output: Output,
    // Last: their headings would hold for every flag after them.
    #[command(flatten)]
    pub url: UrlArgs,
    #[command(flatten)]
    pub llm: LlmArgs,
    #[command(flatten)]
    pub replay: ReplayArgs,
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
    /// End with exit code 1 if this is so, for example 'p99 > 50ms', 'errors > 0.1%',
    /// 'peak_ops_per_s < 20000', 'p99@4000 > 20ms' (one load point); may be given often
    #[arg(long, value_name = "CONDITION")]
    pub fail_if: Vec<FailIf>,
    /// Whether a limit within a figure's uncertainty interval fails too
    #[arg(long, value_enum, value_name = "yes|no", default_value_t = YesNo::No, requires = "fail_if")]
    pub fail_if_unsure: YesNo,
    /// Write verdict and conditions as JUnit XML
    #[arg(long, value_name = "FILE")]
    pub junit: Option<PathBuf>,
}

/// Yes or no.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum YesNo {
    /// Yes
    Yes,
    /// No
    No,
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
    /// The ladder that the flags ask for; `None` without any.
    pub(crate) fn change(&self) -> Option<LadderChange> {
        let steps = self.steps;
        match (&self.points[..], self.peak) {
            ([], None) => steps.map(LadderChange::Steps),
            ([], Some(peak)) => Some(LadderChange::Peak { peak, steps }),
            (points, _) => Some(LadderChange::Points(points.to_vec())),
        }
    }
}

/// Flags of the web-url suite; those of load, time and transport are of language model suites too.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Options of web-url, some of them also of llm-chat and its like")]
pub(crate) struct UrlArgs {
    /// Closed load: so many clients, each sends its next request after the reply
    #[arg(long, value_name = "N", conflicts_with_all = ["rate", "points", "peak", "steps"], value_parser = parse_clients)]
    pub clients: Option<u32>,
    /// Open load: so many requests per second, whatever the server does; several make a ladder;
    /// 2.5k and 1M may be written
    #[arg(long, value_name = "LIST", value_delimiter = ',', conflicts_with_all = ["points", "peak", "steps"], value_parser = parse_rate)]
    pub rate: Vec<f64>,
    /// Connections that are opened one after the other and held, each with a request now and then;
    /// one that the server closes is lost
    #[arg(long, value_name = "N", conflicts_with_all = ["clients", "rate", "points", "peak", "steps", "requests", "new_connection"], value_parser = parse_clients)]
    pub hold: Option<u32>,
    /// With --hold: connections opened a second [default: 200]
    #[arg(long, value_name = "N", requires = "hold", value_parser = parse_rate)]
    pub hold_rate: Option<f64>,
    /// With --hold: time between the requests of a connection, on average [default: 30s]
    #[arg(long, value_name = "SPAN", requires = "hold", value_parser = parse_span_arg)]
    pub hold_every: Option<Nanos>,
    /// Connections of an open load at most
    #[arg(long, value_name = "N", value_parser = parse_clients)]
    pub connections: Option<u32>,
    /// Arrivals of an open load: a Poisson process, as independent users make (the default), or
    /// evenly spaced
    #[arg(long, alias = "gaps", value_enum, value_name = "HOW")]
    pub arrivals: Option<ArrivalsArg>,
    /// So many requests in all, without warm-up unless --warm-up asks for one; the window is as
    /// long as they take, --for at most
    #[arg(short = 'n', long, value_name = "N", value_parser = parse_requests)]
    pub requests: Option<u64>,
    /// Length of the measurement
    #[arg(long = "for", value_name = "SPAN", value_parser = parse_span_arg)]
    pub length: Option<Nanos>,
    /// Load held before measuring; 0s for none
    #[arg(long, value_name = "SPAN", value_parser = parse_span_or_none_arg)]
    pub warm_up: Option<Nanos>,
    /// A request without a reply after this long has failed
    #[arg(long, value_name = "SPAN", value_parser = parse_span_arg)]
    pub timeout: Option<Nanos>,
    /// Method of the requests [default: GET, or POST with --data]
    #[arg(short, long, value_name = "METHOD")]
    pub method: Option<String>,
    /// Body of the requests; @FILE sends a file as it stands. In a text, {{uuid}} and
    /// {{int 1 1000}} are drawn anew for each request, as in URLs
    #[arg(short, long, value_name = "TEXT|@FILE")]
    pub data: Option<String>,
    /// Header field, for example "Accept: text/html"; "Name: env:VARIABLE" and "Name: @FILE" take
    /// the value from there; may be given often
    #[arg(short = 'H', long, value_name = "FIELD")]
    pub header: Vec<String>,
    /// File with a header field a line
    #[arg(long, value_name = "FILE")]
    pub header_file: Option<PathBuf>,
    /// User of basic authentication; the password may stand in PLIMSOLL_PASSWORD
    #[arg(short = 'a', long, value_name = "USER[:PASSWORD]")]
    pub basic_auth: Option<String>,
    /// Cookie, for example "session=abc"; may be given often
    #[arg(short = 'b', long, value_name = "NAME=VALUE")]
    pub cookie: Vec<String>,
    /// File of requests (- for standard input): "[weight] [method] URL" a line, or JSON with url,
    /// method, weight, headers, body
    #[arg(long, value_name = "FILE")]
    pub urls: Option<PathBuf>,
    /// Time replies chunk by chunk (server-sent events and other streams): the first chunk of the
    /// body, and the gaps between chunks
    #[arg(long)]
    pub stream: bool,
    /// Do not send one request before any load to see whether its answer is a good one
    #[arg(long)]
    pub no_check: bool,
    /// Connect there, whatever host the URL names
    #[arg(long, value_name = "HOST:PORT", conflicts_with = "unix")]
    pub connect_to: Option<String>,
    /// Connect to a Unix socket
    #[arg(long, value_name = "PATH")]
    pub unix: Option<PathBuf>,
    /// A new connection for each request
    #[arg(long, conflicts_with_all = ["http", "streams"])]
    pub new_connection: bool,
    /// Version of HTTP, also of web-static: 2 by ALPN over TLS, else without asking first; auto is
    /// what the server agrees on over TLS [default: 1.1]
    #[arg(long, value_name = "VERSION")]
    pub http: Option<HttpArg>,
    /// With --http 2: requests in flight on a connection at a time; clients share connections
    /// [default: 1]
    #[arg(long, value_name = "N", requires = "http", value_parser = parse_clients)]
    pub streams: Option<u32>,
    /// Do not check the server's certificate
    #[arg(short = 'k', long)]
    pub insecure: bool,
    /// Certificates to trust besides the public ones, a PEM file
    #[arg(long, value_name = "FILE")]
    pub cacert: Option<PathBuf>,
    /// The client's own certificate, a PEM file
    #[arg(long, value_name = "FILE")]
    pub cert: Option<PathBuf>,
    /// Its private key, where it is not in the same file
    #[arg(long, value_name = "FILE", requires = "cert")]
    pub key: Option<PathBuf>,
}

impl UrlArgs {
    /// The first flag given that other web suites have, too, if any.
    pub(crate) fn first_of_web(&self) -> Option<&'static str> {
        first_of([(self.http.is_some(), "--http"), (self.streams.is_some(), "--streams")])
    }

    /// The first other flag given, if any.
    pub(crate) fn first_given(&self) -> Option<&'static str> {
        first_of([
            (self.clients.is_some(), "--clients"),
            (!self.rate.is_empty(), "--rate"),
            (self.hold.is_some(), "--hold"),
            (self.connections.is_some(), "--connections"),
            (self.arrivals.is_some(), "--arrivals"),
            (self.requests.is_some(), "--requests"),
            (self.length.is_some(), "--for"),
            (self.warm_up.is_some(), "--warm-up"),
            (self.timeout.is_some(), "--timeout"),
            (self.method.is_some(), "--method"),
            (self.data.is_some(), "--data"),
            (!self.header.is_empty(), "--header"),
            (self.header_file.is_some(), "--header-file"),
            (self.basic_auth.is_some(), "--basic-auth"),
            (!self.cookie.is_empty(), "--cookie"),
            (self.urls.is_some(), "--urls"),
            (self.stream, "--stream"),
            (self.no_check, "--no-check"),
            (self.connect_to.is_some(), "--connect-to"),
            (self.unix.is_some(), "--unix"),
            (self.new_connection, "--new-connection"),
            (self.insecure, "--insecure"),
            (self.cacert.is_some(), "--cacert"),
            (self.cert.is_some(), "--cert"),
        ])
    }

    /// The first flag given that says what a request asks for, or how its connection is held.
    pub(crate) fn first_of_requests(&self) -> Option<&'static str> {
        first_of([
            (self.hold.is_some(), "--hold"),
            (self.method.is_some(), "--method"),
            (self.data.is_some(), "--data"),
            (self.urls.is_some(), "--urls"),
            (self.stream, "--stream"),
        ])
    }
}

/// Version of HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum HttpArg {
    /// One request at a time on a connection
    #[value(name = "1.1", alias = "1")]
    Http1,
    /// Several
    #[value(name = "2")]
    Http2,
    /// What the server agrees on
    Auto,
}

impl HttpArg {
    /// The key `workload.http` of a suite.
    pub(crate) const fn as_version(self) -> &'static str {
        match self {
            Self::Http1 => "1.1",
            Self::Http2 => "2",
            Self::Auto => "auto",
        }
    }
}

/// Arrivals of an open load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ArrivalsArg {
    /// A Poisson process, as independent users make
    #[value(alias = "exponential")]
    Poisson,
    /// Evenly spaced
    Uniform,
}

impl ArrivalsArg {
    /// The key `load.gaps` of a suite.
    pub(crate) const fn as_gaps(self) -> &'static str {
        match self {
            Self::Poisson => "exponential",
            Self::Uniform => "uniform",
        }
    }
}

/// Flags of the disk-mix suites only.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Options of disk-mix")]
pub(crate) struct ReplayArgs {
    /// Load file of dbench for every client to replay, instead of the suite's mix
    #[arg(long, value_name = "FILE")]
    pub loadfile: Option<PathBuf>,
}

/// Timings and scale.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ProfileArg {
    /// 1 s + 3 s per load point, everything scaled down
    Quick,
    /// 10 s + 30 s per load point
    Standard,
    /// The published timings, or ours where the method published none
    Full,
}

impl From<ProfileArg> for ProfileName {
    fn from(profile: ProfileArg) -> Self {
        match profile {
            ProfileArg::Quick => Self::Quick,
            ProfileArg::Standard => Self::Standard,
            ProfileArg::Full => Self::Full,
        }
    }
}

/// How workers wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum PacingArg {
    /// Decide at each wait: poll where something is near and the core is free for it, else sleep
    Auto,
    /// Poll without sleeping: least lag, a whole core
    Spin,
    /// Sleep with a nanosecond timer
    Precise,
    /// Wake on a coarse grid: least CPU, most lag
    Coalesce,
}

impl From<PacingArg> for Pacing {
    fn from(pacing: PacingArg) -> Self {
        match pacing {
            PacingArg::Auto => Self::Auto,
            PacingArg::Spin => Self::Spin,
            PacingArg::Precise => Self::Precise,
            PacingArg::Coalesce => Self::Coalesce,
        }
    }
}

/// How workers stand to other programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum PriorityArg {
    /// Above them, where that is permitted; the report says whether it was
    Auto,
    /// As any other
    Normal,
}

impl From<PriorityArg> for Priority {
    fn from(priority: PriorityArg) -> Self {
        match priority {
            PriorityArg::Auto => Self::Auto,
            PriorityArg::Normal => Self::Normal,
        }
    }
}
