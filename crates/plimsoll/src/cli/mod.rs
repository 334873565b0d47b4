//! The command line. One block per verb, one entry per flag; help is made from this.

mod agents;
mod board;
mod calibrate;
mod capacity;
mod compare;
mod experiment;
mod llm;
mod observers;
mod run;
mod scale;
mod serve;
mod size;
mod values;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use plimsoll_model::suite::{Override, Peak};

pub(crate) use agents::{
    AgentArgs, AgentServeArgs, AgentsCheckArgs, AgentsManifestArgs, AgentsVerb,
};
pub(crate) use board::BoardArgs;
pub(crate) use calibrate::CalibrateArgs;
pub(crate) use capacity::CapacityArgs;
pub(crate) use compare::{CompareArgs, FailIf, Labelled, VersusArgs};
pub(crate) use experiment::{ExperimentArgs, Joined};
pub(crate) use llm::LlmArgs;
use observers::ObserverArgs;
pub(crate) use run::{ArrivalsArg, GateArgs, HttpArg, Reported, RunArgs, UrlArgs, YesNo};
pub(crate) use scale::{Over, ScaleArgs};
pub(crate) use serve::ServeArgs;
pub(crate) use size::SizeArgs;
use values::{parse_override, parse_peak};

pub(crate) use plimsoll_protocol::DEFAULT_SEED;

const AFTER_HELP: &str = "\
Exit codes: 0 finished and valid, 1 finished and invalid, 2 the command or suite file is wrong,
3 target or environment unusable, 4 interrupted (bundle usable so far), 70 a bug.";

/// Finds the load line of a server: how much work it carries, how fast it answers at every load,
/// what limits it, and whether the figures can be trusted.
#[derive(Debug, Parser)]
#[command(name = "plimsoll", version, after_help = AFTER_HELP, max_term_width = 100)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub verb: Verb,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// A short tour on the four built-in servers, one a protocol; ends with a report of each
    Demo(DemoArgs),
    /// Shipped suites: list, show one, or the schema of the format
    Suites(SuitesArgs),
    /// Check a suite file; sends no packet
    Check(CheckArgs),
    /// Run a suite on a target
    Run(Box<RunArgs>),
    /// Find the highest load within limits, and run it again five times
    Capacity(Box<CapacityArgs>),
    /// Run a suite on a server of ours that gets more cores, memory or threads, step by step
    Scale(Box<ScaleArgs>),
    /// Run a suite while factors are changed: settings of the server, suite keys, targets, what is
    /// set by hand; tells what each brings
    Experiment(Box<ExperimentArgs>),
    /// Go on with an interrupted run after its last finished load point, or with an experiment after
    /// its last finished run
    Resume(ResumeArgs),
    /// Write the file set of a suite into a directory for your server, or through a file server
    Prepare(PrepareArgs),
    /// Remove a file set; only what carries Plimsoll's marker
    Clean(CleanArgs),
    /// Hold the instrument against servers of known behaviour on this host; five minutes
    Calibrate(CalibrateArgs),
    /// Make load for a controller at the other end of standard input and output; started by --agents
    Agent(AgentServeArgs),
    /// Try agents before a run, or print what Kubernetes makes agents from
    #[command(subcommand)]
    Agents(AgentsVerb),
    /// Run a reference server
    #[command(subcommand)]
    Serve(ServeArgs),
    /// Derive result.json from a bundle, or analyse a curve from elsewhere
    Analyse(AnalyseArgs),
    /// Render results as HTML, Markdown or CSV
    Report(ReportArgs),
    /// Compare groups of runs with the first, with confidence
    Compare(CompareArgs),
    /// Tell how big a server must be for a load, from runs at lower ones
    Size(SizeArgs),
    /// Run a suite on two servers in turn, and compare them
    Versus(Box<VersusArgs>),
    /// Check a bundle: checksums, signature, then the rules again
    Verify(VerifyArgs),
    /// List the bundles below directories, newest first
    Runs(RunsArgs),
    /// A table of results: bundles below directories and published results, a line each
    Board(BoardArgs),
    /// What the disclosure says of this host
    Inventory(InventoryArgs),
    /// Transcribed results of the source reports
    Published(PublishedArgs),
    /// Manual pages, completions for a shell, and the schema of suite files
    Generate(GenerateArgs),
}

/// Flags of every verb that takes a while.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct Output {
    /// How to show progress
    #[arg(long, value_enum, default_value_t = Progress::Auto, value_name = "HOW")]
    pub progress: Progress,
    /// Print result.json on standard output, everything else on standard error
    #[arg(long)]
    pub json: bool,
}

/// How to show progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Progress {
    /// A live line on a terminal, plain lines elsewhere
    Auto,
    /// One line per load point
    Plain,
    /// Nothing
    None,
}

#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    /// Where the bundles go [default: runs/demo-TIME]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    #[command(flatten)]
    pub output: Output,
}

#[derive(Debug, Args)]
pub(crate) struct GenerateArgs {
    #[command(subcommand)]
    pub what: Generated,
    /// Write files into this directory; of manual pages one for each verb
    #[arg(long, value_name = "DIR", global = true)]
    pub output: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, Subcommand)]
pub(crate) enum Generated {
    /// The manual page, for man
    Man,
    /// Completions, to be sourced by the shell
    Completions {
        /// Which shell
        shell: clap_complete::Shell,
    },
    /// JSON Schema of suite files, as `plimsoll suites schema` prints it
    Schema,
}

#[derive(Debug, Args)]
pub(crate) struct SuitesArgs {
    #[command(subcommand)]
    pub action: Option<SuitesAction>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SuitesAction {
    /// List them, as `plimsoll suites` alone does
    List,
    /// Print a shipped suite, a good start for your own
    Show {
        /// Name of the suite
        name: String,
    },
    /// Print the JSON Schema of the suite format
    Schema,
}

#[derive(Debug, Args)]
pub(crate) struct CheckArgs {
    /// Suite file
    pub file: PathBuf,
    /// Set a value of the suite, for example rules.errors_max_ratio=0.01
    #[arg(long, value_name = "KEY=VALUE", value_parser = parse_override)]
    pub set: Vec<Override>,
}

#[derive(Debug, Args)]
pub(crate) struct ResumeArgs {
    /// Bundle of the interrupted run, or directory of the experiment
    pub dir: PathBuf,
    #[command(flatten)]
    pub output: Output,
}

#[derive(Debug, Args)]
pub(crate) struct PrepareArgs {
    /// Name of a shipped suite, or path of a suite file
    pub suite: String,
    /// Directory your web server serves, or URL of a file server, for example nfs://host/export
    /// or smb://user@host/share
    #[arg(value_name = "DIR|TARGET")]
    pub place: String,
    /// Highest load you will ask for, in ops/s, or clients for closed suites; the size of the file
    /// set follows from it
    #[arg(long, value_name = "N", value_parser = parse_peak)]
    pub peak: Peak,
    /// Seed of the contents, for a directory [default: the suite's]; a run takes it from the marker
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
pub(crate) struct CleanArgs {
    /// Directory that was prepared, or URL of a file server
    #[arg(value_name = "DIR|TARGET")]
    pub place: String,
    /// How to show progress
    #[arg(long, value_enum, default_value_t = Progress::Auto, value_name = "HOW")]
    pub progress: Progress,
}

#[derive(Debug, Args)]
pub(crate) struct AnalyseArgs {
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
pub(crate) struct ReportArgs {
    /// Bundles of runs; several are compared with the first
    #[arg(required = true, value_name = "BUNDLE")]
    pub bundles: Vec<PathBuf>,
    /// HTML file to write [default when nothing is named: BUNDLE/report.html, of several
    /// comparison.html beside the first]
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Markdown file to write
    #[arg(long, value_name = "FILE")]
    pub md: Option<PathBuf>,
    /// Directory to write CSV files into
    #[arg(long, value_name = "DIR")]
    pub csv: Option<PathBuf>,
    /// Directory to write the charts into, each as an SVG file
    #[arg(long, value_name = "DIR")]
    pub svg: Option<PathBuf>,
    /// What the systems cost: price per unit of peak and capacity, in the files of --html and --md
    #[arg(long, value_name = "FILE.toml")]
    pub prices: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct VerifyArgs {
    /// Bundle of a run
    pub bundle: PathBuf,
    /// Check the signature too: a public key of minisign, or the file that holds it
    #[arg(long, value_name = "PUBLICKEY", conflicts_with = "sign")]
    pub key: Option<String>,
    /// Sign the bundle, if nothing is wrong with it, with a secret key of minisign; its password
    /// may stand in PLIMSOLL_MINISIGN_PASSWORD
    #[arg(long, value_name = "KEYFILE")]
    pub sign: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct RunsArgs {
    /// Directories to look through
    #[arg(value_name = "DIR", default_value = "runs")]
    pub dirs: Vec<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct InventoryArgs {
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct PublishedArgs {
    #[command(subcommand)]
    pub action: Option<PublishedAction>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum PublishedAction {
    /// List them, as `plimsoll published` alone does
    List,
    /// Print one result: every figure with its place in the source
    Show {
        /// Name of the result
        name: String,
        /// Print JSON
        #[arg(long)]
        json: bool,
        /// HTML file to write
        #[arg(long, value_name = "FILE")]
        html: Option<PathBuf>,
    },
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
        for wrong in ["0", "-1", "1.5", "100001", "101k"] {
            assert!(parse(&["--clients", wrong]).is_err(), "{wrong}");
        }
        assert!(parse(&["--clients", "3", "--points", "3"]).is_err());
        assert!(parse(&["--rate", "3", "--peak", "3"]).is_err());
        assert!(parse(&["--rate", "3", "--steps", "3"]).is_err());
    }

    #[test]
    fn loads_may_be_written_short() {
        let line = ["plimsoll", "run", "s", "t"];
        let parse = |more: &[&str]| match Cli::parse_from([&line[..], more].concat()).verb {
            Verb::Run(args) => *args,
            other => panic!("{other:?}"),
        };
        assert_eq!(parse(&["--points", "500,1k,2.5k,1M"]).ladder.points, [5e2, 1e3, 2.5e3, 1e6]);
        assert_eq!(parse(&["--peak", "20k"]).ladder.peak, Some(Peak::At(2e4)));
        assert_eq!(parse(&["--rate", "1k,2k"]).url.rate, [1e3, 2e3]);
        let counted = parse(&["--clients", "1k", "-n", "1M"]).url;
        assert_eq!((counted.clients, counted.requests), (Some(1_000), Some(1_000_000)));
    }

    #[test]
    fn a_rate_is_a_number_above_zero() {
        let run = |rate| Cli::try_parse_from(["plimsoll", "run", "s", "t", "--rate", rate]);
        let serve = |peak| Cli::try_parse_from(["plimsoll", "serve", "web", "--peak", peak]);
        for wrong in ["0", "NaN", "inf", "x", "1e12"] {
            assert!(run(wrong).is_err() && serve(wrong).is_err(), "{wrong}");
        }
        assert!(run("0.5").is_ok() && serve("0.5").is_ok());
        assert!(run("1k").is_ok() && serve("2.5k").is_ok());
        assert!(Cli::try_parse_from(["plimsoll", "serve", "web"]).is_ok());
    }
}
