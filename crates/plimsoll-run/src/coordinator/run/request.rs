//! The request of a run: written into the journal at its start, read from the bundle when it is
//! resumed.

use std::path::Path;

use plimsoll_model::assignment::Purpose;
use plimsoll_model::bundle::{BundleReader, SUITE_FILE};
use plimsoll_model::event::{
    JOURNAL_FORMAT, JournalRecord, RequestedLoadFile, RunOptions, RunStarted,
};
use plimsoll_model::method::{self, MethodOf, Parameter, Practice};
use plimsoll_model::suite::{Changes, LadderChange, Override, ProfileName};
use plimsoll_model::target::TargetSpec;
use plimsoll_model::units::{Nanos, span_text};

use super::super::run_setup::{RunRequest, RunSetup};
use super::super::sources;
use super::tries;
use crate::clock::unix_ns;
use crate::failure::Failure;
use crate::fleet::Fleet;
use crate::load_file;
use crate::protocols::{parse_suite, shipped};
use crate::secrets::separate;
use crate::systems::Systems;

/// Key of a window's length in the method.
const MEASURE: &str = "profiles.full.measure";

/// The request of the interrupted run.
pub(super) fn request_of(reader: &BundleReader) -> Result<RunRequest, Failure> {
    if reader.journal().is_finished() {
        return Err(Failure::wrong(format!(
            "{}: the run has finished, nothing is left to do; to see it: plimsoll report {0}",
            reader.dir().display()
        )));
    }
    let started = started_of(reader)?;
    let Some(options) = &started.asked else {
        return Err(Failure::wrong(format!(
            "{dir}: the run was begun by plimsoll {}, whose journal does not say all that was \
             asked for; repeat it with plimsoll run SUITE TARGET --like {dir}",
            started.version,
            dir = reader.dir().display()
        )));
    };
    request(reader, started, options, Changes::default())
}

/// A run like that of the bundle, with other values of its suite: the same load points, whether
/// they were given or searched.
pub fn like(reader: &BundleReader, changed: &[Override]) -> Result<RunRequest, Failure> {
    let dir = reader.dir().display();
    let records = &reader.journal().records;
    let started = started_of(reader)?;
    if started.capacity.is_some() {
        return Err(Failure::wrong(format!(
            "--like {dir}: that was a search for a capacity, which has no ladder to repeat; make \
             it again with plimsoll capacity"
        )));
    }
    let Some(loads) = planned_loads(records).or(started.ladder.as_deref()) else {
        return Err(Failure::wrong(format!(
            "--like {dir}: that run ended before its load points were known; name another, or \
             write --points"
        )));
    };
    // Bundles of older versions lack it and get the defaults.
    let mut options = started.asked.clone().unwrap_or_default();
    if let Some(recover) = options.recover.take() {
        let searched = records.iter().find_map(|record| match record {
            JournalRecord::PeakFound { peak, .. } => Some(*peak),
            _ => None,
        });
        let shape = recover.shape(searched).map_err(|error| Failure::wrong(error.to_string()))?;
        options.shape = Some(shape);
    }
    let loads = options.shape.as_ref().map_or(loads.to_vec(), |shape| vec![shape.max().ceil()]);
    let ladder = LadderChange::Again(loads);
    let changes = Changes { values: changed, ladder: Some(&ladder), without: &[] };
    request(reader, started, &options, changes)
}

/// Not even the first record was written.
pub(super) fn not_begun(dir: &Path) -> Failure {
    Failure::wrong(format!(
        "{}: the run was killed before it began; remove the directory and run again",
        dir.display()
    ))
}

fn started_of(reader: &BundleReader) -> Result<&RunStarted, Failure> {
    reader.journal().started().ok_or_else(|| not_begun(reader.dir()))
}

/// The request of a run, with some changes of its suite.
fn request(
    reader: &BundleReader,
    started: &RunStarted,
    options: &RunOptions,
    changes: Changes<'_>,
) -> Result<RunRequest, Failure> {
    let dir = reader.dir();
    if let Some(limits) = &options.server_limits {
        return Err(Failure::wrong(format!(
            "{}: this is one run of plimsoll scale or plimsoll demo, whose server was held to \
             {limits}; make it again as a whole",
            dir.display()
        )));
    }
    let file = dir.join(SUITE_FILE).display().to_string();
    let (suite, headers) = separate(parse_suite(&file, reader.suite_text(), changes)?)?;
    let profile = ProfileName::named(&started.profile).ok_or_else(|| {
        Failure::wrong(format!("profile {:?} is not known to this version", started.profile))
    })?;
    let load_file = options.load_file.as_ref();
    let targets = started.targets.iter().map(|text| TargetSpec::parse(text));
    let disclosed = reader.disclosure()?.unwrap_or_default();
    let (of_agents, monitors) = sources::agents_apart(&options.monitors);
    Ok(RunRequest {
        headers,
        targets: targets.collect::<Result<_, _>>()?,
        seed: started.seed,
        out: dir.to_owned(),
        loadfile: load_file.map(|file| load_file::read_again(file, &suite)).transpose()?,
        monitors: sources::parse(&monitors)?,
        monitors_agents: !of_agents.is_empty(),
        options: options.clone(),
        statements: disclosed.statements,
        systems: Systems {
            inventories: disclosed.systems,
            declared: disclosed.stated.unwrap_or_default(),
        },
        capacity: started.capacity.clone(),
        gates: started.gates.clone(),
        command: started.command.clone(),
        // Observers watched the interrupted run. They are not requested again.
        ..RunRequest::plain(suite, profile)
    })
}

/// What the journal keeps of a request, with the values that set-up chose.
fn settled_options(request: &RunRequest, setup: &RunSetup) -> RunOptions {
    let load_file = request.loadfile.as_ref();
    let of_agents = request.monitors_agents.then(|| sources::AGENTS.to_owned());
    RunOptions {
        // The number for agents is a sum. None of them may take it as its own when the run is
        // resumed.
        workers: match request.options.agents {
            None => Some(setup.placement.workers),
            Some(_) => request.options.workers,
        },
        pacing: setup.placement.pacing,
        load_file: load_file
            .map(|file| RequestedLoadFile { path: file.path.clone(), sha256: file.sha256.clone() }),
        monitors: request.monitors.iter().map(ToString::to_string).chain(of_agents).collect(),
        ..request.options.clone()
    }
}

/// The journal's first record.
pub(super) fn run_started(
    request: &RunRequest,
    setup: &RunSetup,
    fleet: Option<&Fleet>,
) -> RunStarted {
    let method = parameters(request, setup, fleet);
    RunStarted {
        format: JOURNAL_FORMAT,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        debug_build: cfg!(debug_assertions),
        profile: request.profile.as_str().to_owned(),
        seed: request.seed,
        targets: request.targets.iter().map(ToString::to_string).collect(),
        ladder: match (&request.options.shape, request.options.recover) {
            (Some(shape), _) => Some(shape.phases.iter().map(|phase| phase.mean).collect()),
            (None, Some(_)) => None,
            (None, None) => setup.ladder.fixed_loads().map(<[f64]>::to_vec),
        },
        op_names: setup.plan.op_names.clone(),
        op_shares: setup.plan.op_shares.clone(),
        page_limits: setup.plan.page_limits.clone(),
        sessions: setup.plan.sessions.clone(),
        departures: method::deviations(&method),
        method,
        command: request.command.clone(),
        capacity: request.capacity.clone(),
        gates: request.gates.clone(),
        asked: Some(Box::new(settled_options(request, setup))),
        at_unix_ns: unix_ns(),
    }
}

/// Every parameter of the run besides the method's.
pub(super) fn parameters(
    request: &RunRequest,
    setup: &RunSetup,
    fleet: Option<&Fleet>,
) -> Vec<Parameter> {
    let mut practices = setup.plan.practices.clone();
    practices.extend(practices_outside_suite(request));
    let is_here = setup.targets.iter().any(|target| target.is_here);
    match fleet {
        Some(fleet) => practices.push(Practice::new(method::HOSTS, fleet.hosts_text(is_here))),
        None if is_here => practices.push(Practice::new(method::HOSTS, method::SERVERS_HOST)),
        None => {}
    }
    let name = &request.suite.name;
    let shipped = setup.shipped.get_or_init(|| parse_suite(name, shipped(name)?, &[]).ok());
    if request.targets.iter().any(TargetSpec::is_started) {
        let origins = &shipped.as_ref().unwrap_or(&request.suite).origins;
        let spoken_of = setup.registration.servers_practice.iter();
        let spoken_of = spoken_of.filter(|(key, _)| origins.names(key));
        practices.extend(spoken_of.map(|(key, value)| Practice::new(key, *value)));
    }
    method::parameters(&MethodOf {
        suite: &request.suite,
        profile: request.profile,
        shipped: shipped.as_ref(),
        practices: &practices,
    })
}

/// Practices of the run that the command line sets and no key of the suite does.
fn practices_outside_suite(request: &RunRequest) -> Vec<Practice> {
    let runs =
        request.options.in_a_row.iter().map(|run| Practice::new("generator.runs", run.to_string()));
    let mut practices: Vec<Practice> = runs.collect();
    let profile = request.suite.profiles.get(request.profile);
    let until = request.options.until.as_ref();
    let until_precise = |usual: Nanos| {
        let until = until?;
        let at_most = span_text(until.at_most(usual));
        Some(format!("as long as {} takes, with pilots {at_most} at most", until.precision))
    };
    let Some(capacity) = &request.capacity else {
        let text = until_precise(profile.measure);
        practices.extend(text.map(|text| Practice::new(MEASURE, text)));
        return practices;
    };
    let of = |purpose| tries::phases(request.profile, profile, capacity, purpose);
    let (tried, again) = (of(Purpose::Ladder), of(Purpose::Verify));
    let both = |tried, again| match tried == again {
        true => span_text(tried),
        false => format!("{}, and {} when a load is run again", span_text(tried), span_text(again)),
    };
    let searched = "searched, the highest load within the limits that were asked for";
    practices.extend([
        Practice::new("ladder", searched),
        Practice::new("profiles.full.warm_up", both(tried.warm_up_ns, again.warm_up_ns)),
        Practice::new(
            MEASURE,
            until_precise(tried.measure_ns)
                .unwrap_or_else(|| both(tried.measure_ns, again.measure_ns)),
        ),
        Practice::new("profiles.full.ramp_down", both(tried.ramp_down_ns, again.ramp_down_ns)),
    ]);
    practices
}

/// The ladder that an earlier part of the run planned.
pub(super) fn planned_loads(records: &[JournalRecord]) -> Option<&[f64]> {
    records.iter().rev().find_map(|record| match record {
        JournalRecord::LadderPlanned { loads, .. } => Some(&loads[..]),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use plimsoll_model::suite::{Origin, Suite};

    use super::*;
    use crate::protocols;

    /// Parameters that a protocol declares in a run, and that no suite need contain.
    const DECLARED_BY_PROTOCOLS: [&str; 1] = ["workload.file_set.directories"];

    fn table(suite: &Suite) -> Vec<Parameter> {
        let profile = ProfileName::Full;
        method::parameters(&MethodOf { suite, profile, shipped: Some(suite), practices: &[] })
    }

    fn shipped_suites() -> Vec<Suite> {
        let all = protocols::shipped_suites();
        all.map(|(name, text)| parse_suite(name, text, &[]).unwrap()).collect()
    }

    #[test]
    fn every_parameter_of_every_shipped_suite_has_an_origin() {
        let suites = shipped_suites();
        assert!(suites.len() >= 15, "{}", suites.len());
        for suite in suites {
            let unsaid: Vec<_> = table(&suite)
                .into_iter()
                .filter(|row| row.said.is_empty())
                .map(|row| row.key)
                .collect();
            assert!(unsaid.is_empty(), "{}: no origin of {unsaid:?}", suite.name);
        }
    }

    #[test]
    fn every_origin_of_a_shipped_suite_is_of_a_parameter() {
        for suite in shipped_suites() {
            let rows = table(&suite);
            let origins = &suite.origins;
            let theirs = [&origins.source, &origins.public];
            let others = [&origins.substitute, &origins.ours, &origins.yours];
            for key in
                theirs.into_iter().chain(others).chain([&origins.method]).flat_map(|map| map.keys())
            {
                let within = |row: &Parameter| {
                    row.key.strip_prefix(key).is_some_and(|it| it.is_empty() || it.starts_with('.'))
                };
                let is_parameter = rows.iter().any(within)
                    || key.starts_with("generator.")
                    || DECLARED_BY_PROTOCOLS.contains(&key.as_str());
                assert!(is_parameter, "{}: {key} is no parameter", suite.name);
            }
            let theirs = origins.source.keys().chain(origins.public.keys());
            for key in theirs.filter(|key| key.starts_with("generator.")) {
                let named = origins.method.contains_key(key);
                assert!(named, "{}: what the method has of {key} is not said", suite.name);
            }
            for key in origins.method.keys() {
                assert!(origins.find(key).0.is_the_methods(), "{}: {key}", suite.name);
            }
        }
    }

    /// What the published methods leave open, by the start of a suite's name.
    const UNPUBLISHED: [(&str, &[&str]); 6] = [
        ("web-static", &["workload.file_set.poisson_mean"]),
        (
            "nfs",
            &[
                "workload.access_groups",
                "workload.access_poisson_mean",
                "workload.append_percent",
                "workload.outstanding_max",
                "load.clients",
                "load.gaps",
            ],
        ),
        (
            "disk-mix",
            &["workload.model.sessions", "workload.model.mix", "workload.model.read_sizes"],
        ),
        (
            "disk-mix-superlab",
            &["ladder", "load.start_delay", "profiles.full", "workload.model.applications.mail"],
        ),
        ("nic", &["ladder", "load.start_delay", "profiles.full"]),
        ("transactions", &["workload.mix", "workload.work", "profiles.full"]),
    ];

    #[test]
    fn what_a_method_never_published_is_not_called_its_own() {
        for suite in shipped_suites() {
            let rows = table(&suite);
            let unpublished = UNPUBLISHED.iter().filter(|(name, _)| suite.name.starts_with(name));
            for key in unpublished.flat_map(|(_, keys)| *keys) {
                // A key with an entry of its own has its own origin.
                let below = |row: &Parameter| {
                    row.key.starts_with(&format!("{key}.")) && !suite.origins.names(&row.key)
                };
                let within = |row: &&Parameter| row.key == *key || below(row);
                assert!(rows.iter().any(|row| within(&row)), "{}: {key}", suite.name);
                for row in rows.iter().filter(within) {
                    let is_ours = matches!(row.origin, Origin::Ours | Origin::Substitute);
                    assert!(is_ours && row.method.is_none(), "{}: {row:?}", suite.name);
                }
            }
            // Nor may an entry admit in its text that a value is unpublished.
            let theirs = suite.origins.source.iter().chain(&suite.origins.public);
            for (key, text) in theirs {
                let admits = ["unpublished", "never published", "are ours"];
                assert!(!admits.iter().any(|it| text.contains(it)), "{}: {key}", suite.name);
            }
        }
    }

    #[test]
    fn a_method_of_many_machines_is_named_wherever_a_source_had_them() {
        for suite in shipped_suites() {
            let rows = table(&suite);
            let hosts = rows.iter().find(|row| row.key == method::HOSTS).unwrap();
            // A URL has no published method, journeys name theirs themselves, and that of language
            // model suites uses one client.
            let is_free = suite.name == "web-url" || suite.workload.has_journeys();
            let has_method = !is_free && suite.protocol != "llm";
            let deviation = hosts.departure.as_deref();
            assert_eq!(hosts.origin == Origin::Source, has_method, "{}", suite.name);
            assert_eq!(deviation.is_some(), has_method, "{}: {deviation:?}", suite.name);
        }
    }
}
