//! The command line, one file per verb: its flags, from which the help is made, and what performs
//! it. [`crate::flags`] has those that several verbs share.

mod agent;
mod agents;
mod analyse;
mod board;
mod calibrate;
mod capacity;
mod check;
mod clean;
mod compare;
mod demo;
mod derive;
mod experiment;
mod generate;
mod groups;
mod import;
mod inventory;
mod prepare;
mod prices;
mod published;
mod recover;
mod report;
mod resume;
mod run;
mod runs;
mod scale;
mod serve;
mod size;
mod suites;
mod testbed;
mod verify;
mod versus;

use std::path::Path;

use clap::{Parser, Subcommand};
use plimsoll_model::bundle::write_durably;

use crate::exit::{Exit, Failure};
use crate::flags::RunArgs;
use crate::terminal;
use experiment::Begin;

const AFTER_HELP: &str = "\
Exit codes: 0 finished and valid, 1 finished and invalid, 2 the command or suite file is wrong,
3 target or environment unusable, 4 interrupted (bundle usable so far), 70 a bug.";

/// Finds the load line of a server: how much load it can handle, how fast it answers at every load,
/// what limits it, and whether the figures can be trusted.
#[derive(Debug, Parser)]
#[command(name = "plimsoll", version, after_help = AFTER_HELP, max_term_width = 100)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub verb: Verb,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// A short tour on five built-in servers; ends with a report of each
    Demo(demo::DemoArgs),
    /// Shipped suites: list, show one, or the schema of the format
    Suites(suites::SuitesArgs),
    /// Check a suite file; sends no packet
    Check(check::CheckArgs),
    /// Run a suite on a target
    Run(Box<RunArgs>),
    /// Find the highest load within limits, and run it again five times
    Capacity(Box<capacity::CapacityArgs>),
    /// Find whether a server comes back after a pulse of load, and how soon
    Recover(Box<recover::RecoverArgs>),
    /// Run a suite on a server that Plimsoll starts and gives more cores, memory or threads, step
    /// by step
    Scale(Box<scale::ScaleArgs>),
    /// Run a suite while factors are changed (settings of the server, suite keys, targets, settings
    /// made by hand), and measure the effect of each
    Experiment(Box<experiment::ExperimentArgs>),
    /// Continue an interrupted run after its last finished load point, or an experiment after its
    /// last finished run
    Resume(resume::ResumeArgs),
    /// Make a journey for suite web-users from recorded requests
    Import(import::ImportArgs),
    /// Make a load from what a server logged
    Derive(derive::DeriveArgs),
    /// Write the file set of a suite into a directory for your server, or through a file server
    Prepare(prepare::PrepareArgs),
    /// Remove a file set; only files with Plimsoll's marker
    Clean(clean::CleanArgs),
    /// Check the instrument against servers of known behaviour on this host; five minutes
    Calibrate(calibrate::CalibrateArgs),
    /// Make load for a controller at the other end of standard input and output; started by
    /// --agents
    Agent(agent::AgentServeArgs),
    /// Try agents before a run, or print a Kubernetes manifest for them
    #[command(subcommand)]
    Agents(agents::AgentsVerb),
    /// Look at the hosts of a testbed file before a run
    #[command(subcommand)]
    Testbed(testbed::TestbedVerb),
    /// Run a reference server
    #[command(subcommand)]
    Serve(serve::ServeArgs),
    /// Derive result.json from a bundle, or analyse a curve from elsewhere
    Analyse(analyse::AnalyseArgs),
    /// Render results as HTML, Markdown or CSV
    Report(report::ReportArgs),
    /// Compare groups of runs with the first, with confidence
    Compare(compare::CompareArgs),
    /// Estimate how big a server must be for a load, from runs at lower loads
    Size(size::SizeArgs),
    /// Run a suite on two servers alternately, and compare them
    Versus(Box<versus::VersusArgs>),
    /// Check a bundle: checksums, signature, and the rules again
    Verify(verify::VerifyArgs),
    /// List the bundles below directories, newest first
    Runs(runs::RunsArgs),
    /// A table of results: bundles below directories and published results, a line each
    Board(board::BoardArgs),
    /// What the disclosure contains about this host
    Inventory(inventory::InventoryArgs),
    /// Transcribed results of the source reports
    Published(published::PublishedArgs),
    /// Manual pages, completions for a shell, and the schema of suite files
    Generate(generate::GenerateArgs),
}

impl Verb {
    /// Performs it.
    pub(crate) fn perform(self) -> Result<Exit, Failure> {
        match self {
            Self::Demo(args) => demo::perform(&args),
            Self::Suites(args) => suites::perform(&args),
            Self::Check(args) => check::perform(&args),
            Self::Run(args) => run::perform(&args),
            Self::Capacity(args) => capacity::perform(&args),
            Self::Recover(args) => recover::perform(&args),
            Self::Scale(args) => scale::perform(&args, Begin::New),
            Self::Experiment(args) => experiment::perform(&args, Begin::New),
            Self::Resume(args) => resume::perform(&args),
            Self::Calibrate(args) => calibrate::perform(&args),
            Self::Agent(args) => agent::perform(&args),
            Self::Agents(verb) => agents::perform(&verb),
            Self::Testbed(verb) => testbed::perform(&verb),
            Self::Import(args) => import::perform(&args),
            Self::Derive(args) => derive::perform(&args),
            Self::Prepare(args) => prepare::perform(&args),
            Self::Clean(args) => clean::perform(&args),
            Self::Serve(args) => serve::perform(&args),
            Self::Analyse(args) => analyse::perform(&args),
            Self::Report(args) => report::perform(&args),
            Self::Compare(args) => compare::perform(&args),
            Self::Size(args) => size::perform(&args),
            Self::Versus(args) => versus::perform(&args, Begin::New),
            Self::Verify(args) => verify::perform(&args),
            Self::Runs(args) => runs::perform(&args),
            Self::Board(args) => board::perform(&args),
            Self::Inventory(args) => inventory::perform(&args),
            Self::Published(args) => published::perform(&args),
            Self::Generate(args) => generate::perform(&args),
        }
    }
}

/// Creates a directory and its parents, if they do not exist.
fn make_directory(dir: &Path) -> Result<(), Failure> {
    std::fs::create_dir_all(dir).map_err(|e| {
        Failure::unusable(format!("{}: cannot make the directory: {e}", dir.display()))
    })
}

/// Writes a requested file, and reports it.
fn write(file: &Path, text: &str) -> Result<(), Failure> {
    write_durably(file, text.as_bytes())?;
    terminal::note(&file.display().to_string());
    Ok(())
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;
    use plimsoll_model::suite::Peak;

    use super::*;

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
