//! One client on one stage, which nobody shares with it.

use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use plimsoll_testkit::llm_server::Staged;
use xtask::verb::Result;

use super::stages::Stage;
use super::told::{self, Told};
use crate::clients::client::Found;
use crate::place::{GENERATOR_CORE, SERVER_CORE};
use crate::{process, program};

/// No stage needs more, with half a minute to start on a busy machine.
const SECONDS_MAX: u64 = 75;

/// What a run gave.
pub enum Outcome {
    Report(Told, Seen),
    /// No report: these words instead.
    Nothing(String),
    /// It did not end in [`SECONDS_MAX`].
    NoEnd,
}

/// What the server saw of it.
pub struct Seen {
    pub requests: u64,
    /// Streams at once, at most.
    pub open: u64,
    /// On which requests came.
    pub connections: u64,
    /// From the first request to the last.
    pub asking: Duration,
}

/// Every client, one after the other.
pub fn on_stage(stage: &Stage, found: &[Found]) -> Result<Vec<Outcome>> {
    eprintln!("\n== {}: {} ==", stage.fault, stage.server);
    found.iter().map(|one| on(stage, one)).collect()
}

fn on(stage: &Stage, found: &Found) -> Result<Outcome> {
    let server = Staged::new(stage.script);
    let folder = program::temporary()?;
    let outcome = outcome(stage, found, &server, folder.path())?;
    match &outcome {
        Outcome::Report(told, seen) => eprintln!(
            "{:22} {told:?}; the server saw {} requests on {} connections, {} at once",
            found.client.name(),
            seen.requests,
            seen.connections,
            seen.open
        ),
        Outcome::Nothing(words) => eprintln!("{:22} no report: {words}", found.client.name()),
        Outcome::NoEnd => eprintln!("{:22} no end", found.client.name()),
    }
    Ok(outcome)
}

fn outcome(stage: &Stage, found: &Found, server: &Staged, folder: &Path) -> Result<Outcome> {
    let arguments = told::arguments(found, &server.url, stage.load, stage.tokens, folder)?;
    let Some(arguments) = arguments else {
        return Ok(Outcome::Nothing("it has no chats of a given length".to_owned()));
    };
    let mut command = found.with(&arguments, &[GENERATOR_CORE, SERVER_CORE], folder);
    // A client of several processes is ended with all of them.
    command.process_group(0);
    let mut group = None;
    let limit = Duration::from_secs(SECONDS_MAX);
    let finished = process::run(&mut command, limit, |id, _| group = Some(id));
    if let Some(group) = group {
        let _ = Command::new("kill").args(["-KILL", "--", &format!("-{group}")]).output();
    }
    let Ok(finished) = finished else { return Ok(Outcome::NoEnd) };
    Ok(match told::read(found.client, &finished, folder) {
        Ok(told) => Outcome::Report(told, seen(server)),
        Err(words) => Outcome::Nothing(words),
    })
}

fn seen(server: &Staged) -> Seen {
    let log = server.log();
    let times = log.asked.first().zip(log.asked.last());
    Seen {
        requests: log.asked.len() as u64,
        open: log.open_max,
        connections: log.connections_asked_on() as u64,
        asking: times.map_or(Duration::ZERO, |(first, last)| last.at - first.at),
    }
}
