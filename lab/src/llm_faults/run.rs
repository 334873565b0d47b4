//! One client in one scenario, with a server of its own.

use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use plimsoll_testkit::llm_server::Staged;
use xtask::verb::Result;

use super::reports::{self, ReportedFigures};
use super::scenarios::Scenario;
use crate::clients::client::InstalledClient;
use crate::network::{GENERATOR_CORE, SERVER_CORE};
use crate::{process, program};

/// No scenario needs more than ten seconds, and the slowest client ten to start.
const SECONDS_MAX: u64 = 45;

/// What a run gave.
pub enum Outcome {
    Report(ReportedFigures, Observation),
    /// No report: this text instead.
    Nothing(String),
    /// It did not end in [`SECONDS_MAX`].
    NoEnd,
}

/// What the server saw of it.
pub struct Observation {
    pub requests: u64,
    /// Streams at once, at most.
    pub open: u64,
    /// On which requests came.
    pub connections: u64,
    /// From the first request to the last.
    pub asking: Duration,
}

/// Every client, one after the other.
pub fn run_scenario(scenario: &Scenario, installed: &[InstalledClient]) -> Result<Vec<Outcome>> {
    eprintln!("\n== {}: {} ==", scenario.fault, scenario.server);
    installed.iter().map(|one| on(scenario, one)).collect()
}

fn on(scenario: &Scenario, installed: &InstalledClient) -> Result<Outcome> {
    let server = Staged::new(scenario.script);
    let folder = program::temporary()?;
    let outcome = outcome(scenario, installed, &server, folder.path())?;
    match &outcome {
        Outcome::Report(figures, observed) => eprintln!(
            "{:22} {figures:?}; the server saw {} requests on {} connections, {} at once",
            installed.client.name(),
            observed.requests,
            observed.connections,
            observed.open
        ),
        Outcome::Nothing(message) => {
            eprintln!("{:22} no report: {message}", installed.client.name())
        }
        Outcome::NoEnd => eprintln!("{:22} no end", installed.client.name()),
    }
    Ok(outcome)
}

fn outcome(
    scenario: &Scenario,
    installed: &InstalledClient,
    server: &Staged,
    folder: &Path,
) -> Result<Outcome> {
    let arguments =
        reports::arguments(installed, &server.url, scenario.load, scenario.tokens, folder)?;
    let Some(arguments) = arguments else {
        return Ok(Outcome::Nothing("it has no chats of a given length".to_owned()));
    };
    let mut command = installed.with(&arguments, &[GENERATOR_CORE, SERVER_CORE], folder);
    // A client of several processes is ended with all of them.
    command.process_group(0);
    let mut group = None;
    let limit = Duration::from_secs(SECONDS_MAX);
    let finished = process::run(&mut command, limit, |id, _| group = Some(id));
    if let Some(group) = group {
        let _ = Command::new("kill").args(["-KILL", "--", &format!("-{group}")]).output();
    }
    let Ok(finished) = finished else { return Ok(Outcome::NoEnd) };
    Ok(match reports::read(installed.client, &finished, folder) {
        Ok(figures) => Outcome::Report(figures, observe(server)),
        Err(message) => Outcome::Nothing(message),
    })
}

fn observe(server: &Staged) -> Observation {
    let log = server.log();
    let times = log.requests.first().zip(log.requests.last());
    Observation {
        requests: log.requests.len() as u64,
        open: log.open_max,
        connections: log.connections_used() as u64,
        asking: times.map_or(Duration::ZERO, |(first, last)| last.at - first.at),
    }
}
