//! `plimsoll agents`: tries agents before a run, and prints what Kubernetes makes agents from.

mod manifest;
mod shown;

use std::collections::BTreeMap;

use plimsoll_fleet::clock::Reading;
use plimsoll_fleet::message::Greeting;
use plimsoll_model::disclosure::Network;
use plimsoll_model::units::{Nanos, grouped};
use serde::Serialize;

use crate::cli::{AgentsCheckArgs, AgentsVerb};
use crate::exit::{Exit, Failure};
use crate::fleet::{Fleet, Member, Tried};
use crate::host_inventory::own_sha256;
use crate::signals::Signals;
use crate::terminal::{self, Live};

/// Version of `--json`.
const CHECK_FORMAT: u32 = 1;
/// As many connections as one address has ports for by default (32768 to 60999): with fewer files
/// it is the files that limit an agent.
const OPEN_FILES_ENOUGH: u64 = 28_232;
/// From here on a run calls the bound of a clock into question.
const CLOCK_BOUND_ENOUGH: Nanos = Nanos::from_millis(1);

/// An agent that was tried.
#[derive(Serialize)]
struct CheckedAgent {
    /// As a run names it.
    agent: String,
    /// What it has; absent where it could not be started.
    #[serde(skip_serializing_if = "Option::is_none")]
    found: Option<FoundAgent>,
    /// Why it could not be started.
    #[serde(skip_serializing_if = "Option::is_none")]
    failed: Option<String>,
    /// What a run may miss, for a person.
    missing: Vec<String>,
}

/// What an agent has.
#[derive(Serialize)]
struct FoundAgent {
    version: String,
    program_sha256: String,
    /// Its program is this one.
    same_program: bool,
    host: String,
    boot_id: String,
    system: String,
    cores: Vec<u32>,
    memory_bytes: Option<u64>,
    networks: Vec<Network>,
    open_files_max: Option<u64>,
    /// It may bind ports below 1024.
    reserves_ports: bool,
    /// The true offset of its clock is at most so far from the measured one.
    clock_bound_ns: Nanos,
    /// The shortest.
    round_trip_ns: Nanos,
}

pub(crate) fn perform(verb: &AgentsVerb) -> Result<Exit, Failure> {
    match verb {
        AgentsVerb::Check(args) => check(args),
        AgentsVerb::Manifest(args) => {
            terminal::print(&manifest::text(args));
            Ok(Exit::Valid)
        }
    }
}

/// Starts each agent and prints what it has, or why it could not be started.
fn check(args: &AgentsCheckArgs) -> Result<Exit, Failure> {
    let signals = Signals::listen()?;
    let mut live = Live::new(args.progress);
    let tried = Fleet::try_out(&args.asked(), &signals, &mut live)?;
    drop(live);
    let agents = checked(&tried);
    drop(tried);
    if args.json {
        let all = serde_json::json!({ "format": CHECK_FORMAT, "agents": agents });
        terminal::print(&format!("{all:#}"));
    } else {
        terminal::print(&shown::text(&agents, terminal::stdout_style()));
    }
    let all_are_there = agents.iter().all(|agent| agent.failed.is_none());
    Ok(if all_are_there { Exit::Valid } else { Exit::Unusable })
}

fn checked(tried: &Tried) -> Vec<CheckedAgent> {
    let own = own_sha256().unwrap_or_default();
    let mut agents: Vec<CheckedAgent> =
        tried.fleet.members().iter().map(|member| CheckedAgent::of(member, &own)).collect();
    note_shared_cores(&mut agents);
    agents.extend(tried.not_found.iter().map(|(query, failure)| CheckedAgent {
        agent: query.clone(),
        found: None,
        failed: Some(failure.to_string()),
        missing: Vec::new(),
    }));
    agents
}

impl CheckedAgent {
    fn of(member: &Member, own: &str) -> Self {
        let is_there = member.greeting.as_ref().zip(member.clock);
        let found = is_there.map(|(greeting, clock)| FoundAgent::of(greeting, clock, own));
        let failed = member.loss.as_ref().map(ToString::to_string);
        let missing = found.as_ref().map(FoundAgent::missing).unwrap_or_default();
        Self { agent: member.spec.name.clone(), found, failed, missing }
    }
}

impl FoundAgent {
    fn of(greeting: &Greeting, clock: Reading, own: &str) -> Self {
        let is_loopback = |network: &Network| network.name == "lo";
        let networks = greeting.inventory.networks.iter();
        Self {
            version: greeting.version.clone(),
            program_sha256: greeting.program_sha256.clone(),
            same_program: greeting.program_sha256 == own,
            host: greeting.host.clone(),
            boot_id: greeting.boot_id.clone(),
            system: greeting.system.clone(),
            cores: greeting.cores.clone(),
            memory_bytes: greeting.inventory.memory_bytes,
            networks: networks.filter(|network| !is_loopback(network)).cloned().collect(),
            open_files_max: greeting.open_files_max,
            reserves_ports: greeting.reserves_ports,
            clock_bound_ns: clock.bound,
            round_trip_ns: Nanos(clock.bound.0.saturating_mul(2)),
        }
    }

    fn missing(&self) -> Vec<String> {
        let mut missing = Vec::new();
        if !self.same_program {
            missing.push(
                "its program is another build of this version: a run discloses that; install the \
                 same file there, or use --deploy"
                    .to_owned(),
            );
        }
        if let Some(max) = self.open_files_max.filter(|max| *max < OPEN_FILES_ENOUGH) {
            let max = grouped(max as f64);
            missing.push(format!(
                "it may open {max} files, one for each connection: raise the hard limit there \
                 (ulimit -Hn)"
            ));
        }
        if !self.reserves_ports {
            missing.push(
                "it binds no port below 1024, from which some NFS servers want to be asked: run it \
                 as root, or export with `insecure`"
                    .to_owned(),
            );
        }
        if self.clock_bound_ns > CLOCK_BOUND_ENOUGH {
            let bound = self.clock_bound_ns;
            missing.push(format!(
                "its clock is known to within {bound} only: agents start together no better than \
                 that; is the way there long, or the host busy?"
            ));
        }
        missing
    }
}

/// Agents on one host, of which not each has a core of its own.
fn note_shared_cores(agents: &mut [CheckedAgent]) {
    let mut by_host: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (index, agent) in agents.iter().enumerate() {
        if let Some(found) = &agent.found {
            by_host.entry(found.boot_id.clone()).or_default().push(index);
        }
    }
    for together in by_host.values() {
        let count = together.len();
        for &index in together {
            let agent = &mut agents[index];
            let cores = agent.found.as_ref().map_or(usize::MAX, |found| found.cores.len());
            if count > cores {
                agent.missing.push(format!(
                    "{count} agents share the {cores} cores of its host: take fewer"
                ));
            }
        }
    }
}
