//! The command line. One block per verb, one entry per flag; help is made from this.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use plimsoll_model::assignment::Pacing;
use plimsoll_model::suite::{LADDER_POINTS_MAX, Override, ProfileName};
use plimsoll_model::units::{Nanos, parse_span};

const AFTER_HELP: &str = "\
Exit codes: 0 finished and valid, 1 finished and invalid, 2 the command or suite file is wrong,
3 target or environment unusable, 4 interrupted (bundle usable so far), 70 a bug.";

/// Finds the load line of a server: how much work it carries, how fast it answers at every load,
/// what limits it, and whether the figures can be trusted.
#[derive(Debug, Parser)]
#[command(name = "plimsoll", version, after_help = AFTER_HELP, max_term_width = 100)]
pub struct Cli {
    #[command(subcommand)]
    pub verb: Verb,
}

#[derive(Debug, Subcommand)]
pub enum Verb {
    /// A short tour on the built-in server; ends with a report
    Demo(DemoArgs),
    /// Shipped suites: list, show one, or the schema of the format
    Suites(SuitesArgs),
    /// Check a suite file; sends no packet
    Check(CheckArgs),
    /// Run a suite on a target
    Run(Box<RunArgs>),
    /// Go on with an interrupted run after its last finished load point
    Resume(ResumeArgs),
    /// Write the file set of a suite into a directory for your server
    Prepare(PrepareArgs),
    /// Remove a file set; only what carries Plimsoll's marker
    Clean(CleanArgs),
    /// Run a reference server
    Serve(ServeArgs),
    /// Derive result.json from a bundle, or analyse a curve from elsewhere
    Analyse(AnalyseArgs),
    /// Render results as HTML, Markdown or CSV
    Report(ReportArgs),
    /// Compare the first run with the others
    Compare(CompareArgs),
    /// Check a bundle: checksums, then the rules again
    Verify(VerifyArgs),
    /// What the disclosure says of this host
    Inventory(InventoryArgs),
    /// Transcribed results of the source reports
    Published(PublishedArgs),
}

/// Flags of every verb that takes a while.
#[derive(Args, Clone, Copy, Debug)]
pub struct Output {
    /// How to show progress
    #[arg(long, value_enum, default_value_t = Progress::Auto, value_name = "HOW")]
    pub progress: Progress,
    /// Print result.json on standard output, everything else on standard error
    #[arg(long)]
    pub json: bool,
}

/// How to show progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Progress {
    /// A live line on a terminal, plain lines elsewhere
    Auto,
    /// One line per load point
    Plain,
    /// Nothing
    None,
}

#[derive(Debug, Args)]
pub struct DemoArgs {
    /// Where the bundles go [default: runs/demo-TIME]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    #[command(flatten)]
    pub output: Output,
}

#[derive(Debug, Args)]
pub struct SuitesArgs {
    #[command(subcommand)]
    pub action: Option<SuitesAction>,
}

#[derive(Debug, Subcommand)]
pub enum SuitesAction {
    /// Print a shipped suite, a good start for your own
    Show {
        /// Name of the suite
        name: String,
    },
    /// Print the JSON Schema of the suite format
    Schema,
}

#[derive(Debug, Args)]
pub struct CheckArgs {
    /// Suite file
    pub file: PathBuf,
    /// Set a value of the suite, for example rules.errors_max_ratio=0.01
    #[arg(long, value_name = "KEY=VALUE", value_parser = parse_override)]
    pub set: Vec<Override>,
}

#[derive(Debug, Args)]
pub struct RunArgs {
    /// Name of a shipped suite, or path of a suite file
    pub suite: String,
    /// Servers: http(s)://host:port/, builtin: or managed:nginx
    #[arg(required = true, value_name = "TARGET")]
    pub targets: Vec<String>,
    #[command(flatten)]
    pub ladder: LadderArgs,
    #[command(flatten)]
    pub url: UrlArgs,
    /// Timings and scale of the workload
    #[arg(long, value_enum, default_value_t = ProfileArg::Standard, value_name = "NAME")]
    pub profile: ProfileArg,
    /// Where the bundle goes; must be empty or absent [default: runs/SUITE-TIME]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// One seed reproduces schedule and data
    #[arg(long, value_name = "N", default_value_t = DEFAULT_SEED)]
    pub seed: u64,
    /// Whole runs to make, one after the other, each with its own bundle (DIR-1, DIR-2 …)
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub repeat: u32,
    /// Set a value of the suite, or disclosure.KEY for a statement; may be given often
    #[arg(long, value_name = "KEY=VALUE", value_parser = parse_override)]
    pub set: Vec<Override>,
    /// Worker threads of the generator, one core each [default: by the cores there are]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=256))]
    pub workers: Option<u32>,
    /// How workers wait for the next due time
    #[arg(long, value_enum, default_value_t = PacingArg::Auto, value_name = "HOW")]
    pub pacing: PacingArg,
    #[command(flatten)]
    pub output: Output,
}

/// Seed of a run when none is given: the year of the Merchant Shipping Act.
pub const DEFAULT_SEED: u64 = 1876;

#[derive(Clone, Debug, Args)]
pub struct LadderArgs {
    /// Load points, for example 500,1000,1500 (ops/s, or clients for closed suites)
    #[arg(long, value_name = "LIST", value_delimiter = ',', conflicts_with_all = ["peak", "steps"])]
    pub points: Vec<f64>,
    /// Highest load point, or auto to search for the server's peak first
    #[arg(long, value_name = "N|auto", value_parser = parse_peak)]
    pub peak: Option<Peak>,
    /// Evenly spaced load points up to the peak
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=LADDER_POINTS_MAX as i64))]
    pub steps: Option<u32>,
}

/// Where the ladder ends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Peak {
    /// The tool finds it.
    Auto,
    /// The user names it.
    At(f64),
}

/// Flags of the web-url suite only.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Options of web-url")]
pub struct UrlArgs {
    /// Closed load: so many clients, each sends its next request after the reply
    #[arg(long, value_name = "N", conflicts_with = "rate", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub clients: Option<u32>,
    /// Open load: so many requests per second, whatever the server does
    #[arg(long, value_name = "N")]
    pub rate: Option<f64>,
    /// File of URLs or paths, one a line, optionally with a weight before it
    #[arg(long, value_name = "FILE")]
    pub urls: Option<PathBuf>,
    /// Length of the measurement
    #[arg(long = "for", value_name = "SPAN", value_parser = parse_span_arg)]
    pub length: Option<Nanos>,
}

impl UrlArgs {
    /// The first flag given, if any.
    pub fn first_given(&self) -> Option<&'static str> {
        [
            (self.clients.is_some(), "--clients"),
            (self.rate.is_some(), "--rate"),
            (self.urls.is_some(), "--urls"),
            (self.length.is_some(), "--for"),
        ]
        .into_iter()
        .find_map(|(given, name)| given.then_some(name))
    }
}

/// Timings and scale.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ProfileArg {
    /// 1 s + 3 s per load point, everything scaled down
    Quick,
    /// 10 s + 30 s per load point
    Standard,
    /// The published timings
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
    /// spin where cores are to spare, else precise; the report says which
    Auto,
    /// Poll without sleeping: least lag, a whole core
    Spin,
    /// Sleep with a nanosecond timer
    Precise,
    /// Wake on a coarse grid: least CPU, most lag
    Coalesce,
}

impl PacingArg {
    /// The pacing asked for; `None` leaves the choice.
    pub const fn asked(self) -> Option<Pacing> {
        match self {
            Self::Auto => None,
            Self::Spin => Some(Pacing::Spin),
            Self::Precise => Some(Pacing::Precise),
            Self::Coalesce => Some(Pacing::Coalesce),
        }
    }
}

#[derive(Debug, Args)]
pub struct ResumeArgs {
    /// Bundle of the interrupted run
    pub dir: PathBuf,
    #[command(flatten)]
    pub output: Output,
}

#[derive(Debug, Args)]
pub struct PrepareArgs {
    /// Name of a shipped suite, or path of a suite file
    pub suite: String,
    /// Directory your server serves; must be empty or carry Plimsoll's marker
    pub dir: PathBuf,
    /// Highest load you will ask for, in ops/s; the size of the file set follows from it
    #[arg(long, value_name = "N", value_parser = parse_peak)]
    pub peak: Peak,
    /// Seed of the contents [default: the suite's]; a run takes it from the marker
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Set a value of the suite
    #[arg(long, value_name = "KEY=VALUE", value_parser = parse_override)]
    pub set: Vec<Override>,
    /// How to show progress
    #[arg(long, value_enum, default_value_t = Progress::Auto, value_name = "HOW")]
    pub progress: Progress,
}

#[derive(Debug, Args)]
pub struct CleanArgs {
    /// Directory that was prepared
    pub dir: PathBuf,
}

#[derive(Debug, Args)]
pub struct ServeArgs {
    #[command(subcommand)]
    pub server: ServeKind,
}

#[derive(Debug, Subcommand)]
pub enum ServeKind {
    /// The reference web server
    Web(ServeWebArgs),
}

#[derive(Debug, Args)]
pub struct ServeWebArgs {
    /// Address to listen on; port 0 takes a free one
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8080")]
    pub listen: SocketAddr,
    /// Serve this directory instead of a file set from memory
    #[arg(long, value_name = "DIR")]
    pub root: Option<PathBuf>,
    /// Size the file set in memory for this highest load, in ops/s
    #[arg(long, value_name = "N", default_value_t = 1_000.0, conflicts_with = "root")]
    pub peak: f64,
    /// Directories of the file set in memory, instead of --peak
    #[arg(long, value_name = "N", conflicts_with_all = ["root", "peak"])]
    pub directories: Option<u32>,
    /// Seed of the contents
    #[arg(long, value_name = "N", default_value_t = DEFAULT_SEED)]
    pub seed: u64,
    /// Certificate chain for https, PEM
    #[arg(long, value_name = "FILE", requires = "key")]
    pub cert: Option<PathBuf>,
    /// Private key for https, PEM
    #[arg(long, value_name = "FILE", requires = "cert")]
    pub key: Option<PathBuf>,
    /// Cores to use, one thread each, for example 0,2
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub cores: Vec<u32>,
    /// Stop when standard input ends
    #[arg(long, hide = true)]
    pub stop_with_stdin: bool,
}

#[derive(Debug, Args)]
pub struct AnalyseArgs {
    /// Bundle of a run
    #[arg(required_unless_present = "curve", conflicts_with = "curve")]
    pub bundle: Option<PathBuf>,
    /// Curve from elsewhere; header: load,throughput,response_ms[,…]
    #[arg(long, value_name = "FILE.csv")]
    pub curve: Option<PathBuf>,
    /// Print result.json on standard output
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct ReportArgs {
    /// Bundles of runs
    #[arg(required = true, value_name = "BUNDLE")]
    pub bundles: Vec<PathBuf>,
    /// HTML file to write [default when nothing is named: BUNDLE/report.html]
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Markdown file to write
    #[arg(long, value_name = "FILE")]
    pub md: Option<PathBuf>,
    /// Directory to write CSV files into
    #[arg(long, value_name = "DIR")]
    pub csv: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct CompareArgs {
    /// Bundles of runs, the first is the one to compare with
    #[arg(required = true, num_args = 2.., value_name = "BUNDLE")]
    pub bundles: Vec<PathBuf>,
}

#[derive(Debug, Args)]
pub struct VerifyArgs {
    /// Bundle of a run
    pub bundle: PathBuf,
}

#[derive(Debug, Args)]
pub struct InventoryArgs {
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct PublishedArgs {
    #[command(subcommand)]
    pub action: Option<PublishedAction>,
}

#[derive(Debug, Subcommand)]
pub enum PublishedAction {
    /// Print one result
    Show {
        /// Name of the result
        name: String,
    },
}

fn parse_override(text: &str) -> Result<Override, String> {
    Override::parse(text).ok_or_else(|| "write KEY=VALUE, for example load.clients=32".to_owned())
}

fn parse_span_arg(text: &str) -> Result<Nanos, String> {
    match parse_span(text) {
        Some(span) if span > Nanos::ZERO => Ok(span),
        _ => Err("write a span of time above zero, for example 30s or 500ms".to_owned()),
    }
}

fn parse_peak(text: &str) -> Result<Peak, String> {
    if text == "auto" {
        return Ok(Peak::Auto);
    }
    match text.parse::<f64>() {
        Ok(value) if value.is_finite() && value > 0.0 => Ok(Peak::At(value)),
        _ => Err("write a load above zero, or auto".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;

    #[test]
    fn the_definitions_are_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn a_ladder_is_either_a_list_or_a_peak() {
        let parse =
            |args: &[&str]| Cli::try_parse_from([&["plimsoll", "run", "s", "t"], args].concat());
        assert!(parse(&["--points", "1,2", "--peak", "3"]).is_err());
        assert!(parse(&["--peak", "auto", "--steps", "4"]).is_ok());
        assert!(parse(&["--peak", "-4"]).is_err());
        assert!(parse(&["--for", "0s"]).is_err());
        assert!(parse(&["--clients", "3", "--rate", "3"]).is_err());
    }
}
