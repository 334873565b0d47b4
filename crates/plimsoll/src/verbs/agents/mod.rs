//! `plimsoll agents`: checks agents before a run, and prints a Kubernetes manifest for them.

mod manifest;
mod shown;

use std::collections::BTreeMap;

use clap::{Args, Subcommand};
use plimsoll_fleet::clock::Reading;
use plimsoll_fleet::message::Greeting;
use plimsoll_model::disclosure::Network;
use plimsoll_model::event::AgentOptions;
use plimsoll_model::units::{Nanos, grouped};
use plimsoll_run::fleet::{Fleet, Member, Tried};
use plimsoll_run::host_inventory::own_sha256;
use serde::Serialize;

use crate::exit::{Exit, Failure};
use crate::flags::Progress;
use crate::flags::values::parse_span_arg;
use crate::interrupts;
use crate::terminal::{self, Live};

/// Version of `--json`.
const CHECK_FORMAT: u32 = 1;
/// The number of ports that one address has by default (32768 to 60999): with fewer open files, the
/// files limit an agent's connections.
const OPEN_FILES_ENOUGH: u64 = 28_232;
/// Beyond this a run doubts the bound of a clock.
const CLOCK_BOUND_ENOUGH: Nanos = Nanos::from_millis(1);

/// `plimsoll agents`.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum AgentsVerb {
    /// Start each agent, without any load, and print what it can use
    Check(AgentsCheckArgs),
    /// Print a job of Kubernetes, for kubectl apply -f -, whose pods wait for runs
    Manifest(manifest::AgentsManifestArgs),
}

/// How hosts are checked before a run, and how that is shown.
#[derive(Clone, Debug, Args)]
pub(crate) struct CheckArgs {
    /// How long to wait for agents to arrive
    #[arg(long, value_name = "SPAN", default_value = "60s", value_parser = parse_span_arg)]
    pub agents_wait: Nanos,
    /// Copy this program to agents' hosts that do not have it
    #[arg(long)]
    pub deploy: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// How to show progress
    #[arg(long, value_enum, default_value_t = Progress::Auto, value_name = "HOW")]
    pub progress: Progress,
}

impl CheckArgs {
    /// The agents to start, which are `at`.
    fn options(&self, at: Vec<String>) -> AgentOptions {
        AgentOptions { at, wait: self.agents_wait, deploy: self.deploy, ..AgentOptions::default() }
    }
}

/// `plimsoll agents check`.
#[derive(Clone, Debug, Args)]
pub(crate) struct AgentsCheckArgs {
    /// As for --agents
    #[arg(required = true, value_name = "WHERE")]
    pub agents: Vec<String>,
    #[command(flatten)]
    pub check: CheckArgs,
}

/// A checked agent.
#[derive(Serialize)]
struct CheckedAgent {
    /// As a run names it.
    agent: String,
    /// Its resources; absent if it could not be started.
    #[serde(skip_serializing_if = "Option::is_none")]
    found: Option<AgentProperties>,
    /// Why it could not be started.
    #[serde(skip_serializing_if = "Option::is_none")]
    failed: Option<String>,
    /// What a run may lack, for a person.
    missing: Vec<String>,
}

/// The resources of an agent.
#[derive(Serialize)]
struct AgentProperties {
    version: String,
    program_sha256: String,
    /// Whether it runs the same program as this one.
    same_program: bool,
    host: String,
    boot_id: String,
    system: String,
    cores: Vec<u32>,
    memory_bytes: Option<u64>,
    networks: Vec<Network>,
    open_files_max: Option<u64>,
    /// Whether it may bind ports below 1024.
    reserves_ports: bool,
    /// Largest difference between the true and the measured offset of its clock.
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

/// Starts each agent and prints its resources, or why it could not be started.
fn check(args: &AgentsCheckArgs) -> Result<Exit, Failure> {
    let checked = CheckedAgents::try_out(&args.agents, &args.check)?;
    if args.check.json {
        let all = serde_json::json!({ "format": CHECK_FORMAT, "agents": checked.0 });
        terminal::print(&format!("{all:#}"));
    } else {
        terminal::print(&checked.text());
    }
    Ok(if checked.all_are_there() { Exit::Valid } else { Exit::Unusable })
}

/// Agents that were started once, or could not be.
#[derive(Serialize)]
#[serde(transparent)]
pub(super) struct CheckedAgents(Vec<CheckedAgent>);

impl CheckedAgents {
    /// Starts each agent, asks for its resources and ends it.
    pub(super) fn try_out(at: &[String], args: &CheckArgs) -> Result<Self, Failure> {
        let signals = interrupts::listen()?;
        let mut live = Live::new(args.progress);
        let tried = Fleet::try_out(&args.options(at.to_vec()), &signals, &mut live)?;
        Ok(Self(checked(&tried)))
    }

    /// For a person.
    pub(super) fn text(&self) -> String {
        shown::text(&self.0, terminal::stdout_style())
    }

    pub(super) fn all_are_there(&self) -> bool {
        self.0.iter().all(|agent| agent.failed.is_none())
    }
}

fn checked(tried: &Tried) -> Vec<CheckedAgent> {
    let own = own_sha256().unwrap_or_default();
    let mut agents: Vec<CheckedAgent> = tried
        .fleet
        .members()
        .iter()
        .map(|member| CheckedAgent::from_member(member, &own))
        .collect();
    note_shared_cores(&mut agents);
    agents.extend(tried.missing_pods.iter().map(|(query, failure)| CheckedAgent {
        agent: query.clone(),
        found: None,
        failed: Some(failure.to_string()),
        missing: Vec::new(),
    }));
    agents
}

impl CheckedAgent {
    fn from_member(member: &Member, own: &str) -> Self {
        let is_there = member.greeting.as_ref().zip(member.clock);
        let properties =
            is_there.map(|(greeting, clock)| AgentProperties::from_greeting(greeting, clock, own));
        let failed = member.loss.as_ref().map(ToString::to_string);
        let missing = properties.as_ref().map(AgentProperties::missing).unwrap_or_default();
        Self { agent: member.spec.name.clone(), found: properties, failed, missing }
    }
}

impl AgentProperties {
    fn from_greeting(greeting: &Greeting, clock: Reading, own: &str) -> Self {
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

/// Notes agents on one host that do not each have a core of their own.
fn note_shared_cores(agents: &mut [CheckedAgent]) {
    let mut by_host: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (index, agent) in agents.iter().enumerate() {
        if let Some(properties) = &agent.found {
            by_host.entry(properties.boot_id.clone()).or_default().push(index);
        }
    }
    for together in by_host.values() {
        let count = together.len();
        for &index in together {
            let agent = &mut agents[index];
            let cores =
                agent.found.as_ref().map_or(usize::MAX, |properties| properties.cores.len());
            if count > cores {
                agent.missing.push(format!(
                    "{count} agents share the {cores} cores of its host: take fewer"
                ));
            }
        }
    }
}
