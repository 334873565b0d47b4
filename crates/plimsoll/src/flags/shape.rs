//! `--shape`: a load that changes, from a text, a file or the log that a suite names.

use std::path::{Path, PathBuf};

use plimsoll_model::load_shape::LoadShape;
use plimsoll_model::suite::{CLIENTS_MAX, Ladder, LoadSpec, Suite};
use plimsoll_model::units::{Nanos, counted};
use plimsoll_run::coordinator::RunRequest;
use plimsoll_run::text_file;

use super::RunArgs;
use crate::exit::Failure;

/// In place of a text: the log that the suite names.
const LOG: &str = "log";
/// Ending of a file's name in place of a text.
const FILE_ENDING: &str = ".csv";

/// Refuses flags that ask for loads or lengths that a shape has itself, each with the reason.
pub(crate) fn refuse_others(args: &RunArgs, flag: &str) -> Result<(), Failure> {
    let (ladder, url) = (&args.ladder, &args.url);
    let loads = "its loads are those of the shape";
    let length = "it is as long as its phases";
    let conflicts = [
        (!ladder.points.is_empty(), "--points", loads),
        (ladder.peak.is_some(), "--peak", loads),
        (ladder.steps.is_some(), "--steps", loads),
        (url.hold.is_some(), "--hold", "connections that are kept open have no changing load"),
        (url.requests.is_some(), "--requests", length),
        (args.until.is_some(), "--until", length),
        (args.llm.trace.is_some(), "--trace", "a trace has a schedule of its own"),
        (args.replay.loadfile.is_some(), "--loadfile", "a load file has a schedule of its own"),
        (args.like.is_some(), "--like", "that run has its own loads"),
        (args.profile_server.is_some(), "--profile-server", "a profile needs a load that stays"),
    ];
    match conflicts.into_iter().find(|(given, ..)| *given) {
        None => Ok(()),
        Some((_, other, reason)) => {
            Err(Failure::wrong(format!("{flag} and {other}: {reason}; leave one of the two out")))
        }
    }
}

/// The load that a shape multiplies: that of `--rate`, `--sessions` or `--clients`.
fn base_load(args: &RunArgs) -> Result<Option<f64>, Failure> {
    let url = &args.url;
    let open = if url.sessions.is_empty() { &url.rate } else { &url.sessions };
    if open.len() > 1 {
        return Err(Failure::wrong(format!(
            "--shape and {}: a shape begins at one load; write one",
            counted(open.len(), "rate")
        )));
    }
    Ok(open.first().copied().or(url.clients.map(f64::from)))
}

/// Takes the length out of the flags: of a log that is played, it is the length of the run.
pub(crate) fn take_length(args: &mut RunArgs) -> Result<Option<Nanos>, Failure> {
    let is_log = args.shape.as_deref() == Some(LOG);
    match args.take_length() {
        Some(_) if !is_log => Err(Failure::wrong(
            "--shape and --for: the run is as long as the phases of the shape; --for goes with \
             --shape log, which it plays in that time",
        )),
        length => Ok(length),
    }
}

/// Adds the shape to a request for the suite.
pub(crate) fn add_to(
    request: &mut RunRequest,
    args: &RunArgs,
    (text, length): (&str, Option<Nanos>),
) -> Result<(), Failure> {
    let base = base_load(args)?;
    let suite = &mut request.suite;
    refuse_suite(suite)?;
    let shape = match text.trim() {
        LOG => read_log(suite, &args.suite, length)?,
        file if file.ends_with(FILE_ENDING) => {
            let text = read(Path::new(file))?;
            LoadShape::from_points(file, &text)
                .map_err(|e| Failure::wrong(format!("--shape: {e}")))?
        }
        text => {
            LoadShape::parse(text, base).map_err(|e| Failure::wrong(format!("--shape: {e}")))?
        }
    };
    let is_closed = matches!(suite.load, LoadSpec::Closed { .. });
    if is_closed && shape.max() > f64::from(CLIENTS_MAX) {
        return Err(Failure::wrong(format!(
            "--shape: at most {CLIENTS_MAX} clients are there at a time, not {}",
            shape.max()
        )));
    }
    // Set-up prepares for the highest load.
    suite.ladder = Ladder::Points { points: vec![shape.max().ceil()] };
    request.options.shape = Some(shape);
    Ok(())
}

/// Refuses suites whose load points are no loads.
fn refuse_suite(suite: &Suite) -> Result<(), Failure> {
    let reason = match &suite.ladder {
        Ladder::Think { .. } => "its ladder is one of think times",
        _ if suite.score.is_some() => "its score is that of a ladder of clients",
        _ if suite.endpoints.is_some() => "its rules are those of a ladder",
        _ => return Ok(()),
    };
    Err(Failure::wrong(format!("--shape: suite {} has no changing load: {reason}", suite.name)))
}

/// The log that the suite names, relative to its file.
fn read_log(suite: &Suite, file: &str, length: Option<Nanos>) -> Result<LoadShape, Failure> {
    let LoadSpec::Open { log: Some(log), .. } = &suite.load else {
        return Err(Failure::wrong(format!(
            "--shape log: suite {} names no log; write log = \"rate.csv\" below [load] in its file, \
             with the columns seconds,rate_per_s, or --shape FILE.csv",
            suite.name
        )));
    };
    let path: PathBuf = Path::new(file).parent().unwrap_or(Path::new("")).join(log);
    let text = read(&path)?;
    let name = path.display().to_string();
    LoadShape::from_log(&name, &text, length)
        .map_err(|error| Failure::wrong(format!("--shape log: {error}")))
}

fn read(file: &Path) -> Result<String, Failure> {
    text_file::read(file).map_err(|e| {
        Failure::wrong(format!("--shape {}: cannot read the file: {e}", file.display()))
    })
}
