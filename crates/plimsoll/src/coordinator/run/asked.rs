//! What a run was asked for: into the journal at its start, out of the bundle when it goes on.

use plimsoll_model::bundle::{BundleReader, SUITE_FILE};
use plimsoll_model::event::{JOURNAL_FORMAT, JournalRecord, RunStarted};
use plimsoll_model::suite::ProfileName;
use plimsoll_model::target::TargetSpec;

use super::super::clock::unix_ns;
use super::super::ladder;
use super::super::outset::{Outset, RunRequest};
use crate::exit::Failure;
use crate::suite_source;

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
    let last = journal.records.iter().rev().find_map(|record| match record {
        JournalRecord::PointStarted { assignment, .. } => Some(assignment),
        _ => None,
    });
    let targets = started.targets.iter().map(|text| TargetSpec::parse(text));
    Ok(RunRequest {
        suite: suite_source::parse(&file, reader.suite_text(), &[])?,
        profile: profile_named(&started.profile)?,
        targets: targets.collect::<Result<_, _>>()?,
        seed: started.seed,
        out: dir.to_owned(),
        workers: last.map(|assignment| assignment.workers),
        pacing: last.map(|assignment| assignment.pacing),
        statements: Vec::new(),
        command: started.command.clone(),
    })
}

fn profile_named(name: &str) -> Result<ProfileName, Failure> {
    [ProfileName::Full, ProfileName::Standard, ProfileName::Quick, ProfileName::Demo]
        .into_iter()
        .find(|profile| profile.as_str() == name)
        .ok_or_else(|| Failure::wrong(format!("profile {name:?} is not known to this version")))
}

/// The journal's first record.
pub(super) fn run_started(request: &RunRequest, outset: &Outset) -> RunStarted {
    RunStarted {
        format: JOURNAL_FORMAT,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        debug_build: cfg!(debug_assertions),
        profile: request.profile.as_str().to_owned(),
        seed: request.seed,
        targets: request.targets.iter().map(ToString::to_string).collect(),
        ladder: outset.ladder.known().map(<[f64]>::to_vec),
        op_names: outset.plan.workload.op_names(),
        op_shares: outset.plan.workload.op_shares(),
        departures: departures(request, outset),
        command: request.command.clone(),
        at_unix_ns: unix_ns(),
    }
}

/// Every parameter that departs from the published method.
pub(super) fn departures(request: &RunRequest, outset: &Outset) -> Vec<String> {
    let mut departures = ladder::profile_departures(&request.suite, request.profile);
    departures.extend(outset.plan.departures.iter().cloned());
    departures
}
