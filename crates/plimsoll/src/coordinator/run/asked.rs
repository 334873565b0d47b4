//! What a run was asked for: into the journal at its start, out of the bundle when it goes on.

use std::path::Path;

use plimsoll_model::assignment::{Pacing, Priority};
use plimsoll_model::bundle::{BundleReader, SUITE_FILE};
use plimsoll_model::disclosure::Disclosure;
use plimsoll_model::event::{JOURNAL_FORMAT, RunStarted};
use plimsoll_model::suite::{ProfileName, Suite};
use plimsoll_model::target::TargetSpec;
use plimsoll_monitor::MonitorUrl;
use plimsoll_protocol::{InputFile, LOAD_FILE, LOAD_FILE_SHA256};

use super::super::disclose::{HELD, PACING, PRIORITY, PRIORITY_NORMAL, WORKERS};
use super::super::ladder;
use super::super::run_setup::{RunRequest, RunSetup};
use super::super::sources;
use crate::clock::unix_ns;
use crate::exit::Failure;
use crate::load_file;
use crate::observers::ObserverWishes;
use crate::secrets::separate;
use crate::suite_source;
use crate::systems::Systems;

/// What the interrupted run was asked for.
pub(super) fn request_of(reader: &BundleReader) -> Result<RunRequest, Failure> {
    let dir = reader.dir();
    let journal = reader.journal();
    if journal.is_finished() {
        return Err(Failure::wrong(format!(
            "{}: the run has finished, nothing is left to do; to see it: plimsoll report {0}",
            dir.display()
        )));
    }
    let started = journal.started().ok_or_else(|| {
        Failure::wrong(format!(
            "{}: the run was killed before it began; remove the directory and run again",
            dir.display()
        ))
    })?;
    let file = dir.join(SUITE_FILE).display().to_string();
    let disclosed = reader.disclosure()?.unwrap_or_default();
    if let Some(held) = setting(&disclosed, HELD) {
        return Err(Failure::wrong(format!(
            "{}: this is one run of plimsoll scale or plimsoll demo, whose server was held to \
             {held}; make it again as a whole",
            dir.display()
        )));
    }
    let targets = started.targets.iter().map(|text| TargetSpec::parse(text));
    let (suite, headers) = separate(suite_source::parse(&file, reader.suite_text(), &[])?)?;
    let loadfile = loadfile_of(&disclosed, &suite)?;
    Ok(RunRequest {
        suite,
        headers,
        profile: profile_named(&started.profile)?,
        targets: targets.collect::<Result<_, _>>()?,
        seed: started.seed,
        out: dir.to_owned(),
        // Not from a load point: one of few clients has fewer workers than the run.
        workers: setting(&disclosed, WORKERS).and_then(|text| text.parse().ok()),
        pacing: setting(&disclosed, PACING).and_then(pacing_named).unwrap_or(Pacing::Auto),
        priority: match setting(&disclosed, PRIORITY) {
            Some(text) if text.starts_with(PRIORITY_NORMAL) => Priority::Normal,
            _ => Priority::Auto,
        },
        loadfile,
        monitors: monitors_of(&disclosed)?,
        // They watched the run that was interrupted; nobody asked for them again.
        observers: ObserverWishes::default(),
        statements: disclosed.statements,
        systems: Systems {
            inventories: disclosed.systems,
            stated: disclosed.stated.unwrap_or_default(),
        },
        capacity: started.capacity.clone(),
        gates: started.gates.clone(),
        held: None,
        command: started.command.clone(),
    })
}

/// The load file the run replays, read again.
fn loadfile_of(disclosed: &Disclosure, suite: &Suite) -> Result<Option<InputFile>, Failure> {
    let known = setting(disclosed, LOAD_FILE).zip(setting(disclosed, LOAD_FILE_SHA256));
    known.map(|(path, sum)| load_file::read_again(Path::new(path), sum, suite)).transpose()
}

/// The sources the run watched, without the communities of agents.
fn monitors_of(disclosed: &Disclosure) -> Result<Vec<MonitorUrl>, Failure> {
    let kept = disclosed.setup.iter().filter(|setting| setting.name == sources::MONITOR);
    let urls: Vec<String> = kept.map(|setting| setting.value.clone()).collect();
    sources::parse(&urls)
}

fn setting<'d>(disclosed: &'d Disclosure, name: &str) -> Option<&'d str> {
    let found = disclosed.setup.iter().find(|setting| setting.name == name);
    found.map(|setting| setting.value.as_str())
}

fn pacing_named(name: &str) -> Option<Pacing> {
    [Pacing::Auto, Pacing::Spin, Pacing::Precise, Pacing::Coalesce]
        .into_iter()
        .find(|pacing| pacing.as_str() == name)
}

fn profile_named(name: &str) -> Result<ProfileName, Failure> {
    [ProfileName::Full, ProfileName::Standard, ProfileName::Quick, ProfileName::Demo]
        .into_iter()
        .find(|profile| profile.as_str() == name)
        .ok_or_else(|| Failure::wrong(format!("profile {name:?} is not known to this version")))
}

/// The journal's first record.
pub(super) fn run_started(request: &RunRequest, setup: &RunSetup) -> RunStarted {
    RunStarted {
        format: JOURNAL_FORMAT,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        debug_build: cfg!(debug_assertions),
        profile: request.profile.as_str().to_owned(),
        seed: request.seed,
        targets: request.targets.iter().map(ToString::to_string).collect(),
        ladder: setup.ladder.known().map(<[f64]>::to_vec),
        op_names: setup.plan.op_names.clone(),
        op_shares: setup.plan.op_shares.clone(),
        departures: departures(request, setup),
        command: request.command.clone(),
        capacity: request.capacity.clone(),
        gates: request.gates.clone(),
        at_unix_ns: unix_ns(),
    }
}

/// Every parameter that departs from the published method.
pub(super) fn departures(request: &RunRequest, setup: &RunSetup) -> Vec<String> {
    let suite = &request.suite;
    let published = published(&suite.name);
    let method = published.as_ref().unwrap_or(suite);
    let mut departures = ladder::suite_departures(suite, request.profile, method);
    departures.extend(setup.plan.departures.iter().cloned());
    departures
}

/// The suite of that name as shipped, nothing overridden; a file of the user's own has none.
fn published(name: &str) -> Option<Suite> {
    let text = crate::protocols::shipped(name)?;
    suite_source::parse(name, text, &[]).ok()
}
