//! `plimsoll prepare SUITE DIR|TARGET`: writes the file set, on disk for a server that serves files
//! from there, or through a file server.

use std::path::Path;

use clap::Args;
use plimsoll_model::assignment::Load;
use plimsoll_model::suite::{
    Arrivals, InterArrival, LoadSpec, Override, Peak, Profile, ProfileName, Suite,
};
use plimsoll_model::target::TargetUrl;
use plimsoll_model::units::OpsPerSec;
use plimsoll_protocol::files::HostFiles;
use plimsoll_protocol::host::{Registration, reach};
use plimsoll_protocol::net::{Dial as _, SetupError};
use plimsoll_protocol::{PlanRequest, Work};
use plimsoll_run::coordinator::ladder;
use plimsoll_run::coordinator::setup::setup_shower;
use plimsoll_run::dial::SystemDial;
use plimsoll_run::protocols;

use crate::exit::{Exit, Failure};
use crate::flags::Progress;
use crate::flags::values::{parse_override, parse_peak};
use crate::interrupts;
use crate::suite_source;
use crate::terminal::{self, Live};

#[derive(Debug, Args)]
pub(crate) struct PrepareArgs {
    /// Name of a shipped suite, or path of a suite file
    pub suite: String,
    /// Directory your web server serves, or URL of a file server, for example nfs://host/export
    /// or smb://user@host/share
    #[arg(value_name = "DIR|TARGET")]
    pub place: String,
    /// Highest load you will request, in ops/s, or clients for closed suites; the size of the file
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

/// Writes the missing files of the unscaled file set.
pub(crate) fn perform(args: &PrepareArgs) -> Result<Exit, Failure> {
    let Peak::At(peak) = args.peak else {
        return Err(Failure::wrong(
            "--peak auto needs a server that runs; name the highest load you will ask for, in ops/s",
        ));
    };
    let suite = suite_source::find(&args.suite, &args.set)?;
    let registration = protocols::of_suite(&suite)?;
    match args.place.contains("://") {
        true => through_server(args, &suite, registration, peak),
        false => into_directory(args, &suite, registration, peak),
    }
}

fn into_directory(
    args: &PrepareArgs,
    suite: &Suite,
    registration: &Registration,
    peak: f64,
) -> Result<Exit, Failure> {
    let profile = suite.profiles.get(ProfileName::Full);
    let protocol = registration.protocol;
    let needed = protocol.file_set_needed(suite, profile, Some(peak))?.ok_or_else(|| {
        let remedy = match protocol.clean {
            Some(_) => "name the server instead of a directory: its files are written through it",
            None => "run it at once",
        };
        Failure::wrong(format!("suite {} needs no file set in a directory; {remedy}", suite.name))
    })?;
    let mut set = needed;
    if let Some(seed) = args.seed {
        set.seed = seed;
    }
    let signals = interrupts::listen()?;
    let mut live = Live::new(args.progress);
    let no_directory = || Failure::wrong(format!("suite {} needs no directory", suite.name));
    let directory = registration.directory.ok_or_else(no_directory)?;
    let written = {
        let mut show = setup_shower("file set", &signals, &mut live);
        (directory.write)(Path::new(&args.place), set, &mut show)
    };
    drop(live);
    let prepared = written?;
    terminal::print(&format!(
        "{}: {} directories of files, seed {}; {} written in {} files.\n\
         Serve this directory, then: plimsoll run {} http://HOST:PORT/ --peak {peak}",
        args.place,
        prepared.id.directories,
        prepared.id.seed,
        prepared.written,
        prepared.files_written,
        args.suite,
    ));
    Ok(Exit::Valid)
}

fn through_server(
    args: &PrepareArgs,
    suite: &Suite,
    registration: &Registration,
    peak: f64,
) -> Result<Exit, Failure> {
    let url = TargetUrl::parse(&args.place)?;
    let protocol = registration.protocol;
    let Some(port) = registration.port_of(&url).filter(|_| protocol.clean.is_some()) else {
        return Err(Failure::wrong(format!(
            "{url}: the files of suite {} cannot be written through this server; name a directory",
            suite.name
        )));
    };
    if args.seed.is_some() {
        return Err(Failure::wrong(
            "--seed is for a directory; through a file server write --set \
             workload.file_set_seed=N, here and for the run",
        ));
    }
    let targets = [reach::resolve(&url, port)?];
    // Without the password.
    let shown_url = url.to_string();
    let profile = suite.profiles.get(ProfileName::Full);
    let (load, unit) = load_of(suite, profile, peak);
    let is_open = matches!(load, Load::Open { .. });
    let signals = interrupts::listen()?;
    let dial = SystemDial::new(signals.clone());
    let plan = (protocol.plan)(&PlanRequest {
        highest_ops_per_s: is_open.then_some(peak),
        files: &HostFiles::default(),
        ..PlanRequest::plain(suite, profile, &targets, &dial)
    })?;
    let Work::PerPoint(mut preparation) = plan.work else {
        return Err(Failure::wrong(format!("suite {} needs no file set", suite.name)));
    };
    let mut live = Live::new(args.progress);
    let mut written = None;
    let ended = {
        let mut show = setup_shower("prepare", &signals, &mut live);
        preparation.ready(&load, &dial, &mut |at| {
            written = Some(at.bytes);
            show(at)
        })
    };
    drop(live);
    terminal::note_nonconformities(&dial.nonconformities().take());
    if let Err(SetupError::Stopped) = ended {
        return Err(Failure::interrupted(format!(
            "{shown_url}: stopped; what is written stays and is used again: prepare once more, or \
             plimsoll clean '{shown_url}'"
        )));
    }
    ended?;
    let written = written.unwrap_or_default();
    let run = match is_open {
        true => format!("plimsoll run {} '{shown_url}' --peak {peak}", args.suite),
        false => format!("plimsoll run {} '{shown_url}'", args.suite),
    };
    terminal::print(&format!(
        "{shown_url}: the file set for {peak} {unit} is complete; {written} written.\nNow: {run}"
    ));
    Ok(Exit::Valid)
}

/// A load that needs the file set of `peak`, and its unit.
fn load_of(suite: &Suite, profile: &Profile, peak: f64) -> (Load, &'static str) {
    match &suite.load {
        LoadSpec::Closed { .. } => (ladder::load_at(suite, profile, peak), "clients"),
        LoadSpec::Open { .. } => {
            let load = Load::Open {
                // The flag's parser accepts only positive numbers.
                rate_ops_per_s: OpsPerSec::new(peak).unwrap_or_default(),
                arrivals: Arrivals::PerClient,
                gaps: InterArrival::Exponential,
                clients: 1,
                backlog_ops_max: 1,
            };
            (load, "ops/s")
        }
    }
}
