//! `plimsoll testbed check`: looks at every host of a testbed, without any load.

use std::fmt::Write as _;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use plimsoll_model::disclosure::Setting;
use plimsoll_model::inventory::DeclaredSystem;
use plimsoll_model::monitored::SourceRole;
use plimsoll_run::testbed::{Testbed, reach};
use serde::Serialize;

use super::agents::{CheckArgs, CheckedAgents};
use crate::exit::{Exit, Failure};
use crate::terminal;

/// Version of `--json`.
const CHECK_FORMAT: u32 = 1;

/// `plimsoll testbed`.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum TestbedVerb {
    /// Ask every host that is monitored, start each agent, and print what a run would miss
    Check(TestbedCheckArgs),
}

/// `plimsoll testbed check`.
#[derive(Clone, Debug, Args)]
pub(crate) struct TestbedCheckArgs {
    /// The testbed, as for run --testbed
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    #[command(flatten)]
    pub check: CheckArgs,
}

pub(crate) fn perform(verb: &TestbedVerb) -> Result<Exit, Failure> {
    match verb {
        TestbedVerb::Check(args) => check(args),
    }
}

/// A system of a testbed.
#[derive(Serialize)]
struct CheckedSystem {
    name: String,
    /// As a run takes it; absent where it is not monitored or its role is to be found.
    #[serde(skip_serializing_if = "Option::is_none")]
    role: Option<SourceRole>,
    /// How it is monitored.
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<String>,
    /// What it reports about itself.
    facts: Vec<Setting>,
    /// Why it does not answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    failed: Option<String>,
    /// Facts that nobody can see and that the file does not state.
    not_declared: Vec<&'static str>,
}

fn check(args: &TestbedCheckArgs) -> Result<Exit, Failure> {
    let testbed = Testbed::read(&args.file)?;
    let systems: Vec<CheckedSystem> =
        testbed.facts.system.iter().map(|system| checked(&testbed, system)).collect();
    let missing = missing(&testbed);
    let at = testbed.agents_with(&[])?;
    let agents = (!at.is_empty()).then(|| CheckedAgents::try_out(&at, &args.check)).transpose()?;
    if args.check.json {
        let all = serde_json::json!({
            "format": CHECK_FORMAT, "systems": systems, "agents": agents, "missing": missing,
        });
        terminal::print(&format!("{all:#}"));
    } else {
        terminal::print(&text(&systems, agents.as_ref(), &missing));
    }
    let all_answer = systems.iter().all(|system| system.failed.is_none())
        && agents.as_ref().is_none_or(CheckedAgents::all_are_there);
    Ok(if all_answer { Exit::Valid } else { Exit::Unusable })
}

fn checked(testbed: &Testbed, system: &DeclaredSystem) -> CheckedSystem {
    let monitor = testbed.monitored().find(|(name, _)| *name == system.name).map(|it| it.1);
    let (facts, failed) = match monitor.map(reach) {
        None => (Vec::new(), None),
        Some(Ok(facts)) => (facts, None),
        Some(Err(failure)) => (Vec::new(), Some(failure.to_string())),
    };
    let not_declared = system.all().into_iter().filter(|(_, fact)| fact.is_none());
    CheckedSystem {
        name: system.name.clone(),
        role: monitor.and_then(|it| it.role),
        source: monitor.map(|it| it.url.name()),
        facts,
        failed,
        not_declared: not_declared.map(|(name, _)| name).collect(),
    }
}

/// What a run with this testbed cannot tell.
fn missing(testbed: &Testbed) -> Vec<&'static str> {
    let has = |role| testbed.monitored().any(|(_, monitor)| monitor.role == Some(role));
    let mut missing = Vec::new();
    if !has(SourceRole::Server) {
        missing.push(
            "no [[system]] with role = \"server\" is monitored: unless the server runs on this \
             host or is found by its address, a run names no limit, no cost of an op and no size",
        );
    }
    if !has(SourceRole::Network) {
        missing.push(
            "no [[system]] with role = \"network\" is monitored: a full port of a switch would not \
             be named",
        );
    }
    missing
}

fn text(systems: &[CheckedSystem], agents: Option<&CheckedAgents>, missing: &[&str]) -> String {
    let style = terminal::stdout_style();
    let mut out = String::new();
    for system in systems {
        let role = system.role.map_or_else(String::new, |role| format!(", {}", role.as_str()));
        let source = system.source.as_deref().unwrap_or("not monitored");
        let _ = writeln!(out, "{}{role}: {source}", style.bold(&system.name));
        for Setting { name, value, .. } in &system.facts {
            let _ = writeln!(out, "  {name}: {value}");
        }
        if let Some(why) = &system.failed {
            let _ = writeln!(out, "  {} {why}", style.bad("failed:"));
        }
        if !system.not_declared.is_empty() {
            let _ = writeln!(out, "  not stated: {}", system.not_declared.join(", "));
        }
    }
    for what in missing {
        let _ = writeln!(out, "{} {what}", style.mixed("note:"));
    }
    if let Some(agents) = agents {
        let _ = write!(out, "\n{}", agents.text());
    }
    out
}
